"""Errors and messages about calls that failed and workers that were lost."""

from collections.abc import Iterable

from shortlist.errors import FinalFailure, MeasurementFailed, WorkersLost
from shortlist.escaping import on_one_line
from shortlist.execution.retries import Wait
from shortlist.measure import Call
from shortlist.measure.shared_items import items_words
from shortlist.session.call_plan import CallPlan
from shortlist.tickets import Ticket

_MOST_NAMED = 5
_KEPT = "recorded results are kept."


def ticket_of(call_plan: CallPlan, call: int) -> Ticket:
    """Return a call, given by its position in the order of calls, as a ticket for its own pulls."""
    return call_plan.parts(call_plan.numbers(call, call + 1))[0]


def gave_up(what: str, cause: BaseException, times: int, others: int) -> MeasurementFailed:
    """Return the error for a call that failed at every attempt, possibly with others of its block.

    `what` names the call (`call_words`).
    """
    said = "failed" if times == 1 else f"failed {times} times, each time with the same seed"
    beside = f" (and {others:,} others in the same block)" if others else ""
    advice = f"Fix the measurement and resume; {_KEPT}"
    why = f": {words_of(cause)} {advice}"
    if isinstance(cause, FinalFailure):  # its message says what to do
        why = f": {_text(cause)}"
    error = MeasurementFailed(f"measuring {what}{beside} {said}{why}")
    error.__cause__ = cause
    return error


def put_off_words(what: str, cause: BaseException, wait: Wait, times: tuple[int, int]) -> str:
    """Return the message about a retry; `times` are the failures so far, and the maximum of retries."""
    if not wait.is_failure:
        return f"Measuring {what} will be retried in {wait.seconds:.3g} s: {_text(cause)}"
    n, most = times
    return (
        f"Measuring {what} failed: {words_of(cause)} Trying again in {wait.seconds:.1f} s "
        f"(retry {n} of {most})."
    )


def workers_lost(
    call_plan: CallPlan, under_way: Iterable[range], why: str, cause: BaseException | None = None
) -> WorkersLost:
    """Return the error for lost workers, with the blocks that were running."""
    calls = sorted(number for blocks in under_way for number in range(*call_plan.bounds(blocks)))
    names = "; ".join(call_words(call_plan, number) for number in calls[:_MOST_NAMED])
    more = f"; and {len(calls) - _MOST_NAMED:,} more" if len(calls) > _MOST_NAMED else ""
    error = WorkersLost(
        f"workers were lost: {why.rstrip('.')}. Running calls: {names or 'none'}{more}. Check whether "
        f"one of these calls kills its process (out of memory, a crash), and resume; {_KEPT}"
    )
    error.__cause__ = cause
    return error


def call_words(call_plan: CallPlan, call: int) -> str:
    """Return a call, given by its position in the order of calls, in words; see `named`."""
    return named(ticket_of(call_plan, call), call_plan)


def named(ticket: Ticket, call_plan: CallPlan) -> str:
    """Return the name of an arm with its number and round, and the pulls or items that are measured."""
    items, name = call_plan.tickets.problem.items, on_one_line(ticket.name)
    if items is not None:
        call = Call(call_plan.entropy, ticket.arm, ticket.count, ticket.first_pull)
        return f"{name} (arm {ticket.arm}, round {ticket.round}) on {items_words(items, call)}"
    last = ticket.first_pull + ticket.count - 1
    pulls = f"pull {last}" if ticket.count == 1 else f"pulls {ticket.first_pull} to {last}"
    return f"{name} (arm {ticket.arm}, round {ticket.round}, {pulls})"


def words_of(error: BaseException) -> str:
    """Return an error as a sentence, with its type."""
    said = f"{type(error).__name__}: {_text(error)}".rstrip(": ")
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _text(error: BaseException) -> str:
    """Return the message of an error, which is recorded and sent: lone surrogates are question marks."""
    return str(error).encode("utf-8", "replace").decode()
