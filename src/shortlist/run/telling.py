"""A whole sheet of answers, told to a run: all of it, or nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shortlist.errors import InvalidAnswers
from shortlist.run.answering import Sheet
from shortlist.run.session import Session
from shortlist.run.sheets import Entry
from shortlist.store import Conflict, MemoryStore, Scored, Store, Told, copy_run


@dataclass(frozen=True, eq=False)
class Taken:
    """What came of the answers of a sheet, in numbers of tickets.

    Attributes
    ----------
    taken, known
        Answers that are new, and those that were known already.
    left_open
        Tickets of the sheet without an answer.
    conflicts
        Answers that differ from earlier ones, which stand.
    """

    taken: int
    known: int
    left_open: int
    conflicts: tuple[Conflict, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """All of it in numbers."""
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
) -> Taken:
    """Tell a session the answers of a sheet, which may be of several rounds.

    Parameters
    ----------
    session, store
        The run, and where it is kept.
    entries
        What `read_sheet` returned.
    worker
        Who measured.
    run_of
        Returns the run whose tickets have a code, for the message if one does not belong here.
    scored
        Which of the pulls failed, and what they are counted as in these answers.
    again
        Rounds and arms of tickets that were measured, or tried, more than once.

    Raises
    ------
    InvalidAnswers
        If something does not fit what was asked. Nothing is taken then, as the message says.
    """
    try:
        sheet = Sheet.of(entries, session.code, run_of)
        _refuse_stray(sheet, scored)
        if max(sheet.rounds, default=0) > session.asked.round:
            session.refresh()
        if max(sheet.rounds, default=0) > session.asked.round:
            _rehearse(session, store, sheet, scored)
        else:
            list(sheet.answers(session))
    except InvalidAnswers as error:
        raise InvalidAnswers(f"{error} Nothing was taken.") from None
    try:
        told = _told(session, sheet, worker, scored, again)
    except InvalidAnswers as error:  # others have told something else since
        raise InvalidAnswers(f"{error} The rounds before that were taken.") from None
    return replace(told, left_open=sum(entry.is_open for entry in entries))


def run_with_code(store: Store, code: str) -> str | None:
    """Return the run whose tickets begin with this code; None if there is no such run, or several."""
    firsts = {run: next(iter(store.read(run)), None) for run in store.runs()}
    found = [run for run, first in firsts.items() if first and getattr(first.event, "code", None) == code]
    return found[0] if len(found) == 1 else None


def _refuse_stray(sheet: Sheet, scored: Sequence[Scored]) -> None:
    """Refuse failures of rounds without an answer; those of other rounds are compared with the answers."""
    answered = {
        round for round, entries in sheet.rounds.items() if not all(e.is_open for e in entries.values())
    }
    if stray := {one.ticket.round for one in scored} - answered:
        raise InvalidAnswers(f"failed pulls of round {min(stray)} were scored, but no answer to it is here.")


def _rehearse(session: Session, store: Store, sheet: Sheet, scored: Sequence[Scored]) -> None:
    """Tell a copy of the run first, where rounds follow on each other: nothing is taken if any is wrong."""
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
    """Tell a session round by round; yield how many answers there were, how many new ones, and conflicts."""
    for one in sheet.answers(session):
        own = [score for score in scored if score.ticket.round == one.asked.round]
        arms = [arm for number, arm in again if number == one.asked.round]
        sizes = np.array(one.sizes)
        events = session.take(one.tickets, one.summaries, worker=worker, scored=own, sizes=sizes, again=arms)
        new = sum(len(event.arms) for event in events if isinstance(event, Told))
        yield len(one.places), new, [event for event in events if isinstance(event, Conflict)]
