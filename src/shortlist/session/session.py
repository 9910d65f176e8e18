"""A live run: it asks for pulls, is told rewards, and ends with a result.

Whatever happens in a run is an event of its log, appended first and counted then; so a session is what its
log says. A round counts only when it is whole, so neither the order in which answers arrive nor their number
per call has any effect.
"""

import secrets
import warnings
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.checks import shortened, whole_number
from shortlist.errors import ChangedRun, Contradiction, InvalidProblem
from shortlist.measure import Summaries
from shortlist.planning import resolve
from shortlist.problem import Problem, checked
from shortlist.result import Result
from shortlist.rewards import SubGaussian
from shortlist.session import transitions as deciding
from shortlist.session.answers import (
    check_bounds,
    check_parts,
    check_rounding,
    means_of,
    tickets_of,
    variances_of,
)
from shortlist.session.differences import changes_of_question
from shortlist.session.holders import Holding, awaited
from shortlist.session.log import Choose, RunLog
from shortlist.session.state import REPRODUCIBLE, RunState
from shortlist.session.worker_names import HERE, checked_worker, own_name
from shortlist.store import (
    Began,
    Conflict,
    Event,
    MemoryStore,
    Record,
    Scored,
    Suspended,
    Told,
    Where,
    open_store,
)
from shortlist.tickets import Ticket, Tickets

DAY = 86_400.0  # seconds
_LONGEST = 1e10  # seconds; three centuries
_MANY_ARMS = 20_000
_MOST_LETTERS = 200  # of the name of a run
_LETTERS = "abcdefghjkmnpqrstuvwxyz"  # of a run's code; none that is easily mistaken for another
_CODE = 6  # letters: two runs, of this store or another, have the same one time in 148 million


class Session:
    """A run that asks for pulls and is told rewards.

    Parameters
    ----------
    problem
        What is asked.
    strategy
        A name from `shortlist.strategies.names()`, or "auto" for the best certified one (see `plan`).
    seed
        The seed from which measurements derive their randomness.
    store
        Where the run is kept: the path of an SQLite file, which is made if there is none; the address of a
        PostgreSQL database, ``postgresql://user@host/name``; or None to keep it in memory only. If the run
        is there already, the session goes on with it; others may be doing the same.
    name
        The name of the run in the store.
    budget
        Of pulls; only the choice of a strategy by "auto" depends on it.
    reissue
        Whether a ticket may go to another worker when its lease has run out. If not, it stays with its worker
        until that answers, gives it back or, being a process of this machine, is gone; or until somebody
        takes it away with `release`. It is settled when the run begins: True unless said otherwise.
    reproducible
        True declares that a ticket measured again with its seed gives the same rewards, whoever measures it.
        Otherwise the result says how many tickets were issued or tried more than once, since their quicker
        answers count. A declaration may come at any time, and stays.

    Attributes
    ----------
    is_private
        Whether the run is kept in memory only.
    is_new
        Whether the run began with this session.

    Raises
    ------
    ChangedRun
        If the run in the store began with another question, strategy or seed.

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

    prefix = HERE

    def __init__(
        self,
        problem: Problem,
        strategy: str = "auto",
        *,
        seed: int = 0,
        store: Where | None = None,
        name: str = "main",
        budget: int | None = None,
        reissue: bool | None = None,
        reproducible: bool = False,
    ) -> None:
        problem = checked(problem)
        for option, value in (("reissue", reissue), ("reproducible", reproducible)):
            if not isinstance(value, bool | None):
                raise InvalidProblem(f"`{option}` is {value!r}; it must be True or False.")
        seed = whole_number(seed, "seed", 0)
        self.is_private, self.is_new = store is None, False
        self._log = RunLog(MemoryStore() if store is None else open_store(store), name)
        self._is_own_store = self._log.store is not store
        self._log.catch_up()
        if not self._log.has_begun:
            self._begin(problem, strategy, resolve(strategy, problem, budget), seed, reissue)
        self._compare(problem, strategy, seed, reissue)
        if reproducible:
            self.arrange({REPRODUCIBLE: True})
        self._settle()

    def _compare(self, problem: Problem, strategy: str, seed: int, reissue: bool | None) -> None:
        """Refuse to go on with another question. Bounds that the log lacks are added to it."""
        if problem.bounds is not None and self.problem.bounds is None:
            self._refuse_changes(problem.changed(bounds=None, rewards=SubGaussian), strategy, seed, reissue)
            self._append(lambda history, _: deciding.declaration(self.name, history, problem))
        self._refuse_changes(problem, strategy, seed, reissue)

    def _refuse_changes(self, problem: Problem, strategy: str, seed: int, reissue: bool | None) -> None:
        if changes := changes_of_question(self._history.began, problem, strategy, seed, reissue):
            raise ChangedRun(
                f"run {self.name!r} began with another question: {'; '.join(changes)}. To go on with it, ask "
                f"as before; to ask this question, give the run another name. Nothing was changed."
            )

    @classmethod
    def resume(cls, store: Where, name: str = "main") -> "Session":
        """Return the session of a run that is in a store already, whatever it asks."""
        log = RunLog(open_store(store, must_exist=True), name)
        log.catch_up()
        session = cls.following(log)
        session._is_own_store = log.store is not store
        return session

    @classmethod
    def following(cls, log: RunLog) -> "Session":
        """Return the session of a run whose log is followed already; closing it leaves the store open."""
        session = cls.__new__(cls)
        session.is_private = session.is_new = session._is_own_store = False
        session._log = log
        session._settle()
        return session

    @classmethod
    def replay(cls, problem: Problem, strategy: str, events: Iterable[Event], *, seed: int = 0) -> "Session":
        """Return the session, in memory, that these events lead to: answers, conflicts and scores."""
        session = cls(problem, strategy, seed=seed)
        for event in events:
            if isinstance(event, Told):
                session._accept(lambda history, _, told=event: deciding.answers(history, told))  # type: ignore[misc]
            elif isinstance(event, Conflict | Scored):
                session._log.append(lambda *_, event=event: [event])
        return session

    def __repr__(self) -> str:
        return f"Session({self.problem!r}, {self.strategy!r}, seed={self.seed}, n_pulls={self.n_pulls})"

    def close(self) -> None:
        """Let go of the store, unless it was open before. Whatever was told is there already."""
        if self._is_own_store:
            self._log.store.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what it has come to --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the run in its store."""
        return self._log.run

    @property
    def code(self) -> str:
        """The letters by which tickets of this run are told from those of others."""
        return self._history.began.code

    @property
    def problem(self) -> Problem:
        """What is asked."""
        return self._history.problem

    @property
    def strategy(self) -> str:
        """The name of the strategy that decides."""
        return self._history.began.strategy

    @property
    def seed(self) -> int:
        """The seed from which measurements derive their randomness."""
        return self._history.began.seed

    @property
    def records(self) -> list[Record]:
        """The whole log."""
        return list(self._log.store.read(self._log.run))

    @property
    def events(self) -> list[Told]:
        """The answers of the log, as they were told."""
        return [record.event for record in self.records if isinstance(record.event, Told)]

    @property
    def conflicts(self) -> list[Conflict]:
        """Second answers to tickets that differ from the first, which stands."""
        return self._history.conflicts

    @property
    def scored(self) -> list[Scored]:
        """Pulls that failed every time they were tried, and count as a value chosen for that."""
        return self._history.scored

    @property
    def worst_case_pulls(self) -> int | None:
        """The most pulls that the strategy can take; None where that is unknown."""
        return self._history.worst_case_pulls

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""
        return self._history.is_final

    @property
    def n_pulls(self) -> int:
        """How many pulls have been told so far."""
        return self._history.n_pulls

    @property
    def n_made(self) -> int:
        """How many pulls have been answered, also of tickets that lack others."""
        return self._history.n_made

    @property
    def asked(self) -> Tickets:
        """All requests of the round under way, told or not."""
        return self._history.round.tickets

    @property
    def result(self) -> Result:
        """What the run has led to so far."""
        with self._log.lock:
            return self._history.result

    @property
    def history(self) -> RunState:
        """What the log comes to, in detail; for those who report on it."""
        return self._log.history

    @property
    def log(self) -> RunLog:
        """The log that it follows and adds to; for those who report on it."""
        return self._log

    @property
    def settings(self) -> dict[str, Any] | None:
        """How measuring was arranged; None if no driver has begun."""
        return self._history.settings

    @property
    def ended_at(self) -> float | None:
        """When the run ended, in seconds since 1970; None if it has not."""
        return self._log.ended_at

    @property
    def _history(self) -> RunState:
        return self._log.history

    @property
    def _state(self) -> Any:
        return self._history.state

    # --- asking and telling ---------------------------------------------------------------------------

    def ask(self, limit: int | None = None, *, worker: str | None = None, lease: float = DAY) -> Tickets:
        """Return the requests of this round that have not been told, at most `limit` of them.

        Asking again returns the same. There are none once the strategy has ended.

        Parameters
        ----------
        limit
            The most tickets to return; None for all.
        worker
            Who will measure. What is asked under a name is reserved for it: others are given other tickets.
            So there may be none to be had before the round ends; `is_done` tells that from the end of the
            run. Without a name all open tickets are returned, and none is reserved; in a run without reissue,
            all that nobody holds.
        lease
            For how many seconds to reserve them. What was not told by then may go to others, unless the run
            began without reissue; the answer will still be taken.
        """
        if limit is not None:
            limit = whole_number(limit, "limit", 0)
        if not (isinstance(lease, int | float) and 0 < lease <= _LONGEST):
            raise InvalidProblem(
                f"`lease` is {shortened(lease)}; it must be a number of seconds above 0, at most "
                f"{_LONGEST:g}."
            )
        if worker is None:
            tickets, is_open = self.still_open()
            return tickets.take(np.flatnonzero(is_open)[:limit])

        worker = checked_worker(worker)

        def decide(history: RunState, now: float) -> list[Event]:
            nonlocal tickets
            tickets, events = deciding.reservation(history.round, worker, now, lease, limit)
            return events

        tickets = self.asked
        self._append(decide)
        return tickets

    def tell(
        self,
        tickets: Ticket | Sequence[Ticket],
        rewards: Any = None,
        *,
        means: float | Sequence[float] | FloatArray | None = None,
        worker: str = "",
        scored: Sequence[Scored] = (),
        again: Sequence[int] = (),
    ) -> None:
        """Take the answers to one ticket or to several, in any order.

        A ticket told again with the same rewards changes nothing. With other rewards the first answer
        stands; the second is kept in `conflicts`, and a Contradiction warning says so. It does not matter
        whose tickets they are. If they have been given to others in the meantime, the result says so.

        Parameters
        ----------
        tickets
            What `ask` returned, some of it, or one ticket.
        rewards
            For one ticket all its `count` rewards or a `Summary` of them; for several, one such answer each.
        means
            Instead of `rewards`: the mean of each ticket's rewards; for one ticket a number.
        worker
            Who measured; goes into the log.
        scored
            Which of the pulls failed, and what they are counted as in the answers given.
        again
            The arms for which a measurement was made, or tried, more than once.

        Raises
        ------
        MeasurementFailed
            If an answer is not `count` finite real numbers. Nothing of the call is then counted.
        NotAsked
            If something was not asked for. Nothing of the call is then counted.
        StoreTrouble
            If the log could not be written. All of the call is then counted or nothing, which shows when the
            store can be read again; tell the same once more.
        """
        self._warn(self.take(tickets, rewards, means=means, worker=worker, scored=scored, again=again))

    def _warn(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Conflict):
                warnings.warn(
                    f"{self.problem.name(event.arm)} in round {event.round} was told before with mean "
                    f"{event.kept:g} and now with {event.refused:g}; the first answer stands.",
                    Contradiction,
                    stacklevel=3,
                )

    def take(
        self,
        tickets: Ticket | Sequence[Ticket],
        rewards: Any = None,
        *,
        means: float | Sequence[float] | FloatArray | None = None,
        worker: str = "",
        scored: Sequence[Scored] = (),
        sizes: FloatArray | None = None,
        again: Sequence[int] = (),
    ) -> Sequence[Event]:
        """Take answers as `tell` does; return what that added to the log: what is new, and conflicts.

        It does not warn of conflicts. If `sizes` has the largest reward of each ticket, by its absolute
        value, an answer that differs from an earlier one by rounding only is taken to be the same.
        """
        worker = worker and checked_worker(worker)
        if isinstance(tickets, Ticket):
            rewards = [rewards] if means is None else rewards
            means = None if means is None else np.atleast_1d(means)
        tickets = tickets_of(self.problem, tickets)
        if tickets.round > self._history.round.number:
            self.refresh()
        needs_variances = self._history.find(tickets.round).tickets.needs_variances
        means = means_of(tickets, rewards, means)
        check_rounding(self.problem, means)
        variances = variances_of(tickets, rewards) if needs_variances else None
        told = Told(tickets.round, tickets.arms, means, variances, worker, tuple(again))

        def decide(history: RunState, _: float) -> list[Event]:
            check_bounds(history.problem, tickets, rewards, told.means, scored)
            return deciding.answers(history, told, tickets, scored, sizes)

        return self._accept(decide)

    def still_open(self, worker: str | None = None) -> tuple[Tickets, BoolArray]:
        """Return all requests of the round under way, and which of them have not been told.

        For a worker, and in a run without reissue for anybody, those that others hold do not count.
        """
        self.refresh()
        with self._log.lock:
            round = self._history.round
            if round.reissue if worker is None else self.is_private:
                return round.tickets, ~round.is_told
            return round.tickets, deciding.free_for(round, worker or "", self._log.now())

    def refresh(self) -> None:
        """Take in what others have told in the meantime."""
        if not self.is_private:
            self._log.catch_up()
            self._settle()

    # --- for those who measure ------------------------------------------------------------------------

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Reserve tickets for a worker, if they are not told or held by others; return which it has.

        They may be parts of tickets, as drivers measure them: parts that are answered are not claimed.
        """
        found = np.full(len(tickets), True)

        def decide(history: RunState, now: float) -> list[Event]:
            found[:], events = deciding.claim(history, tickets, worker, now, lease)
            return events

        if not self.is_private:
            self._append(decide)
        return found

    def renew(self, worker: str, lease: float) -> None:
        """Reserve what a worker has for longer."""
        if not self.is_private:
            self._append(lambda history, now: deciding.renewal(history.round, worker, now + lease))

    def answer(
        self,
        calls: Tickets,
        answers: Summaries,
        *,
        worker: str = "",
        scored: Sequence[Scored] = (),
        again: Sequence[int] = (),
        released: IntArray | None = None,
    ) -> None:
        """Take the answers to parts of tickets; a ticket is told when all its parts have been answered.

        `released` are arms of which the worker makes no other calls now: others may go on with them. See
        `tell` for the rest.
        """
        worker = worker and checked_worker(worker)
        check_rounding(self.problem, answers.means)
        if calls.needs_variances:
            check_parts(calls, answers)

        def decide(history: RunState, _: float) -> list[Event]:
            check_bounds(history.problem, calls, None, answers.means, scored)
            about: dict[str, Any] = {"worker": worker, "scored": scored, "again": again}
            events = deciding.answers_to_calls(history, calls, answers, **about)
            if released is not None and calls.round == history.round.number:
                events += deciding.handed_on(history.round, worker, released, events)
            return events

        self._warn(self._accept(decide))

    def answered(self) -> Tickets:
        """Return the parts of open tickets of this round that have been answered."""
        with self._log.lock:
            return self._history.answered

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Give back what a worker has and will not answer now.

        Parameters
        ----------
        worker
            Whose tickets.
        by
            Who takes them away, if it is not the worker that gives them back. The worker may be measuring
            them: if another one is given such a ticket, it counts as issued twice.
        begun
            Instead of all that it has: tickets that the worker itself, named in `by`, began and broke off.
        """

        def decide(history: RunState, _: float) -> list[Event]:
            round = history.round if begun is None else history.find(begun.round)
            return deciding.return_of_tickets(round, worker, by, None if begun is None else begun.arms)

        self._append(decide)

    def awaited(self) -> list[Holding]:
        """Return for whom this process has to wait, if all open tickets are with others."""
        return [] if self.is_private else awaited(self._history.round, self._log.now(), own_name())

    def others(self, worker: str) -> dict[str, IntArray]:
        """Return which arms of this round other workers hold, by worker."""
        round = self._history.round
        held = round.leases.by_worker(np.flatnonzero(~round.is_told))
        return {name: round.tickets.arms[places] for name, places in held.items() if name != worker}

    def arrange(self, settings: dict[str, Any]) -> None:
        """Note how rewards are measured, as plain data; `drive` does so.

        Raises
        ------
        InvalidProblem
            If the settings make no sense.
        ChangedRun
            If rewards were measured otherwise before.
        """
        given = deciding.checked_settings(settings, self.problem.n)
        self._append(lambda history, _: deciding.arrangement(self.name, history, given))

    def suspend(self, reason: str, worker: str = "", *, until: float | None = None) -> None:
        """Note why measuring stopped short; or why it waits, and until when (seconds since 1970)."""
        if not self.is_private:
            self._log.append(lambda *_: [Suspended(reason, worker, until)])

    # --- the log --------------------------------------------------------------------------------------

    def _append(self, decide: Choose) -> Sequence[Event]:
        """Append to the log. Decisions among many arms take time: most of it before others have to wait."""
        if self.problem.n >= _MANY_ARMS and not self.is_private:
            self._log.catch_up()
        return self._log.append(decide)

    def _begin(
        self, problem: Problem, asked_for: str, strategy: str, seed: int, reissue: bool | None
    ) -> None:
        if len(self.name) > _MOST_LETTERS:
            raise InvalidProblem(
                f"the name of the run has {len(self.name):,} letters; it must have {_MOST_LETTERS} at most."
            )
        code, here = "".join(secrets.choice(_LETTERS) for _ in range(_CODE)), version("shortlist")
        self._log.begin(Began(problem, strategy, seed, asked_for, code, here, reissue is not False))
        self.is_new = self.code == code

    def _settle(self) -> None:
        """See to it that the log says so when the run has ended."""
        if deciding.end(self._history):
            self._append(lambda history, _: deciding.end(history))

    def _accept(self, decide: Choose) -> Sequence[Event]:
        """Append what is decided about answers and, if they end the run, that it has ended."""
        events = self._append(decide)
        self._settle()
        return events
