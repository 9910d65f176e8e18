"""``shortlist plan``: the pulls that an answer takes, or what a budget can certify."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.options import is_given, json_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.cli.questions import question, question_options
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.planning import Plan
    from shortlist.problem import Problem


@click.command("plan")
@question_options
@click.option("--budget", type=click.IntRange(min=0), help="Show what this number of pulls can certify.")
@click.option(
    "--vary",
    type=click.Choice(["epsilon", "delta", "m"]),
    default="epsilon",
    show_default=True,
    help="What to find with --budget: the smallest epsilon or delta, or the largest m.",
)
@click.option(
    "--rewards",
    type=click.Choice(["sub-gaussian", "gaussian", "bernoulli", "bounded"]),
    default="sub-gaussian",
    show_default=True,
    help="For the instance: rewards that are sub-Gaussian or Gaussian with the instance's variances, that "
    "are 0 or 1 (bernoulli), or that lie between 0 and 1 (bounded).",
)
@click.option(
    "--rate",
    type=float,
    help="For rewards that are 0 or 1, or lie within bounds: estimate the usual pulls for means around "
    "this number.",
)
@click.option(
    "--scale", type=float, help="For unknown variances: estimate the usual pulls for this standard deviation."
)
@click.option(
    "--correlation",
    type=float,
    help="For arms in blocks: estimate the usual pulls for this correlation, from 0 to 1, of arms within "
    "a block.",
)
@click.option(
    "--no-usual", is_flag=True, help="Do not estimate the usual pulls. The estimate takes about a second."
)
@json_option("the plan")
def command(
    file: Path | None,
    instance: str | None,
    budget: int | None,
    vary: str,
    rewards: str,
    rate: float | None,
    scale: float | None,
    correlation: float | None,
    no_usual: bool,
    as_json: bool,
    **numbers: Any,
) -> None:
    """Show how many pulls an answer will take, before anything is measured.

    \b
    The recommended strategy comes first. For every strategy, the table then
    shows these numbers, as far as they are known:
      - the usual number of pulls,
      - the maximum number of pulls,
      - this maximum as a multiple of the lower bound ("x bound"), and
      - the maximum number of rounds.

    The lower bound is the number of pulls that every algorithm with the same guarantee needs on average under
    worst-case means. For rewards that lie within bounds, no lower bound is proved. FILE needs no [measure]
    section, since nothing is measured.

    With --budget, the command answers the reverse question: what does this number of pulls certify, whatever
    the rewards are? The exit status is 3 if the budget is too small to certify anything.

    The usual number of pulls is an estimate from a few simulated runs. In the simulated question, the m best
    arms lie just over epsilon ahead of all other arms, and all other arms are equal. If several arms nearly
    tie, a run takes more pulls. On shared items, a made-up table of scores is simulated.

    \b
    The simulated question also depends on the kind of rewards:
      0 or 1             means are around 0.5, or around --rate
      unknown variance   the standard deviation is 2 epsilon, or --scale
      arms in blocks     arms are independent, or have a --correlation

    Nothing is simulated for more than 1,000 arms, or for more than 500 if rewards lie within bounds.

    \b
      shortlist plan examples/drilling.toml
      shortlist plan examples/drilling.toml --budget 20000
      shortlist plan --instance equal -n 50 -m 3 --epsilon 0.2 --json
      shortlist plan --instance equal -n 4 -m 1 --epsilon 0.01 --rewards bernoulli
    """
    from shortlist.planning import plan as planned
    from shortlist.report.result_text import plan_text
    from shortlist.strategies import strategy_for

    if budget is None and is_given("vary"):
        raise InvalidProblem("--vary has no effect without --budget. Give both, or omit --vary.")
    problem = question(file, instance, numbers)
    if is_given("rewards"):
        problem = _with_rewards(problem, file, rewards)
    if budget is not None and problem.items is None and not problem.knows_variances:
        raise InvalidProblem(
            "what a budget can certify depends on the variances, and they are unknown. State upper bounds on "
            f"them, if you have any; or run with this budget, `shortlist run {file} --budget {budget}`: the "
            "result says what it certifies."
        )
    found = planned(problem, budget, vary=vary)
    if no_usual and (rate, scale, correlation) != (None, None, None):
        raise InvalidProblem(
            "--rate, --scale and --correlation have no effect with --no-usual. Omit them, or --no-usual."
        )
    usual = None if no_usual else found.usual_at(rate, scale, correlation)
    if as_json:
        reverse = {} if budget is None else {"budget": budget, "vary": vary}
        print_json(found.to_dict() | reverse | {"usual": None if usual is None else usual.to_dict()})
        return
    if budget is not None and problem.items is None:  # with shared items it pays for the whole table
        value = f"{found.problem.m:,}" if vary == "m" else f"{getattr(found.problem, vary):g}"
        certain = f"Whatever the rewards are, {budget:,} pulls certify {vary} {value}."
        certain += "" if vary == "m" else f" No smaller {vary} can be promised in advance."
        adapts = vary == "epsilon" and strategy_for(found.best.strategy, found.problem).usual_share < 1
        show_plain(f"{certain} A run usually ends with a smaller one." if adapts else certain)
        if said := _not_to_be_fed(file, found):
            show_plain(said)
    click.echo(f"{file or instance}: {found.problem.words}")
    show(plan_text(found, usual))


def _not_to_be_fed(file: Path | None, found: "Plan") -> str:
    """Return that the strategy takes no results of one's own, if FILE leaves the measuring to people."""
    from shortlist.files.problem_file import is_measured
    from shortlist.strategies import strategy_for

    best = found.best.strategy
    if file is None or is_measured(file) or strategy_for(best, found.problem).anytime is not None:
        return ""
    if not (race := found["race"]).is_certified:
        return ""
    most = f"which takes at most {race.worst_case_pulls:,} pulls for the same guarantee"
    return (
        f"{best} cannot take results from `shortlist feed`. To use feed, begin with --strategy race, {most}."
    )


def _with_rewards(problem: "Problem", file: Path | None, rewards: str) -> "Problem":
    """Return the question of a built-in instance with rewards of another kind."""
    from shortlist.rewards import BOUNDED, KINDS

    if file is not None:
        raise InvalidProblem("--rewards has no effect here: the file says what rewards are. Omit it.")
    return problem.changed(rewards=BOUNDED[rewards]() if rewards in BOUNDED else KINDS[rewards])
