"""What `drive` needs of a run, wherever it is kept: a `Session` here, or one that a server has."""

from collections.abc import Sequence
from typing import Any, Protocol

from shortlist.arrays import BoolArray, IntArray
from shortlist.measure import Summaries
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.session.holders import Holding
from shortlist.store.events import Scored
from shortlist.tickets import Tickets


class Driven(Protocol):
    """A run that can be measured for; `Session` says what each of these does."""

    @property
    def is_private(self) -> bool:
        """Whether nobody else can measure for it."""

    @property
    def prefix(self) -> str:
        """What the names of those begin with who measure for it by `drive`."""

    @property
    def problem(self) -> Problem:
        """What is asked."""

    @property
    def seed(self) -> int:
        """The seed from which measurements derive their randomness."""

    @property
    def n_pulls(self) -> int:
        """How many pulls have been told so far, as far as is known."""

    @property
    def n_made(self) -> int:
        """How many pulls have been answered, also of tickets that lack others, as far as is known."""

    @property
    def settings(self) -> dict[str, Any] | None:
        """How measuring was arranged; None if no driver has begun."""

    @property
    def asked(self) -> Tickets:
        """All requests of the round under way, told or not."""

    @property
    def result(self) -> Result:
        """What the run has led to so far."""

    def still_open(self, worker: str | None = None) -> tuple[Tickets, BoolArray]:
        """Return all requests of the round under way, and which of them a worker may answer."""

    def refresh(self) -> None:
        """Take in what others have told in the meantime."""

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Reserve tickets for a worker, and return which it has."""

    def renew(self, worker: str, lease: float) -> None:
        """Reserve what a worker has for longer."""

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Give back what a worker has, or tickets that it began and broke off."""

    def answer(
        self,
        calls: Tickets,
        answers: Summaries,
        *,
        worker: str = "",
        scored: Sequence[Scored] = (),
        again: Sequence[int] = (),
        released: IntArray | None = None,
    ) -> None:
        """Take the answers to tickets, or to the parts into which they are split."""

    def answered(self) -> Tickets:
        """Return the parts of open tickets of this round that have been answered."""

    def suspend(self, reason: str, worker: str = "", *, until: float | None = None) -> None:
        """Note why measuring stopped short, or why it waits and until when."""

    def arrange(self, settings: dict[str, Any]) -> None:
        """Note how rewards are measured; raise ChangedRun if that was otherwise before."""


class Followed(Driven, Protocol):
    """A run of which those who wait for it are told how far it is, and why it stops."""

    @property
    def name(self) -> str:
        """The name of the run."""

    @property
    def strategy(self) -> str:
        """The name of the strategy that decides."""

    @property
    def worst_case_pulls(self) -> int | None:
        """The most pulls that the strategy can take; None where that is unknown."""

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""

    @property
    def ended_at(self) -> float | None:
        """When the run ended, in seconds since 1970; None if it has not."""

    def awaited(self) -> Sequence[Holding]:
        """Return for whom this process has to wait, if all open tickets are with others."""
