"""A store in an SQLite file.

Many processes of one machine may use the file at once. Writers take turns; a write is on disk before it is
acknowledged, and an interrupted write leaves no trace.
"""

import math
import os
import random
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sql

from shortlist.errors import CorruptLog, LostWrite, StoreTrouble
from shortlist.input_files import kind_of
from shortlist.store import wal
from shortlist.store.clock import Clock
from shortlist.store.migrations import STEPS, Step
from shortlist.store.sql import SqlStore
from shortlist.store.tables import VERSIONS
from shortlist.store.trouble import of_sqlite

_LEAST = 0.5  # seconds to wait for other writers, however late it is
_SMALL = 1 << 22  # bytes; smaller files take only a few milliseconds to check
_USER_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)

_Files: TypeAlias = tuple[tuple[int, int] | None, ...]


class SqliteStore(SqlStore):
    """A store in an SQLite file.

    Parameters
    ----------
    path
        The file. It is created if it does not exist, unless `must_exist` or `read_only` is set.
    must_exist
        Whether a missing file is an error.
    read_only
        Whether to open it read-only: then nothing is created or changed.
    clock
        Returns the time in seconds since 1970; the default is this machine's clocks, see `clock`.
    patience
        How long to wait for other writers, in seconds.
    steps
        The migrations of its tables.

    Attributes
    ----------
    due
        When to stop waiting for other writers, on the monotonic clock, although `patience` is not used up.
    """

    _LOCK = ""  # a write transaction locks the whole file from its start

    def __init__(
        self,
        path: Path | str,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        clock: Callable[[], float] | Clock | None = None,
        patience: float = 30.0,
        steps: Sequence[Step] = STEPS,
    ) -> None:
        path = Path(os.path.expanduser(path)).absolute()  # "~nobody" stays as it is
        try:
            _refuse_path(path, must_exist=must_exist or read_only)
        except OSError as error:
            raise StoreTrouble(f"The store {path} cannot be opened: {error.strerror}.") from None
        _refuse_damaged_log(path)
        self._file = _File(path, read_only, must_exist, patience)
        engine = sql.create_engine(
            "sqlite+pysqlite://",
            creator=self._file.connect,
            poolclass=sql.NullPool if self._file.is_frozen else sql.QueuePool,
            **({} if self._file.is_frozen else {"pool_size": 2, "max_overflow": -1}),
        )
        sql.event.listen(engine, "begin", self._begin)
        self.due = math.inf
        super().__init__(engine, f"The store {path}")
        self._clock = clock or Clock()
        self._prepare(read_only)
        self._set_up(self._writing, must_exist=must_exist, read_only=read_only, steps=steps)

    def _begin(self, connection: sql.Connection) -> None:
        if connection.get_execution_options().get("writes"):
            seconds = min(self._file.patience, max(_LEAST, self.due - time.monotonic()))
            file: Any = connection.connection.dbapi_connection
            if file.patience != seconds:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
                file.patience = seconds
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _now(self, connection: sql.Connection, mark: str) -> float:  # noqa: ARG002
        return self._clock.now(mark) if isinstance(self._clock, Clock) else self._clock()

    def _mark(self, now: float) -> str:
        return self._clock.mark(now) if isinstance(self._clock, Clock) else ""

    @contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        file = None
        # No fork before the end: it closes connections, and with the last one SQLite removes the -wal file.
        with self._guard.use():
            try:
                with super()._writing() as connection:
                    file = connection.connection.dbapi_connection
                    yield connection
            except StoreTrouble:  # possibly caused by that
                self._refuse_moved(file)
                raise
            self._refuse_moved(file)

    def _refuse_moved(self, connection: Any) -> None:
        """Raise StoreTrouble if the file of a connection was removed or replaced."""
        if connection is not None and self._file.has_moved(connection):
            self._engine.dispose()
            raise self._file.moved() from None

    def _prepare(self, read_only: bool) -> None:
        try:
            with closing(self._file.connect()) as connection:
                _refuse_foreign(connection, self._where)
                if not read_only:
                    _refuse_damaged(connection, self._where, _SMALL)
                    self._file.log_ahead(connection)
        except sqlite3.Error as error:
            raise of_sqlite(error, self._where) from None

    def verify(self) -> None:
        """Raise CorruptLog if the file is damaged, even outside of runs."""
        try:
            with closing(self._file.connect()) as connection:
                _refuse_damaged(connection, self._where)
        except sqlite3.Error as error:
            raise of_sqlite(error, self._where) from None


class _Connection(sqlite3.Connection):
    """A connection that remembers its timeout, and the database, -wal and -shm files that it has open."""

    files: _Files | None = None  # if it is read-only
    patience: float = 0.0


class _File:
    """How the file is opened.

    A file that is removed or replaced stays open in its old connections, and later commits to it are lost. So
    a writable store stays with the file it opened first, and checks after each commit whether that file, its
    write-ahead log (-wal) and the index of that (-shm) still have their names.
    """

    def __init__(self, path: Path, read_only: bool, must_exist: bool, patience: float) -> None:
        self._path, self.patience = path, patience
        self.is_frozen = read_only and _is_frozen(path)
        self._is_read_only = read_only
        self._mode = "ro" if read_only else "rw" if must_exist else "rwc"
        self._first: _Files | None = None

    def connect(self) -> sqlite3.Connection:
        """Return a connection without implicit transactions that syncs every commit."""
        if self._first is not None and _files(self._path)[0] != self._first[0]:
            raise self.moved()
        uri = f"{self._path.as_uri()}?mode={self._mode}" + ("&immutable=1" if self.is_frozen else "")
        connection = sqlite3.connect(
            uri, uri=True, timeout=self.patience, isolation_level=None, check_same_thread=False,
            factory=_Connection,
        )  # fmt: skip
        connection.text_factory, connection.patience = _text, self.patience
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except UnicodeDecodeError:  # hide SQLite's message, which quotes the schema
            raise CorruptLog(
                f"The store {self._path} is damaged: its schema cannot be read. Restore it from a backup."
            ) from None
        if not self._is_read_only:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # opens the -wal file
            connection.files = _files(self._path)
            self._first, self._mode = self._first or connection.files, "rw"
        return connection

    def has_moved(self, connection: Any) -> bool:
        """Return whether a file that a connection has open was removed or replaced."""
        return connection.files not in (None, _files(self._path))

    def moved(self) -> StoreTrouble:
        """Return the error for a file that was removed or replaced."""
        return StoreTrouble(
            f"The store {self._path} was removed, or replaced by another file, while it was open. The "
            f"answers of this call are not saved, and earlier ones may be lost with the file. Put the file "
            f"back, with its -wal and -shm files, or restore a backup. Then open the run again, check which "
            f"answers it contains, and repeat those that are missing."
        )

    def log_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging, so that readers and a writer do not wait for each other.

        If several processes try this at once, SQLite refuses some without waiting; they try again. If the
        file system does not support it, the file stays as it was, which is slower but equally safe.
        """
        deadline = time.monotonic() + self.patience
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchall()
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not is_busy or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.001, 0.02))


def _files(path: Path) -> _Files:
    """Return the identity of the database, -wal and -shm files, to detect replaced files."""
    return _identity(path), _identity(f"{path}-wal"), _identity(f"{path}-shm")


def _identity(path: Path | str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")  # so that damaged text is found by its checksum


def _refuse_foreign(connection: sqlite3.Connection, where: str) -> None:
    tables = {name for (name,) in connection.execute(_USER_TABLES)}
    if not tables:
        n_pages, n_free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")
        )
        # Another process may just have created them: if it wrote this data, they are there now.
        tables = {name for (name,) in connection.execute(_USER_TABLES)}
        if n_pages - n_free > 1 and not tables:
            raise CorruptLog(
                f"{where} is damaged: it contains data, but no tables. Restore it from a backup."
            )
    if tables and VERSIONS.name not in tables:
        raise StoreTrouble(
            f"{where} is a database of another program, with tables such as {min(tables)!r}. Nothing was "
            f"changed. Give the path of another file; a new one is created."
        )


def _refuse_damaged(connection: sqlite3.Connection, where: str, most: float = math.inf) -> None:
    """Raise CorruptLog if a file is damaged; files larger than `most` bytes are not checked."""
    n_pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    if n_pages * size > most:
        return
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise CorruptLog(
            f"{where} is damaged ({' '.join(found.split())}). Nothing was changed. Restore it from a backup; "
            f"`shortlist copy` copies the runs that can still be read to another file."
        )


def _refuse_damaged_log(path: Path) -> None:
    """Raise CorruptLog if SQLite would drop complete writes from its -wal file; warn if it may."""
    drop = wal.dropped(Path(f"{path}-wal"))
    if drop is None:
        return
    place = f"frame {drop.frame:,} of {drop.n_frames:,}" if drop.frame else "its header"
    if drop.n_writes > 1 or not drop.frame:
        raise CorruptLog(
            f"The store {path} was not closed properly, and its -wal file, with the latest writes, is "
            f"damaged at {place}. SQLite would silently drop everything after that. Nothing was changed. "
            f"Restore both files from a backup; or drop it yourself: sqlite3 FILE 'PRAGMA wal_checkpoint'."
        )
    warnings.warn(
        f"The last write to the store {path} was interrupted by a crash, or damaged later, at {place} of its "
        f"-wal file, and is dropped. Check which answers the run contains, and tell the missing ones again.",
        LostWrite,
        stacklevel=4,
    )


def _refuse_path(path: Path, must_exist: bool) -> None:
    if "\0" in str(path):  # SQLite would end the name there
        raise StoreTrouble(f"The store {str(path)!r} cannot be opened: its name contains a NUL character.")
    kind = kind_of(path) if path.exists() else ""
    if kind:
        example = path / "runs.db" if kind == "a folder" else "runs.db"
        raise StoreTrouble(f"The store {path} is {kind}; it must be a file, such as {example}.")
    if must_exist and not path.exists():
        raise StoreTrouble(f"There is no store {path}. Check the path.")
    if not path.parent.is_dir():
        raise StoreTrouble(
            f"The store {path} cannot be created: there is no folder {path.parent}. Create it."
        )


def _is_frozen(path: Path) -> bool:
    """Return whether a file is on a read-only disk or the like, and no process is writing it."""
    return not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
