"""Messages for database errors that say what happened and what to do."""

import sqlite3

from sqlalchemy import exc

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store.address import masked

_SAFE = "Earlier results are safe"

# What happened and what to do, by SQLite's primary result codes.
_SQLITE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some disk space and run the same command again"),
    sqlite3.SQLITE_IOERR: (
        "the disk could not be written or read",
        "Check whether it is full, over its quota or failing, and run the same command again",
    ),
    sqlite3.SQLITE_BUSY: (
        "another process has kept it locked for too long",
        "Wait until that process is finished, or end it, and run the same command again",
    ),
    sqlite3.SQLITE_PROTOCOL: (
        "too many processes use it at once",
        "Run the same command again, with fewer processes if necessary",
    ),
    sqlite3.SQLITE_READONLY: (
        "it cannot be written: the file, its folder or the disk is read-only",
        "Allow writing to both the file and its folder, or copy the file to a writable folder",
    ),
    sqlite3.SQLITE_PERM: ("access was denied", "Allow reading and writing of the file and its folder"),
    sqlite3.SQLITE_AUTH: ("access was denied", "Allow reading and writing of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "Check that its folder exists, and that you may read and write both the folder and the file",
    ),
    sqlite3.SQLITE_TOOBIG: ("a record is too large", "Tell the results in several calls"),
}
_PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not a store of Shortlist",
    sqlite3.SQLITE_ERROR: "is damaged or belongs to another program",  # mostly a missing table or column
}

_UNSURE = "The last write may not have been saved; rerun the command when the server is up to check"
_SERVER = {
    "08": ("the connection to the server was lost", _UNSURE),
    "28": ("the server refused this user or password", "Correct the user or the password in the address"),
    "3D": ("there is no such database on the server", "Create it (createdb), or correct the address"),
    "3F": ("this user has no schema to create tables in", "Create one, or grant the user access to one"),
    "42501": ("this user lacks a permission", "Grant the user the right to create and to write tables"),
    "25006": ("the server, or this connection, is read-only", "Use a writable one"),
    "25P03": ("the server ended a transaction that took too long", "Run the same command again"),
    "53": (
        "the server has no disk space, memory or connections left",
        "Free some, and run the same command again",
    ),
    "55P03": (
        "another process has kept the run locked for too long",
        "Wait until that process is finished, or end it, and run the same command again",
    ),
    "57": ("the server is shutting down or starting", _UNSURE),
    "57014": (
        "the server cancelled it, as its settings require",
        "Raise its statement_timeout, and try again",
    ),
}
"""Messages by the first characters of PostgreSQL's error codes."""

_AWAY = (
    "the server cannot be reached",
    "Check that it is running and that the address is right, and try again",
)

_PASSING_ON_SERVER = {_AWAY, *(_SERVER[code] for code in ("08", "25P03", "53", "55P03", "57"))}

_REFUSED = (
    "the server refused the connection",
    "Correct the user, the password or the database in the address; createdb creates a database",
)


def explained(error: Exception, where: str, address: str = "") -> StoreTrouble:
    """Return the error to raise for a database error, without the secrets of the address."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    if isinstance(cause, sqlite3.Error):
        return of_sqlite(cause, where)
    said = masked(_first_line(cause), address)
    return _of_server(cause, where, said, is_lost=getattr(error, "connection_invalidated", False))


def of_sqlite(cause: sqlite3.Error, where: str) -> StoreTrouble:
    """Return the error to raise for an SQLite error."""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return CorruptLog(
            f"{where} {_DAMAGED[code]} ({cause}): it was truncated or overwritten, or is another kind of "
            f"file. Restore it from a backup, or give the path of another file."
        )
    what, advice = _SQLITE.get(code, ("the database reported an error", "Correct that and try again"))
    error = StoreTrouble(f"{where}: {what} ({cause}). {_SAFE}. {advice}.")
    error.is_passing = code in _PASSING
    return error


def _of_server(cause: BaseException, where: str, said: str, is_lost: bool) -> StoreTrouble:
    state = getattr(cause, "sqlstate", None) or ""
    found = [words for start, words in _SERVER.items() if state.startswith(start)]
    if not state and type(cause).__name__ == "OperationalError":  # there is no code without a connection
        is_restarting = any(word in str(cause) for word in ("starting up", "shutting down"))
        refused = _SERVER["57"] if is_restarting else _REFUSED
        found = [refused if "FATAL" in str(cause) else _SERVER["08"] if is_lost else _AWAY]
    what, advice = found[-1] if found else ("the server reported an error", "Correct that and try again")
    error = StoreTrouble(f"{where}: {what} ({said}). {_SAFE}. {advice}.")
    error.is_passing = (what, advice) in _PASSING_ON_SERVER
    return error


def _first_line(cause: BaseException) -> str:
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[0].strip().rstrip(".")
