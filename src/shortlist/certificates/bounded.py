"""Evidence about the mean of rewards between 0 and 1, from their number and their sum.

For a reward x between 0 and 1 and any tilt h, ``exp(h x) <= 1 + x (exp(h) - 1)`` [H63]. So if the mean is c,
every reward multiplies ``exp(h s - t ln(1 + c (exp(h) - 1)))``, where s is the sum of t rewards, by a factor
of expectation at most 1: it is a supermartingale that starts at 1. Positive tilts give evidence that the mean
lies above c, negative ones that it lies below. A mixture over tilts with fixed weights is evidence as well.
For rewards of 0 or 1 the factor has expectation exactly 1. The evidence is never less than sub-Gaussian
evidence with the worst variance, 1/4; if the variance is smaller, large tilts make use of that
(docs/theory.md, section 35).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.cut import Prices, highest_by
from shortlist.certificates.search import least_enough

RATIO = 1.35  # of successive tilts
LEAST, MOST = 0.15, 4.0  # the smallest tilt relative to the scale, and the largest tilt
TAIL = 2.25  # how fast the weights of large tilts fall
SCALE_BELOW, SCALE_ABOVE = 6.0, 3.0  # the scales of the tilts, in units of epsilon
_NEGLIGIBLE = 1e-4  # weights of tilts that are left out
_AT_ONCE = 1 << 20  # numbers in memory
_N_CELLS = 400
_ABOVE_ONE = 1e-9


@dataclass(frozen=True, eq=False)
class Tilts:
    """The tilts of a mixture, all positive, and the logarithms of their weights."""

    tilts: FloatArray
    logs: FloatArray

    @classmethod
    def of(cls, scale: float) -> "Tilts":
        """Return tilts around a scale.

        Their weights fall so slowly that evidence for a variance ten times smaller costs little more.
        """
        n_tilts = 1 + max(2, math.ceil(math.log(max(MOST / (scale * LEAST), 1.0)) / math.log(RATIO)))
        ratios = LEAST * RATIO ** np.arange(n_tilts)
        weights = ratios / (1 + ratios**TAIL)
        is_kept = weights > _NEGLIGIBLE * weights.sum()
        kept = weights[is_kept] / weights[is_kept].sum()
        return cls(scale * ratios[is_kept], np.log(kept))

    def log_evidence(self, sums: FloatArray, counts: FloatArray, cuts: FloatArray, sign: int) -> FloatArray:
        """Return logarithms of the evidence that means lie above cuts (sign 1) or below them (sign -1).

        Rows are arms, columns cuts: the same cuts for all arms, or a row for each. A mean between 0 and 1 is
        above every cut below 0, for certain.
        """
        cuts, tilts = np.atleast_2d(cuts), sign * self.tilts
        rows = max(1, _AT_ONCE // max(1, cuts.shape[1] * len(tilts)))
        found = np.empty((len(sums), cuts.shape[1]))
        shared = _growth(cuts, tilts) if len(cuts) == 1 else None
        for first in range(0, len(sums), rows):
            block = slice(first, first + rows)
            growth = _growth(cuts[block], tilts) if shared is None else shared
            terms = self.logs + sums[block, None, None] * tilts - counts[block, None, None] * growth
            found[block] = _log_of_sum(terms)
        is_sure = cuts < 0 if sign > 0 else cuts > 1
        found[np.broadcast_to(is_sure, found.shape)] = np.inf
        return found

    def least_log_evidence(self, deviations: FloatArray, count: float) -> FloatArray:
        """Return what is known of the evidence from a mean's deviation alone: as if the variance were 1/4."""
        return _log_of_sum(self.logs + count * (deviations[:, None] * self.tilts - self.tilts**2 / 8))


def _growth(cuts: FloatArray, tilts: FloatArray) -> FloatArray:
    """Return how much a reward adds to the logarithm of what is expected of it if the mean is at a cut."""
    found: FloatArray = np.log1p(np.clip(cuts, 0.0, 1.0)[..., None] * np.expm1(tilts))
    return found


def _log_of_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials on the last axis."""
    top = logs.max(axis=-1)
    found: FloatArray = top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))
    return found


@dataclass(frozen=True, eq=False)
class BoundedEvidence:
    """Evidence about arms whose rewards lie between 0 and 1, and the prices that settle a pair.

    Attributes
    ----------
    epsilon
        As a share of the range of the rewards.
    """

    epsilon: float
    prices: Prices
    below: Tilts
    above: Tilts

    @classmethod
    def of(
        cls, n: int, m: int, delta: float, epsilon: float, *, scale: float | None = None
    ) -> "BoundedEvidence":
        """Return the evidence for the m best of n arms; `scale` is the epsilon that tilts are chosen for."""
        return _bounded_evidence(n, m, delta, epsilon, scale or epsilon)

    def enough(self) -> int:
        """Return the pulls with which, if two arms have as many or more each, the larger mean settles a pair.

        The evidence at a cut, as far as the deviation determines it, is a convex function of the number of
        pulls that starts at 1. So where it exceeds 1 it keeps rising, and only such evidence is counted.
        """
        return math.ceil(least_enough(self._is_enough, 1.0 / self.epsilon, 2.0))

    def _is_enough(self, count: float) -> bool:
        cuts = np.linspace(0.0, self.epsilon, _N_CELLS + 1)
        below = _counted(self.below.least_log_evidence(cuts, count)) - self.prices.below
        above = _counted(self.above.least_log_evidence(self.epsilon - cuts, count)) - self.prices.above
        return bool((below[:-1] >= self.prices.still_needed(above[1:])).all())

    def about(self, sums: FloatArray, counts: IntArray) -> "BoundedTotals":
        """Return the evidence about arms with these totals, as in `settled.Evidence`."""
        return BoundedTotals(self, sums, counts)


@dataclass(frozen=True, eq=False)
class BoundedTotals:
    """Evidence about arms from the sums and the numbers of their rewards."""

    evidence: BoundedEvidence
    sums: FloatArray
    counts: IntArray

    @property
    def n(self) -> int:
        """The number of arms."""
        return len(self.sums)

    @property
    def prices(self) -> Prices:
        """The evidence that settles a pair."""
        return self.evidence.prices

    @property
    def span(self) -> tuple[float, float]:
        """Two cuts. Arms have enough evidence above the first, and below the second."""
        return 0.0, 1.0 + _ABOVE_ONE

    def log_below(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms, in rows, lie below cuts: the same for all, or a row for each."""
        return self.evidence.below.log_evidence(*self._totals(arms), cuts, -1) - self.prices.below

    def log_above(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms do not lie below cuts; that they do not lie below 0 is certain."""
        logs = self.evidence.above.log_evidence(*self._totals(arms), cuts, 1) - self.prices.above
        return np.where(cuts <= 0, np.inf, logs)

    def _totals(self, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        return self.sums[arms], self.counts[arms].astype(np.float64)

    def highest(self, arms: IntArray) -> IntArray:
        """Return some of the arms: at no cut has another one less evidence below it."""
        return highest_by(self.counts, self.sums, arms)


def _counted(logs: FloatArray) -> FloatArray:
    found: FloatArray = np.where(logs >= 0, logs, -np.inf)
    return found


@lru_cache(maxsize=32)
def _bounded_evidence(n: int, m: int, delta: float, epsilon: float, scale: float) -> BoundedEvidence:
    tilts = (Tilts.of(times * scale) for times in (SCALE_BELOW, SCALE_ABOVE))
    return BoundedEvidence(epsilon, Prices.of(n, m, delta), *tilts)
