"""How much each client may have: so much per second, and so much at once."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Scope

from shortlist.server.proxies import address_of

_MOST_CLIENTS = 10_000  # that are remembered


class Allowance:
    """So much per second for each client, and so much at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much there was, and when

    def take(self, client: str) -> bool:
        """Return whether a client may have one, and count it."""
        now = self.clock()
        left, at = self._left.get(client, (self.burst, now))
        left = min(self.burst, left + self.rate * (now - at))
        is_left = left >= 1.0
        self._left[client] = (left - 1.0 if is_left else left, now)
        self._left.move_to_end(client)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return is_left


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
    found = address_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
    return address if found is None else str(found)
