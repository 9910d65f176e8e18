"""The state of a run on shared items (`shared_items.py`): scores, prefixes, and the evidence so far."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, all_but
from shortlist.certificates.shared_items import BETS, Controls, Hypothesis, Thresholds
from shortlist.problem import Problem
from shortlist.strategies.protocol import Done


@dataclass(frozen=True, eq=False)
class Pairs:
    """The paired evidence about one incumbent and every other arm.

    Attributes
    ----------
    seen, sums
        For each other arm: the number of items that count, and the sum of the differences of their scores.
    logs, latest
        The logarithms of evidence for each size of bets, and of their mean.
    is_settled
        Whether the other arm is certainly not better by more than epsilon.
    """

    seen: IntArray
    sums: FloatArray
    logs: FloatArray
    latest: FloatArray
    is_settled: BoolArray

    @classmethod
    def none(cls, n: int) -> "Pairs":
        """Return the evidence before the first item."""
        zeros = np.zeros(n)
        return cls(np.zeros(n, dtype=np.int64), zeros, np.zeros((n, len(BETS))), zeros, zeros > 0)

    def copy(self) -> "Pairs":
        """Return an independent copy."""
        return Pairs(*(getattr(self, name).copy() for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Singles:
    """The single evidence about every arm, that its mean is below that of incumbents plus epsilon.

    Attributes
    ----------
    total
        The sum of scores over all items that is to be refuted.
    seen, logs, latest, is_settled
        As in `Pairs`, for each arm.
    """

    total: float
    seen: IntArray
    logs: FloatArray
    latest: FloatArray
    is_settled: BoolArray

    @classmethod
    def none(cls, total: float, n: int) -> "Singles":
        """Return the evidence before the first item."""
        zeros = np.zeros(n)
        return cls(total, np.zeros(n, dtype=np.int64), np.zeros((n, len(BETS))), zeros, zeros > 0)


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await the scores of their next items.

    Attributes
    ----------
    problem, hypothesis, thresholds
        The question, and what evidence must reach.
    scores
        By arm and position in the order of items, as shares of the bounds; 0 where not seen. There are as
        many columns as were needed so far.
    seen, sums
        For each arm: the length of its prefix, and the sum of its scores.
    serves_from
        For arms that were measured on all items: the position from which they help to predict.
    controls
        The predictions that were used so far, by arm and position; None if there are none.
    pairs
        The paired evidence, by incumbent.
    singles
        The single evidence; None if no incumbent was measured on all items.
    incumbents
        The m arms that look best.
    arms, counts
        The batch awaited.
    earlier
        Other sets of incumbents before, the latest first; decisions do not depend on them.
    """

    problem: Problem
    hypothesis: Hypothesis
    thresholds: Thresholds
    scores: FloatArray
    seen: IntArray
    sums: FloatArray
    serves_from: IntArray
    controls: Controls | None
    pairs: dict[int, Pairs]
    singles: Singles | None
    incumbents: IntArray
    arms: IntArray
    counts: IntArray
    earlier: tuple[IntArray, ...] = ()

    def pairs_of(self, arm: int) -> Pairs:
        """Return the paired evidence about an arm, as far as it was an incumbent."""
        return self.pairs.get(arm) or Pairs.none(self.problem.n)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.problem.n_items

    @property
    def is_full(self) -> BoolArray:
        """Which arms were measured on all items."""
        is_full: BoolArray = self.seen == self.n_items
        return is_full

    @property
    def outsiders(self) -> IntArray:
        """All arms but the incumbents."""
        return all_but(self.problem.n, self.incumbents)


@dataclass(frozen=True, eq=False)
class Ended(Done):
    """All pairs are settled; `last` is the state in which the run ended."""

    last: Open
