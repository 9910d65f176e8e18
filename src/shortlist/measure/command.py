"""A program as the source of rewards: how it is run, and how its output is parsed."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Thread
from typing import IO, Any

import numpy as np

from shortlist.checks import one_of, shortened
from shortlist.errors import InvalidProblem, MeasurementFailed, RetryLater, WrongOutput
from shortlist.escaping import on_one_line
from shortlist.items import Blocks
from shortlist.measure.function import Summary
from shortlist.measure.open_programs import OpenPrograms, ProgramFailed, WrongAnswer
from shortlist.measure.printed import rewards_in_json, rewards_in_lines
from shortlist.measure.program_output import LastLines, in_background, most_bytes
from shortlist.measure.shared_items import ids_of, items_words, values_of
from shortlist.measure.source import Call
from shortlist.problem import Problem

_BRACES = re.compile(r"\{(\{?)([^{}\"\n]+)\}(\}?)")
_OWN = ("arm", "count", "name", "seed")
_LONGEST = 2_000_000  # maximum timeout of the operating system, in seconds
_PATIENCE = 5.0  # seconds until the output of a program that was stopped is read
_TRY_LATER = 75  # the exit status EX_TEMPFAIL of sysexits.h


@dataclass(frozen=True, eq=False)
class CommandSource:
    """A program as a source of rewards, run without a shell, one call at a time.

    Exit status 75 asks for a later retry, like `RetryLater`; any other status but 0 is a failure. With shared
    items, the program reads them from its standard input, one per line, as JSON, and prints one score for
    each, in the same order. With blocks, these are the seeds of blocks; or, if the command has ``{seed}``,
    the program is run once for each block, with the seed that all arms share. A persistent program is
    started once per worker (see `open_programs`); it reads a line with the arm, and with the item or a seed,
    for each measurement.

    Attributes
    ----------
    problem
        The question whose arms it measures.
    argv
        The program and its arguments. ``{arm}`` stands for the arm's number, ``{name}`` for its name,
        ``{count}`` for the number of rewards to print, ``{seed}`` for an integer below 2^63 that is unique
        to these pulls, and ``{column}`` for the arm's entry in that column. Without ``{count}`` the
        program is run once for each pull and prints one reward. ``{{word}}`` stands for ``{word}``.
    folder
        The working directory of the program.
    columns
        Further columns by name: one text per arm.
    output
        "lines": one reward per line; or "json": a list of rewards, or {"count": , "mean": , "variance": }.
    timeout
        Seconds after which the program, with all processes it started, is stopped and has failed.
    env
        Additional environment variables.
    persistent
        Whether the program stays open, and answers one JSON line after the other. Its arguments have no
        placeholders then.
    """

    problem: Problem
    argv: tuple[str, ...]
    folder: Path = Path()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    output: str = "lines"
    timeout: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    persistent: bool = False
    together: int = 1

    def __post_init__(self) -> None:
        _check_argv(self.argv)
        _check_entries(self)
        if self.persistent:
            self._check_program()
            return
        used = {word for part in self.argv for word in self._words(part)}
        for word in sorted(used - {*_OWN, *self.columns}):
            known = ", ".join(f"{{{name}}}" for name in dict.fromkeys((*_OWN, *self.columns)))
            raise InvalidProblem(
                f"the command has {{{word}}}, but there is no such column; valid names: {known}. "
                f"For literal braces, double them: {{{{{word}}}}}."
            )
        if self._is_per_block and "count" in used:
            raise InvalidProblem(
                "the command has {seed} and {count}, but every block has its own seed: omit {count}, and the "
                "program is run once for each block; or omit {seed}, and read the seeds from standard input."
            )
        kept = {name: tuple(texts) for name, texts in self.columns.items() if name in used}
        object.__setattr__(self, "columns", kept)  # other columns are not sent to workers
        self._check_program()

    def answers(self, calls: Sequence[Call]) -> list[Any]:
        """Return the program's output for each call."""
        return [self._answer(call) for call in calls]

    def command_line(self, call: Call) -> list[str]:
        """Return the program and its arguments for one call."""
        values = {name: texts[call.arm] for name, texts in self.columns.items()}
        values |= {"arm": str(call.arm), "name": self.problem.name(call.arm), "count": str(call.count)}
        items = self.problem.items
        values["seed"] = str(values_of(items, call)[0] if isinstance(items, Blocks) else seed_of(call))
        return [self._filled(part, values) for part in self.argv]

    @cached_property
    def _open(self) -> OpenPrograms:
        argv = [self._filled(part, {}) for part in self.argv]
        return OpenPrograms(argv, self.folder, self.env, is_binary=self.problem.is_binary)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to other processes: open programs stay here."""
        return {name: value for name, value in self.__dict__.items() if name != "_open"}

    def _answer(self, call: Call) -> Any:
        if self.persistent:
            return self._answer_of_open(call)
        if (items := self.problem.items) is not None and not self._is_per_block:
            lines = map(json.dumps, values_of(items, call))
            return self._run(call, "".join(f"{line}\n" for line in lines).encode())
        if any("count" in self._words(part) for part in self.argv):
            return self._run(call)
        singles = (replace(call, count=1, first_pull=call.first_pull + pull) for pull in range(call.count))
        return [_single(self._run(one)) for one in singles]

    @property
    def _is_per_block(self) -> bool:
        """Whether the program is run once for each block, with its seed as an argument."""
        return self.problem.has_blocks and any("seed" in self._words(part) for part in self.argv)

    def _answer_of_open(self, call: Call) -> list[float]:
        arm: dict[str, Any] = {"arm": call.arm, "name": self.problem.name(call.arm)}
        if self.columns:
            arm["columns"] = {name: texts[call.arm] for name, texts in self.columns.items()}
        try:
            return self._open.scores([arm | what for what in self._measured_in(call)], self.timeout)
        except ProgramFailed as failure:
            if failure.status == _TRY_LATER:
                raise RetryLater(reason=str(failure)) from None
            failed = self._failed(call, list(self.argv), str(failure), failure.last_lines)
            raise (WrongOutput(str(failed)) if isinstance(failure, WrongAnswer) else failed) from None
        except OSError as error:
            raise self._failed(call, list(self.argv), f"the program cannot be started: {error}") from None

    def _measured_in(self, call: Call) -> Iterator[dict[str, Any]]:
        """Yield what a persistent program is told of each measurement of a call: the item, or a seed."""
        if (items := self.problem.items) is not None:
            for own, value in zip(ids_of(items, call), values_of(items, call), strict=True):
                has_seed = isinstance(items, Blocks)
                yield {"block": int(own), "seed": value} if has_seed else {"item_id": own, "item": value}
            return
        for pull in range(call.first_pull, call.first_pull + call.count):
            yield {"seed": seed_of(replace(call, count=1, first_pull=pull))}

    def _run(self, call: Call, given: bytes | None = None) -> list[float] | Summary:
        argv = self.command_line(call)
        status, out, err = self._finished(argv, call, given)
        failure = self._failed(call, argv, _how_it_ended(status), err) if status else None
        if status == _TRY_LATER:
            raise RetryLater(reason=str(failure))
        if failure is not None:
            raise failure
        try:
            read = rewards_in_lines if self.output == "lines" else rewards_in_json
            return read(out.decode("utf-8", "replace"), call.count, is_binary=self.problem.is_binary)
        except ValueError as error:
            what = f"the program ended with status 0, but {error}"
            if self.problem.has_blocks and not self._is_per_block and call.count > 1:
                what += (
                    "; it gets the seeds of the blocks on its standard input, one per line. To run it once "
                    "for each block, put {seed} into the command"
                )
            raise WrongOutput(str(self._failed(call, argv, what, err))) from None

    def _finished(self, argv: list[str], call: Call, given: bytes | None) -> tuple[int, bytes, list[str]]:
        """Run the program to its end, with this input; return its exit status and its output.

        If it prints too much, it is stopped.
        """
        try:
            process = subprocess.Popen(
                argv,
                cwd=self.folder,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # its own process group, so that all its processes can be stopped
            )
        except (OSError, ValueError) as error:
            raise self._failed(call, argv, f"the program cannot be started: {error}") from None
        assert process.stdout is not None
        assert process.stderr is not None
        most, found, last = most_bytes(call.count), [b""], LastLines()

        def keep(stream: IO[bytes]) -> None:
            found[0] = stream.read(most + 1)
            if len(found[0]) > most:
                _kill(process)

        readers = [in_background(keep, process.stdout), in_background(last.read, process.stderr)]
        if given is not None and process.stdin is not None:
            in_background(partial(_write, given), process.stdin)
        is_late = True
        try:
            is_late = not _has_ended(process, readers, self.timeout)
        finally:
            if is_late:  # or if it is interrupted
                _kill(process)
                _has_ended(process, readers, _PATIENCE)
        if is_late:
            said = f"it was still running after {self.timeout:g} seconds (`timeout`) and was stopped"
            raise self._failed(call, argv, said, last.lines)
        if len(found[0]) > most:
            said = f"it printed more than {most:,} bytes, which is the maximum for this call"
            raise WrongOutput(str(self._failed(call, argv, said, last.lines)))
        return process.returncode, found[0], last.lines

    def _failed(self, call: Call, argv: list[str], what: str, lines: Sequence[str] = ()) -> MeasurementFailed:
        name = on_one_line(self.problem.name(call.arm))
        pulls = f"({call.count} pull{'s' if call.count > 1 else ''})"
        on = pulls if self.problem.items is None else f"on {items_words(self.problem.items, call)}"
        said = f"measuring {name} {on} failed: {what}. "
        said += f"The command, run in {self.folder.absolute()}: {shlex.join(argv)}"
        return MeasurementFailed("\n  ".join([f"{said}\nThe end of its stderr:", *lines]) if lines else said)

    def _words(self, part: str) -> set[str]:
        """Return the placeholders of one argument: columns, and words like them, in single braces."""
        found = _BRACES.findall(part)
        return {word for left, word, right in found if not (left and right) and self._is_meant(word)}

    def _is_meant(self, word: str) -> bool:
        """Return whether this is a placeholder; programs use braces as well, as in '{ print $1 }'."""
        return word.isidentifier() or word in self.columns

    def _filled(self, part: str, values: Mapping[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            left, word, right = found.groups()
            if not self._is_meant(word):
                return found[0]
            return f"{{{word}}}" if left and right else left + values[word] + right

        return _BRACES.sub(value, part)

    def _check_program(self) -> None:
        """Refuse a program that does not exist or cannot be executed, before anything is measured."""
        if self.persistent:
            programs = {self.argv[0]}
        else:
            arms = range(self.problem.n) if self._words(self.argv[0]) else [0]
            programs = {self.command_line(Call(0, arm, 1, 0))[0] for arm in arms}
        for program in sorted(programs):
            is_path = os.sep in program
            looked_for = str((self.folder / program).absolute()) if is_path else program
            if shutil.which(looked_for, path=self.env.get("PATH")) is None:
                found = "no such executable file" if is_path else "no program of that name on PATH"
                advice = "chmod +x it" if is_path else f"for one in {self.folder} write ./{program}"
                raise InvalidProblem(
                    f"the program {looked_for!r} cannot be run: there is {found}. Check it, or {advice}."
                )


def seed_of(call: Call) -> int:
    """Return an integer from 0 to 2^63 - 1 that is unique to this call."""
    return int(call.sequence.generate_state(1, np.uint64)[0] >> 1)


def _single(answer: list[float] | Summary) -> float:
    return answer.mean if isinstance(answer, Summary) else answer[0]


def _write(given: bytes, stream: IO[bytes]) -> None:
    """Write the input of a program, as far as it reads it."""
    with suppress(BrokenPipeError), stream:
        stream.write(given)


def _has_ended(process: "subprocess.Popen[bytes]", readers: Sequence[Thread], seconds: float | None) -> bool:
    """Wait until a program has ended, and all that it printed is read; return whether it did so in time."""
    end = None if seconds is None else time.monotonic() + seconds

    def left() -> float | None:
        return None if end is None else max(0.0, end - time.monotonic())

    for reader in readers:
        reader.join(left())
    with suppress(subprocess.TimeoutExpired):
        process.wait(left())
    return process.returncode is not None and not any(reader.is_alive() for reader in readers)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Stop a program and all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _how_it_ended(status: int) -> str:
    if status > 0:
        return f"the program ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the program was killed by {name}"


def _check_argv(argv: object) -> None:
    if not isinstance(argv, tuple | list) or not argv or not all(isinstance(part, str) for part in argv):
        raise InvalidProblem(
            f"the command is {argv!r}; it must be a list of strings, the program first, "
            f'such as ["./simulate", "{{name}}", "{{seed}}"].'
        )


def _check_entries(source: CommandSource) -> None:
    one_of(source.output, "output", ("lines", "json"))
    if not isinstance(source.persistent, bool):
        raise InvalidProblem(f"`persistent` is {source.persistent!r}; it must be true or false.")
    if source.persistent and source.output != "lines":
        raise InvalidProblem("a persistent program answers by JSON lines; omit `output`.")
    if source.persistent and (words := {word for part in source.argv for word in source._words(part)}):
        word = min(words)
        raise InvalidProblem(
            f"the command of a persistent program has {{{word}}}, but it is started once for all arms: each "
            f"line that it reads names the arm. For literal braces, double them: {{{{{word}}}}}."
        )
    seconds: Any = source.timeout
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise InvalidProblem(f"`timeout` is {seconds!r}; it must be a number of seconds, such as 60.")
    if seconds is not None and not 0 < seconds <= _LONGEST:
        raise InvalidProblem(
            f"`timeout` is {shortened(seconds)}; it must be above 0 and at most {_LONGEST:,} seconds. "
            f"Omit it for no limit."
        )
    if not all(isinstance(text, str) for pair in source.env.items() for text in pair):
        raise InvalidProblem(f'`env` is {dict(source.env)!r}; write every value as text, like NAME = "1".')
    if not source.folder.is_dir():
        raise InvalidProblem(f"there is no folder {source.folder} for the program to run in.")
