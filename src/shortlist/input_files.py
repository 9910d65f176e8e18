"""Input files: opened without waiting for ever, and read no further than makes sense."""

import io
import os
import select
import stat
import sys
import time
from errno import EFBIG, EINVAL
from pathlib import Path

MOST_BYTES = 256 << 20
"""Of a problem file, and of a sheet of answers."""
MOST_TABLE_BYTES = 64 << 30
"""Of a table of arms or rewards."""
MOST_TOKEN_BYTES = 1 << 20
"""Of a file with tokens."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_UNTIL_WRITER = 2.0  # seconds to wait for a writer of a pipe
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
}


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file. A pipe is read to its end while it has a writer.

    Parameters
    ----------
    path
        The file.
    most
        How many bytes it may hold.

    Raises
    ------
    OSError
        If it cannot be read, is no file, or holds more than `most` bytes; `strerror` says which.
    """
    try:
        kind = kind_of(path)
        if kind not in {"", "a pipe"}:
            raise OSError(EINVAL, f"it is {kind}, not a file")
        with open(os.open(path, _FLAGS), "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size > most:
                raise _too_large(most)
            found = _piped(file, most) if kind else file.read()
    except ValueError:
        raise OSError(EINVAL, "its name has a NUL character in it") from None
    return _limited(found, most)


def read_stdin(most: int = MOST_BYTES) -> bytes:
    """Return the content of standard input; raise OSError, as above, if it is too large or closed."""
    if sys.stdin is None:
        raise OSError(EINVAL, "standard input is closed")
    return _limited(sys.stdin.buffer.read(most + 1), most)


def kind_of(path: Path) -> str:
    """Return what a path is if it is not a regular file, such as "a folder"; empty if it is one."""
    return _KINDS.get(stat.S_IFMT(path.stat().st_mode), "")


def _piped(file: io.FileIO, most: int) -> bytes:
    """Return the content of a pipe; wait for its writer, but only briefly for a writer to open it."""
    found, has_writer, deadline = bytearray(), False, time.monotonic() + _UNTIL_WRITER
    while len(found) <= most:
        part = file.read(1 << 16)
        if part is None:  # a writer has opened the pipe
            has_writer = True
            select.select([file], [], [])
        elif part:
            found += part
        elif found or has_writer:
            break
        elif time.monotonic() > deadline:
            raise OSError(EINVAL, "it is a pipe without a writer")
        else:
            time.sleep(0.02)
    return bytes(found)


def _limited(found: bytes, most: int) -> bytes:
    if len(found) > most:
        raise _too_large(most)
    return found


def _too_large(most: int) -> OSError:
    return OSError(EFBIG, f"it is larger than {most >> 20:,} MiB, which is the maximum")
