"""Ctrl-C in two steps: the first stops a run cleanly, the second immediately."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """Whether the user asked the run to stop."""

    is_wanted: bool = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Record the first request to stop; raise KeyboardInterrupt at the second."""
        if self.is_wanted:
            raise KeyboardInterrupt
        self.is_wanted = True
        sys.stderr.write(
            "\nStopping after the running measurements; press Ctrl-C again to quit immediately.\n"
        )


_UNDER_WAY: list[Interrupt] = []  # one per run in the main thread, the innermost last


@contextmanager
def noting_interrupts() -> Iterator[Interrupt]:
    """Yield whether Ctrl-C was pressed; a handler that the program has set stays in effect."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    _UNDER_WAY.append(interrupt)
    if is_ours:
        signal.signal(signal.SIGINT, interrupt.note)
    try:
        yield interrupt
    finally:
        _UNDER_WAY.remove(interrupt)
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def ask_to_stop(number: int, frame: FrameType | None) -> None:
    """Handle a signal like Ctrl-C, even if Ctrl-C is ignored, as in a background job of a script."""
    if not _UNDER_WAY:
        raise KeyboardInterrupt
    _UNDER_WAY[-1].note(number, frame)


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Defer Ctrl-C, also in processes that are started here: this process ends them cleanly."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
