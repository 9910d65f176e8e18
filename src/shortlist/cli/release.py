"""``shortlist release``: end the lease of tickets that their worker will not answer."""

import click

from shortlist.cli.options import json_option, store_option, worker_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import refuse_file, who, writing


@click.command("release")
@click.argument("run")
@worker_option
@click.option(
    "--unmeasured",
    is_flag=True,
    help="Declare that the worker has not started to measure the tickets, and will not.",
)
@store_option
@json_option("the tickets released")
def command(run: str, worker: str | None, unmeasured: bool, where: str, as_json: bool) -> None:
    """Release the tickets of RUN that a worker holds, so that other workers can get them.

    Without --worker, your own tickets are released, and they count as not measured.

    With --worker, you can release the tickets of another worker. The log then records who did it and when. If
    such a ticket is answered later, it counts as issued twice: the first worker may still be measuring it,
    and the first answer counts. With --unmeasured, it does not count as issued twice.

    \b
      shortlist release trial
      shortlist release trial --worker rig-2

    Exit status: 0 on success, 2 if there is no such run, 4 if the store failed.
    """
    from shortlist.report.text_format import counted
    from shortlist.report.worker_text import worker_words
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
