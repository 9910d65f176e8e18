"""Results of promptfoo as tables of scores: an arm per prompt and provider, an item per test.

Written for promptfoo 0.123.1, results of version 3: what `promptfoo eval -o results.json` or `-o
results.jsonl` writes. Arms are named by their prompts, providers, or both, whichever differ. Items are the
descriptions of tests, if every test has its own, else their variables, else their numbers. The score is
`success` (1 or 0), `score`, or the name of a metric of assertions; if scores are not just those of success,
one must be chosen.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shortlist.checks import shortened
from shortlist.errors import InvalidProblem
from shortlist.measure.result_files.reading import (
    Cell,
    Reading,
    json_lines_of,
    json_of,
    names_that_differ,
    table_of,
)
from shortlist.measure.score_table import ScoreTable

_VERSION = 3
_ERROR = 2  # of `failureReason`: the provider or an assertion raised, rather than that an assertion failed
_COMPARING = ("select-best", "max-score")
_NEEDED = (
    "promptIdx",
    "testIdx",
    "prompt",
    "provider",
    "vars",
    "success",
    "score",
    "failureReason",
    "testCase",
)


class Result(NamedTuple):
    """The result of one test of one prompt with one provider."""

    path: Path
    prompt: str
    provider: str
    number: int
    description: str
    variables: str
    values: Mapping[str, float]
    error: str | None
    compares: str = ""  # the kind of an assertion that compares prompts with each other


def is_result(path: Path, head: str) -> bool:
    """Return whether a file has results."""
    name, start = path.name.lower(), "".join(head[:200].split())
    if name.endswith(".json"):
        return start.startswith('{"evalId":')
    return name.endswith(".jsonl") and ('"gradingResult"' in head or '"promptIdx"' in head)


def read(paths: Sequence[Path], reading: Reading) -> ScoreTable:
    """Return the scores in some files."""
    # by their numbers: in a file they are in the order in which they came back
    found = [result for path in paths for result in sorted(results_of(path), key=lambda one: one.number)]
    item = _naming(found)
    arms = list(dict.fromkeys((result.prompt, result.provider) for result in found))
    described = [{"prompt": prompt, "provider": provider} for prompt, provider in arms]
    names = dict(zip(arms, names_that_differ(described, ("prompt", "provider")), strict=True))
    _check_same(found, item)
    metric = chosen(found, reading)
    return table_of(
        Cell(
            names[result.prompt, result.provider],
            item(result),
            score_of(result, item(result), metric, reading),
            result.path,
        )
        for result in found
    )


def results_of(path: Path) -> list[Result]:
    """Return the results in a file."""
    if path.suffix.lower() == ".jsonl":
        found = [result_of(path, line, f"{path}, line {number}") for number, line in json_lines_of(path)]
        if not found:
            raise InvalidProblem(f"{path} has no results; the evaluation did not finish.")
        return found
    text = json_of(path)
    results = text.get("results") if isinstance(text, dict) else None
    if not isinstance(results, dict) or results.get("version") != _VERSION:
        raise InvalidProblem(
            f"{path} is not a file of results of promptfoo, or is of another version. Shortlist reads "
            f"results of version {_VERSION}, as promptfoo 0.123.1 writes them."
        )
    if (text.get("runtimeOptions") or {}).get("repeat", 1) != 1:
        raise InvalidProblem(f"{path} has several results of each test (--repeat); evaluate without it.")
    labels = [one["label"] for one in text.get("config", {}).get("prompts") or [] if _has_label(one)]
    rows = results.get("results") or []
    found = [result_of(path, row, f"{path}, result {place}", labels) for place, row in enumerate(rows)]
    counts = results.get("stats") or {}
    expected = sum(counts.get(key, 0) for key in ("successes", "failures", "errors"))
    if not found or len(found) != expected:
        raise InvalidProblem(
            f"{path} has {len(found)} results, but {expected} tests were carried out. It is not complete; "
            f"evaluate again."
        )
    return found


def chosen(found: Sequence[Result], reading: Reading) -> str:
    """Return the metric that counts: success, if scores say nothing else."""
    whole = [result for result in found if result.error is None]
    metrics = list(dict.fromkeys(name for result in whole for name in result.values))
    is_plain = all(set(result.values.values()) <= {result.values["success"]} for result in whole)
    if reading.metric is None and is_plain:
        return "success"
    return reading.chosen(metrics or ["success"], found[0].path)


def single_score(result: Result, reading: Reading) -> float:
    """Return the score of a test if it has only one; refuse to choose between several."""
    if set(result.values.values()) <= {result.values["success"]}:
        return result.values["success"]
    return result.values[reading.chosen(list(result.values), result.path)]


def score_of(result: Result, item: str, metric: str, reading: Reading) -> float:
    """Return the score of a test."""
    if result.error is not None:
        return reading.failed(result.path, item, result.error)
    if metric not in result.values:
        return reading.failed(result.path, item, f"it has no score {metric!r}")
    return result.values[metric]


def result_of(path: Path, row: Any, where: str, labels: Sequence[str] = ()) -> Result:
    """Return what counts of a row of results."""
    if not isinstance(row, dict) or (missing := [key for key in _NEEDED if key not in row]):
        lacking = f"has no `{missing[0]}`" if isinstance(row, dict) else "is not a result"
        raise InvalidProblem(
            f"{where} {lacking}. It is not from promptfoo, or from another version. Shortlist reads "
            "results of version 0.123.1."
        )
    label = str(row["prompt"].get("label") or row["prompt"].get("raw"))
    provider = row["provider"].get("label") or row["provider"].get("id")
    values = {"success": float(row["success"] is True), "score": row["score"]} | (
        row.get("namedScores") or {}
    )
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidProblem(f"{where}: {name} is {shortened(value)}; it must be a number.")
    return Result(
        path,
        max((one for one in labels if f"{label}: ".startswith(f"{one}: ")), key=len, default=label),
        str(provider),
        int(row["testIdx"]),
        str(row["testCase"].get("description") or ""),
        json.dumps(row["vars"], sort_keys=True),
        {name: float(value) for name, value in values.items()},
        str(row.get("error") or "no reason is given") if row["failureReason"] == _ERROR else None,
        next((kind for kind in map(_kind, row["testCase"].get("assert") or []) if kind in _COMPARING), ""),
    )


def _kind(assertion: Any) -> str:
    return str(assertion.get("type")) if isinstance(assertion, dict) else ""


def _has_label(prompt: Any) -> bool:
    return isinstance(prompt, dict) and isinstance(prompt.get("label"), str)


def _naming(found: Sequence[Result]) -> Callable[[Result], str]:
    """Return how to name tests: by the first of three ways in which no two of a prompt have the same name."""

    def by_variables(result: Result) -> str:
        return ", ".join(f"{key}={value}" for key, value in json.loads(result.variables).items())

    ways: list[Callable[[Result], str]] = [lambda result: result.description, by_variables]
    for way in ways:
        names = Counter((result.path, result.prompt, result.provider, way(result)) for result in found)
        if max(names.values()) == 1 and all(way(result) for result in found):
            return way
    return lambda result: str(result.number)


def _check_same(found: Sequence[Result], item: Callable[[Result], str]) -> None:
    """Refuse results of different tests under one name."""
    seen: dict[str, Result] = {}
    for result in found:
        before = seen.setdefault(item(result), result)
        if before.variables != result.variables:
            raise InvalidProblem(
                f"test {item(result)} of {result.path} has other variables than in {before.path}. Give "
                f"results of the same tests, each with a description of its own."
            )
