"""Bounds from the null instance, in which every answer is correct.

All arms but a few have the same mean. If one of them moves by epsilon, only one answer is correct. To give
it, an algorithm must have pulled that arm in the null instance too, since only the rewards of that arm
differ. `docs/theory.md` has the proofs. Every function returns a number V such that every valid algorithm
needs at least V / epsilon^2 expected pulls on some instance.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from shortlist.arrays import FloatArray
from shortlist.bounds.classes import Classes

_MOST_SHIFTED = 400
_LADDER = [*range(2, 20), *range(20, 100, 5), *range(100, _MOST_SHIFTED, 20)]
"""Numbers of rivals to try if the others move too; beyond a few hundred there is no benefit."""


def null_instance(rivals: Classes, delta: float) -> float:
    """Return the minimum of 2 sum(s kl(p, 1 - delta)) over probabilities p with a sum of at most 1.

    Here s are the variances of the candidate arms. The multiplier is computed from merged classes, but any
    multiplier gives a bound, and the value is computed for the actual arms.
    """
    if rivals.n * (1 - delta) <= 1:
        return 0.0
    multiplier = _multiplier(rivals.few(), delta)
    return max(0.0, 2 * _at_multiplier(rivals, delta, multiplier))


def _multiplier(rivals: Classes, delta: float) -> float:
    """Return the multiplier at which the probabilities of the answers sum to 1, approximately."""
    noisiest = float(rivals.variances[-1])
    rates = noisiest / rivals.variances
    logit = math.log1p(-delta) - math.log(delta)

    def excess(log_scaled: float) -> float:
        return float((rivals.counts * expit(logit - math.exp(log_scaled) * rates)).sum()) - 1

    little = math.log(1e-9) - math.log(float(rates[0]))
    enough = math.log(logit + math.log(rivals.n - 1) + 1e-6)  # at which no probability exceeds 1 / n
    if excess(little) <= 0 or excess(enough) >= 0:
        return 0.0  # the amount needed is lost in rounding
    return noisiest * math.exp(float(brentq(excess, little, enough, xtol=1e-14, maxiter=1000, disp=False)))


def _at_multiplier(rivals: Classes, delta: float, multiplier: float) -> float:
    """Return the minimum of the Lagrangian: by weak duality at most the minimum sought."""
    scaled = multiplier / rivals.variances
    drops = (1 - delta) * np.expm1(-scaled)
    near = np.log1p(np.maximum(drops, -0.5))  # either form of ln(delta + (1 - delta) e^-scaled)
    far = np.logaddexp(math.log(delta), math.log1p(-delta) - scaled)  # is exact where the other cancels
    terms = rivals.sums * np.where(drops > -0.5, near, far)
    rounding = 2e-15 * (float(np.abs(terms).sum()) + multiplier)
    return -float(terms.sum()) - multiplier - rounding


def shifted_null_instance(rivals: Classes, delta: float) -> float:
    """Return the bound of the null instance if the other rivals also move, in the opposite direction.

    A smaller move of each arm then makes an answer wrong, which matters if there are few arms: with N arms of
    equal variance the bound is N / (N - 1) times that of the null instance.
    """
    if rivals.n < 2:
        return 0.0
    some = rivals.noisiest(_MOST_SHIFTED)
    sizes = [float(size) for size in _LADDER if size < some.n] + [some.n]
    return max(_of_the_noisiest(some, size, delta) for size in sizes)


def _of_the_noisiest(rivals: Classes, n_arms: float, delta: float) -> float:
    some = rivals.noisiest(n_arms)
    if n_arms == 2:
        root_sum = float((some.counts * np.sqrt(some.variances)).sum())
        each = root_sum**2 / 2
        return null_instance(Classes.listed(np.array([each]), np.array([2.0])), delta)
    return max(
        (
            null_instance(Classes.listed(effective, some.counts), delta)
            for halvings in range(6)
            if (effective := _effective(some, n_arms, 0.5**halvings / n_arms)) is not None
        ),
        default=0.0,
    )


def _effective(rivals: Classes, n_arms: float, shift: float) -> FloatArray | None:
    """Return the variances that replace the true ones if the others move by this fraction of epsilon."""
    lost = shift**2 * rivals.total / (1 - 2 * shift + n_arms * shift**2)
    if rivals.variances[0] <= lost:
        return None
    effective: FloatArray = (rivals.variances - lost) / (1 - 2 * shift)
    return effective


def whole_pulls(n_arms: float, delta: float) -> float:
    """Return the pulls that are needed because a pull cannot be divided, whatever epsilon is."""
    return max(0.0, (1 - delta) * n_arms - min(1.0, 2 * delta))
