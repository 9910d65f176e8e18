"""How the rewards of a problem file come about, as plain data: a run can go on only with the same.

What rewards do not depend on is left out, such as a time limit or the folder; numbers are given by digests.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.measure import CommandSource, Source, TableSource

_NO_MATTER = {"timeout", "env", "folder"}
_IN_DIGESTS = ("means", "variances", "scales")


def about_measurement(
    entries: dict[str, Any], source: Source, numbers: dict[str, FloatArray | None]
) -> dict[str, Any]:
    """Return what [measure] says, with digests of the numbers that simulate, or were recorded."""
    said = {key: value for key, value in entries.items() if key not in _NO_MATTER}
    for key in _IN_DIGESTS:
        if not isinstance(said.get(key), str):
            said.pop(key, None)
    digests = {name: _digest([values]) for name, values in numbers.items() if values is not None}
    if isinstance(source, CommandSource):
        digests |= {f"column {name}": _digest_of_words(words) for name, words in source.columns.items()}
    if digests:
        said["digests"] = digests
    if isinstance(source, TableSource):
        said["table"] = _table(source, np.diff(source.starts))
    return said


def about_grown_table(source: Source, before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what was said before of a table, if it has only grown since; otherwise what is said now.

    Pulls take rows from the top, so more of them at the end change none that was used. In a random order they
    would.
    """
    was = before.get("table")
    if not isinstance(source, TableSource) or source.order != "next" or not isinstance(was, dict):
        return now
    sizes = np.diff(source.starts)
    rows = np.broadcast_to(np.asarray(was.get("rows")), sizes.shape) if _fits(was, len(sizes)) else sizes + 1
    if (rows > sizes).any() or _table(source, rows) != was:
        return now
    return now | {"table": was}


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
