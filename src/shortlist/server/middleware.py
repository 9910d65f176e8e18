"""Middleware: refuses what should not reach the application, before anything of a request is read.

Each class is an ASGI application around another one and sees to one thing; `guarded` puts them in order.
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


_MOST_CLIENTS = 10_000  # that are remembered


class RateLimits:
    """So much per second for each client, and so much at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much there was, and when

    def take(self, client: str) -> bool:
        """Return whether a client may have one, and count it."""
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
    """Return by what a client is counted: its address, or in IPv6 the network that it has."""
    client = scope.get("client")
    return network_of(client[0]) if client else ""


def network_of(address: str) -> str:
    """Return an address, or for one of IPv6 the network that its owner has.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8::1:7"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::', '192.0.2.7')
    """
    found = address_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
    return address if found is None else str(found)


# --- what browsers say of a request --------------------------------------------------------------------


_OWN = ("same-origin", "none")  # a page of ours, or no page at all: somebody typed the address


def host_of(given: str) -> str:
    """Return the name in a header `Host`, without a port; an empty one for what is no name.

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
    """Return whether a page of another site sends this; such pages may only lead a reader here."""
    is_followed = method in SAFE and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if any(site not in _OWN for site in headers.getlist("sec-fetch-site")) and not is_followed:
        return True
    host = headers.get("host", "").lower()
    return any(_place(origin) != host for origin in headers.getlist("origin"))


def cookie_of(headers: Headers, name: str) -> str:
    """Return a cookie; whatever other cookies there are does not matter."""
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def _place(origin: str) -> str:
    """Return the host and port of an origin; it is `null` for pages that are not to be known."""
    scheme, _, place = origin.lower().partition("://")
    return place if scheme in {"http", "https"} else "null"


# --- middleware ----------------------------------------------------------------------------------------


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load and do: our own scripts and nothing of anybody else."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""What every answer has."""

_LOGIN = "/login"
_STATIC = "/static/"
_CHANGES_NOTHING = ("/plan", _LOGIN, "/logout")  # though sent as POST


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
        """Pass a request on, or answer it; what else is sent along with it then is not read."""
        refusal = self.refusal(scope, Headers(scope=scope)) if scope["type"] == "http" else None
        if refusal is not None and scope["method"] not in SAFE:
            refusal.headers["connection"] = "close"
        await (refusal or self.app)(scope, receive, send)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
        """Return the answer to a request that must go no further; None if it may."""
        return None


class SafeHeaders(Guard):
    """Tells browsers what pages may do, and to keep nothing; answers what nobody else does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add to its answer; there is nothing here but HTTP."""
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
            raise  # to be noted by whoever runs this


class Head(Guard):
    """Answers HEAD as GET; uvicorn leaves the body out."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, as GET if it is HEAD."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", "state": {**scope.get("state", {}), "is_head": True}}
        await self.app(scope, receive, send)


class Forwarded(Guard):
    """Puts the client in place of a trusted proxy that passes on what it sends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on as its client sent it."""
        if scope["type"] == "http":
            scope = forwarded(scope, self.settings.proxies)
        await self.app(scope, receive, send)


class Authenticate(Guard):
    """Finds out what a client may do, by its token or its cookie; refuses nobody."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; a browser is told to forget a cookie that is of no use."""
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
    """Refuses requests of an address that sends more than its share.

    Those who have shown a token, and those who have not, each have a share of their own.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.allowance = RateLimits(settings.limits.rate, settings.limits.burst)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
        """Return the answer to one request too many."""
        if self.allowance.take(f"{client_of(scope)} {scope['state']['right']}"):
            return None
        return _too_many("there were too many requests from your address; wait a second.", 1)


class AllowedHosts(Guard):
    """Refuses requests under a name that is not ours, as when a foreign name was made to lead here."""

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
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

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a page of another site."""
        if not is_foreign(scope["method"], headers):
            return None
        said = "the request comes from a page of another site."
        return answer(HTTPStatus.FORBIDDEN, "ForeignOrigin", said)


class Authorize(Guard):
    """Lets people do what their token allows, and nothing be added where runs are only to be looked at.

    Wrong tokens are counted, also those in the form: whoever shows too many is told to wait. A right one is
    let in at any time, as others may have the same address.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.misses = RateLimits(0.1, settings.limits.misses)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to somebody who may not do this."""
        scope["state"]["missed"] = self.missed
        path, right = scope["path"], scope["state"]["right"]
        is_change = scope["method"] not in SAFE and path not in _CHANGES_NOTHING
        if is_change and self.settings.is_read_only:
            return answer(HTTPStatus.FORBIDDEN, "ReadOnly", "runs can only be looked at here.")
        is_open = path == _LOGIN or path.startswith(_STATIC)
        if is_open or right >= (Right.WRITE if is_change else Right.READ):
            return None
        is_wrong = right is Right.NOTHING and bearer_of(headers) is not None
        return (self.missed(scope) if is_wrong else None) or _unknown(scope, headers, right)

    def missed(self, scope: Scope) -> Response | None:
        """Count a wrong token; return what is answered if there were too many."""
        if self.misses.take(client_of(scope)):
            return None
        return _too_many("there were too many wrong tokens from your address; wait a minute.", 60)


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
    """Return the token that a request shows; None if it shows none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _unknown(scope: Scope, headers: Headers, right: Right) -> Response:
    """Return the answer to somebody whose token does not allow this, or who has none; browsers are led on."""
    if right is Right.READ:
        said = "this token allows to look, and not to add anything. Use the one that does."
        return answer(HTTPStatus.FORBIDDEN, "Forbidden", said)
    if "text/html" in headers.get("accept", "") and scope["method"] == "GET":
        path = scope["path"] if not scope["path"][1:].startswith(("/", "\\")) else "/"  # no other server
        asked = scope.get("query_string", b"").decode("ascii", "replace")
        wanted = quote(f"{quote(path)}?{asked}" if asked else quote(path))  # it is undone once on the way
        return RedirectResponse(f"{_LOGIN}?next={wanted}", HTTPStatus.SEE_OTHER)
    said = "show a token: send the header `Authorization: Bearer TOKEN`."
    if headers.get("authorization"):
        said = "what was shown is none of the tokens of this server; " + said
    return answer(HTTPStatus.UNAUTHORIZED, "Unauthorized", said, {"www-authenticate": "Bearer"})


def _too_many(said: str, seconds: int) -> Response:
    return answer(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", said, {"retry-after": str(seconds)})
