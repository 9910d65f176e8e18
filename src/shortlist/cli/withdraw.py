"""``shortlist withdraw``: withdraw an answer, on the record."""

import click

from shortlist.cli.options import json_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import refuse_file, who, writing
from shortlist.errors import InvalidProblem


@click.command("withdraw")
@click.argument("run")
@click.argument("ticket", required=False)
@click.option("--label", help="Instead of TICKET: the label of rows that were fed.")
@click.option("--why", required=True, help="The reason, for the log and the report.")
@store_option
@json_option("the ticket")
def command(run: str, ticket: str | None, label: str | None, why: str, where: str, as_json: bool) -> None:
    """Withdraw the answer to TICKET of RUN, so that it can be measured and told again.

    Withdraw data-entry errors and measurements that went wrong. Never withdraw a value because it is not what
    you hoped for. The log keeps everything, and the report lists what was withdrawn.

    An answer can be withdrawn until its round is decided. A round is decided when its last ticket is
    answered.

    With --label instead of TICKET, all rows that were fed under that label are withdrawn. This is possible at
    any time.

    \b
      shortlist withdraw trial kqzfmb-r3-a17 --why "read the wrong scale"
      shortlist withdraw landing-page --label monday-2.csv --why "sent twice"

    \b
    Exit status:
      0  success
      2  there is no such answer, or its round was decided
      4  the store failed
    """
    from shortlist.report.text_format import counted
    from shortlist.session import Session
    from shortlist.session.sheet_format import Entry
    from shortlist.session.tell_sheet import ticket_numbers

    with writing(where, must_exist=True) as store:
        refuse_file(store, run)
        session = Session.resume(store, run)
        if ticket is None or label is not None:
            if ticket is not None or label is None:
                raise InvalidProblem("give either a TICKET or the --label of fed rows.")
            n = session.withdraw_rows(label, why, by=who(None))
            if as_json:
                print_json({"run": run, "label": label, "n_rows": n})
            else:
                show_plain(f"Withdrawn: {counted(n, 'row')} under the label {label}.")
            return
        round, arm = ticket_numbers(Entry("TICKET", ticket), session.code)
        session.withdraw(round, arm, why, by=who(None))
        if as_json:
            print_json({"run": run, "ticket": ticket, "arm": arm, "name": session.problem.name(arm)})
        else:
            show_plain(f"Withdrawn: the answer for {session.problem.name(arm)}. Its ticket is open again.")
