"""What stands before the server: nothing reaches it that it should not have to deal with.

Each guard is an ASGI application around another one and sees to one thing. `guarded` puts them in order.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.server.settings import Settings
from shortlist.server.tokens import Right
from shortlist.server.trouble import answer

COOKIE = "shortlist"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load and do: our own scripts and nothing of anybody else."""

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_SAFE = {"GET", "HEAD", "OPTIONS"}
_OPEN_TO_ALL = ("/login", "/static/")  # what whoever has shown no token yet must be able to see
_CHANGES_NOTHING = ("/plan", "/login", "/logout")  # though sent as POST
_BODIES = ("application/json", "text/csv")
_MOST_CLIENTS = 10_000  # addresses that are remembered


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return the application with all guards before it, the first one outermost."""
    for guard in reversed(GUARDS):
        app = guard(app, settings)
    return app


class Guard:
    """Passes requests on, or refuses them; a guard says only which."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        refusal = self.refusal(scope, Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self.app)(scope, receive, send)

    def refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:  # noqa: ARG002
        """Return the answer to a request that must go no further; None if it may."""
        return None


class SafeHeaders(Guard):
    """Tells browsers what pages may do, and to keep nothing of what is not ours to give away."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add to its answer."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


class FewEnough(Guard):
    """Refuses requests of an address that sends more than its share."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.allowance = Allowance(settings.limits.rate, settings.limits.burst)

    def refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:  # noqa: ARG002
        """Return the answer to one request too many."""
        if self.allowance.take(_address(scope)):
            return None
        said = "there were too many requests from your address; wait a second."
        return answer(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", said, {"retry-after": "1"})


class OwnName(Guard):
    """Refuses requests under a name that is not ours, as when a foreign name was made to lead here."""

    def refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:  # noqa: ARG002
        """Return the answer to a request that was meant for somebody else."""
        given = headers.getlist("host")
        if len(given) == 1 and self.settings.is_own(host_of(given[0])):
            return None
        said = (
            "the server is not known by the name under which it was called. If the name is right, start it "
            "with --allow-host NAME."
        )
        return answer(HTTPStatus.MISDIRECTED_REQUEST, "ForeignHost", said)


class SameSite(Guard):
    """Refuses what pages of other sites send, or load from here; they may only lead a reader here."""

    def refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """Return the answer to a page of another site."""
        if not _is_foreign(scope, headers):
            return None
        said = "the request comes from a page of another site."
        return answer(HTTPStatus.FORBIDDEN, "ForeignOrigin", said)


class Known(Guard):
    """Lets people do what their token allows, and nothing be added where runs are only to be looked at."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.misses = Allowance(0.1, settings.limits.misses)

    def refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """Return the answer to somebody who may not do this."""
        is_change = scope["method"] not in _SAFE and scope["path"] not in _CHANGES_NOTHING
        if is_change and self.settings.is_read_only:
            return answer(HTTPStatus.FORBIDDEN, "ReadOnly", "runs can only be looked at here.")
        if not self.misses.is_left(_address(scope)):
            said = "there were too many wrong tokens from your address; wait a minute."
            return answer(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", said, {"retry-after": "60"})
        right = self._right(scope, headers)
        scope.setdefault("state", {})["right"] = right
        if scope["path"].startswith(_OPEN_TO_ALL) or right >= (Right.WRITE if is_change else Right.READ):
            return None
        if right is Right.READ:
            said = "this token allows to look, and not to add anything. Use the one that does."
            return answer(HTTPStatus.FORBIDDEN, "Forbidden", said)
        if "text/html" in headers.get("accept", "") and scope["method"] == "GET":
            return RedirectResponse(f"/login?next={quote(scope['path'])}", HTTPStatus.SEE_OTHER)
        said = "show a token: send the header `Authorization: Bearer TOKEN`."
        return answer(HTTPStatus.UNAUTHORIZED, "Unauthorized", said, {"www-authenticate": "Bearer"})

    def _right(self, scope: Scope, headers: Headers) -> Right:
        tokens = self.settings.tokens
        if tokens is None:
            return Right.READ if self.settings.is_read_only else Right.WRITE
        given = headers.get("authorization")
        if given is None:
            return tokens.right_of_cookie(_cookie(headers))
        right = tokens.right_of(given.removeprefix("Bearer ").strip())
        if right is Right.NOTHING:
            self.misses.take(_address(scope))
        return right


class Whole(Guard):
    """Lets only whole requests through: not too large, in time, and in a form that is known."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive a request, and pass it on."""
        if scope["type"] != "http" or scope["method"] in _SAFE:
            await self.app(scope, receive, send)
            return
        headers, limits = Headers(scope=scope), self.settings.limits
        try:
            body = await asyncio.wait_for(self._read(headers, receive), limits.patience)
        except _UnknownForm:
            refusal = _cut_off(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send {' or '.join(_BODIES)}.")
        except TimeoutError:
            said = f"the request did not arrive within {limits.patience:g} seconds."
            refusal = _cut_off(HTTPStatus.REQUEST_TIMEOUT, said)
        except _TooLarge:
            said = f"the request is larger than {limits.body:,} bytes; send it in parts."
            refusal = _cut_off(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)
        except _Gone:
            return
        else:
            await self.app(scope, _replayed(body, receive), send)
            return
        await refusal(scope, receive, send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        if headers.get("content-type", _BODIES[0]).partition(";")[0].strip().lower() not in _BODIES:
            raise _UnknownForm
        if int(headers.get("content-length", "0")) > self.settings.limits.body:  # h11 has checked the digits
            raise _TooLarge
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.settings.limits.body:
                raise _TooLarge
            if not message.get("more_body", False):
                return b"".join(parts)


GUARDS: list[type[Guard]] = [SafeHeaders, FewEnough, OwnName, SameSite, Known, Whole]


class Allowance:
    """So much per second for each client, and so much at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much there was, and when

    def is_left(self, client: str) -> bool:
        """Return whether a client may have one."""
        return self._now(client) >= 1.0

    def take(self, client: str) -> bool:
        """Return whether a client may have one, and count it."""
        left = self._now(client)
        is_left = left >= 1.0
        self._left[client] = (left - 1.0 if is_left else left, self.clock())
        self._left.move_to_end(client)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return is_left

    def _now(self, client: str) -> float:
        left, at = self._left.get(client, (self.burst, self.clock()))
        return min(self.burst, left + self.rate * (self.clock() - at))


class _UnknownForm(Exception):
    """What is sent is neither JSON nor a sheet."""


class _TooLarge(Exception):
    """More is sent than is taken."""


class _Gone(Exception):
    """Nobody waits for an answer any more."""


def _cut_off(status: HTTPStatus, said: str) -> ASGIApp:
    """Return an answer after which no more is read."""
    return answer(status, status.phrase.title().replace(" ", ""), said, {"connection": "close"})


def host_of(given: str) -> str:
    """Return the name in a header `Host`, without a port."""
    try:
        return (urlsplit(f"//{given}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_foreign(scope: Scope, headers: Headers) -> bool:
    """Return whether a page of another site sends this, by what browsers say of it."""
    is_reading = scope["method"] in _SAFE
    is_followed = is_reading and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"} and not is_followed:
        return True
    origin = headers.get("origin")
    if origin is None or (is_reading and is_followed):
        return False
    return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return how the application receives a body that has been read."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""
