"""Figure of how worst cases grow with the number of arms, with m, and with the confidence."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from shortlist.checks import MOST_ARMS, n_arms, one_of, whole_number
from shortlist.errors import InvalidProblem
from shortlist.plot.curves import (
    LOWER_BOUND,
    Curves,
    checked_strategies,
    draw_curves,
    name_curves,
    worst_cases,
)
from shortlist.plot.style import new_axes, powers_of_ten, quiet_style, value_ticks
from shortlist.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = {
    "n": "number of arms, n",
    "m": "arms to select, m",
    "delta": "accepted failure probability, delta",
}


def scaling_data(
    over: str = "n",
    values: Sequence[float] | None = None,
    *,
    n: int = 1000,
    m: int = 10,
    epsilon: float = 0.1,
    delta: float = 0.05,
    variances: Callable[[int], ArrayLike] = np.ones,
    strategies: Sequence[str] | None = None,
    points: int = 13,
) -> Curves:
    """Return worst cases over n, m or delta; `variances(n)` returns the variances of n arms."""
    over = one_of(over, "over", tuple(_LABELS))
    names = checked_strategies(strategies)
    fixed = {"n": n_arms(n), "m": whole_number(m, "m", 1, MOST_ARMS), "delta": delta}
    chosen = _values(over, values, fixed, whole_number(points, "points", 2, 10_000))
    problems = (_problem(fixed | {over: value}, epsilon, variances) for value in chosen)
    return worst_cases(over, [float(value) for value in chosen], problems, names)


def _values(over: str, values: Sequence[float] | None, fixed: dict[str, float], points: int) -> list[float]:
    if values is not None:
        found = sorted(
            {float(value) if over == "delta" else whole_number(value, over, 1, MOST_ARMS) for value in values}
        )
        if not found:
            raise InvalidProblem(f"`values` is empty; give values of {over}, such as [{fixed[over]}].")
        return list(found)
    if over == "delta":
        return [float(value) for value in np.geomspace(1e-6, 0.1, points)]
    most = 10**5 if over == "n" else max(1, int(fixed["n"]) // 2)
    least = int(fixed["m"]) + 1 if over == "n" else 1
    steps = np.geomspace(least, max(most, 10 * least) if over == "n" else most, points)
    return [float(value) for value in np.unique(np.rint(steps))]


def _problem(numbers: dict[str, float], epsilon: float, variances: Callable[[int], ArrayLike]) -> Problem:
    return Problem(int(numbers["m"]), epsilon, numbers["delta"], variances(int(numbers["n"])))


def scaling(
    over: str = "n",
    values: Sequence[float] | None = None,
    *,
    n: int = 1000,
    m: int = 10,
    epsilon: float = 0.1,
    delta: float = 0.05,
    variances: Callable[[int], ArrayLike] = np.ones,
    strategies: Sequence[str] | None = None,
    points: int = 13,
    as_multiple: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """Return axes with the worst-case pulls of strategies, and the lower bound, over n, m or delta.

    Parameters
    ----------
    over
        What varies: "n", "m" or "delta".
    values
        Its values; by default `points` values evenly spaced on a logarithmic axis.
    n, m, epsilon, delta
        The fixed parameters of the problem.
    variances
        A function that returns the variances of n arms; by default all are 1.
    points
        The number of problems to compute, unless `values` is given.
    strategies
        By default all that guarantee the m best arms within a number of pulls known in advance.
    as_multiple
        Whether to show pulls as multiples of the lower bound, which separates nearby lines.
    ax
        The axes to draw in; by default those of a new figure.
    """
    data = scaling_data(
        over,
        values,
        n=n,
        m=m,
        epsilon=epsilon,
        delta=delta,
        variances=variances,
        strategies=strategies,
        points=points,
    )
    curves = data.multiples if as_multiple else {**data.pulls, LOWER_BOUND: data.lower_bound}
    asked = {
        "n": f"n = {n:,}",
        "m": f"m = {m:,}",
        "epsilon": f"epsilon = {epsilon:g}",
        "delta": f"delta = {delta:g}",
    }
    with quiet_style():
        height = 4.2
        axes = new_axes(ax, height)
        draw_curves(axes, data.values, curves)
        powers_of_ten(axes, "y")
        if data.values[-1] < 30 * data.values[0]:
            axes.set_xscale("log")
            value_ticks(axes, data.values)
        else:
            powers_of_ten(axes, "x")
        axes.set_xlabel(_LABELS[over])
        axes.set_ylabel(
            "worst-case pulls, as a multiple of the lower bound" if as_multiple else "worst-case pulls"
        )
        axes.set_title(", ".join(words for name, words in asked.items() if name != over))
        name_curves(axes, data.values, curves, height - 1)
    return axes
