"""Who may do what: tokens that allow to look, tokens that allow to add, and browsers that have shown one."""

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
_MOST_SESSIONS = 10_000  # for each right; then the oldest ends
_LEAST = 16  # letters of a token
_FORM = "Write one line `write TOKEN` and, for those who may only look, another `read TOKEN`"


class Right(IntEnum):
    """What somebody may do."""

    NOTHING = 0
    READ = 1
    WRITE = 2


@dataclass(frozen=True, repr=False)
class Tokens:
    """What must be shown to be let in: one token to add and to look, another only to look."""

    write: str
    read: str

    @classmethod
    def new(cls) -> "Tokens":
        """Return tokens that nobody can guess."""
        return cls(secrets.token_urlsafe(24), secrets.token_urlsafe(24))

    @classmethod
    def of_file(cls, path: Path) -> "Tokens":
        """Return the tokens in a file that nobody but its owner can read; raise InvalidProblem otherwise."""
        try:
            text = read_bytes(path, MOST_TOKEN_BYTES).decode()
            mode = stat.S_IMODE(path.stat().st_mode)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InvalidProblem(f"the tokens in {path} cannot be read: {why}. {_FORM}.") from None
        if os.name == "posix" and mode & 0o077:
            raise InvalidProblem(
                f"others on this machine can read the tokens in {path}. Forbid that: chmod 600 {path}"
            )
        found: dict[str, str] = {}
        for line in filter(str.strip, text.splitlines()):
            kind, *rest = line.split()
            if kind not in {"read", "write"} or len(rest) != 1 or kind in found:
                raise InvalidProblem(f"a line in {path} is no token. {_FORM}, each once and nothing else.")
            found[kind] = _checked(rest[0], path)
        if "write" not in found:
            raise InvalidProblem(f"{path} has no token that allows to add. {_FORM}.")
        if found["write"] == found.get("read"):
            raise InvalidProblem(
                f"the two tokens in {path} are the same; then everybody who may look may add."
            )
        return cls(found["write"], found.get("read") or secrets.token_urlsafe(24))

    def right_of(self, token: str) -> Right:
        """Return what a token allows. How long this takes does not tell how much of it is right."""
        is_write, is_read = _is_same(token, self.write), _is_same(token, self.read)
        return Right.WRITE if is_write else Right.READ if is_read else Right.NOTHING


class Sessions:
    """Browsers that are logged in, by what their cookies say.

    They are kept in memory alone: when the server ends, everybody is logged out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[Right, OrderedDict[bytes, float]] = {right: OrderedDict() for right in Right}

    def begin(self, right: Right) -> str:
        """Log a browser in; return what its cookie says, which nobody can guess."""
        cookie, ends = secrets.token_urlsafe(32), self._ends[right]
        ends[_digest(cookie)] = self._clock() + SESSION
        if len(ends) > _MOST_SESSIONS:
            ends.popitem(last=False)
        return cookie

    def right_of(self, cookie: str) -> Right:
        """Return what a cookie allows."""
        key, now = _digest(cookie), self._clock()
        return next((right for right, ends in self._ends.items() if ends.get(key, now) > now), Right.NOTHING)

    def end(self, cookie: str) -> None:
        """Log a browser out: from now on its cookie allows nothing, whoever has it."""
        for ends in self._ends.values():
            ends.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).digest()


def _is_same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), own.encode())


def _checked(token: str, path: Path) -> str:
    if len(token) < _LEAST or not token.isascii():
        raise InvalidProblem(
            f"a token in {path} is shorter than {_LEAST} letters, or has other than plain ones. This makes "
            f"one: python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    return token
