"""Middleware that refuses invalid requests before their body is read.

Each class is an ASGI application that wraps another one and has one task; `guarded` puts them in order.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.server.body_limit import SAFE, WholeRequests
from shortlist.server.errors import answer, unforeseen
from shortlist.server.proxies import address_of, forwarded
from shortlist.server.settings import Settings
from shortlist.server.tokens import Right, Sessions

# --- rate limits ---------------------------------------------------------------------------------------


_MOST_CLIENTS = 10_000  # clients that are remembered


class RateLimits:
    """A token bucket for each client: a rate per second, and a burst."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # the level of the bucket, and when

    def take(self, client: str) -> bool:
        """Return whether a client may make a request, and count it."""
        now = self.clock()
        left, at = self._left.get(client, (self.burst, now))
        left = min(self.burst, left + self.rate * (now - at))
        is_left = left >= 1.0
        self._left[client] = (left - 1.0 if is_left else left, now)
        self._left.move_to_end(client)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return is_left


def client_of(scope: Scope) -> str:
    """Return the key that a client is counted by: its IPv4 address, or its IPv6 network."""
    client = scope.get("client")
    return network_of(client[0]) if client else ""


def network_of(address: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8::1:7"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::', '192.0.2.7')
    """
    found = address_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
    return address if found is None else str(found)


# --- request headers -----------------------------------------------------------------------------------


_OWN = ("same-origin", "none")  # one of our pages, or none: the user typed the address


def host_of(given: str) -> str:
    """Return the host name in a `Host` header, without the port; empty if it is invalid.

    Examples
    --------
    >>> host_of("Lab.example.:8765"), host_of("[::1]:8765"), host_of("a@b"), host_of("[")
    ('lab.example', '::1', '', '')
    """
    if "@" in given or "/" in given:
        return ""
    try:
        parts = urlsplit(f"//{given}")
        _ = parts.port  # which must be a number
    except ValueError:
        return ""
    return (parts.hostname or "").rstrip(".")


def is_foreign(method: str, headers: Headers) -> bool:
    """Return whether a page of another site sends this request; such pages may only link here."""
    is_followed = method in SAFE and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if any(site not in _OWN for site in headers.getlist("sec-fetch-site")) and not is_followed:
        return True
    host = headers.get("host", "").lower()
    return any(_place(origin) != host for origin in headers.getlist("origin"))


def cookie_of(headers: Headers, name: str) -> str:
    """Return a cookie by name; other cookies are ignored."""
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def _place(origin: str) -> str:
    """Return the host and port of an origin; it is `null` for opaque origins."""
    scheme, _, place = origin.lower().partition("://")
    return place if scheme in {"http", "https"} else "null"


# --- middleware ----------------------------------------------------------------------------------------


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages: only our own scripts."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""The headers of every response."""

_LOGIN = "/login"
_STATIC = "/static/"
_CHANGES_NOTHING = ("/plan", _LOGIN, "/logout")  # read-only, although sent as POST


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return the application wrapped in all middleware, the first one outermost."""
    for guard in reversed(GUARDS):
        app = guard(app, settings)
    return app


class Guard:
    """Base class of middleware that passes requests on, or refuses them."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it without reading its body."""
        refusal = self.refusal(scope, Headers(scope=scope)) if scope["type"] == "http" else None
        if refusal is not None and scope["method"] not in SAFE:
            refusal.headers["connection"] = "close"
        await (refusal or self.app)(scope, receive, send)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
        """Return the response to a refused request; None to pass it on."""
        return None


class SafeHeaders(Guard):
    """Adds security and cache headers to responses; answers unhandled errors."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add headers to its response; only HTTP is supported."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        is_begun = False

        async def with_headers(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
        except Exception:
            if scope["type"] == "http" and not is_begun:
                await unforeseen()(scope, receive, with_headers)
            raise  # for the server's log


class Head(Guard):
    """Handles HEAD as GET; uvicorn omits the body."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, as GET if it is HEAD."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", "state": {**scope.get("state", {}), "is_head": True}}
        await self.app(scope, receive, send)


class Forwarded(Guard):
    """Replaces the address of a trusted proxy by that of its client."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with the address of its client."""
        if scope["type"] == "http":
            scope = forwarded(scope, self.settings.proxies)
        await self.app(scope, receive, send)


class Authenticate(Guard):
    """Determines the rights of a client from its token or cookie; refuses no request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; delete an invalid cookie in the browser."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cookie = cookie_of(headers, self.settings.cookie)
        right = self._right(headers, cookie)
        is_stale = bool(cookie) and self.sessions.right_of(cookie) is Right.NOTHING
        state = {"sessions": self.sessions, "right": right, "cookie": cookie}

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and is_stale:
                found = MutableHeaders(scope=message)
                if "set-cookie" not in found:  # it may have logged in just now
                    gone = f"{self.settings.cookie}=; Max-Age=0; Path=/; HttpOnly; SameSite=strict"
                    found.append("set-cookie", gone)
            await send(message)

        await self.app({**scope, "state": {**scope.get("state", {}), **state}}, receive, noted)

    def _right(self, headers: Headers, cookie: str) -> Right:
        tokens = self.settings.tokens
        if tokens is None:
            return Right.READ if self.settings.is_read_only else Right.WRITE
        shown = bearer_of(headers)
        return self.sessions.right_of(cookie) if shown is None else tokens.right_of(shown)


class RateLimit(Guard):
    """Refuses requests of an address that exceeds its rate limit.

    Requests with and without a token are counted separately.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.allowance = RateLimits(settings.limits.rate, settings.limits.burst)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
        """Return a 429 response if the rate limit is exceeded."""
        if self.allowance.take(f"{client_of(scope)} {scope['state']['right']}"):
            return None
        return _too_many("too many requests from your address; wait a second.", 1)


class AllowedHosts(Guard):
    """Refuses requests with an unknown host name, to prevent DNS rebinding."""

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
        """Return the response to a request with an unknown host name."""
        given = headers.getlist("host")
        if len(given) == 1 and self.settings.is_own(host_of(given[0])):
            return None
        said = (
            "the host name of this request is not allowed. If it is right, start the server with "
            "--allow-host NAME."
        )
        return answer(HTTPStatus.MISDIRECTED_REQUEST, "ForeignHost", said)


class SameSite(Guard):
    """Refuses requests from pages of other sites; such pages may only link here."""

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request from another site."""
        if not is_foreign(scope["method"], headers):
            return None
        said = "the request comes from a page of another site."
        return answer(HTTPStatus.FORBIDDEN, "ForeignOrigin", said)


class Authorize(Guard):
    """Refuses requests that the token does not allow, and all changes on a read-only server.

    Wrong tokens are counted, also those in the login form: after too many, the client must wait. A right
    token is always accepted, since several users may have the same address.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.misses = RateLimits(0.1, settings.limits.misses)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that is not allowed."""
        scope["state"]["missed"] = self.missed
        path, right = scope["path"], scope["state"]["right"]
        is_change = scope["method"] not in SAFE and path not in _CHANGES_NOTHING
        if is_change and self.settings.is_read_only:
            return answer(HTTPStatus.FORBIDDEN, "ReadOnly", "this server is read-only.")
        is_open = path == _LOGIN or path.startswith(_STATIC)
        if is_open or right >= (Right.WRITE if is_change else Right.READ):
            return None
        is_wrong = right is Right.NOTHING and bearer_of(headers) is not None
        return (self.missed(scope) if is_wrong else None) or _unknown(scope, headers, right)

    def missed(self, scope: Scope) -> Response | None:
        """Count a wrong token; return the response if there were too many."""
        if self.misses.take(client_of(scope)):
            return None
        return _too_many("too many wrong tokens from your address; wait a minute.", 60)


_Maker: TypeAlias = Callable[[ASGIApp, Settings], ASGIApp]

GUARDS: list[_Maker] = [
    SafeHeaders,
    Head,
    Forwarded,
    Authenticate,
    RateLimit,
    AllowedHosts,
    SameSite,
    Authorize,
    WholeRequests,
]


def bearer_of(headers: Headers) -> str | None:
    """Return the bearer token of a request; None if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _unknown(scope: Scope, headers: Headers, right: Right) -> Response:
    """Return the response to a request without a sufficient token; browsers are redirected to the login."""
    if right is Right.READ:
        said = "this token is read-only; use the write token."
        return answer(HTTPStatus.FORBIDDEN, "Forbidden", said)
    if "text/html" in headers.get("accept", "") and scope["method"] == "GET":
        path = scope["path"] if not scope["path"][1:].startswith(("/", "\\")) else "/"  # no other server
        asked = scope.get("query_string", b"").decode("ascii", "replace")
        wanted = quote(f"{quote(path)}?{asked}" if asked else quote(path))  # decoded once on the way
        return RedirectResponse(f"{_LOGIN}?next={wanted}", HTTPStatus.SEE_OTHER)
    said = "a token is required: send the header `Authorization: Bearer TOKEN`."
    if headers.get("authorization"):
        said = "this token is not valid on this server; send a valid one in `Authorization: Bearer TOKEN`."
    return answer(HTTPStatus.UNAUTHORIZED, "Unauthorized", said, {"www-authenticate": "Bearer"})


def _too_many(said: str, seconds: int) -> Response:
    return answer(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", said, {"retry-after": str(seconds)})
