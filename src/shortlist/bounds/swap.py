"""The bound from swaps, in which an arm that is in and one that is out exchange their means.

The arms that are in lie epsilon above the others. Exchanging two arms of about the same variance makes
another answer the only correct one. There are many such exchanges, and the corresponding wrong answers share
the failure probability delta, so each must be ruled out with far more confidence. This bound is large if
about as many arms are in as out. `docs/theory.md` has the proof.
"""

import math

from shortlist.bounds.classes import Classes
from shortlist.bounds.two_point import margin

_RATIOS = (1.0, 1.05, 1.2, 1.5, 2.0, 4.0, math.inf)


def swaps(arms: Classes, side: int, delta: float) -> float:
    """Return V such that every valid algorithm needs at least V / epsilon^2 expected pulls on some instance.

    `side` is the number of arms that are in or out, whichever is smaller. Arms are grouped, the noisiest
    first, so that variances within a group differ by at most some factor; the best of a few factors is used.
    """
    few = arms.few()
    return max(_value(_groups(few, ratio), side, delta) for ratio in _RATIOS)


def _groups(arms: Classes, ratio: float) -> list[tuple[float, float]]:
    """Return groups as (number of arms, least variance), the noisiest first, in units of the largest."""
    unit = float(arms.variances[-1])
    groups: list[tuple[float, float]] = []
    top = 0.0
    for variance, count in zip(arms.variances[::-1] / unit, arms.counts[::-1], strict=True):
        if not groups or variance * ratio < top * (1 - 1e-12):  # starts a new group, whatever the unit
            top = float(variance)
            groups.append((0.0, top))
        groups[-1] = (groups[-1][0] + float(count), float(variance))
    return [(n_arms, least * unit) for n_arms, least in groups]


def _value(groups: list[tuple[float, float]], side: float, delta: float) -> float:
    weight = logs = 0.0  # W = sum of m_g s_g, and the sum of m_g s_g ln((n_g - m_g) / s_g)
    for n_arms, variance in groups:
        n_in = min(math.floor(n_arms / 2), side)
        if n_in:
            weight += n_in * variance
            logs += n_in * variance * math.log((n_arms - n_in) / variance)
        side -= n_in
    if not weight:
        return 0.0
    return max(0.0, 2 * (1 - delta) * (weight * (margin(delta) + math.log(weight)) + logs))
