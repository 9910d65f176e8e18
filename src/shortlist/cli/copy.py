"""``shortlist copy``: copy the logs of runs from one store to another."""

import sys
from typing import TYPE_CHECKING

import click

from shortlist.cli.exits import CERTIFIED, TROUBLE
from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import NOWHERE, reading, shown, writing
from shortlist.errors import InvalidProblem, NoSuchRun, StoreTrouble

if TYPE_CHECKING:
    from shortlist.store import Store


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@json_option("the runs copied")
def command(source: str, target: str, runs: tuple[str, ...], as_json: bool) -> None:
    """Copy runs from the store FROM to the store TO; by default all runs.

    Use this command to make a backup and to update it, even while runs are active. A store is a file or the
    address of a PostgreSQL database. TO is created if it does not exist.

    Logs are copied record by record and then compared, so a run can be resumed in TO. If a run exists in TO
    already, only the missing records are added. If TO has a different log of the same name, that log is not
    changed and an error is reported. All other runs are copied.

    FROM is checked for damage. If it is damaged, the runs that can still be read are copied. Runs whose
    events contradict each other are copied as they are, and named.

    \b
      shortlist copy shortlist.db backup.db
      shortlist copy shortlist.db postgresql://me@server/lab drilling

    \b
    Exit status:
      0  all runs are in TO
      2  there is no such store or run
      4  a run could not be copied or cannot be read, or FROM is damaged
    """
    if target == NOWHERE:
        raise InvalidProblem(
            f"a copy in {NOWHERE} would be lost when this command ends; give a file or an address."
        )
    copied: dict[str, int] = {}
    errors: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    with reading(source) as original:
        damage = _damage(original)
        if damage and not as_json:
            click.echo(f"Error: {damage}", err=True)
        known = original.runs()
        for run in runs:
            if run not in known:
                raise NoSuchRun(f"there is no run {run!r} in {shown(source)}; nothing was copied.")
        with writing(target) as copy:
            from shortlist.escaping import printable
            from shortlist.store import copy_run, verify_copy

            for run in dict.fromkeys(runs) or known:
                try:
                    copied[run] = copy_run(original, copy, run)
                    n_there = verify_copy(original, copy, run) if copied[run] else 0
                    unreadable |= _unreadable(copy, run)
                except StoreTrouble as error:
                    copied.pop(run, None)
                    errors[run] = str(error)
                if as_json:
                    continue
                if run in errors:
                    click.echo(printable(f"Error: {run}: {errors[run]}"), err=True)
                else:
                    show_plain(f"{run}: {_words(copied[run], n_there)}")
                if run in unreadable:
                    click.echo(printable(f"Error: {run} is there, but: {unreadable[run]}"), err=True)
    if as_json:
        said = {"unreadable": unreadable, "damage": damage}
        print_json({"copied": copied, "errors": errors} | {key: one for key, one in said.items() if one})
    elif not known:
        click.echo(f"There are no runs in {shown(source)}.")
    sys.exit(TROUBLE if errors or damage or unreadable else CERTIFIED)


def _damage(store: "Store") -> str:
    """Return a description of the damage in a store, or None. Readable runs are copied even so."""
    try:
        store.verify()
    except StoreTrouble as error:
        return str(error)
    return ""


def _unreadable(store: "Store", run: str) -> dict[str, str]:
    """Return why a run that was copied cannot be read, by its name; empty if it can."""
    from shortlist.session.log import RunLog

    try:
        RunLog(store, run).catch_up()
    except StoreTrouble as error:
        return {run: str(error)}
    return {}


def _words(n_copied: int, n_there: int) -> str:
    from shortlist.report.text_format import counted

    if not n_copied:
        return "exists already, identical"
    if n_copied == n_there:
        return f"{counted(n_copied, 'event')} copied and compared"
    return f"{counted(n_copied, 'event')} added, all {n_there:,} compared"
