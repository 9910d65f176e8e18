"""Ctrl-C in two steps: the first stops a run cleanly, the second immediately."""

import errno
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """Whether a driver shall stop: because of Ctrl-C, a deadline, or an order to all drivers of the run.

    Attributes
    ----------
    is_pressed
        Whether Ctrl-C was pressed.
    due
        The deadline, on the monotonic clock.
    is_ordered
        Returns whether all drivers of the run were told to stop.
    """

    is_pressed: bool = False
    due: float = math.inf
    is_ordered: Callable[[], bool] = lambda: False

    @property
    def is_wanted(self) -> bool:
        """Whether the driver shall finish what runs, and then stop."""
        return self.is_pressed or time.monotonic() >= self.due or self.is_ordered()

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Record the first request to stop; raise KeyboardInterrupt at the second."""
        if self.is_pressed:
            raise KeyboardInterrupt
        self.is_pressed = True
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


def hang_up(number: int, frame: FrameType | None) -> None:
    """Handle SIGHUP like a first Ctrl-C; a terminal that is closed may send it several times."""
    _silence_closed_terminals()
    if not (_UNDER_WAY and _UNDER_WAY[-1].is_pressed):
        ask_to_stop(number, frame)


def _silence_closed_terminals() -> None:
    """Let output to a terminal that is closed go nowhere: as an error it would break off measurements."""
    import termios  # noqa: PLC0415  (Windows has neither this nor SIGHUP)

    for descriptor in (1, 2):  # standard output and standard error
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:  # for anything but a terminal, too
            if error.args[0] == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Defer Ctrl-C, also in processes that are started here: this process ends them cleanly."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
