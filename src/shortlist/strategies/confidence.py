"""Shared by LUCB and UGapE: confidence intervals for every arm and a few pulls at a time.

Both pull each arm once and then, step by step, the one or two arms for which it is least clear on which side
of the cut they lie. They differ in the exploration rate, in the choice of these arms and in the stopping
rule: the `Rule`.

A step changes one or two arms of perhaps many thousands. So a state keeps a *focus*, the arms that can
matter during the next pulls, and for all others only upper bounds that hold until then. A rule looks at the
focus alone and reports whether those bounds prove that this is enough; if not, a new focus is chosen. Every
decision is the same as if all arms had been examined.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, at, flat_index, largest
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

_HORIZON = 256.0  # pulls for which a focus is meant to last
_SPARE = 64  # arms in focus beyond those that matter now


class Rest(NamedTuple):
    """Upper bounds for the arms out of focus, valid until `until` pulls in total."""

    key: FloatArray
    upper: FloatArray
    until: float


class Choice(NamedTuple):
    """The decision of a rule, as positions in the focus.

    `gap` is the remaining uncertainty; `is_sure` says whether arms out of focus cannot change the decision.
    """

    selected: IntArray
    contenders: IntArray
    gap: FloatArray
    is_sure: BoolArray


@dataclass(frozen=True)
class Rule:
    """The decisions that tell one strategy from another.

    Attributes
    ----------
    rate
        ``rate(problem, n_pulls)``: the exploration rate; half-widths are proportional to its square root.
    key
        ``key(means, half_widths)``: the statistic that ranks arms; it must not increase with the half-width.
    choose
        ``choose(m, means, half_widths, rest)``: which arms are in, and which to pull next.
    """

    rate: Callable[[Problem, FloatArray], FloatArray]
    key: Callable[[FloatArray, FloatArray], FloatArray]
    choose: Callable[[int, FloatArray, FloatArray, Rest], Choice]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Observations of some arms, which are on the last axis.

    `radii` are half-widths divided by the square root of the exploration rate.
    """

    counts: FloatArray
    means: FloatArray
    radii: FloatArray


@dataclass(frozen=True, eq=False)
class Start:
    """Every arm awaits its first pull."""

    problem: Problem
    lanes: Lanes


@dataclass(frozen=True, eq=False)
class Open:
    """Every arm has been pulled; the contenders await one more pull each.

    Attributes
    ----------
    known
        All arms, as of the time when the focus was chosen.
    focus, seen
        The arms in focus, in increasing order, and their current observations.
    rest
        Bounds on all others.
    n_pulls
        The total number of pulls, per lane.
    selected, contenders
        The arms that are in, and the positions in the focus of the arms to pull next.
    is_final
        Per lane, whether the remaining uncertainty is below epsilon.
    """

    problem: Problem
    known: Intervals
    focus: IntArray
    seen: Intervals
    rest: Rest
    n_pulls: FloatArray
    selected: IntArray
    contenders: IntArray
    is_final: BoolArray


State: TypeAlias = Start | Open | Done


def init(problem: Problem, lanes: Lanes = ()) -> State:
    """Return the first state."""
    return Done(all_arms(problem, lanes)) if problem.m == problem.n else Start(problem, lanes)


def ask(state: State) -> Batch:
    """Return one pull of every arm at first, then one of each contender."""
    match state:
        case Done():
            return nothing_to_ask(state.selected.shape[:-1])
        case Start():
            arms = all_arms(state.problem, state.lanes)
            return Batch(arms, np.ones(arms.shape, dtype=np.int64))
        case Open() if state.is_final.all():
            return nothing_to_ask(state.is_final.shape)
        case Open():
            counts = np.broadcast_to(~state.is_final[..., None], state.contenders.shape)
            return Batch(at(state.focus, state.contenders), counts.astype(np.int64))


def strategy(
    name: str, summary: str, rule: Rule, guarantee: Callable[[Problem], Guarantee]
) -> Strategy[State]:
    """Return the strategy that decides by this rule."""
    return Strategy(
        name=name,
        summary=summary,
        source="[ZT22] Section 5.1",
        init=init,
        ask=ask,
        tell=tells(rule),
        verdict=verdict,
        guarantee=guarantee,
        worst_case_pulls=_nothing_or_no_bound,
        n_rounds=_nothing_or_no_bound,
        take_lanes=take_lanes,
    )


def _nothing_or_no_bound(problem: Problem) -> int | None:
    return 0 if problem.m == problem.n else None


def tells(rule: Rule) -> Callable[[State, Moments], State]:
    """Return the `tell` of a strategy that decides by this rule."""

    def tell(state: State, told: Moments) -> State:
        means = np.ascontiguousarray(told.means)  # entries are set by flat index, so arrays are contiguous
        match state:
            case Start(problem=problem):
                radii = np.array(np.broadcast_to(np.sqrt(2 * problem.variances), means.shape))
                known = Intervals(np.ones(means.shape), np.array(means), radii)
                return _refocused(rule, problem, known, np.full(means.shape[:-1], float(problem.n)))
            case Open() if not state.is_final.all():
                return _after_pulls(rule, state, means)
            case _:
                return state

    return tell


def verdict(state: State) -> Verdict:
    """Return the selection of every lane, final where the remaining uncertainty is below epsilon."""
    match state:
        case Done():
            return decided(state.selected)
        case Start():
            return undecided(state.lanes)
        case Open():
            return Verdict(state.selected, state.is_final)


def take_lanes(state: State, is_kept: BoolArray) -> State:
    """Return the state restricted to some lanes."""
    match state:
        case Done():
            return Done(state.selected[is_kept])
        case Start():
            return replace(state, lanes=(int(is_kept.sum()),))
        case Open():
            return replace(
                state,
                known=_taken(state.known, is_kept),
                seen=_taken(state.seen, is_kept),
                rest=state.rest._replace(key=state.rest.key[is_kept], upper=state.rest.upper[is_kept]),
                focus=state.focus[is_kept],
                n_pulls=state.n_pulls[is_kept],
                selected=state.selected[is_kept],
                contenders=state.contenders[is_kept],
                is_final=state.is_final[is_kept],
            )


def _taken(intervals: Intervals, is_kept: BoolArray) -> Intervals:
    return Intervals(intervals.counts[is_kept], intervals.means[is_kept], intervals.radii[is_kept])


def _after_pulls(rule: Rule, state: Open, rewards: FloatArray) -> Open:
    """Return the state after one reward for each contender of every lane that is not final."""
    pulled = ~state.is_final[..., None]
    where = flat_index(state.focus.shape, state.contenders)
    counts, means, radii = state.seen.counts.copy(), state.seen.means.copy(), state.seen.radii.copy()
    old = means.reshape(-1)[where]
    n_each = counts.reshape(-1)[where] + pulled
    counts.reshape(-1)[where] = n_each
    means.reshape(-1)[where] = np.where(pulled, old + (rewards - old) / n_each, old)
    variances = state.problem.variances[state.focus.reshape(-1)[where]]
    radii.reshape(-1)[where] = np.sqrt(2 * variances / n_each)
    n_pulls = state.n_pulls + state.contenders.shape[-1] * pulled[..., 0]
    after = replace(state, seen=Intervals(counts, means, radii), n_pulls=n_pulls)
    if n_pulls.max() <= state.rest.until:
        choice = _choose(rule, after)
        if choice.is_sure.all():
            return _decided(after, choice)
    return _refocused(rule, state.problem, _merged(after), n_pulls)


def _choose(rule: Rule, state: Open) -> Choice:
    root = np.sqrt(rule.rate(state.problem, state.n_pulls))[..., None]
    half_widths = state.seen.radii * root  # [ZT22] Sec. 5.1, adapting other algorithms
    return rule.choose(state.problem.m, state.seen.means, half_widths, state.rest)


def _decided(state: Open, choice: Choice) -> Open:
    return replace(
        state,
        selected=at(state.focus, choice.selected),
        contenders=choice.contenders,
        is_final=np.asarray(choice.gap < state.problem.epsilon),
    )


def _merged(state: Open) -> Intervals:
    """Return the current observations of all arms."""
    where = flat_index(state.known.means.shape, state.focus)
    merged = Intervals(state.known.counts.copy(), state.known.means.copy(), state.known.radii.copy())
    merged.counts.reshape(-1)[where] = state.seen.counts
    merged.means.reshape(-1)[where] = state.seen.means
    merged.radii.reshape(-1)[where] = state.seen.radii
    return merged


def _refocused(rule: Rule, problem: Problem, known: Intervals, n_pulls: FloatArray) -> Open:
    """Return the state with a new focus: a small one if that decides, else all arms for a while."""
    size = 2 * problem.m + _SPARE
    if size < problem.n:
        state = _focused(rule, problem, known, n_pulls, size)
        choice = _choose(rule, state)
        if choice.is_sure.all():
            return _decided(state, choice)
    state = _focused(rule, problem, known, n_pulls, problem.n)
    return _decided(state, _choose(rule, state))


def _focused(rule: Rule, problem: Problem, known: Intervals, n_pulls: FloatArray, size: int) -> Open:
    """Return a state whose focus is the `size` arms that may rank highest; it has not decided yet."""
    later = n_pulls + _HORIZON
    if size >= problem.n:
        focus = all_arms(problem, n_pulls.shape)
        nothing = np.full(n_pulls.shape, -np.inf)
        rest = Rest(nothing, nothing, float(later.max()) if 2 * problem.m + _SPARE < problem.n else np.inf)
        seen = known
    else:
        key = rule.key(known.means, known.radii * np.sqrt(rule.rate(problem, n_pulls))[..., None])
        upper = known.means + known.radii * np.sqrt(rule.rate(problem, later))[..., None]
        leading = flat_index(upper.shape, largest(key, problem.m + _SPARE // 4))
        upper_or_leading = upper.copy()
        upper_or_leading.reshape(-1)[leading] = np.inf
        focus = largest(upper_or_leading, size)
        bounds = (without(key, focus).max(axis=-1), without(upper, focus).max(axis=-1))
        rest = Rest(*bounds, float(later.max()))
        seen = Intervals(at(known.counts, focus), at(known.means, focus), at(known.radii, focus))
    none = np.empty((*n_pulls.shape, 0), dtype=np.int64)
    undecided_yet = np.zeros(n_pulls.shape, dtype=np.bool_)
    return Open(problem, known, focus, seen, rest, n_pulls, none, none, undecided_yet)


def without(values: FloatArray, indices: IntArray) -> FloatArray:
    """Return a copy in which the entries at the indices given for each lane are minus infinity."""
    rest = np.array(values, order="C")  # so that its flat form is a view
    rest.reshape(-1)[flat_index(values.shape, indices)] = -np.inf
    return rest
