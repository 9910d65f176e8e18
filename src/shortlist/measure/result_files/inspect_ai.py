"""Logs of Inspect (inspect_ai), both formats, as tables of scores: an arm per model, task or solver.

Written for logs of inspect_ai 0.3.285, format version 2, and read by its own `read_eval_log`, so the package
must be installed. Items are samples, by their ids. Scores are numbers, or the words C, I, P and N (1, 0, 0.5
and 0), yes, no, true and false, as Inspect's `value_to_float` has them. If there are several epochs, the
score of a sample is the mean over them; a log with another reducer is refused.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.checks import shortened
from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import bytes_of
from shortlist.measure.result_files.reading import (
    Cell,
    Reading,
    first_line,
    head_of,
    names_that_differ,
    table_of,
)
from shortlist.measure.score_table import ScoreTable

ARM = "shortlist_arm"
"""The entry of a log's metadata with the name of its arm, if there is one."""
_VERSION = 2
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_LOWER_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_JSON_LOG = re.compile(r'\s*\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":\s*\{')


def is_result(path: Path, head: str) -> bool:
    """Return whether a file is a log."""
    name = path.name.lower()
    return name.endswith(".eval") or (name.endswith(".json") and _JSON_LOG.match(head) is not None)


def read(paths: Sequence[Path], reading: Reading) -> ScoreTable:
    """Return the scores in some logs."""
    headers = {path: _header(path) for path in paths}
    done = {log.eval.task_id for log in headers.values() if log.status == "success"}
    # `inspect eval-retry` keeps the id of the task and leaves the log that it completes
    logs = {p: log for p, log in headers.items() if log.status == "success" or log.eval.task_id not in done}
    for path, log in logs.items():
        _check(path, log)
    names = names_that_differ([_described(log) for log in logs.values()], (ARM, "model", "task", "solver"))
    # in an order of their own: neither files nor the samples in them have one that is always the same
    return table_of(sorted(_cells(logs, names, reading), key=lambda cell: (cell.arm, _in_order(cell.item))))


def _in_order(item: str) -> list[tuple[int, str]]:
    """Return a sort key by which sample 9 comes before sample 10."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", item)]


def _cells(logs: Mapping[Path, Any], names: Sequence[str], reading: Reading) -> Iterator[Cell]:
    seen: dict[str, tuple[Any, Path]] = {}
    for (path, log), arm in zip(logs.items(), names, strict=True):
        samples = _samples(path)
        for sample in samples:
            item, (before, where) = str(sample.id), seen.setdefault(str(sample.id), (sample, path))
            if before.input != sample.input and before.target != sample.target:
                raise InvalidProblem(
                    f"sample {item} of {path} is another one than sample {item} of {where}: input and target "
                    f"differ. Samples are matched by their ids; give logs of one dataset."
                )
        for item, score in scores_of(path, log, samples, reading).items():
            yield Cell(arm, item, score, path)


def scores_of(path: Path, log: Any, samples: Iterable[Any], reading: Reading) -> dict[str, float]:
    """Return the scores of the samples of a log, by id, each the mean over its epochs.

    `samples` are those of a log, or their summaries.
    """
    flat = [(str(sample.id), _values(sample), sample) for sample in samples]
    metrics = list(dict.fromkeys(name for _, values, _ in flat for name in values))
    if not metrics and not any(sample.error for _, _, sample in flat):
        raise InvalidProblem(f"{path} has no scores; add them with `inspect score {path}`.")
    metric = reading.chosen(metrics, path, "scorer") if metrics else ""
    found: dict[str, list[float]] = {}
    for item, values, sample in flat:
        found.setdefault(item, []).append(_score(path, item, values.get(metric), sample, reading))
    epochs = log.eval.config.epochs or 1
    for item, scores in found.items():
        if len(scores) != epochs:
            raise InvalidProblem(
                f"{path} has {len(scores)} scores of sample {item}, but {epochs} epochs. It is not a "
                f"complete log."
            )
    return {item: math.fsum(scores) / len(scores) for item, scores in found.items()}


def _values(sample: Any) -> dict[str, Any]:
    """Return the values of a sample's scores; those of a dictionary are `scorer/key`."""
    found: dict[str, Any] = {}
    for name, score in (sample.scores or {}).items():
        if isinstance(score.value, Mapping):
            found |= {f"{name}/{key}": value for key, value in score.value.items()}
        else:
            found[name] = score.value
    return found


def _score(path: Path, item: str, value: Any, sample: Any, reading: Reading) -> float:
    if sample.error:
        return reading.failed(path, item, str(getattr(sample.error, "message", sample.error)))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return reading.failed(path, item, "the scorer gave it no score")
    if isinstance(value, str):
        words = _WORDS.get(value, _LOWER_WORDS.get(value.lower()))
        if words is not None:
            return words
    try:
        number = math.nan if isinstance(value, list) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidProblem(
            f"{path}: the score of sample {item} is {shortened(value)}; it must be a number, or one of C, "
            f"I, P, N, yes, no, true, false."
        )
    return number


def _header(path: Path) -> Any:
    """Return a log without its samples."""
    try:
        from inspect_ai.log import read_eval_log  # noqa: PLC0415 (an optional package)
    except ImportError:
        raise InvalidProblem(
            f"{path} is a log of Inspect, which its own package reads: pip install inspect-ai."
        ) from None
    if not head_of(path):
        bytes_of(path)  # says what is wrong if it cannot be read
        raise InvalidProblem(f"{path} is empty; the evaluation that should have written it did not.")
    try:
        return read_eval_log(str(path), header_only=True)
    except Exception as error:  # the reader of the package lets out errors of zip, JSON and validation alike
        raise _unreadable(path, error) from None


def _samples(path: Path) -> list[Any]:
    from inspect_ai.log import read_eval_log_sample_summaries  # noqa: PLC0415 (an optional package)

    try:
        return list(read_eval_log_sample_summaries(str(path)))
    except Exception as error:  # as above
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InvalidProblem:
    return InvalidProblem(
        f"{path} cannot be read as a log of Inspect ({type(error).__name__}: {first_line(str(error))}). It "
        f"was damaged, is still being written, or is from another version than 0.3."
    )


def _check(path: Path, log: Any) -> None:
    """Refuse a log from which nothing follows."""
    if log.version != _VERSION:
        raise InvalidProblem(
            f"{path} is a log of format version {log.version}; it must be version {_VERSION}. Convert it "
            f"with `inspect log convert`."
        )
    if log.status != "success":
        why = {"started": "is not finished", "cancelled": "was cancelled"}.get(
            log.status, "ended with an error"
        )
        told = f" ({first_line(log.error.message)})" if log.error else ""
        raise InvalidProblem(
            f"{path}: the evaluation {why}{told}, so samples are missing, and not at random. Complete it "
            f"with `inspect eval-retry {path}`, or leave the log out."
        )
    if log.invalidated:
        raise InvalidProblem(f"{path} has samples that were marked as invalid; evaluate them again.")
    check_epochs(path, log)


def check_epochs(path: Path, log: Any) -> None:
    """Refuse a log whose epochs were not reduced by their mean."""
    reducers = log.eval.config.epochs_reducer or ["mean"]
    if (log.eval.config.epochs or 1) > 1 and list(reducers) != ["mean"]:
        raise InvalidProblem(
            f"{path} has {log.eval.config.epochs} epochs, reduced by {', '.join(reducers)}; only the "
            "mean is supported."
        )


def _described(log: Any) -> dict[str, str]:
    """Return what may tell the arm of a log from others, most important first."""
    about = log.eval
    found = {ARM: (about.metadata or {}).get(ARM), "model": about.model, "task": about.task}
    found |= {"solver": about.solver, "steps": " + ".join(step.solver for step in log.plan.steps)}
    for more in (about.task_args, about.solver_args, about.model_args):
        found |= more or {}
    for config in (about.model_generate_config, log.plan.config):
        found |= config.model_dump(exclude_none=True)
    found |= {f"{step.solver}.{key}": value for step in log.plan.steps for key, value in step.params.items()}
    return {key: _word(value) for key, value in found.items() if value not in (None, "")}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
