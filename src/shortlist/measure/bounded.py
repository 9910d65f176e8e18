"""A guard around another source: rewards that were declared to lie between two numbers must do so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.checks import is_whole
from shortlist.errors import FinalFailure
from shortlist.measure.function import Summary, summary_of
from shortlist.measure.source import Call, Source
from shortlist.problem import Problem

_ROUNDING = 1e-9  # of the range: by so much may the mean of rewards within it lie outside


@dataclass(frozen=True, eq=False)
class BoundedSource:
    """A source whose rewards surely lie between `low` and `high`, or the run stops."""

    source: Source
    problem: Problem
    low: float
    high: float

    @property
    def together(self) -> int:
        """How many calls are answered at once."""
        return self.source.together

    def answers(self, calls: Sequence[Call]) -> list[Summary]:
        """Return the other source's answers as summaries; raise FinalFailure for one out of bounds."""
        answers = self.source.answers(calls)
        return [self._checked(answer, call) for answer, call in zip(answers, calls, strict=True)]

    def _checked(self, answer: object, call: Call) -> Summary:
        name = self.problem.name(call.arm)
        summary = summary_of(answer, call.count, name)
        outside = self.outside(answer, summary)
        if outside is not None:
            raise FinalFailure(
                f"{name} returned the reward {outside:g}, but `bounds` says that all lie between "
                f"{self.low:g} and {self.high:g}. The guarantee rests on that: mend the measurement, or "
                f"state wider bounds and begin again."
            )
        return summary

    def outside(self, answer: Any, summary: Summary) -> float | None:
        """Return a reward, or a mean of some, that lies outside the bounds, if there is one."""
        values = np.atleast_1d(np.asarray(summary.mean if is_summary(answer) else answer, dtype=np.float64))
        slack = _ROUNDING * (self.high - self.low) if is_summary(answer) else 0.0
        is_outside = (values < self.low - slack) | (values > self.high + slack)
        return float(values[is_outside][0]) if is_outside.any() else None


def is_summary(answer: Any) -> bool:
    """Whether an answer that `summary_of` takes is a summary, and not the rewards one by one."""
    is_pair = isinstance(answer, tuple) and len(answer) == 2 and is_whole(answer[0])
    return is_pair or isinstance(answer, Summary)
