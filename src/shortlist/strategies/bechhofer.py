"""Bechhofer's single-sample procedure for any m: the classic of ranking and selection.

Every sample mean gets the same variance, epsilon^2 / h^2, and the m largest are selected. The constant h
makes the selection right with probability 1 - delta if all m best means equal one number and all others lie
exactly epsilon below it, the least favourable case. It promises less than the other strategies, nothing if
a mean lies within epsilon of the cut, and it needs Gaussian rewards; for that it takes few pulls.
"""

import math
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.one_batch import strategy


def pulls(problem: Problem) -> IntArray:
    """Return how often to pull each arm."""
    root = constant(problem.n, problem.m, problem.delta) / problem.epsilon

    def amounts(block: slice) -> FloatArray:
        return problem.variances[block] * root**2  # [B54] N_i

    return whole_pulls(problem.variances.shape, amounts, "Bechhofer's procedure")


@lru_cache(maxsize=256)
def constant(n: int, m: int, delta: float) -> float:
    """Return h: standard normal means, m of them raised by h, come out on top with probability 1 - delta."""
    from scipy.optimize import brentq  # noqa: PLC0415  (scipy is slow to import)

    def excess(h: float) -> float:
        return delta - failure_in_the_least_favourable_case(h, n, m)

    most = 2 * math.sqrt(-2 * math.log(delta / n)) + 2  # there a union bound on both sides has been enough
    if excess(0.0) >= 0:  # a guess is right often enough
        return 0.0
    return float(brentq(excess, 0.0, most, xtol=1e-10))


def failure_in_the_least_favourable_case(h: float, n: int, m: int) -> float:
    """Return how probably the m raised means are not the m largest.

    The least of the raised ones has the density m (1 - Phi)^(m - 1) phi, and must exceed the others.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (scipy is slow to import)

    z = np.linspace(-12.0 - h, 12.0, 6001)  # the trapezoidal rule is exact to rounding for such integrands
    log_density = math.log(m) + (m - 1) * log_ndtr(-z) - z**2 / 2 - math.log(2 * math.pi) / 2
    log_right = (n - m) * log_ndtr(z + h)
    return float((np.exp(log_density) * -np.expm1(log_right)).sum() * (z[1] - z[0]))  # [B54] P(CS), any m


def _guarantee(problem: Problem) -> Guarantee | None:
    if problem.noise != "gaussian":
        return None
    event = "some arm that is not among the m best shows a larger mean than one that is"
    return Guarantee.of_gaussian(problem, "[B54]", Ledger((Share(event, problem.delta),)), Scope.CORRECT)


BECHHOFER = strategy(
    "bechhofer",
    "Bechhofer's single sample: Gaussian rewards and an indifference zone, few pulls.",
    "[B54]",
    pulls=pulls,
    guarantee=_guarantee,
)
