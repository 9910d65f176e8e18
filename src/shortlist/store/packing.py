"""Compact and exact encoding of arrays as bytes: little-endian, the same on every machine.

Every array starts with a tag and its length. Integers in even steps (all arms; equal counts) are stored as a
range; ascending ones by their differences; all in the narrowest sufficient width. Floats keep every bit. Data
that shrink by a fifth or more are compressed.
"""

import struct
import zlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shortlist.arrays import FloatArray, IntArray

_HEAD = struct.Struct("<BQQ")  # tag, number of entries, bytes that follow
_RANGE = struct.Struct("<qq")  # first, step

_NONE, _EVEN, _PLAIN, _STEPS = range(4)
_COMPRESSED = 128  # added to a tag
_WIDTHS = ("<u1", "<u2", "<u4", "<i8", "<f8")

_LARGE = 1 << 12  # bytes; for less, compression is not worth its time
_SAMPLE = 1 << 16
_FLOAT = _WIDTHS.index("<f8")

_Numbers: TypeAlias = NDArray[Any]


def packed(values: IntArray | FloatArray | None) -> bytes:
    """Return a one-dimensional array, or None, as bytes."""
    if values is None:
        return _HEAD.pack(_NONE, 0, 0)
    if values.ndim != 1:
        raise ValueError(f"an array of {values.ndim} dimensions cannot be kept; it must have one")
    if values.dtype.kind == "f":
        return _framed(_PLAIN, len(values), _FLOAT, values.astype("<f8", copy=False))
    return _packed_whole(values.astype(np.int64, copy=False))


def unpacked(body: bytes, start: int) -> tuple[_Numbers | None, int]:
    """Return the array that starts at this offset, and the offset of the next one."""
    tag, length, data, start = _unframed(body, start)
    return _values(tag, length, data), start


def packed_text(text: str | None) -> bytes:
    """Return a text, or None, as bytes."""
    if text is None:
        return _HEAD.pack(_NONE, 0, 0)
    data = np.frombuffer(text.encode(), dtype="<u1")
    return _framed(_PLAIN, len(data), 0, data)


def unpacked_text(body: bytes, start: int) -> tuple[str | None, int]:
    """Return the text that starts at this offset, and the offset after it."""
    tag, length, data, start = _unframed(body, start)
    return None if tag == _NONE else _content(tag, length, data).tobytes().decode(), start


def _packed_whole(values: IntArray) -> bytes:
    n = len(values)
    if n:
        steps = np.diff(values, prepend=0)  # an overflow here is undone when the differences are summed
        first, step = int(values[0]), int(steps[1]) if n > 1 else 0
        if not (steps[1:] != step).any():
            return _HEAD.pack(_EVEN, n, _RANGE.size) + _RANGE.pack(first, step)
        if _width(steps) < _width(values):
            return _framed(_STEPS, n, _width(steps), steps)
    return _framed(_PLAIN, n, _width(values), values)


def _width(values: IntArray) -> int:
    if not len(values):
        return 0
    least, most = int(values.min()), int(values.max())
    return 3 if least < 0 else next(k for k, bits in enumerate((8, 16, 32, 64)) if most < 1 << bits)


def _framed(tag: int, length: int, width: int, values: _Numbers) -> bytes:
    data = values.astype(_WIDTHS[width], copy=False).tobytes()
    if _shrinks(data):
        tag, data = tag + _COMPRESSED, zlib.compress(data, 1)
    return _HEAD.pack(tag, length, 1 + len(data)) + bytes([width]) + data


def _shrinks(data: bytes) -> bool:
    if len(data) < _LARGE:
        return False
    middle = max(0, len(data) - _SAMPLE) // 2 & ~7
    sample = data[middle : middle + _SAMPLE]
    return len(zlib.compress(sample, 1)) < 0.8 * len(sample)


def _unframed(body: bytes, start: int) -> tuple[int, int, memoryview, int]:
    tag, length, size = _HEAD.unpack_from(body, start)
    end = start + _HEAD.size + size
    if end > len(body):
        raise ValueError("an array is cut short")
    return tag, length, memoryview(body)[start + _HEAD.size : end], end


def _content(tag: int, length: int, data: memoryview) -> _Numbers:
    plain = zlib.decompress(data[1:]) if tag & _COMPRESSED else data[1:]
    values = np.frombuffer(plain, dtype=_WIDTHS[data[0]])
    if len(values) != length or tag & ~_COMPRESSED not in (_PLAIN, _STEPS):
        raise ValueError("an array has another length or form than it says")
    return values


def _values(tag: int, length: int, data: memoryview) -> _Numbers | None:
    if tag == _NONE:
        return None
    if tag == _EVEN:
        first, step = _RANGE.unpack(data)
        return np.arange(length, dtype=np.int64) * np.int64(step) + np.int64(first)
    values = _content(tag, length, data)
    if tag & ~_COMPRESSED == _STEPS:
        return np.cumsum(values, dtype=np.int64)
    return values.astype(np.float64 if data[0] == _FLOAT else np.int64)
