"""``shortlist tell``: answers to tickets, from a file."""

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.options import json_option, store_option, worker_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.resuming import next_command
from shortlist.cli.stores import refuse_file, run_with_code, who, writing
from shortlist.errors import Contradiction, InvalidAnswers

if TYPE_CHECKING:
    from shortlist.run import Session
    from shortlist.run.answering import Sheet
    from shortlist.store import Conflict, Store

_MOST_CONFLICTS = 10  # that are shown one by one


@click.command("tell")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json"]),
    help="How FILE is written; by default as its name or its first letter says.",
)
@worker_option
@store_option
@json_option("what was taken")
def command(run: str, file: Path, form: str | None, worker: str | None, where: str, as_json: bool) -> None:
    """Tell RUN the results in FILE, or piped in if FILE is -.

    FILE is a sheet of `shortlist ask --csv` with one column more: `mean`, the mean of all pulls of the
    ticket; or `reward`, with one line for each pull. In a pilot for unknown variances a mean needs the
    sample `variance` beside it. Columns `arm`, `name` and `pulls`, if they are there, must fit the ticket;
    others do not matter. Tickets without an answer stay open. Answers of later rounds are taken as well, if
    those before them are there: so what `shortlist export` wrote can be told to another run.
    JSON is a list:

    \b
      [{"ticket": "kqzf-r3-a17", "rewards": [1.5, 2.0]},
       {"ticket": "kqzf-r3-a18", "mean": 1.75, "variance": 0.5}]

    If anything in FILE is wrong, nothing of it is taken, and the line is named. Telling the same again does
    no harm. If a ticket has another answer already, that one stands, and the new one is noted as a conflict.
    Late answers are taken.

    \b
      shortlist tell trial ann.csv
      ./measure.sh < tickets.csv | shortlist tell trial -

    Exit status: 0 the answers were taken, 2 FILE or the command is wrong, 4 the store failed.
    """
    from shortlist.run import Session
    from shortlist.run.answering import Sheet
    from shortlist.run.sheets import read_sheet

    worker = who(worker)
    data = _data(file)
    name = "what was piped in" if str(file) == "-" else file
    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        try:
            entries = read_sheet(data, form or _form(file))
            sheet = Sheet.of(entries, session.code, lambda code: run_with_code(store, code))
            if max(sheet.rounds, default=0) > session.asked.round:
                _rehearse(session, store, sheet)
            else:
                list(sheet.answers(session))
        except InvalidAnswers as error:
            raise InvalidAnswers(f"{name}: {error} Nothing was taken.") from None
        try:
            counts, conflicts = _told(session, sheet, worker)
        except InvalidAnswers as error:  # others have told something else since
            raise InvalidAnswers(f"{name}: {error} The rounds before that were taken.") from None
        counts["left_open"] = sum(entry.is_open for entry in entries)
        if as_json:
            print_json(_dict(session, counts, conflicts))
        else:
            _say(session, counts)
    _warn(session, conflicts)


def _data(file: Path) -> bytes:
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidAnswers(
            f"{file} cannot be read: {error.strerror}. Give the file with answers."
        ) from None


def _form(file: Path) -> str | None:
    return {".json": "json", ".csv": "csv", ".tsv": "csv"}.get(file.suffix.lower())


def _rehearse(session: "Session", store: "Store", sheet: "Sheet") -> None:
    """Tell a copy of the run first, where rounds follow on each other: nothing is taken if any is wrong."""
    from shortlist.run import Session
    from shortlist.store import MemoryStore, copy_run

    memory = MemoryStore()
    copy_run(store, memory, session.name)
    _told(Session.resume(memory, session.name), sheet, "")


def _told(session: "Session", sheet: "Sheet", worker: str) -> "tuple[dict[str, int], list[Conflict]]":
    """Tell the session; return what came of the answers in numbers, and the contradictions."""
    from shortlist.store import Conflict, Told

    n_answers, n_taken, conflicts = 0, 0, []
    for one in sheet.answers(session):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Contradiction)
            events = session.take(one.tickets, one.summaries, worker=worker)
        n_answers += len(one.places)
        n_taken += sum(len(event.arms) for event in events if isinstance(event, Told))
        conflicts += [event for event in events if isinstance(event, Conflict)]
    n_known = n_answers - n_taken - len(conflicts)
    return {"taken": n_taken, "known": n_known, "conflicting": len(conflicts)}, conflicts


def _say(session: "Session", counts: dict[str, int]) -> None:
    from shortlist.report.company_text import counted

    parts = [f"{counted(counts['taken'], 'answer')} taken"]
    if counts["known"]:
        parts.append(f"{counts['known']:,} known already")
    if counts["conflicting"]:
        parts.append(f"{counts['conflicting']:,} in conflict with earlier ones, which stand")
    if counts["left_open"]:
        parts.append(f"{counts['left_open']:,} left open in the file")
    show_plain("; ".join(parts) + ".")
    if session.is_done:
        show_plain(f"Run {session.name} has ended.\n{session.result}")
        return
    round = session.history.round
    n = len(round.tickets)
    if round.n_missing < n:
        open_ = counted(n, "ticket")
        verb = "is" if round.n_missing == 1 else "are"
        show_plain(f"{round.n_missing:,} of {open_} of round {round.number} {verb} still open.")
    else:
        show_plain(f"Round {round.number} asks for {counted(n, 'ticket')}. Next:")
        click.echo(f"  {next_command('ask', session.name, '--csv')} > tickets.csv")


def _dict(session: "Session", counts: dict[str, int], conflicts: "list[Conflict]") -> dict[str, Any]:
    from shortlist.run.sheets import ticket_text

    round = session.history.round
    return {
        "run": session.name,
        **counts,
        "conflicts": [
            {
                "ticket": ticket_text(session.code, one.round, one.arm),
                "kept": one.kept,
                "refused": one.refused,
            }
            for one in conflicts
        ],
        "round": round.number,
        "n_open": round.n_missing,
        "n_tickets": len(round.tickets),
        "is_done": session.is_done,
        "result": session.result.to_dict() if session.is_done else None,
    }


def _warn(session: "Session", conflicts: "list[Conflict]") -> None:
    from shortlist.run.printable import printable
    from shortlist.run.sheets import ticket_text

    for one in conflicts[:_MOST_CONFLICTS]:
        ticket = ticket_text(session.code, one.round, one.arm)
        name = printable(session.problem.name(one.arm))
        click.echo(
            f"Warning: {ticket} ({name}) was told before with mean {one.kept:g} and now with "
            f"{one.refused:g}; the first stands.",
            err=True,
        )
    if len(conflicts) > _MOST_CONFLICTS:
        click.echo(f"Warning: and {len(conflicts) - _MOST_CONFLICTS:,} more.", err=True)
