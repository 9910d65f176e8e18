"""``shortlist simulate``: compare strategies on simulated arms."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.exits import CERTIFIED, SHORT
from shortlist.cli.options import json_option, result_file_options
from shortlist.cli.output import print_json, show
from shortlist.cli.questions import TableOptions, question_options, scored_question, simulated_question
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.problem import Problem
    from shortlist.simulation import Simulation


@click.command("simulate")
@question_options
@click.option(
    "--strategy",
    "names",
    multiple=True,
    help="A strategy to simulate; may be repeated. Default: all strategies with a maximum number of pulls.",
)
@click.option(
    "--replications", default=100, show_default=True, help="Number of independent runs per strategy."
)
@click.option("--rewards", help="gaussian, bernoulli, two-point, uniform or noiseless.")
@click.option("--budget", type=click.IntRange(min=1), help="Maximum number of pulls per replication.")
@click.option(
    "--scores",
    type=click.Path(path_type=Path),
    help="Instead of FILE: scores of all arms on shared items, as a file or a folder.",
)
@result_file_options
@click.option(
    "--bounds",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="With --scores: two numbers between which all scores lie. Default: 0 1.",
)
@json_option("the figures")
def command(
    file: Path | None,
    instance: str | None,
    scores: Path | None,
    bounds: tuple[float, float] | None,
    metric: str | None,
    on_failure: float | None,
    names: tuple[str, ...],
    rewards: str | None,
    as_json: bool,
    **numbers: Any,
) -> None:
    """Compare strategies on simulated arms: their pulls and errors.

    The question comes from FILE or from a built-in instance. The arms of most instances have unit variances.
    The exceptions are `random`, whose variances are drawn from 0.01 to 100 with the seed, and `illustrative`,
    whose variances are those of the paper.

    With --scores, the command replays a recorded evaluation. Every replication takes the items in another
    random order. The output shows what share of the table a run would have measured, and how often its answer
    would have been right.

    The table (.csv, .jsonl or .npy) has a column with the ids of items and a column per arm, or the columns
    arm, item, score. The command also reads logs of Inspect, samples of the lm-evaluation-harness, results of
    promptfoo, and folders with several of these files.

    \b
      shortlist simulate examples/drilling.toml --strategy vmedelim
      shortlist simulate --instance slippage -n 40 -m 3 --epsilon 0.5
      shortlist simulate --scores evaluation.csv -m 1 --epsilon 0.02
    """
    from shortlist.report.progress import runs_shown
    from shortlist.report.result_text import simulations_text
    from shortlist.simulation import simulate as simulated

    if scores is None:
        for option, value in (("--bounds", bounds), ("--metric", metric), ("--on-failure", on_failure)):
            if value is not None:
                raise InvalidProblem(f"{option} is for a table of --scores; omit it.")
        given = simulated_question(file, instance, numbers)
        problem = given["problem"]
    else:
        table = TableOptions(scores, bounds, metric, on_failure)
        problem, means = scored_question(table, file, instance, numbers)
        given = {"problem": problem, "means": means}
    if rewards is not None:
        given["rewards"] = rewards
    outcomes: list[Simulation] = []

    def show_all() -> None:
        if as_json:
            print_json([_simulation_dict(one) for one in outcomes])
        elif outcomes:
            show(simulations_text(outcomes))

    try:
        for name in dict.fromkeys(taking(problem, names) if names else countable(problem)):
            replications = numbers["replications"]
            with runs_shown(name, replications, quiet=as_json) as progress:
                outcome = simulated(
                    **given,
                    strategy=name,
                    replications=replications,
                    seed=numbers["seed"],
                    budget=numbers["budget"],
                    progress=progress,
                )
            outcomes.append(outcome)
    except KeyboardInterrupt:
        show_all()  # the simulations finished so far
        raise
    show_all()
    sys.exit(CERTIFIED if any(one.is_final.any() for one in outcomes) else SHORT)


def taking(problem: "Problem", names: tuple[str, ...]) -> Iterator[str]:
    """Yield the named strategies; skip those that refuse the problem with a message, unless all refuse it."""
    from shortlist.planning import resolve
    from shortlist.strategies import strategy_for

    reasons = {name: "" if name == "auto" else strategy_for(name, problem).unfit(problem) for name in names}
    for name, reason in reasons.items():
        if reason and not all(reasons.values()):
            click.echo(f"Skipping {name}: {reason}.", err=True)
        else:
            yield resolve(name, problem)


def countable(problem: "Problem") -> Iterator[str]:
    """Yield the strategies with a cap on pulls; print those that are skipped because the cap is too large.

    If variances are unknown, so are caps: then yield the strategies that start with their own pilot.
    """
    from shortlist.strategies import names, strategy_for

    if problem.items is not None:
        yield from (name for name in names("items") if not strategy_for(name, problem).unfit(problem))
        return
    known = names()
    pilots = [name for name in names("unknown") if name not in known]
    for name in known if problem.knows_variances else pilots:
        try:
            rules = strategy_for(name, problem)
            is_capped = not problem.knows_variances or rules.worst_case_pulls(problem) is not None
            if is_capped and not rules.unfit(problem):
                yield name
        except InvalidProblem as error:
            click.echo(f"Skipping {name}: {error}", err=True)


def _simulation_dict(one: "Simulation") -> dict[str, Any]:
    return {
        "problem": one.problem.to_dict(),
        "rewards": one.rewards,
        "seed": one.seed,
        "strategy": one.strategy,
        "replications": len(one.pulls),
        "errors": one.errors,
        "unfinished": one.unfinished,
        "error_rate_limit_95": one.error_rate_limit(),
        "pulls": one.pulls.tolist(),
        "guarantee": None if one.guarantee is None else str(one.guarantee),
    }
