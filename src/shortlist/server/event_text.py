"""The events of a log as text, one line each."""

from typing import Any

from shortlist.report.text_format import counted, iso, plain_name
from shortlist.report.worker_text import worker_words
from shortlist.session.state import STOPPED, RunState
from shortlist.store import (
    Answered,
    Arranged,
    Asked,
    Began,
    Bounded,
    Conflict,
    Ended,
    Event,
    Fed,
    Leased,
    Limited,
    Narrowed,
    Record,
    Released,
    Scored,
    Stopped,
    Suspended,
    Told,
    Withdrawn,
)

_LONGEST = 300  # characters of a line


def told_words(record: Record, history: RunState) -> dict[str, Any]:
    """Return an event as plain data: its number, time, kind and text."""
    words = _words(record.event, history)
    return {
        "number": record.number,
        "at": iso(record.at),
        "kind": type(record.event).__name__.lower(),
        "words": words if len(words) <= _LONGEST else words[:_LONGEST] + "…",
    }


def _words(event: Event, history: RunState) -> str:
    match event:
        case Began():
            return f"the run was created: {event.problem.words}, strategy {event.strategy}"
        case Bounded():
            return f"bounds of the rewards were declared: {event.bounds[0]:g} to {event.bounds[1]:g}"
        case Arranged():
            return "the measurement settings were recorded"
        case Asked():
            return f"round {event.round} asked for {_tickets(event.arms)}, {_pulls(event.counts.sum())}"
        case Leased():
            return f"{_tickets(event.arms)} of round {event.round} went to {worker_words(event.worker)}"
        case Released():
            return _release(event)
        case Answered():
            number = counted(int(event.counts.sum()), "pull")
            return (
                f"{worker_words(event.worker)} answered {number}, which are parts of tickets of round "
                f"{event.round}"
            )
        case Told():
            return f"{worker_words(event.worker)} answered {_tickets(event.arms)} of round {event.round}"
        case Conflict():
            name = plain_name(history.problem.name(event.arm))
            who = worker_words(event.worker)
            return f"{who} told {event.refused:g} for {name}; the earlier answer {event.kept:g} is kept"
        case Scored():
            name = plain_name(event.ticket.name)
            return f"a pull of {name} failed and counts as {event.score:g}: {event.reason}"
        case Suspended():
            reason = event.reason.removeprefix(STOPPED)
            return f"measuring {'stopped' if event.until is None else 'waits'}: {reason}"
        case Stopped():
            why = f": {event.why}" if event.why else ""
            return f"{worker_words(event.by)} asked all drivers to stop{why}"
        case Narrowed():
            return f"the run continues with epsilon {event.epsilon:g}"
        case Limited():
            return f"the next round is smaller, since {event.left:,.6g} is left of the budget"
        case Fed():
            rows = counted(len(event.arms), "row")
            return f"{worker_words(event.worker)} fed {rows}, {_pulls(event.counts.sum())}"
        case Withdrawn():
            name = plain_name(history.problem.name(event.arm))
            return f"{worker_words(event.by)} withdrew the answer {event.mean:g} for {name}: {event.why}"
        case Ended():
            return f"the run ended, with {counted(len(event.selected), 'arm')} selected"


def _release(event: Released) -> str:
    who, tickets = worker_words(event.worker), f"{_tickets(event.arms)} of round {event.round}"
    if not event.by:
        return f"{who} released {tickets}"
    if event.by == event.worker:
        return f"{who} aborted measuring {tickets}"
    return f"{worker_words(event.by)} released {tickets} of {who}"


def _tickets(arms: Any) -> str:
    return counted(len(arms), "ticket")


def _pulls(number: int) -> str:
    return counted(int(number), "pull")
