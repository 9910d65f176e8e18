"""``shortlist plot``: draw figures of a run, and of the cost of strategies."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from shortlist.cli.options import is_given, json_option, store_option
from shortlist.cli.output import print_json, show_plain
from shortlist.cli.stores import look_at, reading
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.plot.style import Drawn

Figure: TypeAlias = "tuple[Callable[[], Any], Callable[[], Drawn]]"  # its data, and a function that draws it

OF_RUNS = ("arms", "pulls", "rounds", "spent")
TAKES = {
    "heterogeneity": {"n", "m", "epsilon", "delta", "names", "quick"},
    "illustrative": set[str](),
    "epsilon": {"n", "m", "epsilon", "delta", "names", "replications", "seed", "quick"},
    "scaling": {"over", "n", "m", "epsilon", "delta", "names", "multiple", "quick"},
} | {kind: {"where"} for kind in OF_RUNS}
_OPTIONS = {"where": "--store", "n": "--arms", "m": "-m", "names": "--strategy"}


@click.command("plot")
@click.argument("kind", metavar="KIND", type=click.Choice(list(TAKES)))
@click.argument("of", metavar="[RUN|FILE]", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Output file: .svg, .pdf or .png.")
@click.option("--over", type=click.Choice(["n", "m", "delta"]), default="n", show_default=True,
              help="For `scaling`: what varies.")  # fmt: skip
@click.option("--multiple", is_flag=True, help="For `scaling`: show pulls as multiples of the lower bound.")
@click.option(
    "-n", "--arms", "n", type=int, help="Number of arms. Default: 256 (`scaling`: 1000; `epsilon`: 10)."
)
@click.option("-m", type=int, help="Number of arms to select. Default: 8 (`scaling`: 10; `epsilon`: 2).")
@click.option(
    "--epsilon",
    type=float,
    help="How far below the m-th best arm a selected arm may be. Default: 0.1 (figure `epsilon`: 0.5).",
)
@click.option(
    "--delta", type=float, help="Accepted failure probability. Default: 0.05 (figure `epsilon`: 0.1)."
)
@click.option(
    "--strategy",
    "names",
    multiple=True,
    help="A strategy to show; may be repeated. Default: the strategies relevant to the figure.",
)
@click.option(
    "--replications", type=int, help="For the figure `epsilon`: number of independent runs. Default: 200."
)
@click.option(
    "--seed", default=0, show_default=True, help="For the figure `epsilon`: seed of the random numbers."
)
@click.option("--quick", is_flag=True, help="Fewer points and replications, for a first look.")
@store_option
@json_option("the numbers that the figure shows")
def command(kind: str, of: str | None, output: Path | None, as_json: bool, **options: Any) -> None:
    """Draw a figure and write it to a file, for a paper or a report.

    \b
    Figures of a stored RUN, ended or not (the run is not changed):
      arms            observed means, and the cut between the m best and the others
      pulls           how often each arm was pulled
      rounds          arms and pulls of each round
      spent           the run's pulls and its maximum, the maxima of WNElim and
                      V-MedElim, and the lower bound

    \b
    Figures without a run:
      heterogeneity   worst cases as variances with a fixed sum become unequal
      illustrative    the paper's example, on which its algorithm gains most
      epsilon         simulated failures and pulls over epsilon: for a problem FILE
                      with simulated arms, or for m of n arms that lead by epsilon
      scaling         worst cases over the number of arms, m or delta

    \b
      shortlist plot arms drilling -o arms.svg
      shortlist plot scaling --over m --multiple -o scaling.pdf
      shortlist plot epsilon --quick --strategy race --strategy bechhofer -o e.png

    With --json, the command prints the numbers that the figure shows. Then -o is optional, and matplotlib is
    not needed.

    In .svg and .pdf files, text remains text. The same data always give the same file. An existing file is
    replaced.

    Exit status: 0 on success, 2 if the command line is wrong or there is nothing to draw, 4 if a store or a
    file failed.
    """
    _refuse_unused(kind, of, options["over"])
    _check_output(output, as_json)
    numbers, drawn = (
        _of_run(kind, of, options["where"]) if kind in OF_RUNS else _of_strategies(kind, of, options)
    )
    if output is not None:
        from shortlist.plot import save

        save(drawn(), output)
    if as_json:
        print_json(numbers())
    else:
        show_plain(f"Written to {output}.")


def _refuse_unused(kind: str, of: str | None, over: str) -> None:
    """Refuse a missing or superfluous run, and options that have no effect on this figure."""
    if kind in OF_RUNS and of is None:
        raise InvalidProblem(
            f"no run was given. Use `shortlist plot {kind} RUN`; `shortlist list` shows all runs."
        )
    if of is not None and kind not in (*OF_RUNS, "epsilon"):
        raise InvalidProblem(
            f"{of!r} has no effect here: the figure {kind} uses no run and no file. Omit it."
        )
    known = {option for options in TAKES.values() for option in options}
    unused = known - TAKES[kind] | ({"n", "m", "epsilon", "delta"} if of is not None else set())
    unused |= {over} if kind == "scaling" else set()  # the parameter that varies has no single value
    for name in sorted(unused):
        if is_given(name):
            option = _OPTIONS.get(name, f"--{name}")
            what = f"the figure {kind}" + ("" if of is None else f" of {of}")
            raise InvalidProblem(f"{option} has no effect on {what}. Omit it.")


def _check_output(output: Path | None, as_json: bool) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    from shortlist.plot.style import kind_of, require_matplotlib

    if output is None:
        if not as_json:
            raise InvalidProblem("no output file was given. Name one with -o, such as -o figure.svg.")
        return
    kind_of(output)
    require_matplotlib()
    if not output.absolute().parent.is_dir():
        raise InvalidProblem(
            f"{output.name} cannot be written: the folder {output.parent} does not exist. Create it first."
        )


def _of_run(kind: str, run: str | None, where: str) -> Figure:
    from shortlist import plot

    with reading(where) as store:
        history = look_at(store, str(run)).history
    result, cap = history.result, history.worst_case_pulls
    if result.n_pulls == 0:
        why = "it has no results yet" if not history.is_final else "all arms are selected without any pull"
        raise InvalidProblem(f"run {run!r} has nothing to draw: {why}. `shortlist status {run}` says more.")
    figures: dict[str, Figure] = {
        "arms": (lambda: plot.arms_data(result).to_dict(), lambda: plot.arms(result)),
        "pulls": (lambda: plot.arms_data(result).to_dict(), lambda: plot.pulls(result)),
        "rounds": (lambda: plot.rounds_data(history).to_dict(), lambda: plot.rounds(history)),
        "spent": (lambda: plot.spent_data(result, cap).to_dict(), lambda: plot.spent(result, cap=cap)),
    }
    return figures[kind]


def _of_strategies(kind: str, of: str | None, options: dict[str, Any]) -> Figure:
    from shortlist import plot

    given: dict[str, Any] = {
        key: options[key] for key in ("n", "m", "epsilon", "delta") if options[key] is not None
    }
    if options["names"]:
        given["strategies"] = options["names"]
    if kind == "illustrative":
        return lambda: [one._asdict() for one in plot.illustrative_data()], plot.illustrative
    if kind == "epsilon":
        asked = _epsilon_arguments(of, given, options)
        return (
            lambda: plot.epsilon_data(**asked).to_dict(),
            lambda: plot.failure_against_epsilon(**asked),
        )
    if kind == "heterogeneity":
        given |= {"points": 7} if options["quick"] else {}
        return (
            lambda: plot.heterogeneity_data(**given).to_dict(),
            lambda: plot.heterogeneity_story(**given),
        )
    given |= {"over": options["over"]} | ({"points": 5} if options["quick"] else {})
    return (
        lambda: plot.scaling_data(**given).to_dict(),
        lambda: plot.scaling(**given, as_multiple=options["multiple"]),
    )


def _epsilon_arguments(of: str | None, given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of the simulation: a file's arms, or m of n arms that lead by just over epsilon."""
    import numpy as np

    from shortlist.checks import n_arms
    from shortlist.cli.questions import simulated_question
    from shortlist.instances import slippage
    from shortlist.problem import Problem
    from shortlist.rewards import Gaussian

    found: dict[str, Any] = {"strategies": given.get("strategies", ("race", "bechhofer", "wnelim"))}
    if of is not None:
        found["strategies"] = given.get("strategies", ("auto",))
        found |= simulated_question(Path(of), None, {})
    else:
        numbers = {"m": 2, "epsilon": 0.5, "delta": 0.1} | {
            k: v for k, v in given.items() if k in {"m", "epsilon", "delta"}
        }
        variances = np.ones(n_arms(given.get("n", 10), "--arms"))
        found["problem"] = Problem(**numbers, rewards=Gaussian(variances))
        found["means"] = slippage(found["problem"]).means
    if options["quick"]:
        found["epsilons"] = found["problem"].epsilon * 2.0 ** np.arange(-2, 2.5)
    replications = options["replications"]
    if replications is None:
        replications = 40 if options["quick"] else 200
    return found | {"seed": options["seed"], "replications": replications}
