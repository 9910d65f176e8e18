"""LUCB in batches, with intervals that hold at all times simultaneously and a cap on the number of pulls.

Follows [KTAS12]. The intervals of `mixture` depend on the arm's own pulls only, so there is no union bound
over times. A contender whose interval is no longer than epsilon is not pulled again; the other contender's
interval is longer then. So no arm is pulled much beyond that point, and the number of pulls has a cap.
"""

from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray, largest
from shortlist.problem import Problem, countable, whole_pulls
from shortlist.strategies.lanes import strategy
from shortlist.strategies.mixture import bounds, enough, guarantee
from shortlist.strategies.protocol import Batch, Done, Moments

_SHARE = 0.32  # pulls per batch, in units of variance / epsilon^2; 100 to 200 batches settle an arm
_WHAT = "LUCB on mixtures"


@dataclass(frozen=True, eq=False)
class Open:
    """The contenders await their batches: all arms at first, then one or two.

    `sizes` are the batch sizes of the arms, `most` the most pulls that each can need.
    """

    problem: Problem
    sizes: IntArray
    most: IntArray
    means: FloatArray
    counts: IntArray
    lower: FloatArray
    upper: FloatArray
    contenders: IntArray


def init(problem: Problem) -> Open:
    """Return the first state."""
    nothing, each = np.zeros(problem.n), sizes(problem)
    most = each * most_batches(problem)
    countable(int(most.sum()), _WHAT)
    return Open(problem, each, most, nothing, nothing.astype(np.int64), nothing, nothing, problem.arms)


def ask(state: Open) -> Batch:
    """Return one batch for every contender."""
    return Batch(state.contenders, state.sizes[state.contenders])


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state with the next contenders, or the m arms with the largest means."""
    problem, pulled = state.problem, state.contenders
    means_now, counts = state.means.copy(), state.counts.copy()
    lower, upper = state.lower.copy(), state.upper.copy()
    counts[pulled] += state.sizes[pulled]
    means_now[pulled] += (told.means - means_now[pulled]) * (state.sizes[pulled] / counts[pulled])
    lower[pulled], upper[pulled] = bounds(
        problem, means_now[pulled], counts[pulled].astype(np.float64), problem.variances[pulled]
    )
    selected = largest(means_now, problem.m)  # [KTAS12] LUCB, High^t
    weakest = selected[lower[selected].argmin()]  # [KTAS12] LUCB, h_*
    upper_out = upper.copy()
    upper_out[selected] = -np.inf
    strongest = upper_out.argmax()  # [KTAS12] LUCB, l_*
    pair = np.array([weakest, strongest])
    wide = pair[counts[pair] < state.most[pair]]
    if upper[strongest] - lower[weakest] <= problem.epsilon or not len(wide):  # [KTAS12] LUCB, stopping rule
        return Done(selected)
    return replace(state, means=means_now, counts=counts, lower=lower, upper=upper, contenders=wide)


def sizes(problem: Problem) -> IntArray:
    """Return the batch size of each arm."""

    def amounts(block: slice) -> FloatArray:
        return _SHARE * problem.variances[block] / problem.epsilon**2

    return whole_pulls(problem.variances.shape, amounts, _WHAT)


def most_batches(problem: Problem) -> IntArray:
    """Return the most batches per arm, enough to make its interval no longer than epsilon."""
    amounts = enough(problem) * problem.variances / problem.epsilon**2 / sizes(problem)
    return whole_pulls(amounts.shape, lambda block: amounts[block], _WHAT)


def worst_case_pulls(problem: Problem) -> int:
    """Return the largest possible number of pulls."""
    return countable(int(sizes(problem) @ most_batches(problem)), _WHAT)


def n_rounds(problem: Problem) -> int:
    """Return the most steps: all arms at once, then one batch of one arm at a time."""
    return 1 + int((most_batches(problem) - 1).sum())


LUCB_MIXTURE = strategy(
    "lucb-mixture",
    "LUCB in batches, with intervals that hold at all times: adaptive, with a maximum number of pulls.",
    "[KTAS12], [HRMS21]",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=lambda problem: guarantee(problem, "[KTAS12] with [HRMS21]"),
    worst_case_pulls=worst_case_pulls,
    n_rounds=n_rounds,
    is_baseline=True,
)
