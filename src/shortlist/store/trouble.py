"""What went wrong in a database, in words that say what to do."""

import sqlite3

from sqlalchemy import exc

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store.address import masked

_SAFE = "What was told before is safe"

# By the primary result codes of SQLite: what happened, and what to do.
_SQLITE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Make room on the disk and run the same command again"),
    sqlite3.SQLITE_IOERR: (
        "the disk could not be written or read",
        "Look whether it is full, over its quota or failing, and run the same command again",
    ),
    sqlite3.SQLITE_BUSY: (
        "another process has kept it locked for too long",
        "Wait until that process is finished, or end it, and run the same command again",
    ),
    sqlite3.SQLITE_PROTOCOL: (
        "too many processes use it at once",
        "Run the same command again, with fewer processes if need be",
    ),
    sqlite3.SQLITE_READONLY: (
        "it cannot be written: the file, its folder or the disk is read-only",
        "Allow writing to both the file and its folder, or copy the file to where you may write",
    ),
    sqlite3.SQLITE_PERM: ("access was denied", "Allow reading and writing of the file and its folder"),
    sqlite3.SQLITE_AUTH: ("access was denied", "Allow reading and writing of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "Look whether its folder exists and whether you may read and write both the folder and the file",
    ),
    sqlite3.SQLITE_TOOBIG: ("a record is too large", "Tell results in several parts"),
}
_PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not a store of Shortlist",
    sqlite3.SQLITE_ERROR: "is damaged or of another program",  # it lacks a table or a column, mostly
}

_UNSURE = "Whether this call was still written is seen on reading: run the same command again when it is up"
_SERVER = {
    "08": ("the connection to the server was lost", _UNSURE),
    "28": ("the server refused this user or password", "Correct the user or the password in the address"),
    "3D": ("there is no such database on the server", "Create it (createdb), or correct the address"),
    "3F": ("this user has no schema to create tables in", "Create one, or grant the user its use"),
    "42501": ("this user may not do that", "Grant the user the right to create and to write tables"),
    "25006": ("the server accepts no writing: it, or this connection, is read-only", "Use one that does"),
    "25P03": ("the server ended a transaction that took too long", "Run the same command again"),
    "53": ("the server has no room or connections left", "Make room there, and run the same command again"),
    "55P03": (
        "another process has kept the run locked for too long",
        "Wait until that process is finished, or end it, and run the same command again",
    ),
    "57": ("the server is shutting down or starting", _UNSURE),
    "57014": (
        "the server broke it off, as its settings demand",
        "Raise its statement_timeout, and try again",
    ),
}
"""By the first signs of PostgreSQL's error codes."""

_AWAY = ("the server cannot be reached", "See that it runs and that the address is right, and try again")

_PASSING_ON_SERVER = {_AWAY, *(_SERVER[code] for code in ("08", "25P03", "53", "55P03", "57"))}

_REFUSED = (
    "the server refused the connection",
    "Correct the user, the password or the database in the address; createdb creates a database",
)


def explained(error: Exception, where: str, address: str = "") -> StoreTrouble:
    """Return the error to raise for one that a database has reported, without secrets of its address."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    if isinstance(cause, sqlite3.Error):
        return of_sqlite(cause, where)
    said = masked(_first_line(cause), address)
    return _of_server(cause, where, said, is_lost=getattr(error, "connection_invalidated", False))


def of_sqlite(cause: sqlite3.Error, where: str) -> StoreTrouble:
    """Return the error to raise for one of SQLite's."""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return CorruptLog(
            f"{where} {_DAMAGED[code]} ({cause}): it was cut short, overwritten, or is of another kind. "
            f"Restore it from a backup, or give the path of another file."
        )
    what, advice = _SQLITE.get(code, ("the database reported an error", "Correct that and try again"))
    error = StoreTrouble(f"{where}: {what} ({cause}). {_SAFE}. {advice}.")
    error.is_passing = code in _PASSING
    return error


def _of_server(cause: BaseException, where: str, said: str, is_lost: bool) -> StoreTrouble:
    state = getattr(cause, "sqlstate", None) or ""
    found = [words for start, words in _SERVER.items() if state.startswith(start)]
    if not state and type(cause).__name__ == "OperationalError":  # without a connection there is no code
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
