"""Who measured how much of a run."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import IntArray
from shortlist.run.history import History
from shortlist.store.events import Record, Told


@dataclass(frozen=True)
class Work:
    """What a worker did: tickets answered, pulls made, and the share of all pulls."""

    worker: str
    n_answers: int
    n_pulls: int
    share: float


def workload(history: History, records: Sequence[Record]) -> tuple[Work, ...]:
    """Return who made how many of the pulls that count, the busiest first."""
    told: defaultdict[tuple[str, int], list[IntArray]] = defaultdict(list)
    for record in records:
        if isinstance(record.event, Told):
            told[record.event.worker, record.event.round].append(record.event.arms)
    answers: defaultdict[str, int] = defaultdict(int)
    pulls: defaultdict[str, int] = defaultdict(int)
    for (worker, number), arms in told.items():
        round = history.find(number)
        places = round.places(np.concatenate(arms))
        answers[worker] += len(places)
        pulls[worker] += int(round.tickets.counts[places].sum())
    total = max(sum(pulls.values()), 1)
    ranked = sorted(pulls, key=lambda worker: -pulls[worker])
    return tuple(Work(name, answers[name], pulls[name], pulls[name] / total) for name in ranked)
