"""Robbins' mixture intervals for sub-Gaussian rewards, which hold at all times simultaneously.

For one arm, S is the sum of t errors. For every x, `exp(x S - x^2 s t / 2)` is a supermartingale, and so is
a mixture over x > 0. With a half-normal weight the mixture has a closed form, and it ever exceeds 1/alpha
with probability at most alpha. The scale of the weight, `_PRIOR`, affects the widths but not the proof
(docs/theory.md, section 23).
"""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.certificates.bisection import least_enough
from shortlist.problem import Problem

_PRIOR = 1.0  # in units of variance / epsilon^2; intervals are tightest at about ten times as many pulls


def prior_pulls(variances: FloatArray, epsilon: float) -> FloatArray:
    """Return the weight of the prior, as a number of pulls of each arm."""
    return _PRIOR * variances / epsilon**2


def bounds(
    problem: Problem, means: FloatArray, counts: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on the true means of some arms.

    With probability 1 - delta, the upper bound of one of the m best arms is never too low and the lower bound
    of another arm is never too high. So upper bounds have to hold for m arms and lower bounds for n - m.
    """
    n, m, epsilon, delta = problem.n, problem.m, problem.epsilon, problem.delta
    below = half_widths(counts, variances, epsilon, delta / (2 * (n - m)))
    above = half_widths(counts, variances, epsilon, delta / (2 * m))
    return means - below, means + above


def half_widths(counts: FloatArray, variances: FloatArray, epsilon: float, alpha: float) -> FloatArray:
    """Return half-widths that one-sided errors of sample means ever exceed with probability at most alpha.

    They decrease with the number of pulls. `epsilon` determines where they are tightest.
    """
    prior = prior_pulls(variances, epsilon)
    logs = np.log((np.sqrt(1 + counts / prior) / alpha + 1) / 2)  # [HRMS21] one-sided normal mixture
    widths: FloatArray = np.sqrt(2 * variances * (counts + prior) * logs) / counts  # [R70] normal mixture
    return widths


def enough(problem: Problem) -> float:
    """Return the pulls, per unit of variance / epsilon^2, after which the bounds are epsilon apart."""
    nothing, unit = np.zeros(1), np.array([problem.epsilon**2])

    def is_enough(amount: float) -> bool:
        lower, upper = bounds(problem, nothing, np.array([amount]), unit)
        return bool(upper[0] - lower[0] <= problem.epsilon)

    return least_enough(is_enough, 0.0, 1.0)


def guarantee(problem: Problem, source: str) -> Guarantee:
    """Return the promise of a strategy that stops by these intervals."""
    share = Share("some arm's mean leaves its interval, towards the cut, at some time", problem.delta)
    return Guarantee.of(problem, f"{source}; docs/theory.md, section 24", Ledger((share,)))
