"""``shortlist list``: the runs of a store."""

import click

from shortlist.cli.glances import glances, table_of
from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show
from shortlist.cli.stores import reading, shown


@click.command("list")
@store_option
@json_option("the list")
def command(where: str, as_json: bool) -> None:
    """List the runs in the store, and how far they are.

    A run is open; or suspended, if a measurement failed and nothing was told since; or it has ended: then
    its answer is certified, screened (a strategy that only narrows down) or unproved. Every log is read to
    its end and checked for damage, so a long list of large runs takes a while. `shortlist replay` looks, for
    one run, whether its decisions follow from its answers; a list does so only if another version of
    Shortlist began the run, or if it may have ended without having noted that.

    \b
      shortlist list
      shortlist list --store postgresql://me@server/lab --json

    Exit status: 0, or 2 if there is no such store, 4 it failed.
    """
    with reading(where) as store:
        found = list(glances(store))
    if as_json:
        print_json([one.to_dict() for one in found])
    elif found:
        show(table_of(found))
    else:
        click.echo(f"There are no runs in {shown(where)}.")
