"""Validation of answers to one ticket or to several, and their conversion into one form."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import real_numbers
from shortlist.errors import InvalidProblem, MeasurementFailed, NotAsked
from shortlist.measure import Summaries, check_answer, check_summaries, declared, is_reward, summary_of
from shortlist.problem import Problem
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets

_PILOT = "variances are unknown, and this round is the pilot that estimates them"
_MOST_EPSILONS = 2.0**45  # double precision then leaves eight bits below epsilon


def tickets_of(problem: Problem, given: object) -> Tickets:
    """Return one ticket, or several of one round, as `Tickets`."""
    if isinstance(given, Tickets):
        return given
    several = [given] if isinstance(given, Ticket) else list(given) if isinstance(given, list | tuple) else []
    rounds = {ticket.round for ticket in several if isinstance(ticket, Ticket)}
    if not all(isinstance(ticket, Ticket) for ticket in several) or len(rounds) != 1:
        raise NotAsked("`tell` takes tickets that `ask` returned: one ticket, or several of the same round.")
    columns = zip(*((ticket.arm, ticket.count, ticket.first_pull) for ticket in several), strict=True)
    arms, counts, first_pulls = (np.array(column) for column in columns)
    return Tickets(problem, rounds.pop(), arms, counts, first_pulls)


def means_of(tickets: Tickets, rewards: Any, means: Any) -> FloatArray:
    """Return the mean reward of each ticket, from `rewards` or `means`."""
    given = rewards if means is None else means
    if given is None or (rewards is not None and means is not None):
        raise MeasurementFailed("give either `rewards` or `means` for the tickets, not both.")
    if not hasattr(given, "__len__") or len(given) != len(tickets):
        raise MeasurementFailed(f"give a list with one answer for each of the {len(tickets)} tickets.")
    if means is None:
        answers = (summary_of(answer, t.count, t.name).mean for t, answer in zip(tickets, given, strict=True))
        return np.fromiter(answers, np.float64, len(tickets))
    required = "`means` must be a flat list of finite real numbers, one for each ticket."
    try:
        values = real_numbers(means, "means")
    except InvalidProblem as error:
        raise MeasurementFailed(f"{required} {error}") from None
    if values.ndim != 1 or not np.isfinite(values).all():
        raise MeasurementFailed(required)
    return values


def variances_of(tickets: Tickets, rewards: Any) -> FloatArray:
    """Return the sample variance of each ticket's rewards, if the strategy needs it."""
    if rewards is None:
        raise MeasurementFailed(f"{_PILOT}: give `rewards`, or summaries with `variance`, not means alone.")
    answers = zip(tickets, rewards, strict=True)
    found = [summary_of(answer, ticket.count, ticket.name).variance for ticket, answer in answers]
    return check_variances(tickets, np.array([np.nan if one is None else one for one in found]))


def check_parts(calls: Tickets, answers: Summaries) -> None:
    """Refuse answers to parts of a pilot's tickets if their sample variances are missing."""
    is_lot = calls.counts > 1
    given = answers.variances[is_lot]
    known = np.where(given == 0, 1.0, given)  # a variance of 0 is checked when the ticket is complete
    check_variances(calls.take(np.flatnonzero(is_lot)), known)


def check_finite(calls: Tickets, means: FloatArray) -> None:
    """Refuse means that are no numbers."""
    if not np.isfinite(means).all():
        place = int(np.argmin(np.isfinite(means)))
        raise MeasurementFailed(
            f"the mean of {calls[place].name} is {means[place]}; it must be a finite number."
        )


def check_variances(tickets: Tickets, variances: FloatArray) -> FloatArray:
    """Return sample variances if a pilot can use them; NaN means unknown."""
    is_wrong = ~((variances > 0) & np.isfinite(variances))
    if not is_wrong.any():
        return variances
    place = int(np.argmax(is_wrong))
    ticket = tickets[place]
    if np.isnan(variances[place]):
        raise MeasurementFailed(
            f"{_PILOT}, but the answer for {ticket.name} has no variance. Return all {ticket.count} "
            f"rewards, or shortlist.Summary(count, mean, variance) with the sample variance."
        )
    if variances[place] != 0:
        raise MeasurementFailed(
            f"the sample variance of {ticket.name} is {variances[place]:g}; "
            f"it must be a finite positive number."
        )
    raise MeasurementFailed(
        f"all {ticket.count} rewards of {ticket.name} are equal, so they are not Gaussian, and "
        f"the guarantee would not hold. For rewards in [a, b] use a `Problem` with variances "
        f"(b - a)**2 / 4."
    )


def check_bounds(
    problem: Problem, tickets: Tickets, rewards: Any, means: FloatArray, scored: Sequence[Scored] = ()
) -> None:
    """Refuse rewards, means and scores of failures that violate the declared bounds."""
    if problem.bounds is None:
        return
    for failed in scored:
        if not is_reward(problem, failed.score):
            raise MeasurementFailed(
                f"a failed pull of {failed.ticket.name} was scored as {failed.score:g}, but rewards were "
                f"declared to {declared(problem)}. Choose a score that satisfies this."
            )
    if rewards is None:
        check_summaries(problem, tickets.arms, Summaries(tickets.counts, means, np.full(len(means), np.nan)))
        return
    for ticket, answer in zip(tickets, rewards, strict=True):
        check_answer(problem, ticket.arm, answer, summary_of(answer, ticket.count, ticket.name))


def check_rounding(problem: Problem, means: FloatArray) -> None:
    """Refuse means so large that rounding errors would hide differences of epsilon."""
    if (np.abs(means) > problem.epsilon * _MOST_EPSILONS).any():
        raise MeasurementFailed(
            f"a mean of {np.abs(means).max():g} is too large compared with epsilon = {problem.epsilon:g}: "
            f"rounding errors would hide differences. Subtract a constant from all rewards."
        )
