"""The runs that a server has open: each is read once, and followed from then on."""

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
from shortlist.session.holders import holdings
from shortlist.session.log import RunLog
from shortlist.session.session import Session
from shortlist.session.worker_names import is_gone
from shortlist.store import Answered, Record, Store, Told

# --- what is counted while a log is followed -----------------------------------------------------------


_MOST_RECENT = 40  # events that are kept to be shown
_A_ROUND = 20  # tickets that take as much memory as a round without any


class Activity:
    """Who did how much of a run, and what happened last; counts from when it is made for a log.

    Attributes
    ----------
    recent
        The last events, in words.
    size
        How much memory the run takes, as a number of tickets.
    """

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._credits = Credits()
        self._n_rounds = 0  # that `size` covers
        self.recent: deque[dict[str, Any]] = deque(maxlen=_MOST_RECENT)
        self.size = 0
        log.on_records = partial(_passed_on, weakref.ref(self))  # not for ever: large runs must be let go of

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
                self._credits.count_part(event, history.find(event.round))

    @property
    def workers(self) -> tuple[Work, ...]:
        """Who made how many of the pulls that count, the busiest first."""
        return self._credits.shares(self._log.history)

    @property
    def origin(self) -> Origin:
        """Where the run comes from."""
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

_MOST_OPEN = 100  # runs that are followed at the same time
_MOST_TICKETS = 5_000_000  # of all of these; a ticket takes about 80 bytes
_MOST_GLIMPSES = 10_000
_PATIENCE = 3.0  # seconds that whoever looks waits for somebody who adds


class OpenRun:
    """A run that is followed; `session` is None where it can only be looked at."""

    def __init__(self, store: Store, run: str, *, is_read_only: bool) -> None:
        self.log = RunLog(store, run)
        self.activity = Activity(self.log)
        self.log.catch_up()
        _ = self.log.history  # raises NoSuchRun
        self.session = None if is_read_only else Session.following(self.log)

    def refresh(self) -> None:
        """Take in what others have added; raise StoreTrouble if it is another run by now."""
        if self.session is None:
            self.log.catch_up()
        else:
            self.session.refresh()
        if not self.is_there():
            raise StoreTrouble("the run was removed.")

    @contextmanager
    def held(self) -> Iterator["OpenRun"]:
        """Keep others from adding to it; raise Busy if one of them does not come to an end."""
        if not self.log.lock.acquire(timeout=_PATIENCE):
            raise Busy(f"others have been adding to run {self.log.run!r} for long; try again.")
        try:
            yield self
        finally:
            self.log.lock.release()

    def is_there(self) -> bool:
        """Return whether the last event that was read is still in the store."""
        last = self.log.last
        if last is None:
            return False
        found = next(iter(self.log.store.read(self.log.run, last.number - 1)), None)
        return found is not None and found.mark == last.mark


class Glimpse(Generic[T]):
    """What was shown of a run that need not be followed, and for how long it holds."""

    def __init__(self, log: RunLog, view: Callable[[RunLog], T]) -> None:
        start, now, round = time.monotonic(), log.now(), log.history.round
        ends = round.leases.until(np.flatnonzero(~round.is_told))
        self._until = start + float((ends[ends > now] - now).min(initial=np.inf))
        self._holders = [holding.worker for holding in holdings(round, now)]
        self.shown = view(log)  # after that: what ends meanwhile may be in it
        self._last = None if log.last is None else (log.last.number, log.last.mark)

    def holds(self, store: Store, run: str) -> bool:
        """Return whether nothing was appended since, no lease has ended, and nobody who has one is gone."""
        if self._last is None or time.monotonic() >= self._until or any(map(is_gone, self._holders)):
            return False
        number, mark = self._last
        try:
            found = list(itertools.islice(store.read(run, number - 1), 2))
        except StoreTrouble:
            return False  # it is another run by now, or damaged
        return [record.mark for record in found] == [mark]


class RunCache:
    """All runs of a store; may be used by several threads."""

    def __init__(self, store: Store, *, is_read_only: bool = False) -> None:
        self.store, self.is_read_only = store, is_read_only
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._glimpses: OrderedDict[str, Glimpse[Any]] = OrderedDict()
        self._locks: dict[str, threading.Lock] = {}

    @contextmanager
    def discreet(self) -> Iterator[None]:
        """Let nobody know, by what is said if the store fails, where it is."""
        try:
            yield
        except StoreTrouble as error:
            raise discreet(error, self.store) from None

    @contextmanager
    def run(self, name: str) -> Iterator[OpenRun]:
        """Yield a run. If its store fails, it is forgotten, to be opened again next time."""
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
        """Yield a run as it is now, also if it was begun anew; nobody adds to it meanwhile.

        Raises
        ------
        NoSuchRun
            If it was removed.
        Busy
            If somebody else has been adding to it for too long.
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
        """Yield the session of a run, which others may be using too."""
        with self.run(name) as found:
            if found.session is None:
                raise StoreTrouble("runs can only be looked at here.")
            yield found.session

    def work(self, name: str, do: Callable[[Session], T]) -> T:
        """Return what comes of adding to a run; to the one that is there now, if it was begun again."""
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
        """Return what a view shows of a run, as it is now; nobody adds to it meanwhile."""
        with self.fresh(name) as found:
            return view(found)

    def glimpse(self, name: str, view: Callable[[RunLog], T]) -> T:
        """Return what a view shows of a run, as it is now, without keeping the run open.

        As long as that holds, the log is not read again; so the view must always be the same one.
        """
        with self._lock:
            is_open, known = name in self._open, self._glimpses.get(name)
        if is_open:
            return self.look(name, lambda found: view(found.log))
        with self.discreet():
            if known is None or not known.holds(self.store, name):
                log = self.copy(name)
                known = Glimpse(log, view)
        with self._lock:
            self._glimpses[name] = known
            self._glimpses.move_to_end(name)
            if len(self._glimpses) > _MOST_GLIMPSES:
                self._glimpses.popitem(last=False)
        shown: T = known.shown
        return shown

    def copy(self, name: str) -> RunLog:
        """Return the log of a run as it is now, read anew: who takes long over it keeps nobody waiting."""
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
        """Do not follow a run any more."""
        with self._lock:
            self._open.pop(name, None)

    def _found(self, name: str) -> OpenRun:
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
                self._close_some()
                return self._open[name]
            opening = self._locks.setdefault(name, threading.Lock())
        with opening:  # a log may take long to read: others go on, those who want the same one wait
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
        """Stop following runs that were not used for longest, if all together take too much memory."""
        n_tickets = sum(run.activity.size for run in self._open.values())
        while len(self._open) > 1 and (len(self._open) > _MOST_OPEN or n_tickets > _MOST_TICKETS):
            _, closed = self._open.popitem(last=False)
            n_tickets -= closed.activity.size
