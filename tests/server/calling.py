"""The server's application, called as a server calls it, without one."""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import httpx
from starlette.types import ASGIApp, Message

BASE = "http://127.0.0.1:8765"


class Calls(httpx.BaseTransport):
    """Passes requests to an application, one by one, from an address."""

    def __init__(self, app: ASGIApp, address: str) -> None:
        self.app, self.address = app, address
        self.loop = asyncio.new_event_loop()
        self._wishes: asyncio.Queue[Message] = asyncio.Queue()
        self._life = self.loop.create_task(self._live())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return what the application answers."""
        return self.loop.run_until_complete(self._answer(request))

    def close(self) -> None:
        """Let the application end."""
        self._wishes.put_nowait({"type": "lifespan.shutdown"})
        self.loop.run_until_complete(self._life)
        self.loop.close()

    async def _live(self) -> None:
        async def send(message: Message) -> None:
            assert message["type"].endswith(".complete"), message

        self._wishes.put_nowait({"type": "lifespan.startup"})
        await self.app({"type": "lifespan", "asgi": {"version": "3.0"}}, self._wishes.get, send)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, Iterable)
        parts = iter(request.stream)
        sent: list[Message] = []

        async def receive() -> Message:
            part = next(parts, None)
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        async def send(message: Message) -> None:
            sent.append(message)

        try:
            await self.app(self._scope(request), receive, send)
        except Exception:
            assert sent, "an error was not answered"
        start, *rest = sent
        body = b"".join(message.get("body", b"") for message in rest)
        return httpx.Response(start["status"], headers=start["headers"], content=body)

    def _scope(self, request: httpx.Request) -> dict[str, Any]:
        target = request.extensions.get("target", request.url.raw_path)
        path, _, query = target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8765),
            "client": (self.address, 5000),
            "scheme": "http",
            "method": request.method,
            "root_path": "",
            "path": unquote(path.decode()),
            "raw_path": path,
            "query_string": query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
        }


class Caller(httpx.Client):
    """A client of an application."""

    def __init__(self, app: ASGIApp, address: str = "192.0.2.1") -> None:
        self.calls = Calls(app, address)
        super().__init__(transport=self.calls, base_url=BASE)

    def exactly(self, target: str, method: str = "GET", **headers: str) -> httpx.Response:
        """Return what is answered at an address that is sent as it is written here."""
        return self.request(method, "/", headers=headers, extensions={"target": target.encode()})

    def __enter__(self) -> "Caller":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.close()
