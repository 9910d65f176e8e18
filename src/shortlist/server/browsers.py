"""What browsers say of a request: under which name they found the server, and which page sends it."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from shortlist.server.whole import SAFE

_OWN = ("same-origin", "none")  # a page of ours, or no page at all: somebody typed the address


def host_of(given: str) -> str:
    """Return the name in a header `Host`, without a port; an empty one for what is no name.

    Examples
    --------
    >>> host_of("Lab.example.:8765"), host_of("[::1]:8765"), host_of("a@b"), host_of("[")
    ('lab.example', '::1', '', '')
    """
    if "@" in given or "/" in given:
        return ""
    try:
        parts = urlsplit(f"//{given}")
        _ = parts.port  # which must be a number
    except ValueError:
        return ""
    return (parts.hostname or "").rstrip(".")


def is_foreign(method: str, headers: Headers) -> bool:
    """Return whether a page of another site sends this; such pages may only lead a reader here."""
    is_followed = method in SAFE and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if any(site not in _OWN for site in headers.getlist("sec-fetch-site")) and not is_followed:
        return True
    host = headers.get("host", "").lower()
    return any(_place(origin) != host for origin in headers.getlist("origin"))


def cookie_of(headers: Headers, name: str) -> str:
    """Return a cookie; whatever other cookies there are does not matter."""
    return cookie_parser("; ".join(headers.getlist("cookie"))).get(name, "")


def _place(origin: str) -> str:
    """Return the host and port of an origin; it is `null` for pages that are not to be known."""
    scheme, _, place = origin.lower().partition("://")
    return place if scheme in {"http", "https"} else "null"
