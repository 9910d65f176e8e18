"""A Python function that measures many arms at once, as a source of rewards.

Its arrays may be those of NumPy, or of another library, on a GPU for example. Rewards are then summed up
where they are, and only summaries are copied to NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem, NotRewards
from shortlist.measure.function import Summary
from shortlist.measure.many import Calls, Summaries, is_foreign, moments, to_numpy
from shortlist.measure.randomness import seeded
from shortlist.measure.source import Call
from shortlist.problem import MOST_PULLS

MeasureMany: TypeAlias = Callable[[IntArray, IntArray, np.random.Generator], Any]
"""``function(arms, counts, rng)``; see `vectorised` for its result."""

_WHOLE_ROUND = 1 << 40  # more calls than any round has


@dataclass(frozen=True)
class VectorisedSource:
    """A Python function as a source of rewards, called once per chunk of calls."""

    function: MeasureMany
    together: int = 4096

    def answers(self, calls: Sequence[Call]) -> Sequence[Any]:
        """Return the function's results for a chunk of calls."""
        block = Calls.of(calls)
        answer = self.function(block.arms.copy(), block.counts.copy(), seeded(block[0]))
        return _answers(answer, block.counts)


def vectorised(function: MeasureMany, block: int | None = 4096) -> VectorisedSource:
    """Return a measure for `select` and `drive` from a function that measures many arms at once.

    Parameters
    ----------
    function
        ``function(arms, counts, rng)`` gets the numbers of at most `block` arms, the number of pulls of
        each, and one NumPy generator for all. The same arm may occur several times. It returns one of these:

        - the mean of each arm's rewards as an array;
        - ``Summary(counts, means, variances)`` with an array in each place, where `variances` are sample
          variances (with the denominator count - 1; those of a single reward may be NaN). Strategies for
          unknown variances need them;
        - if all counts are equal, a two-dimensional array with one row of rewards per arm;
        - a list with one array of rewards per arm.

        On shared items and in blocks it is ``function(arms, items)`` or ``function(arms, blocks)`` instead:
        it gets the numbers of some arms, and a list of items, or of seeds of blocks, that is the same for
        all of them. It returns a table with a row for each arm and a column for each item or block. Take
        what arms of a block share from the block's seed.

        Arrays may be on a GPU: those of CuPy, PyTorch, JAX, and others of the array API standard. Rewards
        are reduced to means and sample variances there, and only these are copied.
    block
        The maximum number of arms per call of the function. Rewards depend on it, as they do on the seed.
        None for one call per round, however many arms it has: so a GPU is used best. Workers share chunks;
        so with None one worker measures the whole round, and a budget pays for whole rounds only.

    Notes
    -----
    Take all random numbers from `rng`, so that the run can be reproduced. Seed the generator of another
    library from it: ``cupy.random.default_rng(rng.integers(2**63))``,
    ``torch.Generator("cuda").manual_seed(int(rng.integers(2**63)))``, or
    ``jax.random.key(rng.integers(2**32))``.

    Examples
    --------
    >>> import numpy as np
    >>> import shortlist as sl
    >>> problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=np.ones(1000))
    >>> def function(arms, counts, rng):
    ...     return arms / 500 + rng.normal(size=len(arms)) / np.sqrt(counts)
    >>> int(sl.select(sl.vectorised(function), problem).indices[0]) > 750
    True

    With unknown variances, and one call per round:

    >>> problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=1000, rewards=sl.Gaussian())
    >>> def function(arms, counts, rng):
    ...     means = arms / 500 + rng.normal(size=len(arms)) / np.sqrt(counts)
    ...     return sl.Summary(counts, means, rng.chisquare(counts - 1) / (counts - 1))
    >>> int(sl.select(sl.vectorised(function, block=None), problem).indices[0]) > 750
    True
    """
    if not callable(function):
        raise InvalidProblem(f"`function` is {function!r}; it must be a function(arms, counts, rng).")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise InvalidProblem(
            "`function` is async; `vectorised` takes plain functions only. Or omit `vectorised`, and let an "
            "async function measure one arm, as measure(arm, count, rng): then many calls run at once."
        )
    together = _WHOLE_ROUND if block is None else whole_number(block, "block", 1, MOST_PULLS)
    return VectorisedSource(function, together)


def _answers(answer: Any, counts: IntArray) -> Sequence[Any]:
    """Return one answer per arm; whether its numbers are valid rewards is checked later."""
    if isinstance(answer, Summary):
        return _of_summary(answer, counts)
    is_list = isinstance(answer, list | tuple)
    if is_list and len(answer) == len(counts) and not all(np.isscalar(entry) for entry in answer):
        if set(map(type, answer)) == {np.ndarray}:
            return list(answer)
        return [to_numpy(entry) if is_foreign(entry) else entry for entry in answer]
    if is_foreign(answer) and counts[0] > 1 and _is_rows(answer, counts) and _is_float(answer):
        return Summaries(counts, *moments(answer), answer)
    try:
        found = to_numpy(answer)
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
    if _is_rows(numbers, counts):
        return _of_rows(numbers, counts)
    raise _unusable(f"an array of shape {numbers.shape}", counts)


def _is_rows(answer: Any, counts: IntArray) -> bool:
    return (counts == counts[0]).all() and tuple(answer.shape) == (len(counts), counts[0])


def _is_float(answer: Any) -> bool:
    """Return whether another library can compute means of an array; types are named alike everywhere."""
    return str(answer.dtype).rpartition(".")[2] in {"float32", "float64"}


def _of_rows(rewards: FloatArray, counts: IntArray) -> Summaries:
    with np.errstate(over="ignore", invalid="ignore"):
        means = rewards.mean(axis=1)
        spreads = rewards.var(axis=1, ddof=1) if counts[0] > 1 else np.full(len(counts), np.nan)
    return Summaries(counts, means, np.where(np.isfinite(spreads), spreads, np.nan), rewards)


def _of_summary(answer: Summary, counts: IntArray) -> Summaries:
    """Return a summary with an array in each place in the form of many answers."""
    given: tuple[Any, ...] = (answer.count, answer.mean, answer.variance)
    columns = [np.full(len(counts), np.nan) if column is None else to_numpy(column) for column in given]
    for name, column in zip(("counts", "means", "variances"), columns, strict=True):
        if column.shape != counts.shape or column.dtype.kind not in "iuf":
            raise _unusable(f"a summary whose {name} are {column.dtype} of shape {column.shape}", counts)
    means, variances = (column.astype(np.float64) for column in columns[1:])
    is_other = columns[0] != counts
    if is_other.any():
        place = int(np.argmax(is_other))
        raise NotRewards(
            f"the function was to measure {counts[place]} rewards of an arm, but its summary says that they "
            f"are {columns[0][place]}. Return summaries of exactly `counts` rewards."
        )
    is_wrong = (variances < 0) | np.isinf(variances)
    if is_wrong.any():
        wrong = variances[is_wrong][0]
        raise NotRewards(f"the function returned the variance {wrong}; it must be at least 0, and finite.")
    return Summaries(counts, means, variances)


def _unusable(what: str, counts: IntArray) -> NotRewards:
    return NotRewards(
        f"the function was given {len(counts)} arms and returned {what}; return an array with each "
        f"arm's mean reward, or shortlist.Summary(counts, means, variances) with arrays, or a list with one "
        f"array of rewards for each arm."
    )
