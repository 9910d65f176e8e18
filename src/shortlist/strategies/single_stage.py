"""One batch for every arm, as small as the convolution certificate allows.

Like weighted naive elimination it pulls every arm once and selects the m largest sample means. But it
does not ask every mean to be good to epsilon/2: it suffices that no two errors add up to epsilon. That
takes about half as many pulls. How the information is spread over arms of different variance is chosen
for the problem.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from shortlist.arrays import FloatArray, IntArray, largest
from shortlist.bounds.classes import Classes
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.certificates.convolution import failure_probability
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

_SLOPES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
_MOST_CLASSES = 64


@dataclass(frozen=True)
class Allocation:
    """How much information every arm gets: `level` for the noisiest, and more for the others.

    An arm of variance s gets ``level * (1 + slope * ln(largest / s))``.
    """

    level: float
    slope: float
    largest: float

    def information(self, variances: FloatArray) -> FloatArray:
        """Return the information of arms with these variances."""
        found: FloatArray = self.level * (1 + self.slope * np.log(self.largest / variances))
        return found


@dataclass(frozen=True, eq=False)
class Open:
    """Every arm awaits its one batch."""

    problem: Problem
    allocation: Allocation
    lanes: Lanes


State: TypeAlias = Open | Done


def init(problem: Problem, lanes: Lanes = ()) -> State:
    """Return the first state."""
    if problem.m == problem.n:
        return Done(all_arms(problem, lanes))
    return Open(problem, allocation(problem), lanes)


def ask(state: State) -> Batch:
    """Return the pulls still needed."""
    if isinstance(state, Done):
        return nothing_to_ask(state.selected.shape[:-1])
    arms = all_arms(state.problem, state.lanes)
    return Batch(arms, np.broadcast_to(pulls(state.problem, state.allocation), arms.shape))


def tell(state: State, means: FloatArray) -> State:
    """Return the final state: the m arms with the largest means are selected."""
    return state if isinstance(state, Done) else Done(largest(means, state.problem.m))


def verdict(state: State) -> Verdict:
    """Return the selection, once there is one."""
    return decided(state.selected) if isinstance(state, Done) else undecided(state.lanes)


def pulls(problem: Problem, spread: Allocation) -> IntArray:
    """Return how often to pull each arm: information x takes 2 s x / epsilon^2 pulls."""

    def amounts(block: slice) -> FloatArray:
        variances = problem.variances[block]
        return 2 * variances * spread.information(variances) / problem.epsilon / problem.epsilon

    return whole_pulls(problem.variances.shape, amounts, "A single stage")


def allocation(problem: Problem) -> Allocation:
    """Return the cheapest allocation found that fails with probability delta at most.

    It depends on m, delta and the ratios of the variances, not on epsilon or on the order of the arms.
    """
    unit = float(problem.variances.max())
    arms = Classes.of_arms(problem.variances / unit).few(_MOST_CLASSES)
    level, slope = _cheapest(problem.m, problem.delta, _frozen(arms), arms.ratio)
    return Allocation(level, slope, unit)


def _frozen(arms: Classes) -> tuple[tuple[float, float, float], ...]:
    columns = (arms.variances.tolist(), arms.counts.tolist(), arms.sums.tolist())
    return tuple(zip(*columns, strict=True))


@lru_cache(maxsize=64)
def _cheapest(
    m: int, delta: float, arms: tuple[tuple[float, float, float], ...], ratio: float
) -> tuple[float, float]:
    """Return the level and the slope of the cheapest allocation, roughly first and then exactly."""
    from scipy.optimize import brentq  # noqa: PLC0415  (scipy is slow to import)

    least, counts, sums = (np.array(column) for column in zip(*arms, strict=True))
    noisiest = np.minimum(least * ratio, 1.0)  # in each class; it gets the least information

    def shape(slope: float, variances: FloatArray) -> FloatArray:
        return np.asarray(1 - slope * np.log(variances))

    def level(slope: float, steps: int, tolerance: float) -> float:
        def excess(level: float) -> float:
            return math.log(
                failure_probability(level * shape(slope, noisiest), counts, m, steps=steps) / delta
            )

        enough = 4 * math.log(counts.sum() / delta) + 1  # where even naive elimination is certified
        return float(brentq(excess, 0.0, enough, xtol=tolerance))

    slope = min(_SLOPES, key=lambda slope: level(slope, 256, 1e-3) * float(sums @ shape(slope, least)))
    found = level(slope, 2048, 1e-9)
    while failure_probability(found * shape(slope, noisiest), counts, m) > delta:
        found *= 1 + 1e-9
    return found, slope


def worst_case_pulls(problem: Problem) -> int:
    """Return the number of pulls, which is the same on every instance."""
    return 0 if problem.m == problem.n else int(pulls(problem, allocation(problem)).sum())


def _guarantee(problem: Problem) -> Guarantee:
    event = "two errors, towards the cut, add up to more than epsilon"
    return Guarantee.of(problem, "docs/theory.md, section 16", Ledger((Share(event, problem.delta),)))


SINGLE_STAGE: Strategy[State] = Strategy(
    name="single-stage",
    summary="One batch for every arm, as small as the convolution certificate allows.",
    source="docs/theory.md, section 16",
    init=init,
    ask=ask,
    tell=tell,
    verdict=verdict,
    guarantee=_guarantee,
    worst_case_pulls=worst_case_pulls,
    n_rounds=lambda problem: 0 if problem.m == problem.n else 1,
)
