"""What a store must be able to do: append to the log of a run, and read it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store.events import Event, Record

Decide: TypeAlias = Callable[[Sequence[Record], float], Sequence[Event]]
"""``decide(news, now)`` is given what others have appended meanwhile, and the time; it returns events."""


After: TypeAlias = int | Record
"""The number of a record; or a record as it was read or appended, which must still be there."""


class Store(Protocol):
    """Logs of runs, by the runs' names. What has been appended is never changed.

    A store may be used by many threads, processes and machines at once.
    """

    def read(self, run: str, after: After = 0) -> Iterable[Record]:
        """Yield the records of a run after that one, in order; none if there is no such run.

        Raises
        ------
        CorruptLog
            If a record is torn, altered or missing. The message names it; those before it were yielded.
        StoreTrouble
            If the run was removed and another one begun under its name.
        """
        ...

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        """Append to a log what `decide` returns, all or nothing, and return it as records.

        While `decide` looks at what has come after record `after`, nobody else can append to that run. When
        this returns, the records have been written to stay. If there is no such run, it begins with them. If
        `decide` raises, nothing is appended.

        Raises
        ------
        StoreTrouble
            If the log could not be written, or is not the one any more that record `after` is from.
        """
        ...

    def restore(self, run: str, records: Iterable[Record]) -> int:
        """Write the log of a new run as it was elsewhere, all or nothing; return how many records it has.

        Numbers and times are kept.

        Raises
        ------
        StoreTrouble
            If there is a run of that name already.
        CorruptLog
            If the records are not numbered from 1 without gaps.
        """
        ...

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they began."""
        ...

    def remove(self, run: str) -> None:
        """Remove a run and all its records, for good."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


def checked_name(run: str) -> str:
    """Return the name of a run, if it can be one: text of one line."""
    if not isinstance(run, str) or not run.strip() or not run.isprintable():
        raise StoreTrouble(
            f"{run!r} cannot be the name of a run; give it a name of letters that can be printed."
        )
    return run


def refuse_lost(run: str, after: int, last: int) -> None:
    """Raise StoreTrouble if more records of a run have been seen than there are."""
    if after > last:
        raise StoreTrouble(
            f"Run {run!r} has {last} records, but {after} have been read before: the run was removed, or the "
            f"store replaced by an older one. Nothing was written. Open the run again to go on from what "
            f"is there."
        )


def number_of(after: After) -> int:
    """Return the number of a record that was given by its number or as it is."""
    return after.number if isinstance(after, Record) else after


def refuse_replaced(run: str, after: After, mark: bytes) -> None:
    """Raise StoreTrouble if another record than one that was read before stands in its place."""
    if isinstance(after, Record) and after.mark and after.mark != mark:
        raise StoreTrouble(
            f"Run {run!r} is not the one any more that was read before: it was removed, and another one was "
            f"begun under its name. Nothing was written. Open the run again to go on from what is there."
        )


def refuse_existing(run: str, last: int) -> None:
    """Raise StoreTrouble if a run that is to be new has records."""
    if last:
        raise StoreTrouble(
            f"There is a run {run!r} already, with {last} records. Nothing was written. Choose another "
            f"store, or remove that run first."
        )


def in_sequence(run: str, records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records of a whole log; raise CorruptLog where a number is missing."""
    for number, record in enumerate(records, 1):
        if record.number != number:
            raise CorruptLog(
                f"Record {number} of run {run!r} is missing: {record.number} stands in its place."
            )
        yield record
