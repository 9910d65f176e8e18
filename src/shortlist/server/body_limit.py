"""Middleware that passes on only complete requests: in time, not too large, and of a known type."""

import asyncio
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.server.errors import answer
from shortlist.server.settings import Settings

BODIES = ("application/json", "text/csv")
SAFE = ("GET", "HEAD", "OPTIONS")
"""The HTTP methods that change nothing."""

_OF_STRANGERS = 10_000  # bytes; the limit for requests without a token


class WholeRequests:
    """Receives a request, and passes it on when it is complete."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.limits = app, settings.limits
        self._n_held = 0  # bytes of all requests in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive a request, and pass it on; or refuse it, and stop reading it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body()
        try:
            await asyncio.wait_for(self._read(scope, body, receive), self.limits.patience)
        except TimeoutError:
            said = f"the request did not arrive within {self.limits.patience:g} seconds."
            await _cut_off(HTTPStatus.REQUEST_TIMEOUT, said)(scope, receive, send)
        except _Refused as refused:
            await _cut_off(refused.status, refused.said)(scope, receive, send)
        except _Gone:
            pass
        else:
            await self.app(scope, _replayed(body.joined(), receive) if body.parts else receive, send)
        finally:
            self._n_held -= body.size

    async def _read(self, scope: Scope, body: "_Body", receive: Receive) -> None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if length.strip("0") == "" and "transfer-encoding" not in headers and scope["method"] in SAFE:
            return
        most = _OF_STRANGERS if scope["path"] == "/login" else self.limits.body
        _refuse(scope["method"], headers, length, most)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            self._hold(body, message.get("body", b""), most)
            if not message.get("more_body", False):
                return

    def _hold(self, body: "_Body", part: bytes, most: int) -> None:
        """Store a part of a request; refuse it if it, or all requests together, become too large."""
        body.parts.append(part)
        body.size += len(part)
        self._n_held += len(part)
        if body.size > most:
            raise _too_large(most)
        if self._n_held > self.limits.bodies and body.size < self._n_held:
            raise _Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "the server is receiving too much data; try again later."
            )


def _refuse(method: str, headers: Headers, length: str, most: int) -> None:
    """Refuse a request by its headers."""
    is_empty = length.strip("0") == "" and "transfer-encoding" not in headers
    if is_empty:
        return
    if method in SAFE:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"a {method} request must not have a body.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() not in BODIES:
        said = f"the Content-Type must be {' or '.join(BODIES)}."
        raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, said)
    if not (length.isascii() and length.isdigit()):
        raise _Refused(HTTPStatus.BAD_REQUEST, "the Content-Length is not a number.")
    if len(length) > 18 or int(length) > most:
        raise _too_large(most)


class _Body:
    """The received part of a request."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def joined(self) -> bytes:
        """Return the whole body, and release it."""
        parts, self.parts = self.parts, []
        return b"".join(parts)


class _Refused(Exception):
    """Raised to refuse a request."""

    def __init__(self, status: HTTPStatus, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said


class _Gone(Exception):
    """Raised when the client has disconnected."""


def _too_large(most: int) -> _Refused:
    said = f"the request is larger than {most:,} bytes; send it in parts."
    return _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)


def _cut_off(status: HTTPStatus, said: str) -> ASGIApp:
    """Return a response that closes the connection."""
    return answer(status, status.phrase.title().replace(" ", ""), said, {"connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` function for a body that has been read."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
