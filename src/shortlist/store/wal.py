"""What SQLite drops in silence when it opens a file after a crash: writes in a log (-wal) that was damaged.

The log is a sequence of frames, one page each, with checksums that cover all frames before; the last frame of
a write says so. SQLite takes the writes before the first frame that does not fit, and drops the rest: it was
made for a write that was broken off by a crash, which is the last one, for each is synced before the next
begins. Where whole writes follow, the frame was damaged later. (https://www.sqlite.org/walformat.html)

If nothing but the last write does not fit, that cannot be told: the power may have failed while it was
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
_BIG_ENDIAN = 0x377F0683  # the first number of a log whose checksums were made on such a machine
_PAGES, _USUAL_PAGE = {2**k for k in range(9, 17)}, 4096  # bytes
_AT_ONCE = 1024  # frames
_PAUSE = 0.1  # seconds after which a write that was seen half done is done

_Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Drop:
    """What would be dropped: all from this frame on; 0 is the header. `n_writes` of it seem to be whole."""

    frame: int
    n_frames: int
    n_writes: int


def dropped(path: Path) -> Drop | None:
    """Return what SQLite would drop of a log, if whole writes are among it.

    Others may be writing it: what does not fit is looked at a second time.
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
    ].any():  # it is of this log: only the mark by which SQLite knows that is damaged
        n_writes = max(n_writes, 2)
    return Drop(first + 1, n, n_writes) if n_writes else None


def _frames(file: BinaryIO, size: int, marks: _Words, order: str) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return of each frame whether it is of this log, is the last of a write, and fits the one before it.

    `marks` are the two marks of the log, and the checksum of its header.
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
    """Return by how much each word, and each part of the seed, counts in the two sums."""
    step = np.array([[1, 1], [1, 2]], np.uint32)  # rows: what s0 and s1 add to the sums of the next pair
    pairs = [np.array([[1, 1], [0, 1]], np.uint32)]  # rows: what x0 and x1 add to the sums of their own pair
    power = step
    for _ in range(n_pairs - 1):
        pairs.append(pairs[-1] @ step)
        power = power @ step
    return np.concatenate(pairs[::-1]), power
