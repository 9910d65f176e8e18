"""The workers who hold tickets of the current round at a given time."""

from dataclasses import dataclass

import numpy as np

from shortlist.session.state import Round
from shortlist.session.worker_names import is_gone


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
