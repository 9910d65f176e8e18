"""What programs print: read while they run, and kept only as far as it makes sense."""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import IO

LAST_LINES = 8
"""Of the stderr of a program that failed."""
LONGEST_LINE = 1 << 20
"""Bytes of an answer of a program that stays open."""
_LONGEST_PART = 8192  # bytes of a line of stderr that are kept together
_LEAST, _PER_PULL = 1 << 20, 1 << 14  # bytes


def most_bytes(n_pulls: int) -> int:
    """Return how many bytes a program may print for so many pulls."""
    return _LEAST + _PER_PULL * n_pulls


class LastLines:
    """The last lines of a stream, as far as it was read; of long lines only the end."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque(maxlen=LAST_LINES)

    def read(self, stream: IO[bytes]) -> None:
        """Read a stream to its end."""
        self._parts.extend(iter(partial(stream.readline, _LONGEST_PART), b""))

    @property
    def lines(self) -> list[str]:
        """The lines as text."""
        return b"".join(self._parts).decode("utf-8", "replace").rstrip().splitlines()[-LAST_LINES:]


def in_background(work: Callable[[IO[bytes]], None], stream: IO[bytes]) -> threading.Thread:
    """Start to read from a stream, or to write to it; it is closed at the end."""

    def run() -> None:
        with stream:
            work(stream)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
