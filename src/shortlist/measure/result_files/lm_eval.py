"""Files of samples of the lm-evaluation-harness (lm_eval) as tables of scores: an arm per model.

Written for lm_eval 0.4.13: `samples_<task>_<date>.jsonl`, which `--log_samples` writes, and the file
`results_<date>.json` beside it, which has the name of the model and the number of documents. Without the
latter, the model is the name of the folder. Items are documents, `task/doc_id`; a document must have the same
`doc_hash` for all models. The metric is one of those of the task, such as `acc`; where a task has several
filters, it is `metric,filter`, as in the harness's own tables.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
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

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[.\d]*)\.jsonl")
_NEEDED = ("doc_id", "doc_hash", "filter", "metrics")


class Line(NamedTuple):
    """A document, one filter of the answers to it, and the values of the metrics."""

    task: str
    doc_id: int
    doc_hash: str
    filter: str
    metrics: Mapping[str, Any]

    @property
    def item(self) -> str:
        """The id of the document."""
        return f"{self.task}/{self.doc_id}"


def is_result(path: Path, head: str) -> bool:
    """Return whether a file has samples."""
    return _NAME.fullmatch(path.name) is not None or ('"doc_id"' in head and '"doc_hash"' in head)


def is_summary(path: Path, head: str) -> bool:
    """Return whether a file has the results of whole tasks, from which nothing can be told about samples."""
    return path.name.startswith("results_") and path.suffix == ".json" and '"results"' in head


def read(paths: Sequence[Path], reading: Reading) -> ScoreTable:
    """Return the scores in some files."""
    summaries = {path: _summary(path) for path in paths}
    names = names_that_differ([_described(path, summaries[path]) for path in paths], ("model",))
    cells: list[Cell] = []
    seen: dict[str, tuple[str, Path]] = {}
    for path, arm in zip(paths, names, strict=True):
        lines = list(_lines(path))
        _check_whole(path, lines, summaries[path])
        for line in lines:
            doc_hash, where = seen.setdefault(line.item, (line.doc_hash, path))
            if doc_hash != line.doc_hash:
                raise InvalidProblem(
                    f"document {line.item} of {path} is another one than in {where}: their hashes differ. "
                    f"Evaluate all models on the same version of the task; and if you use `--samples`, give "
                    f"the numbers in ascending order, since the harness mixes them up otherwise."
                )
        scores = scores_of(path, lines, reading)
        _warn_of_direction(path, lines, summaries[path], reading)
        cells += [Cell(arm, item, score, path) for item, score in scores.items()]
    return table_of(cells)


def scores_of(path: Path, lines: Sequence[Line], reading: Reading) -> dict[str, float]:
    """Return the score of each document."""
    filters = list(dict.fromkeys(line.filter for line in lines))
    metrics = list(dict.fromkeys(name for line in lines for name in line.metrics))
    both = [f"{metric},{name}" for metric in metrics for name in filters]
    known = metrics if len(filters) == 1 and reading.metric not in both else both
    metric, _, chosen = reading.chosen(known, path).partition(",")
    found: dict[str, float] = {}
    for line in lines:
        if chosen in ("", line.filter):
            if line.item in found:
                raise InvalidProblem(f"{path} has two scores of document {line.item}; keep one.")
            found[line.item] = _score(path, line, metric, reading)
    return found


def line_of(task: str, sample: Mapping[str, Any], where: str) -> Line:
    """Return what counts of a sample."""
    if missing := [key for key in _NEEDED if key not in sample]:
        raise InvalidProblem(
            f"{where} has no `{missing[0]}`. It is not a sample of the lm-evaluation-harness, or is from "
            "another version. Shortlist reads files of version 0.4.13."
        )
    metrics = {name: sample.get(name) for name in sample["metrics"]}
    return Line(task, int(sample["doc_id"]), str(sample["doc_hash"]), str(sample["filter"]), metrics)


def _score(path: Path, line: Line, metric: str, reading: Reading) -> float:
    value = line.metrics.get(metric)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return reading.failed(path, line.item, f"it has no {metric}")
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidProblem(
            f"{path}: {metric} of document {line.item} is {shortened(value)}, which is not the score of a "
            f"single document; choose another metric."
        )
    return float(value)


def _lines(path: Path) -> Iterator[Line]:
    named = _NAME.fullmatch(path.name)
    task = named["task"] if named else path.stem
    for number, sample in json_lines_of(path):
        yield line_of(task, sample, f"{path}, line {number}")


def _check_whole(path: Path, lines: Sequence[Line], summary: Mapping[str, Any]) -> None:
    """Refuse a file that has fewer documents than were evaluated."""
    if not lines:
        raise InvalidProblem(f"{path} is empty; the evaluation did not finish.")
    counts = summary.get("n-samples", {}).get(lines[0].task, {})
    n_docs, expected = len({line.doc_id for line in lines}), counts.get("effective")
    if isinstance(expected, int) and n_docs != expected:
        raise InvalidProblem(
            f"{path} has {n_docs} documents, but {expected} were evaluated. It is not complete; evaluate "
            f"again."
        )


def _warn_of_direction(
    path: Path, lines: Sequence[Line], summary: Mapping[str, Any], reading: Reading
) -> None:
    """Warn if small values of the metric are good: whoever uses the table must know."""
    metric = (reading.metric or next(iter(lines[0].metrics))).partition(",")[0]
    if summary.get("higher_is_better", {}).get(lines[0].task, {}).get(metric) is False:
        warnings.warn(
            f'{path}: small values of {metric} are good. Ask for the smallest: goal = "minimise", or '
            f"--minimise on the command line.",
            UserWarning,
            stacklevel=2,
        )


def _summary(path: Path) -> Mapping[str, Any]:
    """Return the results of the evaluation that wrote a file of samples; nothing if they are not there."""
    named = _NAME.fullmatch(path.name)
    beside = path.parent / f"results_{named['date']}.json" if named else None
    if beside is None or not beside.is_file():
        return {}
    found = json_of(beside)
    return found if isinstance(found, dict) else {}


def _described(path: Path, summary: Mapping[str, Any]) -> dict[str, str]:
    """Return what may tell the model of a file from others, most important first."""
    arguments = summary.get("config", {}).get("model_args") or {}
    more = arguments if isinstance(arguments, dict) else {"model_args": arguments}
    name = summary.get("model_name") or path.absolute().parent.name
    return {"model": str(name)} | {key: str(value) for key, value in more.items()}
