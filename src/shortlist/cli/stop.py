"""``shortlist stop``: ask everybody who measures for a run to stop."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import refuse_file, who, writing


@click.command("stop")
@click.argument("run")
@click.option("--why", default="", help="A reason, for the log.")
@store_option
@json_option("what is certified")
def command(run: str, why: str, where: str, as_json: bool) -> None:
    """Ask all `shortlist run` commands of RUN to stop, wherever they run.

    The commands finish the measurements in progress, save them, and print what is certified so far. People
    with tickets can still tell their answers. To resume the run, repeat the same `shortlist run` command.

    \b
      shortlist stop drilling
      shortlist stop drilling --why "good enough"

    Exit status: 0 on success, 2 if there is no such run, 4 if the store failed.
    """
    from shortlist.session import Session

    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        session.stop(why, by=who(None))
        found = session.certified
        if as_json:
            print_json({"run": run, "is_done": session.is_done, "certificate": found.to_dict()})
            return
        if session.is_done:
            show_plain(f"Run {run} has ended already.\n{session.result}")
            return
        show_plain(
            f"All `shortlist run` commands of {run} will stop as soon as their running measurements are "
            "saved. The run itself stays open: people can still ask for tickets and tell answers."
        )
        show_plain(f"So far: {found}" if found.guarantee is None else str(found))
