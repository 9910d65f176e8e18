"""A clock for leases that is not affected by changes of the machine's clock.

A lease says until when a worker holds a ticket. If leases used the machine's clock, setting the clock back by
an hour would extend the leases of dead workers by an hour, and setting it forward would expire all leases at
once. The uptime of the machine, in contrast, cannot be set, and all its processes share it. So the entry of a
run keeps a *mark* of the last write: its time by both clocks. From there, the time of the run advances with
the uptime.

It follows the machine's clock slowly, by at most a tenth of the elapsed time. So a lease lasts at most a
tenth longer or shorter, and ten hours after a correction of an hour the times shown to users are right again.
After a restart, or on another machine, the clock there is used; but time never goes back before the last
write. If boots cannot be distinguished (systems other than Linux), the machine's clock is always used.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MOST = 0.1  # maximum correction, as a share of the elapsed time


def uptime() -> float:
    """Return the uptime of the machine in seconds, including sleep if known."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@lru_cache(maxsize=1)
def boot() -> str:
    """Return an id of this boot of the machine; empty if unknown."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


_START = time.time() - uptime()


def steady() -> float:
    """Return the machine's time at the start of this process plus the time since."""
    return _START + uptime()


@dataclass(frozen=True)
class Clock:
    """The clocks of a machine: its settable clock, its uptime, and the id of the boot."""

    wall: Callable[[], float] = time.time
    uptime: Callable[[], float] = uptime
    boot: Callable[[], str] = boot

    def now(self, mark: str) -> float:
        """Return the time of a run whose last write has this mark, in seconds since 1970."""
        wall = self.wall()
        try:
            boot, since, at = mark.split()
            passed, then = self.uptime() - float(since), float(at)
        except ValueError:  # no mark
            return wall
        if boot != self.boot() or passed < 0:
            return max(wall, then)
        return then + passed + min(max(wall - then - passed, -_MOST * passed), _MOST * passed)

    def mark(self, now: float) -> str:
        """Return the mark of a write at this time; empty if boots cannot be distinguished."""
        return f"{self.boot()} {self.uptime()!r} {now!r}" if self.boot() else ""
