"""A run that a server keeps, in the form in which `drive` measures for runs."""

from datetime import datetime
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray
from shortlist.client.remote_run import RemoteRun
from shortlist.measure import Summaries
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.session.holders import Holding
from shortlist.session.worker_names import OVER_HTTP
from shortlist.tickets import Tickets

_COLUMNS = ("arms", "pulls", "first_pulls")
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

    def __repr__(self) -> str:
        return f"RemoteSession({self.run!r}, n_pulls={self.n_pulls})"

    # --- what it has come to --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the run on its server."""
        return self.run.name

    @property
    def problem(self) -> Problem:
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
        n_pulls: int = self._now["n_pulls"]
        return n_pulls

    @property
    def n_made(self) -> int:
        """How many pulls have been answered, also of tickets that lack others, as far as is known here."""
        n_made: int = self._now["n_made"]
        return n_made

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
        self._is_stale = self._is_new = False
        if "arms" in self._now:
            self._tickets = self._of_round()

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Reserve tickets for a worker, if they are not told or held by others; return which it has."""
        found = self.run.claim(tickets, worker, lease)
        if not found.all():
            self._is_stale, self._is_new = True, False  # others have been at work
        return found

    def renew(self, worker: str, lease: float) -> None:
        """Reserve what a worker has for longer."""
        self.run.renew(worker, lease, **_SOON)

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Give back what a worker has and will not answer now, or tickets that it began and broke off."""
        self.run.release(worker, by=by, begun=begun, **_SOON)

    def answer(self, calls: Tickets, answers: Summaries, **said: Any) -> None:
        """Tell the answers to parts of tickets."""
        known = self.run.answer(calls, answers, **said)
        self._now |= {key: known[key] for key in ("n_pulls", "n_made")}
        self._is_new = False
        self._is_stale |= known["round"] != self._tickets.round

    def answered(self) -> Tickets:
        """Return the parts of open tickets of this round that had been answered when the server was asked."""
        known = self._now["answered"]
        arms, counts, first_pulls = (np.array(known[name], dtype=np.int64) for name in _COLUMNS)
        return Tickets(self.problem, self._tickets.round, arms, counts, first_pulls)

    def arrange(self, settings: dict[str, Any]) -> None:
        """Note how rewards are measured, as plain data; raise ChangedRun if that was otherwise before."""
        self.run.arrange(settings)

    def suspend(self, reason: str, worker: str = "", *, until: float | None = None) -> None:
        """Note why measuring stopped short, or why it waits and until when."""
        self.run.suspend(reason, worker or None, until=until)

    def _of_round(self) -> Tickets:
        """Return the tickets that the server has sent last."""
        arms, counts, first_pulls = (np.array(self._now.pop(name), dtype=np.int64) for name in _COLUMNS)
        needed = self._now["needs_variances"]
        return Tickets(self.problem, self._now["round"], arms, counts, first_pulls, needed)
