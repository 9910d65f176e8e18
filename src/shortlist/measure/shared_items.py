"""A Python function as the source of scores on shared items: ``measure(arm, items)`` returns one per item."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shortlist.arrays import IntArray
from shortlist.errors import NotRewards
from shortlist.items import Items
from shortlist.measure.randomness import seeded
from shortlist.measure.source import Call

MeasureItems: TypeAlias = Callable[[int, list[Any]], Any]
"""``measure(arm, items)`` returns the score of the arm on each item, as a list or as a mapping by id."""


@dataclass(frozen=True, eq=False)
class ItemsSource:
    """A function of an arm and items as a source; the pulls of an arm are the items, in the run's order.

    Attributes
    ----------
    measure
        The function.
    items
        All items.
    order
        The order in which all arms take them.
    """

    measure: MeasureItems
    items: Items
    order: IntArray
    together: int = 1

    @classmethod
    def of(cls, measure: MeasureItems, items: Items, seed: int) -> "ItemsSource":
        """Return the source of a run with this seed."""
        return cls(measure, items, items.order(seed))

    @property
    def is_reproducible(self) -> bool:
        """Whether the same call always gets the same answer; unknown for most functions."""
        return getattr(self.measure, "is_reproducible", False) is True

    def answers(self, calls: Sequence[Call]) -> list[Any]:
        """Return the function's scores for each call."""
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Any:
        seeded(call)
        places = self.order[call.first_pull : call.first_pull + call.count].tolist()
        answer = self.measure(call.arm, [self.items.value(place) for place in places])
        if not isinstance(answer, Mapping):
            return answer
        by_id = {str(key): score for key, score in answer.items()}
        missing = [self.items.id(place) for place in places if self.items.id(place) not in by_id]
        if missing or len(by_id) != len(places):
            raise NotRewards(
                f"arm number {call.arm} was measured on {len(places)} items but returned {len(by_id)} scores"
                + (f", and none for item {missing[0]}." if missing else ".")
            )
        return [by_id[self.items.id(place)] for place in places]
