"""Elimination in levels: take fresh pulls of the survivors, keep the best of them, repeat.

Median elimination and its variants differ only in how many arms each level keeps and how precisely it
measures them. Both are known in advance, so each of these strategies is a schedule of `Level`s, and the
code for running a level is here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from shortlist.arrays import FloatArray, IntArray, at_largest, blocks
from shortlist.certificates import Guarantee
from shortlist.problem import Problem, countable, whole_pulls
from shortlist.strategies.protocol import (
    Batch,
    Lanes,
    Moments,
    Strategy,
    Verdict,
    all_arms,
    decided,
    nothing_to_ask,
    undecided,
)


@dataclass(frozen=True)
class Level:
    """One level of an elimination schedule.

    Attributes
    ----------
    n_arms, keep
        The number of arms measured, and the number of those that survive.
    epsilon, delta
        The loss in mean that the level may cause, and the failure probability in its sample-size formula.
    pulls_per_variance
        The number of pulls of an arm, before rounding up, per unit of its variance.
    """

    n_arms: int
    keep: int
    epsilon: float
    delta: float
    pulls_per_variance: float


Schedule: TypeAlias = tuple[Level, ...]


@dataclass(frozen=True, eq=False)
class State:
    """The survivors, the variances of all arms, and the levels still to come.

    `variances` has one entry per arm of the problem, or a single entry if all survivors share it.
    """

    variances: FloatArray
    arms: IntArray
    levels: Schedule


def strategy(
    name: str,
    summary: str,
    source: str,
    *,
    schedule: Callable[[Problem], Schedule],
    guarantee: Callable[[Problem], Guarantee | None],
    n_selected: Callable[[Problem], int] = lambda problem: problem.m,
) -> Strategy[State]:
    """Return the strategy that eliminates by this schedule."""
    return Strategy(
        name=name,
        summary=summary,
        source=source,
        init=starts_with(schedule),
        ask=ask,
        tell=tell,
        verdict=verdict,
        guarantee=guarantee,
        worst_case_pulls=lambda problem: most_pulls(schedule(problem), problem.variances),
        n_rounds=lambda problem: len(schedule(problem)),
        n_selected=n_selected,
    )


def starts_with(schedule: Callable[[Problem], Schedule]) -> Callable[[Problem, Lanes], State]:
    """Return the `init` of a strategy that eliminates by this schedule."""

    def init(problem: Problem, lanes: Lanes = ()) -> State:
        variances = shared(problem.variances, problem.arms)
        return State(variances, all_arms(problem, lanes), schedule(problem))

    return init


def shared(variances: FloatArray, arms: IntArray) -> FloatArray:
    """Return the variance that these arms share, or the variances of all arms if they differ."""
    first = variances[arms[0]]
    is_shared = all((variances[arms[block]] == first).all() for block in blocks(arms.shape))
    return variances[arms[:1]] if is_shared else variances


def ask(state: State) -> Batch:
    """Return fresh pulls of every survivor, as many as the next level needs."""
    if not state.levels:
        return nothing_to_ask(state.arms.shape[:-1])
    return Batch(state.arms, _pulls(state.levels[0], state.variances, state.arms))


def tell(state: State, told: Moments) -> State:
    """Return the state after keeping the best arms of the level."""
    if not state.levels:
        return state
    survivors = at_largest(state.arms, told.means, state.levels[0].keep)
    return replace(state, arms=survivors, levels=state.levels[1:])


def verdict(state: State) -> Verdict:
    """Return the survivors of the last level, once it is over."""
    return undecided(state.arms.shape[:-1]) if state.levels else decided(state.arms)


def most_pulls(schedule: Schedule, variances: FloatArray) -> int:
    """Return the most pulls that a schedule can take, which is when the noisiest arms survive every level."""
    falling = np.sort(variances)[::-1]
    total = sum(int(_pulls(level, falling, np.arange(level.n_arms)).sum()) for level in schedule)
    return countable(total, "Elimination in all its levels")


def _pulls(level: Level, variances: FloatArray, arms: IntArray) -> IntArray:
    purpose = f"Elimination to within {level.epsilon:.3g}"
    if len(variances) == 1:
        each = variances * level.pulls_per_variance
        whole_pulls((1,), lambda _: each * arms.shape[-1], purpose)  # raises if the sum is too large
        return np.broadcast_to(whole_pulls((1,), lambda _: each, purpose), arms.shape)

    def amounts(block: slice) -> FloatArray:
        return variances[arms[..., block]] * level.pulls_per_variance

    return whole_pulls(arms.shape, amounts, purpose)
