"""How the rewards of a problem file come about, as plain data: a run can go on only with the same.

What rewards do not depend on is left out, such as a time limit or the folder; numbers are given by digests.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.measure import CommandSource, Source, TableSource


def about_measurement(
    entries: dict[str, Any], source: Source, numbers: dict[str, FloatArray | None]
) -> dict[str, Any]:
    """Return what holds for a measurement, with digests of the numbers that simulate, or were recorded.

    Entries are given as they hold, whether they were written in the file or are what it means without them.
    """
    said = dict(entries)
    digests = {name: _digest([values]) for name, values in numbers.items() if values is not None}
    if isinstance(source, CommandSource):
        digests |= {f"column {name}": _digest_of_words(words) for name, words in source.columns.items()}
    if digests:
        said["digests"] = digests
    if isinstance(source, TableSource):
        said["table"] = _table(source, np.diff(source.starts))
    return said


def has_only_grown(source: Source, before: dict[str, Any]) -> bool:
    """Return whether a source is a table that was described so before, and has got more rows since.

    Pulls take rows from the top, so more of them at the end change none that was used. In a random order they
    would.
    """
    was = before.get("table")
    if not isinstance(source, TableSource) or source.order != "next" or not isinstance(was, dict):
        return False
    sizes = np.diff(source.starts)
    rows = np.broadcast_to(np.asarray(was.get("rows")), sizes.shape) if _fits(was, len(sizes)) else sizes + 1
    return bool((rows <= sizes).all()) and _table(source, rows) == was


def _fits(was: dict[str, Any], n: int) -> bool:
    rows = was.get("rows")
    return isinstance(rows, int) or (isinstance(rows, list) and len(rows) == n)


def _table(source: TableSource, rows: IntArray) -> dict[str, Any]:
    """Return what identifies the first rows of each arm."""
    first = source.starts[:-1]
    parts = (source.values[start : start + size] for start, size in zip(first, rows, strict=True))
    is_even = len(set(rows.tolist())) == 1
    return {"rows": int(rows[0]) if is_even else rows.tolist(), "digest": _digest(parts)}


def _digest(parts: Any) -> str:
    found = blake2b(digest_size=8)
    for part in parts:
        found.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return found.hexdigest()


def _digest_of_words(words: Sequence[str]) -> str:
    return blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
