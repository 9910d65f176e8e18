"""Logs of runs in a PostgreSQL database: for many machines at once.

Whoever appends to a run locks the row of that run; other runs go on meanwhile. Times are the server's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import sqlalchemy as sql

from shortlist.errors import StoreTrouble
from shortlist.store.address import shown
from shortlist.store.migrations import STEPS, Step
from shortlist.store.sql import SqlStore

_SCHEMA_LOCK = 0x5348_4F52_544C  # any number will do, but all must take the same
_NOW = sql.text("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)")
_LONGEST_TRANSACTION = 600  # seconds until the server gives up a client that holds a lock and is silent
_CONNECT_SECONDS = 10
_NOT_BY = ("enable_seqscan", "enable_bitmapscan", "enable_sort", "jit")
"""Ways to answer a query that are never right here: all go by a key, and logs are read in its order.

Of a log that grew just now the server knows no better, and would read and sort all of it for every page. And
it would compile queries that have to sort a few rows, which takes it a hundred times as long as the sorting.
"""


class PostgresStore(SqlStore):
    """Logs in a PostgreSQL database.

    Parameters
    ----------
    address
        ``postgresql://user:password@server:port/database``, all parts of which may be left out.
    must_exist
        Whether it is an error if the database has no tables of Shortlist yet.
    read_only
        Whether it is only looked at; nothing is created or changed then.
    clock
        What tells the time, in seconds since 1970; by default the server's clock.
    patience
        How many seconds to wait for other writers at most.
    steps
        The steps by which its tables are brought to their present form.
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
        """Do nothing: a server looks after its files by itself."""

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
            "A store in PostgreSQL needs the package psycopg. Install it: pip install 'shortlist[postgres]'."
        )
    try:
        address.encode()  # half a letter cannot be sent
        url = sql.make_url(address).set(drivername="postgresql+psycopg")
        if "@" in f"{url.host}{url.database}":  # part of a password, most likely
            raise ValueError
        return sql.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=4,
            max_overflow=-1,
            isolation_level="READ COMMITTED",  # what a lock was waited for is seen once it is had
            connect_args={"connect_timeout": _CONNECT_SECONDS, "application_name": "shortlist"},
        )
    except (sql.exc.ArgumentError, ValueError):
        raise StoreTrouble(
            "The address of the store cannot be read. It must look like "
            "postgresql://user@server:5432/database; write special signs of a password as %xx, @ as %40."
        ) from None


def _settings(patience: float, read_only: bool) -> Callable[[Any, Any], None]:
    """Return what prepares each new connection."""
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
        connection.execute(durable)  # what is acknowledged must be on the disk
        connection.commit()

    return prepare
