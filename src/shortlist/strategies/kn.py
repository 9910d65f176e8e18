"""Paulson's sequential procedure with the boundary of Kim and Nelson, for m = 1 and known variances.

All survivors are pulled equally often. An arm is dropped once some other lies so far above it that a
random walk with a drift of epsilon would hardly ever come out the wrong way round; the bar falls as pulls
grow, down to nothing, so the pulls have a cap. Like `bechhofer` it needs Gaussian rewards and promises
nothing if another mean lies within epsilon of the best; for that it takes few pulls.

A departure from the papers: survivors are compared after 1, 2, 3, ... pulls at first, later less and less
often, whenever a 128th has been added. The error probability does not rise (docs/theory.md, section 21).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.problem import Problem, countable
from shortlist.strategies.lanes import strategy
from shortlist.strategies.protocol import Batch, Done, Moments, only_one

_PACE = 128  # survivors are compared again when their pulls have grown by one part in so many
_ROUNDING = 1e-9  # a pair that is due just at a comparison may, by rounding, have to wait for the next


@dataclass(frozen=True, eq=False)
class Open:
    """The survivors, their means after `n_pulls` pulls each; they await more."""

    problem: Problem
    arms: IntArray
    means: FloatArray
    n_pulls: int


def init(problem: Problem) -> Open:
    """Return the first state."""
    worst_case_pulls(problem)  # refuses what could not be counted
    return Open(problem, problem.arms, np.zeros(problem.n), 0)


def ask(state: Open) -> Batch:
    """Return as many pulls for every survivor as lead to the next comparison."""
    return Batch(state.arms, np.full(len(state.arms), next_look(state.n_pulls) - state.n_pulls))


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state without the arms that some other survivor beats."""
    n_pulls = next_look(state.n_pulls)
    share = (n_pulls - state.n_pulls) / n_pulls
    pooled = state.means + (told.means - state.means) * share
    is_kept = ~is_beaten(pooled, state.problem.variances[state.arms] / n_pulls, state.problem)
    arms = state.arms[is_kept]
    if len(arms) == 1:
        return Done(arms)
    return replace(state, arms=arms, means=pooled[is_kept], n_pulls=n_pulls)


def is_beaten(means: FloatArray, spreads: FloatArray, problem: Problem) -> BoolArray:
    """Return which arms some other beats, given the variances of their sample means."""
    return is_behind(means, spreads, slope(problem), problem.epsilon)


def is_behind(means: FloatArray, spreads: FloatArray, a: float, epsilon: float) -> BoolArray:
    """Return which arms some other beats by the boundary with slope a.

    Arm i is beaten by an arm l with a larger mean, if the difference is at least a (v_i + v_l) - epsilon/2.
    As this is a bound on ``mean_l - a v_l``, the largest of those above an arm decides. Equal means count
    as falling from left to right.
    """
    gaps = means - means.max()  # differences first: they are exact where they matter
    order = np.argsort(-gaps, kind="stable")
    reach = np.maximum.accumulate((gaps - a * spreads)[order])
    is_out = np.zeros(len(means), dtype=np.bool_)
    behind = order[1:]
    limits = gaps[behind] + a * spreads[behind] - epsilon / 2
    is_out[behind] = reach[:-1] >= limits  # [KN01] Screening, W_il(r)
    return is_out


def slope(problem: Problem) -> float:
    """Return a: a pair errs with probability exp(-a epsilon) / 2, which is each other arm's share."""
    beta = -math.expm1(math.log1p(-problem.delta) / (problem.n - 1))  # [KN01] Setup, beta
    return max(0.0, -math.log(2 * beta)) / problem.epsilon  # [F74] Triangular boundary


def last_looks(problem: Problem) -> list[int]:
    """Return how often the noisiest arm can be pulled, the next noisiest and so on.

    A pair is decided once a (v_i + v_l) <= epsilon/2; so if k arms are left, the two least noisy of them
    have not come that far, nor have the k-th and the one before it in the order of all arms.
    """
    noisiest = np.sort(problem.variances)[::-1]
    enough = 2 * slope(problem) / problem.epsilon * (noisiest[:-1] + noisiest[1:])
    looks = _looks(float(enough[0]))
    places = np.searchsorted(looks, enough * (1 + _ROUNDING))
    return [looks[place] for place in [places[0], *places]]


def worst_case_pulls(problem: Problem) -> int:
    """Return the most pulls: the noisiest arms survive, each as long as it can."""
    return countable(sum(last_looks(problem)), "The procedure of Kim and Nelson")


def n_rounds(problem: Problem) -> int:
    """Return the most comparisons."""
    last = last_looks(problem)[0]
    return _looks(last).index(last) + 1


def next_look(n_pulls: int) -> int:
    """Return after how many pulls of each survivor the next comparison comes."""
    return n_pulls + max(1, n_pulls // _PACE)


def _looks(enough: float) -> list[int]:
    """Return all numbers of pulls at which survivors are compared, until `enough` is reached."""
    looks = [1]
    while looks[-1] < enough * (1 + _ROUNDING):
        looks.append(next_look(looks[-1]))
    return looks


def _guarantee(problem: Problem) -> Guarantee | None:
    if problem.noise != "gaussian":
        return None
    share = Share("another arm drops the best one, which lies at least epsilon above it", problem.delta)
    return Guarantee.of_gaussian(
        problem, "[P64] and [KN01]; docs/theory.md, section 21", Ledger((share,)), Scope.CORRECT
    )


KN = strategy(
    "kn",
    "Paulson, Kim and Nelson: drops arms one by one; one arm of Gaussian rewards, an indifference zone.",
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
