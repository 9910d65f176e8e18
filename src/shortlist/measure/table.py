"""A table of recorded rewards as a source: rows in turn, each once, or drawn at random for each arm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.checks import one_of
from shortlist.errors import FinalFailure, InvalidProblem
from shortlist.measure.source import Call
from shortlist.problem import Problem

ORDERS = ("next", "random", "draw")


@dataclass(frozen=True, eq=False)
class TableSource:
    """Recorded rewards as a source.

    With "next" and "random" the pulls of an arm take its rows one after the other, each once. The rows count
    as independent draws from each arm's distribution, also independent of the rows of other arms, and the
    guarantee is about the mean of that distribution. This does not hold if a row has a reward for every arm,
    such as the scores of all models on one question: then use "draw". Pulls of an arm then draw any of its
    rows, with replacement and independently of all other pulls, and the guarantee is about the average of
    the rows in the table.

    Attributes
    ----------
    problem
        The question whose arms were measured.
    values, starts
        The rewards of all arms, arm after arm; those of arm i are ``values[starts[i]:starts[i + 1]]``.
    order
        "next": rows in the order of the table; "random": in a separate random order for each arm, fixed by
        the seed; or "draw": drawn at random with replacement, fixed by the seed.
    """

    problem: Problem
    values: FloatArray
    starts: IntArray
    order: str = "next"
    together: int = 1
    is_reproducible: ClassVar[bool] = True

    @classmethod
    def of(cls, problem: Problem, rewards: Sequence[FloatArray], order: str = "next") -> "TableSource":
        """Return the table with these rewards, one array for each arm."""
        if len(rewards) != problem.n:
            raise InvalidProblem(f"the table has {len(rewards)} arms but the problem has {problem.n}.")
        sizes = [len(one) for one in rewards]
        if 0 in sizes:
            name = problem.name(sizes.index(0))
            raise InvalidProblem(f"the table has no rows of {name}; record some, or leave the arm out.")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(problem, np.concatenate(rewards), starts, one_of(order, "order", ORDERS))

    def rows(self, arm: int) -> int:
        """Return the number of recorded rewards of an arm."""
        return int(self.starts[arm + 1] - self.starts[arm])

    def answers(self, calls: Sequence[Call]) -> list[FloatArray]:
        """Return the rows of each call; raise FinalFailure if an arm has no more rows."""
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> FloatArray:
        own = self.values[self.starts[call.arm] : self.starts[call.arm + 1]]
        if self.order == "draw":
            return own[call.rng.integers(len(own), size=call.count)]
        rows, needed = len(own), call.first_pull + call.count
        if needed > rows:
            raise FinalFailure(
                f"the table has {rows:,} rows of {self.problem.name(call.arm)}, but {needed:,} are needed so "
                f"far. Record more rows, or use a larger epsilon or delta. Rows are not used twice, since "
                f"that would make rewards dependent and void the guarantee."
            )
        if self.order == "random":
            own = own[replace(call, first_pull=0).rng.permutation(rows)]
        return own[call.first_pull : needed]
