"""Files of results that other tools write, as tables of scores or as recorded rewards.

There is a module for each tool. It names the versions whose files it was written for, checks what it reads,
and raises InvalidProblem, with the path and what is wrong, if it does not understand a file.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import listed
from shortlist.measure.result_files import inspect_ai, lm_eval, promptfoo
from shortlist.measure.result_files.reading import Reading, head_of
from shortlist.measure.score_table import ScoreTable, read_table

_TOOLS = (inspect_ai, lm_eval, promptfoo)
KNOWN = (
    "logs of Inspect (.eval, .json), samples of the lm-evaluation-harness (samples_*.jsonl) and results of "
    "promptfoo (.json, .jsonl)"
)
"""The files of other tools that `read_scores` understands."""
_TABLES = (".csv", ".jsonl", ".ndjson", ".npy", ".gz")


def read_scores(path: Path, metric: str | None = None, on_failure: float | None = None) -> ScoreTable:
    """Return the scores in a file, or in all files of a folder together.

    Parameters
    ----------
    path
        A table (.csv, .jsonl or .npy), a file of results of one of the tools, or a folder of such files. In a
        folder, files that have no scores are ignored.
    metric
        Which score counts, if the files of a tool have several; the message names them.
    on_failure
        The score of samples that the tool could not evaluate; None to refuse files that have any.
    """
    files = _files(path) if path.is_dir() else [path]
    reading = Reading(metric, on_failure)
    tables, others = [], list(files)
    for tool in _TOOLS:
        own = [file for file in others if tool.is_result(file, head_of(file))]
        others = [file for file in others if file not in own]
        if own:
            tables.append(_read(tool, own, reading))
    if path.is_dir():
        others = [file for file in others if file.name.lower().endswith(_TABLES)]
    elif others and path.suffix.lower() == ".json":
        if lm_eval.is_summary(path, head_of(path)):
            raise InvalidProblem(
                f"{path} has only the means of tasks. Give the samples_*.jsonl files beside it, or their "
                f"folder; `--log_samples` writes them."
            )
        raise InvalidProblem(f"{path} is not a file of results that Shortlist can read. It reads {KNOWN}.")
    if not tables and not others:
        names = [file.name for file in files]
        raise InvalidProblem(
            f"there are no scores in the folder {path}, which has {listed(names)}. Shortlist reads "
            f"{KNOWN}, and tables (.csv, .jsonl, .npy)."
        )
    return joined(tables + [read_table(file) for file in others], path)


def _read(tool: ModuleType, files: list[Path], reading: Reading) -> ScoreTable:
    """Return the scores in files of a tool; name the file if its entries are not of the kind expected."""
    try:
        found: ScoreTable = tool.read(files, reading)
    except InvalidProblem:
        raise
    except (
        TypeError,
        AttributeError,
        KeyError,
        IndexError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        where = (
            str(files[0]) if len(files) == 1 else f"one of the files {listed([str(file) for file in files])}"
        )
        raise InvalidProblem(
            f"{where} has unexpected entries ({type(error).__name__}: {error}). Was it changed, or "
            "written by another version of the tool?"
        ) from error
    return found


def _files(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    if not files:
        raise InvalidProblem(f"there are no files in the folder {folder}.")
    return files


def joined(tables: Sequence[ScoreTable], path: Path) -> ScoreTable:
    """Return one table with the arms and items of several; a score that two of them have is refused."""
    if len(tables) == 1:
        return tables[0]
    named = [(table.arms, table.items, table.scores) for table in tables if table.arms and table.items]
    if len(named) < len(tables):
        raise InvalidProblem(f"{path} has a table without names of arms or ids of items; give one file.")
    arms = _places(name for names, _, _ in named for name in names)
    items = _places(name for _, ids, _ in named for name in ids)
    scores = np.full((len(arms), len(items)), np.nan)
    for names, ids, values in named:
        place = np.ix_([arms[name] for name in names], [items[name] for name in ids])
        twice = ~np.isnan(scores[place]) & ~np.isnan(values)
        if twice.any():
            arm, item = (int(at[0]) for at in np.nonzero(twice))
            raise InvalidProblem(
                f"{path} has two scores of {names[arm]} on item {ids[item]}; remove the file that should not "
                f"count."
            )
        scores[place] = np.where(np.isnan(values), scores[place], values)
    return ScoreTable(tuple(arms), tuple(items), scores)


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names))}
