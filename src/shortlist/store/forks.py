"""Closes database connections before a process forks, since a child must not inherit them.

SQLite's locks belong to a process: a child with a copied connection believes it holds locks that it does not,
and two processes would use one connection to a server. So before a fork, this module waits until no other
thread uses a connection, and closes them; parent and child open new ones when they need them.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 10.0  # maximum time that a fork waits for other threads, in seconds

_guards: "weakref.WeakSet[ForkGuard]" = weakref.WeakSet()


class ForkGuard:
    """Counts the uses of connections, and closes them before a fork."""

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go
        self._reset()
        _guards.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._uses: dict[int, int] = {}  # by thread
        self._forking = False

    @contextmanager
    def use(self) -> Iterator[None]:
        """Keep other threads from forking."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._forking or me in self._uses)
            self._uses[me] = self._uses.get(me, 0) + 1
        try:
            yield
        finally:
            self._end_use(me)

    def _end_use(self, thread: int) -> None:
        with self._changed:
            left = self._uses.pop(thread, 1) - 1
            if left:
                self._uses[thread] = left
            self._changed.notify_all()

    def before(self) -> None:
        """Wait until no other thread uses a connection, and close all."""
        self._changed.acquire()
        self._forking = True
        self._changed.wait_for(lambda: not self._uses.keys() - {threading.get_ident()}, timeout=_PATIENCE)
        self._let_go()

    def after_in_parent(self) -> None:
        """Let other threads continue."""
        self._forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """Reset the state: there are no other threads in the child."""
        self._reset()


_held: list[ForkGuard] = []


def _before() -> None:
    _held[:] = list(_guards)
    for guard in _held:
        guard.before()


def _after_in_parent() -> None:
    for guard in _held:
        guard.after_in_parent()
    _held.clear()


def _after_in_child() -> None:
    for guard in _held:
        guard.after_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):  # on systems with fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
