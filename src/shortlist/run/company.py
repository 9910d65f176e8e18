"""Measuring in company: other processes may be at work on the same run."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shortlist.errors import StoreTrouble
from shortlist.run.interrupts import Interrupt
from shortlist.run.session import Session

LEASE = 60.0  # seconds for which a driver reserves what it measures; it renews that while it lasts
_PAUSE = 0.25  # seconds between two looks at what others have told


@contextmanager
def holding_tickets(session: Session, worker: str) -> Iterator[None]:
    """Keep what a worker reserves for as long as this lasts; give back what is left of it."""
    if session.is_private:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_renewing, args=(session, worker, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with contextlib.suppress(StoreTrouble):  # leases end by themselves
            session.release(worker)


def wait_for_others(
    session: Session, interrupt: Interrupt, progress: Callable[[Session], None] | None
) -> None:
    """Wait a moment for what others are measuring, and take in what they have told."""
    time.sleep(_PAUSE)
    if interrupt.is_wanted:
        raise KeyboardInterrupt
    session.refresh()
    if progress is not None:
        progress(session)


def _renewing(session: Session, worker: str, stop: threading.Event) -> None:
    while not stop.wait(LEASE / 3):
        with contextlib.suppress(StoreTrouble):  # whoever measures will meet it, too
            session.renew(worker, LEASE)
