"""Answers to tickets, validated: the form in which Python, files, requests and drivers give them to a run."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import is_whole, real_numbers, shortened
from shortlist.errors import InvalidProblem, MeasurementFailed, NotAsked
from shortlist.measure import (
    Summaries,
    Summary,
    check_answer,
    check_summaries,
    scores_of,
    summary_of,
)
from shortlist.problem import MOST_EPSILONS, Problem
from shortlist.session.worker_names import checked_worker
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets

_FEW = 10  # rewards that may be equal although they are nearly Gaussian
_WHOLE, _REAL, _NONE = {int, np.int64}, {int, float, np.float64}, {type(None)}
_PILOT = "variances are unknown, and answers to this round must include sample variances"


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to tickets of one round, or to parts of tickets; they match the problem and the tickets.

    Whether the run asked for these tickets is checked when the answers are recorded, in `answer_events`.

    Attributes
    ----------
    problem
        The problem whose bounds and epsilon the answers satisfy.
    tickets
        The tickets, or parts of them.
    means, variances
        The mean and the sample variance of the rewards of each ticket; NaN for an unknown variance.
    rewards
        The answers as given, one for each ticket; None if only means were given.
    worker
        The worker who measured.
    scored
        The pulls that failed, and the values that the answers contain for them.
    again
        The arms for which a measurement was made, or tried, more than once.
    sizes
        The largest absolute reward of each answer, if answers that differ only by rounding count as the same:
        spreadsheets keep fifteen digits, and the order of rewards changes the last digits of a mean.
    scores
        With shared items: the score of each item, one array for each ticket.
    """

    problem: Problem
    tickets: Tickets
    means: FloatArray
    variances: FloatArray
    rewards: Sequence[Any] | None = None
    worker: str = ""
    scored: Sequence[Scored] = ()
    again: Sequence[int] = ()
    sizes: FloatArray | None = None
    scores: Sequence[FloatArray] | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        tickets: object,
        rewards: Any,
        means: Any,
        worker: str = "",
        *,
        sample_variances: Any = None,
        **about: Any,
    ) -> "Answers":
        """Return answers to whole tickets, given as `rewards` or as `means`; see `Session.tell`.

        Raises
        ------
        NotAsked
            If `tickets` are not tickets of one round.
        MeasurementFailed
            If an answer is not as many finite real numbers as its ticket asks for, violates the declared
            bounds, or lacks a sample variance that is needed.
        """
        worker = worker and checked_worker(worker)
        if isinstance(tickets, Ticket):
            rewards = [rewards] if means is None else rewards
            means, sample_variances = (
                None if given is None else np.atleast_1d(given) for given in (means, sample_variances)
            )
        several = _tickets_of(problem, tickets)
        if means is None:
            given = _summaries(several, rewards)
            found, spreads = given.means, given.variances
            about |= {"scores": given.scores}
        else:
            refuse_means(problem)
            found, spreads = _means(several, rewards, means), np.full(len(several), np.nan)
        if sample_variances is not None:
            spreads = _spreads(several, rewards, sample_variances)
        answers = cls(problem, several, found, spreads, rewards, worker, **about)
        check_rounding(problem, found)
        for scores in about.get("scores") or ():
            check_rounding(problem, scores)
        if several.needs_variances:
            if means is not None and sample_variances is None:
                raise MeasurementFailed(
                    f"{_PILOT}: give `rewards`, summaries with `variance`, or `sample_variances` as well."
                )
            check_variances(several, spreads)
        answers.check_bounds(problem)
        return answers

    @classmethod
    def of_calls(
        cls, problem: Problem, calls: Tickets, given: Summaries, worker: str = "", **about: Any
    ) -> "Answers":
        """Return answers to parts of tickets, as drivers give them; raise errors as `of` does."""
        worker = worker and checked_worker(worker)
        if ((calls.arms < 0) | (calls.arms >= problem.n)).any():
            raise NotAsked(f"there are only {problem.n:,} arms; tell only tickets that `ask` returned.")
        is_number = np.isfinite(given.means)
        if not is_number.all():
            place = int(np.argmin(is_number))
            raise MeasurementFailed(
                f"the mean of {calls[place].name} is {given.means[place]}; it must be a finite number."
            )
        check_rounding(problem, given.means)
        if calls.needs_variances:  # a variance of 0 is checked when the ticket is complete
            is_lot = np.flatnonzero(calls.counts > 1)
            spreads = given.variances[is_lot]
            check_variances(calls.take(is_lot), np.where(spreads == 0, 1.0, spreads))
        _check_scores(problem, calls, given.scores)
        means = given.means
        if given.scores is not None:
            for scores in given.scores:
                check_rounding(problem, scores)
            means = np.array([float(scores.mean()) for scores in given.scores])
        answers = cls(problem, calls, means, given.variances, None, worker, scores=given.scores, **about)
        answers.check_bounds(problem)
        return answers

    def of_round(self, number: int) -> "Answers":
        """Return the same answers as answers in another round."""
        return replace(self, tickets=replace(self.tickets, round=number))

    def check_bounds(self, problem: Problem) -> None:
        """Refuse rewards and means that violate the declared bounds."""
        if problem.bounds is None:
            return
        tickets = self.tickets
        if self.scores is not None:
            for arm, scores in zip(tickets.arms.tolist(), self.scores, strict=True):
                check_answer(problem, arm, scores, Summary(len(scores), float(scores.mean())))
            return
        if self.rewards is None or set(map(type, self.rewards)) == {Summary}:
            check_summaries(problem, tickets.arms, Summaries(tickets.counts, self.means, self.variances))
            return
        for place, (ticket, answer) in enumerate(zip(tickets, self.rewards, strict=True)):
            mean, variance = float(self.means[place]), float(self.variances[place])
            summary = Summary(ticket.count, mean, None if np.isnan(variance) else variance)
            check_answer(problem, ticket.arm, answer, summary)


def _tickets_of(problem: Problem, given: object) -> Tickets:
    """Return one ticket, or several of one round, as `Tickets`."""
    if isinstance(given, Tickets):
        return given
    several = [given] if isinstance(given, Ticket) else list(given) if isinstance(given, list | tuple) else []
    rounds = set[int]()
    for ticket in several:
        if isinstance(ticket, Ticket):
            rounds.add(_round_of(ticket))
    if not all(isinstance(ticket, Ticket) for ticket in several) or len(rounds) != 1:
        raise NotAsked("`tell` takes tickets that `ask` returned: one ticket, or several of the same round.")
    columns = zip(*((ticket.arm, ticket.count, ticket.first_pull) for ticket in several), strict=True)
    arms, counts, first_pulls = (np.array(column) for column in columns)
    return Tickets(problem, rounds.pop(), arms, counts, first_pulls)


def _round_of(ticket: Ticket) -> int:
    if not is_whole(ticket.round):
        raise NotAsked(
            f"the round of a ticket is {shortened(ticket.round)}; it must be a whole number. Tell tickets "
            f"that `ask` returned."
        )
    return ticket.round


def _summaries(tickets: Tickets, rewards: Any) -> Summaries:
    """Return the moments of each ticket's rewards and, with shared items, the single scores."""
    if rewards is None:
        raise MeasurementFailed("give either `rewards` or `means` for the tickets, not both.")
    _check_length(tickets, rewards)
    if (quick := _all_summaries(tickets, rewards)) is not None:
        return quick
    is_binary, pairs = tickets.problem.is_binary, zip(tickets, rewards, strict=True)
    found = [summary_of(answer, t.count, t.name, is_binary=is_binary) for t, answer in pairs]
    variances = np.array([np.nan if one.variance is None else one.variance for one in found])
    scores = None
    if tickets.problem.items is not None:
        scores = [scores_of(one, t.name) for t, one in zip(tickets, found, strict=True)]
    return Summaries(tickets.counts, np.array([one.mean for one in found]), variances, scores=scores)


def _all_summaries(tickets: Tickets, answers: Any) -> Summaries | None:
    """Return answers that are all valid summaries, without a loop over them; None if some are not."""
    if tickets.problem.items is not None or set(map(type, answers)) != {Summary}:
        return None
    columns = (list(map(attrgetter(name), answers)) for name in ("count", "mean", "variance", "scores"))
    counts, means, variances, scores = columns
    kinds = [set(map(type, column)) for column in (counts, means, variances, scores)]
    if not (kinds[0] <= _WHOLE and kinds[1] <= _REAL and kinds[2] <= _REAL | _NONE and kinds[3] == _NONE):
        return None
    try:
        given = Summaries(
            np.array(counts, dtype=np.int64),
            np.array(means, dtype=np.float64),
            np.array(variances, dtype=np.float64),  # None becomes NaN
        )
    except OverflowError:  # whole numbers that are too large are refused one by one
        return None
    is_unknown = np.isnan(given.variances)
    is_valid = (given.counts == tickets.counts) & np.isfinite(given.means)
    is_valid &= is_unknown | ((given.variances >= 0) & (given.variances < np.inf))
    return given if is_valid.all() and is_unknown.sum() == variances.count(None) else None


def refuse_means(problem: Problem) -> None:
    """Refuse means in place of scores on shared items."""
    if problem.items is not None:
        raise MeasurementFailed("with shared items, give the score of each item, not their mean.")


def _check_scores(problem: Problem, calls: Tickets, scores: Sequence[FloatArray] | None) -> None:
    """Refuse answers without single scores, or with too many or too few, if there are shared items."""
    if problem.items is None:
        if scores is not None:
            raise MeasurementFailed("`scores` are for shared items, which this run does not have.")
        return
    if scores is None:
        refuse_means(problem)
    elif [len(one) for one in scores] != calls.counts.tolist():
        raise MeasurementFailed("give exactly one score for each item that was asked for.")
    elif not calls.counts.all():
        raise MeasurementFailed("an answer has no scores; give at least one for each call.")
    elif not all(np.isfinite(one).all() for one in scores):
        raise MeasurementFailed("NaN and infinity are not scores.")


def _means(tickets: Tickets, rewards: Any, means: Any) -> FloatArray:
    """Return the given mean of each ticket's rewards."""
    if rewards is not None:
        raise MeasurementFailed("give either `rewards` or `means` for the tickets, not both.")
    return _numbers(tickets, means, "means")


def _spreads(tickets: Tickets, rewards: Any, variances: Any) -> FloatArray:
    """Return the given sample variance of each ticket's rewards."""
    if rewards is not None:
        raise MeasurementFailed("`sample_variances` go with `means`; `rewards` have their own.")
    values = _numbers(tickets, variances, "sample_variances")
    if (values < 0).any():
        raise MeasurementFailed("`sample_variances` must not be negative.")
    return np.where(tickets.counts > 1, values, np.nan)


def _numbers(tickets: Tickets, given: Any, name: str) -> FloatArray:
    """Return finite numbers, one for each ticket."""
    _check_length(tickets, given)
    required = f"`{name}` must be a flat list of finite real numbers, one for each ticket."
    try:
        values = real_numbers(given, name)
    except InvalidProblem as error:
        raise MeasurementFailed(f"{required} {error}") from None
    if values.ndim != 1 or not np.isfinite(values).all():
        raise MeasurementFailed(required)
    return values


def _check_length(tickets: Tickets, given: Any) -> None:
    if not hasattr(given, "__len__") or isinstance(given, Mapping | Set) or len(given) != len(tickets):
        raise MeasurementFailed(f"give a list with one answer for each of the {len(tickets)} tickets.")


def check_variances(tickets: Tickets, variances: FloatArray) -> None:
    """Refuse sample variances that a strategy cannot use; NaN means unknown.

    Few rewards may be equal because they are rounded, unless all that is known of an arm is their variance.
    """
    is_few = (tickets.counts < _FEW) & (tickets.round > 0)
    largest = (tickets.problem.epsilon * MOST_EPSILONS) ** 2
    is_wrong = ~((variances > 0) & (variances <= largest)) & ~(is_few & (variances == 0))
    if not is_wrong.any():
        return
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
            f"it must be a positive number, and not too large compared with epsilon."
        )
    raise MeasurementFailed(
        f"all {ticket.count} rewards of {ticket.name} are equal, so they are not Gaussian, and "
        f"the guarantee would not hold. For rewards between a and b use a "
        f"`Problem` with rewards=shortlist.Bounded(a, b)."
    )


def check_rounding(problem: Problem, means: FloatArray) -> None:
    """Refuse means so large that rounding errors would hide differences of epsilon."""
    if problem.items is not None and problem.is_bounded:
        return
    if (np.abs(means) > problem.epsilon * MOST_EPSILONS).any():
        raise MeasurementFailed(
            f"a mean of {np.abs(means).max():g} is too large compared with epsilon = "
            f"{problem.epsilon:g}: rounding errors would hide differences. Subtract a constant from all "
            f"rewards."
        )
