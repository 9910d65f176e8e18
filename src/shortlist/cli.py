"""The command line. Commands import what they need, so that ``--help`` answers at once."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.errors import InvalidProblem, MeasurementFailed, NoGuarantee, ShortlistError

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray
    from shortlist.problem import Problem
    from shortlist.run import Session
    from shortlist.simulate import Simulation
    from shortlist.unknown import Question

CERTIFIED, WRONG, SHORT, TROUBLE, INTERRUPTED = 0, 2, 3, 4, 130  # exit codes


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(package_name="shortlist")
def shortlist() -> None:
    """Pick the m best of n noisy arms, with a guarantee, from few measurements.

    \b
    Start here:
      shortlist plan examples/drilling.toml        what an answer will cost
      shortlist doctor examples/drilling.toml      whether its measurement is sound
      shortlist run examples/drilling.toml         find the 5 best of 200 sites
      shortlist simulate examples/drilling.toml    compare strategies on it
      shortlist strategies                         what each strategy does
    """


def _question_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command what says which question it is about: a file, or a built-in instance."""
    options = [
        click.argument("file", type=click.Path(path_type=Path), required=False),
        click.option(
            "--instance", help="Instead of FILE: equal, linear, slippage, random, or illustrative-2 to -5."
        ),
        click.option("-n", "--arms", "n", default=100, show_default=True, help="Arms of the instance."),
        click.option("-m", default=5, show_default=True, help="How many arms of the instance to select."),
        click.option(
            "--epsilon",
            default=0.1,
            show_default=True,
            help="Of the instance: how far below the m-th best is good enough.",
        ),
        click.option(
            "--delta",
            default=0.05,
            show_default=True,
            help="Of the instance: the accepted probability of failure.",
        ),
        click.option("--seed", default=0, show_default=True, help="Makes whatever is random reproducible."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@shortlist.command()
@_question_options
@click.option("--budget", type=click.IntRange(min=0), help="Find what this many pulls can certify.")
@click.option(
    "--vary",
    type=click.Choice(["epsilon", "delta", "m"]),
    default="epsilon",
    show_default=True,
    help="What to find with --budget: the smallest epsilon or delta, or the largest m.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(
    file: Path | None, instance: str | None, budget: int | None, vary: str, as_json: bool, **numbers: Any
) -> None:
    """Say what an answer will cost, before anything is measured.

    For every strategy: the most pulls it can take, that number as a multiple of the lower bound ("x
    bound"), in how many rounds at most, and what proves its answer. The lower bound is what no algorithm
    can do without if the means are the worst ones. Nothing is measured, so FILE needs no section on
    measurement. With --budget it answers the reverse question; the exit status is 3 if the budget is too
    small to certify anything.

    \b
      shortlist plan examples/drilling.toml
      shortlist plan examples/drilling.toml --budget 20000
      shortlist plan --instance equal -n 50 -m 3 --epsilon 0.2 --json
    """
    from rich.console import Console

    from shortlist.budget import plan_for_budget
    from shortlist.plan import plan as planned
    from shortlist.report.text import plan_text

    if budget is None and _is_given("vary"):
        raise InvalidProblem("--vary has no effect without --budget. Give both, or leave it out.")
    problem = _question(file, instance, numbers)
    found = planned(problem) if budget is None else plan_for_budget(problem, budget, vary=vary)
    if as_json:
        reverse = {} if budget is None else {"budget": budget, "vary": vary}
        click.echo(json.dumps(found.to_dict() | reverse, indent=2))
        return
    if budget is not None:
        value = f"{found.problem.m:,}" if vary == "m" else f"{getattr(found.problem, vary):g}"
        which = "largest" if vary == "m" else "smallest"
        click.echo(f"With {budget:,} pulls the {which} {vary} that can be certified is {value}.")
    click.echo(f"{file or instance}: {_asked(found.problem)}")
    Console(highlight=False).print(plan_text(found))


@shortlist.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--strategy", default="auto", show_default=True, help="Which strategy decides; see `strategies`."
)
@click.option("--seed", default=0, show_default=True, help="Makes the run reproducible.")
@click.option("--budget", type=click.IntRange(min=0), help="The most pulls to make.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Processes that measure."
)
@click.option("--dask", metavar="ADDRESS", help="Measure on a Dask cluster; `local` starts one here.")
@click.option(
    "--retries",
    default=3,
    show_default=True,
    type=click.IntRange(min=0),
    help="How often a failed measurement is tried again.",
)
@click.option("--timeout", type=float, help="The most seconds that one measurement may take.")
@click.option(
    "--pulls-per-call", type=click.IntRange(min=1), help="The most pulls to ask of one measurement."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    file: Path,
    strategy: str,
    seed: int,
    budget: int | None,
    workers: int,
    dask: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Answer the question in FILE and print the arms selected.

    FILE is a TOML file; docs/problem-files.md says all that it may hold. Rewards come from a Python
    function, any program, a table of recorded rewards, or simulated arms. `shortlist doctor` tries the
    measurement first.
    The answer is the same whoever measures, and however many. Ctrl-C, or SIGTERM, lets end what is being
    measured; a second one does not wait.

    \b
      shortlist run examples/drilling.toml --workers 2
      shortlist run examples/drilling.toml --dask tcp://host:8786

    Exit status: 0 the answer is certified, 2 the question is wrong, 3 the budget ended first or what was
    asked is not proved, 4 a measurement failed, 130 interrupted.
    """
    from rich.console import Console

    from shortlist.plan import resolve
    from shortlist.report.progress import pulls_shown
    from shortlist.report.text import result_text
    from shortlist.run import Session, drive
    from shortlist.run.problem_file import read_problem_file

    asked = read_problem_file(file)
    session = Session(asked.problem, resolve(strategy, asked.problem, budget), seed=seed)
    if not as_json:
        click.echo(_announced(file, session, budget))
    with (
        _measuring(workers, dask, how["timeout"]) as executor,
        _saying_how_far(session),
        pulls_shown(session, quiet=as_json) as progress,
    ):
        result = drive(session, asked.source, budget=budget, executor=executor, progress=progress, **how)
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2))
    else:
        Console(highlight=False).print(result_text(result, asked.means))
    sys.exit(CERTIFIED if result.is_answer else SHORT)


@shortlist.command()
@_question_options
@click.option(
    "--strategy", "names", multiple=True, help="May be repeated. By default all with a cap on pulls."
)
@click.option("--replications", default=100, show_default=True, help="How many independent runs of each.")
@click.option("--rewards", help="gaussian, bernoulli, two-point, uniform or noiseless.")
@click.option("--budget", type=click.IntRange(min=1), help="The most pulls per replication.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def simulate(
    file: Path | None,
    instance: str | None,
    names: tuple[str, ...],
    rewards: str | None,
    as_json: bool,
    **numbers: Any,
) -> None:
    """Compare strategies on simulated arms: their pulls and errors.

    The question comes from FILE, or from a built-in instance. Its arms have unit variances, except
    for random (variances from 0.01 to 100, drawn with the seed) and illustrative (as in the paper).

    \b
      shortlist simulate examples/drilling.toml --strategy vmedelim
      shortlist simulate --instance slippage -n 40 -m 3 --epsilon 0.5
    """
    from rich.console import Console

    from shortlist.report.progress import runs_shown
    from shortlist.report.text import simulations_text
    from shortlist.simulate import simulate as simulated

    problem, means, default_rewards, variances = _simulated_question(file, instance, numbers)
    outcomes: list[Simulation] = []

    def show() -> None:
        if as_json:
            click.echo(json.dumps([_simulation_dict(one) for one in outcomes], indent=2))
        elif outcomes:
            Console(highlight=False).print(simulations_text(outcomes))

    try:
        for name in dict.fromkeys(_taking(problem, names) if names else _countable(problem)):
            replications = numbers["replications"]
            with runs_shown(name, replications, quiet=as_json) as progress:
                outcome = simulated(
                    problem,
                    means,
                    name,
                    variances=variances,
                    replications=replications,
                    seed=numbers["seed"],
                    rewards=rewards or default_rewards,
                    budget=numbers["budget"],
                    progress=progress,
                )
            outcomes.append(outcome)
    except KeyboardInterrupt:
        show()  # what had ended by then
        raise
    show()
    sys.exit(CERTIFIED if any(one.is_final.any() for one in outcomes) else SHORT)


@shortlist.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--arms", default=5, show_default=True, help="How many arms to try, spread over the list.")
@click.option("--pulls", default=30, show_default=True, help="How many pulls of each.")
@click.option("--seed", default=0, show_default=True, help="The seed of the trial calls.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def doctor(file: Path, arms: int, pulls: int, seed: int, as_json: bool) -> None:
    """Try the measurement of FILE on a few arms before a long run.

    Looks for what would void the guarantee (cached or badly seeded rewards, more noise than declared,
    rewards out of bounds) or the run (failures, what workers cannot be sent), and says how long a run
    will take. What it measures does not count towards a run.

    Exit status: 0 no errors were found, 2 the question is wrong, 4 errors were found.
    """
    from rich.console import Console

    from shortlist.doctor import examine
    from shortlist.report.doctor_text import diagnosis_text
    from shortlist.run.problem_file import read_problem_file

    asked = read_problem_file(file)
    found = examine(asked.source, asked.problem, arms=arms, pulls=pulls, seed=seed)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        tried = f"{len(found.arms)} arm{'s' if len(found.arms) > 1 else ''} tried, {found.n_pulls:,} pulls"
        click.echo(f"{file}: {_asked(asked.problem)}\n{tried}, none of which will count")
        Console(highlight=False).print(diagnosis_text(found))
    sys.exit(CERTIFIED if found.is_healthy else TROUBLE)


@shortlist.command()
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def strategies(as_json: bool) -> None:
    """List the strategies: what each does and where it is defined."""
    from rich.console import Console
    from rich.table import Table

    from shortlist.strategies import strategies as names
    from shortlist.strategies import strategy_for, strategy_named
    from shortlist.unknown import Unknown

    question = Unknown(m=1, epsilon=1.0, delta=0.05, n=2)  # any will do to find those for unknown variances
    known = [strategy_named(name) for name in names()]
    known += [strategy_for(name, question) for name in names("unknown") if name not in names()]
    if as_json:
        click.echo(
            json.dumps([{"name": s.name, "summary": s.summary, "source": s.source} for s in known], indent=2)
        )
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("name", "what it does", "source"):
        table.add_column(heading)
    for strategy in known:
        table.add_row(strategy.name, strategy.summary, strategy.source.replace("[", r"\["))
    Console(highlight=False).print(table)


def main() -> None:
    """Run the command line; turn errors into one clear line and the right exit status."""
    try:
        shortlist(standalone_mode=False)
    except click.exceptions.Abort:
        _leave("Interrupted.", INTERRUPTED)
    except KeyboardInterrupt:
        _leave("Interrupted.", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG)
    except InvalidProblem as error:
        _leave(f"Error: {error}", WRONG)
    except MeasurementFailed as error:
        _leave(f"Error: {error}", TROUBLE)
    except NoGuarantee as error:
        _leave(f"Error: {error}", SHORT)
    except ShortlistError as error:
        _leave(f"Error: {error}", WRONG)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(CERTIFIED)
    except OSError as error:
        _leave(f"Error: the output could not be written: {error.strerror}.", TROUBLE)


def _leave(message: str, status: int) -> None:
    click.echo(message, err=True)
    sys.exit(status)


def _question(file: Path | None, instance: str | None, numbers: dict[str, Any]) -> "Question":
    """Return the question that a command is about, without where rewards come from."""
    from shortlist.run.problem_file import read_problem

    _refuse_unclear(file, instance)
    return _instance(instance, numbers)[0] if file is None else read_problem(file)


def _simulated_question(
    file: Path | None, instance: str | None, numbers: dict[str, Any]
) -> "tuple[Question, FloatArray, str, FloatArray | None]":
    """Return the question, true means, the kind of rewards, and true variances if the question has none."""
    from shortlist.run.problem_file import read_problem_file

    _refuse_unclear(file, instance)
    if file is not None:
        asked = read_problem_file(file)
        if asked.means is None or asked.rewards is None:
            raise InvalidProblem(
                f"{file} measures its arms, so their true means are not known; simulating needs them. "
                f'Use [measure] kind = "simulated" with `means` that you think likely, or --instance.'
            )
        return asked.problem, asked.means, asked.rewards, asked.variances
    return *_instance(instance, numbers), "gaussian", None


def _instance(instance: str | None, numbers: dict[str, Any]) -> "tuple[Problem, FloatArray]":
    from shortlist import instances
    from shortlist.problem import Problem

    if numbers["n"] < 1:
        raise InvalidProblem(f"--arms is {numbers['n']}; there must be at least one arm.")
    shape = {"epsilon": numbers["epsilon"], "delta": numbers["delta"]}
    if instance == "random":
        drawn = instances.random(numbers["n"], numbers["m"], seed=numbers["seed"], **shape)
        return drawn.problem, drawn.means
    if instance is not None and instance.startswith("illustrative-") and instance[13:].isdecimal():
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


def _taking(problem: "Question", names: tuple[str, ...]) -> Iterator[str]:
    """Yield the strategies meant by some names; say which refuse the problem, unless all do."""
    from shortlist.plan import resolve
    from shortlist.strategies import strategy_for

    reasons = {name: "" if name == "auto" else strategy_for(name, problem).unfit(problem) for name in names}
    for name, reason in reasons.items():
        if reason and not all(reasons.values()):
            click.echo(f"{name} is left out: {reason}.", err=True)
        else:
            yield resolve(name, problem)


def _countable(problem: "Question") -> Iterator[str]:
    """Yield the strategies with a cap on pulls; say which are left out because theirs is beyond counting.

    If variances are unknown, caps are too: those strategies are yielded that begin with a pilot of their own.
    """
    from shortlist.problem import Problem
    from shortlist.strategies import strategies, strategy_for

    known = strategies()
    pilots = [name for name in strategies("unknown") if name not in known]
    for name in known if isinstance(problem, Problem) else pilots:
        try:
            rules = strategy_for(name, problem)
            is_capped = not isinstance(problem, Problem) or rules.worst_case_pulls(problem) is not None
            if is_capped and not rules.unfit(problem):
                yield name
        except InvalidProblem as error:
            click.echo(f"{name} is left out: {error}", err=True)


def _is_given(name: str) -> bool:
    """Return whether an option stands on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _refuse_unclear(file: Path | None, instance: str | None) -> None:
    """Refuse two questions, none, and options that were given but would have no effect."""
    if (file is None) == (instance is None):
        path = click.get_current_context().command_path
        raise InvalidProblem(f"give either a problem FILE or --instance, and not both; see {path} --help.")
    unused = []
    if file is not None:
        unused = ["n", "m", "epsilon", "delta"]
    elif instance is not None and instance.startswith("illustrative"):
        unused = ["n", "m"]
    for name in unused:
        if _is_given(name):
            what = "the file" if file is not None else instance
            option = {"n": "--arms", "m": "-m"}.get(name, f"--{name}")
            raise InvalidProblem(f"{option} has no effect here: {what} says it already. Leave it out.")


def _asked(problem: "Question") -> str:
    if problem.goal == "maximise":
        best = "best arm" if problem.m == 1 else f"{problem.m:,} best"
    else:
        best = "smallest" if problem.m == 1 else f"{problem.m:,} smallest"
    return f"the {best} of {problem.n:,} arms to within {problem.epsilon:g}"


def _announced(file: Path, session: "Session", budget: int | None) -> str:
    problem, worst = session.problem, session.worst_case_pulls
    cap = "no cap on pulls" if worst is None else f"at most {worst:,} pulls"
    if session.asked.needs_variances:
        n_pulls = session.asked.counts
        worst = int(n_pulls.sum())
        cap = f"a pilot of {n_pulls[0]:,} pulls of each arm first, {worst:,} in all"
    said = f"{file}: {_asked(problem)}\n{session.strategy}: {cap}"
    if budget is not None and worst is not None and worst > budget:
        said += f"; the budget of {budget:,} may end first"
    return said


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


@contextmanager
def _measuring(workers: int, dask: str | None, timeout: float | None) -> Iterator[Any]:
    """Yield what measures, as `drive` takes it: processes of our own, a Dask cluster, or this thread."""
    from shortlist.run import Processes
    from shortlist.run.dask import local_dask

    if dask is not None and dask != "local" and _is_given("workers"):
        raise InvalidProblem("--workers has no effect with the address of a cluster. Leave it out.")
    if dask == "local":
        with local_dask(workers if _is_given("workers") else os.cpu_count() or 1) as client:
            yield client
    elif dask is not None:
        yield dask
    else:
        yield None if workers == 1 and timeout is None else Processes(workers)


@contextmanager
def _saying_how_far(session: "Session") -> Iterator[None]:
    """Say what was done when a run stops short; take SIGTERM, as job queues send it, for Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    if is_main:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"The run had made {session.n_pulls:,} pulls of {_most(session)}.", err=True)
        raise
    except MeasurementFailed as error:
        done = f"The run had made {session.n_pulls:,} pulls."
        raise type(error)(f"{error} {done}") from error
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _most(session: "Session") -> str:
    worst = session.worst_case_pulls
    return "any number" if worst is None else f"at most {worst:,}"
