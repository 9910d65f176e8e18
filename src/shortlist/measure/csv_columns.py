"""Columns of a CSV file, by name, with the line numbers that messages need."""

import csv
import io
import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem
from shortlist.input_files import MOST_TABLE_BYTES, read_bytes

_LONGEST_LISTED = 80  # letters of a name in a message
_MOST_LISTED = 8  # names in a message


def bytes_of(path: Path, most: int = MOST_TABLE_BYTES) -> bytes:
    """Return the content of a file; raise InvalidProblem, naming it, if it cannot be read."""
    try:
        return read_bytes(path, most)
    except FileNotFoundError:
        raise InvalidProblem(f"there is no file {path}; check the path.") from None
    except OSError as error:
        raise InvalidProblem(f"{path} cannot be read: {error.strerror}. Give another file.") from None


def text_of(path: Path, most: int = MOST_TABLE_BYTES) -> str:
    """Return the content of a text file; raise InvalidProblem, naming it, if it cannot be read."""
    try:
        return io.TextIOWrapper(io.BytesIO(bytes_of(path, most)), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise InvalidProblem(
            f"{path} cannot be read: it is not UTF-8 text ({error.reason}). Save it as UTF-8."
        ) from None


@dataclass(frozen=True)
class Columns:
    """The columns of a CSV file, by name, and the line on which each row ends."""

    path: Path = Path()
    entries: dict[str, list[str]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, rows_are: str = "arm") -> "Columns":
        """Return the columns of a file with a header line."""
        reader = csv.reader(io.StringIO(text_of(path), newline=""))
        try:
            rows = [(row, reader.line_num) for row in reader if row]
        except csv.Error as error:
            raise InvalidProblem(f"{path}, line {reader.line_num}: {error}.") from None
        if len(rows) < 2:
            raise InvalidProblem(f"{path} must have a header line and one line per {rows_are}.")
        header = [name.strip() for name in rows[0][0]]
        if len(set(header)) < len(header):
            twice = next(name for name, n in Counter(header).items() if n > 1)
            raise InvalidProblem(f"{path} has two columns {twice!r}; give each its own name.")
        for row, line in rows[1:]:
            if len(row) != len(header):
                raise InvalidProblem(
                    f"{path}, line {line}: {len(row)} fields where the header has {len(header)}."
                )
        entries = {name: [row[place].strip() for row, _ in rows[1:]] for place, name in enumerate(header)}
        return cls(path, entries, [line for _, line in rows[1:]])

    def words(self, name: str) -> list[str]:
        """Return a column as text."""
        if name not in self.entries:
            known = listed(self.entries)
            where = f"in {self.path}" if self.entries else "among the arms"
            raise InvalidProblem(f"there is no column {name!r} {where}; columns: {known}.")
        return self.entries[name]

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers."""
        return np.array(
            [self._number(name, row, entry) for row, entry in enumerate(self.words(name))], dtype=np.float64
        )

    def rewards(self, name: str, *, may_be_blank: bool = False) -> FloatArray:
        """Return a column of finite numbers, without its blank cells if it may have any."""
        found = []
        for row, entry in enumerate(self.words(name)):
            if entry or not may_be_blank:
                found.append(self._number(name, row, entry))
                if not math.isfinite(found[-1]):
                    raise InvalidProblem(
                        f"{self.path}, line {self.lines[row]}: column {name!r} has {entry!r}; NaN and "
                        "infinity are not rewards. Replace it by the reward that such an outcome should "
                        "count as."
                    )
        return np.array(found, dtype=np.float64)

    def _number(self, name: str, row: int, entry: str) -> float:
        try:
            if "_" in entry:  # Python would parse 1_5 as 15
                raise ValueError
            return float(entry)
        except ValueError:
            raise InvalidProblem(
                f"{self.path}, line {self.lines[row]}: column {name!r} has {entry!r}, which is not a number. "
                f"Write it like 1.5."
            ) from None


def listed(names: Iterable[str]) -> str:
    """Return the first of some names, for a message; the beginnings of long ones."""
    first = [
        name if len(name) <= _LONGEST_LISTED else f"{name[:_LONGEST_LISTED]}..."
        for name in itertools.islice(names, _MOST_LISTED + 1)
    ]
    return ", ".join(first[:_MOST_LISTED] + ["..."] * (len(first) > _MOST_LISTED)) or "none"
