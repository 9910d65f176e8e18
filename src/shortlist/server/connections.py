"""Connections, with timeouts for idle ones."""

import asyncio
import contextlib
import socket
import time
from collections import Counter
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from shortlist.server.errors import answer
from shortlist.server.middleware import HEADERS
from shortlist.server.proxies import Network, is_trusted
from shortlist.server.rate_limit import network_of
from shortlist.server.settings import Limits, Settings

_LINGER = 2.0  # seconds for a client to read a response before it has sent its whole request
_SLOWEST = 1000  # bytes per second that a client must read while data are pending
_AHEAD = 64 * 2**10  # bytes that the kernel may buffer beyond what it can send now


def connections_with(settings: Settings) -> type["Connection"]:
    """Return the protocol class for the connections of a server."""
    about = {"limits": settings.limits, "proxies": settings.proxies, "n_from": Counter()}
    return type("ConnectionHere", (Connection,), about)


class Connection(H11Protocol):
    """Closes connections of clients that do not send a request, or do not read the response.

    A client that gets its response before it has sent its whole request may still read it, since some clients
    send first and read then.
    """

    limits: ClassVar[Limits]
    proxies: ClassVar[tuple[Network, ...]]
    n_from: ClassVar[Counter[str]]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, unless its client has too many."""
        super().connection_made(transport)
        self._socket = transport
        _see_readers(transport)
        self.transport = cast(asyncio.Transport, _Lingering(self))
        self.is_leaving = False
        self._asking_since: float | None = time.monotonic()
        self._stuck = (0, time.monotonic())  # the amount of unread data, and when
        address = self.client[0] if self.client else ""
        self._network = network_of(address)
        self.n_from[self._network] += 1
        is_full = self.n_from[self._network] > self.limits.connections
        if is_full and not is_trusted(address, self.proxies):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the count."""
        self.n_from[self._network] -= 1
        if not self.n_from[self._network]:
            del self.n_from[self._network]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process data of the client; record when it started its request."""
        if self.is_leaving:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._asking_since = None
        elif self._asking_since is None:
            self._asking_since = time.monotonic()

    def on_response_complete(self) -> None:
        """Wait for the next request, if there is one."""
        super().on_response_complete()
        self._asking_since = None

    def resume_writing(self) -> None:
        """Record that the client has read something."""
        self._stuck = (self._socket.get_write_buffer_size(), time.monotonic())
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Answer invalid HTTP with the common error format."""
        reply = answer(400, "BadRequest", "the request is not valid HTTP.", HEADERS | {"connection": "close"})
        events: list[Any] = [
            h11.Response(status_code=400, headers=reply.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(reply.body)),
            h11.EndOfMessage(),
        ]
        for event in events:
            self._socket.write(self.conn.send(event) or b"")
        self.transport.close()

    def look(self, now: float) -> None:
        """Close the connection if it is idle for too long."""
        left, (before, since) = self._socket.get_write_buffer_size(), self._stuck
        is_late = now - since > self.limits.patience
        if self._asking_since is not None and now - self._asking_since > self.limits.patience:
            self._socket.abort()
        elif left == 0 or left > before or (is_late and left <= before - _SLOWEST * self.limits.patience):
            self._stuck = (left, now)  # all was read, more was written, or enough was read
        elif is_late:
            self._socket.abort()

    def leave(self) -> None:
        """Close the connection; read data that are still arriving first, or the response would be lost."""
        if self.conn.their_state not in (h11.SEND_BODY, h11.ERROR) or self._socket.is_closing():
            self._socket.close()
        elif not self.is_leaving:
            self.is_leaving = True
            self._socket.write_eof()
            self._socket.resume_reading()
            self.loop.call_later(_LINGER, self._socket.close)


def _see_readers(transport: asyncio.Transport) -> None:
    """Keep the kernel from buffering megabytes: they would hide whether a slow client reads."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # on Linux and macOS
        with contextlib.suppress(OSError):
            found = transport.get_extra_info("socket")
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _AHEAD)


class _Lingering:
    """A transport that its connection closes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.leave()

    def is_closing(self) -> bool:
        return self._connection.is_leaving or self._connection._socket.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection._socket, name)
