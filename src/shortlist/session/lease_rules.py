"""Rules of leasing: who may measure which tickets; the events of leases, and the workers who hold them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.session.state import Round, RunState
from shortlist.session.worker_names import is_gone
from shortlist.store import Event, Leased, Released, Told
from shortlist.tickets import Tickets


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
    if round.is_replaced:
        return np.zeros(len(calls), dtype=np.bool_), []
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
    return [*round.opening(), Released(round.number, round.tickets.arms[places], worker, by)]


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
    return [*round.opening(), Leased(round.number, round.tickets.arms[places], worker, until)]


@dataclass(frozen=True)
class Holding:
    """A worker with open tickets: how many, and when the last lease expires.

    In a run without reissue that time may be in the past.
    """

    worker: str
    n_tickets: int
    until: float


def holdings(round: Round, now: float) -> list[Holding]:
    """Return the workers who hold open tickets of a round, those with most tickets first."""
    found = []
    for worker, places in round.leases.by_worker(np.flatnonzero(~round.is_told)).items():
        until = round.leases.until(places)
        until = until[until > (now if round.reissue else -np.inf)]
        if len(until) and not is_gone(worker):
            found.append(Holding(worker, len(until), float(until.max())))
    return sorted(found, key=lambda holding: -holding.n_tickets)


def awaited(round: Round, now: float, worker: str) -> list[Holding]:
    """Return the workers to wait for, if others hold all open tickets; otherwise none."""
    others = [holding for holding in holdings(round, now) if holding.worker != worker]
    return others if sum(holding.n_tickets for holding in others) == round.n_missing else []
