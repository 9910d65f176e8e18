"""UGapE: pull the less well known of two arms at the cut until no regret can exceed epsilon.

Follows [GGL12], UGapEc, with the half-widths of [ZT22] Section 5.1 for unequal variances.
"""

import math

import numpy as np

from shortlist.arrays import FloatArray, at, flat_index, largest
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem
from shortlist.strategies.confidence import Choice, Rest, Rule, strategy, without


def rate(problem: Problem, n_pulls: FloatArray) -> FloatArray:
    """Return the exploration rate after `n_pulls` pulls in total."""
    return np.log(4 * problem.n * n_pulls**3 / problem.delta)  # [GGL12] UGapEc, beta_k(t)


def choose(m: int, means: FloatArray, half_widths: FloatArray, rest: Rest) -> Choice:
    """Return the m arms with the smallest possible regret, and the less known of the two arms at the cut."""
    upper, lower = means + half_widths, means - half_widths
    regrets, mth_upper, next_upper = _regrets(upper, lower, m)
    selected = largest(-regrets, m)  # [GGL12] UGapE, J(t)
    outside = without(upper, selected).argmax(axis=-1)[..., None]  # [GGL12] UGapE, u_t
    weakest = at(lower, selected).argmin(axis=-1)[..., None]
    pair = np.concatenate([at(selected, weakest), outside], axis=-1)  # [GGL12] UGapE, l_t and u_t
    wider = at(half_widths, pair).argmax(axis=-1)[..., None]  # [GGL12] UGapE, I(t); a tie goes to l_t
    gap = at(regrets, selected).max(axis=-1)  # [GGL12] UGapE, B_J(t)
    is_sure = (next_upper > rest.upper) & (gap < mth_upper - rest.key)
    return Choice(selected, at(pair, wider), gap, is_sure)


def _regrets(upper: FloatArray, lower: FloatArray, m: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how far the m-th best of the other arms could lie above each arm, B_k.

    Also return the m-th and (m + 1)-th largest upper bounds: for an arm among the m largest, the m-th best of
    the others is the (m + 1)-th, and for any other arm it is the m-th.
    """
    top = largest(upper, m + 1)
    uppers = at(upper, top)
    last = uppers.argmin(axis=-1)[..., None]
    ordered = np.sort(uppers, axis=-1)
    next_upper, mth_upper = ordered[..., :1], ordered[..., 1:2]
    regrets = mth_upper - lower  # [GGL12] UGapE, B_k(t)
    of_top = np.where(np.arange(m + 1) != last, next_upper, mth_upper) - at(lower, top)
    regrets.reshape(-1)[flat_index(upper.shape, top)] = of_top  # [GGL12] UGapE, B_k(t)
    return regrets, mth_upper[..., 0], next_upper[..., 0]


def _lower(means: FloatArray, half_widths: FloatArray) -> FloatArray:
    return means - half_widths


def _guarantee(problem: Problem) -> Guarantee:
    # A union bound over both sides, all arms, all t and the at most t counts that an arm can have by then:
    # sum over t of 2 n t * delta / (4 n t^3) = zeta(2) delta / 2.
    spent = math.pi**2 / 12 * problem.delta
    share = Share("some arm's mean leaves its interval at some time", spent)
    return Guarantee.of(
        problem, "[GGL12] with [ZT22] Section 5.1; docs/theory.md, section 6", Ledger((share,))
    )


RULE = Rule(rate, _lower, choose)
UGAPE = strategy(
    "ugape",
    "UGapE with intervals scaled by each arm's variance: adaptive, without a maximum number of pulls.",
    RULE,
    _guarantee,
)
