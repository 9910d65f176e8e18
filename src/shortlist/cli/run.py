"""``shortlist run``: measure until the question of a file is answered."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.exits import CERTIFIED, SHORT
from shortlist.cli.options import Span, is_given, json_option, reissue_option, store_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.cli.remote import on_server, server_options, server_reporting
from shortlist.cli.report import refuse_nowhere, reporting
from shortlist.cli.resuming import naming_another_run, saying_how_to_go_on, this_command
from shortlist.cli.stores import NOWHERE, name_for, shown, writing
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.execution import Retries
    from shortlist.execution.driven import Followed
    from shortlist.files.problem_file import ProblemFile
    from shortlist.problem import Problem
    from shortlist.session import Session


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--strategy", default="auto", show_default=True, help="Which strategy decides; see `strategies`."
)
@click.option("--seed", default=0, show_default=True, help="Makes the run reproducible.")
@click.option("--name", help="The run's name in the store; by default made of FILE, strategy and seed.")
@store_option
@server_options
@click.option("--budget", type=click.IntRange(min=0), help="The most pulls to make.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Processes that measure."
)
@click.option("--dask", metavar="ADDRESS", help="Measure on a Dask cluster; `local` starts one here.")
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    help="How often a failed measurement is tried again.  [default: 8]",
)
@click.option(
    "--retry-pause",
    type=Span(),
    metavar="TIME",
    help="How long to wait before the first retry; later ones wait longer.  [default: 0.5s]",
)
@click.option("--timeout", type=float, help="The most seconds that one measurement may take.")
@reissue_option
@click.option(
    "--pulls-per-call", type=click.IntRange(min=1), help="The most pulls to ask of one measurement."
)
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    help="In how many calls a round measures each arm, between those for other arms, so that a machine that "
    "drifts favours none. 1: one arm after the other.  [default: 8, or as FILE says]",
)
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a report when it ends or stops, as `shortlist report` does.",
)
@json_option("the result")
def command(
    file: Path,
    strategy: str,
    seed: int,
    name: str | None,
    where: str,
    server: str | None,
    token_file: Path | None,
    budget: int | None,
    workers: int,
    dask: str | None,
    no_reissue: bool,
    retries: int | None,
    retry_pause: float | None,
    report_file: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Answer the question in FILE and print the arms selected.

    FILE is a TOML file; docs/problem-files.md says all that it may hold. Rewards come from a Python
    function, any program, a table of recorded rewards, or simulated arms. `shortlist doctor` tries the
    measurement first.

    Every answer is kept in the store before it counts. Whatever stops a run, the same command again goes on
    where it was; several at once share the work, and so do people with `shortlist ask` and `tell`. The
    answer is the same whoever measures. Ctrl-C, or SIGTERM, lets end what is being measured; a second one
    does not wait. With --store :memory: nothing is kept. With --server the run is kept by a `shortlist
    serve` somewhere else: any number of machines may measure for it, and need nothing but its address.

    \b
      shortlist run examples/drilling.toml --workers 2
      shortlist run examples/drilling.toml --dask tcp://host:8786
      shortlist run examples/drilling.toml --seed 7 --store ~/runs.db
      shortlist run examples/drilling.toml --server http://127.0.0.1:8765

    Exit status: 0 the answer is certified, 2 the question is wrong, or another than the run began with, 3
    the budget ended first or what was asked is not proved, 4 a measurement, the store or the server failed,
    130 interrupted.
    """
    from shortlist.execution import drive
    from shortlist.files.problem_file import read_problem_file
    from shortlist.report.progress import pulls_shown
    from shortlist.report.text import result_text
    from shortlist.result import Stop
    from shortlist.session.transitions import NOTED

    if report_file is not None:
        refuse_nowhere(report_file)
    asked = read_problem_file(file, to_go_on=True)
    name = name_for(file, name, strategy, seed)
    reissue = False if no_reissue else asked.reissue
    began = {"strategy": strategy, "seed": seed, "name": name, "budget": budget, "reissue": reissue}
    with (
        naming_another_run(name),
        _in_store(asked.problem, where, **began)
        if server is None
        else on_server(asked.problem, server, token_file, **began) as session,
    ):
        if not as_json:
            click.echo(_announced(file, session, budget))
            show_plain(_kept(session, where if server is None else server))
        with (
            _reporting(session, report_file) as ended,
            _measuring(workers, dask, how["timeout"]) as executor,
            saying_how_to_go_on(session),
            pulls_shown(session, quiet=as_json) as progress,
        ):
            asked = asked.since(session.settings)
            how["turns"] = how["turns"] or asked.turns
            about = asked.about_since(session.settings) | {NOTED: _called(file)}
            how |= {"executor": executor, "progress": progress, "about": about}
            how |= {"reproducible": asked.reproducible, "retries": _retries(asked, retries, retry_pause)}
            result = drive(session, asked.source, budget=budget, **how)
            ended(result)
    if as_json:
        print_json(result.to_dict())
    else:
        show(result_text(result, asked.means))
        if report_file is not None:
            show_plain(f"Report written to {report_file}.")
    if result.stop is Stop.BUDGET and not session.is_private:
        click.echo(f"To go on, with no budget or a larger one:\n  {this_command('--budget')}", err=True)
    sys.exit(CERTIFIED if result.is_answer else SHORT)


@contextmanager
def _in_store(problem: "Problem", where: str, **began: Any) -> "Iterator[Session]":
    """Yield the session of a run that is kept in a store, or nowhere."""
    from shortlist.session import Session

    with nullcontext() if where == NOWHERE else writing(where) as store:
        yield Session(problem, store=store, **began)


def _retries(asked: "ProblemFile", times: int | None, first: float | None) -> "Retries | None":
    """Return when failed calls are tried again: as options say, then the file; None for the usual."""
    from shortlist.execution import Retries

    given: dict[str, Any] = {"times": times, "first": first}
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(asked.retries or Retries(), **changes) if changes else asked.retries


def _reporting(session: "Followed", output: Path | None) -> Any:
    from shortlist.session import Session

    return reporting(session, output) if isinstance(session, Session) else server_reporting(session, output)


def _called(file: Path) -> str:
    """Return the name of a file as it was given, fit for any store whatever its bytes."""
    return str(file).encode(errors="replace").decode()


def _announced(file: Path, session: "Followed", budget: int | None) -> str:
    problem, worst = session.problem, session.worst_case_pulls
    cap = "no cap on pulls" if worst is None else f"at most {worst:,} pulls"
    if session.asked.needs_variances:
        n_pulls = session.asked.counts
        worst = int(n_pulls.sum())
        cap = f"a pilot of {n_pulls[0]:,} pulls of each arm first, {worst:,} in all"
    said = f"{file}: {problem.words}\n{session.strategy}: {cap}"
    if budget is not None and worst is not None and worst > budget and not session.is_done:
        said += f"; the budget of {budget:,} may end first"
    return said


def _kept(session: "Followed", where: str) -> str:
    """Return where the run is kept, and how much of it is there already."""
    from shortlist.report.text_format import day
    from shortlist.report.worker_text import counted

    if session.is_private:
        return "Nothing of this run is kept."
    if session.is_done and session.ended_at is not None and session.n_pulls:
        return f"Finished before, on {day(session.ended_at)}; answered from {shown(where)}."
    if session.n_made:
        pulls = counted(session.n_made, "pull")
        return f"Run {session.name} goes on after {pulls}; kept in {shown(where)}."
    return f"Run {session.name} is kept in {shown(where)}."


@contextmanager
def _measuring(workers: int, dask: str | None, timeout: float | None) -> Iterator[Any]:
    """Yield what measures, as `drive` takes it: processes of our own, a Dask cluster, or this thread."""
    from shortlist.execution import Processes
    from shortlist.execution.dask import local_dask

    if dask is not None and dask != "local" and is_given("workers"):
        raise InvalidProblem("--workers has no effect with the address of a cluster. Leave it out.")
    if dask == "local":
        with local_dask(workers if is_given("workers") else os.cpu_count() or 1) as client:
            yield client
    elif dask is not None:
        yield dask
    else:
        yield None if workers == 1 and timeout is None else Processes(workers)
