"""Weighted naive elimination: pull every arm in proportion to its noise, keep the m best means.

Reads beside [ZT22] Section 5.1 and Lemma 5.1. Rounding a pull count up is the only departure.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from shortlist.arrays import FloatArray, IntArray, at_largest
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.protocol import (
    Batch,
    Done,
    Lanes,
    Strategy,
    Verdict,
    all_arms,
    decided,
    nothing_to_ask,
    undecided,
)


@dataclass(frozen=True, eq=False)
class Open:
    """Every arm in `arms`, of the given variance, awaits its one batch of pulls."""

    m: int
    epsilon: float
    delta: float
    arms: IntArray
    variances: FloatArray


State: TypeAlias = Open | Done


def init(problem: Problem, lanes: Lanes = ()) -> State:
    """Return the first state for a whole problem."""
    arms = all_arms(problem, lanes)
    return start(
        problem.m, problem.epsilon, problem.delta, arms, np.broadcast_to(problem.variances, arms.shape)
    )


def start(m: int, epsilon: float, delta: float, arms: IntArray, variances: FloatArray) -> State:
    """Return the first state for the arms given, which may differ from lane to lane."""
    if arms.shape[-1] <= m:
        return Done(arms)
    return Open(m, epsilon, delta, arms, variances)


def ask(state: State) -> Batch:
    """Return the pulls still needed."""
    if isinstance(state, Done):
        return nothing_to_ask(state.selected.shape[:-1])
    return Batch(state.arms, pulls(state.variances, state.epsilon, state.delta))


def tell(state: State, means: FloatArray) -> State:
    """Return the final state: the m arms with the largest means are selected."""
    if isinstance(state, Done):
        return state
    return Done(at_largest(state.arms, means, state.m))  # [ZT22] Sec. 5.1, WNElim: the m largest means


def verdict(state: State) -> Verdict:
    """Return the selection, once there is one."""
    return decided(state.selected) if isinstance(state, Done) else undecided(state.arms.shape[:-1])


def pulls(variances: FloatArray, epsilon: float, delta: float) -> IntArray:
    """Return how often to pull each arm so that all means are good to epsilon/2 together."""
    share = delta / variances.sum(axis=-1, keepdims=True)

    def amounts(block: slice) -> FloatArray:
        logs: FloatArray = variances[..., block] * share  # [ZT22] Lemma 5.1, omega_i
        np.log(logs, out=logs)
        logs *= variances[..., block]
        logs *= -2 / (epsilon / 2) ** 2  # [ZT22] Sec. 5.1, WNElim: 2 s^2 / (eps/2)^2 ln(1/omega_i)
        return logs

    return whole_pulls(variances.shape, amounts, "Weighted naive elimination")


def worst_case_pulls(problem: Problem) -> int:
    """Return the number of pulls, which is the same on every instance."""
    if problem.m == problem.n:
        return 0
    return int(pulls(problem.variances, problem.epsilon, problem.delta).sum())


def closed_form_pulls(problem: Problem) -> float:
    """Return the total of Lemma 5.1, before pulls are rounded up to whole ones."""
    variances = problem.variances
    total = float(variances.sum())
    entropy = -float((variances / total * np.log(variances / total)).sum())
    return 8 * total / problem.epsilon**2 * (-math.log(problem.delta) + entropy)  # [ZT22] Lemma 5.1


def _guarantee(problem: Problem) -> Guarantee:
    event = "some arm's sample mean is off by epsilon/2 or more, towards the cut"
    return Guarantee.of(problem, "[ZT22] Lemma 5.1", Ledger((Share(event, problem.delta),)))


WNELIM: Strategy[State] = Strategy(
    name="wnelim",
    summary="Weighted naive elimination: one batch for every arm, sized by its variance.",
    source="[ZT22] Lemma 5.1",
    init=init,
    ask=ask,
    tell=tell,
    verdict=verdict,
    guarantee=_guarantee,
    worst_case_pulls=worst_case_pulls,
    n_rounds=lambda problem: 0 if problem.m == problem.n else 1,
)
