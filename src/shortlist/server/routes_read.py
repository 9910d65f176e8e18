"""Read-only routes: data of runs as JSON and CSV, and event streams."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, ClassVar

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from shortlist.escaping import cell_of
from shortlist.files.items_section import items_entries
from shortlist.planning import plan
from shortlist.problem import Problem
from shortlist.report.export import export_dict, sheet_of_answers
from shortlist.report.text_format import iso
from shortlist.report.worker_json import holders
from shortlist.run_urls import run_of
from shortlist.server import responses
from shortlist.server.app import AppContext
from shortlist.server.authorization import still_allowed
from shortlist.server.errors import Busy
from shortlist.server.requests import Asked
from shortlist.server.responses import Export, Outcome, Plan, Round, returns, returns_text
from shortlist.server.routes_write import Run
from shortlist.server.run_cache import OpenRun
from shortlist.server.snapshot import snapshot
from shortlist.server.strict_json import StrictRoute
from shortlist.server.watching import Seen, Watch
from shortlist.session.lease_rules import awaited
from shortlist.session.log import RunLog
from shortlist.tickets import Tickets

_AT_ONCE = 1000  # rows of CSV that are sent together


def routes(context: AppContext) -> APIRouter:
    """Return the read-only routes."""
    router = APIRouter(tags=["reading"], route_class=StrictRoute)

    @router.post("/plan", responses=returns(Plan))
    async def plan_(asked: Asked) -> dict[str, Any]:
        """Return the plan for a question: the worst case of every strategy, and the lower bound."""
        return await context.run_planner(lambda: plan_dict(asked.question()))

    @router.get("/runs/{run}/question.json", responses=returns(responses.Question))
    async def question(run: Run) -> dict[str, Any]:
        """Return the question of a run, with all its arms."""
        return await context.read(partial(context.cache.look, run_of(run), _question))

    @router.get("/runs/{run}/round.json", responses=returns(Round))
    async def round_(
        run: Run,
        worker: Annotated[str | None, Query(max_length=200)] = None,
        known: Annotated[int | None, Query(ge=0, description="A round whose tickets to omit.")] = None,
    ) -> dict[str, Any]:
        """Return all tickets of the current round: which are open and, for a worker, which it may measure."""
        return await context.read(partial(context.cache.look, run_of(run), partial(_round, worker, known)))

    @router.get("/runs/{run}/result.json", responses=returns(Outcome))
    async def result(run: Run) -> dict[str, Any]:
        """Return the result of a run so far, arm by arm."""
        return await context.read(partial(context.cache.look, run_of(run), _result))

    @router.get("/runs/{run}/export.json", responses=returns(Export))
    async def export_json(run: Run) -> JSONResponse:
        """Return a run with all its answers."""
        found = await context.read(lambda: export_dict(context.cache.copy(run_of(run))))
        return JSONResponse(found, headers=_attached(run, "json"))

    @router.get(
        "/runs/{run}/export.csv",
        response_class=StreamingResponse,
        responses=returns_text("text/csv", "All answers, as CSV."),
    )
    async def export_csv(run: Run) -> StreamingResponse:
        """Return all answers of a run as CSV, which `shortlist tell` accepts."""
        lines = _lines(await context.read(partial(context.cache.copy, run_of(run))))

        async def sent() -> AsyncIterator[str]:
            while part := await context.read(lambda: next(lines, "")):
                yield part

        return StreamingResponse(sent(), media_type="text/csv", headers=_attached(run, "csv"))

    @router.get(
        "/runs/{run}/events",
        response_class=StreamingResponse,
        responses=returns_text(Stream.media_type, "Events `run`, each with the run's status, and `trouble`."),
    )
    async def events(run: Run, request: Request) -> StreamingResponse:
        """Stream the status of a run after every change, as server-sent events."""
        name = run_of(run)
        await context.read(partial(context.cache.look, name, lambda _: None))  # raises NoSuchRun
        if context.n_streams >= context.settings.limits.streams:
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many event streams are open; try again later."
            )
        if getattr(request.state, "is_head", False):
            return StreamingResponse(iter(()), media_type=Stream.media_type, headers=Stream.unbuffered)
        return Stream(context, name, partial(still_allowed, request))

    return router


def plan_dict(question: Problem) -> dict[str, Any]:
    """Return a plan as plain data, with the question as text."""
    found = plan(question)
    return found.to_dict() | {"words": question.words}


class Stream(StreamingResponse):
    """An event stream of a run for one client; the count of streams is reduced however it ends."""

    media_type = "text/event-stream"
    unbuffered: ClassVar = {"x-accel-buffering": "no"}  # tells nginx not to buffer events

    def __init__(self, context: AppContext, run: str, may_watch: Callable[[], bool]) -> None:
        self._house, self._run = context, run
        watch = context.watches.get(run)
        if watch is None or watch.is_over:
            watch = context.watches[run] = Watch(partial(_news, context, run))
        self._watch = watch
        self._said = watch.stream(context.closing, may_watch)
        super().__init__(self._said, headers=self.unbuffered)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects or logs out, the run is removed, or the server stops."""
        self._house.n_streams += 1
        try:
            async with aclosing(self._said):
                await super().__call__(scope, receive, send)
        finally:
            self._house.n_streams -= 1
            if not self._watch.n_watchers and self._house.watches.get(self._run) is self._watch:
                del self._house.watches[self._run]


async def _news(context: AppContext, run: str, seen: Seen) -> dict[str, Any] | None:
    def look() -> dict[str, Any] | None:
        with context.cache.fresh(run) as found:
            is_known = (found.log.history.began.code, found.log.n_events) == seen
            return None if is_known else snapshot(found)

    try:
        return await context.read(look)
    except Busy:
        return None  # later


def _question(run: OpenRun) -> dict[str, Any]:
    """Return a complete question, as `POST /runs` accepts it."""
    problem = run.log.history.problem
    known = {"variances": problem.variances.tolist()} if problem.knows_variances else {}
    names = None if problem.names is None else list(problem.names)
    known["costs"] = None if problem.costs is None else problem.costs.tolist()
    known |= {} if problem.own_bounds is None else {"bounds": problem.own_bounds}
    known |= items_entries(problem)
    return problem.to_dict() | known | {"names": names, "words": problem.words}


def _round(worker: str | None, known: int | None, run: OpenRun) -> dict[str, Any]:
    is_free = None
    if worker is not None and run.session is not None:
        is_free = run.session.still_open(worker)[1]  # this may read new events, so look at the rest after it
    history, now = run.log.history, run.log.now()
    round, began = history.round, history.began
    is_free = ~round.is_told if is_free is None else is_free
    return {
        "run": run.log.run,
        "round": round.number,
        **({} if round.number == known else _asked(round.tickets)),
        "free": np.flatnonzero(is_free).tolist(),
        "n_open": round.n_missing,
        "waiting_for": [] if worker is None else holders(awaited(round, now, worker)),
        "answered": None if worker is None else _asked(history.answered),
        "n_pulls": history.n_pulls,
        "n_made": history.n_made,
        "cost_made": history.cost_made,
        "n_stops": history.n_stops,
        "worst_case_pulls": history.worst_case_pulls,
        "code": began.code,
        "strategy": began.strategy,
        "seed": began.seed,
        "entropy": f"{history.entropy:x}",
        "is_done": history.is_final,
        "ended": None if run.log.ended_at is None else iso(run.log.ended_at),
        "settings": history.settings,
    }


def _asked(tickets: Tickets) -> dict[str, Any]:
    return {
        "needs_variances": tickets.needs_variances,
        "arms": tickets.arms.tolist(),
        "pulls": tickets.counts.tolist(),
        "first_pulls": tickets.first_pulls.tolist(),
    }


def _result(run: OpenRun) -> dict[str, Any]:
    return run.log.history.result.to_dict() | {
        "worst_case_pulls": run.log.history.worst_case_pulls,
        "is_done": run.log.history.is_final,
    }


def _lines(log: RunLog) -> Iterator[str]:
    """Yield CSV in parts; names are escaped, so that spreadsheets do not run them as formulas."""
    text = io.StringIO()
    columns, rows = sheet_of_answers(log)
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for number, row in enumerate(rows, 1):
        writer.writerow(row | {key: cell_of(row[key]) for key in ("name", "worker", "item") if key in row})
        if number % _AT_ONCE == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _attached(part: str, ending: str) -> dict[str, str]:
    """Return the header that makes a browser save a file, with an ASCII name."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in part)
    return {"content-disposition": f'attachment; filename="{plain[:80]}.{ending}"'}
