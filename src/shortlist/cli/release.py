"""``shortlist release``: tickets that their worker will not answer, for others."""

import click

from shortlist.cli.options import json_option, store_option, worker_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import refuse_file, who, writing


@click.command("release")
@click.argument("run")
@worker_option
@click.option("--unmeasured", is_flag=True, help="The worker has not begun to measure them, and will not.")
@store_option
@json_option("what was released")
def command(run: str, worker: str | None, unmeasured: bool, where: str, as_json: bool) -> None:
    """Give back the tickets of RUN that a worker holds, so that others can have them.

    Without --worker they are your own, not yet measured. Those of somebody else are taken away: the log says
    who did that and when. If such a ticket goes to another worker, it counts as issued twice, since its first
    worker may be measuring it and the quicker answer counts. With --unmeasured it does not.

    \b
      shortlist release trial
      shortlist release trial --worker rig-2

    Exit status: 0, or 2 if there is no such run, 4 the store failed.
    """
    from shortlist.report.worker_text import counted, worker_words
    from shortlist.session import Session

    me = who(None)
    worker = who(worker)
    by = "" if unmeasured or worker == me else me
    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        n = len(session.others("").get(worker, ()))
        session.release(worker, by=by)
        if as_json:
            print_json({"run": run, "worker": worker, "by": by or None, "n_tickets": n})
        else:
            show_plain(f"{counted(n, 'ticket')} of {worker_words(worker)} released.")
