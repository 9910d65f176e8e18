"""The cut certificate, which decides when it is known that no outsider beats an incumbent by epsilon.

Suppose that an outsider truly beats an incumbent by more than epsilon. Draw a *cut* at the outsider's true
mean: the outsider does not lie below the cut, and the incumbent lies below the cut minus epsilon. Evidence
against either is a mixture of exponentials of the arm's own rewards, as in `mixture`: it starts at 1 and is a
supermartingale. So is the weighted sum, with weights that add up to 1, of the evidence against the best arms
(divided by m), of that against the others (by n - m), and of the products over pairs (by m (n - m)). It ever
reaches 1/delta with probability at most delta [V39]. Hence a pair is settled once *for every cut* that sum
would be 1/delta, counting these two arms alone. `docs/theory.md` has the proof.

All quantities are in units of epsilon: the *information* of an arm is its number of pulls times epsilon^2 /
variance, and a *deviation* is the distance of its sample mean from the cut, in the relevant direction.
"""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.bisection import least_enough

BELOW, ABOVE, PAIRS = 0.45, 0.05, 0.5
"""The weights of outsiders' evidence, incumbents' evidence and their products in the sum. Outsiders are many,
while incumbents are few and get many pulls, so outsiders get more weight."""

PRIOR_BELOW, PRIOR_ABOVE = 1.0, 4.0
"""The mixtures are tightest at about ten times this information."""


def log_evidence(deviation: FloatArray, information: FloatArray, prior: float) -> FloatArray:
    """Return the logarithm of the evidence; minus infinity if the deviation is too small to count.

    For deviations of at least ``1 / sqrt(information)`` the evidence also increases with the information.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415 - scipy is slow to import

    z = information * deviation / np.sqrt(information + prior)
    logs = math.log(2) + 0.5 * np.log(prior / (information + prior)) + z**2 / 2 + log_ndtr(z)
    found: FloatArray = np.where(deviation >= least_deviation(information), logs, -np.inf)
    return found


def log_mixture(deviation: FloatArray, information: FloatArray, prior: float) -> FloatArray:
    """Return the logarithm of the evidence for the information that there is exactly, also if it is small.

    For negative deviations, ``z**2 / 2 + log_ndtr(z)`` would be a small difference of large numbers.
    """
    from scipy.special import erfcx, log_ndtr  # noqa: PLC0415 - scipy is slow to import

    z = information * deviation / np.sqrt(information + prior)
    ahead = np.maximum(z, 0.0)
    behind = np.log(erfcx(np.maximum(-z, 0.0) / math.sqrt(2)) / 2)
    logs = np.where(z > 0, ahead**2 / 2 + log_ndtr(ahead), behind)
    found: FloatArray = math.log(2) + 0.5 * np.log(prior / (information + prior)) + logs
    return found


def least_deviation(information: FloatArray) -> FloatArray:
    """Return the smallest deviation that counts."""
    least: FloatArray = 1 / np.sqrt(information)
    return least


def deviation_for(log_target: FloatArray, information: FloatArray, prior: float) -> FloatArray:
    """Return a deviation that gives enough evidence and is barely larger than necessary."""
    log_target, information = np.broadcast_arrays(log_target, information)
    least = least_deviation(information)
    low, high = least, ample_deviation(log_target, information, prior)
    for _ in range(50):
        middle = (low + high) / 2
        is_enough = log_evidence(middle, information, prior) >= log_target
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    found: FloatArray = np.where(log_evidence(least, information, prior) >= log_target, least, high)
    return found


def ample_deviation(log_target: FloatArray, information: FloatArray, prior: float) -> FloatArray:
    """Return a deviation that gives more than enough evidence."""
    reach = np.maximum(log_target, 0) + 0.5 * np.log1p(information / prior) + 2
    ample: FloatArray = (
        least_deviation(information) + np.sqrt(2 * (information + prior) * reach) / information
    )
    return ample


@dataclass(frozen=True)
class Prices:
    """Logarithms of the evidence that settles a pair.

    Attributes
    ----------
    below, above
        The evidence that is enough alone: that an outsider lies below a cut, and that an incumbent lies above
        the cut minus epsilon. *Relative* logarithms have these subtracted, so that 0 is enough.
    discount
        If both kinds are combined, relative logarithms that add up to minus this are enough.
    """

    below: float
    above: float
    discount: float

    @classmethod
    def of(cls, n: int, m: int, delta: float) -> "Prices":
        """Return the prices for the m best of n arms."""
        return cls(
            below=math.log(m / (BELOW * delta)),
            above=math.log((n - m) / (ABOVE * delta)),
            discount=math.log(PAIRS / (BELOW * ABOVE * delta)),
        )

    def still_needed(self, above: FloatArray) -> FloatArray:
        """Return the relative logarithm needed below a cut, given that above it; minus infinity for none."""
        given = np.minimum(above, 0.0)
        with np.errstate(divide="ignore"):
            needed: FloatArray = np.log1p(-np.exp(given)) - np.log1p(np.exp(self.discount + given))
        return needed

    def enough(self, finer: float = 1.0) -> float:
        """Return the information at which, if both arms have it, the larger mean settles any pair.

        If epsilon was made smaller after the tilts were chosen, `finer` is the square of its ratio to the
        first one.
        """
        return least_enough(lambda information: self._is_enough(information, finer), 1.0, 2.0)

    def _is_enough(self, information: float, finer: float = 1.0, n_cells: int = 2000) -> bool:
        """Return whether equal means are settled for every cut between them and epsilon above them.

        Within a cell the evidence below is smallest at the lower end, and the evidence above at the upper
        end.
        """
        cuts, amount = np.linspace(0.0, 1.0, n_cells + 1), np.array(information)
        below = log_evidence(cuts, amount, finer * PRIOR_BELOW) - self.below
        above = log_evidence(1.0 - cuts, amount, finer * PRIOR_ABOVE) - self.above
        return bool((below[:-1] >= self.still_needed(above[1:])).all())


@dataclass(frozen=True, eq=False)
class NormalEvidence:
    """Evidence about sub-Gaussian arms of known variances, from their sample means.

    Attributes
    ----------
    prices
        The evidence that settles a pair.
    means
        The sample mean of each arm, in units of epsilon; anything for arms without pulls.
    information
        Of each arm.
    """

    prices: Prices
    means: FloatArray
    information: FloatArray

    @property
    def n(self) -> int:
        """The number of arms."""
        return len(self.means)

    @property
    def span(self) -> tuple[float, float]:
        """Two cuts. Measured arms have enough evidence above the first, and below the second."""
        known = self.information > 0
        if not known.any():
            return 0.0, 0.0
        means, information = self.means[known], self.information[known]
        low = means - ample_deviation(np.array(self.prices.above), information, PRIOR_ABOVE)
        high = means + ample_deviation(np.array(self.prices.below), information, PRIOR_BELOW)
        return float(low.min()), float(high.max())

    def log_below(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms, in rows, lie below cuts: the same for all, or a row for each."""
        deviations = cuts - self.means[arms, None]
        return log_mixture(deviations, self.information[arms, None], PRIOR_BELOW) - self.prices.below

    def log_above(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms lie above cuts."""
        deviations = self.means[arms, None] - cuts
        return log_mixture(deviations, self.information[arms, None], PRIOR_ABOVE) - self.prices.above

    def highest(self, arms: IntArray) -> IntArray:
        """Return some of the arms: at no cut has another one less evidence below it."""
        return highest_by(self.information, self.means, arms)


def highest_by(amounts: FloatArray | IntArray, means: FloatArray, arms: IntArray) -> IntArray:
    """Return, of these arms, those of the largest mean for each amount of information."""
    order = np.lexsort((-means[arms], amounts[arms]))
    kept = amounts[arms[order]]
    return arms[order[np.flatnonzero(np.append(True, kept[1:] != kept[:-1])[: len(kept)])]]
