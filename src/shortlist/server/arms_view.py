"""The arms of a run as its page shows them: a row for each, or for many that are left out."""

import math
from typing import Any

import numpy as np

from shortlist.report.amounts import mean_words
from shortlist.report.arms_figure import left_words, means_scale, unpulled_words
from shortlist.report.facts import Report
from shortlist.report.markup import plain_name
from shortlist.report.rows import Left, Row, shown
from shortlist.report.verdict import kept_word

MOST_LETTERS = 120  # of a name


def arms_view(report: Report) -> dict[str, Any]:
    """Return the arms that are shown one by one, from the best; with the cut between in and out."""
    chosen, problem = shown(report), report.result.problem
    scale = means_scale(report, chosen)
    above = [_row(report, row, is_above=True) for row in chosen.above]
    return {
        "rows": above + [_row(report, row, is_above=False) for row in chosen.below],
        "n_above": report.n_above,
        "epsilon": problem.epsilon,
        "goal": problem.goal,
        "is_finished": report.is_finished,
        "range": [_number(scale.low), _number(scale.high)],
        "legend": _legend(report),
    }


def _row(report: Report, row: Row, *, is_above: bool) -> dict[str, Any]:
    some = row.arms if isinstance(row, Left) else [row]
    is_pulled = bool(report.result.arms.pulls[some].any())
    side = _side(report, is_above) if is_pulled or report.is_finished else unpulled_words(report)
    common = {"is_above": is_above, "kind": "above" if is_above else "below", "side": side}
    return common | (_many(report, row) if isinstance(row, Left) else _one(report, row))


def _one(report: Report, arm: int) -> dict[str, Any]:
    arms, epsilon = report.result.arms, report.result.problem.epsilon
    error = math.nan if report.errors is None else float(report.errors[arm])
    return {
        "arm": arm,
        "name": plain_name(report.result.problem.name(arm), MOST_LETTERS),
        "mean": _number(arms.means[arm]),
        "error": _number(error),
        "pulls": int(arms.pulls[arm]),
        "mean_words": mean_words(float(arms.means[arm]), epsilon),
        "width_words": mean_words(2 * error, epsilon),
    }


def _many(report: Report, left: Left) -> dict[str, Any]:
    """Return arms that are not shown one by one: how many, and between what their means lie."""
    arms = report.result.arms
    there = arms.means[left.arms][~np.isnan(arms.means[left.arms])]
    return {
        "left_out": len(left.arms),
        "name": left_words(report, left),
        "span": [float(there.min()), float(there.max())] if len(there) else None,
        "pulls": int(arms.pulls[left.arms].sum()),
        "mean_words": "",
        "width_words": "",
    }


def _side(report: Report, is_above: bool) -> str:
    if not report.is_finished:
        return "ahead" if is_above else "behind"
    return kept_word(report) if is_above else f"not {kept_word(report)}"


def _legend(report: Report) -> str:
    kept, epsilon = kept_word(report), report.result.problem.epsilon
    if report.is_finished:
        said = f"Filled: {kept}; hollow: not {kept}. The dashed line is the cut between them"
    else:
        said = "The dashed line is the cut between the arms ahead so far and the others, and it may move"
    said += f"; its thick part is epsilon long, {epsilon:g}."
    if report.errors is None:
        return f"{said} Variances are unknown, so there are no intervals."
    said += " Intervals are two standard errors (SE) to each side:"
    return f"{said} they are for orientation, and no part of the guarantee."


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
