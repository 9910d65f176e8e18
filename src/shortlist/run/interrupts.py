"""Ctrl-C in two steps: the first stops a run in good order, the second at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """Whether the run was asked to stop."""

    is_wanted: bool = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Note the first request to stop; raise KeyboardInterrupt at the second."""
        if self.is_wanted:
            raise KeyboardInterrupt
        self.is_wanted = True
        sys.stderr.write("\nStopping when what is being measured has ended; Ctrl-C again leaves at once.\n")


@contextmanager
def noting_interrupts() -> Iterator[Interrupt]:
    """Yield whether Ctrl-C was pressed; a program that handles or ignores it by itself goes on doing so."""
    interrupt = Interrupt()
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield interrupt
        return
    signal.signal(signal.SIGINT, interrupt.note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Put off Ctrl-C, also in processes that start meanwhile: this one ends them, in good order."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
