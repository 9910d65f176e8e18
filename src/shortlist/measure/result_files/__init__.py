"""Files of results that other tools write, as tables of scores or as recorded rewards.

There is a module for each tool. It names the versions whose files it was written for, checks what it reads,
and raises InvalidProblem, with the path and what is wrong, if it does not understand a file.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from shortlist.errors import InvalidProblem
from shortlist.measure.score_table import ScoreTable, read_table


def read_scores(path: Path) -> ScoreTable:
    """Return the scores in a file, or in all files of a folder together."""
    if not path.is_dir():
        return read_table(path)
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    if not files:
        raise InvalidProblem(f"there are no files in the folder {path}.")
    return joined([read_table(file) for file in files], path)


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
