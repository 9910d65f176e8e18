"""A top-two strategy for m = 1: pull the leader or its closest rival until every rival is settled.

Follows [JDK23]: the leader has the largest mean, and its rival is the arm with the weakest evidence that it
is at most epsilon better. The balance condition of [GJ04] decides which of the two to pull: the sum over all
other arms of squared counts divided by variances should equal the leader's. A pair is settled by a mixture
over both means; the proof does not depend on the choice of arms or the size of batches (docs/theory.md,
section 25). Each batch adds a 16th to the pulls of its arm.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem
from shortlist.strategies.lanes import strategy
from shortlist.strategies.mixture import prior_pulls
from shortlist.strategies.protocol import Batch, Done, Moments, only_one

_PACE = 16


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await a batch: all of them at first, then one."""

    problem: Problem
    means: FloatArray
    counts: IntArray
    pulled: IntArray


def init(problem: Problem) -> Open:
    """Return the first state."""
    nothing = np.zeros(problem.n, dtype=np.int64)
    return Open(problem, np.zeros(problem.n), nothing, problem.arms)


def ask(state: Open) -> Batch:
    """Return the batches that are due."""
    return Batch(state.pulled, 1 + state.counts[state.pulled] // _PACE)


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state with the next arm to pull, or the leader once no rival is left."""
    problem, pulled, fresh = state.problem, state.pulled, ask(state).counts
    pooled, counts = state.means.copy(), state.counts.copy()
    counts[pulled] += fresh
    pooled[pulled] += (told.means - pooled[pulled]) * (fresh / counts[pulled])
    leader = int(pooled.argmax())  # [JDK23] EB leader
    excess = evidence(problem, pooled, counts.astype(np.float64), leader)
    rival = int(excess.argmin())  # [JDK23] TC challenger
    if excess[rival] >= 0:
        return Done(np.array([leader]))
    weights = counts**2.0 * (problem.variances.max() / problem.variances)  # integers if variances are equal
    is_behind = 2 * weights[leader] < weights.sum()  # [GJ04] balance of the optimal shares
    return replace(state, means=pooled, counts=counts, pulled=np.array([leader if is_behind else rival]))


def evidence(problem: Problem, means: FloatArray, counts: FloatArray, leader: int) -> FloatArray:
    """Return by how much the evidence that an arm is not epsilon better than the leader exceeds its bar."""
    prior = prior_pulls(problem.variances, problem.epsilon)
    spreads = problem.variances * (counts + prior) / counts**2
    costs = np.log1p(counts / prior) / 2
    shifts = means[leader] - means + problem.epsilon
    proved = shifts**2 / (2 * (spreads + spreads[leader]))  # [JDK23] W_eps(i, j)
    bar = math.log((problem.n - 1) / problem.delta) + costs + costs[leader]
    excess: FloatArray = proved - bar
    excess[leader] = np.inf
    return excess


def _guarantee(problem: Problem) -> Guarantee:
    event = "for some other arm, the evidence against the best one exceeds its bar at some time"
    share = Share(event, problem.delta)
    return Guarantee.of(problem, "[JDK23] with [R70]; docs/theory.md, section 25", Ledger((share,)))


TOP_TWO = strategy(
    "top-two",
    "Top-two: pulls the leader or its closest rival. Selects one arm, without a maximum number of pulls.",
    "[JDK23], [GJ04]",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    worst_case_pulls=lambda _: None,
    n_rounds=lambda _: None,
    unfit=only_one,
    is_baseline=True,
)
