"""The runs that a server has open: each is read once, and followed from then on."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from shortlist.errors import StoreTrouble
from shortlist.run.follower import Follower
from shortlist.run.session import Session
from shortlist.server.tally import Tally
from shortlist.store import Began, Store

T = TypeVar("T")

_MOST_OPEN = 100  # runs that are followed at the same time


class Open:
    """A run that is followed; `session` is None where it can only be looked at."""

    def __init__(self, store: Store, run: str, *, is_read_only: bool) -> None:
        self.log = Follower(store, run)
        self.tally = Tally(self.log)
        self.log.catch_up()
        _ = self.log.history  # raises NoSuchRun
        self.session = None if is_read_only else Session.following(self.log)

    def refresh(self) -> None:
        """Take in what others have added."""
        if self.session is None:
            self.log.catch_up()
        else:
            self.session.refresh()


class Desk:
    """All runs of a store; may be used by several threads."""

    def __init__(self, store: Store, *, is_read_only: bool = False) -> None:
        self.store, self.is_read_only = store, is_read_only
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Open] = OrderedDict()
        self._locks: dict[str, threading.Lock] = {}

    @contextmanager
    def run(self, name: str) -> Iterator[Open]:
        """Yield a run. If its store fails, it is forgotten, to be opened again next time."""
        found = self._found(name)
        try:
            yield found
        except StoreTrouble:
            self.forget(name)
            raise

    @contextmanager
    def session(self, name: str) -> Iterator[Session]:
        """Yield the session of a run, which others may be using too."""
        with self.run(name) as found:
            if found.session is None:
                raise StoreTrouble("runs can only be looked at here.")
            yield found.session

    def look(self, name: str, view: Callable[[Open], T]) -> T:
        """Return what a view shows of a run, as it is now; nobody adds to it meanwhile."""
        with self.run(name) as found:
            found.refresh()
            with found.log.lock:
                return view(found)

    def runs(self) -> list[str]:
        """Return the names of all runs, the latest first."""
        return self.store.runs()[::-1]

    def forget(self, name: str) -> None:
        """Do not follow a run any more."""
        with self._lock:
            self._open.pop(name, None)

    def is_same(self, name: str, code: str) -> bool:
        """Return whether the run of that name is the one with this code, and not a later one."""
        first = next(iter(self.store.read(name)), None)
        return first is not None and isinstance(first.event, Began) and first.event.code == code

    def _found(self, name: str) -> Open:
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
                return self._open[name]
            opening = self._locks.setdefault(name, threading.Lock())
        with opening:  # a log may take long to read: others go on, those who want the same one wait
            with self._lock:
                if name in self._open:
                    return self._open[name]
            try:
                opened = Open(self.store, name, is_read_only=self.is_read_only)
            finally:
                with self._lock:
                    self._locks.pop(name, None)
            with self._lock:
                self._open[name] = opened
                if len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)
            return opened
