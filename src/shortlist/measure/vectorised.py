"""A Python function that measures many arms at once, as a source of rewards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem, NotRewards
from shortlist.measure.many import Calls, Summaries
from shortlist.measure.randomness import seeded
from shortlist.measure.source import Call

MeasureMany: TypeAlias = Callable[[IntArray, IntArray, np.random.Generator], Any]
"""``function(arms, counts, rng)``; see `vectorised` for its result."""


@dataclass(frozen=True)
class VectorisedSource:
    """A Python function as a source of rewards, called once per block of calls."""

    function: MeasureMany
    together: int = 4096

    def answers(self, calls: Sequence[Call]) -> Sequence[Any]:
        """Return the function's results for a block of calls."""
        block = Calls.of(calls)
        answer = self.function(block.arms.copy(), block.counts.copy(), seeded(block[0]))
        return _answers(answer, block.counts)


def vectorised(function: MeasureMany, block: int = 4096) -> VectorisedSource:
    """Return a measure for `select` and `drive` from a function that measures many arms at once.

    Parameters
    ----------
    function
        ``function(arms, counts, rng)`` gets the numbers of at most `block` arms, the number of pulls of
        each, and one NumPy generator for all. It returns the mean of each arm's rewards as an array; or a
        list with one array of rewards per arm; or, if all counts are equal, a two-dimensional array with one
        row of rewards per arm. The same arm may occur several times.
    block
        The maximum number of arms per call of the function. Rewards depend on it, as they do on the seed.

    Examples
    --------
    >>> import numpy as np
    >>> import shortlist as sl
    >>> problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=np.ones(1000))
    >>> def function(arms, counts, rng):
    ...     return arms / 500 + rng.normal(size=len(arms)) / np.sqrt(counts)
    >>> int(sl.select(sl.vectorised(function), problem).indices[0]) > 750
    True
    """
    if not callable(function):
        raise InvalidProblem(f"`function` is {function!r}; it must be a function(arms, counts, rng).")
    return VectorisedSource(function, whole_number(block, "block", 1))


def _answers(answer: Any, counts: IntArray) -> Sequence[Any]:
    """Return one answer per arm; whether its numbers are valid rewards is checked later."""
    is_list = isinstance(answer, list | tuple)
    if is_list and len(answer) == len(counts) and not all(np.isscalar(entry) for entry in answer):
        return list(answer)
    try:
        found = np.ma.filled(np.ma.asarray(answer), np.nan) if np.ma.isMA(answer) else np.asarray(answer)
    except (TypeError, ValueError):
        raise _unusable(f"a {type(answer).__name__}", counts) from None
    is_rewards = found.shape[:1] == counts.shape and (found.ndim == 2 or (counts == 1).all())
    if found.dtype.kind == "b" and is_rewards:
        return list(found)
    if found.dtype.kind not in "iuf":
        raise _unusable(f"{type(answer).__name__} of {found.dtype}", counts)
    numbers = found.astype(np.float64)
    if numbers.shape == counts.shape:
        return Summaries(counts, numbers, np.full(len(counts), np.nan))
    if (counts == counts[0]).all() and numbers.shape == (len(counts), counts[0]):
        return _of_rows(numbers, counts)
    raise _unusable(f"an array of shape {numbers.shape}", counts)


def _of_rows(rewards: FloatArray, counts: IntArray) -> Summaries:
    with np.errstate(over="ignore", invalid="ignore"):
        means = rewards.mean(axis=1)
        spreads = rewards.var(axis=1, ddof=1) if counts[0] > 1 else np.full(len(counts), np.nan)
    return Summaries(counts, means, np.where(np.isfinite(spreads), spreads, np.nan), rewards)


def _unusable(what: str, counts: IntArray) -> NotRewards:
    return NotRewards(
        f"the function was given {len(counts)} arms and returned {what}; return an array with each "
        f"arm's mean reward, or a list with one array of rewards for each arm."
    )
