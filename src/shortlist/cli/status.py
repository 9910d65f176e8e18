"""``shortlist status``: how far a run is."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show
from shortlist.cli.stores import look_at, reading


@click.command("status")
@click.argument("run")
@store_option
@json_option("all of it")
def command(run: str, where: str, as_json: bool) -> None:
    """Say how far RUN is, and who is at work on it.

    It shows the question, the result if the run has ended, the pulls made beside the most there can be and
    the lower bound, the tickets of this round that are open and who holds them until when; conflicts,
    failures that were scored, and why the last `shortlist run` stopped if it failed. Nothing is changed, so
    it may be called at any time.

    \b
      shortlist status drilling
      shortlist status drilling --json

    Exit status: 0, or 2 if there is no such run, 4 the store failed.
    """
    from shortlist.report.run_text import status_dict, status_text

    with reading(where) as store:
        log = look_at(store, run)
        if as_json:
            print_json(status_dict(log))
        else:
            show(status_text(log, log.history.problem.words))
