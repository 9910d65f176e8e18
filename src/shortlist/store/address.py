"""Which store is meant by a path or an address."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from shortlist.errors import StoreTrouble
from shortlist.store.log import Store
from shortlist.store.memory import MemoryStore

Where: TypeAlias = str | os.PathLike[str] | Store

_FORMS = (
    "Give the path of a file, such as runs.db; or the address of a PostgreSQL database, such as "
    "postgresql://user@server/database"
)
_HARMLESS = {
    *("host", "hostaddr", "port", "user", "dbname", "options", "service"),
    *("sslmode", "connect_timeout", "target_session_attrs"),
}
"""Options of an address that may be shown."""
_METHODS = ("read", "append", "restore", "runs", "remove", "verify", "close")


def open_store(
    where: Where,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    clock: Callable[[], float] | None = None,
) -> Store:
    """Return the store at an address.

    Parameters
    ----------
    where
        The path of a file, or ``sqlite:///path``; ``postgresql://user@server/database``; ":memory:" for one
        that ends with this process; or a store, which is returned as it is.
    must_exist
        Whether it is an error if nothing is there yet.
    read_only
        Whether it is only to be looked at: nothing is created or changed then.
    clock
        What tells the time, in seconds since 1970. By default this machine's clock does, or the server's.

    Examples
    --------
    >>> store = open_store(":memory:")
    >>> store.runs()
    []
    """
    if isinstance(where, str | os.PathLike):
        return _opened(os.fspath(where), must_exist=must_exist, read_only=read_only, clock=clock)
    if all(callable(getattr(where, method, None)) for method in _METHODS) and not isinstance(where, type):
        return where
    raise StoreTrouble(f"A store cannot be opened at an object of type {type(where).__name__}. {_FORMS}.")


def shown(where: str) -> str:
    """Return an address without anything secret; a path as it is. What stands before it is kept.

    Examples
    --------
    >>> shown("postgresql://me:p@ss/word@server/lab?sslmode=require&sslpassword=secret")
    'postgresql://me:***@server/lab?sslmode=require'
    >>> shown("runs.db")
    'runs.db'
    """
    found = re.search(r"([A-Za-z][\w.+-]*)://", where)
    if found is None:
        return where
    start, rest = where[: found.end()], where[found.end() :]
    login, at, place = ("", "", rest) if found[1] == "sqlite" else rest.rpartition("@")
    if "?" in login:  # where a password ends cannot be known then
        return f"{start}***"
    user = re.split(r"[:/@\s]", login)[0]
    place, _, query = place.partition("?")
    options = "&".join(part for part in query.split("&") if part.partition("=")[0] in _HARMLESS)
    return f"{start}{user}{'' if user == login else ':***'}{at}{place}{'?' if options else ''}{options}"


def _opened(address: str, *, must_exist: bool, read_only: bool, clock: Callable[[], float] | None) -> Store:
    scheme, is_url, rest = address.partition("://")
    if address == ":memory:" or (scheme == "sqlite" and rest in ("", "/:memory:")):
        return MemoryStore() if clock is None else MemoryStore(clock)
    if is_url and scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        from shortlist.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(address, must_exist=must_exist, read_only=read_only, clock=clock)
    from shortlist.store.sqlite import SqliteStore  # noqa: PLC0415

    path = _path(address)
    return SqliteStore(path, must_exist=must_exist, read_only=read_only, clock=clock)


def _path(address: str) -> Path:
    """Return the path that is meant. Messages name no more of an address than its scheme: secrets follow."""
    scheme, is_url, rest = address.partition("://")
    if not address.strip():
        raise StoreTrouble(f"The address of the store is empty. {_FORMS}.")
    if not is_url:
        return Path(address)
    if scheme != "sqlite":
        raise StoreTrouble(f"Stores at {scheme}:// addresses are not supported. {_FORMS}.")
    if not rest.startswith("/") or "?" in rest:
        raise StoreTrouble(
            "An address that starts with sqlite:// must go on with one more slash and a path, and have no "
            "options: sqlite:///runs.db, or sqlite:////home/me/runs.db from the root. The path alone will do."
        )
    return Path(rest[1:])
