"""``shortlist report``: summarise a run: verdict, guarantee, figures and provenance."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shortlist.cli.options import is_given, json_option, store_option
from shortlist.cli.output import show_plain, write_whole
from shortlist.cli.resuming import LIMITS, this_command
from shortlist.cli.stores import look_at, reading, shown
from shortlist.errors import InvalidProblem, ShortlistError

if TYPE_CHECKING:
    from shortlist.report.model import Report
    from shortlist.result import Result, Stop
    from shortlist.session import Session
    from shortlist.store import Record


@click.command("report")
@click.argument("run")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a single HTML file.")
@store_option
@json_option("the report")
def command(run: str, output: Path | None, where: str, as_json: bool) -> None:
    """Summarise RUN: ten lines of text, or an HTML page with figures.

    The report begins with the verdict: which arms, with which guarantee, under which assumptions.

    \b
    Then follow
      - the means and pulls of the arms;
      - the pulls compared with the lower bound;
      - how the failure probability is divided;
      - warnings (conflicts, scored failures, means that vary too much);
      - who measured;
      - everything needed to reproduce and to cite the run.

    With -o the report is a single HTML file, to send or to print. It needs no network and no scripts. An
    existing file is replaced. The run itself is not changed.

    The run need not have ended. For a run that is active, suspended or failed, the report shows what is known
    so far, and the command that resumes the run.

    \b
      shortlist report drilling
      shortlist report drilling -o drilling.html
      shortlist report drilling --json | jq .result.selected

    Exit status: 0 on success, 2 if there is no such run, 4 if the store failed or the file could not be
    written.
    """
    from shortlist.report.model import report_of_run

    with reading(where) as store:
        log = look_at(store, run)
        records = _known(store.read(run), log.n_events)
        report = report_of_run(run, log.history, records, store=shown(where) if is_given("where") else "")
    as_json = as_json or (output is not None and output.suffix.lower() == ".json")
    if output is None:
        _print(report, as_json)
        return
    write_report(report, output, as_json=as_json)
    show_plain(f"Written to {output}.")


def write_report(report: "Report", output: Path, *, as_json: bool = False) -> None:
    """Write a report to a file, as JSON or HTML."""
    from shortlist.report.page import page
    from shortlist.report.report_text import report_dict

    text = json.dumps(report_dict(report), indent=2) + "\n" if as_json else page(report)
    write_whole(output, text)


def refuse_nowhere(output: Path) -> None:
    """Raise InvalidProblem if a report cannot be written to `output`, before the run starts."""
    if not output.parent.is_dir() or output.is_dir():
        raise InvalidProblem(f"--report is {output}; give the name of a file in an existing folder.")


@contextmanager
def reporting(session: "Session", output: Path | None) -> "Iterator[Callable[[Result], None]]":
    """Write a report on a session on exit, also after an error; yield a function that takes the result."""
    stop: list[Stop] = []
    try:
        yield lambda result: stop.append(result.stop)
    except BaseException:
        if output is not None:
            try:
                _write_session(session, output, None)
            except (OSError, ShortlistError) as error:  # the first error matters more
                click.echo(f"The report could not be written: {error}", err=True)
        raise
    if output is not None:
        _write_session(session, output, stop[0])


def _write_session(session: "Session", output: Path, stop: "Stop | None") -> None:
    from shortlist.report.model import report_of_run

    limit, _ = LIMITS.get("" if stop is None else stop.name, ("", ""))
    resume = "" if session.is_private else this_command(limit)
    report = report_of_run(session.name, session.history, session.records, resume=resume, stop=stop)
    write_report(report, output, as_json=output.suffix.lower() == ".json")


def _known(records: "Iterable[Record]", n_events: int) -> "Iterator[Record]":
    """Yield the records that were read before, without any later ones."""
    for record in records:
        if record.number > n_events:
            return
        yield record


def _print(report: "Report", as_json: bool) -> None:
    from shortlist.report.report_text import report_dict, report_lines

    if as_json:
        sys.stdout.write(json.dumps(report_dict(report), indent=2) + "\n")
        return
    for line in report_lines(report):
        show_plain(line, is_command=line.startswith(("To resume: ", "To reproduce: ")))
