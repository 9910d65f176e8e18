"""A run that a server keeps, in the form in which `drive` measures for runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.client.remote_run import RemoteRun
from shortlist.result import Result
from shortlist.run.holders import Holding
from shortlist.run.worker_names import OVER_HTTP
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets
from shortlist.unknown import Question

_SOON = {"patience": 0.0, "timeout": 10.0}  # for what will be tried again anyhow, or has no time to wait


class RemoteSession:
    """What `shortlist.drive` takes in place of a `Session`, for a run that a server keeps.

    The server decides and counts; here is what it said last. It is asked again when something was told, or
    when others may have told something.
    """

    is_private = False
    prefix = OVER_HTTP

    def __init__(self, run: RemoteRun) -> None:
        self.run = run
        self._worker: str | None = None
        self._is_stale = False  # whether the round may be another by now
        self._is_new = False  # whether what is free has not been used since the server said it
        self._now = run.round()
        self._tickets = self._of_round()
        self._n_pulls: int = self._now["n_pulls"]

    def __repr__(self) -> str:
        return f"RemoteSession({self.run!r}, n_pulls={self.n_pulls})"

    # --- what it has come to --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the run on its server."""
        return self.run.name

    @property
    def problem(self) -> Question:
        """What is asked."""
        return self.run.problem

    @property
    def strategy(self) -> str:
        """The name of the strategy that decides."""
        return self.run.strategy

    @property
    def seed(self) -> int:
        """The seed from which measurements derive their randomness."""
        return self.run.seed

    @property
    def n_pulls(self) -> int:
        """How many pulls have been told so far, as far as is known here."""
        return self._n_pulls

    @property
    def worst_case_pulls(self) -> int | None:
        """The most pulls that the strategy can take; None where that is unknown."""
        worst: int | None = self._now["worst_case_pulls"]
        return worst

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""
        return bool(self._now["is_done"])

    @property
    def ended_at(self) -> float | None:
        """When the run ended, in seconds since 1970; None if it has not."""
        ended = self._now["ended"]
        return None if ended is None else datetime.fromisoformat(ended).timestamp()

    @property
    def settings(self) -> dict[str, Any] | None:
        """How measuring was arranged; None if no driver has begun."""
        settings: dict[str, Any] | None = self._now["settings"]
        return settings

    @property
    def result(self) -> Result:
        """What the run has led to so far."""
        return self.run.result()

    def awaited(self) -> list[Holding]:
        """Return for whom this process has to wait, if all open tickets are with others."""
        rows = self._now["waiting_for"]
        until = (datetime.fromisoformat(row["until"]).timestamp() for row in rows)
        return [Holding(row["worker"], row["n_tickets"], end) for row, end in zip(rows, until, strict=True)]

    # --- for those who measure ------------------------------------------------------------------------

    @property
    def asked(self) -> Tickets:
        """All requests of the round under way, told or not."""
        if self._is_stale:
            self.refresh()
            self._is_new = True
        return self._tickets

    def still_open(self, worker: str | None = None) -> tuple[Tickets, BoolArray]:
        """Return all requests of the round under way, and which of them a worker may answer."""
        if not self._is_new or worker != self._worker:
            self._worker = worker
            self.refresh()
        self._is_new = False
        is_free = np.zeros(len(self._tickets), dtype=bool)
        is_free[self._now["free"]] = True
        return self._tickets, is_free

    def refresh(self) -> None:
        """Take in what others have told in the meantime; tickets that are known are not sent again."""
        self._now = self.run.round(self._worker, self._tickets.round)
        self._n_pulls = self._now["n_pulls"]
        self._is_stale = self._is_new = False
        if "arms" in self._now:
            self._tickets = self._of_round()

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Reserve tickets for a worker, if they are not told or held by others; return which it has."""
        found: BoolArray = np.isin(tickets.arms, self.run.claim(tickets, worker, lease))
        if not found.all():
            self._is_stale, self._is_new = True, False  # others have been at work
        return found

    def renew(self, worker: str, lease: float) -> None:
        """Reserve what a worker has for longer."""
        self.run.renew(worker, lease, **_SOON)

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Give back what a worker has and will not answer now, or tickets that it began and broke off."""
        self.run.release(worker, by=by, begun=begun, **_SOON)

    def tell(
        self,
        tickets: Ticket | Sequence[Ticket],
        rewards: Any = None,
        *,
        means: float | Sequence[float] | FloatArray | None = None,
        worker: str = "",
        scored: Sequence[Scored] = (),
        again: Sequence[int] = (),
    ) -> None:
        """Tell the answers to one ticket or to several."""
        said = self.run.tell(tickets, rewards, means=means, worker=worker, scored=scored, again=again)
        self._is_new = False
        is_all_new = not said["known"] and not said["conflicting"]
        self._n_pulls += _n_pulls(tickets) if is_all_new else 0
        self._is_stale |= not is_all_new or said["round"] != self._tickets.round

    def arrange(self, settings: dict[str, Any]) -> None:
        """Note how rewards are measured, as plain data; raise ChangedRun if that was otherwise before."""
        self.run.arrange(settings)

    def suspend(self, reason: str, worker: str = "", *, until: float | None = None) -> None:
        """Note why measuring stopped short, or why it waits and until when."""
        self.run.suspend(reason, worker or None, until=until)

    def _of_round(self) -> Tickets:
        """Return the tickets that the server has sent last."""
        names = ("arms", "pulls", "first_pulls")
        arms, counts, first_pulls = (np.array(self._now.pop(name), dtype=np.int64) for name in names)
        needed = self._now["needs_variances"]
        return Tickets(self.problem, self._now["round"], arms, counts, first_pulls, needed)


def _n_pulls(tickets: Ticket | Sequence[Ticket]) -> int:
    if isinstance(tickets, Tickets):
        return int(tickets.counts.sum())
    return sum(ticket.count for ticket in ([tickets] if isinstance(tickets, Ticket) else tickets))
