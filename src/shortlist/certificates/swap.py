"""The swap certificate, for Gaussian rewards: what it costs to call a pair settled at equal information.

Swap the rewards of two arms. A rule that treats arms alike would then have settled the pair the other way;
and if one arm beats the other by epsilon, its score leads by S with a likelihood exp(S) times that of the
swapped rewards, at least. So the probability of settling a pair falsely is at most the expected *charge*
exp(-S) of settling it rightly. Charges go to the account of the arm ahead. If the m fullest accounts never
exceed delta together, neither does the probability of any false settlement: `docs/theory.md`. The weights
exp(score) are those of [F14].
"""

import numpy as np

from shortlist.arrays import FloatArray


def charges(ahead: FloatArray, behind: FloatArray, lead: float = -np.inf) -> FloatArray:
    """Return what each arm ahead is charged for all arms behind that it leads by so much.

    Given are scores: twice the information times the sample mean, in units of epsilon.
    """
    if not len(behind):
        return np.zeros(len(ahead))
    ordered = np.sort(behind)
    log_sums = np.concatenate(([-np.inf], np.logaddexp.accumulate(ordered)))
    n_behind = np.searchsorted(ordered, ahead - lead, side="right")
    with np.errstate(over="ignore"):  # a charge that is beyond all numbers is never paid
        charged: FloatArray = np.exp(log_sums[n_behind] - ahead)
    return charged


def spent(accounts: FloatArray, m: int) -> float:
    """Return what the m fullest accounts hold together."""
    return float(np.partition(accounts, len(accounts) - m)[len(accounts) - m :].sum())
