"""Strategies with one batch: pull every arm a fixed number of times and select the m largest means.

They differ only in how often each arm is pulled and in what that proves. The rest is here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from shortlist.arrays import IntArray, at_largest
from shortlist.certificates import Guarantee
from shortlist.problem import Problem
from shortlist.strategies.protocol import (
    Batch,
    Done,
    Lanes,
    Moments,
    Strategy,
    Verdict,
    all_arms,
    decided,
    nothing_to_ask,
    undecided,
)


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms, which may differ between lanes, await their only batch; m of them will be selected."""

    m: int
    arms: IntArray
    counts: IntArray


State: TypeAlias = Open | Done


def strategy(
    name: str,
    summary: str,
    source: str,
    *,
    pulls: Callable[[Problem], IntArray],
    guarantee: Callable[[Problem], Guarantee | None],
    unfit: Callable[[Problem], str] = lambda _: "",
) -> Strategy[State]:
    """Return the strategy that pulls each arm this often, in one batch. If m = n, it pulls nothing."""

    def init(problem: Problem, lanes: Lanes = ()) -> State:
        arms = all_arms(problem, lanes)
        return Done(arms) if problem.m == problem.n else Open(problem.m, arms, pulls(problem))

    return Strategy(
        name=name,
        summary=summary,
        source=source,
        init=init,
        ask=ask,
        tell=tell,
        verdict=verdict,
        guarantee=guarantee,
        worst_case_pulls=lambda problem: 0 if problem.m == problem.n else int(pulls(problem).sum()),
        n_rounds=lambda problem: 0 if problem.m == problem.n else 1,
        unfit=unfit,
    )


def ask(state: State) -> Batch:
    """Return the pulls still needed."""
    if isinstance(state, Done):
        return nothing_to_ask(state.selected.shape[:-1])
    return Batch(state.arms, np.broadcast_to(state.counts, state.arms.shape))


def tell(state: State, told: Moments) -> State:
    """Return the final state: the m arms with the largest means are selected."""
    if isinstance(state, Done):
        return state
    return Done(at_largest(state.arms, told.means, state.m))  # [ZT22] Sec. 5.1, WNElim: the m largest means


def verdict(state: State) -> Verdict:
    """Return the selection, once there is one."""
    return decided(state.selected) if isinstance(state, Done) else undecided(state.arms.shape[:-1])
