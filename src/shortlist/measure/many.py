"""Many calls and their answers, held as arrays: what keeps the cost of a million cheap calls small."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.measure.function import Summary
from shortlist.measure.source import Call


@dataclass(frozen=True, eq=False)
class Calls(Sequence[Call]):
    """Calls of one run, as arrays and as a sequence of `Call`."""

    seed: int
    arms: IntArray
    counts: IntArray
    first_pulls: IntArray

    @classmethod
    def of(cls, calls: Sequence[Call]) -> "Calls":
        """Return any sequence of calls in this form."""
        if isinstance(calls, cls):
            return calls
        columns = ([getattr(call, name) for call in calls] for name in ("arm", "count", "first_pull"))
        return cls(calls[0].seed, *(np.array(column, dtype=np.int64) for column in columns))

    def __len__(self) -> int:
        return len(self.arms)

    @overload
    def __getitem__(self, place: int) -> Call: ...
    @overload
    def __getitem__(self, place: slice) -> "Calls": ...
    def __getitem__(self, place: int | slice) -> "Call | Calls":
        if isinstance(place, slice):
            return Calls(self.seed, self.arms[place], self.counts[place], self.first_pulls[place])
        return Call(self.seed, int(self.arms[place]), int(self.counts[place]), int(self.first_pulls[place]))


@dataclass(frozen=True, eq=False)
class Summaries(Sequence[Summary]):
    """Answers to many calls, as arrays and as a sequence of `Summary`; NaN is an unknown variance.

    `rewards` has the rewards themselves, a row for each answer, where they were given.
    """

    counts: IntArray
    means: FloatArray
    variances: FloatArray
    rewards: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.means)

    @overload
    def __getitem__(self, place: int) -> Summary: ...
    @overload
    def __getitem__(self, place: slice) -> "Summaries": ...
    def __getitem__(self, place: int | slice) -> "Summary | Summaries":
        if isinstance(place, slice):
            rewards = None if self.rewards is None else self.rewards[place]
            return Summaries(self.counts[place], self.means[place], self.variances[place], rewards)
        variance = float(self.variances[place])
        known = None if np.isnan(variance) else variance
        return Summary(int(self.counts[place]), float(self.means[place]), known)


def pooled(parts: Sequence[Summary]) -> Summary:
    """Return what is known of several lots of rewards of one arm, taken together in this order."""
    count = sum(part.count for part in parts)
    base = parts[0].mean
    mean = base + sum(part.count * (part.mean - base) for part in parts) / count
    within = [0.0 if part.count == 1 else part.variance for part in parts]
    if count == 1 or None in within:
        return Summary(count, mean)
    inside = sum((part.count - 1) * (spread or 0.0) for part, spread in zip(parts, within, strict=True))
    between = sum(part.count * (part.mean - mean) ** 2 for part in parts)
    return Summary(count, mean, (inside + between) / (count - 1))
