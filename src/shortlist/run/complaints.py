"""What is said when measuring fails: which pulls of which arm, why, and what to do."""

from collections.abc import Iterable

from shortlist.errors import FinalFailure, MeasurementFailed, WorkersLost
from shortlist.run.calls import Cut
from shortlist.run.retries import Wait
from shortlist.tickets import Ticket

_MOST_NAMED = 5
_KEPT = "a session keeps what it was told, and a store does so for good."


def ticket_of(cut: Cut, call: int) -> Ticket:
    """Return a call, by its place in the order of calls, as a ticket for its own pulls."""
    return cut.parts(cut.numbers(call, call + 1))[0]


def gave_up(ticket: Ticket, cause: BaseException, times: int, others: int) -> MeasurementFailed:
    """Return the error for a call that failed so many times, perhaps with others of its block."""
    said = "failed" if times == 1 else f"failed {times} times, each time with the same seed"
    beside = f" (and {others:,} others in the same block)" if others else ""
    advice = f"Mend the measurement and go on: {_KEPT}"
    what = f". It ended with {words_of(cause)} {advice}"
    if isinstance(cause, FinalFailure):  # which says itself what to do
        what = f": {cause}"
    error = MeasurementFailed(f"measuring {named(ticket)}{beside} {said}{what}")
    error.__cause__ = cause
    return error


def put_off_words(ticket: Ticket, cause: BaseException, wait: Wait, times: tuple[int, int]) -> str:
    """Return why a call is tried again later; `times` are its failures so far, and the most retries."""
    if not wait.is_failure:
        return f"Measuring {named(ticket)} is put off for {wait.seconds:.3g} s: {cause}"
    n, most = times
    return (
        f"Measuring {named(ticket)} failed: {words_of(cause)} Trying again in {wait.seconds:.1f} s "
        f"(retry {n} of {most})."
    )


def workers_lost(
    cut: Cut, under_way: Iterable[range], why: str, cause: BaseException | None = None
) -> WorkersLost:
    """Return the error for workers that are gone, with the blocks that were under way."""
    calls = sorted(number for blocks in under_way for number in range(*cut.bounds(blocks)))
    names = "; ".join(named(ticket_of(cut, number)) for number in calls[:_MOST_NAMED])
    more = f"; and {len(calls) - _MOST_NAMED:,} more" if len(calls) > _MOST_NAMED else ""
    error = WorkersLost(
        f"workers were lost: {why.rstrip('.')}. Under way were {names or 'no calls'}{more}. See whether "
        f"one of these ends its process (memory, a crash), and go on: {_KEPT}"
    )
    error.__cause__ = cause
    return error


def named(ticket: Ticket) -> str:
    """Return an arm by its name, with its number, round and pulls."""
    last = ticket.first_pull + ticket.count - 1
    pulls = f"pull {last}" if ticket.count == 1 else f"pulls {ticket.first_pull} to {last}"
    return f"{ticket.name} (arm {ticket.arm}, round {ticket.round}, {pulls})"


def words_of(error: BaseException) -> str:
    """Return an error as a sentence."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return said if said.endswith((".", "!", "?")) else f"{said}."
