"""What begin, ask and tell answer to workers as JSON, on the command line and over HTTP."""

from collections.abc import Iterable
from typing import Any

from shortlist.report.text_format import iso
from shortlist.session.lease_rules import Holding, awaited
from shortlist.session.session import Session
from shortlist.session.sheet_format import ticket_rows, ticket_text
from shortlist.session.tell_sheet import Taken
from shortlist.store import Conflict
from shortlist.tickets import Tickets


def first_expiry(session: Session, tickets: Tickets) -> float:
    """Return when the first lease of some tickets expires."""
    round = session.history.find(tickets.round)
    return float(round.leases.until(round.places(tickets.arms, is_repeating=True)).min())


def begun_dict(session: Session) -> dict[str, Any]:
    """Return the answer for a run that was created, or existed already."""
    return {
        "run": session.name,
        "code": session.code,
        "strategy": session.strategy,
        "seed": session.seed,
        "entropy": f"{session.entropy:x}",
        "n_pulls": session.n_pulls,
        "worst_case_pulls": session.worst_case_pulls,
        "round": session.asked.round,
        "n_tickets": len(session.asked),
        "is_done": session.is_done,
        "problem": session.problem.to_dict(),
    }


def asked_dict(session: Session, tickets: Tickets, worker: str) -> dict[str, Any]:
    """Return the answer with a worker's tickets; if there are none, with the workers to wait for."""
    others = [] if len(tickets) else awaited(session.history.round, session.log.now(), worker)
    return {
        "run": session.name,
        "worker": worker,
        "round": tickets.round,
        "until": iso(first_expiry(session, tickets)) if len(tickets) else None,
        "needs_variances": tickets.needs_variances,
        "tickets": list(ticket_rows(tickets, session.code, session.entropy)),
        "first_pulls": tickets.first_pulls.tolist(),
        "waiting_for": holders(others),
        "is_done": session.is_done,
    }


def holders(found: Iterable[Holding]) -> list[dict[str, Any]]:
    """Return who holds how many tickets, and until when."""
    return [{"worker": one.worker, "n_tickets": one.n_tickets, "until": iso(one.until)} for one in found]


def told_dict(session: Session, told: Taken) -> dict[str, Any]:
    """Return which answers were added, and the progress of the run."""
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
