"""The interface of a store: append to the log of a run, and read it.

To add another SQL database, subclass `SqlStore` in store/sql.py and open it in store/address.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store.events import Event, Record

Decide: TypeAlias = Callable[[Sequence[Record], float], Sequence[Event]]
"""``decide(news, now)`` gets the records that others have appended since, and the time; it returns events."""


After: TypeAlias = int | Record
"""The number of a record; or a record that was read or appended before, which must still exist."""


class Store(Protocol):
    """The logs of runs, by the names of the runs. Appended records never change.

    Many threads, processes and machines may use a store at the same time.
    """

    def read(self, run: str, after: After = 0) -> Iterable[Record]:
        """Yield the records of a run after record `after`, in order; none if there is no such run.

        Raises
        ------
        CorruptLog
            If a record is torn, altered or missing, also at the end of the log. The message names it; the
            records before it are yielded. Also if the run was not found and the list of runs is damaged.
        StoreTrouble
            If the run was removed and another one created under its name.
        """
        ...

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        """Append the events that `decide` returns, all or nothing, and return their records.

        While `decide` looks at the records after record `after`, no one else can append to that run. When
        this method returns, the records are on disk. If there is no such run, they create it. If `decide`
        raises, nothing is appended.

        Raises
        ------
        CorruptLog
            If the end of the log is missing, or records that the decision depends on are damaged.
        StoreTrouble
            If the log could not be written, or record `after` does not belong to it any more.
        """
        ...

    def restore(self, run: str, records: Iterable[Record], n_there: int = 0) -> int:
        """Write records of a log from another store, all or nothing; return the number of records written.

        Numbers and times are kept. The records create a run; or they follow the first `n_there` records,
        which must exist, without any others.

        Raises
        ------
        StoreTrouble
            If the run has more records, or fewer.
        CorruptLog
            If the records are not numbered from `n_there` + 1 without gaps.
        """
        ...

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they were created.

        If records have lost the name of their run, a placeholder is returned; reading it reports the damage.
        """
        ...

    def remove(self, run: str) -> None:
        """Remove a run and all its records permanently."""
        ...

    def now(self, run: str) -> float:
        """Return the time that the leases of a run refer to, in seconds since 1970: one for all users."""
        ...

    def verify(self) -> None:
        """Raise CorruptLog if the store is damaged, even outside of runs; reading finds damage of a run."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


def can_be_name(run: object) -> bool:
    """Return whether this is a valid name of a run: text of one line. All runs in stores have valid names."""
    return isinstance(run, str) and bool(run.strip()) and run.isprintable()


def checked_name(run: str) -> str:
    """Return the name of a run if it is valid; otherwise raise InvalidProblem."""
    if not can_be_name(run):
        raise StoreTrouble(f"{run!r} cannot be the name of a run; use a name of printable characters.")
    return run


def refuse_lost(run: str, after: int, last: int) -> None:
    """Raise StoreTrouble if a run has fewer records than were read before."""
    if after > last:
        raise StoreTrouble(
            f"Run {run!r} has {last} records, but {after} were read before: the run was removed, or the "
            f"store was replaced by an older one. Nothing was written. Open the run again to continue from "
            f"its current state."
        )


def number_of(after: After) -> int:
    """Return the number of a record, given as a number or as a record."""
    return after.number if isinstance(after, Record) else after


def mark_of(after: After) -> bytes:
    """Return the mark of a record, if it was given as a record."""
    return after.mark if isinstance(after, Record) else b""


def refuse_replaced(run: str, before: bytes, mark: bytes) -> None:
    """Raise StoreTrouble if the mark of a record has changed."""
    if before and before != mark:
        raise StoreTrouble(
            f"Run {run!r} is not the run that was read before: that run was removed, and another one was "
            f"created under its name. Nothing was written. Open the run again to continue with the new one."
        )


def refuse_existing(run: str, last: int, n_there: int = 0) -> None:
    """Raise StoreTrouble if a run exists that should be new, or has not the expected number of records."""
    if last != n_there:
        wanted = f", where {n_there} were expected" if n_there else ""
        raise StoreTrouble(
            f"A run {run!r} already exists, with {last} records{wanted}. Nothing was written. Choose "
            f"another store, or remove that run first."
        )


def in_sequence(run: str, records: Iterable[Record], n_there: int = 0) -> Iterator[Record]:
    """Yield the records of a log after the first `n_there`; raise CorruptLog if a number is missing."""
    for number, record in enumerate(records, n_there + 1):
        if record.number != number:
            raise CorruptLog(
                f"Record {number} of run {run!r} is missing: record {record.number} is in its place."
            )
        yield record
