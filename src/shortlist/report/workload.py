"""Who measured how much of a run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import IntArray
from shortlist.run.history import History, Round
from shortlist.store.events import Record, Told


@dataclass(frozen=True)
class Work:
    """What a worker did: tickets answered, pulls made, and the share of all pulls."""

    worker: str
    n_answers: int
    n_pulls: int
    share: float


def workload(history: History, records: Iterable[Record]) -> tuple[Work, ...]:
    """Return who made how many of the pulls that count, the busiest first."""
    told: defaultdict[tuple[str, int], list[IntArray]] = defaultdict(list)
    for record in records:
        if isinstance(record.event, Told):
            told[record.event.worker, record.event.round].append(record.event.arms)
    done: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (worker, number), arms in told.items():
        count_answers(done[worker], history.find(number), np.concatenate(arms))
    return shares(history, done)


def count_answers(done: list[int], round: Round, arms: IntArray) -> None:
    """Add answers of a round to the tickets and pulls of a worker."""
    counts = round.tickets.counts[round.places(arms, is_repeating=True)]
    done[0] += len(counts)
    done[1] += int(counts.sum())


def shares(history: History, done: Mapping[str, Sequence[int]]) -> tuple[Work, ...]:
    """Return who made how many of the pulls that count, by the tickets and pulls that the log has of each."""
    counted = {worker: [*both] for worker, both in done.items()}
    for one in history.repeats:
        tickets = history.find(one.round).tickets
        counted[one.worker][0] -= 1
        counted[one.worker][1] -= int(tickets.counts[tickets.arms == one.arm].sum())
    total = max(sum(pulls for _, pulls in counted.values()), 1)
    ranked = sorted(counted.items(), key=lambda one: -one[1][1])
    return tuple(Work(name, tickets, pulls, pulls / total) for name, (tickets, pulls) in ranked if tickets)
