"""A cache of open runs: each log is read once, and then only its new records."""

import itertools
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from shortlist.errors import ChangedRun, ShortlistError, StoreTrouble
from shortlist.report.origin import Origin
from shortlist.report.workload import Credits, Work
from shortlist.server.errors import Busy, discreet
from shortlist.server.event_text import told_words
from shortlist.session.lease_rules import holdings
from shortlist.session.log import RunLog
from shortlist.session.session import Session
from shortlist.session.worker_names import is_gone
from shortlist.store import Answered, Record, Store, Told, Withdrawn

# --- activity of a run ---------------------------------------------------------------------------------


_MOST_RECENT = 40  # events kept for display
_A_ROUND = 20  # number of tickets that take as much memory as an empty round


class Activity:
    """The work of each worker and the latest events of a run, updated as its log is read.

    Attributes
    ----------
    recent
        The last events, as text.
    size
        The memory use of the run, as a number of tickets.
    """

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._credits = Credits()
        self._n_rounds = 0  # that `size` covers
        self.recent: deque[dict[str, Any]] = deque(maxlen=_MOST_RECENT)
        self.size = 0
        log.on_records = partial(_passed_on, weakref.ref(self))  # weak, so that large runs can be freed

    def _count(self, records: Sequence[Record]) -> None:
        if records[0].number == 1:  # the log is read from its start, perhaps again
            self._credits = Credits()
            self.recent.clear()
            self._n_rounds = self.size = 0
        history = self._log.history
        self.recent.extend(told_words(record, history) for record in records[-_MOST_RECENT:])
        new = history.rounds[self._n_rounds :]
        self.size += sum(len(round.tickets) + _A_ROUND for round in new)
        self.size += 0 if self._n_rounds else history.problem.n
        self._n_rounds += len(new)
        for record in records:
            if isinstance(event := record.event, Told):
                self._credits.count(event.worker, event.arms, history.find(event.round))
            elif isinstance(event, Answered):
                self._credits.count_part(event)
            elif isinstance(event, Withdrawn):
                self._credits.withdraw(event, history.find(event.round))

    @property
    def workers(self) -> tuple[Work, ...]:
        """Who made how many of the pulls that count, the largest share first."""
        return self._credits.shares(self._log.history)

    @property
    def origin(self) -> Origin:
        """The provenance of the run."""
        log, began = self._log, self._log.history.began
        return Origin(
            *(log.run, began.code, began.asked_for, began.version, log.history.settings),
            *(log.began_at or 0.0, log.changed_at or 0.0, log.ended_at, log.n_events),
        )


def _passed_on(to: "weakref.ref[Activity]", records: Sequence[Record]) -> None:
    if (activity := to()) is not None:
        activity._count(records)


# --- open runs -----------------------------------------------------------------------------------------


T = TypeVar("T")

_MOST_OPEN = 100  # maximum number of open runs
_MOST_TICKETS = 5_000_000  # tickets of all open runs; a ticket takes about 80 bytes
_MOST_SUMMARIES = 10_000
_PATIENCE = 3.0  # seconds that a reader waits for a writer


class OpenRun:
    """An open run; `session` is None on a read-only server."""

    def __init__(self, store: Store, run: str, *, is_read_only: bool) -> None:
        self.log = RunLog(store, run)
        self.activity = Activity(self.log)
        self.log.catch_up()
        _ = self.log.history  # raises NoSuchRun
        self.session = None if is_read_only else Session.following(self.log)

    def refresh(self) -> None:
        """Read new records; raise StoreTrouble if the run was replaced by another one."""
        if self.session is None:
            self.log.catch_up()
        else:
            self.session.refresh()
        if not self.is_there():
            raise StoreTrouble("the run was removed.")

    @contextmanager
    def held(self) -> Iterator["OpenRun"]:
        """Lock the run against writers; raise Busy if one of them takes too long."""
        if not self.log.lock.acquire(timeout=_PATIENCE):
            raise Busy(f"run {self.log.run!r} is busy with other requests; try again.")
        try:
            yield self
        finally:
            self.log.lock.release()

    def is_there(self) -> bool:
        """Return whether the last record that was read is still in the store."""
        last = self.log.last
        if last is None:
            return False
        found = next(iter(self.log.store.read(self.log.run, last.number - 1)), None)
        return found is not None and found.mark == last.mark


class CachedSummary(Generic[T]):
    """A cached view of a run that is not kept open, and how long it is valid."""

    def __init__(self, log: RunLog, view: Callable[[RunLog], T]) -> None:
        start, now, round = time.monotonic(), log.now(), log.history.round
        ends = round.leases.until(np.flatnonzero(~round.is_told))
        self._until = start + float((ends[ends > now] - now).min(initial=np.inf))
        self._holders = [holding.worker for holding in holdings(round, now)]
        self.shown = view(log)  # after that: what ends meanwhile may be in it
        self._last = None if log.last is None else (log.last.number, log.last.mark)

    def holds(self, store: Store, run: str) -> bool:
        """Return whether no record was appended, no lease has expired, and no worker with a lease is gone."""
        if self._last is None or time.monotonic() >= self._until or any(map(is_gone, self._holders)):
            return False
        number, mark = self._last
        try:
            found = list(itertools.islice(store.read(run, number - 1), 2))
        except StoreTrouble:
            return False  # the run was replaced, or is damaged
        return [record.mark for record in found] == [mark]


class RunCache:
    """All runs of a store. Thread-safe."""

    def __init__(self, store: Store, *, is_read_only: bool = False) -> None:
        self.store, self.is_read_only = store, is_read_only
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._summaries: OrderedDict[str, CachedSummary[Any]] = OrderedDict()
        self._locks: dict[str, threading.Lock] = {}

    @contextmanager
    def discreet(self) -> Iterator[None]:
        """Hide the address of the store in its error messages."""
        try:
            yield
        except StoreTrouble as error:
            raise discreet(error, self.store) from None

    @contextmanager
    def run(self, name: str) -> Iterator[OpenRun]:
        """Yield a run. If its store fails, remove it from the cache, to be opened again next time."""
        with self.discreet():
            found = self._found(name)
            try:
                yield found
            except ChangedRun:
                raise  # nothing is wrong with the store
            except StoreTrouble:
                self.forget(name)
                raise

    @contextmanager
    def fresh(self, name: str) -> Iterator[OpenRun]:
        """Yield the current state of a run, locked against writers; reopen it if it was replaced.

        Raises
        ------
        NoSuchRun
            If it was removed.
        Busy
            If another request has held the run for too long.
        """
        with self.discreet():
            try:
                with self._found(name).held() as found:
                    found.refresh()
            except StoreTrouble:
                self.forget(name)
        with self.run(name) as found, found.held():
            yield found

    @contextmanager
    def session(self, name: str) -> Iterator[Session]:
        """Yield the session of a run, which other threads may share."""
        with self.run(name) as found:
            if found.session is None:
                raise StoreTrouble("this server is read-only.")
            yield found.session

    def work(self, name: str, do: Callable[[Session], T]) -> T:
        """Return the result of a change to a run; reopen the run if it was replaced."""
        with self.discreet():
            found = self._found(name)
            try:
                with self.session(name) as session:
                    return do(session)
            except ShortlistError:
                if found.is_there():
                    raise
            self.forget(name)
            with self.session(name) as session:
                return do(session)

    def look(self, name: str, view: Callable[[OpenRun], T]) -> T:
        """Return a view of the current state of a run, locked against writers."""
        with self.fresh(name) as found:
            return view(found)

    def summary(self, name: str, view: Callable[[RunLog], T]) -> T:
        """Return a view of the current state of a run, without keeping the run open.

        The view is cached while it is valid; so always use the same view function.
        """
        with self._lock:
            is_open, known = name in self._open, self._summaries.get(name)
        if is_open:
            return self.look(name, lambda found: view(found.log))
        with self.discreet():
            if known is None or not known.holds(self.store, name):
                log = self.copy(name)
                known = CachedSummary(log, view)
        with self._lock:
            self._summaries[name] = known
            self._summaries.move_to_end(name)
            if len(self._summaries) > _MOST_SUMMARIES:
                self._summaries.popitem(last=False)
        shown: T = known.shown
        return shown

    def copy(self, name: str) -> RunLog:
        """Return a fresh copy of the log of a run, for slow readers: it blocks no one."""
        with self.discreet():
            log = RunLog(self.store, name)
            log.catch_up()
            _ = log.history  # raises NoSuchRun
            return log

    def runs(self) -> list[str]:
        """Return the names of all runs, the latest first."""
        with self.discreet():
            return self.store.runs()[::-1]

    def forget(self, name: str) -> None:
        """Remove a run from the cache."""
        with self._lock:
            self._open.pop(name, None)

    def _found(self, name: str) -> OpenRun:
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
                self._close_some()
                return self._open[name]
            opening = self._locks.setdefault(name, threading.Lock())
        with opening:  # reading a log may take long: only requests for the same run wait
            with self._lock:
                if name in self._open:
                    return self._open[name]
            try:
                opened = OpenRun(self.store, name, is_read_only=self.is_read_only)
            finally:
                with self._lock:
                    self._locks.pop(name, None)
            with self._lock:
                self._open[name] = opened
                self._close_some()
            return opened

    def _close_some(self) -> None:
        """Close the least recently used runs if all open runs take too much memory."""
        n_tickets = sum(run.activity.size for run in self._open.values())
        while len(self._open) > 1 and (len(self._open) > _MOST_OPEN or n_tickets > _MOST_TICKETS):
            _, closed = self._open.popitem(last=False)
            n_tickets -= closed.activity.size
