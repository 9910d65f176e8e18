"""The cut certificate: from when on it is a fact that none of some arms beats any of some others by epsilon.

Suppose an outsider truly beats an incumbent by more than epsilon. Draw a *cut* at the outsider's true mean:
then the outsider does not lie below the cut, and the incumbent lies below the cut less epsilon. Evidence
against either is a mixture of exponentials of the arm's own rewards, as in `mixture`: it starts at 1 and
grows only by luck. So does the sum, with weights that add up to 1, of the evidence against the best arms
(divided by m), of that against the others (by n - m), and of the products over pairs (by m (n - m)). It ever
reaches 1/delta with probability delta at most [V39]. Hence the pair is settled once *for every cut* that sum
would be 1/delta, counting these two arms alone. `docs/theory.md` has the proof.

All quantities are in units of epsilon: the *information* of an arm is its number of pulls times
epsilon^2 / variance, a *deviation* the distance of its sample mean from the cut, in the direction wanted.
"""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates.search import least_enough

BELOW, ABOVE, PAIRS = 0.45, 0.05, 0.5
"""What outsiders' evidence, incumbents' evidence and their products weigh in the sum. There are many
outsiders, and few incumbents that are pulled a lot: so the former weigh more."""

PRIOR_BELOW, PRIOR_ABOVE = 1.0, 4.0
"""Where the mixtures are tight: some ten times as much information."""


def log_evidence(deviation: FloatArray, information: FloatArray, prior: float) -> FloatArray:
    """Return the logarithm of the evidence; minus infinity where the deviation is too small to be counted.

    From a deviation of ``1 / sqrt(information)`` on, the evidence also rises with the information.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415 - scipy is slow to import

    z = information * deviation / np.sqrt(information + prior)
    logs = math.log(2) + 0.5 * np.log(prior / (information + prior)) + z**2 / 2 + log_ndtr(z)
    found: FloatArray = np.where(deviation >= least_deviation(information), logs, -np.inf)
    return found


def least_deviation(information: FloatArray) -> FloatArray:
    """Return the smallest deviation that is counted at all."""
    least: FloatArray = 1 / np.sqrt(information)
    return least


def deviation_for(log_target: FloatArray, information: FloatArray, prior: float) -> FloatArray:
    """Return a deviation with which the evidence is sufficient, and hardly larger than it must be."""
    log_target, information = np.broadcast_arrays(log_target, information)
    least = least_deviation(information)
    reach = np.maximum(log_target, 0) + 0.5 * np.log1p(information / prior) + 2
    low, high = least, least + np.sqrt(2 * (information + prior) * reach) / information
    for _ in range(50):
        middle = (low + high) / 2
        is_enough = log_evidence(middle, information, prior) >= log_target
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    found: FloatArray = np.where(log_evidence(least, information, prior) >= log_target, least, high)
    return found


@dataclass(frozen=True)
class Prices:
    """Logarithms of what settles a pair.

    Attributes
    ----------
    below, above
        The evidence that is enough alone: that an outsider lies below a cut, and that an incumbent lies
        above it less epsilon. *Relative* logarithms below are less these, so that 0 is enough.
    discount
        Together less is enough: relative logarithms that add up to minus this.
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

    def enough(self) -> float:
        """Return the information with which, if both arms have it, the larger mean settles any pair."""
        return least_enough(self._is_enough, 1.0, 2.0)

    def _is_enough(self, information: float, n_cells: int = 2000) -> bool:
        """Return whether equal means are settled: for every cut between them and epsilon above them.

        Within a cell the evidence below is least at its lower end, and that above at its upper end.
        """
        cuts, amount = np.linspace(0.0, 1.0, n_cells + 1), np.array(information)
        below = log_evidence(cuts, amount, PRIOR_BELOW) - self.below
        above = log_evidence(1.0 - cuts, amount, PRIOR_ABOVE) - self.above
        return bool((below[:-1] >= self.still_needed(above[1:])).all())
