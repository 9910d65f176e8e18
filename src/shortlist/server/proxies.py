"""The X-Forwarded headers of trusted reverse proxies.

Anyone can send these headers, so they are used only if they come from an address that the operator trusts.
The header `Forwarded` is ignored: a proxy that does not know it would pass on a forged one.
"""

import ipaddress
from collections.abc import Iterable
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import Scope

from shortlist.errors import InvalidProblem

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


def networks_of(given: Iterable[str]) -> tuple[Network, ...]:
    """Return the addresses and networks of proxies; raise InvalidProblem if one is invalid."""
    found = []
    for text in given:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise InvalidProblem(
                f"--trust-proxy is {text!r}; it must be an IP address such as 127.0.0.1, or a network such "
                f"as 10.0.0.0/8: {error}."
            ) from None
    return tuple(found)


def is_trusted(address: str, proxies: Iterable[Network]) -> bool:
    """Return whether an address is that of a trusted proxy."""
    found = address_of(address)
    return found is not None and any(found in proxy for proxy in proxies)


def forwarded(scope: Scope, proxies: Iterable[Network]) -> Scope:
    """Return a request as its client sent it to the proxy: with the client's address, and http or https.

    Every proxy adds the address of its own client at the end of `X-Forwarded-For`. So the client is the last
    address there that is not a trusted proxy; addresses before it may be forged.
    """
    peer = scope.get("client")
    if not peer or not is_trusted(peer[0], proxies):
        return scope
    headers = Headers(scope=scope)
    client = peer[0]
    for text in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
        address = address_of(text.strip())
        if address is None:
            break
        client = str(address)
        if not is_trusted(client, proxies):
            break
    scheme = ",".join(headers.getlist("x-forwarded-proto")).rpartition(",")[2].strip().lower()
    scheme = scheme if scheme in {"http", "https"} else scope["scheme"]
    return {**scope, "client": (client, 0), "scheme": scheme}


def address_of(text: str) -> _Address | None:
    """Return an IP address, with IPv4-mapped IPv6 converted to IPv4; None if it is invalid.

    Examples
    --------
    >>> address_of("::ffff:192.0.2.7"), address_of("unknown")
    (IPv4Address('192.0.2.7'), None)
    """
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
