"""A run under any sequence of asking, telling, crashes, expired leases and contradictions."""

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import shortlist as sl
from shortlist.store import Leased, MemoryStore, Store, Told, open_store
from tests.durable.processes import N, digest, mean, question

pytestmark = pytest.mark.slow

LEASE = 100.0
WORKERS = st.sampled_from(["ann", "bob", "cyd"])
PROBLEM = question(epsilon=0.8)
SEED, STRATEGY = 5, "race"


def right_answer(ticket: sl.session.Ticket) -> float:
    return mean(PROBLEM.entropy(SEED), ticket.arm, ticket.first_pull, ticket.count)


def alone() -> str:
    session = sl.Session(PROBLEM, STRATEGY, seed=SEED)
    while tickets := session.ask():
        session.tell(tickets, means=[right_answer(ticket) for ticket in tickets])
    return digest(session)


class Run(RuleBasedStateMachine):
    """Three workers with sessions of their own, and a model of what they were given and have told."""

    open: Callable[[Callable[[], float]], Store]

    @initialize()
    def begin(self) -> None:
        self.now = 1000.0
        self.store = type(self).open(lambda: self.now)
        self.sessions: dict[str, sl.Session] = {}
        self.told: dict[tuple[int, int], float] = {}
        self.held: dict[tuple[int, int], tuple[str, float]] = {}
        self.given: dict[str, list[sl.session.Ticket]] = {}
        self.n_conflicts = 0

    def session(self, worker: str) -> sl.Session:
        if worker not in self.sessions:
            self.sessions[worker] = sl.Session(PROBLEM, STRATEGY, seed=SEED, store=self.store)
        return self.sessions[worker]

    @rule(worker=WORKERS, limit=st.integers(1, N))
    def ask(self, worker: str, limit: int) -> None:
        session = self.session(worker)
        tickets = list(session.ask(limit, worker=worker, lease=LEASE))
        assert len(tickets) <= limit
        given = {(ticket.round, ticket.arm) for ticket in tickets}
        assert not given & self.told.keys()
        for key in given & self.held.keys():
            holder, until = self.held[key]
            assert holder == worker or until <= self.now, "what another holds was given away"
        its_own = {key for key, (holder, _) in self.held.items() if holder == worker} - self.told.keys()
        assert its_own <= given or len(tickets) == limit, "a worker gets its open tickets back"
        free = {(session.asked.round, arm) for arm in session.asked.arms.tolist()} - self.told.keys()
        free -= {key for key, (holder, until) in self.held.items() if holder != worker and until > self.now}
        assert given == free or len(tickets) == limit, "what is free is given"
        self.note_leases()
        self.given[worker] = tickets

    def note_leases(self) -> None:
        """Take over the leases of the log: which renewals are written is the session's affair."""
        for record in self.store.read("main"):
            if isinstance(record.event, Leased):
                for arm in record.event.arms.tolist():
                    self.held[record.event.round, arm] = (record.event.worker, record.event.until)

    @rule(worker=WORKERS, data=st.data())
    def tell(self, worker: str, data: st.DataObject) -> None:
        """Tell some of what was given, in any order; also late, and also what was told before."""
        given = self.given.get(worker)
        some = data.draw(st.lists(st.sampled_from(given), unique=True)) if given else []
        if some:
            self.session(worker).tell(some, means=[right_answer(ticket) for ticket in some], worker=worker)
            self.told |= {(ticket.round, ticket.arm): right_answer(ticket) for ticket in some}

    @precondition(lambda self: self.told)
    @rule(worker=WORKERS, data=st.data())
    def contradict(self, worker: str, data: st.DataObject) -> None:
        session = self.session(worker)
        session.refresh()
        number, arm = data.draw(st.sampled_from(sorted(self.told)))
        asked = session._history.find(number).tickets
        some = asked.take(
            np.flatnonzero((asked.arms == arm) | (asked.arms == data.draw(st.integers(0, N - 1))))
        )
        values = [right_answer(ticket) + 77.0 * (ticket.arm == arm) for ticket in some]
        with pytest.warns(sl.errors.Contradiction):
            session.tell(some, means=values, worker=worker)
        self.told |= {(ticket.round, ticket.arm): right_answer(ticket) for ticket in some}
        self.n_conflicts += 1

    @rule(worker=WORKERS)
    def crash(self, worker: str) -> None:
        """Forget a session; the worker will open the run again."""
        self.sessions.pop(worker, None)

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE, 3 * LEASE]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(worker=WORKERS)
    def finish_the_round(self, worker: str) -> None:
        """Answer all that is open, whoever holds it."""
        session = self.session(worker)
        tickets = session.ask()
        if tickets:
            session.tell(tickets, means=[right_answer(ticket) for ticket in tickets], worker=worker)
            self.told |= {(ticket.round, ticket.arm): right_answer(ticket) for ticket in tickets}

    @rule()
    def refuse_another_question(self) -> None:
        if "main" in self.store.runs():
            with pytest.raises(sl.ShortlistError, match=r"epsilon: it was 0\.8, is 0\.9"):
                sl.Session(PROBLEM.changed(epsilon=0.9), STRATEGY, seed=SEED, store=self.store)

    @invariant()
    def the_log_has_every_answer_once(self) -> None:
        events = [record.event for record in self.store.read("main")]
        told = [
            ((event.round, arm), value)
            for event in events
            if isinstance(event, Told)
            for arm, value in zip(event.arms.tolist(), event.means.tolist(), strict=True)
        ]
        assert len(told) == len(self.told)
        assert dict(told) == self.told

    def teardown(self) -> None:
        """Whatever happened, the run ends as one that was never disturbed."""
        session = sl.Session(PROBLEM, STRATEGY, seed=SEED, store=self.store, reproducible=True)
        assert len(session.conflicts) == self.n_conflicts
        while tickets := session.ask():
            session.tell(tickets, means=[right_answer(ticket) for ticket in tickets])
        assert digest(session) == EXPECTED
        for worker in self.sessions:
            self.session(worker).refresh()
            assert digest(self.session(worker)) == EXPECTED
        self.store.close()


EXPECTED = alone()


class InMemory(Run):
    open = staticmethod(MemoryStore)


class InAFile(Run):
    @staticmethod
    def open(clock: Callable[[], float]) -> Store:
        InAFile.folder = TemporaryDirectory()
        return open_store(Path(InAFile.folder.name) / "runs.db", clock=clock)

    folder: "TemporaryDirectory[str]"

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), stateful_step_count=25)
TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(QUICK, max_examples=40)
TestInAFile = InAFile.TestCase
TestInAFile.settings = settings(QUICK, max_examples=8)

warnings.filterwarnings("ignore", category=ResourceWarning, message=".*TemporaryDirectory.*")
