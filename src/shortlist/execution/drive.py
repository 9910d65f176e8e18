"""The main loop: gets tickets from a session and measures them, with one worker or with many."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias, TypeVar, cast

from shortlist.checks import is_whole, whole_number
from shortlist.errors import InvalidProblem, ShortlistError, StoreTrouble
from shortlist.escaping import printable
from shortlist.execution.async_calls import CONCURRENCY, OnLoop, calls_at_once, is_async
from shortlist.execution.dask_clients import ClusterLike
from shortlist.execution.interrupts import noting_interrupts
from shortlist.execution.lease_keeping import holding_tickets, wait_for_others
from shortlist.execution.retries import Retries, retries_of
from shortlist.execution.scheduler import Policy, Scheduler
from shortlist.execution.session_protocol import DrivenSession
from shortlist.execution.worker_pool import Processes, workers_for
from shortlist.measure import (
    BoundedSource,
    FunctionSource,
    ItemsSource,
    Measure,
    MeasureItems,
    RecordedScores,
    SimulatedBlocks,
    SimulatedMeasure,
    Source,
    TableSource,
    VectorisedSource,
    global_randomness_kept,
)
from shortlist.problem import Problem
from shortlist.result import Result, Stop
from shortlist.session.call_plan import TURNS
from shortlist.session.session import Session
from shortlist.session.state import ORDERED, REPRODUCIBLE, STOPPED
from shortlist.store import Where
from shortlist.strategies import Strategy

Workers: TypeAlias = Executor | Processes | ClusterLike | str | None
"""Types of the `executor` argument."""

S = TypeVar("S", bound=DrivenSession)

_LOG = logging.getLogger("shortlist")
_EARLY = 12  # rounds after which assumptions are checked while the run goes on; the result tells it anyway


def select(
    measure: Measure | MeasureItems | Source,
    problem: Problem,
    strategy: str | Strategy[Any] = "auto",
    *,
    seed: int = 0,
    store: Where | None = None,
    name: str = "main",
    budget: float | None = None,
    deadline: float | None = None,
    executor: Workers = None,
    concurrency: int | None = None,
    pulls_per_call: int | None = None,
    turns: int | None = None,
    retries: int | Retries | None = None,
    on_failure: float | Literal["suspend"] = "suspend",
    timeout: float | None = None,
    reissue: bool | None = None,
    reproducible: bool = False,
    progress: Callable[[Session], None] | bool | None = None,
) -> Result:
    """Return the m best arms of a problem, measured by a Python function.

    The result depends on the problem, the strategy, the seed, `pulls_per_call`, `turns` and the measurement,
    and on nothing else: it is bit for bit the same with any executor and any number of workers. There is one
    exception: on shared items and in blocks, idle workers measure ahead. Pulls that are then not
    needed are counted in `n_pulls`, and given as `n_ahead`; selection and certificate stay the same.

    Parameters
    ----------
    measure
        ``measure(arm, count, rng)`` returns `count` fresh rewards of arm number `arm`, as a list or an
        array, or a ``Summary(count, mean)`` of them. `rng` is a NumPy generator that depends only on
        the seed, the arm and the number of its earlier pulls; use it for all random numbers.
        The global generators `random` and `numpy.random` are seeded in the same way before every call, so
        you may use them as well, except with threads: there only `rng` is reproducible. Pass a function
        that measures many arms at once as ``vectorised(function)``. Any other `Source` works as well.
        With shared items: ``measure(arm, items)`` returns one score for each item of the list, as a list, or
        as a dictionary by id. It may be an async function, as for calls of a service.
    problem
        The question.
    strategy
        A name from `shortlist.strategies.names()`, or "auto" for the best certified one (see `plan`) that
        fits the budget, if any does. Without `store` also a `Strategy` of your
        own, which need not be registered.
    seed
        The seed of the run.
    store, name
        Where the run is stored, and its name there; see `Session`. If the run stops for any reason, call
        again to resume it; recorded answers are not measured again.
    budget
        The maximum number of pulls, or their maximum cost if pulls have costs. If the strategy needs more,
        the result has the guarantee that is certified by then, if any: see `Result.certificate`.
    deadline
        The maximum duration of this call in seconds: running measurements are finished, and no new ones
        started. The result is as with a budget.
    executor
        Where to measure: any `concurrent.futures.Executor`, of threads or of processes; a Dask client, or
        the address of its scheduler; ``Processes(n)`` for n dedicated processes, which are replaced when
        they die or hang; None for this thread. With processes, `measure` is pickled.
    concurrency
        Instead of `executor`: so many calls at once, in threads of this process or, for an async function, in
        one event loop. The default is 1, and 16 for an async function.
    pulls_per_call
        The maximum number of pulls per call. Larger tickets are split, and their parts are pooled. With
        shared items: how many items are measured at once, at most.
    turns
        Arms are measured interleaved: the pulls of an arm in a round are split into so many calls, spread
        over the round between the calls of other arms, in an order that depends on the seed. So if a machine
        or a service slows down, all arms are affected alike. 1 measures one arm after the other, each in as
        few calls as possible: that saves the overhead of further calls, if nothing drifts. The default is 8
        in a new run (1 for recorded or simulated rewards, which cannot drift); a resumed run keeps its
        value.
    retries
        How often to retry a call that raises, or does not return `count` rewards: a number, or a `Retries`,
        which also sets the pauses. The default is 8 retries, with pauses that grow to half a minute, and 3
        if failures are scored. Other calls continue in the meantime. A measurement may also raise
        `RetryLater`. Every attempt gets the same `rng`. If your measurement takes its random numbers from
        elsewhere, and fails more often on bad rewards than on good ones, retries introduce selection bias:
        then use 0. Unless the measurement is declared `reproducible`, the result says how many tickets were
        tried more than once.
    on_failure
        What to do with a call that failed at every attempt: "suspend" raises MeasurementFailed; a number
        counts as its reward. With a number, every call is for one pull, since pulls that fail together would
        not be independent. For the same reason a failure of a whole chunk of a vectorised function is not
        scored. Scored calls are listed in ``session.scored``, and the result gives their number. The
        guarantee then counts the score of a failed pull as its reward, and the stated variances must hold
        with these rewards included. The score is fixed before the first reward of a run, and must lie within
        the bounds of the problem, if there are any.
    timeout
        The maximum duration of a call on an executor, in seconds; None for no limit. A call that takes longer
        has failed. The executor should have no other work. Threads, and processes that Shortlist did not
        start, cannot be stopped: such a worker that hangs is lost to the run.
    reissue, reproducible
        Whether tickets may go to other workers when leases expire, and whether measuring a ticket again with
        its seed gives the same rewards; see `Session`. Simulated arms and tables are always reproducible.
    progress
        True shows a bar: the share done, open arms, what is certified so far, and the time left. None, the
        default, does so if standard error is a terminal, or in a notebook. False shows nothing. A function is
        called with the session after every recorded answer.

    Examples
    --------
    >>> from shortlist import Problem
    >>> problem = Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 4)
    >>> result = select(lambda arm, count, rng: rng.normal(arm, 1.0, count), problem)
    >>> sorted(result.selected)
    ['arm-2', 'arm-3']

    With two threads, and at most 50 pulls per call:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     result = select(
    ...         lambda arm, count, rng: rng.normal(arm, 1.0, count),
    ...         problem,
    ...         executor=executor,
    ...         pulls_per_call=50,
    ...     )
    >>> sorted(result.selected)
    ['arm-2', 'arm-3']
    """
    budget = _checked_budget(budget, problem)
    began: dict[str, Any] = {"seed": seed, "store": store, "name": name, "budget": budget, "reissue": reissue}
    with Session(problem, strategy, **began) as session:
        return drive(
            session,
            measure,
            budget=budget,
            deadline=deadline,
            executor=executor,
            concurrency=concurrency,
            pulls_per_call=pulls_per_call,
            turns=turns,
            retries=retries,
            on_failure=on_failure,
            timeout=timeout,
            reproducible=reproducible,
            progress=progress,
        )


async def select_async(
    measure: Any, problem: Problem, strategy: str | Strategy[Any] = "auto", **options: Any
) -> Result:
    """Return the m best arms, like `select`, without blocking the running event loop.

    An async `measure` runs in this loop, so it can use its clients and sessions. If the task is cancelled, no
    new calls are made, and what is recorded in a store is kept.
    """
    plain = OnLoop(measure, asyncio.get_running_loop()) if is_async(measure) else measure
    if is_async(measure) and options.get("concurrency") is None:
        options["concurrency"] = CONCURRENCY
    try:
        return await asyncio.to_thread(select, plain, problem, strategy, **options)
    except asyncio.CancelledError:
        if isinstance(plain, OnLoop):
            plain.is_cancelled.set()
        raise


def drive(
    session: S,
    measure: Measure | MeasureItems | Source,
    *,
    budget: float | None = None,
    executor: Workers = None,
    pulls_per_call: int | None = None,
    turns: int | None = None,
    retries: int | Retries | None = None,
    on_failure: float | Literal["suspend"] = "suspend",
    timeout: float | None = None,
    reproducible: bool = False,
    progress: Callable[[S], None] | bool | None = None,
    about: dict[str, Any] | None = None,
    deadline: float | None = None,
    concurrency: int | None = None,
) -> Result:
    """Measure the tickets of a session until it is done, and return its result; see `select`.

    If a measurement fails, or Ctrl-C is pressed, running measurements are finished and recorded. Recorded
    answers stay in the session; call again to resume, with the same result. A second Ctrl-C quits
    immediately.

    If the session is in a store, or on a server (see `shortlist.client`), other processes may measure for the
    same run at the same time. Tickets leased to others are left to them, and waited for. `Session.stop` ends
    all of them.

    `about` describes the measurement, as plain data for JSON. It is recorded in the log, and the run can only
    be resumed with the same description. A source may have an attribute of this name.

    Raises
    ------
    MeasurementFailed
        If a call failed at every attempt; a `WorkersLost` if it killed its worker.
    ChangedRun
        If earlier rewards of this run were measured with other `pulls_per_call`, other `turns`, another
        `block` of a vectorised function, another score for failures, or another `about`.
    """
    if concurrency is not None or is_async(measure):
        with calls_at_once(measure, concurrency, executor) as (plain, threads):
            return drive(
                session,
                plain,
                budget=budget,
                executor=threads,
                pulls_per_call=pulls_per_call,
                turns=turns,
                retries=retries,
                on_failure=on_failure,
                timeout=timeout,
                reproducible=reproducible,
                progress=progress,
                about=about,
                deadline=deadline,
            )
    started = time.monotonic()
    if deadline is not None and not (_is_number(deadline) and deadline >= 0):
        raise InvalidProblem(f"`deadline` is {deadline!r}; it must be a number of seconds, or None.")
    source = source_of(measure, session)
    session.refresh()
    turns = _turns(turns, source, session.settings)
    own_size = getattr(measure, "pulls_per_call", None)
    policy = _policy(
        own_size if pulls_per_call is None else pulls_per_call, turns, retries, on_failure, timeout
    )
    if isinstance(source, FunctionSource | ItemsSource) and policy.pulls_per_call == 1:
        source = replace(source, is_single=True)
    if (session.items is not None and not cannot_drift(source)) or own_size:  # each may cost money
        policy = replace(policy, is_one_by_one=True)
    if session.problem.bounds is not None:
        source = BoundedSource(source, session.problem)
    if executor is not None and getattr(source, "needs_this_thread", False):
        raise InvalidProblem(
            "times are measured in one thread, one after the other, since other workers would disturb them; "
            "leave out workers, executors and `timeout`."
        )
    if timeout is not None and executor is None:
        raise InvalidProblem(
            "`timeout` needs an `executor`, since a call in this thread cannot be stopped. Use Processes(1)."
        )
    budget = _checked_budget(budget, session.problem)
    session.arrange(
        {
            "pulls_per_call": policy.pulls_per_call,
            "together": int(source.together),
            "on_failure": "suspend" if policy.score is None else policy.score,
            REPRODUCIBLE: reproducible or getattr(source, "is_reproducible", False),
        }
        | ({"turns": turns} if turns > 1 else {})
        | (getattr(measure, "about", None) or {})
        | (about or {})
    )
    due = math.inf if deadline is None else started + deadline
    with _waiting_for_the_store_until(session, due):
        with (
            _noting_how_to_resume(session),
            _watched(session, progress) as news,
            global_randomness_kept(),
            noting_interrupts() as interrupt,
            holding_tickets(session) as worker,
            workers_for(executor, source) as workers,
        ):
            interrupt.due = due
            stop = _run(Scheduler(session, source, workers, policy, interrupt, worker, news), budget)
        if stop is not None:
            with suppress(ShortlistError):  # the answers are recorded; only the reason is missing then
                session.suspend(_why_stopped(stop, budget, deadline), if_idle=True)
    return session.result if stop is None else replace(session.result, stop=stop)


def _run(job: Scheduler, budget: float | None) -> Stop | None:
    """Measure round after round until the run has ended; return why it stopped, if it stopped earlier."""
    session, interrupt, n_stops = job.session, job.interrupt, job.session.n_stops
    interrupt.is_ordered = lambda: session.n_stops > n_stops
    checked_until, is_compared = session.asked.round + _EARLY, False
    try:
        while len(session.asked):
            if 0 < session.asked.round < checked_until and _has_warned(session):
                checked_until = 0
            if budget is not None:
                job.patiently(partial(session.keep_within, budget))
                is_compared = is_compared or _is_compared(session, budget)
            round = session.asked.round
            is_enough = job.measure(budget)
            if interrupt.is_wanted and not session.is_done:
                return Stop.PERSON if interrupt.is_ordered() else Stop.DEADLINE
            if not is_enough:
                return Stop.BUDGET
            if session.asked.round == round:
                job.patiently(partial(wait_for_others, session, interrupt, job.progress))
        job.end()
    except StoreTrouble as error:
        if not error.is_passing or interrupt.is_pressed or time.monotonic() < interrupt.due:
            raise
        _LOG.warning(printable(f"{error} The deadline passed before it could be written again."))
        return None if session.is_done else Stop.DEADLINE
    return None


@contextmanager
def _waiting_for_the_store_until(session: DrivenSession, due: float) -> Iterator[None]:
    """Let a store in a file not wait for other processes beyond a time on the monotonic clock."""
    store: Any = session.log.store if isinstance(session, Session) else None
    if due == math.inf or not hasattr(store, "due"):
        yield
        return
    store.due = due
    try:
        yield
    finally:
        store.due = math.inf


def _why_stopped(stop: Stop, budget: float | None, deadline: float | None) -> str:
    """Return the reason why a driver stopped early, for the log."""
    if stop is Stop.BUDGET:
        given = f"{budget:,}" if isinstance(budget, int) else f"{budget:,.10g}"
        return f"{STOPPED}its budget of {given} pays for no further pulls"
    return f"{STOPPED}its deadline of {deadline:,g} s passed" if stop is Stop.DEADLINE else ORDERED


def _has_warned(session: DrivenSession) -> bool:
    """Print what contradicts the assumptions of the proof, if anything does; return whether that is so."""
    if not isinstance(session, Session) or not (anytime := session.history.rules.anytime):
        return False
    if not anytime.may_be_void or not (found := session.certified).notes:
        return False
    _LOG.warning(printable(" ".join([found.why_nothing] * found.is_void + [*found.notes])))
    return True


def _is_compared(session: DrivenSession, budget: float) -> Literal[True]:
    """Print a warning if a budget does not pay for the first round, without which nothing is selected."""
    costs, asked = session.problem.costs, session.asked
    first = asked.counts.sum() if costs is None else costs[asked.arms] @ asked.counts
    if asked.round == 0 and first > budget and not len(session.result.indices):  # fed results may select
        unit = "scores" if session.problem.has_pool else "pulls"
        unit = unit if costs is None else "in the units of `costs`"
        _LOG.warning(
            f"The budget of {budget:,.10g} is too small for any selection: the first round alone takes "
            f"{first:,.10g} {unit}. Use at least this number as the budget; an answer usually takes more."
        )
    return True


@contextmanager
def _noting_how_to_resume(session: DrivenSession) -> Iterator[None]:
    """Add to a KeyboardInterrupt that nothing recorded is lost, if the run is stored."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not session.is_private:
            interrupt.add_note(
                f"The recorded results of run {session.name!r} are kept. The same call resumes the run."
            )
        raise


def is_notebook() -> bool:
    """Return whether this code runs in a notebook, where IPython was imported before."""
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")


@contextmanager
def _watched(session: S, progress: Callable[[S], None] | bool | None) -> Iterator[Callable[[], None] | None]:
    """Yield what to call after every answer: the user's function or, if somebody watches, a bar."""
    if progress is None:
        progress = is_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    if callable(progress):
        yield partial(progress, session)
    elif progress is True:
        view = import_module("shortlist.report.progress")  # late, since reports are a layer above
        with view.pulls_shown(session, quiet=False) as shown:
            yield partial(shown, session)
    elif progress is False:
        yield None
    else:
        raise InvalidProblem(f"`progress` is {progress!r}; it must be True, False, None or a function.")


def _checked_budget(budget: Any, problem: object) -> float | None:
    """Return a budget: a number of pulls or, if pulls have costs, any number that is not negative."""
    if budget is None or not isinstance(problem, Problem) or problem.costs is None:
        return None if budget is None else whole_number(budget, "budget", 0)
    if not (_is_number(budget) and budget >= 0):
        raise InvalidProblem(f"`budget` is {budget!r}; it must be a number, in the units of `costs`.")
    return float(budget)


def source_of(measure: Any, session: DrivenSession) -> Source:
    """Return a source of rewards unchanged; wrap a function as a source."""
    if session.items is not None and isinstance(measure, VectorisedSource):
        return ItemsSource(cast("MeasureItems", measure.function), session.items, max(2, measure.together))
    if hasattr(measure, "answers") and is_whole(getattr(measure, "together", None)):
        source: Source = measure
        whole_number(source.together, "together", 1)
        return source
    if not callable(measure):
        raise InvalidProblem(
            f"`measure` is {measure!r}; it must be a function measure(arm, count, rng), the "
            f"result of shortlist.vectorised, or another source of rewards."
        )
    if session.items is not None:
        return ItemsSource(measure, session.items)
    return FunctionSource(measure)


def _turns(wish: Any, source: Source, begun: dict[str, Any] | None) -> int:
    """Return the number of turns: as requested, else as stored in the run, else the default."""
    if wish is not None:
        return whole_number(wish, "turns", 1)
    if begun is not None and "together" in begun:  # set by an earlier driver
        return whole_number(begun.get("turns", 1), "turns", 1)
    return 1 if cannot_drift(source) else TURNS


def cannot_drift(source: Source) -> bool:
    """Return whether rewards do not depend on time, because they are recorded or simulated."""
    inner = source.source if isinstance(source, BoundedSource) else source
    is_simulated = isinstance(inner, FunctionSource | ItemsSource) and isinstance(
        inner.measure, SimulatedMeasure | SimulatedBlocks
    )
    return is_simulated or isinstance(inner, TableSource | RecordedScores)


def _policy(pulls_per_call: Any, turns: int, retries: Any, on_failure: Any, timeout: Any) -> Policy:
    if pulls_per_call is not None:
        pulls_per_call = whole_number(pulls_per_call, "pulls_per_call", 1)
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise InvalidProblem(f"`timeout` is {timeout!r}; it must be a number of seconds above 0, or None.")
    if on_failure != "suspend" and not _is_number(on_failure):
        raise InvalidProblem(
            f"`on_failure` is {on_failure!r}; it must be 'suspend', or a number to count as the reward of "
            f"each pull that failed."
        )
    score = None if on_failure == "suspend" else float(on_failure)
    if score is not None and pulls_per_call not in (None, 1):
        raise InvalidProblem(
            f"`pulls_per_call` is {pulls_per_call}, but with a number as `on_failure` it must be 1: pulls "
            f"that fail together are not independent, and there would be no guarantee. Omit it, or let "
            f"the measurement itself return the score for each failed pull."
        )
    if score is not None:
        pulls_per_call = 1
    return Policy(pulls_per_call, turns, retries_of(retries, is_scored=score is not None), score, timeout)


def _is_number(value: object) -> bool:
    is_real = isinstance(value, float) or is_whole(value)
    return is_real and math.isfinite(float(value))  # type: ignore[arg-type]
