"""Elapsed times as rewards: Python functions and programs, timed block after block.

The reward is the logarithm of the time in seconds, so that a difference of rewards is a ratio of times.
Blocks are in lockstep: all arms of a block are timed directly after each other, so that whatever slows down
the machine for a while slows down all of them.
"""

import gc
import itertools
import math
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from shortlist.errors import FinalFailure, InvalidProblem
from shortlist.measure.source import Call

Timer: TypeAlias = Callable[[], float]
"""Times an arm once, and returns the seconds that it took."""

LEAST = 0.005
"""Seconds that one timing of a Python function takes at least: it is called repeatedly, if it is quick."""

_NANO = 1e-9
_MOST_WITHIN = 10.0


def epsilon_of(within: Any) -> float:
    """Return by how much logarithms of times may differ if times may differ by this share."""
    is_number = isinstance(within, int | float) and not isinstance(within, bool)
    if not is_number or not 0 < within <= _MOST_WITHIN:
        raise InvalidProblem(
            f"`within` is {within!r}; it must be a share above 0, such as 0.02: at most 2 % slower."
        )
    if within > 1:
        raise InvalidProblem(
            f"`within` is {within:g}, which means {within:.0%} slower; for {within:g} % give "
            f"{within / 100:g}."
        )
    return math.log1p(within)


@dataclass
class FunctionTimer:
    """Times a Python function: the mean of as many calls as take `LEAST` seconds together.

    Their number is found at the first timing. Garbage is not collected meanwhile, as in `timeit`.

    Attributes
    ----------
    function
        What is timed; it gets no arguments.
    clock
        Returns nanoseconds.
    number
        The number of calls per timing; 0 until it is known.
    """

    function: Callable[[], object]
    clock: Callable[[], int] = time.perf_counter_ns
    number: int = 0

    def __call__(self) -> float:
        """Return the seconds per call."""
        if not self.number:
            self.number = self._calibrated()
        return self._total(self.number) / self.number

    def _calibrated(self) -> int:
        """Return the first of 1, 2, 5, 10, 20, 50, ... calls that take long enough."""
        for power in itertools.count():
            for digit in (1, 2, 5):
                number: int = digit * 10**power
                if self._total(number) >= LEAST:
                    return number
        raise AssertionError

    def _total(self, number: int) -> float:
        """Return the seconds that so many calls take; at least a nanosecond."""
        function, calls = self.function, itertools.repeat(None, number)
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            start = self.clock()
            for _ in calls:
                function()
            return max(self.clock() - start, 1) * _NANO
        finally:
            if was_enabled:
                gc.enable()


@dataclass(frozen=True)
class CommandTimer:
    """Times a program from its start to its end; what it prints is discarded.

    Attributes
    ----------
    argv
        The program and its arguments.
    folder, env
        The working directory, and additional environment variables.
    ignore_failure
        Whether programs that end with a status other than 0 are timed like others.
    clock
        Returns nanoseconds.
    """

    argv: tuple[str, ...]
    folder: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    ignore_failure: bool = False
    clock: Callable[[], int] = time.perf_counter_ns

    @classmethod
    def of(cls, command: str | Sequence[str], *, shell: bool = False, **how: Any) -> "CommandTimer":
        """Return the timer of a command; text is split like a shell does, or given to the shell.

        Raises
        ------
        InvalidProblem
            If the command is empty or cannot be split, or if there is no such program.
        """
        if isinstance(command, str) and shell:
            return cls(("/bin/sh", "-c", command), **how)
        if isinstance(command, str):
            try:
                command = shlex.split(command)
            except ValueError as error:
                raise InvalidProblem(
                    f"the command {command!r} cannot be split into words: {error}."
                ) from None
        found = cls(tuple(command), **how)
        found.check()
        return found

    def check(self) -> None:
        """Refuse a program that does not exist, before anything is timed."""
        if not self.argv or not all(isinstance(word, str) and "\0" not in word for word in self.argv):
            raise InvalidProblem(
                f"the command is {list(self.argv)!r}; it must have words, the program first."
            )
        program = self.argv[0]
        path = str((self.folder / program).absolute()) if os.sep in program else program
        if shutil.which(path, path=self.env.get("PATH")) is None:
            raise InvalidProblem(
                f"the program {program!r} cannot be run: there is no such executable file. For pipes, "
                f"variables and other shell syntax use --shell (shell=True)."
            )

    def __call__(self) -> float:
        """Return the seconds from the start of the program to its end."""
        env = {**os.environ, **self.env} if self.env else None
        start = self.clock()
        try:
            process = subprocess.Popen(
                self.argv,
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C stops the run after this program, not the program itself
            )
        except (OSError, ValueError) as error:
            raise FinalFailure(f"it cannot be started: {error}") from None
        try:
            status = process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        elapsed = self.clock() - start
        if status and not self.ignore_failure:
            how = f"ended with exit status {status}" if status > 0 else f"was killed by signal {-status}"
            raise FinalFailure(
                f"the program {how}, so it was not timed: {shlex.join(self.argv)}. Run it by hand to see "
                f"why. For pipes and other shell syntax use --shell (shell=True); to time programs that "
                f"fail, --ignore-failure (ignore_failure=True)."
            )
        return max(elapsed, 1) * _NANO


@dataclass
class TimingSource:
    """Logarithms of elapsed times as rewards. It times one arm at a time, so use it with one worker.

    Attributes
    ----------
    timers, names
        By arm.
    warmup
        How often each arm is run before the first timing that counts.
    about
        What is timed, as plain data; a stored run can be resumed only with the same.
    """

    timers: Sequence[Timer]
    names: Sequence[str]
    warmup: int = 1
    about: dict[str, Any] = field(default_factory=dict)
    together: int = 1
    needs_this_thread: ClassVar[bool] = True
    _is_warm: bool = False

    def answers(self, calls: Sequence[Call]) -> list[list[float]]:
        """Return the logarithm of the seconds of each timing."""
        self.warm_up()
        return [[math.log(_seconds(self.timers[call.arm])) for _ in range(call.count)] for call in calls]

    def warm_up(self) -> None:
        """Run each arm some times, unless that was done."""
        if self._is_warm:
            return
        for timer, name in zip(self.timers, self.names, strict=True):
            try:
                for _ in range(self.warmup):
                    _seconds(timer)
            except FinalFailure as error:
                raise FinalFailure(f"a warm-up run of {name} failed: {error}") from error
        self._is_warm = True


def _seconds(timer: Timer) -> float:
    try:
        return timer()
    except FinalFailure:
        raise
    except Exception as error:
        raise FinalFailure(f"it raised {type(error).__name__}: {error}") from error
