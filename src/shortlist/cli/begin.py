"""``shortlist begin``: create a run that is measured by hand, or by other programs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shortlist.cli.options import json_option, reissue_option, store_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.cli.resuming import naming_another_run, next_command
from shortlist.cli.stores import NOWHERE, look_at, name_for, shown, writing
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from rich.console import RenderableType

    from shortlist.planning import UsualCost
    from shortlist.problem import Problem

_FEW = 10  # rounds for people who measure


@click.command("begin")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--strategy", default="auto", show_default=True, help="Strategy to use; see `shortlist strategies`."
)
@click.option(
    "--seed", default=0, show_default=True, help="Seed from which the seeds of all tickets are derived."
)
@click.option("--name", help="Name of the run in the store; by default made from FILE, strategy and seed.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Use the strategy that usually takes the fewest pulls within this many rounds.  [default: 10 if "
    "FILE has no [measure] section, and rewards have no bounds]",
)
@click.option(
    "--scale",
    type=float,
    help="For unknown variances: the standard deviation for which costs are estimated and the strategy is "
    "chosen.",
)
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
    rounds: int | None,
    scale: float | None,
    no_reissue: bool,
    reproducible: bool,
    where: str,
    as_json: bool,
) -> None:
    """Create a run for the question in FILE, without measuring anything.

    Use this command if people measure, or programs that fetch their own work. They get tickets with
    `shortlist ask`, measure, and report the results with `shortlist tell`. They can do so at any time, from
    any machine that can reach the store. FILE needs no [measure] section. If the run exists already, only
    a smaller epsilon in FILE changes it.

    If FILE has no [measure] section, Shortlist assumes that people measure and prefer few rounds. It chooses
    a strategy that usually takes at most ten rounds; --rounds changes this number. The output lists the usual
    cost of this strategy, and of strategies that take fewer pulls or fewer rounds. If the chosen strategy
    certifies nothing before its end, the output says so, and names a strategy that lets you stop at any time.

    If rewards are 0 or 1, or lie within bounds, and you do not give --rounds, the number of rounds plays no
    part in this choice. If, in addition, arms share no items, results can also be added with
    `shortlist feed`.

    When a lease expires, the next worker who asks gets the ticket. The first answer to a ticket counts, and
    the result says how many tickets were issued twice. With --no-reissue, a ticket stays with its worker
    until it is released with `shortlist release`.

    \b
      shortlist begin trial.toml
      shortlist begin trial.toml --rounds 2
      shortlist ask trial --worker ann --max 10 -o ann.csv
      shortlist tell trial ann.csv
      shortlist feed landing-page monday.csv
    """
    from shortlist.files.problem_file import is_measured, read_problem, read_reissue
    from shortlist.report.text_format import counted
    from shortlist.report.worker_json import begun_dict
    from shortlist.session import Session
    from shortlist.session.feeding import can_be_fed

    if where == NOWHERE:
        raise InvalidProblem(
            f"a run in {NOWHERE} would be lost when this command ends; give a file with --store."
        )
    problem = read_problem(file)
    reissue = False if no_reissue else read_reissue(file)
    if scale is not None and problem.knows_variances:
        raise InvalidProblem(
            "--scale is only for unknown variances, and the variances of this problem are known. Omit it."
        )
    if rounds is not None and strategy != "auto":
        raise InvalidProblem("--rounds chooses the strategy; give either --rounds or --strategy, not both.")
    is_free = not (is_measured(file) or problem.is_bounded or problem.pilot is not None)
    is_by_hand = strategy == "auto" and is_free
    with writing(where) as store:
        usual, plain = None, name_for(file, name, strategy, seed)
        if rounds is None and strategy == "auto" and plain in store.runs():
            strategy = look_at(store, plain).history.began.strategy
        elif rounds is not None or is_by_hand:
            usual = _usual(problem, scale)
            strategy = "auto" if usual is None else _few_rounds(problem, usual, rounds or _FEW)
        name = plain if rounds is None else name_for(file, name, strategy, seed)
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
        if usual is not None and session.is_new and session.history.rules.anytime is None:
            show_plain(_only_at_the_end(problem, usual, session.strategy))
        if usual is not None and session.is_new and len(usual.choices) > 1:
            show(_choices(problem, usual, session.strategy))
        if not session.is_done:
            click.echo(f"Next:\n  {next_command('ask', session.name, '-o', 'tickets.csv')}")
            if can_be_fed(session.history):
                click.echo("or, if results need no tickets:")
                click.echo(f"  {next_command('feed', session.name, 'results.csv')}")


def _usual(problem: "Problem", scale: float | None) -> "UsualCost | None":
    """Return the usual cost of the strategies of a question; None if there is nothing to choose from."""
    from shortlist.planning import plan

    if problem.items is not None or problem.m == problem.n:
        return None
    return plan(problem).usual_at(None, scale)


def _few_rounds(problem: "Problem", usual: "UsualCost", rounds: int) -> str:
    """Return the strategy for so many rounds."""
    from shortlist.planning import plan

    if (found := usual.in_rounds(rounds)) is not None:
        return found
    rows = plan(problem).rows
    fit = [row for row in rows if row.is_certified and row.rounds is not None and row.rounds <= rounds]
    if not fit:
        least = min((found.rounds or 0 for found in usual.choices.values()), default=0)
        raise InvalidProblem(f"no strategy usually takes at most {rounds} rounds; allow {least} or more.")
    return min(fit, key=lambda row: row.worst_case_pulls or 0).strategy


def _only_at_the_end(problem: "Problem", usual: "UsualCost", chosen: str) -> str:
    """Return a warning that the strategy certifies nothing before its end, and which one does."""
    from shortlist.planning import resolve
    from shortlist.report.text_format import counted
    from shortlist.strategies import strategy_for

    said = f"{chosen} certifies nothing before its end."
    fit = [
        name
        for name in (resolve("auto", problem), *usual.choices, "race")
        if strategy_for(name, problem).anytime is not None
    ]
    if not fit:
        return said
    said += f" To be able to stop at any time, begin with --strategy {fit[0]}"
    if (found := usual.pulls.get(fit[0])) is not None and found.rounds is not None:
        said += f", which usually takes about {counted(found.rounds, 'round')}"
    return f"{said}."


def _choices(problem: "Problem", usual: "UsualCost", chosen: str) -> "RenderableType":
    """Return the usual cost of the strategy, and of others with fewer pulls or fewer rounds."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from shortlist.report.text_format import counted
    from shortlist.strategies import strategy_for

    at_end = [name for name in usual.choices if strategy_for(name, problem).anytime is None]
    table = Table(box=None, pad_edge=False, show_header=False)
    for justify in ("left", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    for name, found in usual.choices.items():
        how = "this run" if name == chosen else f"--strategy {name}"
        how += " *" if name in at_end else ""
        rounds = f"in {counted(found.rounds or 0, 'round')}"
        table.add_row(
            f"  {name}", counted(found.median, "pull"), rounds, how, style="bold" * (name == chosen)
        )
    notes = [f"Medians of {usual.replications} simulated runs: {usual.instance}."]
    if at_end:
        notes.append("(*) Certifies nothing before its end. Strategies without the mark certify at any time.")
    remedy = "; set another value with --scale" if "scale" in usual.assumed else ""
    return Group(Text(f"Usual cost {usual.condition}".rstrip() + f"{remedy}:"), table, Text(" ".join(notes)))
