"""The protocol of the sessions that `drive` can measure for: a local `Session`, or a session on a server."""

from collections.abc import Sequence
from typing import Any, Protocol

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.items import Items
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.session.answers import Answers
from shortlist.session.lease_rules import Holding
from shortlist.tickets import Tickets


class DrivenSession(Protocol):
    """A run that `drive` can measure for, and whose progress can be shown; see `Session` for the methods."""

    @property
    def is_private(self) -> bool:
        """Whether no other process can measure for it."""

    @property
    def prefix(self) -> str:
        """The prefix of the worker names of drivers."""

    @property
    def problem(self) -> Problem:
        """The question."""

    @property
    def items(self) -> Items | None:
        """The shared items, if there are any."""

    @property
    def seed(self) -> int:
        """The seed from which measurements derive their randomness."""

    @property
    def entropy(self) -> int:
        """What all random numbers of the run derive from; see `Problem.entropy`."""

    @property
    def n_pulls(self) -> int:
        """The number of pulls in answered tickets, as far as is known."""

    @property
    def n_made(self) -> int:
        """The number of pulls answered, including those of incomplete tickets, as far as is known."""

    @property
    def n_ahead(self) -> int:
        """The number of scores that were measured before they were asked for, and are not used so far."""

    @property
    def n_blocks_left(self) -> int | None:
        """About how many more blocks are needed; None if that is unknown."""

    @property
    def likely_pulls(self) -> float | None:
        """How many pulls there will probably be in the end; None if unknown."""

    @property
    def cost_made(self) -> float:
        """The cost of the pulls answered, including those of incomplete tickets, as far as is known."""

    @property
    def n_stops(self) -> int:
        """How often all drivers were asked to stop, as far as is known."""

    @property
    def settings(self) -> dict[str, Any] | None:
        """The measurement settings; None if no driver has started."""

    @property
    def asked(self) -> Tickets:
        """All tickets of the current round, answered or not."""

    @property
    def result(self) -> Result:
        """The result so far."""

    def still_open(self, worker: str | None = None) -> tuple[Tickets, BoolArray]:
        """Return all tickets of the current round, and which of them a worker may measure."""

    def refresh(self) -> None:
        """Read the answers that others have recorded in the meantime."""

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Lease tickets to a worker, and return which it holds."""

    def renew(self, worker: str, lease: float) -> None:
        """Extend the leases of a worker."""

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Release the tickets of a worker, or those that it started and aborted."""

    def answer(self, answers: Answers, *, released: IntArray | None = None) -> None:
        """Record the answers to tickets, or to parts of them."""

    def ahead(self, worker: str) -> tuple[Tickets, FloatArray]:
        """Return calls that will probably be needed after this round, and how far ahead they are."""

    def is_alone(self, worker: str) -> bool:
        """Return whether no other worker holds tickets of this round."""

    def keep_within(self, budget: float) -> None:
        """Ask for less in this round if a budget does not pay for it."""

    def answered(self) -> Tickets:
        """Return the answered parts of open tickets of this round."""

    def suspend(
        self, reason: str, worker: str = "", *, until: float | None = None, if_idle: bool = False
    ) -> None:
        """Record why the driver stopped early, or why it waits and until when."""

    def arrange(self, settings: dict[str, Any]) -> None:
        """Record the measurement settings; raise ChangedRun if they differ from earlier ones."""

    @property
    def name(self) -> str:
        """The name of the run."""

    @property
    def strategy(self) -> str:
        """The name of the strategy."""

    @property
    def worst_case_pulls(self) -> int | None:
        """The maximum number of pulls of the strategy; None if unknown."""

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""

    @property
    def ended_at(self) -> float | None:
        """When the run ended, in seconds since 1970 (Unix time); None if it has not."""

    def awaited(self) -> Sequence[Holding]:
        """Return the workers that this process must wait for, if others hold all open tickets."""
