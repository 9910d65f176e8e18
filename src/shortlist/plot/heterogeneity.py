"""The main point of the paper: the effect of unequal variances with a constant sum."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import MOST_ARMS, whole_number
from shortlist.plot.curves import (
    LOWER_BOUND,
    Curves,
    checked_strategies,
    draw_curves,
    name_curves,
    worst_cases,
)
from shortlist.plot.style import new_axes, powers_of_ten, quiet_style
from shortlist.problem import Problem
from shortlist.variance_groups import entropy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STORY = ("race", "wnelim", "adapted-medelim", "medelim-max", "vmedelim")
_HALVING = 0.5  # ratio of successive variances at the most unequal end
_SMALLEST = 1e-80  # relative size below which variances are not allowed or lost in rounding


def heterogeneity_data(
    n: int = 256,
    m: int = 8,
    *,
    epsilon: float = 0.1,
    delta: float = 0.05,
    strategies: Sequence[str] | None = None,
    points: int = 25,
) -> Curves:
    """Return worst cases over the entropy of the variances, whose sum is always n.

    Variances decrease geometrically. The ratio of successive variances goes from 1/2 (or the smallest ratio
    at which the last variance can be distinguished from 0) to 1, where all are equal.
    """
    n, points = whole_number(n, "n", 2, MOST_ARMS), whole_number(points, "points", 2, 10_000)
    names = checked_strategies(strategies, STORY)
    least = max(_HALVING, _SMALLEST ** (1 / (n - 1)))
    entropies = np.linspace(entropy(geometric(n, least)), np.log(n), points)
    between = [ratio_for(n, float(each), least) for each in entropies[1:-1]]
    variances = [geometric(n, ratio) for ratio in (least, *between, 1.0)]
    problems = (Problem(m, epsilon, delta, each * n / each.sum()) for each in variances)
    return worst_cases("entropy", [entropy(each) for each in variances], problems, names)


def geometric(n: int, ratio: float) -> FloatArray:
    """Return n variances, each `ratio` times the previous one; the first is 1."""
    return np.asarray(ratio ** np.arange(n, dtype=np.float64))


def ratio_for(n: int, wanted: float, least: float) -> float:
    """Return the ratio, from `least` to 1, at which n geometric variances have a given entropy."""
    low, high = least, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if entropy(geometric(n, middle)) < wanted else (low, middle)
    return high


def heterogeneity_story(
    n: int = 256,
    m: int = 8,
    *,
    epsilon: float = 0.1,
    delta: float = 0.05,
    strategies: Sequence[str] | None = None,
    points: int = 25,
    ax: "Axes | None" = None,
) -> "Axes":
    """Return axes with worst-case pulls over the entropy of the variances, whose sum is constant.

    On the right all variances are equal; on the left a few noisy arms have nearly all of the variance. The
    order in which the paper's algorithm is optimal depends on the entropy; its constants do not.

    Parameters
    ----------
    n, m, epsilon, delta
        The problem. The variances sum to n.
    strategies
        By default those of the paper, and `race`.
    points
        The number of problems to compute.
    ax
        The axes to draw in; by default those of a new figure.
    """
    data = heterogeneity_data(n, m, epsilon=epsilon, delta=delta, strategies=strategies, points=points)
    curves = {**data.pulls, LOWER_BOUND: data.lower_bound}
    with quiet_style():
        height = 3.8
        axes = new_axes(ax, height)
        draw_curves(axes, data.values, curves)
        powers_of_ten(axes, "y")
        axes.set_xlabel(
            "entropy of the variance shares, in nats\n(left: a few noisy arms; right: all arms alike)"
        )
        axes.set_ylabel("worst-case pulls")
        axes.set_title(f"{m:,} of {n:,} arms, sum of variances {n:,}, epsilon {epsilon:g}, delta {delta:g}")
        name_curves(axes, data.values, curves, height - 1)
    return axes
