"""The share of each worker in a run."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import IntArray
from shortlist.session.state import Round, RunState
from shortlist.store.events import Answered, Record, Told, Withdrawn
from shortlist.tickets import Ticket


@dataclass(frozen=True)
class Work:
    """The work of one worker: tickets answered, pulls made, and the share of all pulls."""

    worker: str
    n_answers: int
    n_pulls: int
    share: float


class Credits:
    """Tickets and pulls by worker, as far as the log has been counted.

    The worker who answers a ticket may have made only the last of its pulls: parts that were answered before
    are credited to the worker who answered them. So count parts before tickets.
    """

    def __init__(self) -> None:
        self._done: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])  # tickets and pulls
        self._in_parts: defaultdict[int, dict[int, tuple[str, int]]] = defaultdict(dict)  # by arm, first pull
        self._round = 0  # the latest; only its answers can be withdrawn
        self._told: list[tuple[str, IntArray]] = []  # who answered its tickets, in the order of the log

    def count_part(self, answered: Answered) -> None:
        """Count answers to parts of tickets, also of tickets that nobody has asked for yet."""
        columns = (answered.arms.tolist(), answered.first_pulls.tolist(), answered.counts.tolist())
        for arm, first, count in zip(*columns, strict=True):
            self._in_parts[arm][first] = answered.worker, count
        self._done[answered.worker][1] += int(answered.counts.sum())

    def count(self, worker: str, arms: IntArray, round: Round) -> None:
        """Count answers to tickets."""
        tickets = round.tickets.take(round.places(arms, is_repeating=True))
        self._done[worker][0] += len(tickets)
        self._done[worker][1] += int(tickets.counts.sum())
        for ticket in tickets if self._in_parts else ():
            self._done[worker][1] -= sum(count for _, _, count in self._parts(ticket))
        if round.number > self._round:
            self._round, self._told = round.number, []
        if round.number == self._round:
            self._told.append((worker, arms))

    def withdraw(self, withdrawn: Withdrawn, round: Round) -> None:
        """Count an answer no longer; count the answers before it first."""
        ticket = round.tickets[int(round.places(np.array([withdrawn.arm]))[0])]
        worker = next(worker for worker, arms in reversed(self._told) if ticket.arm in arms)
        self._done[worker][0] -= 1
        self._done[worker][1] -= ticket.count
        for first, other, count in self._parts(ticket):
            self._done[worker][1] += count
            self._done[other][1] -= count
            del self._in_parts[ticket.arm][first]

    def _parts(self, ticket: Ticket) -> list[tuple[int, str, int]]:
        """Return the first pull of each part of a ticket that was answered before, by whom, and its pulls."""
        parts = self._in_parts.get(ticket.arm, {}).items()
        pulls = range(ticket.first_pull, ticket.first_pull + ticket.count)
        return [(first, worker, count) for first, (worker, count) in parts if first in pulls]

    def shares(self, history: RunState) -> tuple[Work, ...]:
        """Return who made how many of the pulls that count, the busiest first."""
        counted = {worker: [*both] for worker, both in self._done.items()}
        for one in history.repeats:
            tickets = history.find(one.round).tickets
            counted[one.worker][0] -= 1
            counted[one.worker][1] -= int(tickets.counts[tickets.arms == one.arm].sum())
        total = max(sum(pulls for _, pulls in counted.values()), 1)
        ranked = sorted(counted.items(), key=lambda one: -one[1][1])
        return tuple(Work(name, tickets, pulls, pulls / total) for name, (tickets, pulls) in ranked if pulls)


def workload(history: RunState, records: Iterable[Record]) -> tuple[Work, ...]:
    """Return who made how many of the pulls that count, the busiest first."""
    credits, told = Credits(), defaultdict[tuple[str, int], list[IntArray]](list)
    for record in records:
        if isinstance(record.event, Told):
            told[record.event.worker, record.event.round].append(record.event.arms)
        elif isinstance(record.event, Answered):
            credits.count_part(record.event)
        elif isinstance(record.event, Withdrawn):
            _count_told(credits, told, history)
            credits.withdraw(record.event, history.find(record.event.round))
    _count_told(credits, told, history)
    return credits.shares(history)


def _count_told(credits: Credits, told: dict[tuple[str, int], list[IntArray]], history: RunState) -> None:
    """Count the answers to tickets that were collected, and forget them."""
    for (worker, number), arms in told.items():
        credits.count(worker, np.concatenate(arms), history.find(number))
    told.clear()
