"""promptfoo: the best of several prompts or providers, on no more tests than needed.

Written for promptfoo 0.123.1, a program of Node. See docs/promptfoo.md. As a program, this module is the
`command` of a problem file: it reads tests as JSON lines, and prints the score of one prompt on each.

    python -m shortlist.adapters.promptfoo --config promptfooconfig.yaml --prompt NAME
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.adapters.cells import Cells, Measured
from shortlist.checks import shortened
from shortlist.errors import FinalFailure, InvalidProblem, MeasurementFailed, ShortlistError
from shortlist.measure.result_files.promptfoo import Result, chosen, results_of, score_of
from shortlist.measure.result_files.reading import Reading, first_line

_QUIET = ("--no-write", "--no-table", "--no-progress-bar")
_TESTS_FAILED = 100  # the exit status if assertions failed, which is no trouble here
_MOST_BYTES = 100_000  # of an argument; the operating system allows 131,072
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
        content = self._config.read_text(encoding="utf-8", errors="replace") if self._config.exists() else ""
        pairs = [[pair, metric, on_failure, content] for pair in self._pairs]
        super().__init__([str(name) for name in candidates], {name: name for name in tests}, pairs)

    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add the scores of candidates on tests; candidates that share both are evaluated together."""
        groups: dict[tuple[str | None, frozenset[str]], list[int]] = {}
        for arm, tests in wanted.items():
            groups.setdefault((self._pairs[arm][1], frozenset(tests)), []).append(arm)
        for (provider, shared), arms in groups.items():
            by_prompt = {self._pairs[arm][0]: arm for arm in arms}
            for tests in _short_enough(sorted(shared)):
                self._add(found, provider, tests, by_prompt)

    def _add(
        self, found: Measured, provider: str | None, tests: Sequence[str], arms: Mapping[str, int]
    ) -> None:
        filters = ["--filter-prompts", f"^({_any(arms)})(: |$)", "--filter-pattern", f"^({_any(tests)})$"]
        if provider is not None:
            filters += ["--filter-providers", f"^({_any([provider])})$"]
        with tempfile.TemporaryDirectory() as folder:
            results = self._results([*filters, *self._options], Path(folder) / "results.json")
        try:
            metric = chosen(results, self._reading)
            for result in results:
                arm = arms.get(result.prompt)
                if arm is None or result.description not in tests:
                    continue
                cell = arm, result.description
                if cell in found.scores or cell in found.failures:
                    raise InvalidProblem(
                        f"there are two results of {self.names[arm]} on test {result.description!r}. If "
                        f"there are several providers, give pairs of a prompt and a provider; and give "
                        f"every test its own description."
                    )
                if result.error is not None and self._reading.on_failure is None:
                    found.failures[cell] = first_line(result.error)
                else:
                    found.scores[cell] = score_of(result, result.description, metric, self._reading)
        except InvalidProblem as error:  # another attempt would not help
            raise FinalFailure(str(error)) from None

    def _results(self, filters: Sequence[str], file: Path) -> list[Result]:
        """Return the results of an evaluation."""
        command = [*self._command, "eval", "-c", str(self._config), "-o", str(file), *_QUIET, *filters]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise FinalFailure(
                f"{self._command[0]} cannot be started ({error.strerror}). Install it with `npm install "
                f"promptfoo`, and "
                f'give the way to call it, such as `command=("npx", "promptfoo")`.'
            ) from None
        if run.returncode not in (0, _TESTS_FAILED) or not file.is_file():
            said = f"`promptfoo eval` ended with status {run.returncode}: {_complaint(run)}"
            raise (FinalFailure if run.returncode == 1 else MeasurementFailed)(said)
        try:
            return results_of(file)
        except InvalidProblem as error:
            raise FinalFailure(
                f"{error} Do the labels of prompts and the descriptions of tests exist?"
            ) from None


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


def _complaint(run: "subprocess.CompletedProcess[str]") -> str:
    """Return what promptfoo said of its failure: an error that it raised, else what it printed."""
    raised = [line for line in run.stderr.splitlines() if line.startswith("Error")]
    return first_line(" ".join(raised or run.stdout.split("\n")) or run.stderr)


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
        scores, failures = candidates.evaluated({0: tests})
        for cell, why in failures.items():
            raise MeasurementFailed(f"there is no score of {given.prompt} on test {cell[1]!r}: {why}")
        print("\n".join(repr(scores[0, test]) for test in tests))
    except KeyError as missing:
        print(f"promptfoo returned no result of test {missing.args[0][1]!r}.", file=sys.stderr)
        return 1
    except (ShortlistError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
