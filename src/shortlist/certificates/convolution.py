"""The convolution certificate, which bounds the probability that one batch of pulls selects a bad arm.

Take the m arms with the largest sample means. If a bad arm is among them, some best arm is not and has no
larger sample mean. So the downward error of the best arm and the upward error of the bad arm add up to more
than epsilon. The largest error among the best arms and the largest among the others are independent, so the
probability of this is a convolution of two tails. `docs/theory.md` has the proof.

There are two versions: with tails that hold for all sub-Gaussian rewards, and with those of Gaussian rewards.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from shortlist.arrays import FloatArray

STEPS = 2048
Failure: TypeAlias = Callable[[FloatArray, FloatArray, int, int], float]
"""Computes a failure probability from the information and counts of classes of arms, m and steps."""


def failure_probability(information: FloatArray, counts: FloatArray, m: int, steps: int = STEPS) -> float:
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
    information, n_best, n_others = _least_informed(information, counts, m)
    errors = np.linspace(0.0, 1.0, steps + 1)  # in units of epsilon
    best = _tail(errors, information, n_best)
    others = _tail(errors[::-1], information, n_others)
    return math.fsum([best[-1], *((best[:-1] - best[1:]) * others[1:])])


def gaussian_failure_probability(
    information: FloatArray, counts: FloatArray, m: int, steps: int = STEPS
) -> float:
    """Return the same bound if rewards are Gaussian: errors have exactly known tails.

    Only errors towards the cut count. The others count as 0, because then more information never does harm:
    a best arm with little noise may else be overtaken more easily than one with much.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (scipy is slow to import)

    errors = np.linspace(0.0, 1.0, steps + 1)
    if m == 1 or counts.sum() - m == 1:  # one arm is alone on its side of the cut; try every class for it
        n_ahead = np.eye(len(counts))
        n_behind = counts[:, None] - n_ahead
    else:
        information, *sides = _least_informed(information, counts, m)
        n_ahead, n_behind = (side[:, None] for side in sides)
    log_none = log_ndtr(np.multiply.outer(errors, np.sqrt(2 * information)))  # per arm: no such error
    ahead, behind = -np.expm1(log_none @ n_ahead), -np.expm1(log_none @ n_behind)[::-1]
    ahead[0] = 1.0  # the largest error is never below 0
    return float((ahead[-1] + ((ahead[:-1] - ahead[1:]) * behind[1:]).sum(axis=0)).max())


def _least_informed(
    information: FloatArray, counts: FloatArray, m: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the information of classes, the least first, and how many of each are best and not best.

    Which arms are best is unknown: on each side of the cut, take those that err most.
    """
    order = np.argsort(information, kind="stable")
    information, counts = information[order], counts[order]
    before = np.cumsum(counts) - counts
    n_best = np.clip(m - before, 0.0, counts)
    return information, n_best, np.clip(counts.sum() - m - before, 0.0, counts)


def least_level(
    shape: FloatArray,
    counts: FloatArray,
    m: int,
    delta: float,
    *,
    steps: int = STEPS,
    tolerance: float = 1e-9,
    failure: Failure = failure_probability,
) -> float:
    """Return roughly the least level at which information ``level * shape`` fails with probability delta.

    No entry of `shape` is below 1.
    """
    from scipy.optimize import brentq  # noqa: PLC0415  (scipy is slow to import)

    def excess(level: float) -> float:
        return math.log(failure(level * shape, counts, m, steps) / delta)

    if excess(0.0) <= 0:  # a random guess is right often enough
        return 0.0
    enough = 4 * math.log(counts.sum() / delta) + 1  # at which even naive elimination is certified
    return float(brentq(excess, 0.0, enough, xtol=tolerance))


def certified_level(
    shape: FloatArray, counts: FloatArray, m: int, delta: float, failure: Failure = failure_probability
) -> float:
    """Return the least level, up to rounding, at which the failure probability is at most delta."""
    level = least_level(shape, counts, m, delta, failure=failure)
    while failure(level * shape, counts, m, STEPS) > delta:
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
