"""The loop that measures: asks a session for tickets and answers them with a Python function."""

from collections.abc import Callable
from dataclasses import replace

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem, MeasurementFailed
from shortlist.measure import Call, FunctionSource, Measure, Source
from shortlist.plan import resolve
from shortlist.problem import Problem
from shortlist.result import Result, Stop
from shortlist.run.session import Session
from shortlist.run.tickets import Ticket


def select(
    measure: Measure | Source,
    problem: Problem,
    strategy: str = "auto",
    *,
    seed: int = 0,
    budget: int | None = None,
    progress: Callable[[Session], None] | None = None,
) -> Result:
    """Return the m best arms of a problem, measured by a Python function.

    Parameters
    ----------
    measure
        ``measure(arm, count, rng)`` returns `count` fresh rewards of arm number `arm`, as a list or an
        array, or a ``Summary(count, mean)`` of them. `rng` is a NumPy generator that depends only on
        the seed, the arm and the number of its earlier pulls; use it for all randomness of your own.
    problem
        What is asked.
    strategy
        A name from `shortlist.strategies()`, or "auto" for the best certified one (see `plan`), within
        the budget if one is.
    seed
        Makes the run reproducible.
    budget
        The most pulls to make. If the strategy needs more, the result carries no guarantee.
    progress
        Called with the session after every measurement.

    Examples
    --------
    >>> problem = Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 4)
    >>> result = select(lambda arm, count, rng: rng.normal(arm, 1.0, count), problem)
    >>> sorted(result.selected)
    ['arm-2', 'arm-3']
    """
    budget = None if budget is None else whole_number(budget, "budget", 0)
    session = Session(problem, resolve(strategy, problem, budget), seed=seed)
    return drive(session, measure, budget=budget, progress=progress)


def drive(
    session: Session,
    measure: Measure | Source,
    *,
    budget: int | None = None,
    progress: Callable[[Session], None] | None = None,
) -> Result:
    """Answer a session's tickets until it is done, and return its result.

    If a measurement fails, everything told before stays in the session; call again to go on.
    """
    source = _source(measure)
    budget = None if budget is None else whole_number(budget, "budget", 0)
    while tickets := session.ask():
        for ticket in tickets:
            if budget is not None and session.n_pulls + ticket.count > budget:
                return replace(session.result, stop=Stop.BUDGET)
            session.tell(ticket, _measured(source, ticket, session.seed))
            if progress is not None:
                progress(session)
    return session.result


def _source(measure: Measure | Source) -> Source:
    if callable(measure):
        return FunctionSource(measure)
    if not hasattr(measure, "answers"):
        raise InvalidProblem(f"`measure` is {measure!r}; it must be a function measure(arm, count, rng).")
    return measure


def _measured(source: Source, ticket: Ticket, seed: int) -> object:
    try:
        return source.answers([Call(seed, ticket.arm, ticket.count, ticket.first_pull)])[0]
    except MeasurementFailed:
        raise
    except Exception as error:
        raise MeasurementFailed(
            f"measuring {ticket.name} ({ticket.count} pulls) raised {type(error).__name__}: {error}. "
            f"Mend the function and run again; with a Session and drive() nothing measured so far is lost."
        ) from error
