"""Maps error responses of a server to the library's own errors, with the same message."""

from typing import Any

import httpx

from shortlist import errors
from shortlist.errors import InvalidProblem, ShortlistError, StoreTrouble
from shortlist.store.address import shown

_OURS: dict[str, type[ShortlistError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, ShortlistError)
}
AGAIN = {429, 502, 503, 504}
"""Statuses after which the same request may succeed."""

_TOKEN = "Give the right token as `token`, or on the command line with --token-file or in SHORTLIST_TOKEN."
_ADVICE = {
    401: _TOKEN,
    403: "Use another token, or another server.",
    404: "Give only the address of a Shortlist server, without a path.",
    413: "To allow more, start the server with --max-body.",
}


def refusal(url: str, response: httpx.Response) -> ShortlistError:
    """Return the error for a server's response."""
    status, (kind, said) = response.status_code, _said(response)
    if kind in _OURS:
        return _OURS[kind](said)
    if response.is_redirect:
        there = response.headers.get("location", "another address")
        return InvalidProblem(f"the server at {url} has moved to {shown(there)}; give that address.")
    if response.is_success:
        return InvalidProblem(f"the server at {url} is not a Shortlist server. {_ADVICE[404]}")
    said = said or f"it answered with status {status}."
    if status in AGAIN or response.is_server_error:
        return StoreTrouble(f"the server at {url} failed: {said} Earlier results are safe.")
    return InvalidProblem(f"the server at {url} refused: {said} {_ADVICE.get(status, '')}".rstrip())


def error_of(kind: str, said: str) -> ShortlistError:
    """Return the error of the kind that a server names."""
    return _OURS.get(kind, StoreTrouble)(said)


def unreachable(url: str, cause: httpx.TransportError, seconds: float) -> StoreTrouble:
    """Return the error for a server that has not answered for so many seconds."""
    why = str(cause).strip().rstrip(".") or type(cause).__name__
    tried = f" for {seconds:.0f} seconds" if seconds >= 1 else ""
    return StoreTrouble(
        f"the server at {url} could not be reached{tried}: {why}. Check that it is running, and that the "
        f"address is right. Earlier results are safe."
    )


def _said(response: httpx.Response) -> tuple[str, str]:
    """Return kind and message of an error response; empty if it is not from a Shortlist server."""
    try:
        error: Any = response.json()["error"]
        kind, said = error["kind"], error["message"]
    except (ValueError, LookupError, TypeError):
        return "", ""
    return (kind, said) if isinstance(kind, str) and isinstance(said, str) else ("", "")
