"""Turn a strategy written for a single run into one that runs many lanes, each with its own state.

If lanes ask for different arms at different times, arrays over all lanes would be mostly empty. Such a
strategy is written for a single run, and `strategy` extends it to any number of lanes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeAlias, TypeVar, cast

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.certificates import Guarantee
from shortlist.problem import Problem
from shortlist.strategies.protocol import (
    Anytime,
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

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Abreast(Generic[S]):
    """The states of all lanes, in order."""

    lanes: Lanes
    states: tuple[S | Done, ...]


State: TypeAlias = S | Done | Abreast[S]


def strategy(
    name: str,
    summary: str,
    source: str,
    *,
    init: Callable[[Any], S],
    ask: Callable[[S], Batch],
    tell: Callable[[S, Moments], S | Done],
    guarantee: Callable[[Any], Guarantee | None],
    worst_case_pulls: Callable[[Any], int | None],
    n_rounds: Callable[[Any], int | None],
    unfit: Callable[[Any], str] = lambda _: "",
    usual_share: float = 1.0,
    is_baseline: bool = False,
    cap_from: Callable[[S], int | None] | None = None,
    worst_case_cost: Callable[[Any], float | None] | None = None,
    anytime: Anytime[S | Done] | None = None,
    needs_variances: bool = False,
    likely_ends: Callable[[S], FloatArray] | None = None,
    estimates: Callable[[Any], FloatArray] | None = None,
) -> Strategy[Any]:
    """Return the strategy made of a single run's functions, for any lanes. If m = n, it pulls nothing.

    A run has ended once `init` or `tell` returns `Done`; `ask` and `tell` are only called while it is open.
    What it can do at any moment is for single runs only, and not for m = n, where a run has ended before it
    began.
    """

    def first(problem: Problem) -> S | Done:
        return Done(all_arms(problem, ())) if problem.m == problem.n else init(problem)

    def ask_one(state: S | Done) -> Batch:
        return nothing_to_ask(()) if isinstance(state, Done) else ask(state)

    def tell_one(state: S | Done, told: Moments) -> S | Done:
        return state if isinstance(state, Done) else tell(state, told)

    def init_all(problem: Problem, lanes: Lanes = ()) -> State[S]:
        return Abreast(lanes, (first(problem),) * prod(lanes)) if lanes else first(problem)

    def ask_all(state: State[S]) -> Batch:
        if not isinstance(state, Abreast):
            return ask_one(state)
        return _side_by_side(state.lanes, [ask_one(one) for one in state.states])

    def tell_all(state: State[S], told: Moments) -> State[S]:
        if not isinstance(state, Abreast):
            return tell_one(state, told.map(np.ascontiguousarray))
        rows = told.map(lambda values: values.reshape(len(state.states), -1))
        return Abreast(state.lanes, tuple(tell_lane(rows, *lane) for lane in enumerate(state.states)))

    def tell_lane(rows: Moments, lane: int, state: S | Done) -> S | Done:
        n_arms = len(ask_one(state).arms)
        return tell_one(state, rows.map(lambda values: np.ascontiguousarray(values[lane, :n_arms])))

    def cap_of(state: State[S]) -> int | None:
        is_open = cap_from is not None and not isinstance(state, Done | Abreast)
        return cap_from(state) if is_open else None  # type: ignore[misc,arg-type]

    return Strategy(
        name=name,
        summary=summary,
        source=source,
        init=init_all,
        ask=ask_all,
        tell=tell_all,
        verdict=_verdict,
        guarantee=guarantee,
        worst_case_pulls=lambda problem: 0 if problem.m == problem.n else worst_case_pulls(problem),
        n_rounds=lambda problem: 0 if problem.m == problem.n else n_rounds(problem),
        take_lanes=_take_lanes,
        unfit=unfit,
        usual_share=usual_share,
        is_baseline=is_baseline,
        cap_from=None if cap_from is None else cap_of,
        worst_case_cost=worst_case_cost,
        anytime=anytime,
        needs_variances=needs_variances,
        likely_ends=likely_ends,
        estimates=estimates,
    )


def _side_by_side(lanes: Lanes, batches: list[Batch]) -> Batch:
    """Return the batches as one. A lane that asks for fewer arms than others is padded with zero pulls."""
    width = max((len(batch.arms) for batch in batches), default=0)
    arms, counts = np.zeros((2, len(batches), width), dtype=np.int64)
    for lane, batch in enumerate(batches):
        arms[lane, : len(batch.arms)] = batch.arms
        counts[lane, : len(batch.arms)] = batch.counts
    return Batch(arms.reshape(*lanes, width), counts.reshape(*lanes, width))


def _verdict(state: State[Any]) -> Verdict:
    if not isinstance(state, Abreast):
        return decided(state.selected) if isinstance(state, Done) else undecided(())
    ended = [one.selected if isinstance(one, Done) else None for one in state.states]
    is_final = np.array([one is not None for one in ended], dtype=np.bool_).reshape(state.lanes)
    if not is_final.any():
        return undecided(state.lanes)
    width = max(len(one) for one in ended if one is not None)
    nothing = np.zeros(width, dtype=np.int64)
    selected = np.array([nothing if one is None else one for one in ended])
    return Verdict(selected.reshape(*state.lanes, width), is_final)


def _take_lanes(state: State[Any], is_kept: BoolArray) -> State[Any]:
    several = cast("Abreast[Any]", state)
    kept = tuple(one for one, is_one in zip(several.states, is_kept.reshape(-1), strict=True) if is_one)
    return Abreast((len(kept),), kept)
