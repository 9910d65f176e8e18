"""A log that is followed: read as far as it goes, and added to."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from shortlist.errors import CorruptLog, NoSuchRun, StoreTrouble
from shortlist.session.state import RunState
from shortlist.store import Began, Ended, Event, Record, Store

_AT_ONCE = 1 << 16  # records taken in together

Choose: TypeAlias = Callable[[RunState, float], Sequence[Event]]
"""``decide(history, now)`` returns what to append to a log that has come to `history` at that time.

It must depend on nothing else that the log may change: what was read before may be out of date by then.
"""


class RunLog:
    """The log of one run, with what it comes to so far. May be used by several threads.

    What several threads append at the same time is written in one transaction: a disk takes as long for many
    events as for one. They are decided one after the other, each by what those before it have led to; but
    that is a copy, which becomes the history when the transaction has succeeded. So `history` never holds
    what is not in the log.

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
        self._history: RunState | None = None
        self.on_records: Callable[[Sequence[Record]], None] | None = None
        self._waiting: deque[_PendingAppend] = deque()

    @property
    def has_begun(self) -> bool:
        """Whether there is such a run."""
        return self._history is not None

    @property
    def last(self) -> Record | None:
        """The last record that has been read; None if there is none."""
        return self._last

    @property
    def n_events(self) -> int:
        """How many events have been read."""
        return 0 if self._last is None else self._last.number

    @property
    def history(self) -> RunState:
        """What the log comes to, as far as it has been read."""
        if self._history is None:
            self.catch_up()  # it was forgotten when reading was interrupted
        if self._history is None:
            known = self.store.runs()
            others = f"There are: {', '.join(known[:10])}." if known else "There are none yet."
            raise NoSuchRun(
                f"there is no run {self.run!r} in the store. {others} `shortlist begin FILE` begins one."
            )
        return self._history

    def now(self) -> float:
        """Return the time by which leases of this run end: that of the store, not of this process."""
        return self.store.now(self.run)

    def catch_up(self, records: Iterable[Record] | None = None) -> None:
        """Read what has been appended since; or take these records, if that has been read already."""
        with self.lock:
            some: list[Record] = []
            for record in self.store.read(self.run, self._last or 0) if records is None else records:
                some.append(record)
                if len(some) == _AT_ONCE:
                    self._take(some)
                    some = []
            self._take(some)

    def begin(self, began: Began) -> None:
        """Begin the log with this event, unless it has begun."""
        self._append(lambda history, _: [] if history is not None else [began])

    def append(self, decide: Choose) -> Sequence[Event]:
        """Append to the log what `decide` makes of it as it stands, and return that.

        If `decide` raises, nothing is appended for it, and the error is raised here. After a StoreTrouble the
        events may be in the log or not; the next call decides by what is there.
        """

        def decided(history: RunState | None, now: float) -> Sequence[Event]:
            return decide(self.history if history is None else history, now)  # the former raises NoSuchRun

        return self._append(decided)

    def _append(self, decide: "_Decide") -> Sequence[Event]:
        pending = _PendingAppend(decide)
        try:
            self._waiting.append(pending)
            with self.lock:
                if not pending.is_over:  # otherwise a thread that had the lock before wrote it, too
                    self._append_all([self._waiting.popleft() for _ in range(len(self._waiting))])
        except BaseException:  # nobody may write later what its caller has given up
            with suppress(ValueError):
                self._waiting.remove(pending)
            raise
        return pending.written()

    def _append_all(self, group: "Sequence[_PendingAppend]") -> None:
        """Append what several callers decide, in one transaction; each learns what became of it."""
        events: list[Event] = []
        draft: RunState | None = None  # what the first of these events lead to, once they are written
        n_drafted = 0

        def decide_all(news: Sequence[Record], now: float) -> Sequence[Event]:
            nonlocal draft, n_drafted
            self._take(news)
            for pending in group:
                if n_drafted < len(events):
                    if draft is None and self._history is not None:
                        draft = self._history.copy()
                    draft = self._folded(draft, events[n_drafted:])
                    n_drafted = len(events)
                events.extend(pending.decided(draft or self._history, now))
            return events

        failure: Exception | None = _interrupted()
        try:
            records = self.store.append(self.run, self._last or 0, decide_all)
            self._take(records, draft, n_drafted)
            failure = None
        except Exception as error:
            failure = error
        finally:
            for pending in group:
                pending.end(failure)

    def _take(self, records: Sequence[Record], draft: RunState | None = None, n_drafted: int = 0) -> None:
        """Take in records that are in the log; the first few may be in a draft of the history already.

        If that is interrupted, all is forgotten, to be read again.
        """
        if not records:
            return
        try:
            self._history = self._folded(draft or self._history, [one.event for one in records[n_drafted:]])
            self._last = records[-1]
            self.began_at = self.began_at or records[0].at
            self.changed_at = records[-1].at
            self.ended_at = self.ended_at or next((r.at for r in records if isinstance(r.event, Ended)), None)
            if self.on_records is not None:
                self.on_records(records)
        except BaseException:
            self._history = self._last = None
            raise

    def _folded(self, history: RunState | None, events: Sequence[Event]) -> RunState:
        """Return a history after it has taken events, the first of which begins it if there is none."""
        if history is None:
            first, *events = events
            if not isinstance(first, Began):
                raise CorruptLog(f"the log of run {self.run!r} does not start with its question.")
            history = RunState(first)
        history.take(events)
        return history


_Decide: TypeAlias = Callable[[RunState | None, float], Sequence[Event]]


class _PendingAppend:
    """What a caller waits to have appended, and what became of it."""

    def __init__(self, decide: _Decide) -> None:
        self._decide = decide
        self._events: Sequence[Event] = ()
        self._error: Exception | None = None
        self._is_written = False
        self.is_over = False

    def decided(self, history: RunState | None, now: float) -> Sequence[Event]:
        """Return the events; none if deciding failed, which concerns nobody else."""
        try:
            self._events = self._decide(history, now)
        except Exception as error:
            self._error = error
        return self._events

    def end(self, failure: Exception | None) -> None:
        """Note that the transaction has succeeded, or why it has failed.

        An error in deciding then does not count: it may be due to events that were not written.
        """
        self.is_over, self._is_written = True, failure is None
        self._error = failure or self._error

    def written(self) -> Sequence[Event]:
        """Return the events if they are in the log; raise the error otherwise."""
        if self._error is not None or not self._is_written:
            raise self._error or _interrupted()
        return self._events


def _interrupted() -> StoreTrouble:
    return StoreTrouble("The write was interrupted. Try again.")
