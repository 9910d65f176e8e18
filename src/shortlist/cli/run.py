"""``shortlist run``: measure until the question of a file is answered."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.exits import CERTIFIED, SHORT
from shortlist.cli.options import is_given, json_option
from shortlist.cli.output import asked_text, print_json, show
from shortlist.errors import InvalidProblem, MeasurementFailed

if TYPE_CHECKING:
    from shortlist.run import Session


@click.command("run")
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
@json_option("the result")
def command(
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
        print_json(result.to_dict())
    else:
        show(result_text(result, asked.means))
    sys.exit(CERTIFIED if result.is_answer else SHORT)


def _announced(file: Path, session: "Session", budget: int | None) -> str:
    problem, worst = session.problem, session.worst_case_pulls
    cap = "no cap on pulls" if worst is None else f"at most {worst:,} pulls"
    if session.asked.needs_variances:
        n_pulls = session.asked.counts
        worst = int(n_pulls.sum())
        cap = f"a pilot of {n_pulls[0]:,} pulls of each arm first, {worst:,} in all"
    said = f"{file}: {asked_text(problem)}\n{session.strategy}: {cap}"
    if budget is not None and worst is not None and worst > budget:
        said += f"; the budget of {budget:,} may end first"
    return said


@contextmanager
def _measuring(workers: int, dask: str | None, timeout: float | None) -> Iterator[Any]:
    """Yield what measures, as `drive` takes it: processes of our own, a Dask cluster, or this thread."""
    from shortlist.run import Processes
    from shortlist.run.dask import local_dask

    if dask is not None and dask != "local" and is_given("workers"):
        raise InvalidProblem("--workers has no effect with the address of a cluster. Leave it out.")
    if dask == "local":
        with local_dask(workers if is_given("workers") else os.cpu_count() or 1) as client:
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
