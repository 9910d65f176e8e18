"""A log that is followed: read as far as it goes, and added to."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from shortlist.errors import CorruptLog, NoSuchRun, StoreTrouble
from shortlist.run.history import History
from shortlist.store import Began, Ended, Event, Record, Store

_AT_ONCE = 1 << 16  # records taken in together

Choose: TypeAlias = Callable[[float], Sequence[Event]]
"""``decide(now)`` returns what to append to the log as it stands at that time."""


class Follower:
    """The log of one run, with what it comes to so far. May be used by several threads.

    What several threads append at the same time is written in one transaction: a disk takes as long for many
    events as for one. They are decided one after the other, each by what those before it have led to.

    Attributes
    ----------
    began_at, changed_at, ended_at
        When the run began, when the last of those events was appended, and when the run ended, in seconds
        since 1970; None for what has not been.
    on_records
        Called with records after they were taken in, one call after the other; if a log has to be read
        again, from its first record on.
    """

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.lock = threading.RLock()
        self._last: Record | None = None
        self.began_at: float | None = None
        self.changed_at: float | None = None
        self.ended_at: float | None = None
        self._history: History | None = None
        self.on_records: Callable[[Sequence[Record]], None] | None = None
        self._waiting: deque[_Wish] = deque()

    @property
    def has_begun(self) -> bool:
        """Whether there is such a run."""
        return self._history is not None

    @property
    def n_events(self) -> int:
        """How many events have been read."""
        return 0 if self._last is None else self._last.number

    @property
    def history(self) -> History:
        """What the log comes to, as far as it has been read."""
        if self._history is None:
            self.catch_up()  # it was forgotten when reading was broken off
        if self._history is None:
            known = self.store.runs()
            others = f"There are: {', '.join(known[:10])}." if known else "There are none yet."
            raise NoSuchRun(
                f"there is no run {self.run!r} in the store. {others} `shortlist begin FILE` begins one."
            )
        return self._history

    def catch_up(self) -> None:
        """Read what has been appended since."""
        with self.lock:
            some: list[Record] = []
            for record in self.store.read(self.run, self._last or 0):
                some.append(record)
                if len(some) == _AT_ONCE:
                    self._take(some)
                    some = []
            self._take(some)

    def append(self, decide: Choose) -> None:
        """Add to the log what `decide` makes of it as it stands, at the time that it is given.

        If `decide` raises, nothing is added for it, and the error is raised here.
        """
        wish = _Wish(decide)
        self._waiting.append(wish)
        with self.lock:
            if not wish.is_done:  # otherwise somebody who had the lock saw to it
                self._append_all([self._waiting.popleft() for _ in range(len(self._waiting))])
        if wish.error is not None:
            raise wish.error

    def _append_all(self, wishes: "list[_Wish]") -> None:
        """Add to the log what several wish for, in one transaction; each learns what became of it."""
        events: list[Event] = []
        n_counted = 0  # of these; each must count before the next wish is decided, and the last ones need not

        def decided(news: Sequence[Record], now: float) -> Sequence[Event]:
            nonlocal n_counted
            self._take(news)
            for wish in wishes:
                self._fold(events[n_counted:])
                n_counted = len(events)
                events.extend(wish.chosen(now))
            return events

        failure: BaseException | None = StoreTrouble("the write was broken off. Try again.")
        try:
            records = self.store.append(self.run, self._last or 0, decided)
            self._fold(events[n_counted:])
            self._note(records)
            failure = None
        except BaseException as error:
            if n_counted:  # they may not be in the log
                self._history = self._last = None
            failure = error if isinstance(error, Exception) else failure
            raise
        finally:
            for wish in wishes:
                wish.is_done, wish.error = True, wish.error or failure

    def _take(self, records: Sequence[Record]) -> None:
        """Take records in."""
        self._fold([record.event for record in records])
        self._note(records)

    def _fold(self, events: Sequence[Event]) -> None:
        """Let events count. If that is broken off, all is forgotten, to be read again."""
        if not events:
            return
        if self._history is None:
            first, *events = events
            if not isinstance(first, Began):
                raise CorruptLog(f"the log of run {self.run!r} does not start with its question.")
            self._history = History(first)
        try:
            self._history.take(events)
        except BaseException:
            self._history = self._last = None
            raise

    def _note(self, records: Sequence[Record]) -> None:
        """Note how far the log goes, after its records have been counted."""
        if not records:
            return
        self._last = records[-1]
        if self.on_records is not None:
            self.on_records(records)
        self.began_at = self.began_at or records[0].at
        self.changed_at = records[-1].at
        self.ended_at = self.ended_at or next((r.at for r in records if isinstance(r.event, Ended)), None)


class _Wish:
    """What somebody wishes to append, and what became of it."""

    def __init__(self, decide: Choose) -> None:
        self._decide = decide
        self.is_done = False
        self.error: BaseException | None = None

    def chosen(self, now: float) -> Sequence[Event]:
        """Return the events; none if deciding failed, which is nobody else's matter."""
        try:
            return self._decide(now)
        except Exception as error:
            self.error = error
            return []
