"""The schema of a store, step by step from nothing to the present one.

A step and the record of it are one transaction: a store is always of one version or of the next.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

import sqlalchemy as sql

from shortlist.errors import StoreTrouble
from shortlist.store.tables import TABLES, VERSIONS

Step: TypeAlias = Callable[[sql.Connection], None]
"""Brings the tables from one version to the next, within the transaction it is given."""

Transaction: TypeAlias = Callable[[], AbstractContextManager[sql.Connection]]
"""Begins a transaction that keeps all others who want to change the schema waiting until it ends."""


def first_tables(connection: sql.Connection) -> None:
    """Create the tables of version 1."""
    TABLES.create_all(connection, checkfirst=False)


STEPS: tuple[Step, ...] = (first_tables,)
"""``STEPS[k]`` leads from version k to version k + 1; never changed once released, only added to."""


def version_of(connection: sql.Connection) -> int:
    """Return the schema version of a store; 0 if it has none of its tables yet."""
    if not sql.inspect(connection).has_table(VERSIONS.name):
        return 0
    return connection.scalar(sql.select(sql.func.max(VERSIONS.c.version))) or 0


def refuse_newer(version: int, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise StoreTrouble for a version that is not known yet."""
    if version > len(steps):
        raise StoreTrouble(
            f"{where} was written by a newer Shortlist: its schema has version {version}, and this one knows "
            f"versions up to {len(steps)}. Nothing was changed. Upgrade Shortlist (pip install -U shortlist)."
        )


def refuse_older(version: int, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise StoreTrouble for a version that would have to be brought up to date first."""
    if version < len(steps):
        raise StoreTrouble(
            f"{where} was written by an older Shortlist: its schema has version {version}, and {len(steps)} "
            f"is needed. Open it once for writing, which brings it up to date; keep a copy if in doubt."
        )


def bring_up_to_date(
    transaction: Transaction,
    where: str,
    steps: Sequence[Step] = STEPS,
) -> None:
    """Take the steps that are left, each in a transaction of its own; others may be doing the same."""
    while True:
        with transaction() as connection:
            version = version_of(connection)
            refuse_newer(version, where, steps)
            if version == len(steps):
                return
            steps[version](connection)
            connection.execute(VERSIONS.insert().values(version=version + 1, at=time.time()))
