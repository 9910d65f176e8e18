"""Frazier's procedure BIZ, for m = 1 and known variances: drop and stop by the odds of being best.

If the best mean lies epsilon above all others and these are equal, `exp(epsilon b mean_i)` is in proportion
to the probability that arm i is the best, given that all arms were equally likely to be. An arm is dropped
when that has become small, and what it had of the probability is charged to the failure allowed; the first
that is probable enough is selected. Like `bechhofer` it needs Gaussian rewards and promises nothing if
another mean lies within epsilon of the best. It spends all of delta, so it takes very few pulls.

The promise is proved for equal variances only. With unequal ones pulls in proportion to the variance are
rounded up to whole pulls, the arms are then not exactly equally well known, and no guarantee is given.

A departure from the paper: batches grow, by a 64th of the pulls so far (docs/theory.md, section 22).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.problem import Problem, countable
from shortlist.strategies.lanes import strategy
from shortlist.strategies.protocol import Batch, Done, Moments, only_one

_PACE = 64  # a batch adds one part in so many to the pulls


@dataclass(frozen=True, eq=False)
class Open:
    """The survivors await pulls.

    Attributes
    ----------
    arms, means, counts
        The survivors and what is known of them.
    time
        The pulls, not rounded, that an arm with the largest variance has had once the batch has been told.
    hurdle
        How probable the best survivor must be for being selected.
    """

    problem: Problem
    arms: IntArray
    means: FloatArray
    counts: IntArray
    time: int
    hurdle: float


def init(problem: Problem) -> Open:
    """Return the first state."""
    nothing = np.zeros(problem.n, dtype=np.int64)
    return Open(problem, problem.arms, np.zeros(problem.n), nothing, 1, 1 - problem.delta)


def ask(state: Open) -> Batch:
    """Return the pulls of the survivors that are due some."""
    due = _due(state.problem, state.arms, state.time) - state.counts
    return Batch(state.arms[due > 0], due[due > 0])


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state without the arms that have become improbable."""
    problem, counts = state.problem, _due(state.problem, state.arms, state.time)
    pooled, due = state.means.copy(), counts > state.counts
    fresh = counts[due] - state.counts[due]
    pooled[due] += (told.means - pooled[due]) * (fresh / counts[due])
    b = state.time / float(problem.variances.max())  # [F14] t / lambda^2
    scores = problem.epsilon * b * pooled
    weights = np.exp(scores - scores.max())  # [F14] q_tx(A)
    if weights.max() >= state.hurdle * math.fsum(weights):  # [F14] Alg. 1, stopping rule
        return Done(state.arms[[weights.argmax()]])
    is_kept, hurdle = screened(weights, state.hurdle, smallest_odds(problem))
    arms, counts = state.arms[is_kept], counts[is_kept]
    return Open(problem, arms, pooled[is_kept], counts, _next_time(problem, arms, counts, state.time), hurdle)


def screened(weights: FloatArray, hurdle: float, least: float) -> tuple[IntArray, float]:
    """Return which arms stay and the hurdle after the others were dropped, the least probable first."""
    order = np.argsort(weights, kind="stable")
    left = np.cumsum(weights[order][::-1])[::-1]  # the sum over arms still there when each has its turn
    n_out = int(np.argmax(weights[order] > least * left))  # [F14] Alg. 1, elimination
    return np.sort(order[n_out:]), hurdle * float(left[0] / left[n_out])  # [F14] Alg. 1, P / (1 - q)


def smallest_odds(problem: Problem) -> float:
    """Return c: an arm no more probable than this is dropped."""
    return -math.expm1(math.log1p(-problem.delta) / (problem.n - 1))  # [F14] Alg. 1, c


def _due(problem: Problem, arms: IntArray, time: int) -> IntArray:
    variances = problem.variances[arms]
    amounts: FloatArray = np.ceil(time * (variances / problem.variances.max()))  # [F14] n_i
    return amounts.astype(np.int64)


def _next_time(problem: Problem, arms: IntArray, counts: IntArray, time: int) -> int:
    """Return the next time at which some survivor is due a pull."""
    later = time + max(1, time // _PACE)
    while not (_due(problem, arms, later) > counts).any():
        later += max(1, later // _PACE)
    return countable(later, "BIZ, where arms tie without any noise,")


def _guarantee(problem: Problem) -> Guarantee | None:
    if problem.noise != "gaussian" or np.ptp(problem.variances) > 0:
        return None
    share = Share(
        "the best arm is dropped or passed over, though it leads by at least epsilon", problem.delta
    )
    source = "[F14]; docs/theory.md, section 22"
    promise = Guarantee.of_gaussian(problem, source, Ledger((share,)), Scope.CORRECT)
    return replace(promise, assumption=f"{promise.assumption}, which are equal")


BIZ = strategy(
    "biz",
    "Frazier's BIZ: one arm of Gaussian rewards, an indifference zone; proved for equal variances.",
    "[F14]",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    worst_case_pulls=lambda _: None,
    n_rounds=lambda _: None,
    unfit=only_one,
)
