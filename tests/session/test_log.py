"""What several threads append at once is decided one after the other, and written together."""

import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist import Problem, Session
from shortlist.errors import StoreTrouble
from shortlist.session.sheet_format import read_sheet, ticket_text
from shortlist.session.state import RunState
from shortlist.session.tell_sheet import tell_sheet
from shortlist.store import Conflict, Event, Leased, MemoryStore, Record, Scored, Suspended, Told
from shortlist.store.protocol import After, Decide
from shortlist.store.sqlite import SqliteStore
from shortlist.tickets import Tickets

PROBLEM = Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 40)

SETTINGS = {"pulls_per_call": None, "together": 1, "on_failure": "suspend"}

# For all threads at once: `warnings.catch_warnings` in one of them would end it for the others.
pytestmark = pytest.mark.filterwarnings("ignore::shortlist.errors.Contradiction")


class Slow(MemoryStore):
    """A store that counts its writes; the first waits until it may go on, and any can be made to fail.

    A write that is made to fail does so when it may, after its events are decided.
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_writes = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_started = threading.Event()
        self.failing: Container[int] = ()
        self.has_decided = threading.Event()
        self.may_fail = threading.Event()
        self.may_fail.set()

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        self.n_writes += 1
        is_failing = self.n_writes in self.failing
        self.has_started.set()
        self.may_go_on.wait(10)

        def then_fail(news: Sequence[Record], now: float) -> Sequence[Event]:
            events = decide(news, now)
            if is_failing and events:
                self.has_decided.set()
                self.may_fail.wait(10)
                raise StoreTrouble("the disk is full.")
            return events

        return super().append(run, after, then_fail)


def meanwhile(session: Session, first: Callable[[], object], others: Sequence[Callable[[], object]]) -> None:
    """Do the others, in this order, while the first is being written."""
    store = session._log.store
    assert isinstance(store, Slow)
    store.may_go_on.clear()
    store.has_started.clear()
    writing = threading.Thread(target=first)
    writing.start()
    store.has_started.wait(10)
    with waiting(session, *others):
        store.may_go_on.set()
    writing.join()


@contextmanager
def waiting(session: Session, *others: Callable[[], object]) -> Iterator[None]:
    """Yield when others wait, in this order, for the write under way."""
    threads = [threading.Thread(target=other) for other in others]
    for n_waiting, thread in enumerate(threads, 1):
        thread.start()
        while len(session._log._waiting) < n_waiting:
            pass
    yield
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

    def fail(*_: object) -> list[Event]:
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

    store.failing = range(10)
    meanwhile(session, lambda: ask("a"), [lambda: ask("b"), lambda: ask("c")])
    assert errors == ["the disk is full."] * 3
    store.failing = ()
    assert session.others("nobody") == {}
    assert len(session.ask(3, worker="d")) == 3
    assert list(session.others("nobody")) == ["d"]


class Telling:
    """Answers to a session's first tickets, each told by a thread of its own; notes which were refused."""

    def __init__(self, session: Session) -> None:
        self.session, self.tickets = session, session.ask()
        self.refused: list[tuple[int, float]] = []

    def __call__(self, place: int, mean: float) -> Callable[[], None]:
        def tell() -> None:
            try:
                self.session.tell(self.tickets[place], means=mean)
            except (StoreTrouble, KeyboardInterrupt):
                self.refused.append((place, mean))

        return tell


@contextmanager
def a_write_about_to_fail(session: Session, *tells: Callable[[], object]) -> Iterator[None]:
    """Yield when several tells, in one write, are decided; the write fails after that."""
    store = session._log.store
    assert isinstance(store, Slow)
    store.failing = {2}
    store.may_fail.clear()
    failing = threading.Thread(target=meanwhile, args=(session, lambda: session.suspend("a pause"), tells))
    failing.start()
    assert store.has_decided.wait(10)
    yield
    store.may_fail.set()
    failing.join()


def test_an_answer_of_a_write_that_failed_is_not_known_to_one_that_waited(
    store: Slow, session: Session
) -> None:
    tell = Telling(session)
    with (
        ExitStack() as later,
        a_write_about_to_fail(session, tell(0, 1.0), tell(1, 2.0)),
    ):
        later.enter_context(waiting(session, tell(0, 1.0)))
    assert sorted(tell.refused) == [(0, 1.0), (1, 2.0)]
    for one in (session, Session.resume(store)):
        assert one.history.round.means[:2].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
        assert len(one.events) == 1


def test_an_answer_told_twice_while_a_write_fails_is_written_once(store: Slow, session: Session) -> None:
    tell = Telling(session)
    with (
        ExitStack() as later,
        a_write_about_to_fail(session, tell(0, 1.0), tell(1, 2.0)),
    ):
        later.enter_context(waiting(session, tell(2, 3.0), tell(2, 3.0), tell(2, 4.0)))
    assert sorted(tell.refused) == [(0, 1.0), (1, 2.0)]
    assert [event.arms.tolist() for event in session.events] == [[2]]
    again = Session.resume(store)
    assert len(again.conflicts) == 1
    assert again.conflicts == session.conflicts
    assert again.n_pulls == session.n_pulls


def test_nothing_is_seen_of_a_write_that_has_not_succeeded(session: Session) -> None:
    noted: list[Record] = []
    session.log.on_records = noted.extend
    tell = Telling(session)
    with a_write_about_to_fail(session, tell(0, 1.0), tell(1, 2.0), tell(1, 3.0)):
        assert (session.n_pulls, session.history.round.n_missing, session.conflicts) == (0, 40, [])
    assert (session.n_pulls, session.history.round.n_missing, session.conflicts) == (0, 40, [])
    assert [type(record.event) for record in noted] == [Suspended]


def test_an_error_by_what_was_not_written_is_not_the_last_word(session: Session) -> None:
    """Who was refused because of something in the same write learns that the write failed."""
    tell, errors = Telling(session), []

    def arrange(how: str) -> None:
        try:
            session.arrange(SETTINGS | {"how": how})
        except StoreTrouble as error:
            errors.append(type(error))

    with a_write_about_to_fail(session, tell(0, 1.0), lambda: arrange("a"), lambda: arrange("b")):
        pass
    assert errors == [StoreTrouble] * 2
    session.arrange(SETTINGS | {"how": "b"})


def test_sheets_written_together_differ_by_more_than_rounding_or_not_at_all(
    store: Slow, session: Session
) -> None:
    ticket, taken = ticket_text(session.code, 0, 0), []

    def tell(mean: str) -> None:
        taken.append(tell_sheet(session, store, read_sheet(f"ticket,mean\n{ticket},{mean}\n".encode())))

    sheets = [lambda mean=mean: tell(mean) for mean in ("0.333333333333333", "0.33333333333333331", "0.3333")]
    meanwhile(session, lambda: session.suspend("a pause"), sheets)
    assert store.n_writes == 2
    assert sorted((one.taken, one.known, len(one.conflicts)) for one in taken) == [
        *((0, 0, 1), (0, 1, 0), (1, 0, 0))
    ]


def test_a_copy_of_a_history_changes_by_itself(session: Session) -> None:
    def facts(history: RunState) -> tuple[object, ...]:
        round, arms = history.rounds[0], history.result.arms
        held = round.leases.by_worker(np.arange(40)).items()
        return (
            *(len(history.rounds), history.n_pulls, round.n_missing, round.is_logged),
            *(round.means.tobytes(), arms.pulls.tobytes(), arms.means.tobytes()),
            *(
                [(worker, places.tolist()) for worker, places in held],
                round.leases.until(np.arange(40)).tolist(),
            ),
            *([*history.conflicts], [*history.scored]),
        )

    tickets = session.ask(10, worker="a")
    session.tell(tickets[:3], means=[1.0, 2.0, 3.0])
    history = session.history
    before, other = facts(history), history.copy()
    assert facts(other) == before
    rest = np.arange(3, 40)
    news: list[Event] = [
        Leased(0, np.array([20]), "b", 1e12),
        Conflict(0, 0, 1.0, 5.0),
        Scored(tickets[4], 0.0, "broken"),
        Told(0, rest, rest.astype(float)),
    ]
    other.take(news)
    assert (len(other.rounds), other.n_pulls > history.n_pulls) == (2, True)
    assert facts(history) == before
    history.take(news)
    assert facts(history) == facts(other)


def test_an_interrupted_writer_leaves_nobody_with_a_false_acknowledgement(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a write that Ctrl-C breaks off is not told that it was made."""
    tell, write = Telling(session), session._log._append_all

    def broken_off(*arguments: Any) -> None:
        monkeypatch.setattr(session._log, "_append_all", write)
        raise KeyboardInterrupt

    monkeypatch.setattr(session._log, "_append_all", broken_off)
    with ExitStack() as later, session.log.lock:
        later.enter_context(waiting(session, tell(0, 1.0), tell(1, 2.0)))
    is_told = session.history.round.is_told[:2].tolist()
    assert is_told == [one not in tell.refused for one in ((0, 1.0), (1, 2.0))]


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


def test_what_was_broken_off_while_it_was_taken_in_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Ctrl-C, for example: nothing may count as taken in that was not, nor twice."""
    store = MemoryStore()
    first = Session(PROBLEM, store=store)
    second = Session.resume(store)
    ticket, *_ = first.ask()
    second.refresh()
    first.tell(ticket, means=1.0)
    take = RunState.take

    def broken_off(self: RunState, events: Sequence[Event]) -> None:
        take(self, events)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunState, "take", broken_off)
        with pytest.raises(KeyboardInterrupt):
            second.refresh()
    second.refresh()
    assert second.history.repeats == []
    assert second.n_pulls == first.n_pulls == ticket.count
