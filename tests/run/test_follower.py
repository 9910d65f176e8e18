"""What several threads append at once is decided one after the other, and written together."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from shortlist import Problem, Session
from shortlist.errors import StoreTrouble
from shortlist.store import Event, MemoryStore, Record, Suspended
from shortlist.store.log import After, Decide
from shortlist.store.sqlite import SqliteStore
from shortlist.tickets import Tickets

PROBLEM = Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 40)


class Slow(MemoryStore):
    """A store that counts its writes; the first waits until it may go on, and any can be made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.n_writes = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_started = threading.Event()
        self.fails = False

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        self.n_writes += 1
        self.has_started.set()
        self.may_go_on.wait(10)

        def then_fail(news: Sequence[Record], now: float) -> Sequence[Event]:
            events = decide(news, now)
            if self.fails and events:
                raise StoreTrouble("the disk is full.")
            return events

        return super().append(run, after, then_fail)


def meanwhile(session: Session, first: Callable[[], object], others: Sequence[Callable[[], object]]) -> None:
    """Do the others while the first is being written."""
    store = session._log.store
    assert isinstance(store, Slow)
    store.may_go_on.clear()
    store.has_started.clear()
    threads = [threading.Thread(target=first)]
    threads[0].start()
    store.has_started.wait(10)
    for other in others:
        threads.append(threading.Thread(target=other))
        threads[-1].start()
    while len(session._log._waiting) < len(others):
        pass
    store.may_go_on.set()
    for thread in threads:
        thread.join()


@pytest.fixture
def store() -> Slow:
    return Slow()


@pytest.fixture
def session(store: Slow) -> Session:
    session = Session(PROBLEM, "wnelim", store=store)
    store.n_writes = 0
    return session


def test_what_comes_while_one_writes_is_written_together(store: Slow, session: Session) -> None:
    given = {}

    def ask(worker: str) -> None:
        given[worker] = session.ask(3, worker=worker).arms.tolist()

    workers = [f"w{k}" for k in range(6)]
    meanwhile(session, lambda: ask("w0"), [lambda w=w: ask(w) for w in workers[1:]])  # type: ignore[misc]
    assert store.n_writes == 2
    assert len({arm for arms in given.values() for arm in arms}) == 18, "none was given twice"
    again = Session.resume(store)
    assert again.others("nobody").keys() == set(workers)


def test_answers_that_end_a_round_are_seen_by_those_that_follow_in_the_same_write(
    store: Slow, session: Session
) -> None:
    given: list[Tickets] = []
    tickets = session.ask()
    meanwhile(
        session,
        lambda: session.suspend("a pause"),
        [
            lambda: session.tell(tickets, means=[float(arm) for arm in tickets.arms]),
            lambda: given.append(session.ask(2, worker="late")),
        ],
    )
    assert store.n_writes == 2 or session.is_done
    assert session.asked.round == 1
    assert {round.round for round in given} <= {0, 1}
    assert Session.resume(store).asked.round == 1


def test_one_that_cannot_be_decided_harms_none_of_the_others(store: Slow, session: Session) -> None:
    errors = []

    def fail(_: float) -> list[Event]:
        raise ValueError("undecided")

    def try_to() -> None:
        try:
            session._log.append(fail)
        except ValueError as error:
            errors.append(str(error))

    meanwhile(session, lambda: session.suspend("a"), [try_to, lambda: session.suspend("b")])
    assert errors == ["undecided"]
    reasons = [one.event.reason for one in session.records if isinstance(one.event, Suspended)]
    assert reasons == ["a", "b"]


def test_a_write_that_fails_fails_for_all_and_counts_for_none(store: Slow, session: Session) -> None:
    errors = []

    def ask(worker: str) -> None:
        try:
            session.ask(3, worker=worker)
        except StoreTrouble as error:
            errors.append(str(error))

    store.fails = True
    meanwhile(session, lambda: ask("a"), [lambda: ask("b"), lambda: ask("c")])
    assert errors == ["the disk is full."] * 3
    store.fails = False
    assert session.others("nobody") == {}
    assert len(session.ask(3, worker="d")) == 3
    assert list(session.others("nobody")) == ["d"]


def test_a_failed_write_does_not_let_a_session_go_on_with_another_run_of_the_name(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    session = Session(PROBLEM, "wnelim", store=store)
    session.ask(1, worker="a")
    store.remove("main")
    Session(PROBLEM.changed(m=2), "wnelim", store=store)
    for _ in range(2):
        with pytest.raises(StoreTrouble, match="removed"):
            session.ask(1, worker="b")


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    session = Session(PROBLEM, "wnelim", store=tmp_path / "a.db")

    def work(worker: str) -> None:
        while session.asked.round == 0 and (tickets := session.ask(1, worker=worker)) and not tickets.round:
            session.tell(tickets, means=[float(tickets.arms[0])], worker=worker)

    threads = [threading.Thread(target=work, args=(f"w{k}",)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [event for event in session.events if event.round == 0]
    assert sorted(arm for event in told for arm in event.arms.tolist()) == list(range(40))
    assert Session.resume(tmp_path / "a.db").result.n_pulls == session.result.n_pulls
