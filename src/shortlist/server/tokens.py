"""Who may do what: tokens that allow to look, and tokens that allow to add."""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from shortlist.errors import InvalidProblem
from shortlist.input_files import MOST_TOKEN_BYTES, read_bytes

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
        return self._right(token, lambda own: own)

    def right_of_cookie(self, cookie: str) -> Right:
        """Return what a cookie allows that `cookie_for` made."""
        return self._right(cookie, self.cookie_for)

    @staticmethod
    def cookie_for(token: str) -> str:
        """Return what a browser keeps instead of a token: it does not tell the token."""
        return hmac.new(token.encode(), b"shortlist cookie", hashlib.sha256).hexdigest()

    def _right(self, given: str, form: Callable[[str], str]) -> Right:
        is_write = _is_same(given, form(self.write))
        is_read = _is_same(given, form(self.read))
        return Right.WRITE if is_write else Right.READ if is_read else Right.NOTHING


def _is_same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), own.encode())


def _checked(token: str, path: Path) -> str:
    if len(token) < _LEAST or not token.isascii():
        raise InvalidProblem(
            f"a token in {path} is shorter than {_LEAST} letters, or has other than plain ones. This makes "
            f"one: python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    return token
