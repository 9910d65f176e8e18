"""What has to happen next in a run, in a phrase."""

from shortlist.report.company_text import counted
from shortlist.run.history import History
from shortlist.run.holders import holdings

_LONGEST = 80  # letters of a reason


def next_step(history: History, now: float) -> str:
    """Return what a run waits for; or what can be done with it, if it has ended."""
    if history.is_final:
        return "done: read the report"
    if history.suspended is not None:
        reason = " ".join(history.suspended.reason.split())
        short = reason if len(reason) <= _LONGEST else reason[: _LONGEST - 1] + "…"
        return f"stopped: {short}"
    round = history.round
    held = holdings(round, now)
    n_held = sum(holding.n_tickets for holding in held)
    n_free = round.n_missing - n_held
    if n_free > 0:
        return f"measure: {counted(n_free, 'ticket')} free in round {round.number}"
    return f"wait: {counted(n_held, 'ticket')} with {counted(len(held), 'worker')}"
