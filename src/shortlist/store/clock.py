"""Time for leases, which the clock of the machine cannot upset.

A lease says until when a worker has a ticket. If that went by the machine's clock, setting the clock back by
an hour would keep the tickets of workers who are gone for an hour longer, and setting it forward would give
away the tickets of all workers at once. But nobody sets the time since the start of the machine, which all
its processes share. So the entry of a run keeps a *mark* of the last write: when that was, by both clocks.
From there, the time of the run goes on with the time since the start.

It follows the machine's clock slowly, by a tenth at most of the time that has passed. So a lease lasts a
tenth longer or shorter at most, and ten hours after a correction of an hour the times that people see are
right again. After a restart, or on another machine, the clock there counts; but time never goes back behind
the last write. Where starts of the machine cannot be told apart (other systems than Linux), its clock counts
always.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MOST = 0.1  # of the time that has passed: by how much it may be corrected


def uptime() -> float:
    """Return how many seconds ago the machine was started, the time it slept included where that is known."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@lru_cache(maxsize=1)
def boot() -> str:
    """Return what tells this start of the machine from others; nothing where that is unknown."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


_START = time.time() - uptime()


def steady() -> float:
    """Return the time by the machine's clock as it was when this process began, and by the time since."""
    return _START + uptime()


@dataclass(frozen=True)
class Clock:
    """The clocks of a machine: the one that people set, the time since its start, and which start it was."""

    wall: Callable[[], float] = time.time
    uptime: Callable[[], float] = uptime
    boot: Callable[[], str] = boot

    def now(self, mark: str) -> float:
        """Return the time of a run whose last write has this mark, in seconds since 1970."""
        wall = self.wall()
        try:
            boot, since, at = mark.split()
            passed, then = self.uptime() - float(since), float(at)
        except ValueError:  # there is none
            return wall
        if boot != self.boot() or passed < 0:
            return max(wall, then)
        return then + passed + min(max(wall - then - passed, -_MOST * passed), _MOST * passed)

    def mark(self, now: float) -> str:
        """Return the mark of a write at this time; empty where one start is not known from another."""
        return f"{self.boot()} {self.uptime()!r} {now!r}" if self.boot() else ""
