"""A store in a PostgreSQL database, for many machines at once.

Appending to a run locks only the row of that run. Times are those of the database server.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import sqlalchemy as sql

from shortlist.checks import install_command
from shortlist.errors import StoreTrouble
from shortlist.store.address import shown
from shortlist.store.migrations import STEPS, Step
from shortlist.store.sql import SqlStore

_SCHEMA_LOCK = 0x5348_4F52_544C  # an arbitrary number, the same for all processes
_NOW = sql.text("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)")
_LONGEST_TRANSACTION = 600  # seconds until the server drops a silent client that holds a lock
_CONNECT_SECONDS = 10
_NOT_BY = ("enable_seqscan", "enable_bitmapscan", "enable_sort", "jit")
"""Query plans that are never right here: all queries use a key, and logs are read in its order.

Without statistics of a log that has just grown, the server would read and sort all of it for every page. It
would also compile queries that sort a few rows, which takes a hundred times as long as the sorting.
"""


class PostgresStore(SqlStore):
    """A store in a PostgreSQL database.

    Parameters
    ----------
    address
        ``postgresql://user:password@server:port/database``; all parts are optional.
    must_exist
        Whether it is an error if the database has no tables of Shortlist yet.
    read_only
        Whether to open it read-only: then nothing is created or changed.
    clock
        Returns the time in seconds since 1970; the default is the server's clock.
    patience
        How long to wait for other writers, in seconds.
    steps
        The migrations of its tables.
    """

    _LOCK = " FOR UPDATE"

    def __init__(
        self,
        address: str,
        *,
        must_exist: bool = False,
        read_only: bool = False,
        clock: Callable[[], float] | None = None,
        patience: float = 30.0,
        steps: Sequence[Step] = STEPS,
    ) -> None:
        engine = _engine(address)
        sql.event.listen(engine, "connect", _settings(patience, read_only))
        super().__init__(engine, f"The store {shown(address)}")
        self._address, self._clock = address, clock
        self._set_up(self._changing_schema, must_exist=must_exist, read_only=read_only, steps=steps)

    def verify(self) -> None:
        """Do nothing: the server checks its own files."""

    def _now(self, connection: sql.Connection, mark: str) -> float:  # noqa: ARG002
        return float(connection.scalar(_NOW)) if self._clock is None else self._clock()

    def _mark(self, now: float) -> str:  # noqa: ARG002
        return ""

    @contextmanager
    def _changing_schema(self) -> Iterator[sql.Connection]:
        with self._writing() as connection:
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
            yield connection


def _engine(address: str) -> sql.Engine:
    if find_spec("psycopg") is None:
        raise StoreTrouble(
            f"A store in PostgreSQL needs the package psycopg. Install it: {install_command('postgres')}"
        )
    try:
        address.encode()  # lone surrogates cannot be encoded
        url = sql.make_url(address).set(drivername="postgresql+psycopg")
        if "@" in f"{url.host}{url.database}":  # part of a password, most likely
            raise ValueError
        return sql.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=4,
            max_overflow=-1,
            isolation_level="READ COMMITTED",  # after a lock, see what its last owner committed
            connect_args={"connect_timeout": _CONNECT_SECONDS, "application_name": "shortlist"},
        )
    except (sql.exc.ArgumentError, ValueError):
        raise StoreTrouble(
            "The address of the store is invalid. It must look like "
            "postgresql://user@server:5432/database; escape special characters in a password: @ as %40."
        ) from None


def _settings(patience: float, read_only: bool) -> Callable[[Any, Any], None]:
    """Return the function that configures each new connection."""
    wanted = {
        "lock_timeout": f"{int(1000 * patience)}ms",
        "idle_in_transaction_session_timeout": f"{_LONGEST_TRANSACTION}s",
        "default_transaction_read_only": "on" if read_only else "off",
    } | dict.fromkeys(_NOT_BY, "off")
    parts = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in wanted.items())
    name = "synchronous_commit"
    durable = f"SELECT set_config('{name}', 'on', false) WHERE current_setting('{name}') = 'off'"

    def prepare(connection: Any, record: Any) -> None:  # noqa: ARG001
        connection.execute(f"SELECT {parts}")
        connection.execute(durable)  # acknowledged writes must be on disk
        connection.commit()

    return prepare
