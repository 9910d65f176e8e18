"""Rate limits: how many requests a client may send.

The same rule limits the number of wrong tokens: see `Authorize` in `authorization.py`, which counts them.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from shortlist.server.errors import answer
from shortlist.server.guard import Guard
from shortlist.server.proxies import address_of
from shortlist.server.settings import Settings

_MOST_CLIENTS = 10_000  # clients that are remembered


class RateLimits:
    """A token bucket for each client: a rate per second, and a burst."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # the level of the bucket, and when

    def take(self, client: str) -> bool:
        """Return whether a client may make a request, and count it."""
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
    """Return the key that a client is counted by: its IPv4 address, or its IPv6 network."""
    client = scope.get("client")
    return network_of(client[0]) if client else ""


def network_of(address: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8::1:7"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::', '192.0.2.7')
    """
    found = address_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
    return address if found is None else str(found)


class RateLimit(Guard):
    """Refuses requests of an address that exceeds its rate limit.

    Requests with and without a token are counted separately.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app, settings)
        self.allowance = RateLimits(settings.limits.rate, settings.limits.burst)

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:  # noqa: ARG002
        """Return a 429 response if the rate limit is exceeded."""
        if self.allowance.take(f"{client_of(scope)} {scope['state']['right']}"):
            return None
        return too_many("too many requests from your address; wait a second.", 1)


def too_many(said: str, seconds: int) -> Response:
    """Return the response to one request too many."""
    return answer(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", said, {"retry-after": str(seconds)})
