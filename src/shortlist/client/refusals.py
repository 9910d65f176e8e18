"""What a server's refusal means here: the library's own errors, with the same words."""

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
"""Statuses after which the same request may do better."""

_TOKEN = "Give the right one as `token`, or to commands with --token-file or in SHORTLIST_TOKEN."
_ADVICE = {
    401: _TOKEN,
    403: "Ask with another token, or another server.",
    404: "Give the address of a Shortlist server, without what comes after it.",
    413: "The server takes more if it is started with --max-body.",
}


def refusal(url: str, response: httpx.Response) -> ShortlistError:
    """Return the error that a server's answer stands for."""
    status, (kind, said) = response.status_code, _said(response)
    if kind in _OURS:
        return _OURS[kind](said)
    if response.is_redirect:
        there = response.headers.get("location", "another address")
        return InvalidProblem(f"the server at {url} has moved to {shown(there)}; give that address.")
    if response.is_success:
        return InvalidProblem(f"what answers at {url} is no Shortlist server. {_ADVICE[404]}")
    said = said or f"it answered with status {status}."
    if status in AGAIN or response.is_server_error:
        return StoreTrouble(f"the server at {url} is in trouble: {said} Nothing told before is lost.")
    return InvalidProblem(f"the server at {url} refused: {said} {_ADVICE.get(status, '')}".rstrip())


def error_of(kind: str, said: str) -> ShortlistError:
    """Return the error of a kind that a server names."""
    return _OURS.get(kind, StoreTrouble)(said)


def unreachable(url: str, cause: httpx.TransportError, seconds: float) -> StoreTrouble:
    """Return the error for a server that does not answer, after so many seconds of trying."""
    why = str(cause).strip().rstrip(".") or type(cause).__name__
    tried = f" for {seconds:.0f} seconds" if seconds >= 1 else ""
    return StoreTrouble(
        f"the server at {url} could not be reached{tried}: {why}. See whether it runs, and whether the "
        f"address is right. Nothing told before is lost."
    )


def _said(response: httpx.Response) -> tuple[str, str]:
    """Return the kind of an error and its words; nothing if it does not come from a server of ours."""
    try:
        error: Any = response.json()["error"]
        kind, said = error["kind"], error["message"]
    except (ValueError, LookupError, TypeError):
        return "", ""
    return (kind, said) if isinstance(kind, str) and isinstance(said, str) else ("", "")
