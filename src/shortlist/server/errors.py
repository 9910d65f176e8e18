"""Error responses: one format, with the messages of the library."""

import logging
import re
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from shortlist.errors import (
    ChangedRun,
    CorruptLog,
    InvalidAnswers,
    InvalidProblem,
    MeasurementFailed,
    NoSuchRun,
    NotAsked,
    ShortlistError,
    StoreTrouble,
)


class Busy(ShortlistError):
    """Another request has held the run for too long."""


_STATUSES: list[tuple[type[ShortlistError], HTTPStatus]] = [
    (NoSuchRun, HTTPStatus.NOT_FOUND),
    (ChangedRun, HTTPStatus.CONFLICT),
    (CorruptLog, HTTPStatus.CONFLICT),
    (StoreTrouble, HTTPStatus.SERVICE_UNAVAILABLE),
    (Busy, HTTPStatus.SERVICE_UNAVAILABLE),
    (NotAsked, HTTPStatus.CONFLICT),
    (InvalidAnswers, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidProblem, HTTPStatus.UNPROCESSABLE_ENTITY),
    (MeasurementFailed, HTTPStatus.UNPROCESSABLE_ENTITY),
]
"""The HTTP status of each error; the first match counts."""

_LONGEST = 300  # characters of a given value that a message repeats
_MOST_SAID = 2000  # characters of a message
_CAUSE = re.compile(r" \(.*\)(?=\. Earlier results are safe)", re.DOTALL)  # may name servers and users
_SUBJECT = re.compile("^(Input|String|List|Value|Dictionary|Tuple) ")  # start of pydantic's messages
_NOTES = logging.getLogger("shortlist.server")


def trouble(status: int, kind: str, message: str) -> dict[str, Any]:
    """Return an error payload: a status, a kind for programs, and a message."""
    message = message if len(message) <= _MOST_SAID else message[:_MOST_SAID] + "..."
    message = message.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot be encoded
    return {"error": {"status": int(status), "kind": kind, "message": message}}


def answer(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error response."""
    return JSONResponse(trouble(status, kind, message), status, headers)


def status_of(error: ShortlistError) -> int:
    """Return the HTTP status of an error of the library."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)


def unforeseen() -> JSONResponse:
    """Return the response to an internal error, without details."""
    said = "internal server error; see the server's log. Earlier results are safe."
    return answer(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", said)


def discreet(error: StoreTrouble, store: object) -> StoreTrouble:
    """Return a store error without the store's address and user.

    The server's log contains the full message.
    """
    where = repr(store).partition(": ")[2].removesuffix(">")
    said = str(error)
    public = _CAUSE.sub("", said.replace(where, "The store") if where else said)
    if public == said:
        return error
    _NOTES.warning("%s", said)
    return type(error)(public)


def add_handlers(app: FastAPI) -> None:
    """Register handlers that answer every error in this format."""

    @app.exception_handler(ShortlistError)
    async def _ours(_: Request, error: ShortlistError) -> JSONResponse:
        return answer(status_of(error), type(error).__name__, str(error))

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return answer(HTTPStatus.UNPROCESSABLE_ENTITY, "InvalidRequest", words_of(error.errors()))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        said = {
            HTTPStatus.NOT_FOUND: f"there is nothing at {request.url.path[:_LONGEST]}.",
            HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not supported at this address.",
        }.get(HTTPStatus(error.status_code), str(error.detail))
        kind = HTTPStatus(error.status_code).phrase.title().replace(" ", "")
        return answer(error.status_code, kind, said, dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def _unforeseen(_: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
        return unforeseen()


def words_of(errors: Any) -> str:
    """Return a message for the first validation error of a request."""
    first = dict(next(iter(errors)))
    cause = (first.get("ctx") or {}).get("error")
    if isinstance(cause, ShortlistError):
        return str(cause)
    place = ".".join(str(part) for part in first.get("loc", ())[1:]) or "the request"
    if first.get("type") == "missing":
        return f"`{place}` is missing; give it."
    if first.get("type") == "extra_forbidden":
        return f"`{place}` is not a known field; omit it."
    if first.get("type") == "json_invalid":
        return "the request is not valid JSON."
    given = repr(first.get("input"))
    given = given if len(given) <= _LONGEST else given[:_LONGEST] + "..."
    said = _SUBJECT.sub("", str(first.get("msg", "cannot be used")))
    return f"`{place}` is {given}; it {said}."
