"""Detects writes in a damaged -wal file that SQLite would silently drop when it opens a database.

The log is a sequence of frames, one page each, with checksums that cover all frames before; the last frame of
a write is marked. SQLite applies the writes before the first invalid frame, and drops the rest. That is right
for a write that was interrupted by a crash: it is the last one, since each write is synced before the next
starts. If complete writes follow, the frame was damaged later. (https://www.sqlite.org/walformat.html)

If only the last write is invalid, the cause cannot be determined: the power may have failed while it was
written, and then it was never acknowledged; or it was damaged later.
"""

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from shortlist.arrays import BoolArray

_HEADER, _FRAME_HEADER = 32, 24  # bytes
_BIG_ENDIAN = 0x377F0683  # the magic number of a log whose checksums were computed on such a machine
_PAGES, _USUAL_PAGE = {2**k for k in range(9, 17)}, 4096  # bytes
_AT_ONCE = 1024  # frames
_PAUSE = 0.1  # seconds after which a write that was seen incomplete is complete

_Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Drop:
    """The part that would be dropped: all from this frame on; 0 is the header. `n_writes` seem complete."""

    frame: int
    n_frames: int
    n_writes: int


def dropped(path: Path) -> Drop | None:
    """Return the part of a log that SQLite would drop, if it contains complete writes.

    Others may be writing the log, so an invalid frame is checked a second time.
    """
    found = _dropped(path)
    if found is not None:
        time.sleep(_PAUSE)
        again = _dropped(path)
        found = again if again is not None and again.frame == found.frame else None
    return found


def _dropped(path: Path) -> Drop | None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER)
            header: Any = np.frombuffer(head, ">u4") if len(head) == _HEADER else np.zeros(8, ">u4")
            order = ">u4" if header[0] == _BIG_ENDIAN else "<u4"
            page = int(header[2]) if int(header[2]) in _PAGES else _USUAL_PAGE
            is_own, is_write, is_fit = _frames(
                file, page + _FRAME_HEADER, header[4:].astype(np.uint32), order
            )
    except FileNotFoundError:
        return None
    n = len(is_fit)
    words = np.frombuffer(head[:_FRAME_HEADER], order).astype(np.uint32)
    if n and (_sums(words[None], np.zeros((1, 2), np.uint32)) != header[6:]).any():
        return Drop(0, n, int(is_write.sum()))
    first = int(np.argmin(np.append(is_fit & is_own, False)))
    n_writes = int((is_own & is_write)[first:].sum())
    if is_fit[
        first : first + 1
    ].any():  # it belongs to this log: only the salt that SQLite recognises it by is damaged
        n_writes = max(n_writes, 2)
    return Drop(first + 1, n, n_writes) if n_writes else None


def _frames(file: BinaryIO, size: int, marks: _Words, order: str) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return for each frame whether it belongs to this log, ends a write, and has a valid checksum.

    `marks` are the two salts of the log, and the checksum of its header.
    """
    seeds, found = marks[None, 2:], [np.zeros((3, 0), bool)]
    while len(block := file.read(size * _AT_ONCE)) >= size:
        frames = np.frombuffer(block, "u1", len(block) // size * size).reshape(-1, size)
        numbers = np.ascontiguousarray(frames[:, :_FRAME_HEADER]).view(">u4").astype(np.uint32)
        covered = np.concatenate([frames[:, :8], frames[:, _FRAME_HEADER:]], axis=1)
        stated = numbers[:, 4:6]
        seeds = np.concatenate([seeds[-1:], stated])
        is_fit = _sums(covered.view(order).astype(np.uint32), seeds[:-1]) == stated
        is_own = numbers[:, 2:4] == marks[:2]
        found.append(np.stack([is_own.all(axis=1), numbers[:, 1] > 0, is_fit.all(axis=1)]))
    is_own, is_write, is_fit = np.concatenate(found, axis=1)
    return is_own, is_write, is_fit


def _sums(words: _Words, seeds: _Words) -> _Words:
    """Return s0 and s1 after ``s0 += x0 + s1; s1 += x1 + s0`` for all pairs of words of a row, in 32 bits."""
    weights, start = _weights(words.shape[1] // 2)
    found: _Words = words @ weights + seeds @ start
    return found


@lru_cache(maxsize=4)
def _weights(n_pairs: int) -> tuple[_Words, _Words]:
    """Return the weight of each word, and of each part of the seed, in the two sums."""
    step = np.array(
        [[1, 1], [1, 2]], np.uint32
    )  # rows: contribution of s0 and s1 to the sums of the next pair
    pairs = [
        np.array([[1, 1], [0, 1]], np.uint32)
    ]  # rows: contribution of x0 and x1 to the sums of their own pair
    power = step
    for _ in range(n_pairs - 1):
        pairs.append(pairs[-1] @ step)
        power = power @ step
    return np.concatenate(pairs[::-1]), power
