"""Middleware that refuses invalid requests before their body is read.

Each class is an ASGI application that wraps another one and has one task; `guarded` puts them in order.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.server.authorization import Authenticate, Authorize
from shortlist.server.body_limit import SAFE, WholeRequests
from shortlist.server.errors import answer, unforeseen
from shortlist.server.guard import Guard
from shortlist.server.proxies import forwarded
from shortlist.server.rate_limit import RateLimit
from shortlist.server.settings import Settings

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


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return the application wrapped in all middleware, the first one outermost."""
    for guard in reversed(GUARDS):
        app = guard(app, settings)
    return app


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
