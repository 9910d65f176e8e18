"""``shortlist bench``: compare strategies on several instances."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.cli.questions import INSTANCES, instance_of, instance_options
from shortlist.cli.simulate import countable, taking
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray
    from shortlist.problem import Problem
    from shortlist.simulation import Simulation

_COLUMNS = ("instance", "strategy", "replication", "pulls", "is_error", "lower_bound")


@click.command("bench")
@click.option(
    "--instance",
    "instances",
    multiple=True,
    default=("equal", "slippage", "linear", "random"),
    show_default=True,
    help=f"An instance to use; may be repeated: {INSTANCES}.",
)
@instance_options
@click.option(
    "--strategy",
    "names",
    multiple=True,
    help="A strategy to compare; may be repeated. Default: all strategies with a maximum number of pulls.",
)
@click.option(
    "--replications", default=20, show_default=True, help="Number of runs per strategy and instance."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write a CSV file with one line per run."
)
@json_option("the figures")
def command(
    instances: tuple[str, ...], names: tuple[str, ...], output: Path | None, as_json: bool, **numbers: Any
) -> None:
    """Compare strategies on several instances: pulls as multiples of the lower bound.

    Every strategy runs on every instance, with Gaussian rewards and the same seeds. The table shows mean
    pulls as a multiple of the lower bound, and one star per wrong answer, at most three. The last column is
    the geometric mean. The strategy with the fewest pulls comes first.

    The lower bound holds for every algorithm under worst-case means. On easier means, an adaptive strategy
    may stay below 1.

    \b
      shortlist bench
      shortlist bench -n 50 -m 1 --epsilon 0.5 --replications 100
      shortlist bench --instance illustrative-3 --strategy race --strategy wnelim
      shortlist bench -o pulls.csv

    Exit status: 0 on success, 2 if the command line is wrong.
    """
    from shortlist.report.bench_text import bench_dict, bench_text

    if output is not None and not output.parent.is_dir():
        raise InvalidProblem(f"--output is {output}; give the name of a file in an existing folder.")
    questions = {instance: instance_of(instance, numbers) for instance in instances}
    outcomes: dict[str, list[Simulation]] = {}

    def show_all() -> None:
        if output is not None:
            _write(output, outcomes)
        if as_json:
            print_json(bench_dict(outcomes))
        elif any(outcomes.values()):
            show(bench_text(outcomes))

    try:
        for instance, (problem, means) in questions.items():
            outcomes[instance] = []
            for name in dict.fromkeys(taking(problem, names) if names else countable(problem)):
                outcomes[instance].append(_played(instance, name, problem, means, numbers, quiet=as_json))
    except KeyboardInterrupt:
        show_all()  # the simulations finished so far
        raise
    show_all()
    if output is not None and not as_json:
        show_plain(f"Written to {output}.")


def _played(
    instance: str,
    name: str,
    problem: "Problem",
    means: "FloatArray",
    numbers: dict[str, Any],
    *,
    quiet: bool,
) -> "Simulation":
    """Return the simulation of a strategy on an instance."""
    from shortlist.report.progress import runs_shown
    from shortlist.simulation import simulate as simulated

    how = {"replications": numbers["replications"], "seed": numbers["seed"]}
    with runs_shown(f"{instance}, {name}", numbers["replications"], quiet=quiet) as progress:
        return simulated(problem, means, name, **how, progress=progress)


def _write(output: Path, outcomes: "dict[str, list[Simulation]]") -> None:
    from shortlist.bounds import lower_bound

    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for instance, simulations in outcomes.items():
            for one in simulations:
                bound = "" if (found := lower_bound(one.problem)) is None else found.pulls
                rows = zip(one.pulls.tolist(), one.is_error.tolist(), strict=True)
                for number, (pulls, is_error) in enumerate(rows):
                    writer.writerow([instance, one.strategy, number, pulls, int(is_error), bound])
