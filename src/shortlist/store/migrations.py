"""Migrations of the database schema, step by step from nothing to the current version.

A step and its record are one transaction: a store always has one version or the next.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeAlias

import sqlalchemy as sql

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store import chain
from shortlist.store.tables import EVENTS, RUNS, TABLES, VERSIONS

Step: TypeAlias = Callable[[sql.Connection], None]
"""Migrates the tables from one version to the next, within the given transaction."""

Transaction: TypeAlias = Callable[[], AbstractContextManager[sql.Connection]]
"""Begins a transaction that blocks all other schema changes until it ends."""


def first_tables(connection: sql.Connection) -> None:
    """Create the tables of version 1."""
    TABLES.create_all(connection, checkfirst=False)


def counted_events(connection: sql.Connection) -> None:
    """Add to every run the number of its records and its checksum; verify all logs in the process."""
    binary = sql.LargeBinary().compile(connection.dialect)
    for column in ("n_events BIGINT", "mark TEXT", f"checksum {binary}"):
        connection.exec_driver_sql(f"ALTER TABLE shortlist_runs ADD COLUMN {column}")
    counted = sql.text(
        "UPDATE shortlist_runs SET n_events = :n_events, mark = :mark, checksum = :checksum WHERE id = :key"
    )
    columns = [EVENTS.c[name] for name in ("number", "kind", "at", "body", "checksum")]
    for key, run in connection.execute(sql.select(RUNS.c.id, RUNS.c.name)).all():
        rows = sql.select(*columns).where(EVENTS.c.run == key).order_by(EVENTS.c.number)
        end = chain.Link()
        with connection.execute(rows, execution_options={"yield_per": 1000}) as found, suppress(CorruptLog):
            for number, *_, checksum in chain.intact(found, run, end):
                end = chain.Link(number, checksum)
            connection.execute(counted, {"key": key} | chain.entry(run, end)._asdict())


STEPS: tuple[Step, ...] = (first_tables, counted_events)
"""``STEPS[k]`` migrates from version k to k + 1; released steps never change, new ones are appended."""


def version_of(connection: sql.Connection) -> int:
    """Return the schema version of a store; 0 if it has no tables yet."""
    if not sql.inspect(connection).has_table(VERSIONS.name):
        return 0
    found = list(connection.scalars(sql.select(VERSIONS.c.version).order_by(VERSIONS.c.version)))
    if found != list(range(1, len(found) + 1)):
        raise CorruptLog(
            f"The list of schema versions of the store is damaged: it contains {found}, with a gap. Nothing "
            f"was changed. Restore the store from a backup."
        )
    return len(found)


def refuse_newer(version: int, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise StoreTrouble for a version that is newer than this program."""
    if version > len(steps):
        raise StoreTrouble(
            f"{where} was written by a newer Shortlist: its schema has version {version}, and this Shortlist "
            f"supports versions up to {len(steps)}. Nothing was changed. Upgrade Shortlist."
        )


def bring_up_to_date(
    transaction: Transaction,
    where: str,
    steps: Sequence[Step] = STEPS,
) -> None:
    """Run the remaining migrations, each in its own transaction; others may be doing the same."""
    while True:
        with transaction() as connection:
            version = version_of(connection)
            refuse_newer(version, where, steps)
            if version == len(steps):
                return
            steps[version](connection)
            connection.execute(VERSIONS.insert().values(version=version + 1, at=time.time()))
