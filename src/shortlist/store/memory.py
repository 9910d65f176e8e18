"""A store that lives as long as its process: for sessions that need not be kept, and for tests."""

import threading
import time
from collections.abc import Callable, Sequence

from shortlist.store.events import Record
from shortlist.store.log import Decide


class MemoryStore:
    """Logs in the memory of this process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._logs: dict[str, list[Record]] = {}

    def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """Return the records of a run from number `after` + 1 on."""
        with self._lock:
            return self._logs.get(run, [])[after:]

    def append(self, run: str, after: int, decide: Decide) -> list[Record]:
        """Append to a log what `decide` returns, and return it as records."""
        with self._lock:
            now = self._clock()
            events = decide(self.read(run, after), now)
            log = self._logs.get(run, [])
            fresh = [Record(number, now, event) for number, event in enumerate(events, len(log) + 1)]
            if fresh:
                self._logs.setdefault(run, []).extend(fresh)
            return fresh

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they began."""
        with self._lock:
            return list(self._logs)

    def remove(self, run: str) -> None:
        """Remove a run and all its records."""
        with self._lock:
            self._logs.pop(run, None)

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
