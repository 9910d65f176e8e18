"""Figures that count arms: a column for each round, and histograms of means and pulls if arms are many."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.report import text_format as markup
from shortlist.report.figure import figure, table
from shortlist.report.model import Report
from shortlist.report.shown_arms import MOST_ROWS
from shortlist.report.svg import Picture, Scale
from shortlist.report.text_format import compact, counted, mean_words

_TOP, _BOTTOM, _HEIGHT = 34, 174, 200  # pixels: top and bottom of the columns, and height of the picture
_LEFT = 0.14  # share of the width, for the numbers beside the columns
_MOST_COLUMNS, _MOST_TABLE_ROWS, _BINS = 300, 60, 30


# --- rounds ---------------------------------------------------------------------------------------


def rounds_figure(report: Report) -> str:
    """Return a figure of how many arms each round asked for; empty if unknown, or without rounds."""
    rounds = report.rounds
    if rounds is None or not len(rounds.arms) or (report.result.n_fed and not rounds.pulls.any()):
        return ""
    n, most = len(rounds.arms), int(rounds.arms.max())
    first, last = rounds.arms[0], rounds.arms[-1]
    said = f"{counted(n, 'round')}: from {counted(int(first), 'arm')} in the first to {last:,} in the last."
    heights = _columns(rounds.arms, _MOST_COLUMNS)
    picture = Picture(_HEIGHT, "Arms pulled in each round", said)
    _columns_drawn(picture, heights, "arms", "steps in")
    numbers = [f"round {rounds.numbers[0]:,}", f"{rounds.numbers[-1]:,}"]
    _below(picture, numbers if n > 1 else numbers[:1])
    legend = "Each round pulls some of the open arms. A settled arm is open again if other arms lead."
    if n > _MOST_COLUMNS:
        legend += f" Each column covers several of the {n:,} rounds and shows the largest number of arms."
    if rounds.n_whole < n:
        legend += f" Round {rounds.numbers[-1]:,} is not complete."
    legend += f" Rounds are numbered from 0, as in tickets; the largest has {counted(most, 'arm')}."
    return figure("Arms pulled in each round", picture.render(), markup.words(legend), _rounds_table(report))


def _rounds_table(report: Report) -> str:
    rounds = report.rounds
    assert rounds is not None
    n = len(rounds.arms)
    edges = np.unique(np.linspace(0, n, min(n, _MOST_TABLE_ROWS) + 1).astype(np.int64))
    made = np.concatenate([[0], np.cumsum(rounds.pulls)])
    rows = []
    for start, end in pairwise(edges.tolist()):
        ends = rounds.numbers[start], rounds.numbers[end - 1]
        label = f"{ends[0]:,}" if end == start + 1 else f"{ends[0]:,} to {ends[1]:,}"
        most = int(rounds.arms[start:end].max())
        rows.append([label, f"{most:,}", f"{made[end] - made[start]:,}", f"{made[end]:,}"])
    return table("Arms and pulls of each round", ["round", "arms", "pulls made", "pulls so far"], rows)


# --- many arms ------------------------------------------------------------------------------------


def spread_figures(report: Report) -> str:
    """Return histograms of means and pulls, if there are too many arms to show each."""
    result = report.result
    if result.problem.n <= MOST_ROWS:
        return ""
    epsilon = result.problem.epsilon
    means = result.arms.means[~np.isnan(result.arms.means)]
    pulls = result.arms.pulls[result.arms.pulls > 0].astype(np.float64)
    drawn, arms = "", "all arms" if len(pulls) == result.problem.n else "all arms that were pulled"
    if len(means):
        drawn += _histogram(f"Means of {arms}", means, lambda value: mean_words(value, epsilon), _cut(report))
    if len(pulls):
        is_log = pulls.max() > 50 * pulls.min()
        shape = f"Pulls of {arms}" + (", on a logarithmic scale" if is_log else "")
        drawn += _histogram(shape, pulls, lambda value: f"{value:,.0f}", None, is_log=is_log)
    return drawn


def _cut(report: Report) -> float | None:
    """Return the mean halfway between the last arm above the cut and the first below it."""
    order, means, k = report.order, report.result.arms.means, report.n_above
    if not 0 < k < len(order):
        return None
    value = float(means[order[k - 1]] + means[order[k]]) / 2
    return None if math.isnan(value) else value


def _histogram(
    title: str, values: FloatArray, name: Callable[[float], str], cut: float | None, *, is_log: bool = False
) -> str:
    low, high = float(values.min()), float(values.max())
    if not high > low:
        low, high = (low / 2, high * 2) if is_log else (low - 0.5, high + 0.5)
    edges = np.geomspace(low, high, _BINS + 1) if is_log else np.linspace(low, high, _BINS + 1)
    if not is_log and high - low < _BINS and (values % 1 == 0).all():  # a column for each whole number
        low, high = math.floor(low) - 0.5, math.ceil(high) + 0.5
        edges = np.arange(low, high + 1)
    n_columns = len(edges) - 1
    places = np.clip(np.searchsorted(edges, values, "right") - 1, 0, n_columns - 1)
    counts = np.bincount(places, minlength=n_columns)
    scale = Scale(low, high, is_log, _LEFT)
    said = f"{counted(len(values), 'arm')}, from {name(values.min())} to {name(values.max())}."
    picture = Picture(_HEIGHT, title, said)
    _columns_drawn(picture, counts, "arms", "steps out")
    if cut is not None:
        x = scale(cut)
        picture.line((x, _TOP - 8), (x, _BOTTOM), "cut")
        picture.text(x + (0.01 if x < 0.5 else -0.01), _TOP, "cut", anchor="start" if x < 0.5 else "end")
    picture.axis(scale, _BOTTOM, _BOTTOM + 4)
    columns = [values[places == place] for place in range(n_columns) if counts[place]]
    rows = [[_from_to(name(one.min()), name(one.max())), f"{len(one):,}"] for one in columns]
    return figure(title, picture.render(), markup.words(said), table(title, ["from, to", "arms"], rows))


def _from_to(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


# --- columns --------------------------------------------------------------------------------------


def _columns(values: IntArray, most: int) -> IntArray:
    """Return the values; if there are too many, the maximum of each of `most` parts."""
    if len(values) <= most:
        return values
    starts = np.linspace(0, len(values), most + 1).astype(np.int64)[:-1]
    return np.maximum.reduceat(values, starts)


def _columns_drawn(picture: Picture, values: IntArray, unit: str, kind: str) -> None:
    """Draw columns and tick labels, on a logarithmic scale if some columns would be too low to see."""
    most = int(values.max())
    least = int(values[values > 0].min())
    is_log = most > 20 * least
    scale = Scale(0.5, most * 1.2, is_log=True) if is_log else Scale(0.0, max(most * 1.05, 1.0))

    def share(value: float) -> float:
        return max(0.0, (scale(value) - scale(scale.low)) / (scale(scale.high) - scale(scale.low)))

    heights = [share(float(value)) if value else 0.0 for value in values]
    picture.steps(heights, _LEFT, (_TOP, _BOTTOM), kind)
    for value, label in scale.ticks():
        if value == int(value):
            y = _BOTTOM - (_BOTTOM - _TOP) * share(value)
            picture.line((_LEFT, y), (1, y), "grid")
            picture.text(_LEFT - 0.02, y + 4, label if is_log else compact(value), anchor="end")
    words = f"{unit} (log scale)" if is_log else unit
    picture.text(0, 14, words, "heading")


def _below(picture: Picture, labels: list[str]) -> None:
    """Write the labels below the first and the last column."""
    picture.text(_LEFT, _BOTTOM + 16, labels[0])
    if len(labels) > 1:
        picture.text(0.96, _BOTTOM + 16, labels[-1], anchor="end")
