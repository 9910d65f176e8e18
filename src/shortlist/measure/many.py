"""Many calls and their answers as arrays, which keeps the cost of a million cheap calls small.

Answers may be arrays of other libraries: CuPy, PyTorch, JAX, and others of the array API standard. None of
them is imported here; an array brings its own library.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.measure.function import Summary
from shortlist.measure.source import Call
from shortlist.tickets import Tickets


@dataclass(frozen=True, eq=False)
class Calls(Sequence[Call]):
    """Calls of one run, as arrays and as a sequence of `Call`."""

    entropy: int
    arms: IntArray
    counts: IntArray
    first_pulls: IntArray
    ranks: IntArray | None = None

    @classmethod
    def of(cls, calls: Sequence[Call]) -> "Calls":
        """Return any sequence of calls in this form."""
        if isinstance(calls, cls):
            return calls
        names = ("arm", "count", "first_pull", "rank")[: 3 if calls[0].rank is None else 4]
        columns = ([getattr(call, name) for call in calls] for name in names)
        return cls(calls[0].entropy, *(np.array(column, dtype=np.int64) for column in columns))

    @classmethod
    def for_tickets(cls, entropy: int, tickets: Tickets) -> "Calls":
        """Return one call for each ticket, or for each part of a ticket."""
        ranks = tickets.problem.ranks
        own = None if ranks is None else ranks[tickets.arms]
        return cls(entropy, tickets.arms, tickets.counts, tickets.first_pulls, own)

    def take(self, places: Any) -> "Calls":
        """Return some of the calls."""
        ranks = None if self.ranks is None else self.ranks[places]
        return Calls(self.entropy, self.arms[places], self.counts[places], self.first_pulls[places], ranks)

    def __len__(self) -> int:
        return len(self.arms)

    @overload
    def __getitem__(self, place: int) -> Call: ...
    @overload
    def __getitem__(self, place: slice) -> "Calls": ...
    def __getitem__(self, place: int | slice) -> "Call | Calls":
        if isinstance(place, slice):
            return self.take(place)
        rank = None if self.ranks is None else int(self.ranks[place])
        own = (int(self.arms[place]), int(self.counts[place]), int(self.first_pulls[place]))
        return Call(self.entropy, *own, rank)


@dataclass(frozen=True, eq=False)
class Summaries(Sequence[Summary]):
    """Answers to many calls, as arrays and as a sequence of `Summary`; NaN is an unknown variance.

    `rewards` contains the single rewards, one row per answer, if they were given; it may be an array of
    another library. `scores` contains them as well, one array per answer, with shared items.
    """

    counts: IntArray
    means: FloatArray
    variances: FloatArray
    rewards: Any = None
    scores: Sequence[FloatArray] | None = None

    def __len__(self) -> int:
        return len(self.means)

    @overload
    def __getitem__(self, place: int) -> Summary: ...
    @overload
    def __getitem__(self, place: slice) -> "Summaries": ...
    def __getitem__(self, place: int | slice) -> "Summary | Summaries":
        if isinstance(place, slice):
            rewards = None if self.rewards is None else self.rewards[place, ...]
            scores = None if self.scores is None else self.scores[place]
            return Summaries(self.counts[place], self.means[place], self.variances[place], rewards, scores)
        variance = float(self.variances[place])
        known = None if np.isnan(variance) else variance
        return Summary(int(self.counts[place]), float(self.means[place]), known)


def is_foreign(value: Any) -> bool:
    """Return whether a value is an array of another library than NumPy."""
    return hasattr(value, "__dlpack__") and hasattr(value, "shape") and not isinstance(value, np.ndarray)


def to_numpy(values: Any) -> Any:
    """Return values as a NumPy array, copied from a GPU if they are there; masked values are NaN."""
    if np.ma.is_masked(values):
        return np.ma.filled(values.astype(np.float64) if values.dtype.kind in "biu" else values, np.nan)
    if is_foreign(values):
        if hasattr(values, "get"):  # CuPy
            values = values.get()
        elif hasattr(values, "cpu"):  # PyTorch
            values = values.detach().cpu()
    try:
        return np.asarray(values)  # JAX copies from a GPU here
    except RuntimeError:
        return np.from_dlpack(values)


def moments(rows: Any) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the sample variance of each row of an array, computed by its own library.

    Deviations from a rounded mean correct it. So sums in single precision, the default on many GPUs, are
    sufficient.
    """
    library, count = _library(rows), rows.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        rough = library.mean(rows, axis=1)
        apart = rows - rough[:, None]
        columns = rough, library.mean(apart, axis=1), library.sum(apart * apart, axis=1)
        first, shift, squares = (to_numpy(column).astype(np.float64) for column in columns)
        variances = np.maximum(squares - count * shift**2, 0.0) / (count - 1)
        return first + shift, np.where(np.isfinite(variances), variances, np.nan)


def _library(values: Any) -> Any:
    """Return the module with an array's functions; PyTorch does not have the standard's way to get it."""
    if hasattr(values, "__array_namespace__"):
        return values.__array_namespace__()
    return sys.modules[type(values).__module__.partition(".")[0]]


def pooled(counts: IntArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the pooled mean and variance of several batches per arm: rows are arms, columns batches.

    Batches are summed from left to right. NaN is an unknown variance; a batch of one reward needs none.
    """
    total = counts.sum(axis=1)
    base = means[:, :1]
    mean = means[:, 0] + _sums(counts * (means - base)) / total
    is_single = counts == 1
    if np.isnan(variances).all() and not is_single.all(axis=1).any():
        return mean, np.full_like(mean, np.nan)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        inside = _sums(np.where(is_single, 0.0, (counts - 1) * variances))
        between = _sums(counts * (means - mean[:, None]) ** 2)
        return mean, np.where(total == 1, np.nan, (inside + between) / (total - 1))


def _sums(terms: FloatArray) -> FloatArray:
    """Return the sum of each row, from left to right; `sum` would use another order."""
    found = terms[:, 0].copy()
    for column in terms.T[1:]:
        found += column
    return found
