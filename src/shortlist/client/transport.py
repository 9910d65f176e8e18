"""Requests to a server, and how long to put up with one that does not answer.

All that is sent may be sent again: whatever came of the first time, a second one changes nothing more. So a
server may be restarted while others work with it.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from shortlist.client.refusals import AGAIN, refusal, unreachable
from shortlist.errors import InvalidProblem, ShortlistError
from shortlist.store.address import shown

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
_PATIENCE, _FIRST_CONTACT = 120.0, 3.0  # seconds; one that has never answered may have another address
_NOTABLE = 1.0  # seconds after which somebody may wonder
_KEPT = 4.0  # seconds that an idle connection is kept; servers hang up after five

Wait = Callable[[str], None]
"""``on_wait(words)`` is called once when a server does not answer, and will be asked again for a while."""


class Connection:
    """A server, as those see it who ask it something. Several threads may use it."""

    def __init__(
        self, url: str, token: str | None, timeout: float, patience: float | None, on_wait: Wait | None
    ) -> None:
        self.url = _checked(url)
        self._patience, self._on_wait = patience, on_wait
        self._has_answered = False
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {_plain(token)}"
        limits = httpx.Limits(keepalive_expiry=_KEPT)
        self._http = httpx.Client(headers=headers, timeout=timeout, limits=limits)

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def get(self, path: str, **how: Any) -> Any:
        """Return what is at an address, as plain data."""
        return self._data(self._send("GET", path, **how))

    def text(self, path: str) -> str:
        """Return what is at an address, as text."""
        return self._send("GET", path).text

    def post(self, path: str, body: dict[str, Any], **how: Any) -> Any:
        """Send plain data, and return the answer. Numbers arrive as they are, to the last bit."""
        return self._data(self._send("POST", path, json=body, **how))

    @contextmanager
    def stream(self, path: str, timeout: httpx.Timeout) -> Iterator[httpx.Response]:
        """Yield an answer that is read as it comes."""
        with self._http.stream("GET", self.url + path, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise Trouble(refusal(self.url, response), response)
            self._has_answered = True
            yield response

    def tries(self, patience: float | None = None) -> "Tries":
        """Return how often and when to try something."""
        given = self._patience if patience is None else patience
        return Tries(self.url, given, self._on_wait, has_answered=self._has_answered)

    def _send(
        self, method: str, path: str, *, patience: float | None = None, **request: Any
    ) -> httpx.Response:
        tries = self.tries(patience)
        while True:
            try:
                response = self._http.request(method, self.url + path, **request)
            except httpx.TransportError as error:
                tries.failed(error)
                continue
            self._has_answered = True
            if response.is_success:
                return response
            tries.failed(Trouble(refusal(self.url, response), response))

    def _data(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            raise refusal(self.url, response) from None


class Trouble(Exception):
    """A server answered, but not with what was asked for."""

    def __init__(self, error: ShortlistError, response: httpx.Response) -> None:
        super().__init__(str(error))
        self.error, self.status = error, response.status_code
        self.after = _seconds(response.headers.get("retry-after", ""))


class Tries:
    """Tries of one request: the pauses between them grow, until patience is at an end.

    A server that says when to ask again is asked then, if patience lasts so long.
    """

    def __init__(
        self, url: str, patience: float | None, on_wait: Wait | None, *, has_answered: bool = True
    ) -> None:
        usual = _PATIENCE if has_answered else _FIRST_CONTACT
        self._url, self._patience, self._on_wait = url, usual if patience is None else patience, on_wait
        self._is_usual = patience is None
        self._start, self._pause, self._has_said = time.monotonic(), _FIRST, False
        self._random = random.Random()  # not the global one, which measurements may use

    def failed(self, trouble: httpx.TransportError | Trouble) -> None:
        """Wait before the next try; raise the error of the library if there should be none."""
        seconds = time.monotonic() - self._start
        if isinstance(trouble, Trouble):
            error, after, is_final = trouble.error, trouble.after, trouble.status not in AGAIN
            if after and self._is_usual:
                self._patience = _PATIENCE  # it is there
        else:
            error, after, is_final = unreachable(self._url, trouble, seconds), 0.0, False
        pause = max(after, self._pause * self._random.uniform(0.5, 1.0))  # so that not all come back at once
        if is_final or seconds + pause > self._patience:
            raise error from None
        if self._on_wait is not None and seconds + pause > _NOTABLE and not self._has_said:
            self._has_said = True
            self._on_wait(f"{error} Trying again for {self._patience - seconds:.0f} seconds.")
        time.sleep(pause)
        self._pause = min(2 * self._pause, _LONGEST)


def _seconds(after: str) -> float:
    """Return how long a `Retry-After` asks to wait: a number of seconds, or a date (RFC 9110, 10.2.3)."""
    if after.isascii() and after.isdecimal():
        return float(after)
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except ValueError:
        return 0.0


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.query or parts.fragment:
        raise InvalidProblem(
            f"the server is {shown(url)!r}; give its address, such as http://127.0.0.1:8765."
        )
    if parts.username is not None:
        raise InvalidProblem(
            "the address of the server has a name in it; leave that out, and give a `token`."
        )
    return url.rstrip("/")


def _plain(token: str) -> str:
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidProblem(
            "the token is empty, or has other than plain letters; copy it as it was printed."
        )
    return token
