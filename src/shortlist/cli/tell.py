"""``shortlist tell``: add the answers in a file to a run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shortlist.cli.options import json_option, store_option, worker_option
from shortlist.cli.output import print_json, say, show_plain
from shortlist.cli.resuming import best_so_far, next_command
from shortlist.cli.stores import refuse_file, who, writing
from shortlist.errors import InvalidAnswers

if TYPE_CHECKING:
    from shortlist.session import Session
    from shortlist.session.tell_sheet import Taken
    from shortlist.store import Conflict

_MOST_CONFLICTS = 10  # shown one by one


@click.command("tell")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json"]),
    help="Format of FILE; by default detected from its name or first character.",
)
@click.option(
    "--yes", is_flag=True, help="Accept answers that are far from all others, and record conflicts."
)
@worker_option
@store_option
@json_option("what was added")
def command(
    run: str, file: Path, form: str | None, yes: bool, worker: str | None, where: str, as_json: bool
) -> None:
    """Add the answers in FILE to RUN; FILE is - for standard input.

    FILE is the sheet that `shortlist ask` wrote, filled in.

    \b
    Fill in one of these columns:
      mean      the mean of all pulls of the ticket
      rewards   all rewards in one cell, separated by spaces
      reward    one reward per line; the ticket is repeated on every line

    If variances are unknown, a mean also needs the sample variance, in the column `variance`. Some strategies
    need it in the first round only, others in every round.

    The columns `arm`, `name` and `pulls` may be left out; if they are present, they must match the ticket.
    Other columns are ignored. A ticket stays open if it has no answer, or if some of its rewards are missing.
    Answers to later rounds are accepted if FILE or RUN has all answers to earlier rounds. So you can tell the
    output of `shortlist export` to another run. In JSON, FILE is a list:

    \b
      [{"ticket": "kqzfmb-r3-a17", "rewards": [1.5, 2.0]},
       {"ticket": "kqzfmb-r3-a18", "mean": 1.75, "variance": 0.5}]

    If anything in FILE is invalid, nothing is added, and the error message names the line. FILE is also
    refused if it contains a probable data-entry error. If the numbers are right, repeat the command with
    --yes.

    \b
    These are probable data-entry errors:
      - an answer that is very far from earlier answers for the same arm.
    If variances are unknown, also:
      - an answer recorded earlier in this round, if FILE shows that it is very
        far from the other answers;
      - a reward that is very far from the other rewards of its ticket;
      - the first mean of an arm, if it is very far from the other arms' means;
      - a sample variance that is very far above those of other arms.

    Telling the same answer twice is harmless. A different answer to a ticket that has one already is refused
    if `shortlist withdraw` can still withdraw the first answer. If you use --yes, or if the round of the
    ticket was decided, the first answer is kept and the new one is recorded as a conflict. Late answers are
    accepted.

    Answers from standard input are not checked for data-entry errors and conflicts, since programs write
    them.

    \b
      shortlist tell trial ann.csv
      ./measure.sh < tickets.csv | shortlist tell trial -

    \b
    Exit status:
      0  the answers were added
      2  FILE or the command line is wrong
      4  the store failed
    """
    from shortlist.report.worker_json import ended_dict, told_dict
    from shortlist.session import Session
    from shortlist.session.sheet_format import read_sheet
    from shortlist.session.tell_sheet import run_with_code, tell_sheet

    worker = who(worker)
    data = data_of(file)
    is_by_hand = str(file) != "-"  # programs write to standard output
    name = file if is_by_hand else "standard input"
    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        try:
            entries = read_sheet(data, form or _form(file))
        except InvalidAnswers as error:
            raise InvalidAnswers(f"{name}: {error} Nothing was added.") from None
        try:
            careful = is_by_hand and not yes
            told = tell_sheet(
                session,
                store,
                entries,
                worker,
                lambda code: run_with_code(store, code),
                careful=careful,
                withdraw=lambda ticket: f'{next_command("withdraw", run, ticket)} --why "..."',
            )
        except InvalidAnswers as error:
            raise InvalidAnswers(f"{name}: {error}") from None
        if as_json:
            print_json(told_dict(session, told) | ended_dict(session))
        else:
            _say(session, told)
    _warn(session, told.conflicts)


def data_of(file: Path) -> bytes:
    """Return the content of a file, or of standard input."""
    from shortlist.input_files import read_bytes, read_stdin

    try:
        return read_stdin() if str(file) == "-" else read_bytes(file)
    except OSError as error:
        raise InvalidAnswers(
            f"{file} cannot be read: {error.strerror}. Give the file with the answers."
        ) from None


def _form(file: Path) -> str | None:
    return {".json": "json", ".csv": "csv", ".tsv": "csv"}.get(file.suffix.lower())


def _say(session: "Session", told: "Taken") -> None:
    from shortlist.report.text_format import counted

    parts = [f"{counted(told.taken, 'answer')} added"]
    if told.known:
        parts.append(f"{told.known:,} already known")
    if told.conflicts:
        parts.append(f"{len(told.conflicts):,} in conflict with earlier ones, which are kept")
    if told.left_open:
        parts.append(f"{told.left_open:,} without an answer in the file")
    show_plain("; ".join(parts) + ".")
    if told.unfinished:
        places = [f"{ticket} ({where})" for ticket, where in told.unfinished[:_MOST_CONFLICTS]]
        more = ", ..." if len(told.unfinished) > len(places) else ""
        show_plain(f"Left open, since rewards are missing: {', '.join(places)}{more}.")
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
        click.echo(f"  {next_command('ask', session.name, '-o', 'tickets.csv')}")
    if (found := session.certified).guarantee is not None:
        show_plain(f"{best_so_far(found)} {found.sentence}".strip())


def _warn(session: "Session", conflicts: "tuple[Conflict, ...]") -> None:
    from shortlist.escaping import printable
    from shortlist.session.sheet_format import ticket_text

    now = session.history.round.number
    for one in conflicts[:_MOST_CONFLICTS]:
        ticket = ticket_text(session.code, one.round, one.arm)
        name = printable(session.problem.name(one.arm))
        say(
            f"Warning: {ticket} ({name}) already has the mean {one.kept:g}, and the file says "
            f"{one.refused:g}; the first is kept{', since its round was decided' * (one.round < now)}."
        )
    if len(conflicts) > _MOST_CONFLICTS:
        click.echo(f"Warning: and {len(conflicts) - _MOST_CONFLICTS:,} more.", err=True)
    if any(one.round < now for one in conflicts):
        say("To correct a first answer, see Conflicts in `shortlist docs by-hand`.")
