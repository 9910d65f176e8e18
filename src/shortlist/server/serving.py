"""Starting and stopping of the server."""

import contextlib
import signal
import socket
import time
from collections.abc import Sequence
from types import FrameType

import uvicorn
from fastapi import FastAPI

from shortlist.errors import InvalidProblem
from shortlist.server.app import AppContext, create_api
from shortlist.server.connections import Connection, connections_with
from shortlist.server.middleware import guarded
from shortlist.server.settings import Settings
from shortlist.store import Store

_GRACE = 3  # seconds for running requests when the server stops
_WAITING = 2048  # backlog of the listening socket
_TICKS = 10  # in tenths of a second: how often connections are checked


class Server(uvicorn.Server):
    """A uvicorn server that ends event streams when it stops, and closes idle connections."""

    def __init__(self, config: uvicorn.Config, context: AppContext) -> None:
        super().__init__(config)
        self.context = context

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop quietly on a signal; immediately if Ctrl-C is pressed again."""
        self.context.closing.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Check the connections; return whether to stop."""
        if counter % _TICKS == 0:
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.look(now)
        return await super().on_tick(counter)


def server_for(store: Store, settings: Settings, host: str = "127.0.0.1", port: int = 0) -> Server:
    """Return a server for a store; `run` starts it, and Ctrl-C or SIGTERM stops it."""
    app: FastAPI = create_api(store, settings)
    config = uvicorn.Config(
        guarded(app, settings),
        host=host,
        port=port,
        http=connections_with(settings),
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        proxy_headers=False,
        backlog=_WAITING,
    )
    raise_open_files()
    return Server(config, app.state.context)


def listening(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on all addresses of a host; raise InvalidProblem on failure."""
    found: list[socket.socket] = []
    try:
        for family, address in _addresses(host, port):
            place = (address, found[0].getsockname()[1] if found else port)
            found.append(socket.create_server(place, family=family, backlog=_WAITING))
    except (OSError, UnicodeError) as error:
        for one in found:
            one.close()
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidProblem(
            f"the server cannot listen on {host}, port {port}: {why}. Use another --port or --host."
        ) from None
    return found


def _addresses(host: str, port: int) -> Sequence[tuple[socket.AddressFamily, str]]:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, str(place[0])) for family, *_, place in found))


def raise_open_files() -> None:
    """Raise the limit of open files to its maximum, since each connection takes one."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  # not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
