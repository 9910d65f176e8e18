"""Racing: pull all open arms together and settle those that are surely in or out, until m are in.

Follows [EMM06] and [HRMS21]. All open arms have equal information, so pulls are proportional to the
variances; successive levels grow by a factor of 2^(1/8). Intervals are those of `mixture`. An arm comes in
once at most m - 1 others can lie more than epsilon above it, and goes out once m arms surely lie above it. At
the last level intervals are no longer than epsilon, so all arms can be settled and the pulls have a cap.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, largest
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.lanes import strategy
from shortlist.strategies.mixture import bounds, enough, guarantee
from shortlist.strategies.protocol import Batch, Done, Moments

_PER_DOUBLING = 8  # levels


@dataclass(frozen=True, eq=False)
class Open:
    """The open arms await the pulls of a level.

    Attributes
    ----------
    arms, means, counts
        The open arms, their means and how often they have been pulled.
    selected
        The arms that are in, in increasing order.
    last, levels_left
        The unrounded number of pulls of every arm up to the last level, and how many levels are left.
    """

    problem: Problem
    arms: IntArray
    means: FloatArray
    counts: IntArray
    selected: IntArray
    last: FloatArray
    levels_left: int


def init(problem: Problem) -> Open:
    """Return the first state: at the first level the noisiest arm is pulled about once."""
    nothing = np.zeros(problem.n, dtype=np.int64)
    last = _last(problem)
    worst_case_pulls(problem)  # raises if there are too many to count
    return Open(problem, problem.arms, np.zeros(problem.n), nothing, nothing[:0], last, n_rounds(problem) - 1)


def ask(state: Open) -> Batch:
    """Return the pulls due, for the open arms that are due any."""
    due = _due(state) - state.counts
    return Batch(state.arms[due > 0], due[due > 0])


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state after settling all arms that can be settled."""
    problem, counts = state.problem, _due(state)
    pooled, due = state.means.copy(), counts > state.counts
    pooled[due] += (told.means - pooled[due]) * ((counts - state.counts)[due] / counts[due])
    lower, upper = bounds(problem, pooled, counts.astype(np.float64), problem.variances[state.arms])
    wanted = problem.m - len(state.selected)
    is_in = _comes_in(lower, upper, wanted, problem.epsilon, is_last=state.levels_left == 0)
    selected = np.sort(np.concatenate([state.selected, state.arms[is_in]]))
    if (wanted := problem.m - len(selected)) == 0:
        return Done(selected)
    least = np.sort(lower[~is_in])[-wanted]
    is_open = ~is_in & (upper >= least)  # [EMM06] Alg. 3, elimination
    arms = state.arms[is_open]
    if len(arms) == wanted:
        return Done(np.sort(np.concatenate([selected, arms])))
    after = replace(state, arms=arms, means=pooled[is_open], counts=counts[is_open], selected=selected)
    return _at_next_level(after)


def _comes_in(
    lower: FloatArray, upper: FloatArray, wanted: int, epsilon: float, *, is_last: bool
) -> BoolArray:
    """Return which arms come in: fewer than `wanted` others can lie more than epsilon above them."""
    ranked = np.sort(upper)[::-1]
    rival = np.where(upper >= ranked[wanted - 1], ranked[wanted], ranked[wanted - 1])
    is_in: BoolArray = lower >= rival - epsilon
    if is_last or np.count_nonzero(is_in) > wanted:  # at the last level the m largest all do, up to rounding
        chosen = largest(lower if is_last else np.where(is_in, lower, -np.inf), wanted)
        is_in = np.zeros(len(lower), dtype=np.bool_)
        is_in[chosen] = True
    return is_in


def _at_next_level(state: Open) -> Open:
    """Return the state at the next level at which pulls are due; at the last level they are, if at any."""
    while True:
        state = replace(state, levels_left=state.levels_left - 1)
        if state.levels_left == 0 or (_due(state) > state.counts).any():
            return state


def _due(state: Open) -> IntArray:
    amounts: FloatArray = np.ceil(state.last[state.arms] * 2.0 ** (-state.levels_left / _PER_DOUBLING))
    return amounts.astype(np.int64)


def _last(problem: Problem) -> FloatArray:
    return enough(problem) * problem.variances / problem.epsilon**2


def worst_case_pulls(problem: Problem) -> int:
    """Return the most pulls, taken if no arm is settled before the last level."""
    return int(whole_pulls(problem.variances.shape, lambda block: _last(problem)[block], "Racing").sum())


def n_rounds(problem: Problem) -> int:
    """Return the number of levels."""
    return 1 + max(0, math.ceil(_PER_DOUBLING * math.log2(_last(problem).max())))


RACING = strategy(
    "racing",
    "Racing: pulls all open arms together and settles them one by one: adaptive, with a maximum "
    "number of pulls.",
    "[EMM06], [HRMS21]",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=lambda problem: guarantee(problem, "[EMM06] with [HRMS21]"),
    worst_case_pulls=worst_case_pulls,
    n_rounds=n_rounds,
    is_baseline=True,
)
