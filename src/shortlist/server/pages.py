"""The HTML pages. Each has a JSON version for programs: the same address with `.json` appended.

The content of a page is computed once, as plain data. The page is rendered from it; the JSON version returns
it.
"""

import gzip
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any, TypeAlias

import segno
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import Field
from starlette.exceptions import HTTPException

from shortlist.errors import ShortlistError, StoreTrouble
from shortlist.report.page import page as report_page
from shortlist.report.page import style
from shortlist.report.text_format import percent, plain_name, universal
from shortlist.run_urls import part_of, path_of, run_of
from shortlist.server.app import AppContext
from shortlist.server.errors import answer, status_of
from shortlist.server.requests import Strict
from shortlist.server.responses import Listed, Status, returns
from shortlist.server.routes_write import Run
from shortlist.server.settings import Settings, is_loopback, own_names
from shortlist.server.snapshot import report_of, run_summary, snapshot
from shortlist.server.tokens import SESSION, Right

_MOST_LETTERS = 200  # maximum number of characters of a name


def at(facts: Any, key: str) -> Any:
    """Return an item of nested data by its key, or by keys joined by dots; None if it does not exist."""
    for part in key.split("."):
        facts = facts.get(part) if isinstance(facts, Mapping) else None
    return facts


def formed(value: Any, form: str) -> str:
    """Return a formatted value; empty for None."""
    return "" if value is None else _FORMS[form](value)


def _moment(value: str) -> str:
    """Return a time in UTC; the browser converts it to local time."""
    return universal(datetime.fromisoformat(value).timestamp())


_FORMS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "count": lambda value: f"{value:,.0f}",
    "some": lambda value: f"{value:,.0f}" if value else "",
    "percent": percent,
    "moment": _moment,
    "name": lambda value: plain_name(value, _MOST_LETTERS),
}


_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_EXAMPLE = {"m": 3, "epsilon": 0.1, "delta": 0.05, "variances": [0.25] * 10}
_TO_A_PAGE = 50  # runs per page of the list

Page: TypeAlias = Annotated[int, Query(ge=1, le=1_000_000)]


class Login(Strict):
    """A token, for the login of a browser."""

    token: str = Field(max_length=1000)


def routes(context: AppContext) -> APIRouter:
    """Return the routes of all pages and of the files that they load."""
    router = APIRouter(tags=["pages"])

    @router.get("/index.json", responses=returns(Listed))
    async def index_facts(page: Page | None = None) -> dict[str, Any]:
        """Return the list of runs, the latest first, with the next step of each: all, or one page."""
        return await context.read(partial(_run_summaries, context, page))

    @router.get("/runs/{run}.json", responses=returns(Status))
    async def run_facts(run: Run) -> dict[str, Any]:
        """Return the status of a run: everything that its page shows."""
        return await context.read(partial(context.cache.look, run_of(run), snapshot))

    @router.get("/plan.json")
    async def plan_facts() -> dict[str, Any]:
        """Return the initial values of the plan calculator."""
        return {"example": _EXAMPLE}

    async def drawn(template: str, request: Request, facts: Awaitable[dict[str, Any]]) -> HTMLResponse:
        """Return a rendered page, or an error page."""
        try:
            return HTMLResponse(_drawn(context, template, request, await facts))
        except ShortlistError as error:
            return HTMLResponse(
                _drawn(context, "trouble.html", request, {"message": str(error)}), status_of(error)
            )

    @router.get("/", include_in_schema=False)
    async def index(request: Request, page: Page = 1) -> HTMLResponse:
        return await drawn("index.html", request, index_facts(page))

    @router.get("/runs/{run}", include_in_schema=False)
    async def run_page(run: Run, request: Request) -> HTMLResponse:
        return await drawn("run.html", request, run_facts(run))

    @router.get("/runs/{run}/answer", include_in_schema=False)
    async def answer_page(run: Run, request: Request) -> HTMLResponse:
        return await drawn("answer.html", request, run_facts(run))

    @router.get("/r/{run}", include_in_schema=False)
    async def short_link(run: Run) -> RedirectResponse:
        return RedirectResponse(path_of(run_of(run), "answer"))

    @router.get("/plan", include_in_schema=False)
    async def plan_page(request: Request) -> HTMLResponse:
        return await drawn("plan.html", request, plan_facts())

    router.get("/runs/{run}/answer.json", responses=returns(Status))(run_facts)
    _add_files(router, context)
    _add_login(router, context)
    return router


def _add_files(router: APIRouter, context: AppContext) -> None:
    @router.get("/runs/{run}/report.html", response_class=HTMLResponse)
    async def report(run: Run) -> HTMLResponse:
        """Return the report on a run, a single self-contained file."""
        draw = partial(context.cache.look, run_of(run), lambda found: report_page(report_of(found)))
        return HTMLResponse(await context.read(draw))

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        if name not in static_files():
            raise HTTPException(HTTPStatus.NOT_FOUND)
        data, etag = static_files()[name]
        kind = _KINDS[name.rpartition(".")[2]]
        headers = {"cache-control": "no-cache", "etag": etag, "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(data), media_type=kind, headers=headers)
        return Response(data, media_type=kind, headers=headers | {"content-encoding": "gzip"})


def _add_login(router: APIRouter, context: AppContext) -> None:
    @router.get("/login", include_in_schema=False)
    async def login_page(request: Request) -> HTMLResponse:
        return HTMLResponse(_drawn(context, "login.html", request, {}))

    @router.post("/login", include_in_schema=False)
    async def login(given: Login, request: Request) -> Response:
        tokens = context.settings.tokens
        right = Right.WRITE if tokens is None else tokens.right_of(given.token)
        if right is Right.NOTHING:
            refusal: Response | None = request.state.count_wrong_token(request.scope)
            return refusal or answer(HTTPStatus.UNAUTHORIZED, "Unauthorized", "this token is not valid.")
        response = JSONResponse({"right": right.name.lower()})
        response.set_cookie(
            context.settings.cookie,
            request.state.sessions.begin(right),
            max_age=SESSION,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    @router.post("/logout", include_in_schema=False)
    async def logout(request: Request) -> Response:
        request.state.sessions.end(request.state.cookie)
        response = JSONResponse({})
        response.delete_cookie(context.settings.cookie)
        return response


def _on_phone(settings: Settings, request: Request, facts: dict[str, Any]) -> dict[str, str] | None:
    """Return the address of the form of a run, and its QR code as SVG; None if no phone can reach it.

    The address contains no token: a phone logs in as any other browser does.
    """
    if "path" not in facts or facts["is_done"]:
        return None
    host = request.url.hostname or ""
    if settings.phone and (is_loopback(host) or host in own_names()):  # phones may not know its name
        base = settings.phone
    elif is_loopback(host):
        return None
    else:
        base = f"{request.url.scheme}://{request.url.netloc}"
    url = f"{base}/r/{part_of(facts['run'])}"
    return {"url": url, "code": segno.make(url, micro=False).svg_inline(border=3, omitsize=True)}


def _drawn(context: AppContext, template: str, request: Request, facts: dict[str, Any]) -> str:
    right, is_read_only = getattr(request.state, "right", Right.WRITE), context.settings.is_read_only
    return (
        _templates()
        .get_template(template)
        .render(
            facts=facts,
            phone=_on_phone(context.settings, request, facts),
            may_add=right is Right.WRITE and not is_read_only,
            is_read_only=is_read_only,
            has_tokens=context.settings.tokens is not None,
            is_known=right is not Right.NOTHING,
        )
    )


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("shortlist.server"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    found.filters |= {"at": at, "formed": formed, "path": path_of}
    return found


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """Return the files that pages load, by name: each compressed, with an ETag of its content.

    Starlette's `StaticFiles` makes ETags of times and sizes, serves a file under several paths, and answers
    a bad `Range` in another format than our errors. No other response is compressed: its size could reveal
    a secret in it.
    """
    folder = files("shortlist.server").joinpath("static")
    found = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.rpartition(".")[2] in _KINDS}
    found["report.css"] = style().encode()
    return {
        name: (gzip.compress(data, 6, mtime=0), f'"{sha256(data).hexdigest()[:20]}"')
        for name, data in found.items()
    }


def _run_summaries(context: AppContext, page: int | None) -> dict[str, Any]:
    """Return the list of runs, the latest first, including runs that cannot be read."""
    found, names = [], context.cache.runs()
    first, last = (0, len(names)) if page is None else ((page - 1) * _TO_A_PAGE, page * _TO_A_PAGE)
    for run in names[first:last]:
        try:
            found.append(context.cache.summary(run, run_summary))
        except StoreTrouble as error:
            said = {"state": "damaged", "label": "Damaged", "next": str(error), "is_done": False}
            found.append({"run": run, "path": path_of(run), **said})
    n_pages = 1 if page is None else max(1, -(-len(names) // _TO_A_PAGE))
    return {"runs": found, "n_runs": len(names), "page": page or 1, "n_pages": n_pages}
