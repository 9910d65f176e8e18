"""Logs of runs in a database: what SQLite and PostgreSQL have in common."""

import itertools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, TypeAlias

import sqlalchemy as sql

from shortlist.errors import StoreTrouble
from shortlist.store import chain
from shortlist.store.chain import Link, Row
from shortlist.store.events import Record
from shortlist.store.forks import ForkGuard
from shortlist.store.log import (
    After,
    Decide,
    checked_name,
    in_sequence,
    number_of,
    refuse_existing,
    refuse_lost,
    refuse_replaced,
)
from shortlist.store.migrations import (
    Step,
    Transaction,
    bring_up_to_date,
    refuse_newer,
    refuse_older,
    version_of,
)
from shortlist.store.tables import EVENTS, RUNS
from shortlist.store.trouble import explained

_ROWS = sql.text(
    "SELECT number, kind, at, body, checksum FROM shortlist_events "
    "WHERE run = (SELECT id FROM shortlist_runs WHERE name = :run) AND number >= :first "
    "ORDER BY number LIMIT :limit"
)
_LAST = sql.text(
    "SELECT number, checksum FROM shortlist_events WHERE run = :key ORDER BY number DESC LIMIT 1"
)
_FIND = "SELECT id FROM shortlist_runs WHERE name = :run"
_NEW = sql.text("INSERT INTO shortlist_runs (name) VALUES (:run) ON CONFLICT (name) DO NOTHING")

_FIRST_PAGE, _LARGEST_PAGE = 64, 4096  # rows
_PAGE_BYTES = 1 << 22  # pages of more than that get shorter
_ROWS_AT_ONCE = 500

_Fetch: TypeAlias = Callable[[int, int], list[Row]]


class SqlStore(ABC):
    """Logs in the tables of a database; see `tables`.

    Records are read page by page, each page in a transaction of its own: what was appended never changes, and
    no reader keeps a transaction open.
    """

    _LOCK: ClassVar[str]  # what makes a query for a run keep others waiting until the transaction ends

    def __init__(self, engine: sql.Engine, where: str, clock: Callable[[], float] | None) -> None:
        self._engine = engine
        self._where = where
        self._clock = clock
        self._guard = ForkGuard(engine.dispose)
        weakref.finalize(self, engine.dispose)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._where}>"

    def read(self, run: str, after: After = 0) -> Iterator[Record]:
        """Yield the records of a run after that one."""

        def fetch(first: int, limit: int) -> list[Row]:
            with self._reading() as connection:
                return _fetched(connection, run, first, limit)

        return _records(fetch, run, after)

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        """Append to a log what `decide` returns, all or nothing, and return it as records."""
        checked_name(run)
        with self._writing() as connection:
            key, end = self._end(connection, run)
            refuse_lost(run, number_of(after), end.number)
            if number_of(after) == end.number:
                refuse_replaced(run, after, end.checksum)
            news = self._news(connection, run, after) if number_of(after) < end.number else []
            now = self._now(connection)
            fresh = [Record(end.number + k, now, event) for k, event in enumerate(decide(news, now), 1)]
            if fresh:
                end = _insert(connection, key, end, fresh)
                fresh[-1] = replace(fresh[-1], mark=end.checksum)
            else:
                connection.rollback()  # a run that was begun only to be looked at is no run
            return fresh

    def restore(self, run: str, records: Iterable[Record], n_there: int = 0) -> int:
        """Write records of a log as they were elsewhere, all or nothing; return how many were written."""
        checked_name(run)
        with self._writing() as connection:
            key, end = self._end(connection, run)
            refuse_existing(run, end.number, n_there)
            source = iter(in_sequence(run, records, n_there))
            while part := list(itertools.islice(source, _ROWS_AT_ONCE)):
                end = _insert(connection, key, end, part)
            if not end.number:
                connection.rollback()
            return end.number - n_there

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they began."""
        with self._reading() as connection:
            return list(connection.scalars(sql.select(RUNS.c.name).order_by(RUNS.c.id)))

    def remove(self, run: str) -> None:
        """Remove a run and all its records."""
        with self._writing() as connection:
            key = connection.scalar(sql.text(_FIND + self._LOCK), {"run": run})
            connection.execute(EVENTS.delete().where(EVENTS.c.run == key))
            connection.execute(RUNS.delete().where(RUNS.c.id == key))

    def close(self) -> None:
        """Let go of files and connections."""
        self._engine.dispose()

    @abstractmethod
    def _now(self, connection: sql.Connection) -> float:
        """Return the time, in seconds since 1970."""

    @contextmanager
    def _reading(self) -> Iterator[sql.Connection]:
        with self._guard.use(), self._troubles(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        with self._reading() as connection, connection.execution_options(writes=True).begin():
            yield connection

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        try:
            yield
        except (sql.exc.SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            raise explained(error, self._where) from None

    def _set_up(
        self, transaction: Transaction, *, must_exist: bool, read_only: bool, steps: Sequence[Step]
    ) -> None:
        """See that the tables are there and of the present version; change them only if need be."""
        with self._reading() as connection:
            version = version_of(connection)
        if version == 0 and (must_exist or read_only):
            raise StoreTrouble(
                f"{self._where} holds no runs of Shortlist. Look whether the address is right."
            )
        refuse_newer(version, self._where, steps)
        if read_only:
            refuse_older(version, self._where, steps)
        elif version < len(steps):
            bring_up_to_date(transaction, self._where, steps)

    def _end(self, connection: sql.Connection, run: str) -> tuple[int, Link]:
        """Return the key and the end of a run's log, and keep others from appending to it."""
        find = sql.text(_FIND + self._LOCK)
        while (key := connection.scalar(find, {"run": run})) is None:  # again if it is removed meanwhile
            connection.execute(_NEW, {"run": run})
        last = connection.execute(_LAST, {"key": key}).one_or_none()
        return key, Link() if last is None else Link(*last)

    def _news(self, connection: sql.Connection, run: str, after: After) -> list[Record]:
        return list(_records(lambda first, limit: _fetched(connection, run, first, limit), run, after))


def _fetched(connection: sql.Connection, run: str, first: int, limit: int) -> list[Row]:
    with connection.execute(_ROWS, {"run": run, "first": first, "limit": limit}) as found:
        return found.cursor.fetchall()  # type: ignore[return-value]  # as they are: twice as fast


def _records(fetch: _Fetch, run: str, after: After) -> Iterator[Record]:
    number = number_of(after)
    rows, link = _rows(fetch, max(1, number)), Link()
    if number:  # start with the record before, whose checksum is needed
        before = next(rows, None)
        if before is None:
            return
        if before[0] != number:
            raise chain.missing(run, number, before[0])
        refuse_replaced(run, after, before[4])
        link = Link(number, before[4])
    yield from chain.checked(rows, run, link)


def _rows(fetch: _Fetch, first: int) -> Iterator[Row]:
    limit = _FIRST_PAGE
    while True:
        page = fetch(first, limit)
        yield from page
        if len(page) < limit:
            return
        first = page[-1][0] + 1
        is_large = sum(len(row[3]) for row in page) > _PAGE_BYTES
        limit = max(1, limit // 8) if is_large else min(4 * limit, _LARGEST_PAGE)


def _insert(connection: sql.Connection, key: int, end: Link, records: Iterable[Record]) -> Link:
    rows = []
    for record in records:
        number, kind, at, body, checksum = chain.row(end, record.at, record.event)
        end = Link(number, checksum)
        rows.append(
            {"run": key, "number": number, "kind": kind, "at": at, "body": body, "checksum": checksum}
        )
    connection.execute(EVENTS.insert(), rows)
    return end
