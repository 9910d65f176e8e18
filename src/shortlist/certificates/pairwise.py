"""The pairwise certificate, which decides when one arm is known not to beat another by epsilon.

Arms are pulled in levels; a level adds the same weight to every arm's record. If arm i beats arm j by epsilon
or more, the evidence below is a supermartingale that starts at 1, whatever else is pulled and whenever. So it
ever exceeds a price 1/p with probability at most p [V39], and once it does, the pair is *settled*.
`docs/theory.md` has the proof; mixtures of several tilts go back to [R70], and [HRMS20] and [HRMS21] have the
general theory.

All quantities are in units of epsilon. The *level* is the sum x of the weights so far, an arm's *score* twice
the weighted sum of its batch means, and its *spread* the sum of weight^2 * 2s / (epsilon^2 t) over its
batches of t pulls: x itself if every batch has exactly the pulls that the level requires, less if it has
more.
"""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates.bisection import least_enough

TILTS = np.array([0.5, 0.75, 1.2, 2.0])
"""A lead of d epsilon is seen first with tilt (1 + d) / 2: the first is for ties, the last for big leads."""

WEIGHTS = np.array([0.4, 0.25, 0.2, 0.15])


def log_evidence(lead: FloatArray, level: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the logarithm of the evidence that the arm behind does not beat the other by epsilon.

    Parameters
    ----------
    lead
        The score of the arm ahead minus that of the arm behind.
    level
        The level of both scores.
    spread
        The sum of both spreads.
    """
    terms = _log_terms(lead, level, spread)
    top = terms.max(axis=-1)
    found: FloatArray = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))
    return found


def settling_lead(level: FloatArray, spread: FloatArray, log_price: float) -> FloatArray:
    """Return the least lead that settles a pair, never underestimated except for rounding."""
    spread = np.asarray(spread)
    alone = (log_price - np.log(WEIGHTS) + spread[..., None] * TILTS**2) / TILTS - 2 * np.asarray(level)[
        ..., None
    ]
    lead: FloatArray = alone.min(axis=-1)  # at this lead a single tilt is enough
    for _ in range(50):  # the evidence is convex in the lead, so Newton's steps from above stay above
        excess = log_evidence(lead, level, spread) - log_price
        if (excess <= 1e-13 * log_price).all():
            break
        lead = lead - excess / _slope(lead, level, spread)
    return lead


def enough(log_price: float) -> float:
    """Return the level at which the larger score settles any pair without a lead."""

    def is_enough(level: float) -> bool:
        return bool(log_evidence(np.zeros(()), np.array(level), np.array(2 * level)) >= log_price)

    return least_enough(is_enough, 0.0, 8 * log_price + 8) * (1 + 1e-9)


def _log_terms(lead: FloatArray, level: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the logarithm of each tilt's contribution, on a last axis."""
    exponents = np.asarray(lead + 2 * level)[..., None] * TILTS - np.asarray(spread)[..., None] * TILTS**2
    terms: FloatArray = exponents + np.log(WEIGHTS)
    return terms


def _slope(lead: FloatArray, level: FloatArray, spread: FloatArray) -> FloatArray:
    terms = _log_terms(lead, level, spread)
    shares = np.exp(terms - terms.max(axis=-1, keepdims=True))
    slope: FloatArray = (shares * TILTS).sum(axis=-1) / shares.sum(axis=-1)
    return slope
