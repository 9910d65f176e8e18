"""The data of a run's page: plain data for JSON, of limited size however large the run is."""

import math
import time
from collections import Counter
from typing import Any

import numpy as np

from shortlist.report.arm_counts_figure import rounds_figure
from shortlist.report.arms_figure import arms_figure, left_words, unpulled_words
from shortlist.report.model import Report, report_of_history
from shortlist.report.origin import resuming
from shortlist.report.progress import duration
from shortlist.report.run_text import scores_words, state_of, status_dict
from shortlist.report.shown_arms import Left, Row, shown_arms
from shortlist.report.text_format import counted, iso, large, percent, plain_name, shortened, visible
from shortlist.report.verdict import (
    LABELS,
    assumption,
    basis,
    certificate,
    effort,
    headline,
    healthy_words,
    kept_word,
    names_arms,
    optimality,
)
from shortlist.report.worker_text import why_stopped, worker_words
from shortlist.run_urls import path_of
from shortlist.server.run_cache import OpenRun
from shortlist.session.feeding import can_be_fed
from shortlist.session.lease_rules import holdings
from shortlist.session.log import RunLog
from shortlist.session.state import RunState

MOST_LETTERS = 120  # of a name


def arms_view(report: Report) -> dict[str, Any]:
    """Return the arms that are shown individually, from the best, with the cut between in and out."""
    chosen, problem = shown_arms(report), report.result.problem
    above = [_row(report, row, is_above=True) for row in chosen.above]
    return {
        "rows": above + [_row(report, row, is_above=False) for row in chosen.below],
        "n_above": report.n_above,
        "epsilon": problem.epsilon,
        "goal": problem.goal,
        "is_finished": report.is_finished,
    }


def _row(report: Report, row: Row, *, is_above: bool) -> dict[str, Any]:
    some = row.arms if isinstance(row, Left) else [row]
    is_pulled = bool(report.result.arms.pulls[some].any())
    side = _side(report, is_above) if is_pulled or report.is_finished else unpulled_words(report)
    return {"is_above": is_above, "side": side} | (
        _many(report, row) if isinstance(row, Left) else _one(report, row)
    )


def _one(report: Report, arm: int) -> dict[str, Any]:
    arms = report.result.arms
    error = math.nan if report.errors is None else float(report.errors[arm])
    return {
        "arm": arm,
        "name": plain_name(report.result.problem.name(arm), MOST_LETTERS),
        "mean": _number(arms.means[arm]),
        "error": _number(error),
        "pulls": int(arms.pulls[arm]),
        "status": arms.statuses[arm],
    }


def _many(report: Report, left: Left) -> dict[str, Any]:
    """Return a group of arms that are not shown individually: their number, and the range of their means."""
    arms = report.result.arms
    there = arms.means[left.arms][~np.isnan(arms.means[left.arms])]
    return {
        "left_out": len(left.arms),
        "name": left_words(report, left),
        "span": [float(there.min()), float(there.max())] if len(there) else None,
        "pulls": int(arms.pulls[left.arms].sum()),
    }


def _side(report: Report, is_above: bool) -> str:
    if not report.is_finished:
        return "ahead" if is_above else "behind"
    return kept_word(report) if is_above else f"not {kept_word(report)}"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


_LONGEST_STEP = 80  # characters of a reason


def next_step(history: RunState, now: float) -> str:
    """Return the next step of a run, behind its state: what it waits for, why it stopped, or what to read."""
    if history.is_final:
        return "done: read the report"
    if history.suspended is not None:
        reason = " ".join(why_stopped(history).split())
        return reason if len(reason) <= _LONGEST_STEP else reason[: _LONGEST_STEP - 1] + "…"
    round = history.round
    held = holdings(round, now)
    n_held = sum(holding.n_tickets for holding in held)
    n_free = round.n_missing - n_held
    if n_free > 0:
        return f"measure: {counted(n_free, 'ticket')} available in round {round.number}"
    return f"wait: {counted(n_held, 'ticket')} with {counted(len(held), 'worker')}"


_MOST_LISTED = 50  # of conflicts, scored failures, rounds, workers and selected arms
_LONGEST = 500  # letters of a reason
_ENOUGH = 10.0  # seconds of measuring before the time left is estimated


def run_summary(log: RunLog) -> dict[str, Any]:
    """Return the entry of a run in the list of runs."""
    history = log.history
    state, n_pulls = state_of(history), history.n_made + history.n_fed
    return {
        "run": log.run,
        "path": path_of(log.run),
        "state": state,
        "label": LABELS[state],
        "next": next_step(history, log.now()),
        "question": history.problem.words,
        "strategy": history.began.strategy,
        "code": history.began.code,
        "n_pulls": n_pulls,
        "worst_case_pulls": history.worst_case_pulls,
        "share": share_of(n_pulls, history.worst_case_pulls),
        "share_known": bool(history.worst_case_pulls),
        "changed": None if log.changed_at is None else iso(log.changed_at),
        "is_done": history.is_final,
        "can_be_fed": can_be_fed(history) and history.problem.m < history.problem.n,
    }


def snapshot(run: OpenRun) -> dict[str, Any]:
    """Return the data of the page of a run."""
    log = run.log
    with log.lock:
        report = report_of(run)
        status = status_dict(log, with_result=False)
        facts = run_summary(log) | {
            key: status[key] for key in status if key not in ("run", "state", "question")
        }
        for part in ("conflicts", "withdrawn", "scored", "repeats"):
            facts[f"n_{part}"], facts[part] = len(status[part]), status[part][-_MOST_LISTED:]
        for score in facts["scored"]:
            score["reason"] = shortened(score["reason"], _LONGEST)
        for holder in facts["holders"]:
            holder["words"] = worker_words(holder["worker"])
        findings = [{"is_warning": one.is_warning, "words": one.words} for one in report.findings]
        pace, suspended = _pace(log), facts["suspended"]
        return facts | {
            "problem": status["question"],
            "suspended": None if suspended is None else shortened(_lines(suspended), 4 * _LONGEST),
            "holders": facts["holders"][:_MOST_LISTED],
            "n_holders": len(facts["holders"]),
            "offers_feeding": facts["can_be_fed"] and not facts["is_done"] and not facts["holders"],
            "is_fed": log.history.n_fed > 0,
            "has_answers": log.history.n_pulls > 0,
            "headline": headline(report),
            "certificate": certificate(report),
            "basis": basis(report),
            "assumption": assumption(report),
            "effort": effort(report),
            "optimality": optimality(report),
            "resume": report.resume,
            "selected": _selected(report),
            "names_arms": names_arms(report),
            "winners": [{"name": name} for name in _winners(report)],
            "progress": _progress(log.history, pace),
            "tallies": _tallies(log.history),
            "gauge": _gauge(log.history, report.cap, facts["lower_bound"]),
            "healthy": healthy_words(report),
            "needs_variances": log.history.round.tickets.needs_variances,
            "n_selected": len(report.result.indices),
            "rivals": dict(report.rivals),
            "pace": pace,
            "arms": arms_view(report),
            "rounds": _rounds(report),
            "figures": {"arms": arms_figure(report, MOST_LETTERS), "rounds": rounds_figure(report)},
            "workers": _workers(report, facts["holders"]),
            "findings": findings,
            "warnings": [one for one in findings if one["is_warning"]],
            "notes": [one for one in findings if not one["is_warning"]],
            "has_warnings": any(one["is_warning"] for one in findings),
            "log": list(reversed(run.activity.recent)),
            "made": iso(time.time()),
        }


def report_of(run: OpenRun) -> Report:
    """Return the report on a run, as far as its log has been read."""
    origin, history = run.activity.origin, run.log.history
    resume = resuming(origin, history.began.seed, is_fed=history.n_fed > 0)
    return report_of_history(history, origin, run.activity.workers, resume=resume)


def _lines(text: str) -> str:
    return "\n".join(map(visible, text.splitlines()))


def _selected(report: Report) -> list[str]:
    """Return the names of the selected arms; if there are very many, the first ones."""
    chosen = report.result.indices[:_MOST_LISTED]
    return [plain_name(report.result.problem.name(int(arm)), MOST_LETTERS) for arm in chosen]


def _winners(report: Report) -> list[str]:
    """Return the names below the headline."""
    more = len(report.result.indices) - _MOST_LISTED
    return [*_selected(report), *([f"and {more:,} more"] if more > 0 else [])] if names_arms(report) else []


def _rounds(report: Report) -> list[dict[str, int]]:
    rounds = report.rounds
    if rounds is None:
        return []
    first = max(0, len(rounds.arms) - 4 * _MOST_LISTED)
    return [
        {"round": int(rounds.numbers[k]), "arms": int(rounds.arms[k]), "pulls": int(rounds.pulls[k])}
        for k in range(first, len(rounds.arms))
    ]


def _workers(report: Report, holders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the workers who have measured or hold tickets now, those with most pulls first."""
    held = {one["worker"]: one for one in holders}
    done = {work.worker: work for work in report.workers}
    names = [*done, *(name for name in held if name not in done)]
    return [
        {
            "worker": plain_name(worker_words(name), 60),
            "n_answers": done[name].n_answers if name in done else 0,
            "n_pulls": done[name].n_pulls if name in done else 0,
            "share": done[name].share if name in done else 0.0,
            "n_held": held[name]["n_tickets"] if name in held else 0,
            "until": held[name]["until"] if name in held else None,
        }
        for name in sorted(names, key=lambda name: name not in held)[:_MOST_LISTED]
    ]


def _pace(log: RunLog) -> dict[str, Any]:
    """Return the rate of pulls since the run started, and how long it can take at that rate.

    There is no such time if people measure, who come and go, nor after a few seconds.
    """
    history, cap = log.history, log.history.worst_case_pulls
    seconds = max((log.changed_at or 0.0) - (log.began_at or 0.0), 1e-9)
    rate = history.n_made / seconds if history.n_made else 0.0
    left, is_driven = None, history.settings is not None and "together" in history.settings
    if cap is not None and rate > 0 and not history.is_final and is_driven and seconds >= _ENOUGH:
        left = (cap - history.n_made) / rate
    return {"pulls_per_second": rate, "seconds_left_at_most": left}


def share_of(pulls: float | None, cap: int | None) -> float | None:
    """Return a number of pulls as a share of the maximum; None if unknown."""
    return min(pulls / cap, 1.0) if cap and pulls is not None else None


def _tallies(history: RunState) -> list[dict[str, str]]:
    """Return the figures of a run on shared items: the share of the table, what is saved, arms, and cost.

    For blocks: how many there were, and how many more are needed.
    """
    problem = history.problem
    if problem.items is None:
        return []
    counts = Counter(history.certified.statuses)
    if problem.has_blocks:
        tallies = [(f"{history.n_blocks:,}", "block" if history.n_blocks == 1 else "blocks")]
        if (left := history.n_blocks_left) is not None:
            tallies.append((f"{left:,}", "more needed, by forecast"))
    else:
        tallies = _of_the_table(history)
    tallies += [
        (f"{counts[one]:,}", f"{'arm' if counts[one] == 1 else 'arms'} {one}")
        for one in ("in", "open", "out")
    ]
    if problem.costs is not None:
        tallies.append((f"{history.cost_made:,.6g}", "cost" if history.is_final else "cost so far"))
    return [{"value": value, "label": label} for value, label in tallies]


def _of_the_table(history: RunState) -> list[tuple[str, str]]:
    share = percent(history.n_pulls / max(history.problem.n_cells, 1))
    saved = "scores saved" if history.is_final else "scores saved so far"
    return [(share, "of the table measured"), (f"{history.result.n_saved:,}", saved)]


def _gauge(history: RunState, cap: int | None, bound: float | None) -> dict[str, Any]:
    """Return the measured pulls of a run, with the maximum and the lower bound; nothing if all were fed."""
    cap = None if history.n_fed and not history.n_made else cap
    return {
        "made": share_of(history.n_made, cap),
        "made_words": f"{history.n_made:,}",
        "bound": share_of(bound, cap),
        "bound_words": f"{bound:,.0f}" if bound else "",
        "cap_words": large(cap) if cap else "",
    }


def _progress(history: RunState, pace: dict[str, Any]) -> str:
    """Return the progress of a run in one line."""
    cap = history.worst_case_pulls
    fed = f", {history.n_fed:,} fed" if history.n_fed else ""
    said = [f"{history.n_made:,}{'' if cap is None else f' of at most {large(cap)}'} pulls made{fed}"]
    if fed and not history.n_made:
        said = [f"{counted(history.n_fed, 'pull')} fed, none measured"]
    if history.problem.items is not None:
        said = [scores_words(history)]
    if history.is_final:
        if not history.n_rounds:
            return said[0]
        rounds = counted(history.n_rounds, "round")
        return f"{said[0]}; {rounds}" if history.problem.items is not None else f"{said[0]} in {rounds}"
    round = history.round
    pilot = ", the pilot" if round.tickets.is_pilot else ""
    said.append(f"{counted(len(round.tickets), 'arm')} open in round {round.number}{pilot}")
    said.append(f"{round.n_missing:,} of its {counted(len(round.tickets), 'ticket')} not answered")
    if history.suspended is None and pace["seconds_left_at_most"] is not None:
        said.append(f"at most {duration(pace['seconds_left_at_most'])} left at the pace so far")
    return "; ".join(said)
