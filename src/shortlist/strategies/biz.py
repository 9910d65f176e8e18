"""Frazier's procedure BIZ for m = 1 and known variances, which drops arms by their odds of being best.

Suppose that the best mean lies epsilon above all others, that these are equal, and that a priori every arm
is equally likely to be the best. Then the posterior probability that arm i is the best is proportional to
`exp(epsilon b mean_i)`. An arm is dropped when that probability has become small, and the probability it had
is charged to the allowed failure probability; an arm that is probable enough is selected. Like `bechhofer`
it needs Gaussian rewards and promises nothing if another mean lies within epsilon of the best. It spends all
of delta, so it needs very few pulls.

The guarantee is proved for equal variances only. With unequal variances, pulls proportional to the variance
are rounded up, so the arms are not known exactly equally well, and no guarantee is given.

A departure from the paper: each batch adds a 64th of the pulls so far (docs/theory.md, section 22).
"""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.certificates.assumptions import EQUAL_GAUSSIAN
from shortlist.problem import Problem, countable
from shortlist.strategies.lanes import strategy
from shortlist.strategies.protocol import Batch, Done, Moments, only_one

_PACE = 64  # a batch increases the number of pulls by 1 / _PACE


@dataclass(frozen=True, eq=False)
class Open:
    """The survivors await pulls.

    Attributes
    ----------
    arms, means, counts
        The survivors, their means and how often they have been pulled.
    time
        The unrounded number of pulls that an arm with the largest variance will have had after this batch.
    hurdle
        The probability of being best at which an arm is selected.
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
    """Return the pulls due, for the survivors that are due any."""
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
    """Return which arms stay, and the hurdle after dropping the others, the least probable first."""
    order = np.argsort(weights, kind="stable")
    left = np.cumsum(weights[order][::-1])[::-1]  # the sum over the arms left at each arm's turn
    n_out = int(np.argmax(weights[order] > least * left))  # [F14] Alg. 1, elimination
    return np.sort(order[n_out:]), hurdle * float(left[0] / left[n_out])  # [F14] Alg. 1, P / (1 - q)


def smallest_odds(problem: Problem) -> float:
    """Return c, the probability at or below which an arm is dropped."""
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
    return Guarantee.of(problem, source, Ledger((share,)), Scope.CORRECT, assumptions=EQUAL_GAUSSIAN)


BIZ = strategy(
    "biz",
    "Frazier's BIZ: selects one arm, for Gaussian rewards and an indifference zone. Proved for equal "
    "variances.",
    "[F14]",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    worst_case_pulls=lambda _: None,
    n_rounds=lambda _: None,
    unfit=only_one,
)
