"""A session of a run on a server, for `drive`."""

from datetime import datetime
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.client.remote_run import RemoteRun
from shortlist.items import Items
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.session.answers import Answers
from shortlist.session.lease_rules import Holding
from shortlist.session.worker_names import OVER_HTTP
from shortlist.tickets import Tickets

_COUNTS = ("n_pulls", "n_made", "cost_made", "n_stops")
_COLUMNS = ("arms", "pulls", "first_pulls")
_SOON = {"patience": 0.0, "timeout": 10.0}  # for requests that are repeated anyway, or cannot wait


class RemoteSession:
    """A session of a run on a server, for `shortlist.drive`.

    The server decides and counts; this object caches its last response. It asks the server again after
    telling answers, or when others may have told some.
    """

    is_private = False
    prefix = OVER_HTTP

    def __init__(self, run: RemoteRun) -> None:
        self.run = run
        self._worker: str | None = None
        self._is_stale = False  # whether the round may have changed
        self._is_new = False  # whether the cached availability has not been used yet
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
        """The question."""
        return self.run.problem

    @property
    def items(self) -> Items | None:
        """The shared items, if there are any; a server knows their ids only."""
        return self.problem.items

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self.run.strategy

    @property
    def seed(self) -> int:
        """The seed from which measurements derive their randomness."""
        return self.run.seed

    @property
    def entropy(self) -> int:
        """What all random numbers of the run derive from; see `Problem.entropy`."""
        return self.run.entropy

    @property
    def n_pulls(self) -> int:
        """The number of pulls in answered tickets, as far as is known here."""
        n_pulls: int = self._now["n_pulls"]
        return n_pulls

    @property
    def n_made(self) -> int:
        """The number of pulls answered, including those of incomplete tickets, as far as is known here."""
        n_made: int = self._now["n_made"]
        return n_made

    @property
    def n_ahead(self) -> int:
        """The number of scores that were measured before they were asked for: none over HTTP."""
        return 0

    @property
    def n_blocks_left(self) -> int | None:
        """About how many more blocks are needed; unknown over HTTP."""
        return None

    @property
    def likely_pulls(self) -> float | None:
        """How many pulls there will probably be in the end; unknown over HTTP."""
        return None

    @property
    def cost_made(self) -> float:
        """The cost of the pulls answered, including those of incomplete tickets, as far as is known here."""
        return float(self._now.get("cost_made", self.n_made))

    @property
    def n_stops(self) -> int:
        """How often all drivers were asked to stop, as far as is known here."""
        n_stops: int = self._now.get("n_stops", 0)
        return n_stops

    @property
    def worst_case_pulls(self) -> int | None:
        """The maximum number of pulls of the strategy; None if unknown."""
        worst: int | None = self._now["worst_case_pulls"]
        return worst

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""
        return bool(self._now["is_done"])

    @property
    def ended_at(self) -> float | None:
        """When the run ended, in seconds since 1970 (Unix time); None if it has not."""
        ended = self._now["ended"]
        return None if ended is None else datetime.fromisoformat(ended).timestamp()

    @property
    def settings(self) -> dict[str, Any] | None:
        """The measurement settings; None if no driver has started."""
        settings: dict[str, Any] | None = self._now["settings"]
        return settings

    @property
    def result(self) -> Result:
        """The result so far."""
        return self.run.result()

    def awaited(self) -> list[Holding]:
        """Return the workers that this process must wait for, if others hold all open tickets."""
        rows = self._now["waiting_for"]
        until = (datetime.fromisoformat(row["until"]).timestamp() for row in rows)
        return [Holding(row["worker"], row["n_tickets"], end) for row, end in zip(rows, until, strict=True)]

    # --- for drivers ----------------------------------------------------------------------------------

    @property
    def asked(self) -> Tickets:
        """All tickets of the current round, answered or not."""
        if self._is_stale:
            self.refresh()
            self._is_new = True
        return self._tickets

    def still_open(self, worker: str | None = None) -> tuple[Tickets, BoolArray]:
        """Return all tickets of the current round, and which of them a worker may measure."""
        if not self._is_new or worker != self._worker:
            self._worker = worker
            self.refresh()
        self._is_new = False
        is_free = np.zeros(len(self._tickets), dtype=bool)
        is_free[self._now["free"]] = True
        return self._tickets, is_free

    def refresh(self) -> None:
        """Read the answers that others have recorded; tickets that are known are not sent again."""
        self._now = self.run.round(self._worker, self._tickets.round)
        self._is_stale = self._is_new = False
        if "arms" in self._now:
            self._tickets = self._of_round()

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Lease tickets to a worker, unless they are answered or held by others; return which it holds."""
        found = self.run.claim(tickets, worker, lease)
        if not found.all():
            self._is_stale, self._is_new = True, False  # others have changed the round
        return found

    def renew(self, worker: str, lease: float) -> None:
        """Extend the leases of a worker."""
        self.run.renew(worker, lease, **_SOON)

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Release tickets that a worker will not answer now, or that it started and aborted."""
        self.run.release(worker, by=by, begun=begun, **_SOON)

    def answer(self, answers: Answers, *, released: IntArray | None = None) -> None:
        """Send the answers to parts of tickets."""
        known = self.run.answer(answers, released=released)
        self._now |= {
            key: known[key] for key in ("n_pulls", "n_made", "cost_made", "n_stops") if key in known
        }
        self._is_new = False
        self._is_stale |= known["round"] != self._tickets.round

    def ahead(self, worker: str) -> tuple[Tickets, FloatArray]:  # noqa: ARG002
        """Return no calls: over HTTP nothing is measured before it is asked for."""
        return self._tickets.take(slice(0, 0)), np.empty(0)

    def is_alone(self, worker: str) -> bool:  # noqa: ARG002
        """Return False: others may work on the server's run."""
        return False

    def keep_within(self, budget: float) -> None:
        """Leave the round as it is: a server does not make it smaller for the budget of one driver."""

    def answered(self) -> Tickets:
        """Return the answered parts of open tickets of this round, from the server's last response."""
        known = self._now["answered"]
        arms, counts, first_pulls = (np.array(known[name], dtype=np.int64) for name in _COLUMNS)
        return Tickets(self.problem, self._tickets.round, arms, counts, first_pulls)

    def arrange(self, settings: dict[str, Any]) -> None:
        """Record the measurement settings; raise ChangedRun if they differ from earlier ones."""
        self.run.arrange(settings)

    def suspend(
        self, reason: str, worker: str = "", *, until: float | None = None, if_idle: bool = False
    ) -> None:
        """Record why the driver stopped early, or why it waits and until when."""
        self.run.suspend(reason, worker or None, until=until, if_idle=if_idle)

    def _of_round(self) -> Tickets:
        """Return the tickets of the server's last response."""
        arms, counts, first_pulls = (np.array(self._now.pop(name), dtype=np.int64) for name in _COLUMNS)
        return Tickets(self.problem, self._now["round"], arms, counts, first_pulls)
