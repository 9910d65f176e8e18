"""A store in the memory of the process: for sessions that need not be saved, and for tests."""

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from shortlist.store.clock import steady
from shortlist.store.events import Record
from shortlist.store.protocol import (
    After,
    Decide,
    checked_name,
    in_sequence,
    mark_of,
    number_of,
    refuse_existing,
    refuse_lost,
    refuse_replaced,
)


class MemoryStore:
    """Logs in the memory of this process."""

    def __init__(self, clock: Callable[[], float] = steady) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._logs: dict[str, list[Record]] = {}

    def read(self, run: str, after: After = 0) -> Sequence[Record]:
        """Return the records of a run after record `after`."""
        with self._lock:
            log, number = self._logs.get(run, []), number_of(after)
            if 0 < number <= len(log):
                refuse_replaced(run, mark_of(after), log[number - 1].mark)
            return log[number:]

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        """Append the events that `decide` returns, and return their records."""
        checked_name(run)
        with self._lock:
            log = self._logs.get(run, [])
            refuse_lost(run, number_of(after), len(log))
            now = self._clock()
            events = decide(self.read(run, after), now)
            mark = log[0].mark if log else secrets.token_bytes(8)
            fresh = [Record(number, now, event, mark) for number, event in enumerate(events, len(log) + 1)]
            if fresh:
                self._logs.setdefault(run, []).extend(fresh)
            return fresh

    def restore(self, run: str, records: Iterable[Record], n_there: int = 0) -> int:
        """Write records of a log from another store; return the number of records written."""
        checked_name(run)
        more = list(in_sequence(run, records, n_there))
        with self._lock:
            refuse_existing(run, len(self._logs.get(run, [])), n_there)
            if more:
                log = self._logs.setdefault(run, [])
                mark = log[0].mark if log else secrets.token_bytes(8)
                log.extend(replace(record, mark=mark) for record in more)
            return len(more)

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they were created."""
        with self._lock:
            return list(self._logs)

    def remove(self, run: str) -> None:
        """Remove a run and all its records."""
        with self._lock:
            self._logs.pop(run, None)

    def now(self, run: str) -> float:  # noqa: ARG002
        """Return the time that the leases of a run refer to, in seconds since 1970."""
        return self._clock()

    def verify(self) -> None:
        """Do nothing: memory needs no verification."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
