"""How a server is set up: what it serves, to whom, and how much of it."""

import hashlib
import ipaddress
import socket
from dataclasses import dataclass, field
from functools import cache, cached_property

from shortlist.server.proxies import Network
from shortlist.server.tokens import Tokens


@dataclass(frozen=True)
class Limits:
    """How much is taken from one client, so that there is enough for the others.

    Attributes
    ----------
    body
        The most bytes of a request.
    bodies
        The most bytes of all requests that are being received or dealt with.
    patience
        Within how many seconds a request must have arrived whole, and how long an answer may lie waiting
        before its reader has taken some of it.
    rate, burst
        Requests per second from one address in the long run, and at once.
    misses
        Wrong tokens from one address at once; after that, one every ten seconds. The right one is
        never refused.
    streams
        The most streams of events in all.
    connections
        The most connections from one address, other than a trusted proxy.
    plans
        The most plans that are being worked out or wait for it.
    """

    body: int = 10 * 2**20
    bodies: int = 200 * 2**20
    patience: float = 30.0
    rate: float = 2000.0
    burst: int = 4000
    misses: int = 10
    streams: int = 2000
    connections: int = 4000
    plans: int = 8


@dataclass(frozen=True)
class Settings:
    """What a server may do.

    Attributes
    ----------
    tokens
        What must be shown; None where everybody who reaches the server may do everything.
    hosts
        The names by which it may be called, beside those of this machine and addresses in numbers.
    is_read_only
        Whether runs can only be looked at.
    proxies
        Reverse proxies that are believed what they say of their clients.
    port
        Where it listens; the cookie is named after it.
    limits
        How much is taken from one client.
    """

    tokens: Tokens | None = None
    hosts: frozenset[str] = frozenset()
    is_read_only: bool = False
    proxies: tuple[Network, ...] = ()
    port: int = 0
    limits: Limits = field(default_factory=Limits)

    def is_own(self, host: str) -> bool:
        """Return whether this is one of our names, so that no name of somebody else leads a browser here.

        An address in numbers is nobody's name; a page that was loaded from it was loaded from here.
        """
        return host in self.hosts or host in own_names() or _is_address(host)

    @cached_property
    def cookie(self) -> str:
        """The name of the cookie. Browsers send cookies to all ports of a host: each server has its own."""
        where = f"{socket.gethostname()}:{self.port}"
        return f"shortlist-{hashlib.sha256(where.encode()).hexdigest()[:8]}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a server that listens there."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback


@cache
def own_names() -> frozenset[str]:
    """Return the names of this machine, as it knows them itself: nobody else is asked."""
    name = socket.gethostname().lower()
    return frozenset({"localhost", name, f"{name}.local"})


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
