"""Who holds the tickets of the round under way, at some time."""

from dataclasses import dataclass

import numpy as np

from shortlist.session.state import Round
from shortlist.session.worker_names import is_gone


@dataclass(frozen=True)
class Holding:
    """A worker who has open tickets: how many, and until when the last of them is reserved.

    In a run without reissue that time may be over.
    """

    worker: str
    n_tickets: int
    until: float


def holdings(round: Round, now: float) -> list[Holding]:
    """Return who holds open tickets of a round, those with most of them first."""
    found = []
    for worker, places in round.leases.by_worker(np.flatnonzero(~round.is_told)).items():
        until = round.leases.until(places)
        until = until[until > (now if round.reissue else -np.inf)]
        if len(until) and not is_gone(worker):
            found.append(Holding(worker, len(until), float(until.max())))
    return sorted(found, key=lambda holding: -holding.n_tickets)


def awaited(round: Round, now: float, worker: str) -> list[Holding]:
    """Return for whom a worker has to wait, if all open tickets are with others; nobody otherwise."""
    others = [holding for holding in holdings(round, now) if holding.worker != worker]
    return others if sum(holding.n_tickets for holding in others) == round.n_missing else []
