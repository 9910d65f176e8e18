"""The last guard: only whole requests get through, in time, not too large, and in a form that is known."""

import asyncio
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.server.errors import answer
from shortlist.server.settings import Settings

BODIES = ("application/json", "text/csv")
SAFE = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing."""

_OF_STRANGERS = 10_000  # bytes; what somebody who has shown no token yet may send


class WholeRequests:
    """Receives a request, and passes it on when it is there."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.limits = app, settings.limits
        self._n_held = 0  # bytes of all requests that are here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive a request, and pass it on; or refuse it, and read no more of it."""
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
        """Keep a part of a request; refuse it if it becomes too large, or all that are here do."""
        body.parts.append(part)
        body.size += len(part)
        self._n_held += len(part)
        if body.size > most:
            raise _too_large(most)
        if self._n_held > self.limits.bodies and body.size < self._n_held:
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too much is sent at once; try again.")


def _refuse(method: str, headers: Headers, length: str, most: int) -> None:
    """Refuse a request whose headers say that it will not do."""
    is_empty = length.strip("0") == "" and "transfer-encoding" not in headers
    if is_empty:
        return
    if method in SAFE:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"nothing can be sent along with {method}.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() not in BODIES:
        said = f"send {' or '.join(BODIES)}, and say so in the header Content-Type."
        raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, said)
    if not (length.isascii() and length.isdigit()):
        raise _Refused(HTTPStatus.BAD_REQUEST, "the length of the request is no number.")
    if len(length) > 18 or int(length) > most:
        raise _too_large(most)


class _Body:
    """What has arrived of a request."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def joined(self) -> bytes:
        """Return it in one, and keep it no longer."""
        parts, self.parts = self.parts, []
        return b"".join(parts)


class _Refused(Exception):
    """A request goes no further."""

    def __init__(self, status: HTTPStatus, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said


class _Gone(Exception):
    """Nobody waits for an answer any more."""


def _too_large(most: int) -> _Refused:
    said = f"the request is larger than {most:,} bytes; send it in parts."
    return _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)


def _cut_off(status: HTTPStatus, said: str) -> ASGIApp:
    """Return an answer after which no more is read."""
    return answer(status, status.phrase.title().replace(" ", ""), said, {"connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return how the application receives a body that has been read."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
