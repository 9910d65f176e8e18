"""Checksums that tie every record of a log to the one before it.

A record's checksum covers its number, its time, its kind, its body and the checksum of the record before. So
a record that was altered, moved, left out or taken from another log is found; and since neither the name of
the run nor the store is covered, a log keeps its checksums when it is renamed or copied.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from shortlist.errors import CorruptLog
from shortlist.store.codec import decoded, encoded
from shortlist.store.events import Event, Record

_SIZE = 16
_PLACE = struct.Struct("<Qd")

START = bytes(_SIZE)
"""What stands for the checksum before the first record."""

Row: TypeAlias = tuple[int, str, float, bytes, bytes]
"""A record as it is stored: number, kind, time, body and checksum."""


@dataclass(frozen=True)
class Link:
    """The end of a log, or of a part of it: the number of its last record, and that record's checksum."""

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


def checked(rows: Iterable[Row], run: str, after: Link) -> Iterator[Record]:
    """Yield the records of rows that follow a link of the log, until one does not: then raise CorruptLog."""
    before, number = after.checksum, after.number
    for found, kind, at, body, stated in rows:
        number += 1
        if found != number:
            raise missing(run, number, found)
        try:
            is_intact = checksum(before, number, kind, at, body) == stated
        except (TypeError, ValueError, struct.error):  # not even of the right type
            is_intact = False
        if not is_intact:
            raise CorruptLog(
                f"Record {number} of run {run!r} was damaged or altered: its checksum does not fit. Records "
                f"before it are intact. Restore the store from a backup."
            )
        try:
            event = decoded(kind, body)
        except CorruptLog as trouble:
            raise CorruptLog(f"Record {number} of run {run!r} cannot be read: {trouble}.") from None
        before = stated
        yield Record(number, at, event, stated)


def missing(run: str, number: int, found: int) -> CorruptLog:
    """Return the error for a gap in a log."""
    return CorruptLog(
        f"Record {number} of run {run!r} is missing: record {found} stands in its place. Restore the store "
        f"from a backup."
    )
