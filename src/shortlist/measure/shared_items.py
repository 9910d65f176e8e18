"""Sources of scores on shared items: a Python function, or a table of recorded scores.

The pulls of an arm are the items, in the order that is fixed by the seed of the run: a call for `count` pulls
from `first_pull` on is for the items at those positions of the order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem, NotRewards
from shortlist.escaping import on_one_line
from shortlist.items import Blocks, Items
from shortlist.measure.function import refuse_single
from shortlist.measure.many import to_numpy
from shortlist.measure.randomness import seeded
from shortlist.measure.source import Call
from shortlist.problem import Problem

_MOST_NAMED = 5  # items in a message
_LONGEST_ID = 60  # letters of an id there

MeasureItems: TypeAlias = Callable[[Any, list[Any]], Any]
"""``measure(arm, items)`` returns the score of the arm on each item, as a list or as a mapping by id."""


def places_of(items: Items, call: Call) -> list[int]:
    """Return the places of the items of a call."""
    return items.places_at(call.entropy, call.first_pull, call.count)


def values_of(items: Items, call: Call) -> list[Any]:
    """Return the items of a call; of blocks their seeds."""
    return items.values_at(call.entropy, call.first_pull, call.count)


def ids_of(items: Items, call: Call) -> list[str]:
    """Return the ids of the items of a call."""
    return [items.id(place) for place in places_of(items, call)]


def items_words(items: Items, call: Call) -> str:
    """Return the items of a call by their ids, for messages."""
    ids = [on_one_line(one)[:_LONGEST_ID] for one in ids_of(items, call)]
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    noun = ("block" if isinstance(items, Blocks) else "item") + ("s" if len(ids) > 1 else "")
    return f"{noun} {', '.join(ids[:_MOST_NAMED])}{more}"


@dataclass(frozen=True, eq=False)
class ItemsSource:
    """A function of an arm and items as a source, called once per call.

    Attributes
    ----------
    measure
        The function. If `together` is above 1, it gets the numbers of several arms at once, and returns one
        row of scores for each.
    items
        All items.
    is_single
        Whether all calls are for one item; then a single number in place of a list is accepted.
    """

    measure: MeasureItems
    items: Items
    together: int = 1
    is_single: bool = False

    @property
    def is_reproducible(self) -> bool:
        """Whether the same call always gets the same answer; unknown for most functions."""
        return getattr(self.measure, "is_reproducible", False) is True

    def answers(self, calls: Sequence[Call]) -> list[Any]:
        """Return the function's scores for each call."""
        if self.together == 1:
            return [self._answer(call) for call in calls]
        groups: dict[tuple[int, int], list[Call]] = {}
        for call in calls:
            groups.setdefault((call.first_pull, call.count), []).append(call)
        found: dict[Call, Any] = {}
        for group in groups.values():
            found |= zip(group, self._rows(group), strict=True)
        return [found[call] for call in calls]

    def _answer(self, call: Call) -> Any:
        seeded(call)
        answer = self.measure(call.arm, values_of(self.items, call))
        if not isinstance(answer, Mapping):
            if not self.is_single:
                refuse_single(answer, "a list with the score of each item")
            return answer
        by_id = {str(key): score for key, score in answer.items()}
        wanted = ids_of(self.items, call)
        if missing := [one for one in wanted if one not in by_id]:
            raise NotRewards(f"arm number {call.arm} returned no score for item {missing[0]}.")
        if len(by_id) > len(wanted):
            raise NotRewards(
                f"arm number {call.arm} was measured on {len(wanted)} items but returned {len(by_id)} scores."
            )
        return [by_id[one] for one in wanted]

    def _rows(self, calls: list[Call]) -> list[FloatArray]:
        seeded(calls[0])
        arms = np.array([call.arm for call in calls])
        answer = self.measure(arms, values_of(self.items, calls[0]))
        scores = to_numpy(answer)
        if scores.shape != (len(calls), calls[0].count):
            raise NotRewards(
                f"the function was given {len(calls)} arms and {calls[0].count} items and returned scores of "
                f"shape {scores.shape}; return one row for each arm, with one score for each item."
            )
        if np.ma.is_masked(answer):
            row, column = np.argwhere(np.ma.getmaskarray(answer))[0]
            one = replace(calls[row], first_pull=calls[row].first_pull + int(column), count=1)
            raise NotRewards(
                f"the score of arm number {one.arm} on {items_words(self.items, one)} is masked; return a "
                f"number for each arm and item."
            )
        return list(scores.copy())  # the function may fill the same array again for other items


@dataclass(frozen=True, eq=False)
class RecordedScores:
    """A whole table of scores as a source: one row per arm, one column per item."""

    items: Items
    scores: FloatArray
    together: int = 1
    is_reproducible: ClassVar[bool] = True

    @classmethod
    def of(cls, problem: Problem, scores: FloatArray) -> "RecordedScores":
        """Return the table for a problem; raise InvalidProblem if it does not have its shape."""
        if problem.items is None or scores.shape != (problem.n, problem.n_items):
            raise InvalidProblem(
                f"the table has scores of {scores.shape[0]:,} arms on {scores.shape[-1]:,} items, but the "
                f"problem has {problem.n:,} arms and {problem.n_items:,} items."
            )
        return cls(problem.items, scores)

    def answers(self, calls: Sequence[Call]) -> list[FloatArray]:
        """Return the recorded scores of each call."""
        return [self.scores[call.arm, places_of(self.items, call)] for call in calls]
