"""Sheets of answers: checked against the tickets of a run, and added to it, all or nothing."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shortlist.errors import InvalidAnswers, MeasurementFailed
from shortlist.escaping import is_name
from shortlist.measure import Call, Summary, check_answer, summary_of
from shortlist.measure.shared_items import ids_of
from shortlist.session.answer_events import is_in_conflict, is_recorded
from shortlist.session.answers import Answers, check_rounding, check_variances
from shortlist.session.doubtful_answers import (
    DATA_ENTRY_QUESTION,
    doubt_about_answers,
    doubts_about_earlier,
)
from shortlist.session.session import Session
from shortlist.session.sheet_format import Entry, read_sheet, ticket_text
from shortlist.store import Conflict, MemoryStore, Scored, Store, Told, copy_run
from shortlist.tickets import Tickets

_TICKET = re.compile(r"([a-z]+)-r([0-9]{1,18})-a([0-9]{1,18})")


@dataclass(frozen=True, eq=False)
class Sheet:
    """The entries of a sheet by round and arm; all belong to one run, and no ticket occurs twice.

    Attributes
    ----------
    rounds
        For each round, in order, the entry of each arm.
    """

    rounds: dict[int, dict[int, Entry]]

    @classmethod
    def of(
        cls, entries: Iterable[Entry], code: str, run_of: Callable[[str], str | None] = lambda _: None
    ) -> "Sheet":
        """Return a sheet for the run whose tickets have a code.

        Parameters
        ----------
        entries
            The entries that `read_sheet` returned.
        code
            The prefix of the run's tickets.
        run_of
            Returns the run whose tickets have a given prefix, if known.

        Raises
        ------
        InvalidAnswers
            If a ticket does not belong to this run, or occurs twice; the message names the line.
        """
        rounds: dict[int, dict[int, Entry]] = {}
        for entry in entries:
            number, arm = ticket_numbers(entry, code, run_of)
            seen = rounds.setdefault(number, {}).setdefault(arm, entry)
            if seen is not entry:
                raise InvalidAnswers(
                    f"{entry.where}: ticket {entry.ticket} already has an answer at {seen.where}; keep one."
                )
        return cls({number: rounds[number] for number in sorted(rounds)})

    def answers(self, session: Session) -> Iterator[Answers]:
        """Yield the answers round by round, checked against the tickets that the session has by then.

        The caller tells the answers of one round before it gets the next. Entries without an answer are
        skipped.

        Raises
        ------
        InvalidAnswers
            If an answer does not match its ticket; the message names the line.
        """
        for number, entries in self.rounds.items():
            rounds = session.history.rounds
            if number >= len(rounds):
                raise _never_asked(next(iter(entries.values())))
            if (answers := _answers(entries, rounds[number].tickets, session.entropy)) is not None:
                yield answers


def _answers(entries: dict[int, Entry], asked: Tickets, entropy: int) -> Answers | None:
    """Return the answers to tickets of one round; None if no entry has an answer."""
    given, rows = [], []
    places = {arm: place for place, arm in enumerate(asked.arms.tolist())}
    for arm, entry in entries.items():
        if arm not in places:
            raise _never_asked(entry)
        _check_labels(entry, asked, places[arm])
        if not entry.is_open:
            entry = _in_order(entry, asked, places[arm], entropy)
            told, summary = _summary(entry, asked, places[arm])
            variance = np.nan if summary.variance is None else summary.variance
            size = max(map(abs, entry.rewards or [summary.mean]))
            given.append(told)
            rows.append((places[arm], summary.mean, variance, size))
    if not rows:
        return None
    where, means, variances, sizes = map(np.array, zip(*rows, strict=True))
    tickets = asked.take(where)
    scores = None if asked.problem.items is None else [np.array(one) for one in given]
    return Answers(asked.problem, tickets, means, variances, given, sizes=sizes, scores=scores)


def _in_order(entry: Entry, asked: Tickets, place: int, entropy: int) -> Entry:
    """Return an entry with its scores in the order of the ticket's items, if there are shared items."""
    items = asked.problem.items
    if items is None:
        return entry
    if entry.rewards is None:
        raise InvalidAnswers(f"{entry.where}: give the `reward` of each item, not their mean.")
    if not entry.items:
        return entry
    (ticket,) = asked.take(slice(place, place + 1))
    wanted = ids_of(items, Call(entropy, ticket.arm, ticket.count, ticket.first_pull))
    if sorted(entry.items) != sorted(wanted):
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} asks for the items {', '.join(wanted)[:60]}, each once, "
            f"but there are scores of {', '.join(entry.items)[:60]}."
        )
    by_item = dict(zip(entry.items, entry.rewards, strict=True))
    return replace(entry, rewards=[by_item[one] for one in wanted], items=tuple(wanted))


def _never_asked(entry: Entry) -> InvalidAnswers:
    return InvalidAnswers(
        f"{entry.where}: the run never asked for ticket {entry.ticket}. Copy tickets from the output of "
        f"`shortlist ask`. (If this is an edited export of another run: changing an answer can change which "
        f"tickets later rounds ask for. Remove all rounds after that of the changed answer.)"
    )


def _check_labels(entry: Entry, asked: Tickets, place: int) -> None:
    """Refuse an entry whose labels do not match its ticket, as if a single column had been sorted."""
    (ticket,) = asked.take(slice(place, place + 1))
    for (label, cell), where in entry.labels.items():
        wanted = {"arm": str(ticket.arm), "name": ticket.name, "pulls": str(ticket.count)}[label]
        if not is_name(cell, wanted):
            raise InvalidAnswers(
                f"{where}: the {label} is {cell!r:.60}, but ticket {entry.ticket} has {wanted!r:.60}. So "
                "it is unclear which ticket the answer belongs to. Put every answer on the line of its "
                f"ticket. If only the column `{label}` is wrong, remove that column."
            )


def ticket_numbers(
    entry: Entry, own: str, run_of: Callable[[str], str | None] = lambda _: None
) -> tuple[int, int]:
    """Return the round and the arm of a ticket, if it belongs to this run."""
    parts = _TICKET.fullmatch(entry.ticket.lower())
    if parts is None:
        raise InvalidAnswers(
            f"{entry.where}: {entry.ticket!r} is not a ticket; tickets of this run look like "
            f"{ticket_text(own, 0, 12)}."
        )
    if parts[1] != own:
        other = run_of(parts[1])
        whose = "another run" if other is None else f"run {other!r}"
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} belongs to {whose}; tickets of this run start with {own}. "
            f"Tell each run its own answers."
        )
    return int(parts[2]), int(parts[3])


def _summary(entry: Entry, asked: Tickets, place: int) -> tuple[Any, Summary]:
    """Return an answer as given and as a summary, if it matches its ticket."""
    tickets = asked.take(slice(place, place + 1))
    (ticket,) = tickets
    if entry.rewards is not None and len(entry.rewards) != ticket.count:
        summary = "their `mean` and sample `variance`" if tickets.needs_variances else "the `mean` of all"
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} asks for {_pulls(ticket.count)} of {ticket.name}, but "
            f"there are {len(entry.rewards):,} rewards. Give one per pull, or {summary}."
        )
    if entry.count is not None and entry.count != ticket.count:
        raise InvalidAnswers(
            f"{entry.where}: ticket {entry.ticket} asks for {_pulls(ticket.count)} of {ticket.name}, but the "
            f"count is {entry.count:,.15g}. Make exactly as many pulls as the ticket asks for."
        )
    if tickets.needs_variances and entry.rewards is None and entry.variance is None:
        why = ", and this round is the pilot that estimates them" if tickets.is_pilot else ""
        raise InvalidAnswers(
            f"{entry.where}: variances are unknown{why}. Give all {ticket.count:,} rewards of "
            f"{ticket.name}, or their `mean` and sample `variance`."
        )
    try:
        told = entry.rewards or Summary(ticket.count, entry.mean or 0.0, entry.variance)
        answer = summary_of(told, ticket.count, ticket.name)
        check_rounding(tickets.problem, np.array([answer.mean]))
        check_answer(tickets.problem, ticket.arm, told, answer)
        if tickets.needs_variances:
            check_variances(tickets, np.array([answer.variance], dtype=np.float64))
    except MeasurementFailed as error:
        raise InvalidAnswers(f"{entry.where}: {error}") from None
    return told, answer


def _pulls(count: int) -> str:
    return "one pull" if count == 1 else f"{count:,} pulls"


@dataclass(frozen=True, eq=False)
class Taken:
    """The outcome of telling a sheet, in numbers of tickets.

    Attributes
    ----------
    taken, known
        New answers, and those that were already known.
    left_open
        Tickets of the sheet without an answer.
    conflicts
        Answers that differ from earlier ones, which are kept.
    unfinished
        Those left open although some of their rewards are given, with the place of the first missing one.
    """

    taken: int
    known: int
    left_open: int
    conflicts: tuple[Conflict, ...] = ()
    unfinished: tuple[tuple[str, str], ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """All numbers, by name."""
        return {
            "taken": self.taken,
            "known": self.known,
            "conflicting": len(self.conflicts),
            "left_open": self.left_open,
        }


def tell_sheet(
    session: Session,
    store: Store,
    entries: Sequence[Entry],
    worker: str = "",
    run_of: Callable[[str], str | None] = lambda _: None,
    *,
    scored: Sequence[Scored] = (),
    again: Sequence[tuple[int, int]] = (),
    careful: bool = False,
    confirmed: Sequence[tuple[int, int]] = (),
    withdraw: Callable[[str], str] | None = None,
) -> Taken:
    """Tell a session the answers of a sheet, which may cover several rounds.

    Parameters
    ----------
    session, store
        The run, and its store.
    entries
        The entries that `read_sheet` returned.
    worker
        The worker who measured.
    run_of
        Returns the run whose tickets have a given prefix, for error messages.
    scored
        The pulls that failed, and the values that the answers contain for them.
    again
        Rounds and arms of tickets that were measured, or tried, more than once.
    careful
        Whether to refuse answers of the current round that are far from all others, or differ from recorded
        ones that can still be withdrawn; and all answers, if they show that a recorded one is far from all
        others.
    confirmed
        Rounds and arms of recorded answers that are right although they are far from all others.
    withdraw
        Returns the command that withdraws the answer to a ticket, if messages may name commands.

    Raises
    ------
    InvalidAnswers
        If an answer does not match its ticket, or may be a data-entry error. Then nothing is added, and the
        message says so.
    """
    entries = _leaving_open(session, entries)
    try:
        sheet = Sheet.of(entries, session.code, run_of)
        _refuse_stray(sheet, scored)
        if max(sheet.rounds, default=0) > session.asked.round:
            session.refresh()
        if max(sheet.rounds, default=0) > session.asked.round:
            _rehearse(session, store, sheet, scored)
        else:
            list(sheet.answers(session))
        if careful:
            _refuse_doubtful(session, sheet, confirmed, withdraw)
    except InvalidAnswers as error:
        raise InvalidAnswers(f"{error} Nothing was added.") from None
    try:
        told = _told(session, sheet, worker, scored, again)
    except InvalidAnswers as error:  # others have told other answers since
        raise InvalidAnswers(f"{error} The rounds before it were added.") from None
    unfinished = tuple((entry.ticket, entry.unfinished) for entry in entries if entry.unfinished)
    return replace(told, left_open=sum(entry.is_open for entry in entries), unfinished=unfinished)


def untold(session: Session, data: bytes) -> int:
    """Return how many answers in a CSV file the run does not know, those of other runs included.

    Raises
    ------
    InvalidAnswers
        If the file is not a sheet, or an answer in it does not match its ticket.
    """
    entries = _leaving_open(session, read_sheet(data, "csv"))
    own, n_untold = [], 0
    for entry in entries:
        parts = _TICKET.fullmatch(entry.ticket.lower())
        is_own = (
            parts is not None and parts[1] == session.code and int(parts[2]) < len(session.history.rounds)
        )
        if is_own and not entry.unfinished:
            own.append(entry)
        else:
            n_untold += not entry.is_open or bool(entry.unfinished)
    for given in Sheet.of(own, session.code).answers(session):
        n_untold += int((~is_recorded(session.history, given)).sum())
    return n_untold


def _leaving_open(session: Session, entries: Iterable[Entry]) -> list[Entry]:
    """Return entries of which those with fewer rewards than their tickets ask for have no answer yet."""
    counts: dict[int, dict[int, int]] = {}  # by round and arm
    return [
        replace(entry, rewards=None, items=(), unfinished=entry.where)
        if _lacks(session, entry, counts)
        else entry
        for entry in entries
    ]


def _lacks(session: Session, entry: Entry, counts: dict[int, dict[int, int]]) -> bool:
    """Return whether some rewards of a ticket are still to be filled in; note the rounds that are needed."""
    parts, rounds = _TICKET.fullmatch(entry.ticket.lower()), session.history.rounds
    if entry.rewards is None or not entry.may_be_filled_in or parts is None or parts[1] != session.code:
        return False
    number, arm = int(parts[2]), int(parts[3])
    if number not in counts and number < len(rounds):
        asked = rounds[number].tickets
        counts[number] = dict(zip(asked.arms.tolist(), asked.counts.tolist(), strict=True))
    return len(entry.rewards) < counts.get(number, {}).get(arm, 0)


def run_with_code(store: Store, code: str) -> str | None:
    """Return the run whose tickets start with this code; None if there is no such run, or several."""
    firsts = {run: next(iter(store.read(run)), None) for run in store.runs()}
    found = [run for run, first in firsts.items() if first and getattr(first.event, "code", None) == code]
    return found[0] if len(found) == 1 else None


def _refuse_doubtful(
    session: Session,
    sheet: Sheet,
    confirmed: Sequence[tuple[int, int]],
    withdraw: Callable[[str], str] | None,
) -> None:
    """Refuse answers of this round that are probably wrong, or show that a recorded one probably is."""
    history = session.history
    own = sheet.rounds.get(history.round.number, {})
    insist = "repeat the command with --yes" if withdraw else "send it without `careful`"
    for given in Sheet({history.round.number: own} if own else {}).answers(session):
        for place in np.flatnonzero(is_in_conflict(history, given)).tolist():
            _refuse_conflict(session, given, place, own, withdraw)
        if found := doubt_about_answers(history, given):
            names = {session.problem.name(arm): entry.where for arm, entry in own.items()}
            about = max((name for name in names if found.startswith(f"{name}: ")), key=len)
            raise InvalidAnswers(f"{names[about]}: {found} {DATA_ENTRY_QUESTION} If it is right, {insist}.")
        for earlier, found in doubts_about_earlier(history, given):
            if (earlier.round, earlier.arm) in confirmed:
                continue
            text = ticket_text(session.code, earlier.round, earlier.arm)
            if withdraw is None:
                todo = f"withdraw ticket {text}; if it is right, list the ticket in `confirmed`."
            else:
                todo = f"`{withdraw(text)}`; if it is right, repeat the command with --yes."
            raise InvalidAnswers(f"{found} {DATA_ENTRY_QUESTION} If it is wrong: {todo}")


def _refuse_conflict(
    session: Session,
    given: Answers,
    place: int,
    entries: dict[int, Entry],
    withdraw: Callable[[str], str] | None,
) -> None:
    """Refuse an answer that differs from the recorded one, which can still be withdrawn."""
    round, ticket = session.history.round, given.tickets[place]
    where = int(round.places(np.array([ticket.arm]))[0])
    kept, new = float(round.means[where]), float(given.means[place])
    what = ""
    if kept == new and round.spreads is not None:
        what, kept, new = "the variance ", float(round.spreads[where]), float(given.variances[place])
    text = ticket_text(session.code, ticket.round, ticket.arm)
    said = f"{entries[ticket.arm].where}: {ticket.name} has {what}{kept:.15g}, "
    if withdraw is None:
        said += f"and this answer is {new:.15g}. To correct it, withdraw ticket {text}, then send this again."
    else:
        said += (
            f"the file says {new:.15g}. To correct it: `{withdraw(text)}`, then tell this file again. To "
            f"keep {kept:.15g}, repeat the command with --yes."
        )
    raise InvalidAnswers(said)


def _refuse_stray(sheet: Sheet, scored: Sequence[Scored]) -> None:
    """Refuse failures of rounds without an answer; those of other rounds are checked with the answers."""
    answered = {
        round for round, entries in sheet.rounds.items() if not all(e.is_open for e in entries.values())
    }
    if stray := {one.ticket.round for one in scored} - answered:
        raise InvalidAnswers(
            f"failed pulls of round {min(stray)} were scored, but there is no answer for that round."
        )


def _rehearse(session: Session, store: Store, sheet: Sheet, scored: Sequence[Scored]) -> None:
    """Tell a copy of the run first, if there are several rounds: if any is invalid, nothing is added."""
    memory = MemoryStore()
    copy_run(store, memory, session.name)
    _told(Session.resume(memory, session.name), sheet, "", scored, ())


def _told(
    session: Session,
    sheet: Sheet,
    worker: str,
    scored: Sequence[Scored],
    again: Sequence[tuple[int, int]],
) -> Taken:
    counts = list(_each(session, sheet, worker, scored, again))
    taken, conflicts = sum(new for _, new, _ in counts), [one for *_, some in counts for one in some]
    known = sum(n for n, *_ in counts) - taken - len(conflicts)
    return Taken(taken, known, 0, tuple(conflicts))


def _each(
    session: Session,
    sheet: Sheet,
    worker: str,
    scored: Sequence[Scored],
    again: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int, list[Conflict]]]:
    """Tell a session round by round; yield the number of answers, the number of new ones, and conflicts."""
    for one in sheet.answers(session):
        own = [score for score in scored if score.ticket.round == one.tickets.round]
        arms = [arm for number, arm in again if number == one.tickets.round]
        events = session.record(replace(one, worker=worker, scored=own, again=arms))
        new = sum(len(event.arms) for event in events if isinstance(event, Told))
        yield len(one.tickets), new, [event for event in events if isinstance(event, Conflict)]
