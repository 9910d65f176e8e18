"""The loop that measures: asks a session for tickets and answers them with a Python function."""

from collections.abc import Callable
from dataclasses import replace

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem, MeasurementFailed
from shortlist.measure import Measure, generator_for
from shortlist.plan import resolve
from shortlist.result import Result, Stop
from shortlist.run.session import Session
from shortlist.run.tickets import Ticket
from shortlist.unknown import Question


def select(
    measure: Measure,
    problem: Question,
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
    >>> from shortlist import Problem
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
    measure: Measure,
    *,
    budget: int | None = None,
    progress: Callable[[Session], None] | None = None,
) -> Result:
    """Answer a session's tickets until it is done, and return its result.

    If a measurement fails, everything told before stays in the session; call again to go on.
    """
    if not callable(measure):
        raise InvalidProblem(f"`measure` is {measure!r}; it must be a function measure(arm, count, rng).")
    budget = None if budget is None else whole_number(budget, "budget", 0)
    while tickets := session.ask():
        for ticket in tickets:
            if budget is not None and session.n_pulls + ticket.count > budget:
                return replace(session.result, stop=Stop.BUDGET)
            session.tell(ticket, _measured(measure, ticket, session.seed))
            if progress is not None:
                progress(session)
    return session.result


def _measured(measure: Measure, ticket: Ticket, seed: int) -> object:
    try:
        return measure(ticket.arm, ticket.count, generator_for(seed, ticket.arm, ticket.first_pull))
    except Exception as error:
        raise MeasurementFailed(
            f"measuring {ticket.name} ({ticket.count} pulls) raised {type(error).__name__}: {error}. "
            f"Mend the function and run again; with a Session and drive() nothing measured so far is lost."
        ) from error
