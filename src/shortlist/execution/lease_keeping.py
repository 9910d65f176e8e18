"""Leases of a driver: renews them while it measures, and waits for tickets that other workers hold."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shortlist.errors import ShortlistError
from shortlist.execution.interrupts import Interrupt
from shortlist.execution.session_protocol import DrivenSession
from shortlist.session.worker_names import own_name

LEASE = 60.0  # seconds of a driver's lease, which it renews while it runs
_PAUSE = 0.1  # seconds between the first two checks for answers of others
_PATIENCE = 3.0  # seconds after which to check whether tickets of others are available

_NAMING, _NUMBERS = threading.Lock(), set[int]()  # of the drivers that run in this process


@contextmanager
def holding_tickets(session: DrivenSession) -> Iterator[str]:
    """Yield a worker name; its leases are renewed inside the context, and released on exit."""
    with _a_name(session.prefix) as worker:
        if session.is_private:
            yield worker
            return
        stop = threading.Event()
        thread = threading.Thread(target=_renewing, args=(session, worker, stop), daemon=True)
        thread.start()
        try:
            yield worker
        finally:
            stop.set()
            thread.join()
            with contextlib.suppress(ShortlistError):  # leases expire
                session.release(worker)


def wait_for_others(
    session: DrivenSession, interrupt: Interrupt, progress: Callable[[], None] | None
) -> None:
    """Wait for answers of others, or for a few seconds: then their tickets may be available."""
    before, pause, end = session.n_made, _PAUSE, time.monotonic() + _PATIENCE
    while session.n_made == before and time.monotonic() < end:
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
        if interrupt.is_pressed:
            raise KeyboardInterrupt
        if interrupt.is_wanted:
            return
        session.refresh()
        if progress is not None:
            progress()


@contextmanager
def _a_name(prefix: str) -> Iterator[str]:
    """Yield a name that no other running driver of this process has."""
    with _NAMING:
        number = next(number for number in itertools.count() if number not in _NUMBERS)
        _NUMBERS.add(number)
    try:
        yield own_name(number, prefix)
    finally:
        _NUMBERS.discard(number)


def _renewing(session: DrivenSession, worker: str, stop: threading.Event) -> None:
    while not stop.wait(LEASE / 3):
        with contextlib.suppress(ShortlistError):  # the measuring thread gets the same error
            session.renew(worker, LEASE)
