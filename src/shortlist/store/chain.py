"""A checksum chain that links every record of a log to the one before it.

A record's checksum covers its number, its time, its kind, its body and the checksum of the record before. So
a record that was altered, moved, removed or taken from another log is detected. Neither the name of the run
nor the store is covered, so a log keeps its checksums when it is copied.

A log without its last records would still be a valid chain. So each run also has an entry with the number of
its records; the checksum of the entry covers the name of the run, that number and the last record.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from shortlist.errors import CorruptLog
from shortlist.store.codec import decoded, encoded
from shortlist.store.events import Event, Record

_SIZE = 16
_PLACE = struct.Struct("<Qd")

START = bytes(_SIZE)
"""The initial checksum, used before the first record."""

Row: TypeAlias = tuple[int, str, float, bytes, bytes]
"""A record as it is stored: number, kind, time, body and checksum."""


@dataclass(frozen=True)
class Link:
    """The end of a log, or of a part of it: number and checksum of its last record."""

    number: int = 0
    checksum: bytes = START


def checksum(before: bytes, number: int, kind: str, at: float, body: bytes) -> bytes:
    """Return the checksum of a record that follows one with the checksum `before`."""
    head = before + _PLACE.pack(number, at) + kind.encode() + b"\0"
    return blake2b(head + body, digest_size=_SIZE).digest()


def row(after: Link, at: float, event: Event) -> Row:
    """Return an event as the next row of a log."""
    kind, body = encoded(event)
    number = after.number + 1
    return number, kind, at, body, checksum(after.checksum, number, kind, at, body)


class Entry(NamedTuple):
    """The entry of a run as found in the store; if it is damaged, its fields may have any value."""

    n_events: Any
    mark: Any
    checksum: Any


def entry(run: str, end: Link, mark: str = "") -> Entry:
    """Return the entry of a run whose log has this end; `mark` is the time of the write, see `clock`."""
    return Entry(end.number, mark, checksum(end.checksum, end.number, run, 0.0, mark.encode()))


def refuse_unfit(run: str, found: Entry, end: Link) -> None:
    """Raise CorruptLog unless the entry of a run matches a log with this end."""
    n_events = found.n_events
    if isinstance(n_events, int) and end.number < n_events:
        raise CorruptLog(
            f"The last records of run {run!r} are missing: according to its entry in the list of runs there "
            f"are {n_events:,}, but record {end.number + 1:,} does not exist. Restore the store from "
            f"a backup."
        )
    if not isinstance(found.mark, str) or found != entry(run, end, found.mark):
        raise CorruptLog(
            f"The entry of run {run!r} in the list of runs was damaged or altered: its checksum does not "
            f"match. Restore the store from a backup."
        )


def record(row: Row, run: str) -> Record:
    """Return the record of a row; raise CorruptLog if it cannot be read."""
    number, kind, at, body, stated = row
    try:
        return Record(number, at, decoded(kind, body), stated)
    except CorruptLog as trouble:
        raise CorruptLog(f"Record {number} of run {run!r} cannot be read: {trouble}.") from None


def intact(rows: Iterable[Row], run: str, after: Link) -> Iterator[Row]:
    """Yield rows unchanged while they continue the chain; raise CorruptLog at the first that does not."""
    before, number = after.checksum, after.number
    for row in rows:
        found, kind, at, body, stated = row
        number += 1
        if found != number:
            raise missing(run, number, found)
        try:
            is_intact = checksum(before, number, kind, at, body) == stated
        except (AttributeError, TypeError, ValueError, struct.error):  # not even of the right type
            is_intact = False
        if not is_intact:
            raise CorruptLog(
                f"Record {number} of run {run!r} was damaged or altered: its checksum does not match. "
                f"Records before it are intact. Restore the store from a backup."
            )
        before = stated
        yield row


def missing(run: str, number: int, found: int) -> CorruptLog:
    """Return the error for a gap in a log."""
    return CorruptLog(
        f"Record {number} of run {run!r} is missing: record {found} is in its place. Restore the store "
        f"from a backup."
    )
