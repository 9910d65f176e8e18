"""LUCB: pull the weakest arm that is in and the strongest arm that is out until they no longer overlap.

Follows [KTAS12], with the half-widths of [ZT22] Section 5.1 for unequal variances.
"""

import numpy as np

from shortlist.arrays import FloatArray, at, largest
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem
from shortlist.strategies.confidence import Choice, Rest, Rule, strategy, without

_ZETA_3 = 1.2020569031595942


def rate(problem: Problem, n_pulls: FloatArray) -> FloatArray:
    """Return the exploration rate after `n_pulls` pulls in total."""
    return np.log(5 * problem.n * n_pulls**4 / (4 * problem.delta))  # [KTAS12] LUCB1, beta(u, t)


def choose(m: int, means: FloatArray, half_widths: FloatArray, rest: Rest) -> Choice:
    """Return the m best means as the arms that are in, and the two arms closest to the cut."""
    selected = largest(means, m)  # [KTAS12] LUCB, High^t
    means_in = at(means, selected)
    lower_in = means_in - at(half_widths, selected)
    weakest = at(selected, lower_in.argmin(axis=-1)[..., None])  # [KTAS12] LUCB, h_*
    upper_out = without(means + half_widths, selected)
    strongest = upper_out.argmax(axis=-1)[..., None]  # [KTAS12] LUCB, l_*
    highest_out = upper_out.max(axis=-1)
    gap = highest_out - lower_in.min(axis=-1)  # [KTAS12] LUCB, stopping rule
    is_sure = (means_in.min(axis=-1) > rest.key) & (highest_out > rest.upper)
    return Choice(selected, np.concatenate([weakest, strongest], axis=-1), gap, is_sure)


def _guarantee(problem: Problem) -> Guarantee:
    # A union bound over arms, times t >= 1 and the at most t counts that an arm can have by then:
    # sum over t of n t * 4 delta / (5 n t^4) = (4/5) zeta(3) delta.
    spent = 4 / 5 * _ZETA_3 * problem.delta
    share = Share("some arm's mean leaves its interval, towards the cut, at some time", spent)
    return Guarantee.of(
        problem, "[KTAS12] with [ZT22] Section 5.1; docs/theory.md, section 6", Ledger((share,))
    )


RULE = Rule(rate, lambda means, _: means, choose)
LUCB = strategy(
    "lucb",
    "LUCB with intervals scaled by each arm's variance: adaptive, without a maximum number of pulls.",
    RULE,
    _guarantee,
)
