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
    from shortlist.run.answering import Answers
    from shortlist.run.sheets import Entry
    from shortlist.store import Conflict

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
    sample `variance` beside it. Other columns do not matter. Tickets without an answer stay open.
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
    from shortlist.run.answering import fitted
    from shortlist.run.sheets import read_sheet

    worker = who(worker)
    data = _data(file)
    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        try:
            entries = read_sheet(data, form or _form(file))
            answers = fitted(entries, session.history, lambda code: run_with_code(store, code))
        except InvalidAnswers as error:
            name = "what was piped in" if str(file) == "-" else file
            raise InvalidAnswers(f"{name}: {error} Nothing was taken.") from None
        n_known, conflicts = _told(session, answers, worker)
        counts = _counts(entries, answers, n_known, len(conflicts))
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


def _told(session: "Session", answers: "list[Answers]", worker: str) -> "tuple[int, list[Conflict]]":
    """Tell the session; return how many answers it had already, and those that contradict them."""
    n_known, before = 0, len(session.conflicts)
    for one in answers:
        n_known += one.n_known
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Contradiction)
            session.tell(one.tickets, one.summaries, worker=worker)
    own = [conflict for conflict in session.conflicts[before:] if conflict.worker == worker]
    return n_known, own


def _counts(
    entries: "list[Entry]", answers: "list[Answers]", n_known: int, n_conflicts: int
) -> dict[str, int]:
    n_answers = sum(len(one.places) for one in answers)
    return {
        "taken": n_answers - n_known,
        "known": n_known - n_conflicts,
        "conflicting": n_conflicts,
        "left_open": sum(entry.is_open for entry in entries),
    }


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
    from shortlist.run.sheets import ticket_text

    for one in conflicts[:_MOST_CONFLICTS]:
        ticket = ticket_text(session.code, one.round, one.arm)
        name = session.problem.name(one.arm)
        click.echo(
            f"Warning: {ticket} ({name}) was told before with mean {one.kept:g} and now with "
            f"{one.refused:g}; the first stands.",
            err=True,
        )
    if len(conflicts) > _MOST_CONFLICTS:
        click.echo(f"Warning: and {len(conflicts) - _MOST_CONFLICTS:,} more.", err=True)
