"""A live run: `ask` returns tickets, `tell` records rewards, and `result` is the outcome.

Everything that happens in a run is an event. Events are appended to the log before they take effect, so the
log determines the state of a session. A round counts only when it is complete, so neither the order in which
answers arrive nor their number per call has any effect.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates import Certificate
from shortlist.checks import shortened, whole_number
from shortlist.errors import ChangedRun, Contradiction, InvalidProblem
from shortlist.escaping import on_one_line
from shortlist.items import Items
from shortlist.planning import resolve
from shortlist.problem import Problem, checked
from shortlist.result import Result
from shortlist.rewards import SubGaussian
from shortlist.session import lease_rules
from shortlist.session.answer_events import events_for_calls, events_for_tickets
from shortlist.session.answers import Answers
from shortlist.session.call_plan import calls_between
from shortlist.session.feeding import (
    FedCount,
    FedRows,
    checked_text,
    counted_rows,
    events_for_rows,
    in_blocks,
    refuse_feeding,
    rows_taken_back,
    texts_of,
)
from shortlist.session.lease_rules import Holding, awaited
from shortlist.session.log import RunLog
from shortlist.session.question_changes import changes_of_question
from shortlist.session.run_changes import limiting, narrowing, withdrawal, words_on_larger
from shortlist.session.settings import arrangement, checked_settings, declaration
from shortlist.session.state import REPRODUCIBLE, RunState, part_of
from shortlist.session.worker_names import HERE, checked_worker, own_name
from shortlist.store import (
    Began,
    Conflict,
    Event,
    Fed,
    MemoryStore,
    Record,
    Scored,
    Stopped,
    Suspended,
    Told,
    Where,
    Withdrawn,
    open_store,
)
from shortlist.store.events import own_version
from shortlist.strategies import OwnName, Strategy, named
from shortlist.tickets import Ticket, Tickets
from shortlist.totals import Totals

DAY = 86_400.0  # seconds
AHEAD = 1.5  # calls are made ahead up to this multiple of the pulls that an arm will probably have
_LONGEST = 1e10  # seconds; three centuries
_MOST_LETTERS = 200  # in the name of a run
_LETTERS = "abcdefghjkmnpqrstuvwxyz"  # in a run's code; without letters that are easily confused
_CODE = 6  # letters: two runs, in any store, have the same code with probability 1 in 148 million


class Session:
    """A run that you measure yourself: `ask` returns tickets, and `tell` records their rewards.

    Parameters
    ----------
    problem
        The question.
    strategy
        A name from `shortlist.strategies.names()`, or "auto" for the best certified one (see `plan`). In
        memory also a `Strategy` of your own, which need not be registered.
    seed
        The seed from which measurements derive their randomness.
    store
        Where the run is stored: the path of an SQLite file, which is created if needed; the address of a
        PostgreSQL database, ``postgresql://user@host/name``; or None for memory only. If the run exists, the
        session resumes it; other processes may work on it at the same time.
    name
        The name of the run in the store.
    budget
        The number of pulls for which "auto" chooses a strategy; it has no other effect.
    reissue
        Whether a ticket may go to another worker when its lease expires. If not, it stays with its worker
        until the worker answers or releases it or, if the worker is a process of this machine, has ended;
        or until someone calls `release`. It is fixed when the run is created; the default is True.
    reproducible
        True declares that measuring a ticket again with its seed gives the same rewards, for any worker.
        Otherwise the result says how many tickets may have been measured more than once, since their first
        answers count. It can be declared at any time, and cannot be withdrawn.

    Attributes
    ----------
    is_private
        Whether the run exists in memory only.
    is_new
        Whether this session created the run.

    Raises
    ------
    ChangedRun
        If the run in the store has another question, strategy or seed.

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
    _items: Items | None = None  # as given to this session; a log has only their ids

    def __init__(
        self,
        problem: Problem,
        strategy: str | Strategy[Any] = "auto",
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
        strategy = named(strategy)
        if isinstance(strategy, OwnName) and store is not None:
            raise InvalidProblem(
                f"strategy {strategy} was given as an object, but a stored run finds its strategy by name "
                f"when it is resumed. Omit `store`, or register the strategy in the source of Shortlist: see "
                f'"Adding a strategy" in CONTRIBUTING.md.'
            )
        self.is_private, self.is_new = store is None, False
        self._log = RunLog(MemoryStore() if store is None else open_store(store), name)
        self._is_own_store = self._log.store is not store
        self._items = problem.items
        self._log.catch_up()
        if not self._log.has_begun:
            self._begin(problem, strategy, resolve(strategy, problem, budget), seed, reissue)
        self._compare(problem, strategy, seed, reissue)
        if reproducible:
            self.arrange({REPRODUCIBLE: True})
        self._settle()

    def _compare(self, problem: Problem, strategy: str, seed: int, reissue: bool | None) -> None:
        """Refuse to resume with another question; a smaller epsilon, and bounds, are added to the log."""
        if problem.bounds is not None and self.problem.bounds is None:
            self._refuse_changes(problem.changed(bounds=None, rewards=SubGaussian), strategy, seed, reissue)
            self._log.append(lambda history, _: declaration(self.name, history, problem))
        if problem.epsilon < self.problem.epsilon:
            before = problem.changed(epsilon=self.problem.epsilon)
            if not changes_of_question(self._history.began, before, strategy, seed, reissue):
                self._log.append(lambda history, _: narrowing(history, problem.epsilon), is_slow=True)
        self._refuse_changes(problem, strategy, seed, reissue)

    def _refuse_changes(self, problem: Problem, strategy: str, seed: int, reissue: bool | None) -> None:
        if changes := changes_of_question(self._history.began, problem, strategy, seed, reissue):
            is_looser = len(changes) == 1 and problem.epsilon > self.problem.epsilon
            if is_looser and (said := words_on_larger(self._history, self.name, problem.epsilon)):
                raise ChangedRun(said)
            raise ChangedRun(
                f"run {self.name!r} exists with another question: {'; '.join(changes)}. To resume the stored "
                f"run, restore its question. To ask the changed question, give the new run another name. "
                f"Nothing was changed."
            )

    @classmethod
    def resume(cls, store: Where, name: str = "main") -> Session:
        """Return the session of an existing run in a store, whatever its question."""
        log = RunLog(open_store(store, must_exist=True), name)
        log.catch_up()
        session = cls.following(log)
        session._is_own_store = log.store is not store
        return session

    @classmethod
    def following(cls, log: RunLog) -> Session:
        """Return the session of a run whose log is open already; closing it leaves the store open."""
        session = cls.__new__(cls)
        session.is_private = session.is_new = session._is_own_store = False
        session._log = log
        session._settle()
        return session

    @classmethod
    def replay(cls, problem: Problem, strategy: str, events: Iterable[Event], *, seed: int = 0) -> Session:
        """Return a session in memory after these events: answers, conflicts and scores."""
        session = cls(problem, strategy, seed=seed)
        for event in events:
            if isinstance(event, Told):
                session.record(session._history.find(event.round).answers(event))
            elif isinstance(event, Conflict | Scored):
                session._log.append(lambda *_, event=event: [event])
        return session

    def __repr__(self) -> str:
        return f"Session({self.problem!r}, {self.strategy!r}, seed={self.seed}, n_pulls={self.n_pulls})"

    def _repr_html_(self) -> str:
        """Return the session as HTML for notebooks; imported late, since reports are a layer above."""
        html: str = import_module("shortlist.report.fragment").session_html(self)
        return html

    def close(self) -> None:
        """Close the store, unless it was open before. All answers are already saved."""
        if self._is_own_store:
            self._log.store.close()

    def __enter__(self) -> Session:
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
        """The prefix of this run's tickets, which distinguishes them from those of other runs."""
        return self._history.began.code

    @property
    def problem(self) -> Problem:
        """The question."""
        return self._history.problem

    @property
    def items(self) -> Items | None:
        """The shared items, if there are any; only their ids are known in a session that was resumed."""
        return self._items or self.problem.items

    def items_of(self, ticket: Ticket) -> list[Any]:
        """Return the items of a ticket: the next ones of its arm, in the order of this run."""
        if self.items is None:
            return []
        return self.items.values_at(self.entropy, ticket.first_pull, ticket.count)

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self._history.began.strategy

    @property
    def seed(self) -> int:
        """The seed from which measurements derive their randomness."""
        return self._history.began.seed

    @property
    def entropy(self) -> int:
        """What all random numbers of the run derive from; see `Problem.entropy`."""
        return self._history.entropy

    @property
    def records(self) -> list[Record]:
        """The whole log."""
        return list(self._log.store.read(self._log.run))

    @property
    def events(self) -> list[Told]:
        """The answers in the log, as given, without those that were withdrawn."""
        found: list[Told] = []
        for record in self.records:
            if isinstance(event := record.event, Told):
                found.append(event)
            elif isinstance(event, Withdrawn):
                tickets = self._history.find(event.round).tickets
                found = [_without(told, event, tickets) for told in found]
        return [told for told in found if len(told.arms)]

    @property
    def conflicts(self) -> list[Conflict]:
        """Second answers to tickets that differ from the first, which is kept."""
        return self._history.conflicts

    @property
    def scored(self) -> list[Scored]:
        """Pulls that failed at every attempt, and count as the value chosen for failures."""
        return self._history.scored

    @property
    def worst_case_pulls(self) -> int | None:
        """The maximum number of pulls of the strategy; None if unknown."""
        return self._history.worst_case_pulls

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended by its own rule."""
        return self._history.is_final

    @property
    def n_pulls(self) -> int:
        """The number of pulls in answered tickets so far."""
        return self._history.n_pulls

    @property
    def n_made(self) -> int:
        """The number of pulls answered, including those of incomplete tickets."""
        return self._history.n_made

    @property
    def n_ahead(self) -> int:
        """The number of scores that were measured before they were asked for, and are not used so far."""
        return self._history.n_ahead

    @property
    def n_blocks_left(self) -> int | None:
        """About how many more blocks are needed; None if that is unknown."""
        with self._log.lock:
            return self._history.n_blocks_left

    @property
    def likely_pulls(self) -> float | None:
        """How many pulls there will probably be in the end, by the rewards so far; None if unknown."""
        with self._log.lock:
            return self._history.likely_pulls

    @property
    def cost_made(self) -> float:
        """The cost of the pulls answered, including those of incomplete tickets, without fed results."""
        return self._history.cost_made

    @property
    def n_stops(self) -> int:
        """How often all drivers were asked to stop, as far as is known."""
        return self._history.n_stops

    @property
    def asked(self) -> Tickets:
        """All tickets of the current round, answered or not."""
        return self._history.round.tickets

    @property
    def result(self) -> Result:
        """The result so far."""
        with self._log.lock:
            return self._history.result

    @property
    def certified(self) -> Certificate:
        """What is certified so far, by the rounds that are complete.

        It holds whenever you look and however you decide to stop. The race certifies something at every
        moment, other strategies at their end only.
        """
        with self._log.lock:
            return self._history.certified

    @property
    def history(self) -> RunState:
        """The detailed state of the run; for reports."""
        return self._log.history

    @property
    def log(self) -> RunLog:
        """The log of the run; for reports."""
        return self._log

    @property
    def settings(self) -> dict[str, Any] | None:
        """The measurement settings; None if no driver has started."""
        return self._history.settings

    @property
    def ended_at(self) -> float | None:
        """When the run ended, in seconds since 1970 (Unix time); None if it has not."""
        return self._log.ended_at

    @property
    def _history(self) -> RunState:
        return self._log.history

    @property
    def _state(self) -> Any:
        return self._history.state

    # --- asking and telling ---------------------------------------------------------------------------

    def ask(self, limit: int | None = None, *, worker: str | None = None, lease: float = DAY) -> Tickets:
        """Return the open tickets of this round, at most `limit` of them.

        Asking again returns the same tickets. There are none once the strategy has ended.

        Parameters
        ----------
        limit
            The maximum number of tickets; None for all.
        worker
            The name of the worker. Its tickets are leased to it: other workers get other tickets. So there
            may be none available before the round ends; `is_done` distinguishes that from the end of the
            run. Without a name all open tickets are returned, and none is leased; in a run without reissue,
            all that are not leased.
        lease
            The duration of the lease in seconds. Afterwards unanswered tickets may go to other workers,
            unless the run was created without reissue; an answer is still accepted.
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
            self._give_out()
            return tickets.take(np.flatnonzero(is_open)[:limit])

        worker = checked_worker(worker)

        def decide(history: RunState, now: float) -> list[Event]:
            nonlocal tickets
            tickets, events = lease_rules.reservation(history.round, worker, now, lease, limit)
            return events

        tickets = self.asked
        self._log.append(decide)
        return tickets

    def tell(
        self,
        tickets: Ticket | Sequence[Ticket],
        rewards: Any = None,
        *,
        means: float | Sequence[float] | FloatArray | None = None,
        sample_variances: float | Sequence[float] | FloatArray | None = None,
        worker: str = "",
        scored: Sequence[Scored] = (),
        again: Sequence[int] = (),
    ) -> None:
        """Record the answers to one ticket or to several, in any order.

        Telling a ticket again with the same rewards changes nothing. With other rewards the first answer is
        kept; the second is recorded in `conflicts`, and a Contradiction warning is issued. Any worker may
        answer any ticket. If a ticket was issued to another worker in the meantime, the result says so.

        Parameters
        ----------
        tickets
            Tickets that `ask` returned, or one of them.
        rewards
            For one ticket: its `count` rewards, or a `Summary` of them. For several: a list of such answers.
        means
            Instead of `rewards`: the mean of each ticket's rewards; for one ticket a number.
        sample_variances
            With `means`: the sample variance of each ticket's rewards, which strategies for unknown variances
            need.
        worker
            The worker who measured; recorded in the log.
        scored
            The pulls that failed, and the values that the answers contain for them.
        again
            The arms for which a measurement was made, or tried, more than once.

        Raises
        ------
        MeasurementFailed
            If an answer is not `count` finite real numbers. Then nothing of the call is counted.
        NotAsked
            If a ticket was not asked for. Then nothing of the call is counted.
        StoreTrouble
            If the log could not be written. Then either all of the call is counted or nothing. Repeat the
            call with the same answers when the store works again.
        """
        given = Answers.of(
            self.problem,
            tickets,
            rewards,
            means,
            worker,
            sample_variances=sample_variances,
            scored=scored,
            again=again,
        )
        self._warn(self.record(given))

    def _warn(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Conflict):
                name = on_one_line(self.problem.name(event.arm))
                warnings.warn(
                    f"{name} in round {event.round} already has the mean "
                    f"{event.kept:g}, and the new answer is {event.refused:g}; the first answer is kept.",
                    Contradiction,
                    stacklevel=3,
                )

    def record(self, answers: Answers) -> Sequence[Event]:
        """Record answers like `tell`, without warnings; return the events: new answers and conflicts."""
        if answers.tickets.round > self._history.round.number:
            self.refresh()
        events = self._log.append(lambda history, _: events_for_tickets(history, answers))
        self._settle()
        return events

    def feed(
        self,
        arms: str | int | Sequence[str | int] | IntArray,
        counts: int | Sequence[int] | IntArray,
        means: float | Sequence[float] | FloatArray | None = None,
        sample_variances: float | Sequence[float] | FloatArray | None = None,
        *,
        successes: int | Sequence[int] | IntArray | None = None,
        label: str | Sequence[str] | None = None,
        block: str | Sequence[str] | None = None,
        worker: str = "",
    ) -> Certificate:
        """Add results that were measured elsewhere, of any size and for any arms; return what is certified.

        They count at once or, if tickets of this round were given out already, together with that round. The
        certificate then names what it assumes of such results. Strategies that certify nothing before their
        end refuse them.

        Parameters
        ----------
        arms
            The arms, by name or number; an arm may occur repeatedly.
        counts
            The number of rewards in each row.
        means, successes
            The mean of each row's rewards or, for rewards of 0 or 1, how many were 1.
        sample_variances
            Their sample variances, if known.
        label
            A label for all rows, or one for each, such as a date. A row with the same arm, label and numbers
            as an earlier one changes nothing; with other numbers it replaces the earlier one, on the record;
            with a count of 0 it removes it. Without labels, all rows add up.
        block
            The block of all rows, or one for each, such as a day. The strategy "block-race" compares arms
            within blocks; there a row without a block is in the block of its label. A block counts as soon
            as it is fed, so feed it when it is complete. Other strategies only record it.
        worker
            Who feeds them; recorded in the log.

        Examples
        --------
        >>> from shortlist import Bernoulli, Problem
        >>> variants = Problem(m=1, epsilon=0.01, delta=0.05, names=["A", "B"], rewards=Bernoulli())
        >>> session = Session(variants, "race")
        >>> found = session.feed(["A", "B"], [9000, 9000], successes=[270, 360], label="monday")
        >>> found = session.feed(["A", "B"], [9000, 9000], successes=[270, 360], label="monday")
        >>> session.result.n_pulls, found.selected
        (18000, ('B',))
        """
        self.feed_rows(self.fed_rows(arms, counts, means, sample_variances, successes, label, block, worker))
        return self.certified

    def fed_rows(
        self,
        arms: Any,
        counts: Any,
        means: Any = None,
        sample_variances: Any = None,
        successes: Any = None,
        label: Any = None,
        block: Any = None,
        worker: str = "",
    ) -> FedRows:
        """Return results that were measured elsewhere, validated; see `feed`."""
        refuse_feeding(self._history)
        given = Totals.of(self.problem, arms, counts, means, sample_variances, successes, keep_empty=True)
        labels, blocks = texts_of(label, len(given.arms), "label"), texts_of(block, len(given.arms), "block")
        rows = in_blocks(self._history, FedRows(given, labels, blocks, worker and checked_worker(worker)))
        rows.refuse_doubles(self.problem)
        return rows

    def feed_rows(self, rows: FedRows) -> FedCount:
        """Add validated results; return how many rows were new, known, and corrections."""
        known: list[tuple[str, int]] = []

        def decide(history: RunState, _: float) -> list[Event]:
            known[:] = history.fed
            return events_for_rows(history, rows)

        events = self._log.append(decide, is_slow=True)
        self._settle()
        return counted_rows(known, rows, events)

    def withdraw_rows(self, label: str, why: str, *, by: str = "") -> int:
        """Take all fed rows with a label back, on the record; return how many there were."""
        why, by = checked_text(why, "why"), by and checked_worker(by)
        events = self._log.append(lambda history, _: rows_taken_back(history, label, why, by), is_slow=True)
        self._settle()
        return sum(len(event.arms) for event in events if isinstance(event, Fed))

    def withdraw(self, round: int, arm: int, why: str, *, by: str = "") -> None:
        """Take the answer to a ticket back, on the record, before its round is decided.

        The ticket is open again afterwards. Never withdraw an answer because you do not like its value.

        Raises
        ------
        NotAsked
            If there is no such answer, or later rounds depend on it already.
        """
        why, by = checked_text(why, "why"), by and checked_worker(by)
        self._log.append(lambda history, _: withdrawal(history, round, arm, why, by))

    def stop(self, why: str = "", *, by: str = "") -> None:
        """Ask all drivers of this run to stop: they finish what they are measuring, and save it.

        Drivers that start later are not affected.
        """
        why, by = checked_text(why, "why"), by and checked_worker(by)
        self._log.append(lambda *_: [Stopped(by, why)])

    def still_open(self, worker: str | None = None) -> tuple[Tickets, BoolArray]:
        """Return all tickets of the current round, and which of them are open.

        Tickets that other workers hold are not counted if `worker` is given, or in a run without reissue.
        """
        self.refresh()
        if worker is not None and self.is_private:  # otherwise tickets are leased before they are measured
            self._give_out()
        with self._log.lock:
            round = self._history.round
            if round.reissue if worker is None else self.is_private:
                return round.tickets, ~round.is_told
            return round.tickets, lease_rules.free_for(round, worker or "", self._log.now())

    def _give_out(self) -> None:
        """Record that tickets of this round are about to be measured: fed results then wait for them."""
        if len(self.asked) and self._history.rules.anytime is not None:
            self._log.append(lambda history, _: history.round.opening())

    def refresh(self) -> None:
        """Read the answers that others have recorded in the meantime."""
        if not self.is_private:
            self._log.catch_up()
            self._settle()

    # --- for drivers ----------------------------------------------------------------------------------

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Lease tickets to a worker, unless they are answered or held by others; return which it holds.

        They may be parts of tickets, as drivers measure them: answered parts are not leased.
        """
        found = np.full(len(tickets), True)

        def decide(history: RunState, now: float) -> list[Event]:
            found[:], events = lease_rules.claim(history, tickets, worker, now, lease)
            return events

        if not self.is_private:
            self._log.append(decide)
        return found

    def renew(self, worker: str, lease: float) -> None:
        """Extend the leases of a worker."""
        if not self.is_private:
            self._log.append(lambda history, now: lease_rules.renewal(history.round, worker, now + lease))

    def answer(self, answers: Answers, *, released: IntArray | None = None) -> None:
        """Record the answers to parts of tickets; a ticket is answered when all its parts are.

        `released` are arms for which the worker makes no more calls now: others may continue with them.
        """
        calls, worker = answers.tickets, answers.worker

        def decide(history: RunState, _: float) -> list[Event]:
            events = events_for_calls(history, answers)
            if released is not None and calls.round == history.round.number:
                events += lease_rules.handed_on(history.round, worker, released, events)
            return events

        self._warn(self._log.append(decide))
        self._settle()

    def ahead(self, worker: str) -> tuple[Tickets, FloatArray]:
        """Return calls that will probably be needed after this round, the most probable ones first.

        The second array has the position of each as a share of the pulls that its arm will probably have in
        the end. There are none while other workers measure for this run, which would make the same calls.
        """
        with self._log.lock:
            history = self._history
            nothing = history.round.tickets.take(slice(0, 0)), np.empty(0)
            is_over = history.is_final or self.problem.is_lockstep  # later blocks cannot be measured now
            if history.rules.likely_ends is None or is_over or self.others(worker):
                return nothing
            ends, reached = history.rules.likely_ends(history.state), history.reached
            limits = np.minimum(AHEAD * ends, self.problem.n_items).astype(np.int64)
            if self.problem.known is not None:
                limits[self.problem.known.arms] = 0
            arms = np.flatnonzero((limits > reached) & (ends > 0))
            if not len(arms):
                return nothing
            calls = calls_between(self.problem, arms, reached[arms], limits[arms], history.settings or {})
            keys = zip(calls.arms.tolist(), calls.first_pulls.tolist(), strict=True)
            calls = calls.take(np.flatnonzero([key not in history.ahead for key in keys]))
            shares = (calls.first_pulls + calls.counts) / ends[calls.arms]
            order = np.argsort(shares, kind="stable")
            return calls.take(order), shares[order]

    def answered(self) -> Tickets:
        """Return the answered parts of open tickets of this round."""
        with self._log.lock:
            return self._history.answered

    def keep_within(self, budget: float) -> None:
        """Ask for less in this round if a budget does not pay for it, and nobody has begun to measure it."""
        self._log.append(lambda history, _: limiting(history, budget))

    def release(self, worker: str, *, by: str = "", begun: Tickets | None = None) -> None:
        """Release tickets that a worker holds and will not answer now.

        Parameters
        ----------
        worker
            The worker who holds the tickets.
        by
            Who releases them, if not the worker itself. The worker may still be measuring them: if another
            worker gets such a ticket, it counts as issued twice.
        begun
            Instead of all its tickets: those that the worker itself, named in `by`, started and aborted.
        """

        def decide(history: RunState, _: float) -> list[Event]:
            round = history.round if begun is None else history.find(begun.round)
            return lease_rules.return_of_tickets(round, worker, by, None if begun is None else begun.arms)

        self._log.append(decide)

    def awaited(self) -> list[Holding]:
        """Return the workers that this process must wait for, if others hold all open tickets."""
        return [] if self.is_private else awaited(self._history.round, self._log.now(), own_name())

    def is_alone(self, worker: str) -> bool:
        """Return whether no other worker holds tickets of this round."""
        with self._log.lock:
            return not self.others(worker)

    def others(self, worker: str) -> dict[str, IntArray]:
        """Return the arms of this round that other workers hold, by worker."""
        round = self._history.round
        held = round.leases.by_worker(np.flatnonzero(~round.is_told))
        return {name: round.tickets.arms[places] for name, places in held.items() if name != worker}

    def arrange(self, settings: dict[str, Any]) -> None:
        """Record the measurement settings, as plain data; `drive` calls this.

        Raises
        ------
        InvalidProblem
            If the settings are invalid.
        ChangedRun
            If rewards were measured with other settings before.
        """
        given = checked_settings(settings, self.problem.n)
        self._log.append(lambda history, _: arrangement(self.name, history, given))

    def suspend(
        self, reason: str, worker: str = "", *, until: float | None = None, if_idle: bool = False
    ) -> None:
        """Record why the driver stopped early; or why it waits, and until when (Unix time).

        With `if_idle` it is recorded only if no worker holds tickets, and if it is not known already: the
        run goes on as long as anybody measures.
        """

        def decide(history: RunState, now: float) -> list[Event]:
            known = history.suspended is not None and history.suspended.reason == reason
            is_moot = known or history.is_final or bool(lease_rules.holdings(history.round, now))
            return [] if if_idle and is_moot else [Suspended(reason, worker, until)]

        if not self.is_private:
            self._log.append(decide)

    # --- the log --------------------------------------------------------------------------------------

    def _begin(
        self, problem: Problem, asked_for: str, strategy: str, seed: int, reissue: bool | None
    ) -> None:
        if len(self.name) > _MOST_LETTERS:
            raise InvalidProblem(
                f"the name of the run has {len(self.name):,} letters; it must have at most {_MOST_LETTERS}."
            )
        _refuse_trivial(problem)
        code, here = "".join(secrets.choice(_LETTERS) for _ in range(_CODE)), own_version()
        about = (asked_for, code, here, reissue is not False, problem.entropy(seed))
        self._log.begin(Began(problem, strategy, seed, *about))
        self.is_new = self.code == code

    def _settle(self) -> None:
        """Append to the log what follows from it: tickets that are complete, and the end of the run."""
        while self._history.completions():
            self._log.append(lambda history, _: history.completions())
        if self._history.ending():
            self._log.append(lambda history, _: history.ending())


def _refuse_trivial(problem: Problem) -> None:
    """Refuse an epsilon for which every answer is right. Runs that were begun with one can still be read."""
    if problem.is_bounded and problem.bounds is not None:
        low, high = problem.bounds
        width = high - low
        if problem.epsilon > width:
            raise InvalidProblem(
                f"`epsilon` is {problem.epsilon:g}, but rewards lie between {low:g} and {high:g}: means "
                f"differ by at most {width:g}, so every answer would be right. `epsilon` is in the units "
                f"of the rewards; use one below {width:g}."
            )


def _without(told: Told, withdrawn: Withdrawn, tickets: Tickets) -> Told:
    """Return answers without the one that was withdrawn."""
    is_kept = told.arms != withdrawn.arm
    if told.round != withdrawn.round or is_kept.all():
        return told
    by_arm = dict(zip(tickets.arms.tolist(), tickets.counts.tolist(), strict=True))
    return part_of(told, is_kept, np.array([by_arm[arm] for arm in told.arms.tolist()]))
