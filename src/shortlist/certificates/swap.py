"""The swap certificate for Gaussian rewards, which bounds the cost of settling a pair at equal information.

Swap the rewards of two arms. A rule that treats arms alike would then have settled the pair the other way. If
one arm beats the other by epsilon and its score leads by S, the likelihood is at least exp(S) times that of
the swapped rewards. So the probability of settling a pair falsely is at most the expected *charge* exp(-S) of
settling it correctly. Charges go to the account of the arm ahead. If the m largest accounts together never
exceed delta, neither does the probability of any false settlement: `docs/theory.md`. The weights exp(score)
are those of [F14].
"""

import numpy as np

from shortlist.arrays import FloatArray


def charges(ahead: FloatArray, behind: FloatArray, lead: float = -np.inf) -> FloatArray:
    """Return the charge of each arm ahead, for all arms behind that it leads by at least `lead`.

    The arguments are scores: twice the information times the sample mean, in units of epsilon.
    """
    if not len(behind):
        return np.zeros(len(ahead))
    ordered = np.sort(behind)
    log_sums = np.concatenate(([-np.inf], np.logaddexp.accumulate(ordered)))
    n_behind = np.searchsorted(ordered, ahead - lead, side="right")
    with np.errstate(over="ignore"):  # an infinite charge is never affordable
        charged: FloatArray = np.exp(log_sums[n_behind] - ahead)
    return charged


def spent(accounts: FloatArray, m: int) -> float:
    """Return the sum of the m largest accounts."""
    return float(np.partition(accounts, len(accounts) - m)[len(accounts) - m :].sum())
