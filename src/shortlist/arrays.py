"""The array types of the library, and the selection rule that every strategy uses."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

BLOCK = 1 << 14
"""The number of entries per block in loops that keep their working arrays in the cache."""

_FEW = 8  # up to this k, repeated argmax is faster than a partition on arrays that fit the cache
_SMALL = 1 << 16
_SOME = 1 << 12  # for fewer values a table does not pay


def blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices that cover the last axis, each of about `BLOCK` entries over all lanes."""
    size = max(1, BLOCK // max(1, math.prod(shape[:-1])))
    for start in range(0, shape[-1], size):
        yield slice(start, start + size)


def largest(values: FloatArray, k: int) -> IntArray:
    """Return the indices of the `k` largest entries along the last axis, in increasing order.

    Ties go to the lower index, so the result does not depend on the method: a few maxima are found one by
    one, many by a partition. Entries must be above minus infinity. Leading axes are lanes.
    """
    n = values.shape[-1]
    if k >= n:
        return np.broadcast_to(np.arange(n), values.shape)
    if k == 1:
        return np.asarray(values.argmax(axis=-1, keepdims=True), dtype=np.int64)
    if k <= _FEW and n <= _SMALL:
        return _largest_one_by_one(values, k)
    return _largest_by_cut(values, k)


def at_largest(items: IntArray, values: FloatArray, k: int) -> IntArray:
    """Return the items at the positions of the `k` largest values, in their original order."""
    n = values.shape[-1]
    if values.size > n or n <= _SMALL or k >= n:
        return np.asarray(at(items, largest(values, k)), dtype=np.int64)
    least, flat, found = kth_largest(values, k), values.reshape(-1), np.empty(k, dtype=np.int64)
    n_found = 0
    for block in blocks(flat.shape):  # one pass over memory; `at` and `largest` would need several
        places = np.flatnonzero(flat[block] >= least)
        if n_found + len(places) > k:  # values tie at the cut, and some must be left out
            return np.asarray(at(items, largest(values, k)), dtype=np.int64)
        found[n_found : n_found + len(places)] = items.reshape(-1)[block][places]
        n_found += len(places)
    return found.reshape(*values.shape[:-1], k)


def all_but(n: int, chosen: IntArray) -> IntArray:
    """Return the numbers from 0 to n - 1 that are not among the chosen ones, in increasing order."""
    is_left = np.ones(n, dtype=np.bool_)
    is_left[chosen] = False
    return np.flatnonzero(is_left)


def kth_largest(values: FloatArray, k: int) -> FloatArray:
    """Return the k-th largest value along the last axis, which is kept with length 1."""
    n = values.shape[-1]
    if k == 1:
        return np.asarray(values.max(axis=-1, keepdims=True))
    if n > _SMALL and values.size == n:
        found = _kth_by_sample(values.reshape(-1), k)
        if found is not None:
            return np.full((*values.shape[:-1], 1), found)
    return np.partition(values, n - k, axis=-1)[..., n - k, None]


def as_slice(indices: IntArray) -> slice | None:
    """Return consecutive indices as a slice, which is much faster to read; None if they are not."""
    first, last = int(indices[0]), int(indices[-1])
    if last - first != len(indices) - 1 or (indices != np.arange(first, last + 1)).any():
        return None
    return slice(first, last + 1)


def places_in(edges: FloatArray, values: FloatArray) -> IntArray:
    """Return for each finite value how many of some sorted edges lie below it, as `np.searchsorted` does.

    For many values a table of evenly spaced numbers says where to begin, and few steps are left.
    """
    if len(values) < _SOME:
        return edges.searchsorted(values)
    is_first = np.isfinite(edges)
    is_first[1:] &= edges[1:] > edges[:-1]  # edges may be equal, or infinite
    firsts = np.flatnonzero(is_first)
    own = edges[firsts]
    if len(own) < 2:
        return edges.searchsorted(values)
    size = min(BLOCK, len(values) // 2)
    scale = size / (own[-1] - own[0])
    starts = own.searchsorted(own[0] + (np.arange(size + 1) - 1) / scale)  # one earlier: rounding
    after, found = np.append(own, np.inf), np.empty(len(values), dtype=np.int64)
    counts = np.append(firsts, np.count_nonzero(edges < np.inf))
    for block in blocks(values.shape):
        some = values[block]
        places = starts[np.clip((some - own[0]) * scale, 0, size).astype(np.int64)]
        while (is_above := after[places] < some).any():
            places += is_above
        found[block] = counts[places]
    return found


def is_increasing(numbers: IntArray) -> bool:
    """Return whether each number is larger than the one before it, so that none occurs twice."""
    return bool((numbers[1:] > numbers[:-1]).all())


def sorting(numbers: IntArray) -> IntArray:
    """Return the order that sorts numbers; where most numbers up to the largest occur, without comparing."""
    if len(numbers) == 0 or numbers.min() < 0 or numbers.max() >= 4 * len(numbers):
        return np.argsort(numbers, kind="stable")
    places = np.full(int(numbers.max()) + 1, -1)
    places[numbers] = np.arange(len(numbers))
    order = places[places >= 0]
    return order if len(order) == len(numbers) else np.argsort(numbers, kind="stable")  # some occur twice


def order_of(values: FloatArray) -> IntArray:
    """Return the order that sorts values, equal ones in order of their indices."""
    order = np.argsort(values)  # faster than a stable sort, and the same where no values are equal
    found = values[order]
    return np.argsort(values, kind="stable") if (found[1:] == found[:-1]).any() else order


def has_repeats(numbers: IntArray) -> bool:
    """Return whether a number occurs twice."""
    return not is_increasing(numbers) and len(np.unique(numbers)) < len(numbers)


def flat_index(shape: tuple[int, ...], indices: Any) -> Any:
    """Return the positions of `indices` along the last axis in the flattened array of this shape."""
    if math.prod(shape[:-1]) == 1:
        return indices
    first = _lane_starts(shape)
    return indices + (first[..., None] if indices.ndim == len(shape) else first)


def at(values: Any, indices: IntArray) -> Any:
    """Return the entries of each lane at the indices given for it."""
    return values.reshape(-1)[flat_index(values.shape, indices)]


@lru_cache(maxsize=64)
def _lane_starts(shape: tuple[int, ...]) -> IntArray:
    starts = np.arange(0, math.prod(shape), shape[-1]).reshape(shape[:-1])
    starts.flags.writeable = False
    return starts


def _largest_one_by_one(values: FloatArray, k: int) -> IntArray:
    rest = np.array(values, order="C")  # so that `flat` is a view of it
    flat = rest.reshape(-1)
    chosen = np.empty((*values.shape[:-1], k), dtype=np.int64)
    for place in range(k):
        best = rest.argmax(axis=-1)
        chosen[..., place] = best
        flat[flat_index(rest.shape, best)] = -np.inf
    chosen.sort(axis=-1)
    return chosen


def _kth_by_sample(values: FloatArray, k: int) -> float | None:
    """Return the k-th largest of many values without moving them; None if the sample is misleading.

    An evenly spaced sample gives two bounds that the value most probably lies between; one pass counts the
    values above and collects the few values between (after Floyd and Rivest).
    """
    sample = np.sort(values[:: max(1, len(values) // BLOCK)])
    place = len(sample) * (1 - (k - 0.5) / len(values))
    reach = 4 * math.sqrt(len(sample) * (k / len(values)) * (1 - k / len(values))) + 8
    low = sample[max(0, math.floor(place - reach))]
    high = sample[math.ceil(place + reach)] if place + reach < len(sample) - 1 else math.inf
    n_high = 0  # values at `high` or above
    between = []
    for block in blocks(values.shape):
        part = values[block]
        n_high += int(np.count_nonzero(part >= high))
        between.append(part[(part > low) & (part < high)])
    inner = np.concatenate(between)
    rank = k - n_high
    if 0 < rank <= len(inner):
        return float(np.partition(inner, len(inner) - rank)[len(inner) - rank])
    # If many values tie, the answer may be one of the bounds.
    if rank <= 0:
        return float(high) if k > np.count_nonzero(values > high) else None
    n_low = 0 if low == high else np.count_nonzero(values == low)
    return float(low) if rank - len(inner) <= n_low else None


def _largest_by_cut(values: FloatArray, k: int) -> IntArray:
    n = values.shape[-1]
    least = kth_largest(values, k)
    is_in = values >= least
    if np.count_nonzero(is_in) > k * math.prod(values.shape[:-1]):  # ties at the cut: the last are left out
        excess = is_in.sum(axis=-1, keepdims=True) - k
        is_tied = values == least
        n_tied = is_tied.sum(axis=-1, keepdims=True)
        is_in &= ~(is_tied & (is_tied.cumsum(axis=-1) > n_tied - excess))
    found = np.flatnonzero(is_in)
    if values.size > n:
        found %= n
    return found.reshape(*values.shape[:-1], k)
