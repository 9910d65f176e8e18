"""Evidence from paired differences of Gaussian rewards with unknown variances.

Two arms are measured under the same conditions, block after block. The differences of their rewards, of
different blocks, are independent and Gaussian with one unknown variance; within a block the rewards may
depend on each other in any way. Against the hypothesis that the mean difference is at most 0 stands a
mixture: the mean is Gaussian in units of the standard deviation, with the variances `GAINS`, and the scale
has the right Haar prior. The evidence then depends on the differences only through their number k and

    r = k mean^2 / (sum of squared deviations from the mean),

and at mean 0 it is a martingale of the scale-invariant statistics, so that it ever reaches 1/alpha with
probability alpha at most. Smaller means only lower it (docs/theory.md, section 41).
"""

import math
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray

GAINS = (0.1, 1.0)
"""The variances of the mean difference in units of the standard deviation, each with the same weight."""

_BISECTIONS = 60
_TABLE = 4096  # ratios for fewer blocks are kept
_MOST_LOG = 27.0  # ratios are looked for up to the exponential of this


def log_evidence(n_blocks: FloatArray | IntArray, ratios: FloatArray) -> FloatArray:
    """Return the logarithm of the evidence for a positive mean, given numbers of blocks and ratios r.

    It is for positive sample means only; other samples are no evidence. Infinite ratios are allowed: equal
    differences are finite evidence.
    """
    parts = [_log_one_sided(np.asarray(n_blocks, dtype=np.float64), ratios, gain) for gain in GAINS]
    found: FloatArray = np.logaddexp.reduce(parts, axis=0) - math.log(len(GAINS))
    return found


def _log_one_sided(n_blocks: FloatArray, ratios: FloatArray, gain: float) -> FloatArray:
    """Return the logarithm of twice the two-sided mixture less its value at 0, a lower bound of one-sided."""
    shrunk = 1 + n_blocks * gain
    with np.errstate(invalid="ignore"):
        odds = np.log1p(ratios) - np.log1p(ratios / shrunk)
    odds = np.where(np.isinf(ratios), np.log(shrunk), odds)
    exponents = n_blocks / 2 * odds
    found: FloatArray = exponents + np.log(2 - np.exp(-exponents)) - np.log(shrunk) / 2
    return found


def sufficient_ratios(n_blocks: IntArray, threshold: float) -> FloatArray:
    """Return the ratio r with which evidence reaches a threshold; infinite where no ratio is enough.

    The threshold is that of the logarithm of evidence. Where a ratio is returned, a slightly larger one is.
    """
    found, is_common = np.empty(len(n_blocks)), n_blocks < _TABLE
    found[is_common] = _first_ratios(threshold)[n_blocks[is_common]]
    if not is_common.all():
        rare, places = np.unique(n_blocks[~is_common], return_inverse=True)
        found[~is_common] = _ratios(rare, threshold)[places]
    return found


@lru_cache(maxsize=64)
def _first_ratios(threshold: float) -> FloatArray:
    return _ratios(np.arange(_TABLE), threshold)


def _ratios(n_blocks: IntArray, threshold: float) -> FloatArray:
    """Return the same for different numbers of blocks, by bisection."""
    low, high = np.full(len(n_blocks), -_MOST_LOG), np.full(len(n_blocks), _MOST_LOG)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_enough = log_evidence(n_blocks, np.exp(middle)) >= threshold
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    is_possible = log_evidence(n_blocks, np.exp(high)) >= threshold
    found: FloatArray = np.where(is_possible, np.exp(high), np.inf)
    return found


def fewest_blocks(threshold: float) -> int:
    """Return the number of blocks below which no pair can be settled, however large its differences."""
    n_blocks = 2
    while log_evidence(np.array([n_blocks]), np.array([np.inf]))[0] < threshold:
        n_blocks += 1
    return n_blocks
