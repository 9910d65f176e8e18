"""The base class of middleware."""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from shortlist.server.body_limit import SAFE
from shortlist.server.settings import Settings


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
