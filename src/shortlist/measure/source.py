"""What a source of rewards is: something that answers calls, each for some fresh pulls of one arm.

Everything random in an answer derives from the call alone, so it makes no difference when a call is made,
by which worker, or how often. What is random may not come from anywhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Call:
    """A request for `count` fresh rewards of an arm, the first being its pull number `first_pull`.

    No two calls of a run have the same arm and first pull.
    """

    seed: int
    arm: int
    count: int
    first_pull: int

    @property
    def rng(self) -> np.random.Generator:
        """A random generator for this call and no other."""
        return generator_for(self.seed, self.arm, self.first_pull)


class Source(Protocol):
    """Where rewards come from; it survives pickling if other processes are to use it.

    If an answer surely depends on its call alone, seed included, a source may have `is_reproducible` = True.
    """

    @property
    def together(self) -> int:
        """How many calls are answered at once.

        A round's calls are cut into blocks of so many, in order, and an answer may depend on its whole
        block. With 1 it depends on its own call only.
        """

    def answers(self, calls: Sequence[Call]) -> Sequence[Any]:
        """Return the answer to each call, of a kind that `summary_of` takes; raise if one cannot be had."""


def generator_for(seed: int, arm: int, first_pull: int) -> np.random.Generator:
    """Return the random generator of the pulls of an arm that start at pull number `first_pull`.

    It depends on nothing else, so a measurement repeated after a crash, or made by another worker,
    returns the same rewards.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=(seed, arm, first_pull)))
