"""Median elimination that halves the sum of the variances instead of the number of arms.

Follows [ZT22] Appendix C, Algorithm 3. The proof of the confidence split published there divides a negative
numerator as if it were positive; at m = 1 the bound that its argument does lead to exceeds delta. In
general it proves a failure probability of at most (m'/m) delta_l (1 + 1/r) per level, so `adapted-medelim`
uses delta_l = delta / ((1 + 1/r) 2^l). The published split, delta_l = r delta / 2^l, is kept under its own
name and has no guarantee. `docs/theory.md` has the proofs and says for which m the published split holds.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem
from shortlist.strategies.elimination import Level, Schedule, strategy


def sizes(variances: FloatArray, m: int) -> tuple[int, ...]:
    """Return how many arms each level starts with, from all of them down to m.

    Level l starts with as many arms, noisiest first, as fit into the fraction 2^-(l-1) of the total variance.
    """
    _, exponent = np.frexp(variances.max())
    falling = np.sort(np.ldexp(variances, -exponent))[::-1]  # scaling by a power of two is exact
    sums = np.cumsum(falling)
    found = [len(variances)]  # [ZT22] App. C, h_1
    while found[-1] > m:  # [ZT22] App. C, l* is the first level with h_l = m
        fraction = 2.0 ** -len(found)
        found.append(max(_n_fitting(falling, sums, fraction), m))  # [ZT22] App. C, h_l
    return tuple(found)


def _n_fitting(falling: FloatArray, sums: FloatArray, fraction: float) -> int:
    """Return the largest j whose first j values sum to at most this fraction of the total, exactly."""
    target = sums[-1] * fraction
    j = int(np.searchsorted(sums, target, side="right"))
    doubt = len(sums) * np.finfo(np.float64).eps * sums[-1]
    while j < len(sums) and sums[j] - target <= doubt and _fits(falling, j + 1, fraction):
        j += 1
    while j > 0 and target - sums[j - 1] <= doubt and not _fits(falling, j, fraction):
        j -= 1
    return j


def _fits(falling: FloatArray, j: int, fraction: float) -> bool:
    # fsum rounds only once, so its sign is exact; fractions are powers of two.
    return math.fsum(np.concatenate([falling[:j], -fraction * falling])) <= 0.0


def smallest_ratio(found: tuple[int, ...]) -> float:
    """Return r, the strongest reduction in the number of arms at any level."""
    return min(after / before for before, after in pairwise(found))  # [ZT22] App. C, r


def _corrected(delta: float, ratio: float) -> float:
    return delta / (1 + 1 / ratio)


def _published(delta: float, ratio: float) -> float:
    return ratio * delta  # [ZT22] Alg. 3, line 1


def _schedule(split: Callable[[float, float], float]) -> Callable[[Problem], Schedule]:
    def schedule(problem: Problem) -> Schedule:
        found = sizes(problem.variances, problem.m)
        levels = []
        for number, (n_arms, keep) in enumerate(pairwise(found), start=1):
            epsilon_l = (problem.epsilon / 3) * (3 / 4) ** number  # [ZT22] Alg. 3, line 1
            delta_l = split(problem.delta, smallest_ratio(found)) / 2**number  # [ZT22] Alg. 3, line 1
            pulls = 2 / (epsilon_l / 2) ** 2 * math.log(problem.m / delta_l)  # [ZT22] Alg. 3, line 3
            levels.append(Level(n_arms, keep, epsilon_l, delta_l, pulls))  # [ZT22] Alg. 3, line 4
        return tuple(levels)

    return schedule


def _guarantee(problem: Problem) -> Guarantee:
    levels = _schedule(_corrected)(problem)
    shares = (
        Share(
            f"level {number} loses more than {level.epsilon:.3g} at the m-th best", problem.delta / 2**number
        )
        for number, level in enumerate(levels, start=1)
    )
    return Guarantee.of(
        problem, "[ZT22] Lemma C.1, corrected; docs/theory.md, section 5", Ledger(tuple(shares))
    )


def _no_guarantee(_: Problem) -> None:
    return None


ADAPTED_MEDELIM = strategy(
    "adapted-medelim",
    "Median elimination by sums of variances, with the corrected confidence split.",
    "[ZT22] Algorithm 3",
    schedule=_schedule(_corrected),
    guarantee=_guarantee,
)
PUBLISHED = strategy(
    "adapted-medelim-published",
    "Adapted-medelim with the confidence split as printed. Its proof has a gap, so there is no guarantee.",
    "[ZT22] Algorithm 3",
    schedule=_schedule(_published),
    guarantee=_no_guarantee,
)
