"""A store in an SQL database: the common part of SQLite and PostgreSQL."""

import itertools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import sqlalchemy as sql

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store import chain
from shortlist.store.chain import Entry, Link, Row
from shortlist.store.events import Record
from shortlist.store.forks import ForkGuard
from shortlist.store.migrations import (
    Step,
    Transaction,
    bring_up_to_date,
    refuse_newer,
    version_of,
)
from shortlist.store.protocol import (
    After,
    Decide,
    can_be_name,
    checked_name,
    in_sequence,
    mark_of,
    number_of,
    refuse_existing,
    refuse_lost,
    refuse_replaced,
)
from shortlist.store.tables import EVENTS, RUNS
from shortlist.store.trouble import explained

_NO_LIMIT = 2**62

# The entry of a run and a page of its records, in one statement, so that both are consistent.
_PAGE = (
    "SELECT {n_events}, {mark}, NULL, NULL, {checksum} FROM shortlist_runs WHERE name = :run UNION ALL "
    "SELECT * FROM (SELECT number, kind, at, body, checksum FROM shortlist_events "
    "WHERE run = (SELECT id FROM shortlist_runs WHERE name = :run) AND number >= :first "
    "ORDER BY number LIMIT :limit) AS page"
)
_ROWS = sql.text(_PAGE.format(n_events="n_events", mark="mark", checksum="checksum"))
_ROWS_OF_VERSION_1 = sql.text(_PAGE.format(n_events="NULL", mark="NULL", checksum="NULL"))
_LAST = sql.text(
    "SELECT number, checksum FROM shortlist_events WHERE run = :key AND number <= :most "
    "ORDER BY number DESC LIMIT 1"
)
_FIND = "SELECT id, n_events, mark, checksum FROM shortlist_runs WHERE name = :run"
_NEW = sql.text(
    "INSERT INTO shortlist_runs (name, n_events, mark, checksum) VALUES (:run, :n_events, :mark, :checksum) "
    "ON CONFLICT (name) DO NOTHING"
)
_ENTER = sql.text(
    "UPDATE shortlist_runs SET n_events = :n_events, mark = :mark, checksum = :checksum WHERE id = :key"
)
_NAMES = "SELECT id, name FROM shortlist_runs {where} ORDER BY id"  # in this order, no index is used
_NAMELESS = sql.text(
    f"WITH RECURSIVE gaps (low, high) AS (SELECT id, coalesce((SELECT min(id) FROM shortlist_runs AS later "
    f"WHERE later.id > before.id), {_NO_LIMIT}) FROM shortlist_runs AS before WHERE NOT EXISTS (SELECT 1 "
    f"FROM shortlist_runs AS next WHERE next.id = before.id + 1) UNION ALL "
    f"SELECT {-_NO_LIMIT}, coalesce((SELECT min(id) FROM shortlist_runs), {_NO_LIMIT})), "
    f"lost (run, high) AS (SELECT (SELECT min(run) FROM shortlist_events WHERE run > low AND run < high), "
    f"high FROM gaps UNION ALL SELECT (SELECT min(run) FROM shortlist_events "
    f"WHERE run > lost.run AND run < lost.high), high FROM lost WHERE run IS NOT NULL) "
    f"SELECT run, NULL FROM lost WHERE run IS NOT NULL"
)
"""All keys that have records but no run. Only gaps between the keys of runs are searched; these are few."""

_FIRST_PAGE, _LARGEST_PAGE = 64, 4096  # rows
_PAGE_BYTES = 1 << 22  # pages of more bytes than that get shorter
_ROWS_AT_ONCE = 500

_Fetch: TypeAlias = Callable[[int, int], list[Row]]
"""``fetch(first, limit)`` returns the entry of a run, and at most `limit` rows from number `first` on."""


class SqlStore(ABC):
    """A store in the tables of a database; see `tables`.

    Records are read in pages, each in its own transaction: appended records never change, and no reader keeps
    a transaction open.
    """

    _address = ""  # address of the database, with its password
    _LOCK: ClassVar[str]  # SQL suffix that locks the row of a run until the transaction ends
    _is_counted = True  # unless it is opened read-only and has version 1

    def __init__(self, engine: sql.Engine, where: str) -> None:
        self._engine = engine
        self._where = where
        self._guard = ForkGuard(engine.dispose)
        weakref.finalize(self, engine.dispose)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._where}>"

    def read(self, run: str, after: After = 0) -> Iterator[Record]:
        """Yield the records of a run after record `after`."""
        return (chain.record(row, run) for row in self.rows(run, after))

    def rows(self, run: str, after: After = 0) -> Iterator[Row]:
        """Yield the stored rows of a run after record `after`: checked, but not decoded."""

        def fetch(first: int, limit: int) -> list[Row]:
            with self._reading() as connection:
                return self._fetched(connection, run, first, limit)

        return self._rows(fetch, run, after)

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        """Append the events that `decide` returns, all or nothing, and return their records."""
        checked_name(run)
        with self._writing() as connection:
            key, mark, end = self._end(connection, run)
            refuse_lost(run, number_of(after), end.number)
            if number_of(after) == end.number:
                refuse_replaced(run, mark_of(after), end.checksum)
            news = self._news(connection, run, after) if number_of(after) < end.number else []
            now = self._now(connection, mark)
            fresh = [Record(end.number + k, now, event) for k, event in enumerate(decide(news, now), 1)]
            if fresh:
                end = _insert(connection, key, end, fresh)
                _enter(connection, key, chain.entry(run, end, self._mark(now)))
                fresh[-1] = replace(fresh[-1], mark=end.checksum)
            else:
                connection.rollback()  # a run without any event is not created
            return fresh

    def restore(self, run: str, records: Iterable[Record], n_there: int = 0) -> int:
        """Write records of a log from another store, all or nothing; return the number of records written."""
        checked_name(run)
        with self._writing() as connection:
            key, _, end = self._end(connection, run)
            refuse_existing(run, end.number, n_there)
            source = iter(in_sequence(run, records, n_there))
            while part := list(itertools.islice(source, _ROWS_AT_ONCE)):
                end = _insert(connection, key, end, part)
            _enter(connection, key, chain.entry(run, end))
            if not end.number:
                connection.rollback()
            return end.number - n_there

    def runs(self) -> list[str]:
        """Return the names of all runs, in the order in which they were created."""
        with self._reading() as connection:
            return list(_names(connection).values())

    def remove(self, run: str) -> None:
        """Remove a run and all its records."""
        with self._writing() as connection:
            is_name = can_be_name(run)  # a damaged name may not be text
            key = connection.scalar(sql.text(_FIND + self._LOCK), {"run": run}) if is_name else None
            if key is None:
                key = next((key for key, name in _names(connection).items() if name == run), None)
            connection.execute(EVENTS.delete().where(EVENTS.c.run == key))
            connection.execute(RUNS.delete().where(RUNS.c.id == key))

    @abstractmethod
    def verify(self) -> None:
        """Raise CorruptLog if the store is damaged, even outside of runs."""

    def close(self) -> None:
        """Close files and connections."""
        self._engine.dispose()

    def now(self, run: str) -> float:
        """Return the time that the leases of a run refer to, in seconds since 1970."""
        with self._reading() as connection:
            entry = connection.execute(sql.text(_FIND), {"run": run}).first() if self._is_counted else None
            return self._now(connection, "" if entry is None else str(entry.mark))

    @abstractmethod
    def _now(self, connection: sql.Connection, mark: str) -> float:
        """Return the time of a run whose last write has this mark, in seconds since 1970."""

    @abstractmethod
    def _mark(self, now: float) -> str:
        """Return the mark of a write at this time."""

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
            raise explained(error, self._where, self._address) from None

    def _set_up(
        self, transaction: Transaction, *, must_exist: bool, read_only: bool, steps: Sequence[Step]
    ) -> None:
        """Create or migrate the tables, if needed."""
        with self._reading() as connection:
            version = version_of(connection)
        if version == 0 and (must_exist or read_only):
            raise StoreTrouble(f"{self._where} contains no runs of Shortlist. Check the address.")
        refuse_newer(version, self._where, steps)
        if version < len(steps) and not read_only:
            bring_up_to_date(transaction, self._where, steps)
        self._is_counted = version > 1 or not read_only

    def _end(self, connection: sql.Connection, run: str) -> tuple[int, str, Link]:
        """Return the key, the mark and the end of a run's log, and lock it against other writers."""
        find = sql.text(_FIND + self._LOCK)
        while (
            found := connection.execute(find, {"run": run}).first()
        ) is None:  # again if it is removed in between
            _refuse_lost_entry(connection, run)
            connection.execute(_NEW, {"run": run} | chain.entry(run, Link())._asdict())
        key, entry = found[0], Entry(*found[1:])
        end = known = _last(connection, key, _NO_LIMIT)
        if isinstance(entry.n_events, int) and entry.n_events < end.number:
            known = _last(connection, key, entry.n_events)  # a program of version 0.1.0 may still append
        chain.refuse_unfit(run, entry, known)
        return key, entry.mark, end

    def _news(self, connection: sql.Connection, run: str, after: After) -> list[Record]:
        def fetch(first: int, limit: int) -> list[Row]:
            return self._fetched(connection, run, first, limit)

        return [chain.record(row, run) for row in self._rows(fetch, run, after)]

    def _fetched(self, connection: sql.Connection, run: str, first: int, limit: int) -> list[Row]:
        if not can_be_name(run):
            _refuse_damaged_name(connection, run)
            return []
        query = _ROWS if self._is_counted else _ROWS_OF_VERSION_1
        with connection.execute(query, {"run": run, "first": first, "limit": limit}) as found:
            rows: list[Row] = found.cursor.fetchall()  # type: ignore[assignment]  # as they are: twice as fast
        if not rows:
            _refuse_lost_entry(connection, run)
        return rows

    def _rows(self, fetch: _Fetch, run: str, after: After) -> Iterator[Row]:
        """Yield rows in pages. Each page starts with the record before it, whose checksum is needed."""
        limit, number, mark = _FIRST_PAGE, number_of(after), mark_of(after)
        while page := fetch(max(1, number), limit):
            entry, rows = Entry(page[0][0], page[0][1], page[0][4]), page[1:]
            is_last, start = len(rows) < limit, Link()
            if number and not rows:  # the record that was read before does not exist any more
                if self._is_counted and not (isinstance(entry.n_events, int) and entry.n_events < number):
                    chain.refuse_unfit(run, entry, Link(number - 1))
                return
            if number:
                start = _link(run, number, mark, rows.pop(0))
            yield from chain.intact(rows, run, start)
            if self._is_counted:
                _check_entry(run, entry, start, rows, is_last)
            if is_last:
                return
            number, *_, mark = rows[-1]
            is_large = sum(len(row[3]) for row in rows) > _PAGE_BYTES
            limit = max(2, limit // 8) if is_large else min(4 * limit, _LARGEST_PAGE)


def _link(run: str, number: int, mark: bytes, row: Row) -> Link:
    """Return the end of the part that was read before, from the current content of its last row."""
    found, *_, checksum = row
    if found != number:
        raise chain.missing(run, number, found)
    refuse_replaced(run, mark, checksum)
    return Link(number, checksum)


def _check_entry(run: str, entry: Entry, start: Link, rows: list[Row], is_last: bool) -> None:
    """Raise CorruptLog if the rows of a page, which follow `start`, do not match the entry of the run.

    A log may be longer than its entry says: a process of version 0.1.0 that opened the store before there
    were entries appends without updating them.
    """
    n_of_page = entry.n_events - start.number if isinstance(entry.n_events, int) else 0
    if n_of_page < 0 or (n_of_page > len(rows) and not is_last):
        return  # the record that the entry refers to is on another page
    known = [Link(row[0], row[4]) for row in rows[:n_of_page][-1:]]
    chain.refuse_unfit(run, entry, known[0] if known else start)


def _last(connection: sql.Connection, key: int, most: int) -> Link:
    """Return the last record of a run up to this number."""
    last = connection.execute(_LAST, {"key": key, "most": most}).first()
    return Link() if last is None else Link(*last)


def _names(connection: sql.Connection) -> dict[int, str]:
    """Return the names of all runs by key; for records without a run, a placeholder."""
    found = sorted(_listed(connection), key=lambda row: row[0])
    return {key: name if isinstance(name, str) else f"(run {key}, name lost)" for key, name in found}


def _listed(connection: sql.Connection, run: str | None = None) -> list[tuple[int, Any]]:
    """Return the key and the raw name of each run; the name is None for records without a run.

    Given the name of a run, only runs of that name are returned, and those whose name is not text.
    """
    is_text = "typeof(name) = 'text'" if connection.dialect.name == "sqlite" else "name IS NOT NULL"
    names = _NAMES.format(where="" if run is None else f"WHERE name || '' = :run OR NOT {is_text}")
    rows: list[tuple[int, Any]] = []
    for query in (sql.text(names), _NAMELESS):
        with connection.execute(query, {} if run is None or query is _NAMELESS else {"run": run}) as found:
            rows += found.cursor.fetchall()
    return rows


def _refuse_damaged_name(connection: sql.Connection, run: str) -> None:
    """Raise CorruptLog if a run is listed under an invalid name."""
    if any(name == run for _, name in _listed(connection)):
        raise CorruptLog(
            f"The name of run {run!r} is damaged: it is not valid. Restore the store from a backup."
        )


def _refuse_lost_entry(connection: sql.Connection, run: str) -> None:
    """Raise CorruptLog if a run that was not found by its name may exist nevertheless."""
    found = _listed(connection, run)
    lost = [key for key, name in found if not isinstance(name, str)]
    if lost:
        raise CorruptLog(
            f"Run {run!r} was not found, and the store is damaged: it contains records of run number "
            f"{lost[0]}, but no entry with its name, so that may be this run. Restore the store from a "
            f"backup."
        )
    is_listed = any(name == run for _, name in found)
    if (
        is_listed and connection.execute(sql.text(_FIND), {"run": run}).first() is None
    ):  # not created just now
        raise CorruptLog(
            f"Run {run!r} is in the list of runs, but cannot be found there by its name: the index of the "
            f"list is damaged. Restore the store from a backup."
        )


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


def _enter(connection: sql.Connection, key: int, entry: Entry) -> None:
    connection.execute(_ENTER, {"key": key} | entry._asdict())
