"""The database tables of a store in schema version 1; `migrations` extends them."""

import sqlalchemy as sql

TABLES = sql.MetaData()

_KEY = sql.BigInteger().with_variant(
    sql.Integer(), "sqlite"
)  # SQLite numbers rows automatically only with this type

VERSIONS = sql.Table(
    "shortlist_versions",
    TABLES,
    sql.Column("version", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("at", sql.Double, nullable=False),
)
"""The schema versions that this store has had; the largest is the current one."""

RUNS = sql.Table(
    "shortlist_runs",
    TABLES,
    sql.Column("id", _KEY, sql.Identity(always=True), primary_key=True),
    sql.Column("name", sql.Text, nullable=False, unique=True),
    sqlite_autoincrement=True,
)
"""The runs, in the order in which they were created.

Since version 2 also: `n_events`, the number of records of a run; `mark`, the time of the last write
(`clock`); and `checksum`, which covers these, the name and the last record (`chain.entry`). All are NULL for
a run that was already damaged."""

EVENTS = sql.Table(
    "shortlist_events",
    TABLES,
    sql.Column("run", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("at", sql.Double, nullable=False),
    sql.Column("body", sql.LargeBinary, nullable=False),
    sql.Column("checksum", sql.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""The records of all runs; see `chain` for the checksum."""
