"""What a store must be able to do: append to the log of a run, and read it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from shortlist.store.events import Event, Record

Decide: TypeAlias = Callable[[Sequence[Record], float], Sequence[Event]]
"""``decide(news, now)`` is given what others have appended meanwhile, and the time; it returns events."""


class Store(Protocol):
    """Logs of runs, by the runs' names. What has been appended is never changed.

    A store may be used by many threads, processes and machines at once.
    """

    def read(self, run: str, after: int = 0) -> Iterable[Record]:
        """Yield the records of a run from number `after` + 1 on, in order; none if there is no such run.

        Raises
        ------
        CorruptLog
            If a record is torn, altered or missing. The message names it; those before it were yielded.
        """
        ...

    def append(self, run: str, after: int, decide: Decide) -> list[Record]:
        """Append to a log what `decide` returns, all or nothing, and return it as records.

        While `decide` looks at what has come after record `after`, nobody else can append to that run. When
        this returns, the records have been written to stay. If there is no such run, it begins with them. If
        `decide` raises, nothing is appended.
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
