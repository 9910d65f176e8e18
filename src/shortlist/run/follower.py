"""A log that is followed: read as far as it goes, and added to."""

import threading
from collections.abc import Callable, Sequence

from shortlist.errors import CorruptLog, NoSuchRun
from shortlist.run.history import History
from shortlist.store import Began, Ended, Event, Record, Store

_AT_ONCE = 1 << 16  # records taken in together


class Follower:
    """The log of one run, with what it comes to so far. May be used by several threads.

    Attributes
    ----------
    began_at, changed_at, ended_at
        When the run began, when the last of those events was appended, and when the run ended, in seconds
        since 1970; None for what has not been.
    """

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.lock = threading.RLock()
        self._last: Record | None = None
        self.began_at: float | None = None
        self.changed_at: float | None = None
        self.ended_at: float | None = None
        self._history: History | None = None

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

    def append(self, decide: Callable[[float], Sequence[Event]]) -> None:
        """Add to the log what `decide` makes of it as it stands, at the time that it is given."""

        def up_to_date(news: Sequence[Record], now: float) -> Sequence[Event]:
            self._take(news)
            return decide(now)

        with self.lock:
            self._take(self.store.append(self.run, self._last or 0, up_to_date))

    def _take(self, records: Sequence[Record]) -> None:
        """Take records in. If that is broken off, all is forgotten, to be read again."""
        if not records:
            return
        events = [record.event for record in records]
        if self._history is None:
            first = events.pop(0)
            if not isinstance(first, Began):
                raise CorruptLog(f"the log of run {self.run!r} does not start with its question.")
            self._history = History(first)
        try:
            self._history.take(events)
        except BaseException:
            self._history = self._last = None
            raise
        self._last = records[-1]
        self.began_at = self.began_at or records[0].at
        self.changed_at = records[-1].at
        self.ended_at = self.ended_at or next((r.at for r in records if isinstance(r.event, Ended)), None)
