"""How much each client may have: so much per second, and so much at once."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Scope

_MOST_CLIENTS = 10_000  # that are remembered


class Allowance:
    """So much per second for each client, and so much at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much there was, and when

    def is_left(self, client: str) -> bool:
        """Return whether a client may have one."""
        return self._now(client) >= 1.0

    def take(self, client: str) -> bool:
        """Return whether a client may have one, and count it."""
        left = self._now(client)
        is_left = left >= 1.0
        self._set(client, left - 1.0 if is_left else left)
        return is_left

    def give_back(self, client: str) -> None:
        """Count one less."""
        self._set(client, min(self.burst, self._now(client) + 1.0))

    def _set(self, client: str, left: float) -> None:
        self._left[client] = (left, self.clock())
        self._left.move_to_end(client)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)

    def _now(self, client: str) -> float:
        left, at = self._left.get(client, (self.burst, self.clock()))
        return min(self.burst, left + self.rate * (self.clock() - at))


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
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
