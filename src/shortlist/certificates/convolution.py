"""The convolution certificate, which bounds the probability that one batch of pulls selects a bad arm.

Take the m arms with the largest sample means. If a bad arm is among them, some best arm is not and has no
larger sample mean. So the downward error of the best arm and the upward error of the bad arm add up to more
than epsilon. The largest error among the best arms and the largest among the others are independent, so the
probability of this is a convolution of two tails. `docs/theory.md` has the proof.
"""

import math

import numpy as np

from shortlist.arrays import FloatArray

STEPS = 2048


def failure_probability(information: FloatArray, counts: FloatArray, m: int, *, steps: int = STEPS) -> float:
    """Return an upper bound on the probability that the m largest sample means include a bad arm.

    Parameters
    ----------
    information
        Per class of arms: epsilon^2 t / (2 s) after t pulls of an arm with variance s.
    counts
        The number of arms in each class.
    m
        The number of arms selected.
    steps
        The number of steps into which errors from 0 to epsilon are divided. Each step is bounded from above,
        so the result is a bound for any number of steps, and tighter for more.
    """
    order = np.argsort(information, kind="stable")
    information, counts = information[order], counts[order]
    before = np.cumsum(counts) - counts
    n_best = np.clip(m - before, 0.0, counts)  # which are best is unknown: take those that err most
    n_others = np.clip(counts.sum() - m - before, 0.0, counts)  # and likewise for the others
    errors = np.linspace(0.0, 1.0, steps + 1)  # in units of epsilon
    best = _tail(errors, information, n_best)
    others = _tail(errors[::-1], information, n_others)
    return math.fsum([best[-1], *((best[:-1] - best[1:]) * others[1:])])


def least_level(
    shape: FloatArray,
    counts: FloatArray,
    m: int,
    delta: float,
    *,
    steps: int = STEPS,
    tolerance: float = 1e-9,
) -> float:
    """Return roughly the least level at which information ``level * shape`` fails with probability delta.

    No entry of `shape` is below 1.
    """
    from scipy.optimize import brentq  # noqa: PLC0415  (scipy is slow to import)

    def excess(level: float) -> float:
        return math.log(failure_probability(level * shape, counts, m, steps=steps) / delta)

    enough = 4 * math.log(counts.sum() / delta) + 1  # at which even naive elimination is certified
    return float(brentq(excess, 0.0, enough, xtol=tolerance))


def certified_level(shape: FloatArray, counts: FloatArray, m: int, delta: float) -> float:
    """Return the least level, up to rounding, at which the failure probability is at most delta."""
    level = least_level(shape, counts, m, delta)
    while failure_probability(level * shape, counts, m) > delta:
        level *= 1 + 1e-9
    return level


def _tail(errors: FloatArray, information: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the probability that some of independent arms errs by at least this much to one side."""
    is_any = counts > 0
    each = np.exp(-np.multiply.outer(errors**2, information[is_any]))
    with np.errstate(divide="ignore"):
        none = np.log1p(-each) @ counts[is_any]
    tail: FloatArray = -np.expm1(none)
    return tail
