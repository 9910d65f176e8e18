"""The events of answers: new answers, parts of tickets, and conflicts with earlier answers."""

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, is_increasing, sorting
from shortlist.errors import ChangedRun, InvalidProblem, MeasurementFailed, NotAsked
from shortlist.measure import declared, is_reward
from shortlist.session.answers import Answers, check_variances
from shortlist.session.call_plan import are_whole_calls
from shortlist.session.settings import NO_SCORE, SCORE
from shortlist.session.state import REPRODUCIBLE, Round, RunState
from shortlist.store import Answered, Conflict, Event, Scored, Told
from shortlist.tickets import Tickets

_ROUNDING = 1e-13  # relative to the largest reward


def events_for_tickets(history: RunState, given: Answers) -> list[Event]:
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
    _refuse_replaced(round)
    if round.tickets.needs_variances:
        check_variances(round.tickets.take(places), given.variances)
    arms, means, variances = round.tickets.arms[places], given.means, given.variances
    is_new, is_other = _compared(round, places, given)
    known = round.means[places]
    others = _conflicts(round, arms[is_other], known[is_other], means[is_other], given.worker)
    if not is_new.any():
        return others
    fresh = _recorded(round, variances[is_new])
    again = tuple(arms[is_new & is_again].tolist())
    scores = None if given.scores is None else np.concatenate([*compress(given.scores, is_new.tolist())])
    told = Told(round.number, arms[is_new], means[is_new], fresh, given.worker, again, scores)
    new_arms = set(told.arms.tolist()) if given.scored else set()
    counted = [one for one in given.scored if one.ticket.arm in new_arms]
    return _checked_by_trial(history, [*round.opening(), *counted, told, *others])


def is_recorded(history: RunState, given: Answers) -> BoolArray:
    """Return which answers the run knows: as the answer to their ticket, or as a conflict with it."""
    round = history.find(given.tickets.round)
    is_new, is_other = _compared(round, round.places(given.tickets.arms), given)
    refused = {(one.round, one.arm, one.refused) for one in history.conflicts}
    rows = zip(given.tickets.arms.tolist(), given.means.tolist(), strict=True)
    is_refused = np.array([(round.number, *row) in refused for row in rows], dtype=np.bool_)
    return ~is_new & (~is_other | is_refused)


def is_in_conflict(history: RunState, given: Answers) -> BoolArray:
    """Return which answers differ from the recorded answer to their ticket."""
    round = history.find(given.tickets.round)
    return _compared(round, round.places(given.tickets.arms), given)[1]


def _compared(round: Round, places: IntArray, given: Answers) -> tuple[BoolArray, BoolArray]:
    """Return which answers are the first of their ticket, and which differ from the first."""
    means, variances = given.means, given.variances
    known, rounding = round.means[places], 0.0 if given.sizes is None else _ROUNDING * given.sizes
    is_new = np.isnan(known)
    is_other = ~is_new & ~(np.abs(known - means) <= rounding)
    if given.scores is not None:
        is_same = np.array([*map(round.has_scores, places.tolist(), given.scores)], dtype=np.bool_)
        is_other |= ~is_new & ~is_same
    if round.spreads is not None:
        spreads = round.spreads[places]
        rounding = 0.0 if given.sizes is None else _ROUNDING * (spreads + given.sizes * given.sizes)
        is_unlike = ~(np.abs(spreads - variances) <= rounding)
        is_known = round.tickets.needs_variances | ~(np.isnan(spreads) | np.isnan(variances))
        is_other |= ~is_new & is_unlike & is_known
    return is_new, is_other


def _recorded(round: Round, variances: FloatArray) -> FloatArray | None:
    """Return the sample variances that the log keeps; None if none is asked for, or none is known."""
    return None if round.spreads is None or np.isnan(variances).all() else variances


def _conflicts(
    round: Round, arms: IntArray, kept: FloatArray, refused: FloatArray, worker: str
) -> list[Event]:
    """Return the events for second answers that differ from the first, which are kept."""
    rows = zip(arms.tolist(), kept.tolist(), refused.tolist(), strict=True)
    return [Conflict(round.number, arm, first, second, worker) for arm, first, second in rows]


def _refuse_replaced(round: Round) -> None:
    if round.is_replaced:
        raise NotAsked(
            f"the tickets of round {round.number} are no longer valid: results were fed before any of "
            "these tickets was leased. Ask for tickets again."
        )


def _check_bounds(history: RunState, given: Answers) -> None:
    """Refuse answers that violate bounds which were declared after the answers were checked."""
    if history.problem is not given.problem:
        given.check_bounds(history.problem)


def _check_scored(history: RunState, answered: Tickets, scored: Sequence[Scored]) -> None:
    """Refuse failed pulls that are not among those answered, or have another score than the run uses."""
    if not scored:
        return
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


def events_for_calls(history: RunState, given: Answers) -> list[Event]:
    """Return the events for answers to calls: answers to completed tickets, and partial answers."""
    round, calls, worker = history.find(given.tickets.round), given.tickets, given.worker
    parts = history.parts_of(round)
    numbers = parts.call_plan.find(calls)
    if given.scores is not None and (numbers < 0).any():
        return _ahead(history, given, numbers < 0)
    order = sorting(numbers)
    if (numbers < 0).any() or not is_increasing(numbers[order]):
        raise NotAsked(
            "some calls occur twice or do not belong to this run, which splits its tickets into different "
            "calls."
        )
    places = parts.call_plan.places(numbers)
    if parts.call_plan.ends is None:
        _check_scored(history, round.tickets.take(places), given.scored)
        return _told(history, round, places, given, np.isin(calls.arms, given.again))
    _check_scored_calls(history, calls, given.scored)
    _check_bounds(history, given)
    _refuse_replaced(round)
    numbers, places = numbers[order], places[order]
    means, variances = given.means[order], given.variances[order]
    scores = None if given.scores is None else [given.scores[place] for place in order.tolist()]
    is_open = ~round.is_told[places]
    is_same = parts.means[numbers] == means
    if scores is not None:
        is_same &= np.array([*map(parts.has_scores, numbers.tolist(), scores)], dtype=np.bool_)
    is_other = is_open & parts.is_answered(numbers) & ~is_same
    kept_means = parts.means[numbers[is_other]]
    others = _conflicts(round, round.tickets.arms[places[is_other]], kept_means, means[is_other], worker)
    is_new = is_open & ~parts.is_answered(numbers)
    if not is_new.any():
        return others
    numbers, places = numbers[is_new], places[is_new]
    means, variances = means[is_new], variances[is_new]
    scores = None if scores is None else [*compress(scores, is_new.tolist())]
    new = parts.call_plan.parts(numbers)
    known = {*zip(new.arms.tolist(), new.first_pulls.tolist(), strict=True)} if given.scored else set()
    counted = [one for one in given.scored if (one.ticket.arm, one.ticket.first_pull) in known]
    events: list[Event] = [*round.opening(), *counted]
    whole, *pooled = parts.whole(numbers, means, variances)
    if len(whole):
        arms, spread = round.tickets.arms[whole], _recorded(round, pooled[1])
        if round.tickets.needs_variances:
            check_variances(round.tickets.take(whole), pooled[1])
        flat = None if scores is None else parts.whole_scores(whole, numbers, scores)
        events.append(Told(round.number, arms, pooled[0], spread, worker, _among(given.again, arms), flat))
    is_whole = np.zeros(len(round.tickets), dtype=np.bool_)
    is_whole[whole] = True
    is_part = ~is_whole[places]
    if is_part.any():
        kept = new.take(np.flatnonzero(is_part))
        spread = None if np.isnan(variances[is_part]).all() else variances[is_part]
        about = (kept.arms, kept.first_pulls, kept.counts, means[is_part], spread)
        flat = None if scores is None else np.concatenate([*compress(scores, is_part.tolist())])
        events.append(Answered(round.number, *about, worker, _among(given.again, kept.arms), flat))
    return _checked_by_trial(history, [*events, *others])


def _ahead(history: RunState, given: Answers, is_ahead: BoolArray) -> list[Event]:
    """Return the events for scores that their round did not ask for.

    If it is over, the current round may ask for them. Others are kept until they are needed.
    """
    rest = given
    if is_ahead.all() and given.tickets.round != history.round.number:
        rest = given.of_round(history.round.number)
        is_ahead = history.parts_of(history.round).call_plan.find(rest.tickets) < 0
        if not is_ahead.any():
            return events_for_calls(history, rest)
    if not is_ahead.all():
        raise NotAsked(
            "some of these calls belong to a round, and others are measured ahead of it. Answer them "
            "separately. Nothing of this answer was recorded."
        )
    _check_bounds(history, rest)
    _check_ahead(history, rest.tickets)
    events: list[Event] = []
    calls, scores = rest.tickets, rest.scores or []
    is_new = calls.first_pulls >= history.reached[calls.arms]
    for place, (call, own) in enumerate(zip(calls, scores, strict=True)):
        kept = history.ahead.get((call.arm, call.first_pull))
        is_new[place] &= kept is None
        if kept is not None and not np.array_equal(kept, own):
            events.append(Conflict(calls.round, call.arm, float(kept.mean()), float(own.mean()), rest.worker))
    if not is_new.any():
        return events
    new = calls.take(np.flatnonzero(is_new))
    flat = np.concatenate([*compress(scores, is_new.tolist())])
    about = (new.arms, new.first_pulls, new.counts, rest.means[is_new], None, rest.worker)
    return [*events, Answered(calls.round, *about, _among(rest.again, new.arms), flat)]


def _check_ahead(history: RunState, calls: Tickets) -> None:
    """Refuse scores that no round asked for, unless they answer whole calls that a later round may make."""
    problem, settings = history.problem, history.settings or {}
    is_call = are_whole_calls(calls, settings)
    if problem.known is not None:
        is_call &= ~np.isin(calls.arms, problem.known.arms)
    if problem.is_lockstep or not settings.keys() - {REPRODUCIBLE}:
        is_call[:] = False  # a block does not last; or nobody has said how tickets are split
    if not is_call.all():
        call = calls[int(np.argmin(is_call))]
        raise NotAsked(
            f"the run never makes a call for {call.count:,} scores of {call.name} from position "
            f"{call.first_pull:,} of the order on. Scores that are measured ahead must answer whole calls, "
            f"as `Session.ahead` returns them. Nothing of this answer was recorded."
        )
    if len({*zip(calls.arms.tolist(), calls.first_pulls.tolist(), strict=True)}) < len(calls):
        raise NotAsked("a call appears twice in one answer; answer each call once. Nothing was recorded.")


def _among(again: Sequence[int], arms: IntArray) -> tuple[int, ...]:
    """Return the arms that are also among `again`."""
    return tuple(sorted({int(arm) for arm in again} & set(arms.tolist()))) if again else ()


def _checked_by_trial(history: RunState, events: list[Event]) -> list[Event]:
    """Return events; raise InvalidProblem if they complete a pilot after which too many pulls are needed."""
    round = history.round
    told = [event for event in events if isinstance(event, Told) and event.round == round.number]
    if not round.tickets.is_pilot or sum(len(event.arms) for event in told) < round.n_missing:
        return events
    try:
        history.copy().take(events)
    except InvalidProblem as error:
        raise InvalidProblem(f"{error} The answers that complete the pilot were not recorded.") from None
    return events
