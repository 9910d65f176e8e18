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
            If a record is torn, altered or missing, also at the end of the log. The message names it; those
            before it were yielded. Also if the run was not found, and the list of runs is damaged.
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
        CorruptLog
            If the end of the log is missing, or what the decision depends on is damaged.
        StoreTrouble
            If the log could not be written, or is not the one any more that record `after` is from.
        """
        ...

    def restore(self, run: str, records: Iterable[Record], n_there: int = 0) -> int:
        """Write records of a log as they were elsewhere, all or nothing; return how many were written.

        Numbers and times are kept. A new run is begun with them; or they follow the first `n_there` records,
        which must be there, and no others.

        Raises
        ------
        StoreTrouble
            If there are other records of that run, or fewer.
        CorruptLog
            If the records are not numbered from `n_there` + 1 without gaps.
        """
        ...

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they began.

        Where records have lost the name of their run, one is made up: reading that says what is wrong.
        """
        ...

    def remove(self, run: str) -> None:
        """Remove a run and all its records, for good."""
        ...

    def now(self, run: str) -> float:
        """Return the time by which leases of a run end, in seconds since 1970: the same for all its users."""
        ...

    def verify(self) -> None:
        """Raise CorruptLog if the store is damaged, even where no run is; reading finds damage of a run."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


def can_be_name(run: object) -> bool:
    """Return whether a run can have this name: text of one line. There is no other run in any store."""
    return isinstance(run, str) and bool(run.strip()) and run.isprintable()


def checked_name(run: str) -> str:
    """Return the name of a run, if it can be one."""
    if not can_be_name(run):
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


def mark_of(after: After) -> bytes:
    """Return the mark of a record, if it was given as it is."""
    return after.mark if isinstance(after, Record) else b""


def refuse_replaced(run: str, before: bytes, mark: bytes) -> None:
    """Raise StoreTrouble if a record whose mark was known before has another one now."""
    if before and before != mark:
        raise StoreTrouble(
            f"Run {run!r} is not the one any more that was read before: it was removed, and another one was "
            f"begun under its name. Nothing was written. Open the run again to go on from what is there."
        )


def refuse_existing(run: str, last: int, n_there: int = 0) -> None:
    """Raise StoreTrouble if a run that is to be new, or to have so many records, has others."""
    if last != n_there:
        wanted = f", where {n_there} were expected" if n_there else ""
        raise StoreTrouble(
            f"There is a run {run!r} already, with {last} records{wanted}. Nothing was written. Choose "
            f"another store, or remove that run first."
        )


def in_sequence(run: str, records: Iterable[Record], n_there: int = 0) -> Iterator[Record]:
    """Yield the records of a log after the first few; raise CorruptLog where a number is missing."""
    for number, record in enumerate(records, n_there + 1):
        if record.number != number:
            raise CorruptLog(
                f"Record {number} of run {run!r} is missing: {record.number} stands in its place."
            )
        yield record
