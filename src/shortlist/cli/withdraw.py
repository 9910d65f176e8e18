"""``shortlist withdraw``: take an answer back, on the record."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import refuse_file, who, writing


@click.command("withdraw")
@click.argument("run")
@click.argument("ticket")
@click.option("--why", required=True, help="The reason, for the log and the report.")
@store_option
@json_option("the ticket")
def command(run: str, ticket: str, why: str, where: str, as_json: bool) -> None:
    """Take the answer to TICKET of RUN back, so that it can be measured and told again.

    That is possible until its round is decided, which happens when the last ticket of the round is answered.
    For slips of the hand, and measurements that went wrong; never because the value is not what you hoped
    for. The log keeps both, and the report lists what was withdrawn.

    \b
      shortlist withdraw trial kqzfmb-r3-a17 --why "read the wrong scale"

    Exit status: 0, or 2 there is no such answer or its round was decided, 4 the store failed.
    """
    from shortlist.session import Session
    from shortlist.session.sheet_format import Entry
    from shortlist.session.tell_sheet import ticket_numbers

    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        round, arm = ticket_numbers(Entry("TICKET", ticket), session.code)
        session.withdraw(round, arm, why, by=who(None))
        if as_json:
            print_json({"run": run, "ticket": ticket, "arm": arm, "name": session.problem.name(arm)})
        else:
            show_plain(f"Withdrawn: the answer for {session.problem.name(arm)}. Its ticket is open again.")
