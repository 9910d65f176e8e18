"""``shortlist begin``: create a run that is measured by hand, or by other programs."""

from pathlib import Path

import click

from shortlist.cli.options import json_option, reissue_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.resuming import naming_another_run, next_command
from shortlist.cli.stores import NOWHERE, name_for, shown, writing
from shortlist.errors import InvalidProblem


@click.command("begin")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--strategy", default="auto", show_default=True, help="Strategy to use; see `shortlist strategies`."
)
@click.option(
    "--seed", default=0, show_default=True, help="Seed from which the seeds of all tickets are derived."
)
@click.option("--name", help="Name of the run in the store; by default made from FILE, strategy and seed.")
@reissue_option
@click.option(
    "--reproducible",
    is_flag=True,
    help="Declare that measuring a ticket again with its seed gives the same rewards.",
)
@store_option
@json_option("the run")
def command(
    file: Path,
    strategy: str,
    seed: int,
    name: str | None,
    no_reissue: bool,
    reproducible: bool,
    where: str,
    as_json: bool,
) -> None:
    """Create a run for the question in FILE, without measuring anything.

    Use it when people measure, or programs that fetch their own work. They get tickets with `shortlist ask`,
    measure, and report the results with `shortlist tell`, at any time and from any machine that can reach
    the store. FILE needs no [measure] section. An existing run is left unchanged.

    If a lease expires, the next worker who asks gets the ticket, and the first answer counts. The result says
    how many tickets were issued twice. With --no-reissue a ticket stays with its worker until `shortlist
    release`.

    \b
      shortlist begin trial.toml
      shortlist ask trial --worker ann --max 10 --csv > ann.csv
      shortlist tell trial ann.csv
      shortlist feed landing-page monday.csv
    """
    from shortlist.files.problem_file import read_problem, read_reissue
    from shortlist.report.payloads import begun_dict
    from shortlist.report.worker_text import counted
    from shortlist.session import Session

    if where == NOWHERE:
        raise InvalidProblem(
            f"a run in {NOWHERE} would be lost when this command ends; give a file with --store."
        )
    problem = read_problem(file)
    reissue = False if no_reissue else read_reissue(file)
    with writing(where) as store:
        name = name_for(file, name, strategy, seed)
        with naming_another_run(name):
            session = Session(
                problem,
                strategy,
                seed=seed,
                store=store,
                name=name,
                reissue=reissue,
                reproducible=reproducible,
            )
        if as_json:
            print_json(begun_dict(session) | {"store": shown(where)})
            return
        click.echo(f"{file}: {problem.words}")
        pulls = counted(session.result.n_pulls, "pull")
        state = "created" if session.is_new else f"exists already, with {pulls}"
        asks = f"round {session.asked.round} asks for {counted(len(session.asked), 'ticket')}"
        asks = "it has ended" if session.is_done else asks
        show_plain(
            f"Run {session.name} {state}, strategy {session.strategy}; {asks}. Saved in {shown(where)}."
        )
        if not session.is_done:
            click.echo(f"Next:\n  {next_command('ask', session.name, '--csv')} > tickets.csv")
            if session.history.rules.anytime is not None and session.items is None:
                click.echo("or, with results that come in by themselves:")
                click.echo(f"  {next_command('feed', session.name, 'results.csv')}")
