"""Who may do what: finds the rights of a client, and refuses requests that they do not allow."""

from http import HTTPStatus
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.server.body_limit import SAFE
from shortlist.server.errors import answer
from shortlist.server.guard import Guard
from shortlist.server.rate_limit import RateLimits, client_of, too_many
from shortlist.server.settings import Settings
from shortlist.server.tokens import Right, Sessions

_LOGIN = "/login"
_STATIC = "/static/"
_CHANGES_NOTHING = ("/plan", _LOGIN, "/logout")  # read-only, although sent as POST


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
        is_by_cookie = self.settings.tokens is not None and bearer_of(headers) is None
        state = {"sessions": self.sessions, "right": right, "cookie": cookie, "is_by_cookie": is_by_cookie}

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


class Authorize(Guard):
    """Refuses requests that the token does not allow, and all changes on a read-only server.

    Wrong tokens are counted, also those in the login form: after too many, the client must wait. A right
    token is always accepted, since several users may have the same address.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.wrong_tokens = RateLimits(0.1, settings.limits.wrong_tokens)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that is not allowed."""
        scope["state"]["count_wrong_token"] = self.count_wrong_token
        path, right = scope["path"], scope["state"]["right"]
        is_change = scope["method"] not in SAFE and path not in _CHANGES_NOTHING
        if is_change and self.settings.is_read_only:
            return answer(HTTPStatus.FORBIDDEN, "ReadOnly", "this server is read-only.")
        is_open = path == _LOGIN or path.startswith(_STATIC)
        if is_open or right >= (Right.WRITE if is_change else Right.READ):
            return None
        is_wrong = right is Right.NOTHING and bearer_of(headers) is not None
        return (self.count_wrong_token(scope) if is_wrong else None) or _unknown(scope, headers, right)

    def count_wrong_token(self, scope: Scope) -> Response | None:
        """Count a wrong token; return the response if there were too many."""
        if self.wrong_tokens.take(client_of(scope)):
            return None
        return too_many("too many wrong tokens from your address; wait a minute.", 60)


def still_allowed(request: Request) -> bool:
    """Return whether the browser that sent a request is still logged in; true if that was not needed."""
    state = request.state
    return not getattr(state, "is_by_cookie", False) or state.sessions.right_of(state.cookie) >= Right.READ


def cookie_of(headers: Headers, name: str) -> str:
    """Return a cookie by name; other cookies are ignored."""
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


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
