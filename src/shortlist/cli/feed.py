"""``shortlist feed``: add results that were measured elsewhere, day by day."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.options import json_option, store_option, worker_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.cli.stores import refuse_file, who, writing
from shortlist.errors import InvalidAnswers

if TYPE_CHECKING:
    from shortlist.session import Session
    from shortlist.session.feeding import FedCount, FedRows


@click.command("feed")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--label",
    help="Label of all rows, such as a date, if FILE has no column of labels. A row replaces an earlier "
    "row that has the same label and arm.  [default: the name of FILE]",
)
@click.option(
    "--block",
    help="Block of all rows, such as a day, if FILE has no column of blocks. The strategy block-race "
    "compares arms within blocks.  [default with block-race: the label]",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Accept rows that are far from earlier rows of their arms, that replace earlier rows, or that "
    "have the numbers of another label. If FILE corrects rows that were fed under another label, give "
    "that label with --label. With --yes alone, the old and the corrected rows would both count.",
)
@worker_option
@store_option
@json_option("what was added, and what is certified")
def command(
    run: str,
    file: Path,
    label: str | None,
    block: str | None,
    yes: bool,
    worker: str | None,
    where: str,
    as_json: bool,
) -> None:
    """Add the results in FILE to RUN, and say what is certified; FILE is - for standard input.

    Use this command for results that need no tickets, such as the visitors of a website. You can look as
    often as you like, and stop when you like: what is certified stays true.

    \b
    FILE is a CSV file with these columns:
      arm          or: variant
      pulls        or: visitors
      successes    or: conversions; in place of it, `mean`
      sd           optional; in place of it, `variance`
      label        optional; or: day, date
      block        optional

    A row replaces an earlier row that has the same arm and the same label. If FILE has no column of labels,
    the name of FILE is the label, so adding the same file twice changes nothing. To correct the rows of an
    earlier file, give the corrected file the same name and use --yes, or use --label with the old name. The
    log keeps the old rows.

    Feed everything that was measured, of every arm. Count only complete results: feed the visitors of a day
    when none of them can convert any more. You may choose the arm of the next visitors by earlier results.

    If rates change from day to day, begin the run with --strategy block-race. It compares arms within blocks.
    The block of a row is its `block` or, if it has none, its label. Feed a block when it is complete, with
    all arms.

    \b
      shortlist begin landing-page.toml
      shortlist feed landing-page monday.csv
      shortlist feed landing-page tuesday.csv

    \b
    Exit status:
      0  the results were added
      2  FILE or the command line is wrong
      4  the store failed
    """
    from shortlist.session import Session

    worker = who(worker)
    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        rows = _rows(session, file, label, block, worker)
        if not yes:
            _second_look(session, rows, file, label)
        count = session.feed_rows(rows)
        if as_json:
            print_json(_dict(session, count) | {"skipped": rows.skipped})
        else:
            _say(session, rows, count)


def _rows(session: "Session", file: Path, label: str | None, block: str | None, worker: str) -> "FedRows":
    from shortlist.cli.tell import data_of
    from shortlist.session.feeding import rows_of_sheet

    name = "standard input" if str(file) == "-" else str(file)
    default = "" if str(file) == "-" else file.name
    no_effect = "--label has no effect. Omit it. To replace rows, use --yes."
    try:
        return rows_of_sheet(
            session,
            data_of(file),
            label or "",
            worker,
            block or "",
            default_label=default,
            label_has_no_effect=no_effect,
        )
    except InvalidAnswers as error:
        raise InvalidAnswers(f"{name}: {error}") from None


def _second_look(session: "Session", rows: "FedRows", file: Path, label: str | None) -> None:
    """Refuse rows that are probably a mistake, unless the user insists."""
    from shortlist.session.doubtful_answers import DATA_ENTRY_QUESTION, doubt_about_rows, replaced_rows
    from shortlist.session.feeding import same_as_other_label

    replaced = "" if label else replaced_rows(session.history, rows)  # a label that is given is meant
    found = " ".join(filter(None, (doubt_about_rows(session.history, rows), replaced)))
    if not found:
        return
    todo = "If the numbers are right, repeat the command with --yes."
    if earlier := same_as_other_label(session.history, rows)[0]:
        again = shlex.join(["shortlist", "feed", session.name, str(file), "--label", earlier])
        correct = f": `{again}`" if set(rows.labels) == {label or file.name} else ", give them that label"
        todo = (
            f"If these rows correct the rows labelled {earlier!r}{correct}. If they are for another day, "
            "repeat the command with --yes."
        )
    raise InvalidAnswers(f"{found} {DATA_ENTRY_QUESTION} Nothing was added. {todo}")


def _say(session: "Session", rows: "FedRows", count: "FedCount") -> None:
    from shortlist.report.run_text import fed_text
    from shortlist.report.text_format import counted

    parts = [f"{counted(count.new, 'row')} added"]
    if count.known:
        parts.append(f"{count.known:,} already known")
    if count.corrected:
        parts.append(f"{count.corrected:,} corrected")
    labels = list(dict.fromkeys(rows.labels))
    under = f" under the label {labels[0]}" if len(labels) == 1 else f" under {len(labels)} labels"
    show_plain("; ".join(parts) + f"{under}.")
    if rows.skipped:
        show_plain(rows.skipped)
    for part in fed_text(session.history):
        show(part)


def _dict(session: "Session", count: "FedCount") -> dict[str, Any]:
    from shortlist.report.run_text import fed_dict

    counts = {"new": count.new, "known": count.known, "corrected": count.corrected}
    return {"run": session.name, "rows": counts} | fed_dict(session.history)
