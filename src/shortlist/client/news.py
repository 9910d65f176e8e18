"""News of a run as a server sends them: one event after the other, for as long as the run lasts."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import httpx

from shortlist.client.connection import Connection, Trouble
from shortlist.client.refusals import error_of

_SILENCE = 45.0  # seconds; a server that has nothing to say says so every fifteen


class Said(NamedTuple):
    """One event: its number, its kind and its text."""

    number: str
    kind: str
    text: str


def news(connection: Connection, path: str) -> Iterator[dict[str, Any]]:
    """Yield how far a run is, now and whenever that changes, until it has ended.

    If the connection breaks, it is made again; nothing is yielded twice.
    """
    last, tries = None, connection.tries()
    while True:
        try:
            with connection.stream(path, httpx.Timeout(30.0, read=_SILENCE)) as response:
                for said in parsed(response.iter_lines()):
                    tries = connection.tries()
                    data = json.loads(said.text)
                    if said.kind == "trouble":
                        raise error_of(data["kind"], data["message"])
                    if said.kind == "run" and said.number != last:
                        last = said.number
                        yield data
                    if data.get("is_done"):
                        return
            raise httpx.RemoteProtocolError("it has hung up")
        except (httpx.TransportError, Trouble) as trouble:
            tries.failed(trouble)


def parsed(lines: Iterable[str]) -> Iterator[Said]:
    """Yield the events in a stream of lines, as the standard has them; the last one only if it is whole."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                number, kind = (fields.get(name, [""])[-1] for name in ("id", "event"))
                yield Said(number, kind, "\n".join(fields["data"]))
            fields = {}
        elif not line.startswith(":"):  # which is a comment
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
