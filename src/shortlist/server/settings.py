"""The settings of a server: access and limits."""

import hashlib
import ipaddress
import socket
from dataclasses import dataclass, field
from functools import cache, cached_property

from shortlist.server.proxies import Network
from shortlist.server.tokens import Tokens


@dataclass(frozen=True)
class Limits:
    """Limits per client, so that no client can block the others.

    Attributes
    ----------
    body
        Maximum size of a request in bytes.
    bodies
        Maximum total size of all requests in memory, in bytes.
    patience
        Timeout in seconds for receiving a complete request, and for a client that does not read its
        response.
    rate, burst
        Requests per second from one address in the long run, and at once.
    wrong_tokens
        Wrong tokens from one address at once; after that, one every ten seconds. The right token is never
        refused.
    streams
        Maximum number of event streams in total.
    connections
        Maximum number of connections from one address, other than a trusted proxy.
    plans
        Maximum number of plans that are being computed or queued.
    """

    body: int = 10 * 2**20
    bodies: int = 200 * 2**20
    patience: float = 30.0
    rate: float = 2000.0
    burst: int = 4000
    wrong_tokens: int = 10
    streams: int = 2000
    connections: int = 4000
    plans: int = 8


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Attributes
    ----------
    tokens
        The required tokens; None if everyone who can reach the server has full access.
    hosts
        Allowed host names, besides those of this machine and IP addresses.
    is_read_only
        Whether the server accepts no changes.
    proxies
        Trusted reverse proxies.
    port
        The port; the name of the cookie depends on it.
    phone
        The address at which phones on the same network reach the server; empty if they cannot.
    limits
        The limits per client.
    """

    tokens: Tokens | None = None
    hosts: frozenset[str] = frozenset()
    is_read_only: bool = False
    proxies: tuple[Network, ...] = ()
    port: int = 0
    phone: str = ""
    limits: Limits = field(default_factory=Limits)

    def is_own(self, host: str) -> bool:
        """Return whether this is one of our host names, to prevent DNS rebinding.

        IP addresses are always allowed: a page that was loaded from one was loaded from this server.
        """
        return host in self.hosts or host in own_names() or _is_address(host)

    @cached_property
    def cookie(self) -> str:
        """The name of the cookie. Browsers send cookies to all ports of a host: each server has its own."""
        where = f"{socket.gethostname()}:{self.port}"
        return f"shortlist-{hashlib.sha256(where.encode()).hexdigest()[:8]}"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address, which only this machine can reach."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback


@cache
def own_names() -> frozenset[str]:
    """Return the names of this machine, without network lookups."""
    name = socket.gethostname().lower()
    return frozenset({"localhost", name, f"{name}.local"})


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
