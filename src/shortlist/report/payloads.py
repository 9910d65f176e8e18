"""What passes between a run and those who measure for it, as plain data, fit for JSON."""

from collections.abc import Iterable
from typing import Any

from shortlist.report.text_format import iso
from shortlist.session.holders import Holding, awaited
from shortlist.session.session import Session
from shortlist.session.sheets import ticket_rows, ticket_text
from shortlist.session.told_sheets import Taken
from shortlist.store import Conflict
from shortlist.tickets import Tickets


def until(session: Session, tickets: Tickets) -> float:
    """Return when the first of some tickets is not reserved any more."""
    round = session.history.find(tickets.round)
    return float(round.leases.until(round.places(tickets.arms, is_repeating=True)).min())


def begun_dict(session: Session) -> dict[str, Any]:
    """Return what a run that has just begun, or was there already, asks for."""
    return {
        "run": session.name,
        "code": session.code,
        "strategy": session.strategy,
        "seed": session.seed,
        "n_pulls": session.n_pulls,
        "worst_case_pulls": session.worst_case_pulls,
        "round": session.asked.round,
        "n_tickets": len(session.asked),
        "is_done": session.is_done,
        "problem": session.problem.to_dict(),
    }


def asked_dict(session: Session, tickets: Tickets, worker: str) -> dict[str, Any]:
    """Return the tickets that a worker was given; where there are none, for whom it has to wait."""
    others = [] if len(tickets) else awaited(session.history.round, session.log.now(), worker)
    return {
        "run": session.name,
        "worker": worker,
        "round": tickets.round,
        "until": iso(until(session, tickets)) if len(tickets) else None,
        "needs_variances": tickets.needs_variances,
        "tickets": list(ticket_rows(tickets, session.code, session.seed)),
        "first_pulls": tickets.first_pulls.tolist(),
        "waiting_for": holders(others),
        "is_done": session.is_done,
    }


def holders(found: Iterable[Holding]) -> list[dict[str, Any]]:
    """Return who holds how many tickets until when."""
    return [{"worker": one.worker, "n_tickets": one.n_tickets, "until": iso(one.until)} for one in found]


def told_dict(session: Session, told: Taken) -> dict[str, Any]:
    """Return what came of answers, and how far the run is now."""
    round = session.history.round
    return {
        "run": session.name,
        **told.counts,
        "conflicts": list(_refused(session.code, told.conflicts)),
        "round": round.number,
        "n_open": round.n_missing,
        "n_tickets": len(round.tickets),
        "is_done": session.is_done,
    }


def ended_dict(session: Session) -> dict[str, Any]:
    """Return the result, if the run has ended."""
    return {"result": session.result.to_dict() if session.is_done else None}


def _refused(code: str, conflicts: Iterable[Conflict]) -> Iterable[dict[str, Any]]:
    for one in conflicts:
        yield {"ticket": ticket_text(code, one.round, one.arm), "kept": one.kept, "refused": one.refused}
