"""Pages for people. Each has a twin for programs: the same address with `.json` at its end.

What a page shows is worked out once, as plain data; the page is drawn from these, and the twin is these.
"""

import gzip
from collections.abc import Callable
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import Field
from starlette.exceptions import HTTPException

from shortlist.errors import StoreTrouble
from shortlist.report.page import page as report_page
from shortlist.run.addresses import path_of, run_of
from shortlist.server.app import House
from shortlist.server.feeding import Run
from shortlist.server.guards import COOKIE
from shortlist.server.shapes import Strict
from shortlist.server.snapshot import glance, report_of, snapshot
from shortlist.server.tokens import Right, Tokens

_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_EXAMPLE = {"m": 3, "epsilon": 0.1, "delta": 0.05, "variances": [0.25] * 10}
_MONTH = 30 * 86_400  # seconds


class Login(Strict):
    """A token, to be let in by a browser."""

    token: str = Field(max_length=1000)


def routes(house: House) -> APIRouter:
    """Return the routes of all pages and of what they load."""
    router = APIRouter(tags=["pages"])

    @router.get("/index.json")
    async def index_facts() -> dict[str, Any]:
        """Return all runs, the latest first, and what each waits for."""
        return {"runs": await house.read(partial(_glances, house))}

    @router.get("/runs/{run}.json")
    async def run_facts(run: Run) -> dict[str, Any]:
        """Return how far a run is: all that its page shows."""
        return await house.read(partial(house.desk.look, run_of(run), snapshot))

    @router.get("/plan.json")
    async def plan_facts() -> dict[str, Any]:
        """Return what the plan calculator starts with."""
        return {"example": _EXAMPLE}

    def add(path: str, template: str, facts: Callable[..., Any]) -> None:
        """Add the page that is drawn from what its twin returns."""

        async def drawn(request: Request) -> HTMLResponse:
            return HTMLResponse(_drawn(template, request, await facts(**request.path_params)))

        router.add_api_route(path, drawn, methods=["GET"], include_in_schema=False, name=template)

    router.get("/runs/{run}/answer.json")(run_facts)
    add("/", "index.html", index_facts)
    add("/runs/{run}", "run.html", run_facts)
    add("/runs/{run}/answer", "answer.html", run_facts)
    add("/plan", "plan.html", plan_facts)
    _add_files(router, house)
    _add_login(router, house)
    return router


def _add_files(router: APIRouter, house: House) -> None:
    @router.get("/runs/{run}/report.html", response_class=HTMLResponse)
    async def report(run: Run) -> HTMLResponse:
        """Return the report on a run: one file that needs nothing else."""
        draw = partial(house.desk.look, run_of(run), lambda found: report_page(report_of(found)))
        return HTMLResponse(await house.read(draw))

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        kind = _KINDS.get(f".{name.rpartition('.')[2]}")
        if kind is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        data = await house.read(partial(_packed, name))
        headers = {"cache-control": "public, max-age=3600", "vary": "accept-encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(data), media_type=kind, headers=headers)
        return Response(data, media_type=kind, headers=headers | {"content-encoding": "gzip"})


def _add_login(router: APIRouter, house: House) -> None:
    @router.get("/login", include_in_schema=False)
    async def login_page(request: Request) -> HTMLResponse:
        return HTMLResponse(_drawn("login.html", request, {}))

    @router.post("/login", include_in_schema=False)
    async def login(given: Login, request: Request) -> Response:
        tokens = house.settings.tokens
        right = Right.WRITE if tokens is None else tokens.right_of(given.token)
        if right is Right.NOTHING:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, "this is none of the tokens.")
        response = JSONResponse({"right": right.name.lower()})
        response.set_cookie(
            COOKIE,
            Tokens.cookie_for(given.token),
            max_age=_MONTH,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    @router.post("/logout", include_in_schema=False)
    async def logout() -> Response:
        response = JSONResponse({})
        response.delete_cookie(COOKIE)
        return response


def _drawn(template: str, request: Request, facts: dict[str, Any]) -> str:
    may_add = getattr(request.state, "right", Right.WRITE) is Right.WRITE
    return _templates().get_template(template).render(facts=facts, may_add=may_add, path_of=path_of)


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("shortlist.server"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


@cache
def _packed(name: str) -> bytes:
    """Return a file that pages load, packed; raise HTTPException if it is none of ours."""
    if name == "plotly.js":
        data = files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
        return gzip.compress(data, 6)
    folder = files("shortlist.server").joinpath("static")
    if name not in {one.name for one in folder.iterdir()}:
        raise HTTPException(HTTPStatus.NOT_FOUND)  # which is not remembered, as an answer would be
    return gzip.compress(folder.joinpath(name).read_bytes(), 6)


def _glances(house: House) -> list[dict[str, Any]]:
    """Return all runs, the latest first, also those that cannot be read."""
    found = []
    for run in house.desk.runs():
        try:
            found.append(house.desk.look(run, lambda one: glance(one.log)))
        except StoreTrouble as error:
            said = {"state": "damaged", "label": "Damaged", "next": str(error), "is_done": False}
            found.append({"run": run, "path": path_of(run), **said})
    return found
