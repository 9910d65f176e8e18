"""``shortlist replay``: every decision of a run, made again and compared."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import look_at, reading


@click.command("replay")
@click.argument("run")
@store_option
@json_option("what was found")
def command(run: str, where: str, as_json: bool) -> None:
    """Decide all of RUN again from its log, and compare.

    Every record is checked against its checksum. What each round asked for, and what was selected, is worked
    out again and held against what the log says. So it shows that the result follows from the answers, and
    that this version of Shortlist decides as the one did that began the run. Nothing is measured or changed.

    \b
      shortlist replay drilling

    Exit status: 0 every decision is the same, 2 there is no such run, 4 one is not, or the log is damaged.
    """
    from shortlist.report.worker_text import counted

    with reading(where) as store:
        log = look_at(store, run)
    n_rounds, history = len(log.history.rounds) - 1, log.history
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
    end = "and the selection" if history.is_final else "as far as the run has come"
    show_plain(
        f"{run}: {log.n_events:,} events, {counted(n_rounds, 'whole round')}, {history.n_pulls:,} pulls. "
        f"Every decision is the same, {end}."
    )
