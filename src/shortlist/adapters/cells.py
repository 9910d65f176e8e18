"""Cells of a table of scores, measured by a tool a round at a time, as a source for `select` and `drive`."""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar, TypeAlias

from shortlist.errors import MeasurementFailed, RetryLater
from shortlist.items import Items
from shortlist.measure.shared_items import ids_of
from shortlist.measure.source import Call, Take
from shortlist.problem import Problem
from shortlist.rewards import Bounded

Cell: TypeAlias = tuple[int, str]
"""The number of an arm, and the id of an item."""


@dataclass(eq=False)
class Measured:
    """What an evaluation found: scores, and the reasons why there are none.

    Attributes
    ----------
    scores, failures
        By arm and item.
    news
        Called with new scores, if there are any; returns whether to go on.
    """

    scores: dict[Cell, float] = field(default_factory=dict)
    failures: dict[Cell, str] = field(default_factory=dict)
    news: Callable[[Mapping[Cell, float]], bool] = lambda _: True

    @property
    def is_over(self) -> bool:
        """Whether the evaluation should start nothing new."""
        return not self.news({})

    def add(self, scores: Mapping[Cell, float]) -> None:
        """Add scores; they are recorded at once."""
        new = {cell: score for cell, score in scores.items() if cell not in self.scores}
        self.scores |= new
        if new:
            self.news(new)


class Cells:
    """Candidates of an evaluation tool: what `select` measures, and the question about them.

    A round of the strategy is one call of `evaluate`, for some arms and the items that are wanted of each,
    since tools take seconds to start, and measure many samples at once. Every score is recorded when
    `evaluate` adds it. So if some cells fail, or the process ends, only the others are measured again.

    Attributes
    ----------
    names
        The names of the arms.
    items
        The ids of the items, and what they are.
    goal
        "minimise" if small scores are good, as far as the tool says; else "maximise".
    about
        A digest of each candidate, as far as it can be described. A run is resumed only with the same ones.
    """

    goal: str = "maximise"
    together: ClassVar[int] = 1 << 20  # calls: a whole round
    pulls_per_call: ClassVar[int] = 1

    def __init__(self, names: Sequence[str], items: Mapping[str, Any], candidates: Sequence[Any]) -> None:
        self.names = list(names)
        self.items = Items.of(dict(items))
        self.about = {
            f"candidate {name}": _digest(one) for name, one in zip(self.names, candidates, strict=True)
        }
        self._kept: dict[Cell, float] = {}

    @abstractmethod
    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add the scores of each arm on the items wanted of it, as soon as they are known.

        If `found.is_over`, nothing new should be started.
        """

    def evaluated(self, wanted: Mapping[int, Sequence[str]]) -> Measured:
        """Return the scores of each arm on the items wanted of it."""
        found = Measured()
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
        asked = {"goal": self.goal} | more
        return Problem(m, epsilon, delta, names=self.names, rewards=bounds, items=self.items, **asked)

    def answers(self, calls: Sequence[Call]) -> list[list[float]]:
        """Return the scores of each call."""
        found: dict[int, list[float]] = {}

        def take(answers: Mapping[int, Any]) -> bool:
            found.update(answers)
            return True

        self.answer_each(calls, take)
        return [found[number] for number in range(len(calls))]

    def answer_each(self, calls: Sequence[Call], take: Take) -> None:
        """Pass the scores of each call to `take` when they are known; raise if some are missing."""
        rows = [[(call.arm, item) for item in ids_of(self.items, call)] for call in calls]
        of_cell = {cell: number for number, row in enumerate(rows) for cell in row}
        missing = dict.fromkeys(of_cell)

        def news(scores: Mapping[Cell, float]) -> bool:
            known = [cell for cell in scores if cell in missing]
            for cell in known:
                del missing[cell]
            self._kept |= {cell: scores[cell] for cell in known}
            numbers = dict.fromkeys(of_cell[cell] for cell in known)
            complete = [number for number in numbers if all(cell in self._kept for cell in rows[number])]
            return take({number: [self._kept.pop(cell) for cell in rows[number]] for number in complete})

        found = Measured(news=news)
        found.add({cell: self._kept[cell] for cell in of_cell if cell in self._kept})
        wanted: dict[int, list[str]] = {}
        for arm, item in missing:
            wanted.setdefault(arm, []).append(item)
        if wanted and not found.is_over:
            self.evaluate(wanted, found)
        if missing and found.is_over:
            raise RetryLater(0, "the run was stopped")
        if missing:
            arm, item = next(iter(missing))
            more = f", and {len(missing) - 1:,} others" if len(missing) > 1 else ""
            raise MeasurementFailed(
                f"there is no score of {self.names[arm]} on item {item}{more}: "
                f"{found.failures.get((arm, item), 'the evaluation did not return it')}"
            )


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
