"""The paper's lower bound: values of its dual program at points with a closed form.

The program of [ZT22] Lemma 6.3 chooses weights eta_F for the sets F of m - 1 arms. Any weights that sum to 1
give a lower bound. `docs/theory.md` proves the corrected form used here: the program may be applied to all
arms but the least noisy one, without a further factor; applied to all n arms, as in the paper, it needs the
factor (n - m) / (n - m + 1), which the paper omits.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from shortlist.arrays import FloatArray
from shortlist.bounds.classes import Classes
from shortlist.bounds.two_point import margin
from shortlist.problem import Problem
from shortlist.variance_groups import heterogeneity

_MOST_SUBSETS = 48
_ALLOWANCE = 1e-12  # for rounding, relative to the sum of all magnitudes


def pulls_per_value(delta: float) -> float:
    """Return the factor that converts a value of the dual program to pulls, times epsilon^2."""
    return (1 - delta) / 2  # [ZT22] Lemma 6.3, (1 - delta) / (2 eps^2)


def uniform_value(inside: Classes, total: float, m: int, delta: float) -> float:
    """Return the value of equal weights on all sets of m - 1 arms within some set of arms.

    `total` is the sum of all variances. The expected entropy of m arms is bounded from below by Jensen's
    inequality; the paper does this for 2m arms by the grouping property.
    """
    kept = (m - 1) / inside.n
    entropy = max(0.0, inside.entropy - math.log(inside.n / m))  # [ZT22] Lemma 6.5, Ent(L) - ln(2)
    return margin(delta) * (total - kept * inside.total) + (1 - kept) * inside.total * entropy


def product_value(inside: Classes, total: float, m: int, delta: float) -> float:
    """Return the value of weights that are products of variances, on sets within some set of arms.

    All m arms then contribute equally to the entropy, which is ln(m), or nearly so if classes of almost equal
    arms have been merged.
    """
    left = float((inside.sums * left_out(inside, m - 1)).sum())
    loss = 2 * math.log1p(inside.ratio) - math.log(4 * inside.ratio)
    entropy = max(0.0, math.log(m) - loss)  # [ZT22] Sec. 6.2, Ent = ln(m)
    return margin(delta) * (total - inside.total + left) + entropy * left  # [ZT22] Lemma 6.4


def best_product_value(arms: Classes, m: int, delta: float) -> float:
    """Return the largest product value over sets of arms that exclude none or some of the noisiest."""
    few, total, best = arms.few(), arms.total, 0.0
    for size in np.unique(np.linspace(1, len(few.counts), _MOST_SUBSETS).astype(int))[::-1]:
        inside = few.first(int(size))
        could_be = margin(delta) * total + math.log(m) * inside.total
        if inside.n >= m and could_be > best:
            best = max(best, product_value(inside, total, m, delta))
    return best


def left_out(arms: Classes, size: int) -> FloatArray:
    """Return, per class, the probability that an arm is not in a random set of `size` arms.

    A set is drawn with probability proportional to the product of its arms' variances. This is the
    distribution of independent coins, given the number of heads; their bias is chosen so that the expected
    number is `size`. The probabilities of these counts come from a Fourier transform. It has rounding errors
    only, and an allowance for them is subtracted, so the probabilities returned are never too large.
    """
    if size == 0:
        return np.ones(len(arms.counts))
    if size >= arms.n:
        return np.zeros(len(arms.counts))
    tilt = _tilt(arms, size)
    heads, tails = expit(tilt + np.log(arms.variances)), expit(-tilt - np.log(arms.variances))
    variance = float((arms.counts * heads * tails).sum())
    length = 2 * math.ceil(7 + math.sqrt(49 + 21 * variance)) + 1  # others have probability e^-42
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    steps = np.exp(1j * angles) - 1  # the transform of one coin is 1 + heads * steps
    together = arms.counts @ _log1p(heads[:, None], tails[:, None], angles)
    weights = np.exp(together - 1j * size * angles)
    weights[1:] *= 2  # the transform is real: the other half mirrors this one
    without = 1 / (1 + heads[:, None] * steps)
    all_coins = float(weights.real.sum()) + _ALLOWANCE * float(np.abs(weights).sum())
    all_but_one = (without @ weights).real - _ALLOWANCE * (np.abs(without) @ np.abs(weights))
    found: FloatArray = np.clip(tails * all_but_one / all_coins, 0.0, 1.0)
    return found


def _tilt(arms: Classes, size: int) -> float:
    """Return the logarithm of the factor for all variances with which, as odds, they expect `size` heads."""
    logs = np.log(arms.variances)

    def excess(tilt: float) -> float:
        return float((arms.counts * expit(tilt + logs)).sum()) - size

    odds = math.log(size) - math.log(arms.n - size)
    return float(brentq(excess, odds - logs[-1] - 1e-6, odds - logs[0] + 1e-6, xtol=1e-12))


def _log1p(heads: FloatArray, tails: FloatArray, angles: FloatArray) -> np.ndarray:
    """Return ln(1 + heads (e^(i angle) - 1)), accurate also if heads are very rare."""
    half = np.sin(angles / 2) ** 2
    real = np.log1p(-4 * heads * tails * half) / 2
    imaginary = np.arctan2(heads * np.sin(angles), 1 - 2 * heads * half)
    return np.asarray(real + 1j * imaginary)


def three_values(problem: Problem) -> tuple[float, float, float]:
    """Return the pulls that follow from the weightings of v1, v2 and v3 of Section 6.2.

    Each is a lower bound. For equal weights the entropy is replaced by a closed form that is at most as
    large, so that the value is at most the paper's, apart from the factor.

    Source
    ------
    [ZT22] Section 6.2, with the factor (n - m) / (n - m + 1) that its Lemma 6.3 omits.
    """
    n, m, delta = problem.n, problem.m, problem.delta
    if m == n or delta >= 0.5:
        return 0.0, 0.0, 0.0
    shape, arms = heterogeneity(problem), Classes.of(problem)
    total = arms.total
    v1 = uniform_value(arms, total, m, delta)  # [ZT22] Sec. 6.2, v_1
    v2 = 0.0
    if len(shape.more):
        v2 = product_value(
            Classes.of_arms(problem.variances[shape.more]).few(), total, m, delta
        )  # [ZT22] Sec. 6.2, v_2
    v3 = uniform_value(
        Classes.of_arms(problem.variances[shape.largest]), total, m, delta
    )  # [ZT22] Sec. 6.2, v_3
    corrected = (n - m) / (n - m + 1)  # omitted in [ZT22] Lemma 6.3
    unit = corrected * pulls_per_value(delta) / problem.epsilon / problem.epsilon
    return max(0.0, unit * v1), max(0.0, unit * v2), max(0.0, unit * v3)
