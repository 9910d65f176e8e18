"""``shortlist export``: write all answers of a run for other programs."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_csv, say, show_plain
from shortlist.cli.stores import look_at, reading
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.session.log import RunLog


@click.command("export")
@click.argument("run")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV, one line per answer. The default.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of standard output."
)
@store_option
@json_option("question, answers and result")
def command(run: str, as_csv: bool, output: Path | None, where: str, as_json: bool) -> None:
    """Write all answers of RUN, for other programs.

    Rows that were added with `shortlist feed` are in the JSON output only.

    The CSV file has one line per answer, in the order in which answers arrived. An existing file is replaced.

    \b
    Its columns are
      ticket, round, arm, name
      pulls        the number of pulls of the answer
      first_pull   how many pulls the arm had before
      mean
      variance     only in pilots
      worker
      time         in UTC

    Only means are stored, not single rewards. With shared items, there is one line per score. The JSON output
    also contains the question, strategy, seed, measurement, conflicts, scored failures and the result.

    Some pulls belong to no answered ticket: scores that were measured ahead, and parts of tickets that are
    not complete. Only the JSON output contains them, as `unused`. The command says how many there are.

    \b
      shortlist export drilling -o drilling.csv
      shortlist export drilling --json | jq .result.selected

    Exit status: 0 on success, 2 if there is no such run, 4 if the store failed or the file could not be
    written.
    """
    if as_csv and as_json:
        raise InvalidProblem("give either --csv or --json, not both.")
    as_json = as_json or (output is not None and output.suffix.lower() == ".json" and not as_csv)
    with reading(where) as store:
        log = look_at(store, run)
        if output is None:
            _write(log, None, as_json)
            return
        text = io.StringIO()  # read everything first, so that nothing is overwritten if the log is damaged
        _write(log, text, as_json)
    output.write_text(text.getvalue(), encoding="utf-8", newline="")
    show_plain(f"Written to {output}.")


def _write(log: "RunLog", out: TextIO | None, as_json: bool) -> None:
    import json

    from shortlist.report.export import export_dict, sheet_of_answers

    if as_json:
        (out or sys.stdout).write(json.dumps(export_dict(log), indent=2) + "\n")
    else:
        print_csv(*sheet_of_answers(log), out)
        _say_unused(log)


def _say_unused(log: "RunLog") -> None:
    from shortlist.report.text_format import counted

    history = log.history
    if n := history.n_partial + history.n_ahead:
        ahead = f"{history.n_ahead:,} measured ahead" if history.n_ahead else ""
        parts = f"{history.n_partial:,} of tickets that are not complete" if history.n_partial else ""
        why, what = (
            ", and ".join(filter(None, (ahead, parts))),
            "score" if history.problem.has_pool else "pull",
        )
        say(f"Left out: {counted(n, what)} ({why}). --json has all.")
