"""Pure functions that turn a request and the state of a run into events to append."""

import math
from collections.abc import Sequence

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import ChangedRun, FinalFailure, InvalidProblem, MeasurementFailed, NotAsked
from shortlist.measure import Summaries, check_summaries, declared, is_reward
from shortlist.problem import Problem
from shortlist.session.answers import Answers, check_variances
from shortlist.session.settings import NO_SCORE, SCORE
from shortlist.session.state import Round, RunState
from shortlist.session.worker_names import is_gone
from shortlist.store import (
    Answered,
    Bounded,
    Conflict,
    Ended,
    Event,
    Leased,
    Released,
    Scored,
    Told,
)
from shortlist.tickets import Tickets

_ROUNDING = 1e-13  # relative to the largest reward


# --- leases ---------------------------------------------------------------------------------------------


def reservation(
    round: Round, worker: str, now: float, lease: float, limit: int | None
) -> tuple[Tickets, list[Event]]:
    """Return tickets for a worker, those it already holds first, and the event that leases them."""
    is_free = free_for(round, worker, now)
    is_own = is_free & round.leases.is_held_by(worker)
    chosen = np.concatenate([np.flatnonzero(is_own), np.flatnonzero(is_free & ~is_own)])[:limit]
    tickets = round.tickets.take(np.sort(chosen))
    if is_own[chosen].all() and (round.leases.until(chosen) >= now + lease / 2).all():
        return tickets, []  # the worker asks again soon after
    return tickets, _leased(round, chosen, worker, now + lease)


def claim(
    history: RunState, calls: Tickets, worker: str, now: float, lease: float
) -> tuple[BoolArray, list[Event]]:
    """Return which of some tickets, or of their calls, a worker may measure now, and the events."""
    round = history.find(calls.round)
    places = round.places(calls.arms, is_repeating=True)
    parts = history.parts_of(round)
    numbers = parts.call_plan.find(calls)
    is_answered = (numbers >= 0) & parts.is_answered(numbers)
    is_its = free_for(round, worker, now)[places] & ~is_answered
    return is_its, _leased(round, np.unique(places[is_its]), worker, now + lease)


def renewal(round: Round, worker: str, until: float) -> list[Event]:
    """Return the event that extends the leases of a worker."""
    return _leased(round, _unanswered(round, worker), worker, until)


def return_of_tickets(round: Round, worker: str, by: str = "", begun: IntArray | None = None) -> list[Event]:
    """Return the event that releases a worker's open tickets: all that it holds, or some that it started."""
    places = _unanswered(round, worker)
    if begun is not None:
        places = round.places(begun)
        places = places[~round.is_told[places]]
    if not len(places):
        return []
    return [*_opening(round), Released(round.number, round.tickets.arms[places], worker, by)]


def handed_on(round: Round, worker: str, arms: IntArray, events: Sequence[Event]) -> list[Event]:
    """Return the event that releases arms of a worker to others, unless these events answer their tickets."""
    told = [event.arms for event in events if isinstance(event, Told)]
    left = np.setdiff1d(arms, np.concatenate(told)) if told else arms
    places = _unanswered(round, worker)
    places = places[np.isin(round.tickets.arms[places], left)]
    return [Released(round.number, round.tickets.arms[places], worker)] if len(places) else []


def free_for(round: Round, worker: str, now: float) -> BoolArray:
    """Return which tickets a worker may measure: open, and not held by another worker that is still running.

    In a run without reissue leases do not expire.
    """
    now = now if round.reissue else -np.inf
    gone = frozenset(other for other in round.leases.workers if is_gone(other))
    return ~round.is_told & (round.leases.is_held_by(worker) | ~round.leases.is_held(now, gone))


def _unanswered(round: Round, worker: str) -> IntArray:
    return np.flatnonzero(round.leases.is_held_by(worker) & ~round.is_told)


def _leased(round: Round, places: IntArray, worker: str, until: float) -> list[Event]:
    if not len(places):
        return []
    return [*_opening(round), Leased(round.number, round.tickets.arms[places], worker, until)]


# --- answers --------------------------------------------------------------------------------------------


def answers(history: RunState, given: Answers) -> list[Event]:
    """Return the events for answers to whole tickets: new answers, and conflicts with earlier ones.

    Raises
    ------
    NotAsked
        If the round did not ask for it, or failed pulls are not among those answered.
    ChangedRun
        If failed pulls count as another value in this run.
    FinalFailure
        If bounds were declared in the meantime, and the answers violate them.
    InvalidProblem
        If the answers complete a pilot after which too many pulls would be needed.
    """
    round = history.find(given.tickets.round)
    places = round.places(given.tickets.arms)
    issued = round.tickets.take(places)
    if not (
        np.array_equal(issued.counts, given.tickets.counts)
        and np.array_equal(issued.first_pulls, given.tickets.first_pulls)
    ):
        raise NotAsked("these tickets are not those of the session; tell tickets that `ask` returned.")
    _check_scored(history, issued, given.scored)
    is_again = np.isin(issued.arms, given.again)
    if round.parts is not None:  # a driver has measured parts of these tickets as well
        is_again |= round.parts.n_pulls[places] > 0
    return _told(history, round, places, given, is_again)


def _told(
    history: RunState, round: Round, places: IntArray, given: Answers, is_again: BoolArray
) -> list[Event]:
    """Return the events for answers to whole tickets of a round, by their positions."""
    _check_bounds(history, given)
    arms, means, variances = round.tickets.arms[places], given.means, given.variances
    known, rounding = round.means[places], 0.0 if given.sizes is None else _ROUNDING * given.sizes
    is_new = np.isnan(known)
    is_other = ~is_new & ~(np.abs(known - means) <= rounding)
    if round.spreads is not None:
        spreads = round.spreads[places]
        rounding = 0.0 if given.sizes is None else _ROUNDING * (spreads + given.sizes * given.sizes)
        is_other |= ~is_new & ~(np.abs(spreads - variances) <= rounding)
    rows = zip(arms[is_other].tolist(), known[is_other].tolist(), means[is_other].tolist(), strict=True)
    others = [Conflict(round.number, arm, kept, refused, given.worker) for arm, kept, refused in rows]
    if not is_new.any():
        return list(others)
    fresh = None if round.spreads is None else variances[is_new]
    again = tuple(arms[is_new & is_again].tolist())
    told = Told(round.number, arms[is_new], means[is_new], fresh, given.worker, again)
    new_arms = set(told.arms.tolist()) if given.scored else set()
    counted = [one for one in given.scored if one.ticket.arm in new_arms]
    return _tried(history, [*_opening(round), *counted, told, *others])


def _check_bounds(history: RunState, given: Answers) -> None:
    """Refuse answers that violate bounds which were declared after the answers were checked."""
    if history.problem is not given.problem:
        given.check_bounds(history.problem)


def _check_scored(history: RunState, answered: Tickets, scored: Sequence[Scored]) -> None:
    """Refuse failed pulls that are not among those answered, or have another score than the run uses."""
    first = dict(zip(answered.arms.tolist(), answered.first_pulls.tolist(), strict=True))
    stop = dict(zip(answered.arms.tolist(), (answered.first_pulls + answered.counts).tolist(), strict=True))
    for one in sorted(scored, key=lambda one: (one.ticket.arm, one.ticket.first_pull)):
        ticket, arm = one.ticket, one.ticket.arm
        begins, ends = ticket.first_pull, ticket.first_pull + ticket.count
        is_answered = (
            ticket.round == answered.round and arm in first and ticket.name == history.problem.name(arm)
        )
        if not is_answered or not first[arm] <= begins < ends <= stop[arm]:
            raise NotAsked(
                f"pulls {begins} to {ends - 1} of {ticket.name or f'arm {arm}'} were scored as failed, but "
                f"are not answered in this call, or were scored twice. Score only answered pulls, each once."
            )
        first[arm] = ends  # the next score of this arm must start there or later
        _check_value(history, one)


def _check_scored_calls(history: RunState, calls: Tickets, scored: Sequence[Scored]) -> None:
    """Refuse failed pulls that are not calls answered here, or have another score than the run uses."""
    failed = [one.ticket for one in scored]
    if not set(failed) <= set(calls if scored else ()) or len(set(failed)) < len(failed):
        raise NotAsked(
            "some pulls were scored as failed that are not answered in this call, or were scored twice."
        )
    for one in scored:
        _check_value(history, one)


def _check_value(history: RunState, one: Scored) -> None:
    """Refuse the score of a failed pull if it cannot be a reward, or the run uses another one."""
    name, setting = one.ticket.name, (history.settings or {}).get(SCORE)
    if not math.isfinite(one.score):
        raise MeasurementFailed(
            f"a failed pull of {name} was scored as {one.score}; a score must be a finite number."
        )
    if not is_reward(history.problem, one.score):
        raise MeasurementFailed(
            f"a failed pull of {name} was scored as {one.score:g}, but rewards were declared to "
            f"{declared(history.problem)}. Choose a score that satisfies this."
        )
    if setting not in (None, one.score):
        said = "suspends after a failure" if setting == NO_SCORE else f"counts a failure as {setting}"
        raise ChangedRun(
            f"a failed pull of {name} was scored as {one.score:g}, but this run {said} "
            f"(`{SCORE}` of its settings). Nothing was added."
        )


def answers_to_calls(history: RunState, given: Answers) -> list[Event]:
    """Return the events for answers to calls: answers to completed tickets, and partial answers."""
    round, calls, worker = history.find(given.tickets.round), given.tickets, given.worker
    parts = history.parts_of(round)
    numbers = parts.call_plan.find(calls)
    if (numbers < 0).any() or len(np.unique(numbers)) < len(numbers):
        raise NotAsked("these are not calls of this run, each once; the run splits its tickets differently.")
    places = parts.call_plan.places(numbers)
    if parts.call_plan.ends is None:
        _check_scored(history, round.tickets.take(places), given.scored)
        if round.spreads is not None:
            check_variances(calls, given.variances)
        return _told(history, round, places, given, np.isin(calls.arms, given.again))
    _check_scored_calls(history, calls, given.scored)
    _check_bounds(history, given)
    order = np.argsort(numbers)
    numbers, places = numbers[order], places[order]
    means, variances = given.means[order], given.variances[order]
    is_open = ~round.is_told[places]
    is_other = is_open & parts.is_answered(numbers) & (parts.means[numbers] != means)
    pairs = (round.tickets.arms[places[is_other]], parts.means[numbers[is_other]], means[is_other])
    rows = zip(*(column.tolist() for column in pairs), strict=True)
    others = [Conflict(round.number, arm, kept, refused, worker) for arm, kept, refused in rows]
    is_new = is_open & ~parts.is_answered(numbers)
    if not is_new.any():
        return list(others)
    numbers, places = numbers[is_new], places[is_new]
    means, variances = means[is_new], variances[is_new]
    new = parts.call_plan.parts(numbers)
    known = {*zip(new.arms.tolist(), new.first_pulls.tolist(), strict=True)} if given.scored else set()
    counted = [one for one in given.scored if (one.ticket.arm, one.ticket.first_pull) in known]
    events: list[Event] = [*_opening(round), *counted]
    whole, *pooled = parts.whole(numbers, means, variances)
    if len(whole):
        arms, spread = round.tickets.arms[whole], None
        if round.spreads is not None:
            spread = pooled[1]
            check_variances(round.tickets.take(whole), spread)
        events.append(Told(round.number, arms, pooled[0], spread, worker, _among(given.again, arms)))
    is_part = ~np.isin(places, whole)
    if is_part.any():
        kept = new.take(np.flatnonzero(is_part))
        spread = None if np.isnan(variances[is_part]).all() else variances[is_part]
        about = (kept.arms, kept.first_pulls, kept.counts, means[is_part], spread)
        events.append(Answered(round.number, *about, worker, _among(given.again, kept.arms)))
    return _tried(history, [*events, *others])


def _among(again: Sequence[int], arms: IntArray) -> tuple[int, ...]:
    """Return the arms that are also among `again`."""
    return tuple(sorted({int(arm) for arm in again} & set(arms.tolist()))) if again else ()


def _tried(history: RunState, events: list[Event]) -> list[Event]:
    """Return events; raise InvalidProblem if they complete a pilot after which too many pulls are needed."""
    round = history.round
    told = [event for event in events if isinstance(event, Told) and event.round == round.number]
    if round.spreads is None or sum(len(event.arms) for event in told) < round.n_missing:
        return events
    try:
        history.copy().take(events)
    except InvalidProblem as error:
        raise InvalidProblem(f"{error} The answers that complete the pilot were not recorded.") from None
    return events


def end(history: RunState) -> list[Event]:
    """Return the end event, if the strategy has ended and the log does not contain it yet."""
    return [Ended(history.selected)] if history.is_final and not history.is_ended else []


def _opening(round: Round) -> list[Event]:
    """Return the event with the tickets of a round, unless the log contains it."""
    return [] if round.is_logged else [round.asked()]


def declaration(run: str, history: RunState, problem: Problem) -> list[Event]:
    """Return the event that declares bounds of a run; raise ChangedRun if its answers violate them."""
    if problem.bounds is None or history.problem.bounds is not None:
        return []
    try:
        for round in history.rounds:
            told = np.flatnonzero(round.is_told)
            _check_means(problem, round.tickets.take(told), round.means[told])
        _check_means(problem, history.answered, history.answered_means)
    except FinalFailure as error:
        raise ChangedRun(
            f"run {run!r} has an answer that was recorded before the bounds, and violates them: "
            f"{error} Nothing was changed."
        ) from None
    return [Bounded(problem.bounds, problem.declared_rewards)]


def _check_means(problem: Problem, tickets: Tickets, means: FloatArray) -> None:
    """Raise FinalFailure if the bounds of a problem rule out some means."""
    check_summaries(problem, tickets.arms, Summaries(tickets.counts, means, np.full(len(tickets), np.nan)))
