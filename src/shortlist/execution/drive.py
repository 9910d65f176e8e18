"""The loop that measures: asks a session for tickets and has them answered, by one worker or by many."""

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from shortlist.checks import is_whole, whole_number
from shortlist.errors import InvalidProblem
from shortlist.execution.dask import ClusterLike
from shortlist.execution.driven import Driven
from shortlist.execution.interrupts import noting_interrupts
from shortlist.execution.lease_keeping import holding_tickets, wait_for_others
from shortlist.execution.retries import Retries, retries_of
from shortlist.execution.scheduler import Policy, Scheduler
from shortlist.execution.workers import Processes, workers_for
from shortlist.measure import (
    BoundedSource,
    FunctionSource,
    Measure,
    SimulatedMeasure,
    Source,
    TableSource,
    global_randomness_kept,
)
from shortlist.problem import Problem
from shortlist.result import Result, Stop
from shortlist.session.call_plan import TURNS
from shortlist.session.session import Session
from shortlist.session.state import REPRODUCIBLE
from shortlist.store import Where

Workers: TypeAlias = Executor | Processes | ClusterLike | str | None
"""What `executor` may be."""

S = TypeVar("S", bound=Driven)


def select(
    measure: Measure | Source,
    problem: Problem,
    strategy: str = "auto",
    *,
    seed: int = 0,
    store: Where | None = None,
    name: str = "main",
    budget: int | None = None,
    executor: Workers = None,
    pulls_per_call: int | None = None,
    turns: int | None = None,
    retries: int | Retries | None = None,
    on_failure: float | Literal["suspend"] = "suspend",
    timeout: float | None = None,
    reissue: bool | None = None,
    reproducible: bool = False,
    progress: Callable[[Session], None] | None = None,
) -> Result:
    """Return the m best arms of a problem, measured by a Python function.

    The result depends on the problem, the strategy, the seed, `pulls_per_call`, `turns` and the measurement,
    and on nothing else: it is the same, bit for bit, with any executor and any number of workers.

    Parameters
    ----------
    measure
        ``measure(arm, count, rng)`` returns `count` fresh rewards of arm number `arm`, as a list or an
        array, or a ``Summary(count, mean)`` of them. `rng` is a NumPy generator that depends only on
        the seed, the arm and the number of its earlier pulls; use it for all randomness of your own.
        The global generators `random` and `numpy.random` are seeded from the same before every call, so
        they may be used, too, but not with threads: there only `rng` is reproducible. A function that
        measures many arms at once goes in as ``vectorised(function)``; any `Source` will do.
    problem
        What is asked.
    strategy
        A name from `shortlist.strategies.names()`, or "auto" for the best certified one (see `plan`), within
        the budget if one is.
    seed
        Makes the run reproducible.
    store, name
        Where the run is kept, and under which name; see `Session`. Call again to go on where it stopped,
        whatever stopped it; nothing that was told is measured again.
    budget
        The most pulls to make. If the strategy needs more, the result carries no guarantee.
    executor
        Who measures: any `concurrent.futures.Executor`, of threads or of processes; a Dask client, or the
        address of its scheduler; ``Processes(n)`` for n processes of the run's own, which are replaced
        when they die or hang; None for this thread. With processes, `measure` is pickled.
    pulls_per_call
        The most pulls to ask of one call; a ticket for more is split, and its parts are put together again.
    turns
        Arms are measured interleaved: the pulls that a round asks of an arm are made in so many calls, spread
        over the round between the calls for other arms, in an order that the seed decides. So a machine that
        slows down, or a service that does, makes all arms look worse alike. 1 measures one arm after the
        other, each in as few calls as possible: that saves the start of the other calls, if nothing drifts.
        By default 8 in a new run (and 1 for recorded or simulated rewards, which cannot drift); a run that
        was begun goes on as it was.
    retries
        How often a call is tried again that raises or returns something that is not `count` rewards: a
        number, or a `Retries`, which also says how long to wait before. By default 8 times, after pauses that
        grow to half a minute, and 3 times if failures are scored. Other calls go on meanwhile. A measurement
        may also raise `RetryLater`. Each time it gets the same `rng`. If yours takes its randomness from
        elsewhere, and a bad reward makes it fail more often than a good one, trying again would select among
        rewards: then say 0. Unless the measurement is declared `reproducible`, the result says how many
        tickets were tried more than once.
    on_failure
        What to do with a call that failed every time: "suspend" raises MeasurementFailed; a number is
        counted as its reward. Every call is then for one pull: pulls that fail together would not be
        independent. For the same reason a failure of a whole block of a vectorised function is not scored.
        Such calls are listed in ``session.scored``, and the result says how many there were. The guarantee
        is then about rewards so defined, whose variances must be the stated ones. The score is fixed before
        the first reward of a run, and it lies within the bounds of the problem, if there are any.
    timeout
        The most seconds that a call may take on an executor; None for no limit. A call that takes longer has
        failed. The executor should have nothing else to do. A thread cannot be ended, nor a process that is
        not ours: a worker that hangs stays lost to the run.
    reissue, reproducible
        Whether tickets may go to other workers when leases run out, and whether a ticket measured again with
        its seed gives the same rewards; see `Session`. Simulated arms and tables are reproducible anyhow.
    progress
        Called with the session whenever something has been told.

    Examples
    --------
    >>> from shortlist import Problem
    >>> problem = Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 4)
    >>> result = select(lambda arm, count, rng: rng.normal(arm, 1.0, count), problem)
    >>> sorted(result.selected)
    ['arm-2', 'arm-3']

    Two at a time, and no more than 50 pulls in one call:

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
    budget = None if budget is None else whole_number(budget, "budget", 0)
    began: dict[str, Any] = {"seed": seed, "store": store, "name": name, "budget": budget, "reissue": reissue}
    with Session(problem, strategy, **began) as session:
        return drive(
            session,
            measure,
            budget=budget,
            executor=executor,
            pulls_per_call=pulls_per_call,
            turns=turns,
            retries=retries,
            on_failure=on_failure,
            timeout=timeout,
            reproducible=reproducible,
            progress=progress,
        )


def drive(
    session: S,
    measure: Measure | Source,
    *,
    budget: int | None = None,
    executor: Workers = None,
    pulls_per_call: int | None = None,
    turns: int | None = None,
    retries: int | Retries | None = None,
    on_failure: float | Literal["suspend"] = "suspend",
    timeout: float | None = None,
    reproducible: bool = False,
    progress: Callable[[S], None] | None = None,
    about: dict[str, Any] | None = None,
) -> Result:
    """Answer a session's tickets until it is done, and return its result; see `select` for the arguments.

    If a measurement fails, or Ctrl-C is pressed, what is being measured at the time is waited for and told.
    Everything told stays in the session; call again to go on, to the same answer. A second Ctrl-C leaves at
    once.

    If the session is kept in a store, or by a server (see `shortlist.client`), others may measure for the
    same run at the same time. What somebody else has reserved is left to them, and waited for.

    `about` says how rewards come about, as plain data, fit for JSON. It goes into the log, and the run can
    then only go on with the same.

    Raises
    ------
    MeasurementFailed
        If a call failed every time that it was tried; a `WorkersLost` if it took its worker with it.
    ChangedRun
        If earlier rewards of this run were measured with other `pulls_per_call`, other `turns`, another
        block of a vectorised function, another score for failures, or anything else that `about` says.
    """
    source = source_of(measure)
    session.refresh()
    turns = _turns(turns, source, session.settings)
    if session.problem.bounds is not None:
        source = BoundedSource(source, session.problem)
    policy = _policy(pulls_per_call, turns, retries, on_failure, timeout)
    if timeout is not None and executor is None:
        raise InvalidProblem(
            "`timeout` needs an `executor`: a call in this thread cannot be left. Processes(1) is one."
        )
    budget = None if budget is None else whole_number(budget, "budget", 0)
    session.arrange(
        {
            "pulls_per_call": policy.pulls_per_call,
            "together": int(source.together),
            "on_failure": "suspend" if policy.score is None else policy.score,
            REPRODUCIBLE: reproducible or getattr(source, "is_reproducible", False),
        }
        | ({"turns": turns} if turns > 1 else {})
        | (about or {})
    )
    news = None if progress is None else partial(progress, session)
    with (
        global_randomness_kept(),
        noting_interrupts() as interrupt,
        holding_tickets(session) as worker,
        workers_for(executor, source) as workers,
    ):
        job = Scheduler(session, source, workers, policy, interrupt, worker, news)
        while len(session.asked):
            round = session.asked.round
            if not job.measure(budget):
                return replace(session.result, stop=Stop.BUDGET)
            if session.asked.round == round:
                job.patiently(partial(wait_for_others, session, interrupt, news))
    return session.result


def source_of(measure: Any) -> Source:
    """Return a source of rewards as it is, and a function as a source of one call at a time."""
    if hasattr(measure, "answers") and is_whole(getattr(measure, "together", None)):
        source: Source = measure
        whole_number(source.together, "together", 1)
        return source
    if not callable(measure):
        raise InvalidProblem(
            f"`measure` is {measure!r}; it must be a function measure(arm, count, rng), what "
            f"shortlist.vectorised returns, or another source of rewards."
        )
    return FunctionSource(measure)


def _turns(wish: Any, source: Source, begun: dict[str, Any] | None) -> int:
    """Return in how many turns arms are measured: as asked for, or as the run began, or by default."""
    if wish is not None:
        return whole_number(wish, "turns", 1)
    if begun is not None and "together" in begun:  # a driver has arranged it
        return whole_number(begun.get("turns", 1), "turns", 1)
    return 1 if _cannot_drift(source) else TURNS


def _cannot_drift(source: Source) -> bool:
    """Whether rewards are known not to depend on when they are asked for: recorded or simulated ones."""
    inner = source.source if isinstance(source, BoundedSource) else source
    is_simulated = isinstance(inner, FunctionSource) and isinstance(inner.measure, SimulatedMeasure)
    return is_simulated or isinstance(inner, TableSource)


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
            f"that fail together are not independent, and nothing would be guaranteed. Leave it out, or let "
            f"the measurement itself return the score in place of each reward that failed."
        )
    if score is not None:
        pulls_per_call = 1
    return Policy(pulls_per_call, turns, retries_of(retries, is_scored=score is not None), score, timeout)


def _is_number(value: object) -> bool:
    is_real = isinstance(value, float) or is_whole(value)
    return is_real and math.isfinite(float(value))  # type: ignore[arg-type]
