"""The question that a command works on: a problem file, or a built-in instance."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from shortlist.cli.options import is_given
from shortlist.errors import InvalidProblem

INSTANCES = "equal, linear, slippage, random, or illustrative-2 to -5"

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray
    from shortlist.problem import Problem


def question_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the FILE argument and the options of built-in instances."""
    command = click.option("--instance", help=f"Instead of FILE: {INSTANCES}.")(instance_options(command))
    return click.argument("file", type=click.Path(path_type=Path), required=False)(command)


def instance_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options for the size and the accuracy of built-in instances."""
    options = [
        click.option(
            "-n", "--arms", "n", default=100, show_default=True, help="For the instance: number of arms."
        ),
        click.option("-m", default=5, show_default=True, help="For the instance: number of arms to select."),
        click.option(
            "--epsilon",
            default=0.1,
            show_default=True,
            help="For the instance: how far below the m-th best arm a selected arm may be.",
        ),
        click.option(
            "--delta",
            default=0.05,
            show_default=True,
            help="For the instance: accepted failure probability.",
        ),
        click.option("--seed", default=0, show_default=True, help="Seed of the random numbers."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def question(file: Path | None, instance: str | None, numbers: dict[str, Any]) -> "Problem":
    """Return the question that a command works on, without its measurement."""
    from shortlist.files.problem_file import read_problem

    _refuse_unclear(file, instance)
    return instance_of(instance, numbers)[0] if file is None else read_problem(file)


def simulated_question(file: Path | None, instance: str | None, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a simulation: the question, and what is true of its arms."""
    from shortlist.files.problem_file import read_problem_file

    _refuse_unclear(file, instance)
    if file is not None:
        asked = read_problem_file(file)
        if asked.means is None or asked.rewards is None:
            raise InvalidProblem(
                f"{file} measures its arms, so their true means are unknown; a simulation needs them. "
                f'Use [measure] kind = "simulated" with plausible `means`, or --instance.'
            )
        parts = ("problem", "means", "rewards", "variances", "correlation")
        return {part: getattr(asked, part) for part in parts}
    problem, means = instance_of(instance, numbers)
    return {"problem": problem, "means": means, "rewards": "gaussian"}


class TableOptions(NamedTuple):
    """What the command line says about a table of scores."""

    path: Path
    bounds: tuple[float, float] | None = None
    metric: str | None = None
    on_failure: float | None = None
    has_blocks: bool = False


def scored_question(
    given: TableOptions,
    file: Path | None,
    instance: str | None,
    numbers: dict[str, Any],
) -> "tuple[Problem, FloatArray]":
    """Return the question about a table of scores on shared items, and the table."""
    if file is not None or instance is not None or is_given("n"):
        raise InvalidProblem("--scores already defines the question; omit FILE, --instance and --arms.")
    asked = {name: numbers[name] for name in ("epsilon", "delta")}
    return question_of_scores(given, asked | {"m": numbers["m"] if is_given("m") else 1})


def question_of_scores(given: TableOptions, asked: dict[str, Any]) -> "tuple[Problem, FloatArray]":
    """Return the question about the arms and items of a table, and its scores, NaN where there are gaps."""
    import numpy as np

    from shortlist.items import Blocks
    from shortlist.measure.result_files import read_scores
    from shortlist.problem import Problem
    from shortlist.rewards import Bernoulli, Bounded, Gaussian, Rewards

    bounds = given.bounds
    table = read_scores(given.path, given.metric, given.on_failure)
    values = table.scores[~np.isnan(table.scores)]
    rewards: Rewards
    if bounds is None and np.isin(values, (0.0, 1.0)).all():
        rewards = Bernoulli()
    elif bounds is None and given.has_blocks:
        rewards = Gaussian()
    else:
        rewards = Bounded(*(bounds or (0.0, 1.0)))
    items: Any = table.scores.shape[1] if table.items is None else dict.fromkeys(table.items)
    items = Blocks() if given.has_blocks else items
    n = len(table.scores)
    return Problem(**asked, n=n, names=table.arms, rewards=rewards, items=items), table.scores


def instance_of(instance: str | None, numbers: dict[str, Any]) -> "tuple[Problem, FloatArray]":
    """Return the question and the true means of a built-in instance."""
    from shortlist import instances
    from shortlist.checks import n_arms
    from shortlist.problem import Problem

    n_arms(numbers["n"], "--arms")
    shape = {"epsilon": numbers["epsilon"], "delta": numbers["delta"]}
    if instance == "random":
        drawn = instances.random(numbers["n"], numbers["m"], seed=numbers["seed"], **shape)
        return drawn.problem, drawn.means
    if instance is not None and re.fullmatch("illustrative-[0-9]{1,4}", instance):
        drawn = instances.illustrative(int(instance[13:]), **shape)
        return drawn.problem, drawn.means
    by_name: dict[str | None, Callable[[Problem], instances.Instance]] = {
        "equal": instances.equal,
        "linear": instances.linear,
        "slippage": instances.slippage,
    }
    if instance not in by_name:
        known = "equal, linear, slippage, random, illustrative-2 to illustrative-5"
        raise InvalidProblem(f"there is no instance {instance!r}; use one of: {known}.")
    problem = Problem(m=numbers["m"], variances=[1.0] * numbers["n"], **shape)
    return problem, by_name[instance](problem).means


def _refuse_unclear(file: Path | None, instance: str | None) -> None:
    """Refuse two questions, no question, and options that have no effect."""
    if (file is None) == (instance is None):
        path = click.get_current_context().command_path
        given = "neither was given" if file is None else "not both"
        raise InvalidProblem(f"give a problem FILE or --instance; {given}. See {path} --help.")
    unused = []
    if file is not None:
        unused = ["n", "m", "epsilon", "delta"]
    elif instance is not None and instance.startswith("illustrative"):
        unused = ["n", "m"]
    for name in unused:
        if is_given(name):
            what = "the file" if file is not None else instance
            option = {"n": "--arms", "m": "-m"}.get(name, f"--{name}")
            raise InvalidProblem(f"{option} has no effect here: {what} sets it already. Omit it.")
