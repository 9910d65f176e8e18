"""Routes that change runs: begin, ask, tell, and the other requests of workers."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator

from shortlist.errors import InvalidAnswers, InvalidProblem, NotAsked
from shortlist.measure import Summaries
from shortlist.report.run_text import fed_dict, fed_lines
from shortlist.report.worker_json import asked_dict, begun_dict, told_dict
from shortlist.run_urls import path_of, run_of
from shortlist.server.app import AppContext
from shortlist.server.requests import (
    MOST_LETTERS,
    Answer,
    Arrange,
    Ask,
    Begin,
    Failed,
    Feed,
    Release,
    Renew,
    StopWish,
    Suspend,
    Tell,
    Withdraw,
    checked_name,
)
from shortlist.server.responses import Begun, Done, FedReply, Given, Kept, Taken, returns
from shortlist.server.strict_json import StrictRoute
from shortlist.session.answers import Answers
from shortlist.session.doubtful_answers import DATA_ENTRY_QUESTION, doubt_about_rows, replaced_rows
from shortlist.session.feeding import FedRows, rows_of_sheet, same_as_other_label
from shortlist.session.session import Session
from shortlist.session.sheet_format import Entry, entries_of, read_sheet
from shortlist.session.tell_sheet import run_with_code, tell_sheet, ticket_numbers
from shortlist.store import Scored
from shortlist.tickets import Ticket, Tickets

Run = Annotated[str, Path(description="The run's name; `/` is written `~1`, and `~` is written `~0`.")]

Worker = Annotated[
    str,
    Query(max_length=MOST_LETTERS, description="The worker who measured."),
    AfterValidator(lambda text: text and checked_name(text)),
]


def routes(context: AppContext) -> APIRouter:
    """Return the routes that change runs."""
    router = APIRouter(tags=["feeding"], route_class=StrictRoute)

    async def added(run: str, do: Callable[[Session], dict[str, Any]]) -> dict[str, Any]:
        return await context.write(partial(context.cache.work, run_of(run), do))

    @router.post(
        "/runs",
        status_code=HTTPStatus.CREATED,
        responses={201: {"model": Begun}, 200: {"model": Begun, "description": "The run existed already."}},
    )
    async def begin(wish: Begin, response: Response) -> dict[str, Any]:
        """Create a run; if it exists with the same question, return its progress."""
        begun, is_new = await context.write(partial(_begun, context, wish))
        response.status_code = HTTPStatus.CREATED if is_new else HTTPStatus.OK
        response.headers["location"] = path_of(wish.name)
        return begun

    @router.post("/runs/{run}/ask", responses=returns(Given))
    async def ask(run: Run, wish: Ask) -> dict[str, Any]:
        """Lease tickets to a worker; asking again returns the same tickets."""
        return await added(run, partial(_asked, wish))

    @router.post("/runs/{run}/tell", responses=returns(Taken))
    async def tell(run: Run, told: Tell) -> dict[str, Any]:
        """Record answers, all or nothing. Sending the same answers again is harmless."""
        return await added(run, partial(_told, told))

    @router.post("/runs/{run}/answer", responses=returns(Kept))
    async def answer(run: Run, given: Answer) -> dict[str, Any]:
        """Record answers to parts of tickets, all or nothing."""
        return await added(run, partial(_answered, given))

    @router.post(
        "/runs/{run}/sheet",
        responses=returns(Taken),
        openapi_extra={"requestBody": {"content": {"text/csv": {"schema": {"type": "string"}}}}},
    )
    async def sheet(run: Run, request: Request, worker: Worker = "", careful: bool = False) -> dict[str, Any]:
        """Record the answers in a file, as `shortlist tell` does; if `careful`, refuse doubtful ones."""
        data = await request.body()
        return await added(run, partial(_sheet_told, data, worker, careful))

    @router.post("/runs/{run}/renew", responses=returns(Done))
    async def renew(run: Run, wish: Renew) -> dict[str, Any]:
        """Extend the leases of a worker."""
        return await added(run, partial(_done, lambda one: one.renew(wish.worker, wish.lease)))

    @router.post("/runs/{run}/release", responses=returns(Done))
    async def release(run: Run, wish: Release) -> dict[str, Any]:
        """Release tickets that a worker holds and will not answer."""
        return await added(run, partial(_done, partial(_release, wish)))

    @router.post("/runs/{run}/arrange", responses=returns(Done))
    async def arrange(run: Run, wish: Arrange) -> dict[str, Any]:
        """Record the measurement settings; refused if they differ from earlier ones."""
        return await added(run, partial(_done, lambda one: one.arrange(wish.settings)))

    @router.post("/runs/{run}/suspend", responses=returns(Done))
    async def suspend(run: Run, wish: Suspend) -> dict[str, Any]:
        """Record why a driver stopped early, or why it waits."""
        do = partial(Session.suspend, reason=wish.reason, worker=wish.worker, until=wish.until)
        return await added(run, partial(_done, partial(do, if_idle=wish.if_idle)))

    @router.post("/runs/{run}/stop", responses=returns(Done))
    async def stop(run: Run, wish: StopWish) -> dict[str, Any]:
        """Ask all drivers of a run to stop; they finish what they are measuring."""
        return await added(run, partial(_done, partial(Session.stop, why=wish.why, by=wish.by or "")))

    @router.post("/runs/{run}/feed", responses=returns(FedReply))
    async def feed(run: Run, wish: Feed) -> dict[str, Any]:
        """Add results that were measured elsewhere, all or nothing, and return what is certified."""
        return await added(run, partial(_fed, wish))

    @router.post("/runs/{run}/withdraw", responses=returns(Done))
    async def withdraw(run: Run, wish: Withdraw) -> dict[str, Any]:
        """Take the answer to a ticket back, before its round is decided."""
        return await added(run, partial(_done, partial(_withdrawn, wish)))

    return router


def _withdrawn(wish: Withdraw, session: Session) -> None:
    round, arm = ticket_numbers(Entry("ticket", wish.ticket), session.code)
    session.withdraw(round, arm, wish.why, by=wish.by or "")


def _fed(wish: Feed, session: Session) -> dict[str, Any]:
    if bool(wish.rows) == bool(wish.sheet):
        raise InvalidProblem("give either `rows` or a `sheet`.")
    if wish.rows:
        rows = _rows(wish, session)
    else:
        rows = rows_of_sheet(session, wish.sheet.encode(), wish.label, wish.worker or "", wish.block)
    if (wish.sheet or wish.careful) and not wish.insist:
        _second_look(session, rows, careful=wish.careful)
    return _fed_rows(session, rows)


def _second_look(session: Session, rows: FedRows, *, careful: bool) -> None:
    """Refuse rows that are probably a mistake; if `careful`, also those that would replace earlier ones."""
    history = session.history
    doubt, replaced = doubt_about_rows(history, rows), replaced_rows(history, rows) if careful else ""
    said = [doubt, replaced, DATA_ENTRY_QUESTION, "Nothing was added."]
    if earlier := same_as_other_label(history, rows)[0]:
        said.append(
            f"If these rows correct the rows labelled {earlier!r}, use that label. Insist only if they "
            "are for another day."
        )
    elif replaced:
        said.append(
            "If these rows are for another day, use another label. Insist only if these rows correct the "
            "earlier ones."
        )
    if doubt or replaced:
        raise InvalidAnswers(" ".join(filter(None, said)))


def _rows(wish: Feed, session: Session) -> FedRows:
    """Return the rows of a request; each needs a label, since a request may be repeated."""
    if not all(row.label or wish.label for row in wish.rows):
        raise InvalidProblem("give every row a `label`, or all of them one, so that none counts twice.")
    means, hits = [row.mean for row in wish.rows], [row.successes for row in wish.rows]
    is_mean = None not in means and set(hits) == {None}
    if not is_mean and (None in hits or set(means) != {None}):
        raise InvalidProblem("give either `mean` or `successes` in every row.")
    return session.fed_rows(
        [row.arm for row in wish.rows],
        [row.pulls for row in wish.rows],
        means if is_mean else None,
        None,
        None if is_mean else hits,
        [row.label or wish.label for row in wish.rows],
        [row.block or wish.block for row in wish.rows],
        wish.worker or "",
    )


def _fed_rows(session: Session, rows: FedRows) -> dict[str, Any]:
    count = session.feed_rows(rows)
    with session.log.lock:
        history = session.history
        return {
            "run": session.name,
            "rows": {"new": count.new, "known": count.known, "corrected": count.corrected},
            "lines": [*filter(None, (rows.skipped,)), *fed_lines(history)],
            "skipped": rows.skipped,
            **fed_dict(history),
        }


def _begun(context: AppContext, wish: Begin) -> tuple[dict[str, Any], bool]:
    problem = wish.question.question()
    began = wish.model_dump(include={"seed", "name", "budget", "reissue", "reproducible"})
    with context.cache.discreet():
        session = Session(problem, wish.strategy, store=context.cache.store, **began)
        return begun_dict(session) | {"path": path_of(wish.name)}, session.is_new


def _asked(wish: Ask, session: Session) -> dict[str, Any]:
    if wish.arms is None:
        tickets = session.ask(wish.limit, worker=wish.worker, lease=wish.lease)
    else:
        tickets = _claimed(session, wish)
    with session.log.lock:
        return asked_dict(session, tickets, wish.worker)


def _claimed(session: Session, wish: Ask) -> Tickets:
    """Return the tickets of some arms that the worker holds now."""
    wanted = _named(session, wish)
    return wanted.take(np.flatnonzero(session.claim(wanted, wish.worker, wish.lease)))


def _named(session: Session, wish: Ask | Release) -> Tickets:
    """Return the tickets of some arms of a round."""
    if wish.round is None:
        raise NotAsked("`arms` names tickets of a round; give the `round` as well.")
    session.refresh()
    if isinstance(wish, Ask) and wish.first_pulls is not None and wish.pulls is not None:
        return _parts(session, wish.round, wish.arms or [], wish.first_pulls, wish.pulls)
    round = session.history.find(wish.round)
    return round.tickets.take(round.places(np.array(wish.arms, dtype=np.int64)))


def _release(wish: Release, session: Session) -> None:
    begun = None if wish.arms is None else _named(session, wish)
    session.release(wish.worker, by=wish.by or "", begun=begun)


def _parts(
    session: Session, round: int, arms: list[int], first_pulls: list[int], pulls: list[int]
) -> Tickets:
    """Return the parts of tickets that a request lists."""
    if not len(arms) == len(first_pulls) == len(pulls):
        raise NotAsked("`arms`, `first_pulls` and `pulls` must be lists of the same length.")
    of, counts, firsts = (np.array(column, dtype=np.int64) for column in (arms, pulls, first_pulls))
    return Tickets(session.problem, round, of, counts, firsts)


def _answered(given: Answer, session: Session) -> dict[str, Any]:
    session.refresh()
    calls = _parts(session, given.round, given.arms, given.first_pulls, given.pulls)
    if not len(calls) == len(given.means) == len(given.variances):
        raise NotAsked("`means` and `variances` must have one entry for each of the `arms`.")
    variances = np.array([np.nan if one is None else one for one in given.variances])
    scored = [_scored(session, one) for one in given.scored]
    if given.scores is not None and len(given.scores) != len(calls):
        raise NotAsked("`scores` must have one list for each of the `arms`.")
    scores = None if given.scores is None else [np.array(one, dtype=np.float64) for one in given.scores]
    answers = Answers.of_calls(
        session.problem,
        calls,
        Summaries(calls.counts, np.array(given.means), variances, scores=scores),
        worker=given.worker,
        scored=scored,
        again=given.again,
    )
    session.answer(answers, released=np.array(given.released, dtype=np.int64))
    with session.log.lock:
        history = session.history
        return {
            "run": session.name,
            "is_done": session.is_done,
            "round": history.round.number,
            "n_pulls": history.n_pulls,
            "n_made": history.n_made,
            "cost_made": history.cost_made,
            "n_stops": history.n_stops,
        }


def _told(told: Tell, session: Session) -> dict[str, Any]:
    entries = entries_of(told.answers)
    scored = [_scored(session, one) for one in told.scored]
    again = [ticket_numbers(Entry("again", ticket), session.code) for ticket in told.again]
    confirmed = [ticket_numbers(Entry("confirmed", ticket), session.code) for ticket in told.confirmed]
    about = {"careful": told.careful, "confirmed": confirmed}
    return _taken(session, entries, told.worker, scored=scored, again=again, **about)


def _sheet_told(data: bytes, worker: str, careful: bool, session: Session) -> dict[str, Any]:
    return _taken(session, read_sheet(data), worker, careful=careful)


def _taken(session: Session, entries: list[Entry], worker: str, **about: Any) -> dict[str, Any]:
    store = session.log.store
    taken = tell_sheet(session, store, entries, worker, lambda code: run_with_code(store, code), **about)
    with session.log.lock:
        return told_dict(session, taken)


def _scored(session: Session, failed: Failed) -> Scored:
    """Return the scored pulls."""
    round, arm = ticket_numbers(Entry("scored", failed.ticket), session.code)
    name = session.problem.name(arm) if arm < session.problem.n else ""
    return Scored(Ticket(round, arm, name, failed.pulls, failed.first_pull), failed.score, failed.reason)


def _done(do: Callable[[Session], None], session: Session) -> dict[str, Any]:
    """Apply a change to a run, and return its progress."""
    do(session)
    return {"run": session.name, "is_done": session.is_done}
