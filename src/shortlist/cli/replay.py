"""``shortlist replay``: recompute every decision of a run and compare it with the log."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import look_at, reading


@click.command("replay")
@click.argument("run")
@store_option
@json_option("the findings")
def command(run: str, where: str, as_json: bool) -> None:
    """Recompute all decisions of RUN from its log, and compare.

    Every record is checked against its checksum. The tickets of each round and the selection are recomputed
    and compared with the log. If they are the same, the result follows from the answers, and this version of
    Shortlist decides like the version that started the run. Nothing is measured or changed.

    \b
      shortlist replay drilling

    \b
    Exit status:
      0  all decisions are the same
      2  there is no such run
      4  a decision differs, or the log is damaged
    """
    from shortlist.report.text_format import counted

    with reading(where) as store:
        log = look_at(store, run)
    n_rounds, history = log.history.n_rounds, log.history
    found = {
        "run": run,
        "n_events": log.n_events,
        "n_rounds": n_rounds,
        "n_pulls": history.n_pulls,
        "is_same": True,
        "is_done": history.is_final,
        "selected": list(history.result.selected),
    }
    if as_json:
        print_json(found)
        return
    end = "and so is the selection" if history.is_final else "up to the current state of the run"
    show_plain(
        f"{run}: {log.n_events:,} events, {counted(n_rounds, 'whole round')}, {history.n_pulls:,} pulls. "
        f"Every decision is the same, {end}."
    )
