"""Answers of a sheet, held against what a run asked for."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from shortlist.errors import InvalidAnswers, MeasurementFailed
from shortlist.measure import Summary, summary_of
from shortlist.run.answers import check_rounding, variances_of
from shortlist.run.history import History, Round
from shortlist.run.sheets import Entry, ticket_text
from shortlist.tickets import Tickets

_ROUNDING = 1e-13  # of the largest reward
_TICKET = re.compile(r"([a-z]+)-r([0-9]{1,18})-a([0-9]{1,18})")


@dataclass(eq=False)
class Answers:
    """The answers to tickets of one round."""

    round: Round
    places: list[int] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)

    @property
    def tickets(self) -> Tickets:
        """The tickets, in the order of the answers."""
        return self.round.tickets.take(np.array(self.places))

    @property
    def n_known(self) -> int:
        """How many of the tickets have been told."""
        return int(self.round.is_told[self.places].sum())


def fitted(
    entries: Iterable[Entry], history: History, run_of: Callable[[str], str | None] = lambda _: None
) -> list[Answers]:
    """Return the answers of a sheet by round, in order; entries without an answer are left out.

    Parameters
    ----------
    entries
        What `read_sheet` returned.
    history
        The run that is told.
    run_of
        Returns the run whose tickets have a code, if that can be found out.

    Raises
    ------
    InvalidAnswers
        If an answer does not fit what was asked; the message names the line.
    """
    found: dict[int, Answers] = {}
    arms: dict[int, dict[int, int]] = {}  # by round: where each arm stands
    seen: dict[tuple[int, int], str] = {}
    for entry in entries:
        number, arm = _numbers(entry, history, run_of)
        if (number, arm) in seen:
            raise InvalidAnswers(
                f"{entry.where}: ticket {entry.ticket} has an answer at {seen[number, arm]} already; "
                f"leave one."
            )
        seen[number, arm] = entry.where
        round = history.rounds[number] if number < len(history.rounds) else None
        if round is not None and number not in arms:
            arms[number] = {one: place for place, one in enumerate(round.tickets.arms.tolist())}
        if round is None or arm not in arms[number]:
            raise InvalidAnswers(
                f"{entry.where}: the run never asked for ticket {entry.ticket}. Copy the tickets from the "
                f"sheet that `shortlist ask` printed."
            )
        if not entry.is_open:
            answers = found.setdefault(number, Answers(round))
            answers.places.append(arms[number][arm])
            answers.summaries.append(_summary(entry, round, arms[number][arm]))
    return [found[number] for number in sorted(found)]


def _numbers(entry: Entry, history: History, run_of: Callable[[str], str | None]) -> tuple[int, int]:
    """Return the round and the arm of a ticket, if it is one of this run."""
    parts = _TICKET.fullmatch(entry.ticket.lower())
    own = history.began.code
    if parts is None:
        raise InvalidAnswers(
            f"{entry.where}: {entry.ticket!r} is no ticket; those of this run look like "
            f"{ticket_text(own, 0, 12)}."
        )
    if parts[1] != own:
        other = run_of(parts[1])
        whose = "another run" if other is None else f"run {other!r}"
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} belongs to {whose}; tickets of this one begin with {own}. "
            f"Tell each run its own answers."
        )
    return int(parts[2]), int(parts[3])


def _summary(entry: Entry, round: Round, place: int) -> Summary:
    """Return an answer as a summary, if the session will take it."""
    tickets = round.tickets.take(slice(place, place + 1))
    (ticket,) = tickets
    if entry.rewards is not None and len(entry.rewards) != ticket.count:
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} asks for {_pulls(ticket.count)} of {ticket.name}, but "
            f"there are {len(entry.rewards):,} rewards. Give one for each pull, or the `mean` of all."
        )
    if entry.count is not None and entry.count != ticket.count:
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} asks for {_pulls(ticket.count)} of {ticket.name}, but the "
            f"count is {entry.count:,.15g}. Pull exactly as often as was asked."
        )
    if tickets.needs_variances and entry.rewards is None and entry.variance is None:
        raise InvalidAnswers(
            f"{entry.where}: variances are unknown, and this round is the pilot that shows them. Give all "
            f"{ticket.count:,} rewards of {ticket.name}, or beside the `mean` their sample `variance`."
        )
    try:
        given = Summary(ticket.count, entry.mean or 0.0, entry.variance)
        answer = summary_of(given if entry.rewards is None else entry.rewards, ticket.count, ticket.name)
        check_rounding(tickets.problem, np.array([answer.mean]))
        if tickets.needs_variances:
            variances_of(tickets, [answer])
    except MeasurementFailed as error:
        raise InvalidAnswers(f"{entry.where}: {error}") from None
    return _as_known(answer, round, place, max(map(abs, entry.rewards or [answer.mean])))


def _as_known(answer: Summary, round: Round, place: int, size: float) -> Summary:
    """Return an answer as it was told before, if the two differ by no more than rounding.

    Spreadsheets keep fifteen digits, and the mean of rewards in another order may have another last digit.
    """
    mean, variance = float(round.means[place]), answer.variance
    if not abs(answer.mean - mean) <= _ROUNDING * size:
        return answer
    if round.spreads is not None and variance is not None:
        known = float(round.spreads[place])
        variance = known if abs(variance - known) <= _ROUNDING * (known + size * size) else variance
    return Summary(answer.count, mean, variance)


def _pulls(count: int) -> str:
    return "one pull" if count == 1 else f"{count:,} pulls"
