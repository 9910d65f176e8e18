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

    \b
    A run is
      open        it needs more answers;
      stopped     by its budget, its deadline or `shortlist stop`, and nobody
                  has resumed it;
      suspended   a measurement failed, and no answer has arrived since;
      ended       its answer is certified, screened (the strategy only narrows
                  down the arms) or unproved.

    The number of pulls includes those of tickets that are not complete.

    The command reads every log to its end and checks it for damage, so a long list of large runs takes a
    while.

    \b
    Decisions are not recomputed (`shortlist replay` does that), except for
      - runs that were started by another version of Shortlist;
      - runs that may have ended although their log does not say so;
      - ended runs of paired-race, since equal rewards may void their guarantee.

    \b
      shortlist list
      shortlist list --store postgresql://me@server/lab --json

    Exit status: 0 on success, 2 if there is no such store, 4 if the store failed.
    """
    with reading(where) as store:
        found = list(run_summaries(store))
    if as_json:
        print_json([one.to_dict() for one in found])
    elif found:
        show(table_of(found))
    else:
        click.echo(f"There are no runs in {shown(where)}.")
