"""Intervals that hold at all times at once: Robbins' mixture, side by side, for sub-Gaussian rewards.

For one arm, `exp(x S - x^2 s t / 2)` is a supermartingale, S being the sum of t errors, for every x. So is a
mixture over x > 0; with a half-normal weight it can be written down, and it exceeds 1/alpha at any time with
probability at most alpha. Where the weight sits, `_PRIOR`, affects the widths but not the proof
(docs/theory.md, section 23).
"""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.certificates.search import least_enough
from shortlist.problem import Problem

_PRIOR = 1.0  # per unit of variance / epsilon^2; intervals are tightest at some ten times so many pulls


def prior_pulls(variances: FloatArray, epsilon: float) -> FloatArray:
    """Return how many pulls of each arm the weight is worth."""
    return _PRIOR * variances / epsilon**2


def bounds(
    problem: Problem, means: FloatArray, counts: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on the true means of some arms.

    With probability 1 - delta, never is the upper bound of one of the m best arms too low, nor the lower
    bound of another too high. Upper bounds need to serve m arms and lower bounds n - m.
    """
    n, m, epsilon, delta = problem.n, problem.m, problem.epsilon, problem.delta
    below = half_widths(counts, variances, epsilon, delta / (2 * (n - m)))
    above = half_widths(counts, variances, epsilon, delta / (2 * m))
    return means - below, means + above


def half_widths(counts: FloatArray, variances: FloatArray, epsilon: float, alpha: float) -> FloatArray:
    """Return by how much a sample mean errs to a given side at any time with probability alpha at most.

    They fall as pulls grow. `epsilon` says where they are to be tight.
    """
    prior = prior_pulls(variances, epsilon)
    logs = np.log((np.sqrt(1 + counts / prior) / alpha + 1) / 2)  # [HRMS21] one-sided normal mixture
    widths: FloatArray = np.sqrt(2 * variances * (counts + prior) * logs) / counts  # [R70] normal mixture
    return widths


def enough(problem: Problem) -> float:
    """Return after how many pulls, per unit of variance / epsilon^2, bounds are only epsilon apart."""
    nothing, unit = np.zeros(1), np.array([problem.epsilon**2])

    def is_enough(amount: float) -> bool:
        lower, upper = bounds(problem, nothing, np.array([amount]), unit)
        return bool(upper[0] - lower[0] <= problem.epsilon)

    return least_enough(is_enough, 0.0, 1.0)


def guarantee(problem: Problem, source: str) -> Guarantee:
    """Return the promise of a strategy that stops by these intervals."""
    share = Share("some arm's mean leaves its interval, towards the cut, at some time", problem.delta)
    return Guarantee.of(problem, f"{source}; docs/theory.md, section 24", Ledger((share,)))
