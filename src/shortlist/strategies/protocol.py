"""What every strategy is: a frozen state, pure functions on it, and what it promises.

A strategy never measures anything. `ask` returns which arms to pull and how often; `tell` takes the means of
each arm's new rewards, in the same order, and their variances if they are known, and returns the next state;
`verdict` returns what has been decided. Arms are the last axis of every array. Leading axes are *lanes*:
independent runs of the same problem, advanced together, each exactly as it would be alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates import Guarantee
from shortlist.problem import Problem

Asked: TypeAlias = Any
"""What a strategy is asked: a `Problem`."""

Lanes: TypeAlias = tuple[int, ...]
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Batch:
    """The fresh pulls a strategy needs before it can decide again; empty when it has decided.

    Attributes
    ----------
    arms
        The arms to pull, each at most once per lane; shape ``(*lanes, k)``.
    counts
        How often to pull each; same shape. Zero where a lane asks for fewer arms than others: what stands
        there in `arms` means nothing.
    """

    arms: IntArray
    counts: IntArray


@dataclass(frozen=True, eq=False)
class Moments:
    """What the rewards of a batch showed of each of its arms.

    Attributes
    ----------
    means
        The mean of each arm's new rewards; shape ``(*lanes, k)`` like the batch.
    variances
        Their sample variances (with the number of rewards minus one in the denominator); None if these were
        not measured. After a pilot for unknown variances they always are.
    """

    means: FloatArray
    variances: FloatArray | None = None

    def map(self, change: Callable[[FloatArray], FloatArray]) -> "Moments":
        """Return the moments with each of the arrays changed in the same way."""
        return Moments(change(self.means), None if self.variances is None else change(self.variances))


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a strategy has decided.

    Attributes
    ----------
    selected
        The arms chosen, in rising order; shape ``(*lanes, k)``. Meaningful where `is_final`.
    is_final
        Per lane, whether the strategy has ended by its own rule.
    """

    selected: IntArray
    is_final: BoolArray


@dataclass(frozen=True, eq=False)
class Done:
    """The last state of a strategy that ends in all lanes at once."""

    selected: IntArray


@dataclass(frozen=True)
class Strategy(Generic[S]):
    """One algorithm: how it decides and what it promises.

    Attributes
    ----------
    name, summary, source
        What users call it, one sentence on it, and where it is defined.
    init, ask, tell, verdict
        The algorithm: ``init(problem, lanes)``, ``ask(state)``, ``tell(state, moments)``, ``verdict(state)``.
    guarantee
        The promise made for a problem, or None where nothing is proved.
    worst_case_pulls
        The most pulls it can ever ask for on a problem, or None where there is no finite bound.
    n_rounds
        The most batches it can ask for, one after the other; None where there is no finite bound.
    n_selected
        How many arms it returns.
    take_lanes
        ``take_lanes(state, is_kept)`` where lanes end one by one; None where they end together.
    unfit
        Why it cannot take a problem at all; empty if it can.
    cap_from
        Where the most pulls are known only after a pilot: ``cap_from(state)`` returns them, once they are.
    usual_share
        What part of its worst case it takes on hard instances, roughly; below 1 if it adapts. Only the
        choice among certified strategies depends on it, never a guarantee.
    """

    name: str
    summary: str
    source: str
    init: Callable[[Asked, Lanes], S]
    ask: Callable[[S], Batch]
    tell: Callable[[S, Moments], S]
    verdict: Callable[[S], Verdict]
    guarantee: Callable[[Asked], Guarantee | None]
    worst_case_pulls: Callable[[Asked], int | None]
    n_rounds: Callable[[Asked], int | None]
    n_selected: Callable[[Asked], int] = lambda problem: problem.m
    take_lanes: Callable[[S, BoolArray], S] | None = None
    unfit: Callable[[Asked], str] = lambda _: ""
    usual_share: float = 1.0
    cap_from: Callable[[S], int | None] | None = None


def all_arms(problem: Problem, lanes: Lanes) -> IntArray:
    """Return every arm of the problem, in every lane."""
    return np.broadcast_to(problem.arms, (*lanes, problem.n))


def nothing_to_ask(lanes: Lanes) -> Batch:
    """Return the batch of a strategy that has ended."""
    nothing = np.empty((*lanes, 0), dtype=np.int64)
    return Batch(nothing, nothing)


def undecided(lanes: Lanes) -> Verdict:
    """Return the verdict of a strategy that has not ended in any lane."""
    return Verdict(np.empty((*lanes, 0), dtype=np.int64), np.zeros(lanes, dtype=np.bool_))


def decided(selected: IntArray) -> Verdict:
    """Return the verdict of a strategy that has ended in every lane."""
    return Verdict(selected, np.ones(selected.shape[:-1], dtype=np.bool_))


def only_one(problem: Problem) -> str:
    """Return why the problem is refused, if it is."""
    if problem.m in {1, problem.n}:
        return ""
    return f"it selects one arm only, and m is {problem.m}"
