"""The log of one run: reads new records, keeps the state up to date, and appends events."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from shortlist.errors import CorruptLog, NoSuchRun, StoreTrouble
from shortlist.session.state import RunState
from shortlist.store import Began, Ended, Event, Record, Store

_AT_ONCE = 1 << 16  # records processed together
_MANY_ARMS = 20_000

Choose: TypeAlias = Callable[[RunState, float], Sequence[Event]]
"""``decide(history, now)`` returns the events to append, given the state of the log at that time.

It must not depend on any earlier state of the log, which may be out of date by then.
"""


class RunLog:
    """The log of one run and its current state. Thread-safe.

    Events that several threads append at the same time are written in one transaction, since a disk takes as
    long for many events as for one. The requests are decided one after the other, each given the state after
    the previous one. They work on a copy, which becomes the state when the transaction has succeeded. So
    `history` never contains anything that is not in the log.

    Attributes
    ----------
    began_at, changed_at, ended_at
        When the run started, when its last event was appended, and when it ended, in seconds since 1970
        (Unix time); None for what has not happened.
    on_records
        Called with records after they were processed, never concurrently. If the log has to be read again,
        calls start again with its first record.
    """

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.lock = threading.RLock()
        self._last: Record | None = None
        self.began_at: float | None = None
        self.changed_at: float | None = None
        self.ended_at: float | None = None
        self._history: RunState | None = None
        self._first: RunState | None = None  # the state after the event that `begin` appends
        self.on_records: Callable[[Sequence[Record]], None] | None = None
        self._waiting: deque[_PendingAppend] = deque()

    @property
    def has_begun(self) -> bool:
        """Whether the run exists."""
        return self._history is not None

    @property
    def last(self) -> Record | None:
        """The last record read; None if there is none."""
        return self._last

    @property
    def n_events(self) -> int:
        """The number of events read."""
        return 0 if self._last is None else self._last.number

    @property
    def history(self) -> RunState:
        """The state of the run, as far as the log has been read."""
        if self._history is None:
            self.catch_up()  # it was reset when reading was interrupted
        if self._history is None:
            known = self.store.runs()
            others = f"Existing runs: {', '.join(known[:10])}." if known else "The store is empty."
            raise NoSuchRun(
                f"there is no run {self.run!r} in the store. {others} `shortlist begin FILE` creates one."
            )
        return self._history

    def now(self) -> float:
        """Return the time that leases refer to: the clock of the store, not of this process."""
        return self.store.now(self.run)

    def catch_up(self, records: Iterable[Record] | None = None) -> None:
        """Read new records of the log; or process the given records, if they have been read already."""
        with self.lock:
            some: list[Record] = []
            for record in self.store.read(self.run, self._last or 0) if records is None else records:
                some.append(record)
                if len(some) == _AT_ONCE:
                    self._take(some)
                    some = []
            self._take(some)

    def begin(self, began: Began) -> None:
        """Start the log with this event, unless it exists.

        A question that its strategy refuses raises InvalidProblem here, and is not recorded.
        """
        self._first = RunState(began)
        self.append(lambda history, _: [] if history is not None else [began], must_exist=False)

    def append(
        self, decide: "Choose | _Decide", *, must_exist: bool = True, is_slow: bool = False
    ) -> Sequence[Event]:
        """Append the events that `decide` returns for the current state, and return them.

        If `decide` raises, nothing is appended for it, and the error is raised here. After a StoreTrouble the
        events may or may not be in the log; the next call uses the actual content of the log. If `is_slow`,
        `decide` is called before the store is locked, and again only if the log has changed since.
        """

        def decided(history: RunState | None, now: float) -> Sequence[Event]:
            return decide(self.history if history is None and must_exist else history, now)  # type: ignore[arg-type]

        if self._history is not None and self._history.problem.n >= _MANY_ARMS:
            self.catch_up()  # most of the work on many arms is then done before taking the lock of the store
        if is_slow:
            with self.lock:
                self.catch_up()
                pending = _PendingAppend(self._prepared(decided))
                self._append_all([pending])
            return pending.written()
        pending = _PendingAppend(decided)
        try:
            self._waiting.append(pending)
            with self.lock:
                if not pending.is_over:  # otherwise the previous owner of the lock wrote it as well
                    self._append_all([self._waiting.popleft() for _ in range(len(self._waiting))])
        except BaseException:  # nothing may be written later that its caller has given up
            with suppress(ValueError):
                self._waiting.remove(pending)
            raise
        return pending.written()

    def _prepared(self, decide: "_Decide") -> "_Decide":
        """Return a function that returns what `decide` does, which is called now unless the log changes."""
        last, events = self._last, decide(self._history, self.now())
        return lambda history, now: events if self._last is last else decide(history, now)

    def _append_all(self, group: "Sequence[_PendingAppend]") -> None:
        """Append the events of several callers in one transaction, and set the outcome for each."""
        events: list[Event] = []
        draft: RunState | None = None  # the state after the first of these events, once they are written
        n_drafted = 0

        def decide_all(news: Sequence[Record], now: float) -> Sequence[Event]:
            nonlocal draft, n_drafted
            self._take(news)
            for pending in group:
                if n_drafted < len(events):
                    if draft is None and self._history is not None:
                        draft = self._history.copy()
                    draft, rest = self._opened(draft, events[n_drafted:])
                    draft.take(rest)
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
        """Process records of the log; the first few may already be in a draft of the state.

        If this is interrupted, the state is reset, to be read again.
        """
        if not records:
            return
        try:
            events = [record.event for record in records[n_drafted:]]
            history, rest = self._opened(draft or self._history, events)
            history.take(rest)
            self._history = history
            self._last = records[-1]
            self.began_at = self.began_at or records[0].at
            self.changed_at = records[-1].at
            ended_at = self.ended_at or next((r.at for r in records if isinstance(r.event, Ended)), None)
            self.ended_at = ended_at if history.is_final else None  # fed results can reopen a run
            if self.on_records is not None:
                self.on_records(records)
        except BaseException as error:
            self._history = self._last = None
            if isinstance(error, StoreTrouble | MemoryError) or not isinstance(error, Exception):
                raise
            raise CorruptLog(
                f"the log of run {self.run!r} has an event that does not fit those before it, so the run "
                f"cannot be read ({type(error).__name__}: {error}). Its events are kept: `shortlist copy` "
                f"copies them."
            ) from error

    def _opened(self, history: RunState | None, events: Sequence[Event]) -> tuple[RunState, Sequence[Event]]:
        """Return a state and the events that it lacks; the first event creates the state if there is none."""
        if history is not None:
            return history, events
        first, *rest = events
        if not isinstance(first, Began):
            raise CorruptLog(f"the log of run {self.run!r} does not start with its question.")
        made, self._first = self._first, None
        return made if made is not None and made.began is first else RunState(first), rest


_Decide: TypeAlias = Callable[[RunState | None, float], Sequence[Event]]


class _PendingAppend:
    """A request of one caller to append events, and its outcome."""

    def __init__(self, decide: _Decide) -> None:
        self._decide = decide
        self._events: Sequence[Event] = ()
        self._error: Exception | None = None
        self._is_written = False
        self.is_over = False

    def decided(self, history: RunState | None, now: float) -> Sequence[Event]:
        """Return the events; none if `decide` failed, which does not affect other callers."""
        try:
            self._events = self._decide(history, now)
        except Exception as error:
            self._error = error
        return self._events

    def end(self, failure: Exception | None) -> None:
        """Record that the transaction has succeeded, or why it failed.

        In that case an error of `decide` is dropped: it may be due to events that were not written.
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
