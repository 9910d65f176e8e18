"""Programs that stay open, and answer requests: a JSON line on standard input for each, a JSON line back.

A request is an object with an `id`, a number that no other request to this program has. The answer has the
same `id`, and a `score`, or an `error`, or `retry_after` seconds. Answers may come in any order.

A call takes a program that is free, or starts one, so that there are at most as many as there are calls at
once. A program that ends, is late, or prints anything else is stopped; the next call starts another. Programs
end when their input does: when the run ends, or when this process does.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from shortlist.errors import RetryLater
from shortlist.measure.printed import as_number, checked_number, is_number, short
from shortlist.measure.program_output import LONGEST_LINE, LastLines, in_background, most_bytes

_TOO_MUCH = b""  # in place of a line, if a program does not stop printing
_PATIENCE = 5.0  # seconds that a program has to end after its input has
_GLANCE = 0.5  # seconds after which it is looked whether a program has ended, and may still be read


class ProgramFailed(Exception):
    """A program has failed: how, its exit status, if it has ended, and the end of its stderr."""

    def __init__(self, what: str, program: "OpenProgram") -> None:
        super().__init__(what)
        self.status = program.process.poll()
        self.last_lines = program.last_lines()


class WrongAnswer(ProgramFailed):
    """A program has printed something else than an answer."""


class OpenProgram:
    """A program that was started, and whose output is read as it comes."""

    def __init__(self, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # its own process group, so that all its processes can be stopped
        )
        self._n_asked = 0
        self._n_bytes, self._most = 0, most_bytes(0)  # that it has printed, and may have printed by now
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._said = LastLines()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            in_background(self._pass_on, self.process.stdout),
            in_background(self._said.read, self.process.stderr),
        ]

    def _pass_on(self, stream: IO[bytes]) -> None:
        while line := stream.readline(LONGEST_LINE + 1):
            self._n_bytes += len(line)
            if len(line) > LONGEST_LINE or self._n_bytes > self._most:
                self._lines.put(_TOO_MUCH)
                return
            if line.strip():
                self._lines.put(line)
        self._lines.put(None)

    def answers(self, requests: Sequence[Mapping[str, Any]], timeout: float | None) -> list[dict[str, Any]]:
        """Return the answer to each request.

        Raises
        ------
        ProgramFailed
            If the program ends, does not answer within `timeout` seconds, or prints anything else.
        """
        assert self.process.stdin is not None
        first, self._n_asked = self._n_asked, self._n_asked + len(requests)
        self._most = self._n_bytes + most_bytes(len(requests))
        numbers = range(first, self._n_asked)
        lines = [json.dumps({"id": one, **asked}) for one, asked in zip(numbers, requests, strict=True)]
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self.kill()

        timer = threading.Timer(timeout or 0.0, stop)
        timer.daemon = True
        if timeout is not None:
            timer.start()
        try:
            with suppress(BrokenPipeError):  # it has ended: what it printed tells
                self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
                self.process.stdin.flush()
            found: dict[int, dict[str, Any]] = {}
            unanswered = set(numbers)
            while unanswered:
                if (line := self._next_line()) is None:
                    self._wait()
                    ended = f"it ended after {len(found)} of {len(numbers)} answers"
                    late = f"it had not answered after {timeout} seconds (`timeout`) and was stopped"
                    raise ProgramFailed(late if is_late.is_set() else ended, self)
                if line == _TOO_MUCH:
                    limits = f"a line may have {LONGEST_LINE:,} bytes, and all {most_bytes(len(requests)):,}"
                    raise WrongAnswer(f"it printed too much for this call: {limits}", self)
                answer = self._parsed(line, unanswered)
                unanswered.remove(answer["id"])
                found[answer["id"]] = answer
        finally:
            timer.cancel()
        return [found[one] for one in numbers]

    def _next_line(self) -> bytes | None:
        """Return the next line of its output, or None if it has ended.

        It may have ended although its output is open, since processes that it started hold it.
        """
        while True:
            has_ended = self.has_ended
            try:
                return self._lines.get(timeout=_GLANCE)
            except queue.Empty:
                if has_ended:
                    return None

    @property
    def has_ended(self) -> bool:
        """Whether the program itself has ended."""
        return self.process.poll() is not None

    def _parsed(self, line: bytes, unanswered: Set[int]) -> dict[str, Any]:
        text = line.decode("utf-8", "replace").strip()
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            wanted = '{"id": 0, "score": 0.5}'
            raise WrongAnswer(f"it printed {short(text)}, but an answer is a JSON line like {wanted}", self)
        if not isinstance(answer.get("id"), int) or answer["id"] not in unanswered:
            raise WrongAnswer(f"it printed {short(text)}, but no open request has that `id`", self)
        return answer

    def last_lines(self) -> list[str]:
        """Return the last lines of its stderr."""
        return self._said.lines

    def _wait(self, seconds: float = _PATIENCE) -> None:
        """Wait until the program has ended and all of its stderr is read; stop it if that takes long.

        Processes that it started, and left behind, are stopped as well.
        """
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(seconds, 0.0))
        self.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(_GLANCE)

    def kill(self) -> None:
        """Stop the program, and all processes that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end_input(self) -> None:
        """Let the program know that there are no more requests."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def close(self, seconds: float = _PATIENCE) -> None:
        """End its input, and wait for the program to end; stop it if that takes long."""
        self.end_input()
        self._wait(seconds)


class OpenPrograms:
    """Programs of one kind that stay open; each answers one call at a time.

    Where scores are 0 or 1 (`is_binary`), false and true stand for them.
    """

    def __init__(
        self, argv: Sequence[str], folder: Path, env: Mapping[str, str], *, is_binary: bool = False
    ) -> None:
        self._is_binary = is_binary
        self._start = (tuple(argv), folder, dict(env))
        self._free: list[OpenProgram] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close_all, self._free)

    def scores(self, requests: Sequence[Mapping[str, Any]], timeout: float | None) -> list[float]:
        """Return the score that a program answers to each request.

        Raises
        ------
        ProgramFailed
            If the program fails; it is stopped then. Also if it reports an error, or an invalid score.
        RetryLater
            If it asks for that.
        OSError
            If it cannot be started.
        """
        program = self._taken() or OpenProgram(*self._start)
        try:
            found = program.answers(requests, timeout)
        except BaseException:
            program.kill()
            program.close()
            raise
        with self._lock:
            self._free.append(program)
        try:
            return [_score(answer, is_binary=self._is_binary) for answer in found]
        except ValueError as error:
            kind = ProgramFailed if any("error" in answer for answer in found) else WrongAnswer
            raise kind(str(error), program) from None

    def _taken(self) -> OpenProgram | None:
        """Return a program that is free, if there is one; those that ended meanwhile are forgotten."""
        while True:
            with self._lock:
                program = self._free.pop() if self._free else None
            if program is None or not program.has_ended:
                return program
            program.close()


def _score(answer: dict[str, Any], *, is_binary: bool) -> float:
    """Return the score of an answer; raise ValueError if there is none, RetryLater if it asks for that."""
    shown = short(json.dumps(answer))
    if "retry_after" in answer:
        seconds = answer["retry_after"]
        if not is_number(seconds) or not 0 <= seconds <= 1e9:
            raise ValueError(f"it printed {shown}; `retry_after` must be a number of seconds")
        raise RetryLater(seconds, str(answer.get("error", "")))
    if "error" in answer:
        raise ValueError(f"it reported an error: {answer['error']}")
    score: Any = as_number(answer.get("score")) if is_binary else answer.get("score")
    if not is_number(score):
        raise ValueError(f"it printed {shown}; `score` must be a number")
    return checked_number(score)


def _close_all(programs: list[OpenProgram]) -> None:
    """End programs, all at the same time."""
    for program in programs:
        program.end_input()
    deadline = time.monotonic() + _PATIENCE
    for program in programs:
        program.close(deadline - time.monotonic())
