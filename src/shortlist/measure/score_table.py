"""Tables of scores, arms by items, in files: CSV or JSON lines, one line per score, or one column per arm.

Wide: the first column has the ids of items, each other column the scores of one arm. Long: the columns `arm`,
`item` and `score`. A .npy file has one row per arm and one column per item, and no names.
"""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import encodable, shortened
from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import bytes_of, listed
from shortlist.measure.table_file import npy_numbers

LONG = ("arm", "item", "score")
MOST_UNPACKED = 1 << 30
"""Bytes of a table that is compressed; a small file may unpack to a thousand times its size."""


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of arms on items.

    Attributes
    ----------
    arms, items
        The names of the arms, and the ids of the items; None if the file has none.
    scores
        One row per arm, one column per item; NaN where there is no score.
    """

    arms: tuple[str, ...] | None
    items: tuple[str, ...] | None
    scores: FloatArray

    @property
    def is_whole(self) -> bool:
        """Whether every arm has a score on every item."""
        return not np.isnan(self.scores).any()

    def rows(self, names: Sequence[str], ids: Sequence[str] | None = None) -> FloatArray:
        """Return the rows of some arms, with the items in another order if the table has their ids."""
        scores = self.scores
        if self.arms is not None:
            scores = scores[_places(self.arms, names, "arm")]
        if ids is not None and self.items is not None:
            scores = scores[:, _places(self.items, ids, "item")]
        return scores


def read_table(path: Path) -> ScoreTable:
    """Return the table in a file: .csv, .jsonl or .npy, the first two also compressed as .gz."""
    data = bytes_of(path)
    kind = path.name.lower()
    if kind.endswith(".gz"):
        kind, data = kind.removesuffix(".gz"), _unpacked(path, data)
    if kind.endswith(".npy"):
        scores = npy_numbers(data, str(path))
        if scores.ndim != 2:
            raise InvalidProblem(f"{path} has shape {scores.shape}; it must have a row per arm.")
        return ScoreTable(None, None, scores)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidProblem(f"{path} cannot be read: it is not UTF-8 text. Save it as UTF-8.") from None
    if kind.endswith((".jsonl", ".ndjson")):
        return _long([_cells(path, number, line) for number, line in _lines(text)], path)
    return _of_csv(text, path)


def _unpacked(path: Path, data: bytes) -> bytes:
    """Return the content of a compressed file. Its size is found first, without keeping the content."""
    size = 0
    try:
        with gzip.open(io.BytesIO(data)) as file:
            while size <= MOST_UNPACKED and (part := file.read(1 << 20)):
                size += len(part)
        if size > MOST_UNPACKED:
            raise InvalidProblem(
                f"{path} cannot be read: unpacked, it is larger than {MOST_UNPACKED >> 20:,} MiB, which is "
                f"the maximum. Unpack it first, if that is right."
            )
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise InvalidProblem(f"{path} cannot be unpacked: it is damaged, or not a gzip file.") from None


def _lines(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _cells(path: Path, number: int, line: str) -> tuple[str, str, float]:
    try:
        found = json.loads(line)
        arm, item, score = (found[key] for key in LONG)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidProblem(
            f'{path}, line {number}: it must be like {{"arm": "A", "item": "17", "score": 1}}.'
        ) from None
    where = f"{path}, line {number}"
    arm, item = encodable(str(arm), f"{where}: the arm"), encodable(str(item), f"{where}: the item")
    return arm, item, _number(score, where)


def _of_csv(text: str, path: Path) -> ScoreTable:
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        (header, _), *rows = [([field.strip() for field in row], reader.line_num) for row in reader if row]
    except (csv.Error, ValueError):
        raise InvalidProblem(f"{path} must have a header line and one line per item, or per score.") from None
    if len(set(header)) < len(header):
        raise InvalidProblem(f"{path} has two columns of one name; give each its own.")
    for row, number in rows:
        if len(row) != len(header):
            raise InvalidProblem(
                f"{path}, line {number}: {len(row)} fields where the header has {len(header)}."
            )
    if set(LONG) <= set(header):
        places = [header.index(key) for key in LONG]
        cells = [
            (row[places[0]], row[places[1]], _number(row[places[2]], f"{path}, line {number}"))
            for row, number in rows
        ]
        return _long(cells, path)
    if len(header) < 2 or not rows:
        raise InvalidProblem(f"{path} must have a column of ids and a column per arm, and a line per item.")
    ids = tuple(row[0] for row, _ in rows)
    if len(set(ids)) < len(ids):
        raise InvalidProblem(f"{path} has two lines for one item; the first column must be the item's id.")
    scores = [[_number(field, f"{path}, line {number}") for field in row[1:]] for row, number in rows]
    return ScoreTable(tuple(header[1:]), ids, np.array(scores).T)


def _long(cells: list[tuple[str, str, float]], path: Path) -> ScoreTable:
    if not cells:
        raise InvalidProblem(f"{path} has no scores.")
    arms = {name: place for place, name in enumerate(dict.fromkeys(arm for arm, _, _ in cells))}
    items = {name: place for place, name in enumerate(dict.fromkeys(item for _, item, _ in cells))}
    scores = np.full((len(arms), len(items)), np.nan)
    for arm, item, score in cells:
        cell = arms[arm], items[item]
        if not np.isnan(scores[cell]):
            raise InvalidProblem(f"{path} has two scores of {arm} on item {item}; keep one.")
        scores[cell] = score
    return ScoreTable(tuple(arms), tuple(items), scores)


def _number(field: Any, where: str) -> float:
    """Return a score; NaN for an empty field."""
    if field in ("", None):
        return float("nan")
    try:
        if isinstance(field, bool) or "_" in str(field):  # Python would parse 1_5 as 15
            raise ValueError
        score = float(field)
        if not np.isfinite(score):
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise InvalidProblem(
            f"{where}: {shortened(field)} is not a score; write a number, or leave it empty."
        ) from None
    return score


def _places(known: Sequence[str], wanted: Sequence[str], what: str) -> list[int]:
    places = {name: place for place, name in enumerate(known)}
    if missing := [name for name in wanted if name not in places]:
        raise InvalidProblem(f"the table has no {what} {missing[0]!r}; it has {listed(known)}.")
    return [places[name] for name in wanted]
