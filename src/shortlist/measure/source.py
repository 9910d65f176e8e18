"""The interface of a source of rewards, which answers calls, each for some fresh pulls of one arm.

All random numbers of an answer derive from the call alone, so it makes no difference when a call is made, by
which worker, or how often. A source must not use other random numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np


@dataclass(frozen=True)
class Call:
    """A request for `count` fresh rewards of an arm, the first being its pull number `first_pull`.

    No two calls of a run have the same arm and first pull.

    Attributes
    ----------
    entropy
        What all random numbers of the run derive from; see `Problem.entropy`.
    rank
        What stands for the arm in its random numbers; see `Problem.ranks`. None if that is its number.
    """

    entropy: int
    arm: int
    count: int
    first_pull: int
    rank: int | None = None

    @property
    def sequence(self) -> np.random.SeedSequence:
        """The source of all random numbers of this call, which no other call has.

        It depends on nothing else, so a measurement repeated after a crash, or made by another worker,
        returns the same rewards.
        """
        arm = self.arm if self.rank is None else self.rank
        return np.random.SeedSequence(entropy=(self.entropy, arm, self.first_pull))

    @property
    def rng(self) -> np.random.Generator:
        """The random generator of this call."""
        return np.random.default_rng(self.sequence)


Take: TypeAlias = Callable[[Mapping[int, Any]], bool]
"""Takes answers by the numbers of their calls, of which some may be errors; returns whether to go on."""


class Source(Protocol):
    """A source of rewards; it must be picklable to be used in other processes.

    A source may have `is_reproducible` = True if its answers depend only on the call, including the seed. It
    may have `needs_this_thread` = True if other workers would disturb it.

    A source that measures many calls at once, but each by itself, may have a method
    ``answer_each(calls, take)``. It passes answers to `take` as soon as they are known, in any order, and
    raises if some calls have none in the end. It is used instead of `answers`. So what was measured before a
    crash is recorded, and only calls without an answer are made again. If `take` returns False, it should
    start nothing new.

    A source, or a function that measures, may have `pulls_per_call`: the default for that option. Every call
    is then recorded at once.
    """

    @property
    def together(self) -> int:
        """The number of calls that are answered together.

        The calls of a round are grouped into blocks of this size, in order, and an answer may depend on its
        whole block. With 1 it depends on its own call only.
        """

    def answers(self, calls: Sequence[Call]) -> Sequence[Any]:
        """Return the answer to each call, in a form that `summary_of` accepts; raise on failure."""
