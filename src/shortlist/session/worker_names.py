"""Names of drivers, from which other processes on the same machine can tell whether they still run."""

import hashlib
import os
import socket
from functools import lru_cache
from pathlib import Path

from shortlist.checks import shortened
from shortlist.errors import InvalidProblem

HERE, OVER_HTTP = "run", "http"
"""Prefixes of driver names: for drivers that open the store, and for clients of a server.

The server cannot find out whether a client has ended; its leases expire.
"""


_MOST_LETTERS = 200


def checked_worker(worker: object, option: str = "`worker`") -> str:
    """Return the name of a worker if it is valid; otherwise raise InvalidProblem."""
    is_name = isinstance(worker, str) and worker.strip() and worker.isprintable()
    if not is_name or len(str(worker)) > _MOST_LETTERS:
        raise InvalidProblem(
            f"{option} is {shortened(worker)}; it must be a name of 1 to {_MOST_LETTERS} printable "
            f"characters."
        )
    return str(worker)


def own_name(number: int = 0, prefix: str = HERE) -> str:
    """Return the worker name of this process; further drivers in it are numbered."""
    which = f"~{number}" if number else ""
    return f"{prefix}@{socket.gethostname()}:{os.getpid()}:{_place()}{which}"


def is_gone(worker: str) -> bool:
    """Return whether a worker is certainly gone: a process of this machine, so named, that has ended."""
    prefix, _, rest = worker.partition("@")
    if prefix != HERE:
        return False
    parts = rest.rsplit(":", 2)
    is_here = len(parts) == 3 and parts[2].partition("~")[0] == _place()
    if not is_here or not parts[1].isdecimal():
        return False
    try:
        os.kill(int(parts[1]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return _is_zombie(int(parts[1]))


@lru_cache(maxsize=1)
def _place() -> str:
    """Return a code that two processes share only if they can see each other's process ids."""
    seen = [socket.gethostname()]
    try:
        seen.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        seen.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        pass  # not Linux: use the name of the machine
    return hashlib.sha256("\0".join(seen).encode()).hexdigest()[:6]


def _is_zombie(pid: int) -> bool:
    """Return whether a process is a zombie: it has ended and waits for its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["Z"]
