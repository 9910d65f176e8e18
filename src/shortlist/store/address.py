"""Opening a store by its path or address, and hiding the secrets of addresses."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

from shortlist.errors import StoreTrouble
from shortlist.store.memory import MemoryStore
from shortlist.store.protocol import Store

Where: TypeAlias = str | os.PathLike[str] | Store

_FORMS = (
    "Give the path of a file, such as runs.db; or the address of a PostgreSQL database, such as "
    "postgresql://user@server/database"
)
_HARMLESS = {
    *("host", "hostaddr", "port", "user", "dbname", "options", "service"),
    *("sslmode", "connect_timeout", "target_session_attrs"),
}
"""Options of an address that are not secret."""
_LEAST_SECRET = 4  # letters; masking shorter secrets would only garble a text
_LOGIN = re.compile(r"([A-Za-z][\w.+-]{0,30}://[^\s/:@]*):(\S{0,500})@")
_BARE_LOGIN = re.compile(r"^((?:--[\w-]+=)?(?:[A-Za-z][\w.+-]{0,30}:/?)?[^\s/:@]+):[^/].*@")
_PAIR = re.compile(
    r"(?i)\b(\w*(?:pass(?:word|wd|phrase|file)|token|secret))(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)"
)
_DSN = re.compile(
    r"(?i)(?:--store=)?\s*(?:host|hostaddr|port|user|dbname|password|service|sslmode|passfile)\s*="
)
_LIKE_ADDRESS = re.compile(r"(?i)\s*(?:postgres\w*(?:\+\w+)?|jdbc|mysql|mariadb):")
_METHODS = ("read", "append", "restore", "runs", "remove", "now", "verify", "close")


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
        The path of a file, or ``sqlite:///path``; ``postgresql://user@server/database``; ":memory:" for a
        store in the memory of this process; or a store, which is returned unchanged.
    must_exist
        Whether a missing store is an error.
    read_only
        Whether to open it read-only: then nothing is created or changed.
    clock
        Returns the time in seconds since 1970. The default is this machine's clock, or the server's.

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
    raise StoreTrouble(f"An object of type {type(where).__name__} is not the address of a store. {_FORMS}.")


def shown(where: str) -> str:
    """Return an address without its secrets; a path is returned unchanged. Text before the address is kept.

    Examples
    --------
    >>> shown("postgresql://me:p@ss/word@server/lab?sslmode=require&sslpassword=secret")
    'postgresql://me:***@server/lab?sslmode=require'
    >>> shown("host=server user=me password=secret")
    'host=server user=me password=***'
    >>> shown("runs.db")
    'runs.db'
    """
    where = _PAIR.sub(r"\1\2***", where) if _DSN.match(where) else where
    found = re.search(r"([A-Za-z][\w.+-]{0,30})://", where)
    if found is None:
        return _BARE_LOGIN.sub(r"\1:***@", where)
    start, rest = where[: found.end()], where[found.end() :]
    login, at, place = ("", "", rest) if found[1] == "sqlite" else rest.rpartition("@")
    if "?" in login:  # the end of the password is unknown then
        return f"{start}***"
    user = re.split(r"[:/@\s]", login)[0]
    place, _, query = (place if found[1] == "sqlite" else place.partition("#")[0]).partition("?")
    options = "&".join(part for part in query.split("&") if part.partition("=")[0] in _HARMLESS)
    return f"{start}{user}{'' if user == login else ':***'}{at}{place}{'?' if options else ''}{options}"


def masked(text: str, *addresses: str) -> str:
    """Return text with the secrets of some addresses, and any passwords in it, masked.

    Examples
    --------
    >>> masked('no host "ss/word" in postgresql://me:x@h', "postgresql://me:p@ss/word@server/lab")
    'no host "***" in postgresql://me:***@h'
    """
    for address in addresses:
        if (public := shown(address)) != address:
            text = text.replace(address, public)
            for secret in sorted(_secrets(address, public), key=len, reverse=True):
                text = text.replace(secret, "***")
    return _PAIR.sub(r"\1\2***", _LOGIN.sub(r"\1:***@", text))


def _secrets(address: str, public: str) -> set[str]:
    """Return the parts of an address that may be secret, in all forms in which they may occur."""
    parts = {part for part in re.split(r"[:@/?&=\s'\"]", address) if part not in public}
    parts |= {part for login in _LOGIN.finditer(address) for part in (login[2], *login[2].split("@"))}
    parts |= {unquote(part) for part in parts}
    return {part for part in parts if len(part) >= _LEAST_SECRET}


def _opened(address: str, *, must_exist: bool, read_only: bool, clock: Callable[[], float] | None) -> Store:
    scheme, is_url, rest = address.partition("://")
    if address == ":memory:" or (scheme == "sqlite" and rest in ("", "/:memory:")):
        return MemoryStore() if clock is None else MemoryStore(clock)
    options: dict[str, Any] = {"must_exist": must_exist, "read_only": read_only, "clock": clock}
    try:
        if is_url and scheme in ("postgresql", "postgres", "postgresql+psycopg"):
            from shortlist.store.postgres import PostgresStore  # noqa: PLC0415

            return PostgresStore(address, **options)
        from shortlist.store.sqlite import SqliteStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise StoreTrouble(
            "A store needs the package SQLAlchemy, which is not installed. Use: pip install SQLAlchemy"
        ) from None
    path = _path(address)
    if not is_url and (shown(address) != address or _DSN.match(address) or _LIKE_ADDRESS.match(address)):
        _refuse_like_address(path)
    return SqliteStore(path, **options)


def _path(address: str) -> Path:
    """Return the path of a file. Messages show only the scheme of an address: the rest may be secret."""
    scheme, is_url, rest = address.partition("://")
    if not address.strip():
        raise StoreTrouble(f"The address of the store is empty. {_FORMS}.")
    if not is_url:
        return Path(address)
    if scheme != "sqlite":
        raise StoreTrouble(f"Stores at {scheme}:// addresses are not supported. {_FORMS}.")
    if not rest.startswith("/") or "?" in rest:
        raise StoreTrouble(
            "After sqlite:// there must be one more slash and a path, without options: sqlite:///runs.db, or "
            "sqlite:////home/me/runs.db for an absolute path. You can also give just the path."
        )
    return Path(rest[1:])


def _refuse_like_address(path: Path) -> None:
    """Refuse text that looks like the address of a database, unless it is an existing file."""
    try:
        is_file = path.is_file()
    except OSError:
        is_file = False
    if not is_file:
        raise StoreTrouble(
            f"The store looks like the address of a database, but is not a valid one. {_FORMS}."
        )
