"""Paulson's sequential procedure with the boundary of Kim and Nelson, for m = 1 and known variances.

All survivors are pulled equally often. An arm is dropped once another leads it by so much that a random walk
with drift epsilon would hardly ever end on the wrong side. The boundary falls to zero as pulls grow, so the
number of pulls is bounded. Like `bechhofer` it needs Gaussian rewards and promises nothing if another mean
lies within epsilon of the best; in return it needs few pulls. `kim-nelson` (`kim_nelson.py`) is the procedure
for unknown variances.

A departure from the papers: survivors are compared after 1, 2, 3, ... pulls at first and later whenever the
pulls have grown by a 128th. The error probability does not increase (docs/theory.md, section 21).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.certificates.assumptions import GAUSSIAN
from shortlist.problem import Problem, countable
from shortlist.strategies.lanes import strategy
from shortlist.strategies.protocol import Batch, Done, Moments, only_one

_PACE = 128  # survivors are compared again when their pulls have grown by 1 / _PACE
_ROUNDING = 1e-9  # by rounding, a pair due exactly at a comparison may be decided at the next one


@dataclass(frozen=True, eq=False)
class Open:
    """The survivors, their means after `n_pulls` pulls each; they await more."""

    problem: Problem
    arms: IntArray
    means: FloatArray
    n_pulls: int


def init(problem: Problem) -> Open:
    """Return the first state."""
    worst_case_pulls(problem)  # raises if there are too many to count
    return Open(problem, problem.arms, np.zeros(problem.n), 0)


def ask(state: Open) -> Batch:
    """Return the pulls of every survivor up to the next comparison."""
    return Batch(state.arms, np.full(len(state.arms), next_look(state.n_pulls) - state.n_pulls))


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state without the arms that another survivor beats."""
    n_pulls = next_look(state.n_pulls)
    share = (n_pulls - state.n_pulls) / n_pulls
    pooled = state.means + (told.means - state.means) * share
    is_kept = ~is_beaten(pooled, state.problem.variances[state.arms] / n_pulls, state.problem)
    arms = state.arms[is_kept]
    if len(arms) == 1:
        return Done(arms)
    return replace(state, arms=arms, means=pooled[is_kept], n_pulls=n_pulls)


def is_beaten(means: FloatArray, spreads: FloatArray, problem: Problem) -> BoolArray:
    """Return which arms are beaten by another, given the variances of their sample means."""
    return is_behind(means, spreads, slope(problem), problem.epsilon)


def is_behind(means: FloatArray, spreads: FloatArray, a: float, epsilon: float) -> BoolArray:
    """Return which arms are beaten by another, for the boundary with slope a.

    Arm l beats arm i if its mean is larger and the difference is at least a (v_i + v_l) - epsilon/2. This is
    a lower bound on ``mean_l - a v_l``, so only the largest such value among the arms above i matters. Of
    equal means the left one counts as larger.
    """
    gaps = means - means.max()  # subtract first: differences of close means are exact
    order = np.argsort(-gaps, kind="stable")
    reach = np.maximum.accumulate((gaps - a * spreads)[order])
    is_out = np.zeros(len(means), dtype=np.bool_)
    behind = order[1:]
    limits = gaps[behind] + a * spreads[behind] - epsilon / 2
    is_out[behind] = reach[:-1] >= limits  # [KN01] Screening, W_il(r)
    return is_out


def slope(problem: Problem) -> float:
    """Return a: a pair errs with probability exp(-a epsilon) / 2, each other arm's share of delta."""
    beta = -math.expm1(math.log1p(-problem.delta) / (problem.n - 1))  # [KN01] Setup, beta
    return max(0.0, -math.log(2 * beta)) / problem.epsilon  # [F74] Triangular boundary


def last_looks(problem: Problem) -> list[int]:
    """Return the largest possible number of pulls of the noisiest arm, of the next noisiest, and so on.

    A pair is decided once a (v_i + v_l) <= epsilon/2. So while k arms are left, the two least noisy of them
    are not decided yet, and neither are the k-th and (k - 1)-th in the order of all arms.
    """
    noisiest = np.sort(problem.variances)[::-1]
    enough = 2 * slope(problem) / problem.epsilon * (noisiest[:-1] + noisiest[1:])
    looks = _looks(float(enough[0]))
    places = np.searchsorted(looks, enough * (1 + _ROUNDING))
    return [looks[place] for place in [places[0], *places]]


def worst_case_pulls(problem: Problem) -> int:
    """Return the most pulls, taken when the noisiest arms survive as long as possible."""
    return countable(sum(last_looks(problem)), "The procedure of Kim and Nelson")


def n_rounds(problem: Problem) -> int:
    """Return the largest number of comparisons."""
    last = last_looks(problem)[0]
    return _looks(last).index(last) + 1


def next_look(n_pulls: int) -> int:
    """Return the number of pulls of each survivor at the next comparison."""
    return n_pulls + max(1, n_pulls // _PACE)


def _looks(enough: float) -> list[int]:
    """Return all numbers of pulls at which survivors are compared, up to the first that reaches `enough`."""
    looks = [1]
    while looks[-1] < enough * (1 + _ROUNDING):
        looks.append(next_look(looks[-1]))
    return looks


def _guarantee(problem: Problem) -> Guarantee | None:
    if problem.noise != "gaussian":
        return None
    share = Share("another arm drops the best one, which lies at least epsilon above it", problem.delta)
    source = "[P64] and [KN01]; docs/theory.md, section 21"
    return Guarantee.of(problem, source, Ledger((share,)), Scope.CORRECT, assumptions=GAUSSIAN)


KN = strategy(
    "kn",
    "Paulson, Kim and Nelson: drops arms until one is left, for Gaussian rewards and an indifference zone.",
    "[P64], [KN01]",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    worst_case_pulls=worst_case_pulls,
    n_rounds=n_rounds,
    unfit=only_one,
    usual_share=0.4,
)
