"""Strict parsing of JSON: no duplicate keys, no NaN, no lone surrogates or NUL, and no deep nesting."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

_LARGE = 100_000  # bytes; other requests do not wait until so many are parsed
_DEEPEST = 32  # maximum nesting
_SUSPECTS = ("\\ud", "\\u0000")  # how lone surrogates and NUL get into JSON


class Unclear(ValueError):
    """Invalid JSON, or JSON that parsers may read differently."""


class StrictRoute(APIRoute):
    """A route that parses JSON strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Return the parsed body; refuse JSON that parsers may read differently."""
        try:
            body = await self.body()
            return parsed(body) if len(body) < _LARGE else await asyncio.to_thread(parsed, body)
        except Unclear as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, f"the request cannot be parsed: {error}.") from None


def parsed(data: bytes) -> Any:
    """Return parsed JSON; raise Unclear with a reason if it is not strict."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Unclear("it is not UTF-8 text") from None
    try:
        found = json.loads(text, object_pairs_hook=_table, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Unclear(f"it is not valid JSON ({error.msg}, line {error.lineno})") from None
    except RecursionError:
        raise Unclear("its brackets are too deep") from None
    except Unclear:
        raise
    except ValueError:
        raise Unclear("a number has thousands of digits") from None
    _refuse_depth(found)
    lowered = text.lower()
    if any(suspect in lowered for suspect in _SUSPECTS):
        _refuse_letters(found)
    return found


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise Unclear(f"the key {twice[:40]!r} occurs twice")
    return found


def _refuse_constant(name: str) -> float:
    raise Unclear(f"{name} is not a number in JSON")


def _refuse_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, list | dict)]
        if not level:
            return
    raise Unclear("its brackets are too deep")


def _refuse_letters(value: Any) -> None:
    for text in _texts(value):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Unclear("strings must not contain lone surrogates") from None
        if "\0" in text:
            raise Unclear("strings must not contain NUL")


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from one
        waiting.extend(_parts(one))


def _parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
