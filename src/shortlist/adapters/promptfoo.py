"""promptfoo: the best of several prompts or providers, on no more tests than needed.

Written for promptfoo 0.123.1, a program of Node. See docs/promptfoo.md. As a program, this module is the
`command` of a problem file: it reads tests as JSON lines, and prints the score of one prompt on each.

    python -m shortlist.adapters.promptfoo --config promptfooconfig.yaml --prompt NAME
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from shortlist.adapters.cells import Cell, Cells, Measured
from shortlist.checks import shortened
from shortlist.errors import FinalFailure, InvalidProblem, MeasurementFailed, ShortlistError
from shortlist.measure.result_files.promptfoo import Result, result_of, score_of, single_score
from shortlist.measure.result_files.reading import Reading, first_line, json_lines_of

_QUIET = ("--no-write", "--no-table", "--no-progress-bar")
_TESTS_FAILED = 100  # the exit status if assertions failed, which is no trouble here
_MOST_BYTES = 100_000  # of an argument; the operating system allows 131,072
_LOOK = 0.1  # seconds between two looks for new results
_ID_KEYS = ("__description", "description")


class Candidates(Cells):
    """Prompts, or pairs of a prompt and a provider, as arms, and the tests of a configuration as items.

    It is the `measure` of `shortlist.select`: in each round of the run, `promptfoo eval` is called for the
    candidates and the tests that the round needs, which it finds by their labels and descriptions. The
    configuration is used as it is.

    Parameters
    ----------
    config
        The path of the configuration, such as `promptfooconfig.yaml`.
    candidates
        The labels of prompts, as a list; or a dictionary from names to pairs of the label of a prompt and the
        label or id of a provider.
    tests
        The descriptions of all tests. Every test must have one of its own.
    metric
        The score that counts: `success`, `score` or the name of a metric, if they are not the same.
    on_failure
        The score of tests that end with an error. Without it they are tried again, and suspend the run in the
        end.
    command
        How promptfoo is called, such as `("npx", "promptfoo@0.123.1")`.
    options
        Further options of `promptfoo eval`, such as `("--max-concurrency", "20")`.
    """

    def __init__(
        self,
        config: str | Path,
        candidates: Sequence[str] | Mapping[str, tuple[str, str | None]],
        tests: Sequence[str],
        *,
        metric: str | None = None,
        on_failure: float | None = None,
        command: Sequence[str] = ("promptfoo",),
        options: Sequence[str] = (),
    ) -> None:
        if isinstance(candidates, str) or not isinstance(candidates, Sequence | Mapping):
            raise InvalidProblem(
                f"`candidates` is {shortened(candidates)}; it must be a list of labels of prompts, or a "
                f"dictionary from names to pairs of a prompt and a provider."
            )
        self._pairs: list[tuple[str, str | None]] = (
            [(prompt, provider) for prompt, provider in candidates.values()]
            if isinstance(candidates, Mapping)
            else [(prompt, None) for prompt in candidates]
        )
        prompts = {prompt for prompt, _ in self._pairs}
        if len(set(self._pairs)) < len(self._pairs):
            raise InvalidProblem("two candidates are the same prompt with the same provider; keep one.")
        for one in sorted(prompts):
            if longer := [other for other in sorted(prompts) if other.startswith(f"{one}: ")]:
                raise InvalidProblem(
                    f"the label {longer[0]!r} begins with the label {one!r} and a colon, which promptfoo "
                    f"takes for the same prompt; change one of them."
                )
        if len(set(tests)) < len(tests):
            raise InvalidProblem("two tests have the same description; give every test its own.")
        self._config, self._command, self._options = Path(config), tuple(command), tuple(options)
        self._reading = Reading(metric, on_failure)
        pairs = [[pair, metric, on_failure, _contents(self._config)] for pair in self._pairs]
        self._has_metric = False  # whether a result had the score that was chosen
        super().__init__([str(name) for name in candidates], {name: name for name in tests}, pairs)

    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add the scores of candidates on tests; candidates that share both are evaluated together."""
        groups: dict[tuple[str | None, frozenset[str]], list[int]] = {}
        for arm, tests in wanted.items():
            groups.setdefault((self._pairs[arm][1], frozenset(tests)), []).append(arm)
        for (provider, shared), arms in groups.items():
            by_prompt = {self._pairs[arm][0]: arm for arm in arms}
            for tests in _short_enough(sorted(shared)):
                if not found.is_over:
                    self._evaluate(found, provider, tests, by_prompt)

    def _evaluate(
        self, found: Measured, provider: str | None, tests: Sequence[str], arms: Mapping[str, int]
    ) -> None:
        filters = ["--filter-prompts", f"^({_any(arms)})(: |$)", "--filter-pattern", f"^({_any(tests)})$"]
        if provider is not None:
            filters += ["--filter-providers", f"^({_any([provider])})$"]
        wanted = [*filters, *self._options]

        def cell_of(result: Result) -> Cell | None:
            is_wanted = result.prompt in arms and result.description in tests
            return (arms[result.prompt], result.description) if is_wanted else None

        with tempfile.TemporaryDirectory() as folder:
            try:
                with self._running(wanted, Path(folder)) as run:
                    for result in run.results_so_far(self._config, list(arms)):
                        if (cell := cell_of(result)) and result.error is None:
                            self._check(result, cell, ())
                            if not self._lacks_metric(result):
                                found.add({cell: self._score(result)})
                self._add_all(found, [(cell_of(one), one) for one in run.results(self._config, list(arms))])
            except InvalidProblem as error:  # another attempt would not help
                raise FinalFailure(str(error)) from None

    def _add_all(self, found: Measured, results: Sequence[tuple[Cell | None, Result]]) -> None:
        """Add the results of an evaluation that has ended."""
        seen: set[Cell] = set()
        for cell, result in results:
            if cell is None:
                continue
            self._check(result, cell, seen)
            seen.add(cell)
            if result.error is None and self._lacks_metric(result) and not self._has_metric:
                self._reading.chosen(list(result.values), result.path)
            if result.error is not None and self._reading.on_failure is None:
                found.failures[cell] = first_line(result.error)
            else:
                found.add({cell: self._score(result)})
        if not seen:
            raise InvalidProblem(
                "promptfoo carried out none of the tests. Do the labels of prompts and the descriptions of "
                "tests exist?"
            )

    def _check(self, result: Result, cell: Cell, seen: Container[Cell]) -> None:
        """Refuse results that are not about one prompt and one test."""
        arm, test = cell
        if result.compares:
            raise InvalidProblem(
                f"test {test!r} compares prompts with each other (`{result.compares}`), so its score depends "
                f"on which prompts are evaluated together. Use assertions about one output."
            )
        if cell in seen:
            raise InvalidProblem(
                f"there are two results of {self.names[arm]} on test {test!r}. If there are several "
                f"providers, give pairs of a prompt and a provider; and give every test its own description."
            )

    def _lacks_metric(self, result: Result) -> bool:
        """Return whether a result has no score of the name that was chosen; remember if one has."""
        metric = self._reading.metric
        if metric is None or metric in result.values:
            self._has_metric = True
            return False
        return True

    def _score(self, result: Result) -> float:
        if self._reading.metric is None and result.error is None:
            return single_score(result, self._reading)
        return score_of(result, result.description, str(self._reading.metric), self._reading)

    @contextlib.contextmanager
    def _running(self, filters: Sequence[str], folder: Path) -> Iterator["_Run"]:
        """Start an evaluation, and wait for its end; kill it if something goes wrong here."""
        file = folder / "results.jsonl"
        command = [*self._command, "eval", "-c", str(self._config), "-o", str(file), *_QUIET, *filters]
        with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
            try:
                run = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,  # Ctrl-C is for the driver, which lets it end
                )
            except OSError as error:
                raise FinalFailure(
                    f"{self._command[0]} cannot be started ({error.strerror}). Install it with `npm install "
                    f'promptfoo`, and give the way to call it, such as `command=("npx", "promptfoo")`.'
                ) from None
        try:
            yield _Run(run, file)
        finally:
            if run.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)
                run.wait()


class _Run(NamedTuple):
    """An evaluation, and the file that it writes: a line for each result, and all of them anew at its end."""

    process: "subprocess.Popen[bytes]"
    file: Path

    def results_so_far(self, config: Path, labels: Sequence[str]) -> Iterator[Result]:
        """Yield results as soon as they are written, until the evaluation has ended."""
        start, is_legible = 0, True
        while self.process.poll() is None or is_legible:
            is_last = self.process.returncode is not None
            if is_legible and self.file.is_file():
                with self.file.open("rb") as content:
                    content.seek(start)
                    whole, newline, _ = content.read().rpartition(b"\n")
                start += len(whole) + len(newline)
                try:
                    yield from [
                        result_of(config, json.loads(line), "", labels) for line in whole.splitlines()
                    ]
                except (ValueError, InvalidProblem):  # it is being written anew, and will be read whole
                    is_legible = False
            if is_last:
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_LOOK)

    def results(self, config: Path, labels: Sequence[str]) -> list[Result]:
        """Return all results of an evaluation that has ended."""
        status = self.process.returncode
        if status not in (0, _TESTS_FAILED) or not self.file.is_file():
            said = f"`promptfoo eval` ended with status {status}: {self._complaint()}"
            raise (FinalFailure if status == 1 else MeasurementFailed)(said)
        lines = [*json_lines_of(self.file)]
        return [result_of(config, line, f"line {number} of the results", labels) for number, line in lines]

    def _complaint(self) -> str:
        """Return what promptfoo said of its failure: an error that it raised, else what it printed."""
        out, err = (
            (self.file.parent / name).read_text(encoding="utf-8", errors="replace")
            for name in ("out.txt", "err.txt")
        )
        raised = [line for line in err.splitlines() if line.startswith("Error")]
        return first_line(" ".join(raised or out.split("\n")) or err)


def _contents(config: Path) -> dict[str, str]:
    """Return a configuration and the files that it refers to, such as prompts and tests, as digests."""
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}  # promptfoo says what is wrong with it
    found = {config.name: text}
    for name in sorted(set(re.findall(r"file://([^\s'\"\]},]+)", text))):
        for path in sorted(config.parent.glob(name)) if "*" in name else [config.parent / name]:
            with contextlib.suppress(OSError):
                found[f"{name}/{path.name}"] = blake2b(path.read_bytes()).hexdigest()
    return found


def _short_enough(tests: Sequence[str]) -> Iterator[list[str]]:
    """Yield tests in groups whose names fit into one argument of a program."""
    group: list[str] = []
    size = 0
    for test in tests:
        length = 2 * len(test.encode()) + 1
        if group and size + length > _MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(test)
        size += length
    yield group


def _any(words: Any) -> str:
    """Return a regular expression of JavaScript that matches any of some texts."""
    return "|".join(re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", word) for word in words)


def _description(item: Any) -> str:
    """Return the description of a test: an item that is text, or its field of that name."""
    if isinstance(item, str):
        return item
    key = next((key for key in _ID_KEYS if isinstance(item, dict) and item.get(key)), None)
    if key is None:
        raise InvalidProblem(
            f"the item {shortened(item)} has no description; give every test one, in the column "
            f"`__description`."
        )
    return str(item[key])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the score of a prompt on each test that standard input has, as a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m shortlist.adapters.promptfoo", description=main.__doc__)
    parser.add_argument("--config", default="promptfooconfig.yaml", help="the configuration")
    parser.add_argument("--prompt", required=True, help="the label of the prompt")
    parser.add_argument("--provider", help="the label or id of the provider, if there are several")
    parser.add_argument("--metric", help="the score that counts")
    parser.add_argument("--on-failure", type=float, help="the score of tests that end with an error")
    parser.add_argument("--command", default="promptfoo", help="how promptfoo is called")
    given, options = parser.parse_known_args(arguments)
    try:
        tests = [_description(json.loads(line)) for line in sys.stdin if line.strip()]
        candidates = Candidates(
            given.config,
            {given.prompt: (given.prompt, given.provider)},
            tests,
            metric=given.metric,
            on_failure=given.on_failure,
            command=given.command.split(),
            options=options,
        )
        found = candidates.evaluated({0: tests})
        for cell, why in found.failures.items():
            raise MeasurementFailed(f"there is no score of {given.prompt} on test {cell[1]!r}: {why}")
        print("\n".join(repr(found.scores[0, test]) for test in tests))
    except KeyError as missing:
        print(f"promptfoo returned no result of test {missing.args[0][1]!r}.", file=sys.stderr)
        return 1
    except (ShortlistError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
