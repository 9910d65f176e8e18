"""Pulls of several strategies over one parameter: the numbers, and labelled lines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist import strategies
from shortlist.arrays import FloatArray
from shortlist.bounds import lower_bound
from shortlist.errors import InvalidProblem
from shortlist.planning import row_of
from shortlist.plot.style import GREY, PALE, look_of
from shortlist.problem import Problem
from shortlist.strategies import strategy_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWER_BOUND = "lower bound"


@dataclass(frozen=True, eq=False)
class Curves:
    """Numbers of pulls over one parameter.

    Attributes
    ----------
    over
        The name of the parameter.
    values
        Its values.
    pulls
        By strategy, its largest number of pulls at each value; NaN if it does not guarantee the answer.
    lower_bound
        The number of pulls that every algorithm needs on some instance; NaN where no bound is proved.
    """

    over: str
    values: FloatArray
    pulls: Mapping[str, FloatArray]
    lower_bound: FloatArray

    @property
    def multiples(self) -> dict[str, FloatArray]:
        """The pulls of each strategy as multiples of the lower bound; NaN where the bound is 0."""
        bound = np.where(self.lower_bound > 0, self.lower_bound, np.nan)
        return {name: pulls / bound for name, pulls in self.pulls.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data for JSON."""
        return {
            "over": self.over,
            "values": self.values.tolist(),
            "worst_case_pulls": {name: _numbers(pulls) for name, pulls in self.pulls.items()},
            "lower_bound": _numbers(self.lower_bound),
        }


def worst_cases(
    over: str, values: Sequence[float], problems: Iterable[Problem], names: Sequence[str]
) -> Curves:
    """Return the worst cases of strategies on problems, one problem per value."""
    rows, bounds = [], []
    for problem in problems:
        rows.append([certified_pulls(name, problem) for name in names])
        bounds.append(np.nan if (bound := lower_bound(problem)) is None else bound.pulls)
    table = np.array(rows, dtype=np.float64).reshape(len(bounds), len(names))
    by_name = dict(zip(names, table.T, strict=True))
    return Curves(over, np.array(values, dtype=np.float64), by_name, np.array(bounds))


def certified_pulls(name: str, problem: Problem) -> float:
    """Return the largest number of pulls of a strategy that guarantees the answer; NaN if it does not."""
    row = row_of(name, problem)
    return float(row.worst_case_pulls or 0) if row.is_certified else np.nan


def checked_strategies(names: Sequence[str] | None, default: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the strategies to compare: the given ones, or the default ones, or all."""
    if names is None:
        return tuple(default) or strategies.names()
    chosen = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    if not chosen:
        raise InvalidProblem("`strategies` is empty; name at least one, such as 'race'.")
    for name in chosen:
        if name == "auto":
            raise InvalidProblem("strategy 'auto' depends on the problem; name the strategies to compare.")
        strategy_named(name)
    return chosen


def draw_curves(axes: "Axes", values: FloatArray, curves: Mapping[str, FloatArray]) -> None:
    """Draw a line for each strategy that has data; none if no pulls are needed."""
    if not any((heights > 0).any() for heights in curves.values()):
        axes.text(
            0.5,
            0.5,
            "nothing has to be pulled",
            transform=axes.transAxes,
            ha="center",
            va="center",
            color=GREY,
        )
    for name, heights in curves.items():
        heights = np.where(heights > 0, heights, np.nan)
        if np.isfinite(heights).any():
            look = look_of(name)
            axes.plot(
                values,
                heights,
                color=look.colour,
                linestyle=look.line,
                marker=look.marker or ("_" if len(values) == 1 else ""),  # a single point has no line
                markevery=max(1, len(values) // 12),
                linewidth=2.2 if name == LOWER_BOUND else 1.5,
                gid=f"curve-{name}",
            )


def name_curves(
    axes: "Axes",
    values: FloatArray,
    curves: Mapping[str, FloatArray],
    height: float,
) -> None:
    """Write the name of each line to the right of its end without overlaps; `height` is in inches."""
    found = {name: np.flatnonzero(heights > 0) for name, heights in curves.items()}
    x = int(np.argmax(values)) if len(values) else 0
    ends = {name: float(curves[name][at[np.argmin(np.abs(at - x))]]) for name, at in found.items() if len(at)}
    if not ends:
        return
    axes.autoscale_view()
    low, high = axes.get_ylim()
    axes.set(xlim=axes.get_xlim(), ylim=(low, high))
    scale = axes.transScale
    bottom, top = (float(scale.transform((1.0, y))[1]) for y in (low, high))
    places = [(float(scale.transform((1.0, y))[1]) - bottom) / (top - bottom) for y in ends.values()]
    for name, place, at in zip(ends, places, spread(places, 0.15 / height), strict=True):
        look = look_of(name)
        axes.plot(
            [1.06, 1.085, 1.11], [at] * 3, transform=axes.transAxes, clip_on=False, color=look.colour,
            linestyle=look.line, marker=look.marker, markevery=[1], markersize=4,
        )  # fmt: skip
        axes.plot(
            [1.005, 1.05], [place, at], transform=axes.transAxes, clip_on=False, color=PALE, linewidth=0.6
        )
        axes.text(1.13, at, name, transform=axes.transAxes, va="center", fontsize=8.5)


def spread(places: Sequence[float], least: float) -> list[float]:
    """Return positions moved apart just enough that neighbours are at least `least` from each other."""
    order = np.argsort(places, kind="stable")
    blocks: list[list[float]] = []  # per block: the sum of the wanted starts, and its size
    for rank, place in enumerate(np.asarray(places, dtype=np.float64)[order]):
        blocks.append([place - rank * least, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1]]
    starts = [total / size for total, size in blocks for _ in range(int(size))]
    found = np.empty(len(places))
    found[order] = [start + rank * least for rank, start in enumerate(starts)]
    return [float(place) for place in found]


def _numbers(pulls: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in pulls]
