"""``shortlist list``: list the runs of a store."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show
from shortlist.cli.run_summaries import run_summaries, table_of
from shortlist.cli.stores import reading, shown


@click.command("list")
@store_option
@json_option("the list")
def command(where: str, as_json: bool) -> None:
    """List the runs in the store and their progress.

    A run is open, stopped (by its budget, its deadline or `shortlist stop`, and nobody went on), suspended (a
    measurement failed and no answer arrived since), or ended. The answer of an ended run is certified,
    screened (by a strategy that only narrows down the arms) or unproved. Pulls include those of tickets that
    are not complete. The command reads every log to its end and checks it for damage, so a long list of large
    runs takes a while. Unlike `shortlist replay`, it does not recompute the decisions. Exceptions are runs
    started by another version of Shortlist, runs that may have ended although their log does not say so, and
    ended runs of paired-race: equal rewards may void their guarantee.

    \b
      shortlist list
      shortlist list --store postgresql://me@server/lab --json

    Exit status: 0, or 2 no such store, 4 the store failed.
    """
    with reading(where) as store:
        found = list(run_summaries(store))
    if as_json:
        print_json([one.to_dict() for one in found])
    elif found:
        show(table_of(found))
    else:
        click.echo(f"There are no runs in {shown(where)}.")
