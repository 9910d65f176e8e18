"""Tickets: the requests for pulls that a session issues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from shortlist.arrays import IntArray
from shortlist.problem import Problem


@dataclass(frozen=True)
class Ticket:
    """One request to pull this arm `count` times, with fresh randomness.

    `first_pull` is the number of earlier pulls of the arm; together with the seed and the arm it determines
    the randomness of the measurement.
    """

    round: int
    arm: int
    name: str
    count: int
    first_pull: int


@dataclass(frozen=True, eq=False)
class Tickets(Sequence[Ticket]):
    """The requests of one round, as arrays and as a sequence of `Ticket`.

    `always_vary` is whether the strategy needs sample variances in every round.
    """

    problem: Problem
    round: int
    arms: IntArray
    counts: IntArray
    first_pulls: IntArray
    always_vary: bool = False

    @property
    def is_pilot(self) -> bool:
        """Whether this is a pilot for unknown variances."""
        is_unknown = not self.problem.knows_variances and self.problem.items is None
        return is_unknown and self.round == 0 and not self.always_vary

    @property
    def needs_variances(self) -> bool:
        """Whether answers must include sample variances, as those to a pilot must."""
        return self.always_vary or self.is_pilot

    @property
    def takes_variances(self) -> bool:
        """Whether sample variances are recorded, as in a pilot, or if known for graded rewards."""
        return self.needs_variances or self.problem.is_graded

    def __len__(self) -> int:
        return len(self.arms)

    def take(self, places: "IntArray | slice") -> "Tickets":
        """Return some of the tickets, by position."""
        arrays = (self.arms[places], self.counts[places], self.first_pulls[places])
        return Tickets(self.problem, self.round, *arrays, self.always_vary)

    @overload
    def __getitem__(self, place: int) -> Ticket: ...
    @overload
    def __getitem__(self, place: slice) -> "Tickets": ...
    def __getitem__(self, place: int | slice) -> "Ticket | Tickets":
        if isinstance(place, slice):
            return self.take(place)
        arm = int(self.arms[place])
        return Ticket(
            self.round, arm, self.problem.name(arm), int(self.counts[place]), int(self.first_pulls[place])
        )
