"""A server that listens: how it starts, and how it ends."""

import asyncio
import contextlib
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from shortlist.server.app import create_api
from shortlist.server.guards import guarded
from shortlist.server.settings import Settings
from shortlist.store import Store

_GRACE = 5  # seconds for what is under way when the server ends
_HEADERS_WITHIN = 30.0  # seconds within which a client must have said what it wants


class _Protocol(H11Protocol):
    """Hangs up on clients who connect and then do not say what they want."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._hang_up = self.loop.call_later(_HEADERS_WITHIN, self._if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._hang_up.cancel()
        super().connection_lost(exc)

    def _if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


class _Server(uvicorn.Server):
    """Ends streams of events when it is asked to end; they would go on for ever."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self._closing = closing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._closing.set()
        super().handle_exit(sig, frame)


def server_for(store: Store, settings: Settings, host: str, port: int) -> uvicorn.Server:
    """Return a server of a store, which `run` starts; it ends with Ctrl-C or SIGTERM."""
    app: FastAPI = create_api(store, settings)
    config = uvicorn.Config(
        guarded(app, settings),
        host=host,
        port=port,
        http=_Protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        proxy_headers=False,
    )
    raise_open_files()
    return _Server(config, app.state.house.closing)


def raise_open_files() -> None:
    """Allow as many connections as the system lets us have; each takes a file."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  # not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
