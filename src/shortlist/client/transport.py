"""HTTP requests to a server, with retries.

All requests are idempotent: sending one again changes nothing more. So a server may be restarted while
clients are working.
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

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two attempts
_PATIENCE, _FIRST_CONTACT = 120.0, 3.0  # seconds; if a server has never answered, the address may be wrong
_NOTABLE = 1.0  # seconds after which to report that the client is waiting
_KEPT = 4.0  # seconds to keep an idle connection; servers close it after five

Wait = Callable[[str], None]
"""``on_wait(words)`` is called once when a server does not answer and requests will be retried."""


class Connection:
    """A connection to a server. Thread-safe."""

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
        """Close the connection."""
        self._http.close()

    def get(self, path: str, **how: Any) -> Any:
        """Return the JSON at an address, as plain data."""
        return self._data(self._send("GET", path, **how))

    def text(self, path: str) -> str:
        """Return the text at an address."""
        return self._send("GET", path).text

    def post(self, path: str, body: dict[str, Any], **how: Any) -> Any:
        """Send plain data as JSON, and return the response. Numbers arrive bit for bit the same."""
        return self._data(self._send("POST", path, json=body, **how))

    @contextmanager
    def stream(self, path: str, timeout: httpx.Timeout) -> Iterator[httpx.Response]:
        """Yield a streaming response."""
        with self._http.stream("GET", self.url + path, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise Trouble(refusal(self.url, response), response)
            self._has_answered = True
            yield response

    def tries(self, patience: float | None = None) -> "Tries":
        """Return a retry schedule for one request."""
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
    """An error response of a server."""

    def __init__(self, error: ShortlistError, response: httpx.Response) -> None:
        super().__init__(str(error))
        self.error, self.status = error, response.status_code
        self.after = _seconds(response.headers.get("retry-after", ""))


class Tries:
    """The attempts of one request: the pauses grow, until `patience` is used up.

    If the server sends `Retry-After`, the next attempt is at that time, if it is within `patience`.
    """

    def __init__(
        self, url: str, patience: float | None, on_wait: Wait | None, *, has_answered: bool = True
    ) -> None:
        usual = _PATIENCE if has_answered else _FIRST_CONTACT
        self._url, self._patience, self._on_wait = url, usual if patience is None else patience, on_wait
        self._is_usual = patience is None
        self._start, self._pause, self._has_said = time.monotonic(), _FIRST, False
        self._random = random.Random()  # not the global generator, which measurements may use

    def failed(self, trouble: httpx.TransportError | Trouble) -> None:
        """Wait before the next attempt; raise the library's error if there is none."""
        seconds = time.monotonic() - self._start
        if isinstance(trouble, Trouble):
            error, after, is_final = trouble.error, trouble.after, trouble.status not in AGAIN
            if after and self._is_usual:
                self._patience = _PATIENCE  # the server is reachable
        else:
            error, after, is_final = unreachable(self._url, trouble, seconds), 0.0, False
        pause = max(
            after, self._pause * self._random.uniform(0.5, 1.0)
        )  # so that clients do not retry all at once
        if is_final or seconds + pause > self._patience:
            raise error from None
        if self._on_wait is not None and seconds + pause > _NOTABLE and not self._has_said:
            self._has_said = True
            self._on_wait(f"{error} Trying again for {self._patience - seconds:.0f} seconds.")
        time.sleep(pause)
        self._pause = min(2 * self._pause, _LONGEST)


def _seconds(after: str) -> float:
    """Return the delay in a `Retry-After` header, given as seconds or as a date (RFC 9110, 10.2.3)."""
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
            "the address of the server contains a user name; remove it, and give a `token` instead."
        )
    return url.rstrip("/")


def _plain(token: str) -> str:
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidProblem(
            "the token is empty, or contains non-ASCII characters; copy it exactly as printed."
        )
    return token
