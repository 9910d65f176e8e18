"""The runs that a server has open: each is read once, and followed from then on."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from shortlist.errors import ChangedRun, ShortlistError, StoreTrouble
from shortlist.run.follower import Follower
from shortlist.run.session import Session
from shortlist.server.tally import Tally
from shortlist.server.trouble import Busy, discreet
from shortlist.store import Store

T = TypeVar("T")

_MOST_OPEN = 100  # runs that are followed at the same time
_PATIENCE = 3.0  # seconds that whoever looks waits for somebody who adds


class Open:
    """A run that is followed; `session` is None where it can only be looked at."""

    def __init__(self, store: Store, run: str, *, is_read_only: bool) -> None:
        self.log = Follower(store, run)
        self.tally = Tally(self.log)
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
    def held(self) -> Iterator["Open"]:
        """Keep others from adding to it; raise Busy if one of them does not come to an end."""
        if not self.log.lock.acquire(timeout=_PATIENCE):
            raise Busy(f"others have been adding to run {self.log.run!r} for long; try again.")
        try:
            yield self
        finally:
            self.log.lock.release()

    def is_there(self) -> bool:
        """Return whether the last event that was read is still in the store."""
        with self.log.lock:
            last = self.tally.recent[-1]
        found = next(iter(self.log.store.read(self.log.run, last.number - 1)), None)
        return found is not None and found.mark == last.mark


class Desk:
    """All runs of a store; may be used by several threads."""

    def __init__(self, store: Store, *, is_read_only: bool = False) -> None:
        self.store, self.is_read_only = store, is_read_only
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Open] = OrderedDict()
        self._locks: dict[str, threading.Lock] = {}

    @contextmanager
    def discreet(self) -> Iterator[None]:
        """Let nobody know, by what is said if the store fails, where it is."""
        try:
            yield
        except StoreTrouble as error:
            raise discreet(error, self.store) from None

    @contextmanager
    def run(self, name: str) -> Iterator[Open]:
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
    def fresh(self, name: str) -> Iterator[Open]:
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

    def look(self, name: str, view: Callable[[Open], T]) -> T:
        """Return what a view shows of a run, as it is now; nobody adds to it meanwhile."""
        with self.fresh(name) as found:
            return view(found)

    def copy(self, name: str) -> Follower:
        """Return the log of a run as it is now, read anew: who takes long over it keeps nobody waiting."""
        with self.discreet():
            log = Follower(self.store, name)
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
