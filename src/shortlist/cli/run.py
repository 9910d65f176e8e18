"""``shortlist run``: measure until the question of a problem file is answered."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.exits import status_of_answer
from shortlist.cli.options import Number, Span, is_given, json_option, reissue_option, store_option
from shortlist.cli.output import print_json, say, show, show_plain
from shortlist.cli.remote import on_server, server_options, server_reporting
from shortlist.cli.report import refuse_nowhere, reporting
from shortlist.cli.resuming import (
    LIMITS,
    naming_another_run,
    next_command,
    saying_how_to_go_on,
    this_command,
)
from shortlist.cli.stores import NOWHERE, name_for, shown, writing
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.execution import Retries
    from shortlist.execution.session_protocol import DrivenSession
    from shortlist.files.problem_file import ProblemFile
    from shortlist.measure import Source
    from shortlist.problem import Problem
    from shortlist.result import Result
    from shortlist.session import Session
    from shortlist.timings import Timings


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--strategy", default="auto", show_default=True, help="Strategy to use; see `shortlist strategies`."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the run.")
@click.option("--name", help="Name of the run in the store; by default made from FILE, strategy and seed.")
@store_option
@server_options
@click.option(
    "--budget",
    type=Number(min=0),
    help="Maximum number of pulls or, if FILE states costs, the maximum cost of all pulls.",
)
@click.option("--deadline", type=Span(), metavar="TIME", help="Stop after this time: 90s, 15min, 2h.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Number of worker processes."
)
@click.option("--dask", metavar="ADDRESS", help="Measure on a Dask cluster; `local` starts one here.")
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    help="How often to retry a failed measurement.  [default: 8]",
)
@click.option(
    "--retry-pause",
    type=Span(),
    metavar="TIME",
    help="Delay before the first retry; later delays are longer.  [default: 0.5s]",
)
@click.option("--timeout", type=float, help="Timeout of one measurement, in seconds.")
@reissue_option
@click.option("--pulls-per-call", type=click.IntRange(min=1), help="Maximum number of pulls per measurement.")
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    help="Number of calls into which a round splits the pulls of each arm. Calls for different arms are "
    "interleaved, so that drift favours no arm. With 1, arms are measured one after the other.  "
    "[default: 8, or the value in FILE]",
)
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="When the run ends or stops, write a report to this file, as `shortlist report` does.",
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
    budget: float | None,
    deadline: float | None,
    workers: int,
    dask: str | None,
    no_reissue: bool,
    retries: int | None,
    retry_pause: float | None,
    report_file: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Answer the question in FILE and print the selected arms.

    FILE is a TOML file; `shortlist docs problem-files` describes its format. Rewards come from a Python
    function, any program, a table of recorded rewards, or simulated arms. Use `shortlist doctor` to test the
    measurement first.

    Every answer is saved in the store before it counts. To resume a run that stopped, repeat the same
    command. To stop a run, press Ctrl-C, send SIGTERM, or close the terminal (unless you started the command
    with nohup). The command then waits for the measurements in progress. Press Ctrl-C again to quit
    immediately.

    Several `shortlist run` commands can work on the same run at once, and people can help them with
    `shortlist ask` and `tell`. The result does not depend on who measures, if measurements
    take all their randomness from their seeds.

    With --server, a `shortlist serve` elsewhere stores the run. Any number of machines can measure for it,
    and they need only its address. With --store :memory: nothing is saved.

    \b
      shortlist run examples/drilling.toml --workers 2
      shortlist run examples/drilling.toml --dask tcp://host:8786
      shortlist run examples/drilling.toml --seed 7 --store ~/runs.db
      shortlist run examples/drilling.toml --server http://127.0.0.1:8765

    A run that stops early prints what is certified so far. To ask for a smaller epsilon, change it in FILE
    and repeat the command: the run resumes, and keeps its results. Early certificates and changes of epsilon
    require a strategy that certifies results before its end, such as race. The default strategy for few arms
    may certify nothing before its end.

    \b
    Exit status:
        0  the answer is certified
        2  the problem is invalid, or differs from that of the stored run
        3  the budget, the deadline or `shortlist stop` ended the run early,
           or the answer is not proved
        4  a measurement, the store or the server failed
      130  interrupted
    """
    from rich.text import Text

    from shortlist.execution import drive
    from shortlist.files.problem_file import read_problem_file
    from shortlist.report.progress import pulls_shown
    from shortlist.report.result_text import result_text
    from shortlist.session.settings import NOTED

    if report_file is not None:
        refuse_nowhere(report_file)
    asked = read_problem_file(file, to_go_on=True)
    name = name_for(file, name, strategy, seed)
    reissue = False if no_reissue else asked.reissue
    budget = int(budget) if budget is not None and budget.is_integer() else budget
    began = {"strategy": strategy, "seed": seed, "name": name, "budget": budget, "reissue": reissue}
    with (
        naming_another_run(name),
        _measuring(workers, dask, how["timeout"]) as executor,  # before the run is saved, since it may fail
        _in_store(asked.problem, where, **began)
        if server is None
        else on_server(asked.problem, server, token_file, **began) as session,
    ):
        if not as_json:
            click.echo(_announced(file, session, budget))
            show_plain(_kept(session, where if server is None else server))
        with (
            _reporting(session, report_file) as ended,
            saying_how_to_go_on(session),
            pulls_shown(session, quiet=as_json) as progress,
        ):
            asked = asked.since(session.settings)
            how["turns"] = how["turns"] or asked.turns
            about = asked.about_since(session.settings) | {NOTED: _called(file)}
            how |= {"executor": executor, "progress": progress or False, "about": about}
            how |= {"reproducible": asked.reproducible, "retries": _retries(asked, retries, retry_pause)}
            result = drive(session, asked.source, budget=budget, deadline=deadline, **how)
            timings = _timings(session, asked.source, result)
            ended(result)
    if as_json:
        print_json(result.to_dict() | ({} if timings is None else {"timing": timings.to_checks()}))
    else:
        show(result_text(result, asked.means) if timings is None else Text(str(timings)))
        if report_file is not None:
            show_plain(f"Report written to {report_file}.")
        elif server is None and not session.is_private:
            more = next_command("report", session.name, "-o", f"{Path(session.name).name}.html")
            show_plain(f"Every arm, in figures: {more}", is_command=True)
    if result.stop.name in LIMITS and not session.is_private:
        option, words = LIMITS[result.stop.name]
        say(f"To resume{words}:\n  {this_command(option)}")
    sys.exit(status_of_answer(result.is_answer if timings is None else timings.is_certified))


@contextmanager
def _in_store(problem: "Problem", where: str, **began: Any) -> "Iterator[Session]":
    """Yield the session of a run in a store, or in memory."""
    from shortlist.session import Session

    with nullcontext() if where == NOWHERE else writing(where) as store:
        yield Session(problem, store=store, **began)


def _timings(session: "DrivenSession", source: "Source", result: "Result") -> "Timings | None":
    """Return the times that were measured, if that is what the run is about, and they are stored here."""
    from shortlist.measure.timing import TimingSource
    from shortlist.session import Session
    from shortlist.timings import Timings, log_times

    if not isinstance(source, TimingSource) or not isinstance(session, Session):
        return None
    return Timings(result, log_times(session), source.warmup)


def _retries(asked: "ProblemFile", times: int | None, first: float | None) -> "Retries | None":
    """Return the retry policy, from the options, else from the file; None for the default."""
    from shortlist.execution import Retries

    given: dict[str, Any] = {"times": times, "first": first}
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(asked.retries or Retries(), **changes) if changes else asked.retries


def _reporting(session: "DrivenSession", output: Path | None) -> Any:
    from shortlist.session import Session

    return reporting(session, output) if isinstance(session, Session) else server_reporting(session, output)


def _called(file: Path) -> str:
    """Return the file name as given, with bytes escaped that a store cannot hold."""
    return str(file).encode(errors="replace").decode()


def _announced(file: Path, session: "DrivenSession", budget: float | None) -> str:
    from shortlist.report.text_format import counted
    from shortlist.strategies import strategy_for

    problem, worst = session.problem, session.worst_case_pulls
    cap = "no maximum number of pulls" if worst is None else f"at most {counted(worst, 'pull')}"
    if worst and strategy_for(session.strategy, problem).usual_share < 1:
        cap += ", usually far fewer"
    if session.asked.needs_variances and session.asked.round == 0:
        n_pulls = session.asked.counts
        worst = int(n_pulls.sum())
        pilot = "a pilot of " if session.asked.is_pilot else ""
        cap = f"starts with {pilot}{n_pulls[0]:,} pulls per arm, {worst:,} in total"
    said = f"{file}: {problem.words}\n{session.strategy}: {cap}"
    most = None if worst is None else worst * problem.highest_cost
    if budget is not None and most is not None and most > budget and not session.is_done:
        said += f"; the budget of {budget:,} may be used up first"
    return said


def _kept(session: "DrivenSession", where: str) -> str:
    """Return a sentence that says where the run is stored, and how far it is."""
    from shortlist.report.text_format import counted, day

    if session.is_private:
        return "This run is not saved."
    if session.is_done and session.ended_at is not None and session.n_pulls:
        said = f"Finished on {day(session.ended_at)}; result read from {shown(where)}."
        return f"{said} {_ANEW}" if _is_warned_of(session) else said
    if session.n_made:
        pulls = counted(session.n_made, "pull")
        return f"Run {session.name} resumes after {pulls}; saved in {shown(where)}."
    return f"Run {session.name} is saved in {shown(where)}."


_ANEW = "If the program changed, use --name NEW to start a new run."


def _is_warned_of(session: "DrivenSession") -> bool:
    """Return whether the result has a warning."""
    from shortlist.report.run_warnings import findings_of
    from shortlist.session import Session

    history = session.history if isinstance(session, Session) else None
    return any(finding.is_warning for finding in findings_of(session.result, history))


@contextmanager
def _measuring(workers: int, dask: str | None, timeout: float | None) -> Iterator[Any]:
    """Yield the workers for `drive`: local processes, a Dask cluster, or this thread."""
    from shortlist.execution import Processes
    from shortlist.execution.dask_clients import dask_client, local_dask

    if dask is not None and dask != "local" and is_given("workers"):
        raise InvalidProblem("--workers has no effect with the address of a cluster. Omit it.")
    if dask == "local":
        with local_dask(workers if is_given("workers") else os.cpu_count() or 1) as client:
            yield client
    elif dask is not None:
        with dask_client(dask) as client:
            yield client
    else:
        yield None if workers == 1 and timeout is None else Processes(workers)
