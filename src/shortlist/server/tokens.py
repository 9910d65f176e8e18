"""Tokens and sessions of browsers, and the rights that they give; `authorization` enforces them."""

import hashlib
import hmac
import os
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from shortlist.errors import InvalidProblem
from shortlist.input_files import MOST_TOKEN_BYTES, read_bytes

SESSION = 30 * 86_400  # seconds until a browser must log in again
_MOST_SESSIONS = 10_000  # sessions per right; then the oldest ends
_LEAST = 16  # minimum length of a token
_FORM = "Write one line `write TOKEN` and, for read-only access, another line `read TOKEN`"


class Right(IntEnum):
    """The rights of a client."""

    NOTHING = 0
    READ = 1
    WRITE = 2


@dataclass(frozen=True, repr=False)
class Tokens:
    """The tokens of a server: a write token and a read-only token."""

    write: str
    read: str

    @classmethod
    def new(cls) -> "Tokens":
        """Return new random tokens."""
        return cls(secrets.token_urlsafe(24), secrets.token_urlsafe(24))

    @classmethod
    def of_file(cls, path: Path) -> "Tokens":
        """Return the tokens in a file; raise InvalidProblem if others than its owner can read it."""
        try:
            text = read_bytes(path, MOST_TOKEN_BYTES).decode()
            mode = stat.S_IMODE(path.stat().st_mode)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not a text file"
            raise InvalidProblem(f"the tokens in {path} cannot be read: {why}. {_FORM}.") from None
        if os.name == "posix" and mode & 0o077:
            raise InvalidProblem(
                f"other users of this machine can read the tokens in {path}. Use: chmod 600 {path}"
            )
        found: dict[str, str] = {}
        for line in filter(str.strip, text.splitlines()):
            kind, *rest = line.split()
            if kind not in {"read", "write"} or len(rest) != 1 or kind in found:
                raise InvalidProblem(f"a line in {path} is invalid. {_FORM}, each once and nothing else.")
            found[kind] = _checked(rest[0], path)
        if "write" not in found:
            raise InvalidProblem(f"{path} has no write token. {_FORM}.")
        if found["write"] == found.get("read"):
            raise InvalidProblem(
                f"the two tokens in {path} are the same, so the read token would allow writing."
            )
        return cls(found["write"], found.get("read") or secrets.token_urlsafe(24))

    def right_of(self, token: str) -> Right:
        """Return the rights of a token, compared in constant time."""
        is_write, is_read = _is_same(token, self.write), _is_same(token, self.read)
        return Right.WRITE if is_write else Right.READ if is_read else Right.NOTHING


class Sessions:
    """The sessions of browsers that are logged in, by cookie.

    They exist in memory only: when the server stops, everyone is logged out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[Right, OrderedDict[bytes, float]] = {right: OrderedDict() for right in Right}

    def begin(self, right: Right) -> str:
        """Log a browser in; return the random value of its cookie."""
        cookie, ends = secrets.token_urlsafe(32), self._ends[right]
        ends[_digest(cookie)] = self._clock() + SESSION
        if len(ends) > _MOST_SESSIONS:
            ends.popitem(last=False)
        return cookie

    def right_of(self, cookie: str) -> Right:
        """Return the rights of a cookie."""
        key, now = _digest(cookie), self._clock()
        return next((right for right, ends in self._ends.items() if ends.get(key, now) > now), Right.NOTHING)

    def end(self, cookie: str) -> None:
        """Log a browser out: its cookie becomes invalid."""
        for ends in self._ends.values():
            ends.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).digest()


def _is_same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), own.encode())


def _checked(token: str, path: Path) -> str:
    if len(token) < _LEAST or not token.isascii():
        raise InvalidProblem(
            f"a token in {path} has fewer than {_LEAST} characters, or non-ASCII ones. To create one: "
            f"python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    return token
