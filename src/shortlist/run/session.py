"""A live run: it asks for pulls, is told rewards, and ends with a result.

The session is the only place where a strategy's state changes hands. A round counts only when it is
whole, so neither the order in which answers arrive nor their number per call has any effect.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.checks import real_numbers, whole_number
from shortlist.errors import Contradiction, InvalidProblem, MeasurementFailed, NotAsked
from shortlist.measure import summary_of
from shortlist.plan import resolve
from shortlist.result import Arms, Result, Stop, best_first
from shortlist.store.events import Conflict, Scored, Told
from shortlist.strategies import strategy_for
from shortlist.tickets import Ticket, Tickets
from shortlist.unknown import Question, checked_question

_MOST_EPSILONS = 2.0**45  # in doubles, eight bits are then left below epsilon


class Session:
    """A run in memory that asks for pulls and is told rewards.

    Parameters
    ----------
    problem
        What is asked.
    strategy
        A name from `shortlist.strategies()`, or "auto" for the best certified one (see `plan`).
    seed
        The seed from which measurements derive their randomness.

    Examples
    --------
    >>> from shortlist import Problem
    >>> problem = Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0, 1.0])
    >>> session = Session(problem, strategy="wnelim")
    >>> while tickets := session.ask():
    ...     session.tell(tickets, [[float(ticket.arm)] * ticket.count for ticket in tickets])
    >>> session.result.selected
    ('arm-1',)
    """

    def __init__(self, problem: Question, strategy: str = "auto", *, seed: int = 0) -> None:
        self.problem = checked_question(problem)
        self.strategy = resolve(strategy, problem)
        self.seed = whole_number(seed, "seed", 0)
        self.events: list[Told] = []
        self.conflicts: list[Conflict] = []
        self.scored: list[Scored] = []
        self._rules = strategy_for(self.strategy, problem)
        self.worst_case_pulls = self._rules.worst_case_pulls(problem)
        self._state = self._rules.init(problem, ())
        self._pulls = np.zeros(problem.n, dtype=np.int64)
        self._sums = np.zeros(problem.n)
        self._n_pulls = 0
        self._rounds: list[tuple[Tickets, FloatArray, FloatArray | None]] = []
        self._open_round()

    def __repr__(self) -> str:
        return f"Session({self.problem!r}, {self.strategy!r}, seed={self.seed}, n_pulls={self.n_pulls})"

    @classmethod
    def replay(cls, problem: Question, strategy: str, events: Iterable[Told], *, seed: int = 0) -> "Session":
        """Return the session that these events lead to."""
        session = cls(problem, strategy, seed=seed)
        for event in events:
            places = session._places(event.round, event.arms)
            session._accept(event.round, places, event.means, event.variances)
        return session

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""
        return bool(self._rules.verdict(self._state).is_final)

    @property
    def n_pulls(self) -> int:
        """How many pulls have been told so far."""
        return self._n_pulls

    @property
    def asked(self) -> Tickets:
        """All requests of the round under way, told or not."""
        return self._asked

    def ask(self, limit: int | None = None) -> Tickets:
        """Return the requests of this round that have not been told, at most `limit` of them.

        Asking again returns the same. There are none once the strategy has ended.
        """
        if limit is not None:
            limit = whole_number(limit, "limit", 0)
        return self._asked.take(np.flatnonzero(np.isnan(self._received))[:limit])

    def tell(
        self,
        tickets: Ticket | Sequence[Ticket],
        rewards: Any = None,
        *,
        means: float | Sequence[float] | FloatArray | None = None,
    ) -> None:
        """Take the answers to one ticket or to several, in any order.

        A ticket told again with the same rewards changes nothing. With other rewards the first answer
        stands; the second is kept in `conflicts`, and a Contradiction warning says so.

        Parameters
        ----------
        tickets
            What `ask` returned, some of it, or one ticket.
        rewards
            For one ticket all its `count` rewards or a `Summary` of them; for several, one such answer each.
        means
            Instead of `rewards`: the mean of each ticket's rewards; for one ticket a number.

        Raises
        ------
        MeasurementFailed
            If an answer is not `count` finite real numbers. Nothing of the call is then counted.
        NotAsked
            If something was not asked for. Nothing of the call is then counted.
        """
        if isinstance(tickets, Ticket):
            rewards = [rewards] if means is None else rewards
            means = None if means is None else np.atleast_1d(means)
        tickets = _together(self.problem, tickets)
        places = self._places(tickets.round, tickets.arms)
        issued = self._round(tickets.round)[0].take(places)
        if (issued.counts != tickets.counts).any() or (issued.first_pulls != tickets.first_pulls).any():
            raise NotAsked(
                "these tickets ask for other pulls than the session did; tell what `ask` returned."
            )
        told, variances = _means(tickets, rewards, means), None
        _check_rounding(self.problem, told)
        if issued.needs_variances:
            variances = _variances(tickets, rewards)
        self._accept(tickets.round, places, told, variances)

    @property
    def result(self) -> Result:
        """What the run has led to so far."""
        decision = self._rules.verdict(self._state)
        promise = self._rules.guarantee(self.problem) if decision.is_final else None
        stop = Stop.OPEN
        if decision.is_final:
            stop = Stop.UNPROVED if promise is None else Stop.CERTIFIED
        arms = self._measured()
        return Result(
            problem=self.problem,
            strategy=self.strategy,
            seed=self.seed,
            indices=best_first(decision.selected, self.problem.merits(arms.means)),
            stop=stop,
            guarantee=promise,
            n_pulls=self.n_pulls,
            n_rounds=len(self._rounds),
            arms=arms,
            n_scored=sum(scored.ticket.count for scored in self.scored),
        )

    def _measured(self) -> Arms:
        """Return what is known of every arm, including what was told of the round under way."""
        pulls, sums = self._pulls.copy(), self._sums.copy()
        places = np.flatnonzero(~np.isnan(self._received))
        told = self._asked.take(places)
        pulls[told.arms] += told.counts
        sums[told.arms] += told.counts * self._received[places]
        with np.errstate(invalid="ignore"):
            return Arms(pulls, sums / pulls)

    def _round(self, number: int) -> tuple[Tickets, FloatArray, FloatArray | None]:
        """Return what a round asked for, and the means and variances told of it; NaN where none have been."""
        if not 0 <= number <= len(self._rounds):
            raise NotAsked(f"round {number} has not begun; the session is at round {len(self._rounds)}.")
        if number < len(self._rounds):
            return self._rounds[number]
        return self._asked, self._received, self._spreads

    def _places(self, number: int, arms: IntArray) -> IntArray:
        """Return where among the tickets of a round these arms stand."""
        asked = self._round(number)[0].arms
        order = self._order if number == len(self._rounds) else np.argsort(asked)
        nearest = np.searchsorted(asked, arms, sorter=order)
        is_asked = nearest < len(asked)
        places = order[nearest[is_asked]]
        if not is_asked.all() or (asked[places] != arms).any():
            raise NotAsked(
                f"round {number} did not ask for every arm that was told; tell only what `ask` returned."
            )
        if len(places) > 1 and len(np.unique(places)) < len(places):
            raise NotAsked("an arm appears twice in one call; tell each ticket once.")
        return places

    def _accept(self, number: int, places: IntArray, means: FloatArray, variances: FloatArray | None) -> None:
        """Count what is new, and note what differs from what was told before."""
        asked, known, spreads = self._round(number)
        is_new = np.isnan(known[places])
        is_other = ~is_new & (known[places] != means)
        if (spreads is None) != (variances is None):
            raise NotAsked(f"round {number} {'needs' if variances is None else 'has no'} sample variances.")
        if spreads is not None:
            is_other |= ~is_new & (spreads[places] != variances)
        others = [
            Conflict(number, int(asked.arms[place]), float(known[place]), float(mean))
            for place, mean in zip(places[is_other], means[is_other], strict=True)
        ]
        if is_new.any():
            fresh = None if variances is None else variances[is_new]
            self.events.append(Told(number, asked.arms[places[is_new]], means[is_new], fresh))
            self._count(places[is_new], means[is_new], fresh)
        self.conflicts += others
        for other in others:
            warnings.warn(
                f"{self.problem.name(other.arm)} in round {other.round} was told before with mean "
                f"{other.kept:g} and now with {other.refused:g}; the first answer stands.",
                Contradiction,
                stacklevel=3,
            )

    def _count(self, places: IntArray, means: FloatArray, variances: FloatArray | None) -> None:
        self._received[places] = means
        if self._spreads is not None and variances is not None:
            self._spreads[places] = variances
        self._n_missing -= len(places)
        self._n_pulls += int(self._asked.counts[places].sum())
        if self._n_missing == 0:
            self._close_round()

    def _open_round(self) -> None:
        batch = self._rules.ask(self._state)
        first_pulls = self._pulls[batch.arms]
        number, needed = len(self._rounds), batch.needs_variances
        self._asked = Tickets(self.problem, number, batch.arms, batch.counts, first_pulls, needed)
        self._order = np.argsort(batch.arms)
        self._received = np.full(len(batch.arms), np.nan)
        self._spreads = np.full(len(batch.arms), np.nan) if needed else None
        self._n_missing = len(self._received)

    def _close_round(self) -> None:
        asked, received, spreads = self._asked, self._received, self._spreads
        merits = self.problem.merits(received)
        if spreads is not None and self._rules.tell_pilot is not None:
            self._state = self._rules.tell_pilot(self._state, merits, spreads)
        else:
            self._state = self._rules.tell(self._state, merits)
        self._rounds.append((asked, received, spreads))
        if self._rules.cap_from is not None:
            self.worst_case_pulls = self._rules.cap_from(self._state) or self.worst_case_pulls
        self._pulls[asked.arms] += asked.counts
        self._sums[asked.arms] += asked.counts * received
        self._open_round()


def _together(problem: Question, given: object) -> Tickets:
    """Return one ticket, or several of one round, as `Tickets`."""
    if isinstance(given, Tickets):
        return given
    several = [given] if isinstance(given, Ticket) else list(given) if isinstance(given, list | tuple) else []
    rounds = {ticket.round for ticket in several if isinstance(ticket, Ticket)}
    if not all(isinstance(ticket, Ticket) for ticket in several) or len(rounds) != 1:
        raise NotAsked("tell takes what `ask` returned: one ticket, or several of the same round.")
    columns = zip(*((ticket.arm, ticket.count, ticket.first_pull) for ticket in several), strict=True)
    arms, counts, first_pulls = (np.array(column) for column in columns)
    return Tickets(problem, rounds.pop(), arms, counts, first_pulls)


def _means(tickets: Tickets, rewards: Any, means: Any) -> FloatArray:
    """Return the mean reward of each ticket, from whichever of the two was given."""
    given = rewards if means is None else means
    if given is None or (rewards is not None and means is not None):
        raise MeasurementFailed("give either `rewards` or `means` for the tickets, and not both.")
    if not hasattr(given, "__len__") or len(given) != len(tickets):
        raise MeasurementFailed(
            f"there must be one answer for each of the {len(tickets)} tickets, in a list."
        )
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


def _variances(tickets: Tickets, rewards: Any) -> FloatArray:
    """Return the sample variance of each ticket's rewards, where the strategy has to have it."""
    what = "variances are unknown, and a pilot is to show them"
    if rewards is None:
        raise MeasurementFailed(f"{what}: tell `rewards`, or summaries with `variance`, and not means alone.")
    found = np.empty(len(tickets))
    for place, (ticket, answer) in enumerate(zip(tickets, rewards, strict=True)):
        variance = summary_of(answer, ticket.count, ticket.name).variance
        if variance is None:
            raise MeasurementFailed(
                f"{what}, but the answer for {ticket.name} has no variance. Return all {ticket.count} "
                f"rewards, or shortlist.Summary(count, mean, variance) with the sample variance."
            )
        if variance == 0:
            raise MeasurementFailed(
                f"all {ticket.count} rewards of {ticket.name} are equal, so they are not Gaussian, and "
                f"nothing would be guaranteed. For rewards in [a, b] ask a `Problem` with variances "
                f"(b - a)**2 / 4."
            )
        found[place] = variance
    return found


def _check_rounding(problem: Question, means: FloatArray) -> None:
    """Refuse means so large that differences of epsilon would drown in rounding."""
    if (np.abs(means) > problem.epsilon * _MOST_EPSILONS).any():
        raise MeasurementFailed(
            f"a mean of {np.abs(means).max():g} is too large beside epsilon = {problem.epsilon:g}: "
            f"differences would be lost in rounding. Subtract a constant from all rewards."
        )
