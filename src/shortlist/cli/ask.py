"""``shortlist ask``: lease tickets to a worker."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from shortlist.cli.exits import CERTIFIED, SHORT
from shortlist.cli.options import Span, json_option, store_option, worker_option
from shortlist.cli.output import print_csv, print_json, show, show_plain, write_whole
from shortlist.cli.resuming import next_command
from shortlist.cli.stores import refuse_file, who, writing
from shortlist.errors import InvalidAnswers, InvalidProblem

if TYPE_CHECKING:
    from shortlist.session import Session
    from shortlist.tickets import Tickets

_MOST_SHOWN = 20


@click.command("ask")
@click.argument("run")
@worker_option
@click.option("--max", "limit", type=click.IntRange(min=1), help="Maximum number of tickets.")
@click.option(
    "--lease",
    type=Span(),
    default="24h",
    show_default=True,
    help="How long the tickets are leased: 90s, 15min, 24h or 7d.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print a CSV file to fill in, for spreadsheets.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the CSV file to this path. An existing file is replaced only if it is a sheet of tickets, "
    "and all its answers were told.",
)
@store_option
@json_option("the tickets")
def command(
    run: str,
    worker: str | None,
    limit: int | None,
    lease: float,
    as_csv: bool,
    output: Path | None,
    where: str,
    as_json: bool,
) -> None:
    """Lease tickets of RUN to a worker: which arms to measure, and how often.

    RUN is the name that `shortlist begin` or `run` printed. A ticket asks for a number of fresh pulls of one
    arm. It is leased to the worker, and other workers get other tickets. If you ask again, you get the same
    tickets.

    When the lease expires, another worker may get the ticket, unless the run was started with --no-reissue.
    An answer is accepted even after the lease has expired.

    If the measurement is a simulation, use the `seed` of the ticket as its seed, so that the run can be
    reproduced.

    \b
      shortlist ask trial --worker ann --max 10
      shortlist ask trial --worker ann -o ann.csv
      shortlist ask trial --worker rig-2 --lease 15min --json

    \b
    Exit status:
      0  tickets were printed, or the run has ended
      2  there is no such run
      3  all tickets of this round are leased to other workers
      4  the store failed
    """
    from shortlist.report.worker_json import asked_dict, ended_dict
    from shortlist.session import Session

    if (as_csv or output is not None) and as_json:
        raise InvalidProblem("give either --csv or --json, not both.")
    worker = who(worker)
    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        if output is not None:
            _refuse_loss(session, output)
        tickets = session.ask(limit, worker=worker, lease=lease)
        if as_json:
            print_json(asked_dict(session, tickets, worker) | ended_dict(session))
        elif output is not None:
            if len(tickets):
                text = io.StringIO()
                _print_sheet(session, tickets, text)
                write_whole(output, text.getvalue())
        elif as_csv:
            _print_sheet(session, tickets)
        elif len(tickets):
            _show(session, tickets)
        if not as_json:
            _say(session, tickets, worker, output, err=as_csv and output is None)
        sys.exit(CERTIFIED if len(tickets) or session.is_done else SHORT)


def _refuse_loss(session: "Session", path: Path) -> None:
    """Refuse to overwrite a file with answers that the run does not know, or that is no sheet of tickets."""
    from shortlist.report.text_format import counted
    from shortlist.session.tell_sheet import untold

    if not path.exists() or not path.stat().st_size:
        return
    try:
        n = untold(session, path.read_bytes())
    except InvalidAnswers as error:
        raise InvalidProblem(
            f"{path} exists, and cannot be replaced, because it is not a sheet of tickets that were "
            f"told: {error} Give another file."
        ) from None
    if n:
        raise InvalidProblem(
            f"{path} has {counted(n, 'answer')} that the run was not told. Tell the file first with "
            "`shortlist tell`, or give another file."
        )


def _print_sheet(session: "Session", tickets: "Tickets", out: TextIO | None = None) -> None:
    from shortlist.session.sheet_format import cell_columns, cell_rows, ticket_columns, ticket_rows

    rows = ticket_rows(tickets, session.code, session.entropy)
    if session.problem.items is None:
        print_csv(ticket_columns(tickets), rows, out)
    else:
        print_csv(cell_columns(session.problem), cell_rows(rows), out)


def _show(session: "Session", tickets: "Tickets") -> None:
    from rich.table import Table
    from rich.text import Text

    from shortlist.escaping import on_one_line
    from shortlist.session.sheet_format import ticket_rows

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("ticket", no_wrap=True)
    table.add_column("arm")
    table.add_column("pulls", justify="right")
    for row in ticket_rows(tickets[:_MOST_SHOWN], session.code, session.entropy):
        table.add_row(row["ticket"], Text(on_one_line(row["name"])), f"{row['pulls']:,}")
    show(table)
    if len(tickets) > _MOST_SHOWN:
        click.echo(f"and {len(tickets) - _MOST_SHOWN:,} more; --csv prints all")


def _to_fill_in(tickets: "Tickets") -> str:
    """Return which columns of a sheet are to be filled in."""
    if tickets.problem.items is not None:
        return "fill in the column `reward`"
    if tickets.needs_variances:
        return "fill in either `rewards`, or `mean` and `variance`"
    return "fill in the column `mean`"


def _say(session: "Session", tickets: "Tickets", worker: str, output: Path | None, *, err: bool) -> None:
    """Print who holds the tickets and what to do next, or why there are none."""
    from shortlist.report.text_format import counted, moment
    from shortlist.report.worker_json import first_expiry
    from shortlist.report.worker_text import waiting_words
    from shortlist.session.lease_rules import awaited

    if len(tickets):
        n, pulls = counted(len(tickets), "ticket"), counted(int(tickets.counts.sum()), "pull")
        end = moment(first_expiry(session, tickets))
        show_plain(f"{n} of round {tickets.round}, {pulls}, leased to {worker} until {end}.", err=err)
        if output is not None:
            show_plain(f"Written to {output}: {_to_fill_in(tickets)}.", err=err)
        file = "ANSWERS.csv" if output is None else str(output)
        click.echo(f"When measured:\n  {next_command('tell', session.name, file)}", err=err)
    elif session.is_done:
        show_plain(f"Run {session.name} has ended; there is nothing left to measure.", err=err)
        show_plain(str(session.result), err=err)
    else:
        others = awaited(session.history.round, session.log.now(), worker)
        why = waiting_words(others) or "other workers took them just now; ask again"
        show_plain(f"No ticket of round {session.asked.round} is available; {why}.", err=err)
        if not session.history.began.reissue:
            click.echo("To release the tickets of a worker who will not answer:", err=err)
            click.echo(f"  {next_command('release', session.name, '--worker', 'NAME')}", err=err)
