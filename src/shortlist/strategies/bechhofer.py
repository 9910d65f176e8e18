"""Bechhofer's single-sample procedure for any m, the classic of ranking and selection.

Every sample mean gets the same variance, epsilon^2 / h^2, and the m largest are selected. The constant h
makes the selection correct with probability 1 - delta in the least favourable case: all m best means are
equal and all others lie exactly epsilon below them. The guarantee is weaker than that of other strategies
(there is none if a mean lies within epsilon of the cut) and needs Gaussian rewards; in return the procedure
needs few pulls.

Pull counts are rounded up, so with unequal variances some sample means have a smaller variance than that.
Less noise in a single arm can make a wrong selection more likely: with a large delta, a best arm with little
noise is nearly always overtaken by some noisy one. So a guarantee is given only where `is_proved` holds
(docs/theory.md, section 34).
"""

import math
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.certificates.assumptions import GAUSSIAN
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.one_batch import strategy

_PEAK = 0.8399  # where t phi(t) / Phi(t) is largest


def pulls(problem: Problem) -> IntArray:
    """Return how often to pull each arm."""
    root = constant(problem.n, problem.m, problem.delta) / problem.epsilon

    def amounts(block: slice) -> FloatArray:
        return problem.variances[block] * root**2  # [B54] N_i

    return whole_pulls(problem.variances.shape, amounts, "Bechhofer's procedure")


@lru_cache(maxsize=256)
def constant(n: int, m: int, delta: float) -> float:
    """Return h: m of n standard normals, raised by h, are the m largest with probability 1 - delta."""
    from scipy.optimize import brentq  # noqa: PLC0415  (scipy is slow to import)

    def excess(h: float) -> float:
        return delta - failure_in_the_least_favourable_case(h, n, m)

    most = 2 * math.sqrt(-2 * math.log(delta / n)) + 2  # a union bound over both sides suffices here
    if excess(0.0) >= 0:  # a random guess is correct often enough
        return 0.0
    return float(brentq(excess, 0.0, most, xtol=1e-10))


def failure_in_the_least_favourable_case(h: float, n: int, m: int) -> float:
    """Return the probability that the m raised means are not the m largest.

    The smallest raised mean has the density m (1 - Phi)^(m - 1) phi and must exceed all the others.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (scipy is slow to import)

    z = np.linspace(-12.0 - h, 12.0, 6001)  # the trapezoidal rule is exact to rounding for such integrands
    log_density = math.log(m) + (m - 1) * log_ndtr(-z) - z**2 / 2 - math.log(2 * math.pi) / 2
    log_right = (n - m) * log_ndtr(z + h)
    return float((np.exp(log_density) * -np.expm1(log_right)).sum() * (z[1] - z[0]))  # [B54] P(CS), any m


def is_proved(problem: Problem) -> bool:
    """Return whether a selection is proved correct with probability 1 - delta for these variances.

    It is if less noise in any single arm makes a failure less likely, because equal noise is then the worst
    case. This is shown arm by arm, for one side of the cut first and then for the other, in either order.
    """
    n, m = problem.n, problem.m
    if m == n or problem.variances.min() == problem.variances.max():
        return True
    h = constant(n, m, problem.delta)
    least = float((problem.variances * (h / problem.epsilon) ** 2 / pulls(problem)).min())
    return any(noise_hurts_before(h, k, least) and noise_hurts_after(h, n - k) for k in (m, n - m))


def noise_hurts_before(h: float, k: int, least: float) -> bool:
    """Return whether noise beyond the cut does harm, whatever the noise of the k arms on this side of it.

    Parameters
    ----------
    h
        The lead, in units of the largest standard deviation of a sample mean.
    k
        The number of arms on this side.
    least
        The smallest variance of a sample mean divided by the largest; the others are arbitrary.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (scipy is slow to import)

    rho = least / (1 + least)
    t = max(_PEAK, h * rho / math.sqrt(1 + rho))
    reverse_hazard = math.exp(-(t**2) / 2 - math.log(2 * math.pi) / 2 - float(log_ndtr(t)))
    return 2 * (k - 1) * t * reverse_hazard <= h**2  # docs/theory.md, section 34, (A)


def noise_hurts_after(h: float, k: int) -> bool:
    """Return whether noise on this side of the cut does harm if the k arms beyond it have the largest noise.

    It does if h lies beyond the mode of the largest of k + 1 errors, the last one added to the others.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (scipy is slow to import)

    x = np.linspace(-12.0, 12.0 + h, 6001)
    weights = np.exp(-((h - x) ** 2) / 2 - x**2 / 2 + (k - 1) * log_ndtr(x))
    return k == 1 or bool(((h - x) * weights).sum() >= 0)  # docs/theory.md, section 34, (B)


def _unfit(problem: Problem) -> str:
    if is_proved(problem):
        return ""
    return (
        f"its proof does not cover delta = {problem.delta:g} with variances as unequal as these. Ask with a "
        f"smaller delta, or use race"
    )


def _guarantee(problem: Problem) -> Guarantee | None:
    if problem.noise != "gaussian" or not is_proved(problem):
        return None
    event = "some arm that is not among the m best shows a larger mean than one that is"
    source = "[B54]; docs/theory.md, section 34"
    ledger = Ledger((Share(event, problem.delta),))
    return Guarantee.of(problem, source, ledger, Scope.CORRECT, assumptions=GAUSSIAN)


BECHHOFER = strategy(
    "bechhofer",
    "Bechhofer's single sample, with few pulls: for Gaussian rewards and an indifference zone.",
    "[B54]",
    pulls=pulls,
    guarantee=_guarantee,
    unfit=_unfit,
)
