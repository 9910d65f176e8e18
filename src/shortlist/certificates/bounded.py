"""Evidence about the mean of rewards between 0 and 1, from their number, their sum and their squares.

For a reward x between 0 and 1 and any tilt h, ``exp(h x) <= 1 + x (exp(h) - 1)`` [H63]. So if the mean is c,
every reward multiplies ``exp(h s - t ln(1 + c (exp(h) - 1)))``, where s is the sum of t rewards, by a factor
of expectation at most 1: it is a supermartingale that starts at 1. Positive tilts give evidence that the mean
lies above c, negative ones that it lies below. A mixture over tilts with fixed weights is evidence as well.
For rewards of 0 or 1 the factor has expectation exactly 1. The evidence is never less than sub-Gaussian
evidence with the worst variance, 1/4; if the variance is smaller, large tilts make use of that
(docs/theory.md, section 35).

Rewards between the bounds may vary less than their mean shows. By ``1 + l y >= exp(l y - psi(l) y^2)`` for
``y >= -1`` and ``0 <= l < 1``, where ``psi(l) = -l - ln(1 - l)`` [FGL15], the same holds for
``exp(L S - psi(c L) Q / c^2)``, where S is the sum of ``x - c``, Q that of its squares, and ``c L < 1``. It
is evidence that the mean lies above c; with 1 - x and 1 - c it is evidence that it lies below. Where graded
rewards are possible, both kinds are mixed (section 40).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.bisection import least_enough
from shortlist.certificates.cut import Prices, highest_by

RATIO = 1.35  # of successive tilts
LEAST, MOST = 0.15, 4.0  # the smallest tilt relative to the scale, and the largest tilt
TAIL = 2.25  # how fast the weights of large tilts fall
SCALE_BELOW, SCALE_ABOVE = 6.0, 3.0  # the scales of the tilts, in units of epsilon
SQUARES = 0.2  # the weight of evidence from squares, where rewards may be graded
MOST_RAW = 30.0  # the largest tilt of such evidence,
FALL = 0.3  # and how fast its weights fall
_NEGLIGIBLE = 1e-4  # weights of tilts that are left out
_AT_ONCE = 1 << 20  # numbers in memory
_N_CELLS = 400
_ABOVE_ONE = 1e-9
_HUGE = 1e300
_NEAR_ONE = 1e-9


@dataclass(frozen=True, eq=False)
class Tilts:
    """The tilts of a mixture, all positive, and the logarithms of their weights.

    Attributes
    ----------
    tilts, logs
        Of evidence from sums.
    raw, raw_logs
        Of evidence from sums and squares; none if rewards are 0 or 1.
    """

    tilts: FloatArray
    logs: FloatArray
    raw: FloatArray
    raw_logs: FloatArray

    @classmethod
    def of(cls, scale: float, *, is_graded: bool = False) -> "Tilts":
        """Return tilts around a scale.

        Their weights fall so slowly that evidence for a variance ten times smaller costs little more.
        """
        n_tilts = 1 + max(2, math.ceil(math.log(max(MOST / (scale * LEAST), 1.0)) / math.log(RATIO)))
        ratios = LEAST * RATIO ** np.arange(n_tilts)
        weights = ratios / (1 + ratios**TAIL)
        is_kept = weights > _NEGLIGIBLE * weights.sum()
        kept = weights[is_kept] / weights[is_kept].sum()
        share = SQUARES if is_graded else 0.0
        n_raw = math.ceil(math.log(MOST_RAW / scale) / math.log(RATIO)) if is_graded else 0
        raw = scale * RATIO ** np.arange(n_raw, dtype=np.float64)
        raw_weights = raw**-FALL
        raw_logs = np.log(share * raw_weights / raw_weights.sum()) if is_graded else np.empty(0)
        return cls(scale * ratios[is_kept], np.log((1 - share) * kept), raw, raw_logs)

    def log_evidence(
        self,
        sums: FloatArray,
        counts: FloatArray,
        cuts: FloatArray,
        sign: int,
        squares: FloatArray | None = None,
    ) -> FloatArray:
        """Return logarithms of the evidence that means lie above cuts (sign 1) or below them (sign -1).

        Rows are arms, columns cuts: the same cuts for all arms, or a row for each. A mean between 0 and 1 is
        above every cut below 0, for certain. `squares` are sums of squared rewards.
        """
        found = self._by_sums(sums, counts, cuts, sign)
        if squares is None or not len(self.raw):
            return found
        if sign < 0:
            sums, squares, cuts = counts - sums, counts - 2 * sums + squares, 1 - cuts
        return np.logaddexp(found, self._by_squares(sums, squares, counts, cuts))

    def _by_squares(
        self, sums: FloatArray, squares: FloatArray, counts: FloatArray, cuts: FloatArray
    ) -> FloatArray:
        """Return logarithms of the evidence from squares that means lie above cuts."""
        cuts = np.clip(np.atleast_2d(cuts), 0.0, 1.0)
        rows = max(1, _AT_ONCE // max(1, cuts.shape[1] * len(self.raw)))
        found = np.empty((len(sums), cuts.shape[1]))
        for first in range(0, len(sums), rows):
            block = slice(first, first + rows)
            own = cuts if len(cuts) == 1 else cuts[block]
            s, q, t = (values[block, None] for values in (sums, squares, counts))
            moved = s - t * own  # the sum of x - c, and that of its squares
            spread = np.maximum(q - 2 * own * s + t * own**2, 0.0)
            prices = _price(own, self.raw)
            with np.errstate(invalid="ignore"):  # 0 times infinity
                terms = self.raw_logs + moved[..., None] * self.raw - spread[..., None] * prices
            found[block] = _log_of_sum(np.where(prices < np.inf, terms, -np.inf))
        return found

    def _by_sums(self, sums: FloatArray, counts: FloatArray, cuts: FloatArray, sign: int) -> FloatArray:
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


def _price(cuts: FloatArray, tilts: FloatArray) -> FloatArray:
    """Return what the squares cost: psi(c L) / c^2; infinite where c L is 1 or nearly."""
    shares = cuts[..., None] * tilts
    inside = np.minimum(shares, 1 - _NEAR_ONE)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(
            inside < 1e-3, 0.5 + inside / 3 + inside**2 / 4, (-inside - np.log1p(-inside)) / inside**2
        )
    found: FloatArray = np.where(shares < 1 - _NEAR_ONE, tilts**2 * ratios, np.inf)
    return found


def _log_of_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials on the last axis."""
    top = np.maximum(logs.max(axis=-1), -_HUGE)
    with np.errstate(divide="ignore"):
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
        cls,
        n: int,
        m: int,
        delta: float,
        epsilon: float,
        *,
        scale: float | None = None,
        is_graded: bool = False,
    ) -> "BoundedEvidence":
        """Return the evidence for the m best of n arms.

        `scale` is the epsilon that tilts are chosen for, and `is_graded` whether rewards may be other than 0
        and 1.
        """
        return _bounded_evidence(n, m, delta, epsilon, scale or epsilon, is_graded)

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

    def about(self, sums: FloatArray, counts: IntArray, squares: FloatArray | None = None) -> "BoundedTotals":
        """Return the evidence about arms with these totals, as `settled_pairs.Evidence` has it.

        Without squares, or where they are NaN, they are as large as they can be.
        """
        if squares is not None:
            least = sums**2 / np.maximum(counts, 1)
            squares = np.clip(np.where(np.isnan(squares), sums, squares), least, sums)
        return BoundedTotals(self, sums, counts, squares)


@dataclass(frozen=True, eq=False)
class BoundedTotals:
    """Evidence about arms from the sums and the numbers of their rewards, and from squares if given."""

    evidence: BoundedEvidence
    sums: FloatArray
    counts: IntArray
    squares: FloatArray | None = None

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
        return self._log_evidence(self.evidence.below, arms, cuts, -1) - self.prices.below

    def log_above(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms do not lie below cuts; that they do not lie below 0 is certain."""
        logs = self._log_evidence(self.evidence.above, arms, cuts, 1) - self.prices.above
        return np.where(cuts <= 0, np.inf, logs)

    def _log_evidence(self, tilts: Tilts, arms: IntArray, cuts: FloatArray, sign: int) -> FloatArray:
        squares = None if self.squares is None else self.squares[arms]
        counts = self.counts[arms].astype(np.float64)
        return tilts.log_evidence(self.sums[arms], counts, cuts, sign, squares)

    def highest(self, arms: IntArray) -> IntArray:
        """Return some of the arms: at no cut has another one less evidence below it."""
        return arms if self.squares is not None else highest_by(self.counts, self.sums, arms)


def _counted(logs: FloatArray) -> FloatArray:
    found: FloatArray = np.where(logs >= 0, logs, -np.inf)
    return found


@lru_cache(maxsize=32)
def _bounded_evidence(
    n: int, m: int, delta: float, epsilon: float, scale: float, is_graded: bool, /
) -> BoundedEvidence:
    tilts = (Tilts.of(times * scale, is_graded=is_graded) for times in (SCALE_BELOW, SCALE_ABOVE))
    return BoundedEvidence(epsilon, Prices.of(n, m, delta), *tilts)
