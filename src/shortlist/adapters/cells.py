"""Cells of a table of scores, measured by a tool a round at a time, as a source for `select` and `drive`."""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

from shortlist.errors import MeasurementFailed
from shortlist.items import Items
from shortlist.measure.shared_items import ids_of
from shortlist.measure.source import Call
from shortlist.problem import Problem
from shortlist.rewards import Bounded


class Measured(NamedTuple):
    """What an evaluation found, by arm and item: scores, and the reasons why there are none."""

    scores: dict[tuple[int, str], float]
    failures: dict[tuple[int, str], str]


class Cells:
    """Candidates of an evaluation tool: what `select` measures, and the question about them.

    A round of the strategy is one call of `evaluate`, for some arms and the items that are wanted of each,
    since tools take seconds to start, and measure many samples at once. If some cells fail, those that were
    measured are kept in memory, and only the others are tried again by this process.

    Attributes
    ----------
    names
        The names of the arms.
    items
        The ids of the items, and what they are.
    about
        A digest of each candidate, as far as it can be described. A run is resumed only with the same ones.
    """

    together: ClassVar[int] = 1 << 20  # calls: a whole round

    def __init__(self, names: Sequence[str], items: Mapping[str, Any], candidates: Sequence[Any]) -> None:
        self.names = list(names)
        self.items = Items.of(dict(items))
        self.about = {
            f"candidate {name}": _digest(one) for name, one in zip(self.names, candidates, strict=True)
        }
        self._kept: dict[tuple[int, str], float] = {}

    @abstractmethod
    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add the scores of each arm on the items wanted of it; those found before an error are kept."""

    def evaluated(self, wanted: Mapping[int, Sequence[str]]) -> Measured:
        """Return the scores of each arm on the items wanted of it."""
        found = Measured({}, {})
        self.evaluate(wanted, found)
        return found

    def problem(self, m: int, epsilon: float, delta: float, *, rewards: Any = None, **more: Any) -> Problem:
        """Return the question which of the candidates are the m best on all items.

        Parameters
        ----------
        m, epsilon, delta
            As of `shortlist.Problem`.
        rewards
            What scores can be. The default is `Bounded(0, 1)`.
        more
            Other arguments of `shortlist.Problem`, such as `costs`, `known` or `target`.
        """
        bounds = Bounded(0, 1) if rewards is None else rewards
        return Problem(m, epsilon, delta, names=self.names, rewards=bounds, items=self.items, **more)

    def answers(self, calls: Sequence[Call]) -> list[list[float]]:
        """Return the scores of each call."""
        cells = [[(call.arm, item) for item in ids_of(self.items, call)] for call in calls]
        wanted: dict[int, list[str]] = {}
        for arm, item in (cell for row in cells for cell in row if cell not in self._kept):
            wanted.setdefault(arm, []).append(item)
        found = Measured({}, {})
        try:
            if wanted:
                self.evaluate(wanted, found)
        finally:
            self._kept |= found.scores
        if missing := [cell for row in cells for cell in row if cell not in self._kept]:
            arm, item = missing[0]
            more = f", and {len(missing) - 1:,} others" if len(missing) > 1 else ""
            raise MeasurementFailed(
                f"there is no score of {self.names[arm]} on item {item}{more}: "
                f"{found.failures.get((arm, item), 'the evaluation did not return it')}"
            )
        return [[self._kept.pop(cell) for cell in row] for row in cells]


def described(value: Any) -> Any:
    """Return a value as plain data for JSON: objects by their type, functions by their name."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): described(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [described(one) for one in value]
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _digest(candidate: Any) -> str:
    text = json.dumps(described(candidate), sort_keys=True)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
