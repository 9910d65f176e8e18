"""The numbers of the paper's illustrative example, which improves a factor k to ln k.

Zhou and Tian (AISTATS 2022, Section 5.2) select m = 2^k of n = 2^(k^2) arms, of which a few are noisy and the
others have very little noise. Only the numbers of arms with equal variance are needed, so 2^144 arms take no
longer than 16.
"""

import bisect
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shortlist.bounds.classes import Classes
from shortlist.instances import EqualArms, illustrative_classes
from shortlist.strategies import medelim

DELTA = 0.05
KS = range(2, 13)


class Row(NamedTuple):
    """The numbers for one k, in pulls times epsilon^2, before pulls are rounded up."""

    k: int
    terms: tuple[float, float, float]  # of Theorem 4.1; their sum is the order of V-MedElim
    orders: tuple[float, float, float]  # of V-MedElim, WNElim and median elimination
    factors: tuple[float, float, float]  # the same per unit of the sum of variances, without ln(1/delta)
    worst: tuple[float, float, float]  # a lower bound, and what WNElim and V-MedElim certify


def row(k: int) -> Row:
    """Return the numbers for one k."""
    *noisy, quiet = illustrative_classes(k)
    arms, kept = [*noisy, quiet], [*noisy, quiet._replace(n_arms=2 * 2**k)]  # all arms; G^r
    total, ln_m, confidence = variance(arms), k * math.log(2), math.log(1 / DELTA)
    terms = (total * confidence, variance([quiet]) * ln_m, variance(noisy) * entropy(kept))
    factors = ((terms[1] + terms[2]) / total, entropy(arms), ln_m)
    ours, naive, median = (total * (confidence + factor) for factor in factors)
    final = 8 * 4 * variance(kept) * (math.log(2 / DELTA) + entropy(kept))  # WNElim: epsilon/2 and delta/2
    worst = (lower(k) if k in KS else math.nan, 8 * naive, screening(quiet, k) + final)
    return Row(k, terms, (ours, naive, median), factors, worst)


def variance(classes: Sequence[EqualArms]) -> float:
    """Return the sum of the variances of all arms; dividing last, as neither part need fit a float."""
    return sum(arms.n_arms * arms.variance.numerator / arms.variance.denominator for arms in classes)


def entropy(classes: Sequence[EqualArms]) -> float:
    """Return the entropy of variances s with the sum S, which is ln(S) - sum(s ln(s)) / S."""
    logs = [math.log(arms.variance.numerator) - math.log(arms.variance.denominator) for arms in classes]
    weighted = sum(variance([arms]) * log for arms, log in zip(classes, logs, strict=True))
    return math.log(variance(classes)) - weighted / variance(classes)


def screening(quiet: EqualArms, k: int) -> float:
    """Return the cost of screening in V-MedElim: only the quiet arms are too many for the final batch."""
    if k in KS:
        levels = medelim.schedule(quiet.n_arms, 2**k, 1 / 2, DELTA / 2)
        return float(quiet.variance) * sum(level.n_arms * level.pulls_per_variance for level in levels)
    # 155 levels or more: summed as infinite. Level j costs 512 (8/9)^(j-1) (ln(8m/delta) + j ln 2) per unit.
    return 512 * variance([quiet]) * (9 * (math.log(8 / DELTA) + k * math.log(2)) + 81 * math.log(2))


def lower(k: int) -> float:
    """Return the larger of two lower bounds; the other known bounds are smaller here."""
    from shortlist.bounds.null import null_instance, shifted_null_instance  # noqa: PLC0415  (scipy is slow)

    rising = illustrative_classes(k)[::-1]
    variances, counts = [float(arms.variance) for arms in rising], [float(arms.n_arms) for arms in rising]
    rivals = Classes.listed(np.array(variances), np.array(counts)).noisiest(2.0 ** (k * k) - 2**k + 1)
    return max(null_instance(rivals, DELTA), shifted_null_instance(rivals, DELTA))


def meeting() -> int:
    """Return the smallest k at which V-MedElim's worst case is smaller than WNElim's."""
    ks = range(KS.stop, 2000)
    return ks[bisect.bisect_left(ks, True, key=lambda k: row(k).worst[2] < row(k).worst[1])]
