"""``shortlist begin``: a run that people, or programs of their own, will measure for."""

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
    "--strategy", default="auto", show_default=True, help="Which strategy decides; see `strategies`."
)
@click.option("--seed", default=0, show_default=True, help="The seeds of all tickets derive from it.")
@click.option("--name", help="The run's name in the store; by default made of FILE, strategy and seed.")
@reissue_option
@click.option(
    "--reproducible",
    is_flag=True,
    help="Declare that a ticket measured again with its seed gives the same rewards.",
)
@store_option
@json_option("what was begun")
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
    """Begin a run of the question in FILE, and measure nothing.

    It is for measurements that are made by people, or by programs that fetch their work: they `shortlist
    ask` for tickets, measure, and `shortlist tell` the results, from any machine that reaches the store and
    at any time. FILE needs no section [measure]. A run that is there already is left as it is.

    If a lease runs out, the ticket goes to whoever asks next, and the quicker answer counts; the result says
    how many tickets that happened to. With --no-reissue it stays with its worker until `shortlist release`.

    \b
      shortlist begin trial.toml
      shortlist ask trial --worker ann --max 10 --csv > ann.csv
      shortlist tell trial ann.csv
    """
    from shortlist.files.problem_file import read_problem, read_reissue
    from shortlist.report.payloads import begun_dict
    from shortlist.report.worker_text import counted
    from shortlist.session import Session

    if where == NOWHERE:
        raise InvalidProblem(f"a run in {NOWHERE} would end with this command; give a file with --store.")
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
        state = (
            "has begun" if session.is_new else f"is there already, with {counted(session.n_pulls, 'pull')}"
        )
        asks = f"round {session.asked.round} asks for {counted(len(session.asked), 'ticket')}"
        asks = "it has ended" if session.is_done else asks
        show_plain(f"Run {session.name} {state}, by {session.strategy}; {asks}. Kept in {shown(where)}.")
        if not session.is_done:
            click.echo(f"Next:\n  {next_command('ask', session.name, '--csv')} > tickets.csv")
