"""``shortlist status``: show the progress of a run."""

import click

from shortlist.cli.options import is_given, json_option, store_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.cli.stores import look_at, reading, shown


@click.command("status")
@click.argument("run")
@store_option
@json_option("the status")
def command(run: str, where: str, as_json: bool) -> None:
    """Show the progress of RUN, and who is working on it.

    \b
    The output contains
      - the question and, if the run has ended, the result;
      - the pulls made so far, their maximum, and the lower bound;
      - the open tickets of this round, with their workers and leases;
      - conflicts and scored failures;
      - why the last `shortlist run` failed or stopped early.

    The command changes nothing. You can use it at any time.

    \b
      shortlist status drilling
      shortlist status drilling --json

    Exit status: 0 on success, 2 if there is no such run, 4 if the store failed.
    """
    from shortlist.report.origin import origin_of_log, resuming
    from shortlist.report.run_text import status_dict, status_text

    with reading(where) as store:
        log = look_at(store, run)
        if as_json:
            print_json(status_dict(log))
        else:
            history = log.history
            show(status_text(log, history.problem.words))
            if history.suspended is not None and not history.is_final:
                given = shown(where) if is_given("where") else ""
                resume = resuming(origin_of_log(log), history.began.seed, given, is_fed=history.n_fed > 0)
                show_plain(f"To resume: {resume}", is_command=True)
