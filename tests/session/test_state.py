"""Logs that have an answer twice, as version 0.1.0 could write them, are read; the first answer stands."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

import shortlist as sl
from shortlist.errors import CorruptLog
from shortlist.report.export import answer_rows
from shortlist.report.model import report_of_run
from shortlist.report.run_text import status_dict, status_text
from shortlist.report.workload import workload
from shortlist.server.run_cache import Activity
from shortlist.session.state import Repeat
from shortlist.store import Conflict, Event, MemoryStore, Scored, Told, Withdrawn
from tests.questions import known, unknown

PROBLEM = known(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 6, noise="gaussian")
UNKNOWN = unknown(m=1, epsilon=0.5, delta=0.05, n=6, pilot=10)


def means(arms: np.ndarray) -> np.ndarray:
    return arms / 3


def told(session: sl.Session, *places: int, worker: str = "ann") -> Told:
    """Return the answer to some tickets of the round under way, as it stands in a log."""
    tickets = session.asked.take(np.array(places))
    return Told(tickets.round, tickets.arms, means(tickets.arms), worker=worker)


def write(session: sl.Session, *events: Event) -> None:
    """Write events to the log of a session as version 0.1.0 did: without looking at what the log has."""
    session.log.store.append(session.name, 0, lambda _news, _now: events)
    session.refresh()


def finish(session: sl.Session) -> sl.Session:
    while tickets := session.ask():
        session.tell(tickets, means=means(tickets.arms), worker="bob")
    return session


@pytest.fixture
def session() -> sl.Session:
    return sl.Session(PROBLEM, "medelim", store=MemoryStore())


@pytest.fixture
def undisturbed() -> sl.Session:
    return finish(sl.Session(PROBLEM, "medelim", store=MemoryStore()))


Ruin = Callable[[sl.Session], None]


def at_once(session: sl.Session) -> None:
    write(session, told(session, 0, 1), told(session, 0, 1, worker="bob"))


def with_something_new(session: sl.Session) -> None:
    write(session, told(session, 0, 1), told(session, 0, 1, 2, worker="bob"))


def with_all_of_the_round(session: sl.Session) -> None:
    write(session, told(session, 0, 1), told(session, 0, 1, 2, 3, 4, 5, worker="bob"))


def in_later_writes(session: sl.Session) -> None:
    write(session, told(session, 0))
    write(session, told(session, 1), told(session, 2))
    write(session, told(session, 1, worker="bob"))
    write(session, told(session, 0, worker="bob"))


def after_the_round(session: sl.Session) -> None:
    copies = [told(session, 0, 1, worker="bob"), told(session, 2)]
    write(session, told(session, 0, 1), *copies[1:])
    session.tell(tickets := session.ask(), means=means(tickets.arms))
    assert session.asked.round == 1
    write(session, copies[0])


def after_the_end(session: sl.Session) -> None:
    copy = told(session, 0, 1, worker="bob")
    finish(session)
    assert session.is_done
    write(session, copy)


@pytest.mark.parametrize(
    "ruin",
    [at_once, with_something_new, with_all_of_the_round, in_later_writes, after_the_round, after_the_end],
)
def test_a_run_with_an_answer_twice_goes_on_to_the_same_result(
    session: sl.Session, undisturbed: sl.Session, ruin: Ruin
) -> None:
    ruin(session)
    again = finish(sl.Session.resume(session.log.store))
    assert sorted((one.round, one.arm) for one in again.history.repeats) == [(0, 0), (0, 1)]
    assert {(one.worker, one.is_same) for one in again.history.repeats} == {("bob", True)}
    assert again.conflicts == []
    assert again.result.to_dict() == undisturbed.result.to_dict()
    finish(session)
    assert session.history.repeats == again.history.repeats
    assert session.result.to_dict() == undisturbed.result.to_dict()


def test_where_the_second_answer_differs_the_first_stands_and_they_conflict(
    session: sl.Session, undisturbed: sl.Session
) -> None:
    first = told(session, 0, 1, 2)
    write(session, first, Told(0, first.arms[:2], np.array([9.0, first.means[1]]), worker="bob"))
    expected = [Conflict(0, int(first.arms[0]), float(first.means[0]), 9.0, "bob")]
    again = finish(sl.Session.resume(session.log.store))
    assert again.conflicts == expected
    assert [one.is_same for one in again.history.repeats] == [False, True]
    assert again.result.to_dict() == undisturbed.result.to_dict()
    replayed = sl.Session.replay(PROBLEM, "medelim", again.events)
    assert (replayed.conflicts, replayed.history.repeats) == (expected, [])
    assert replayed.result.to_dict() == undisturbed.result.to_dict()


def test_failures_of_a_second_answer_are_forgotten_with_it(session: sl.Session) -> None:
    """Otherwise they would count with the next answer to the same ticket, after one that was withdrawn."""
    answer, ticket = told(session, 0), session.asked[0]
    failed = Scored(ticket, 0.0, "no signal")
    taken_back = Withdrawn(0, ticket.arm, float(answer.means[0]), "a slip")
    write(session, failed, answer, failed, answer)
    assert session.history.scored == [failed]
    write(session, taken_back, answer)  # measured again, without a failure
    assert session.history.scored == []


def test_another_variance_of_a_pilot_is_a_conflict() -> None:
    session = sl.Session(UNKNOWN, "rinott", store=MemoryStore())
    arms, ones = session.asked.arms[:2], np.ones(2)
    write(session, Told(0, arms, ones, ones), Told(0, arms, ones, np.array([1.0, 2.0])))
    assert session.conflicts == [Conflict(0, int(arms[1]), 1.0, 1.0)]
    assert [one.is_same for one in session.history.repeats] == [True, False]
    assert session.history.round.spreads is not None
    assert session.history.round.spreads[:2].tolist() == [1.0, 1.0]


def test_failures_that_came_with_a_second_answer_count_once(session: sl.Session) -> None:
    a, b = session.asked[0], session.asked[1]
    scores = [Scored(sl.session.Ticket(0, t.arm, t.name, 1, 0), 0.0, "dark") for t in (a, b)]
    write(session, scores[0], told(session, 0), *scores, told(session, 0, 1))
    write(session, *scores, told(session, 0, 1))
    assert session.scored == scores
    assert sl.Session.resume(session.log.store).result.n_scored == 2


@pytest.mark.parametrize(
    "wrong",
    [
        Told(0, np.array([0, 6]), np.zeros(2)),
        Told(0, np.array([2, 2]), np.zeros(2)),
        Told(0, np.array([0, 0]), np.zeros(2)),
        Told(0, np.array([0]), np.zeros(1), np.ones(1)),
        Told(1, np.array([0]), np.zeros(1)),
    ],
)
@pytest.mark.parametrize("is_whole", [False, True])
def test_what_does_not_fit_otherwise_is_a_damaged_log(
    session: sl.Session, wrong: Told, is_whole: bool
) -> None:
    if is_whole and wrong.round == 0:
        session.tell(tickets := session.ask(), means=means(tickets.arms))
    with pytest.raises(CorruptLog):
        write(session, told(session, 0) if not is_whole else sl.store.Suspended("a pause"), wrong)
    with pytest.raises(CorruptLog):
        sl.Session.resume(session.log.store)


def test_those_who_look_see_each_answer_once_and_learn_that_it_was_there_twice(session: sl.Session) -> None:
    tally = Activity(session.log)
    in_later_writes(session)
    a, b = (f"{session.code}-r0-a{session.asked.arms[place]}" for place in (0, 1))
    assert session.history.repeats == [
        Repeat(0, int(session.asked.arms[place]), "bob", is_same=True) for place in (1, 0)
    ]
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(status_text(session.log, "it"))
    assert f"the same answer twice for {b}, {a}; each counts once" in console.export_text()
    assert status_dict(session.log)["repeats"] == [
        {"ticket": ticket, "worker": "bob", "is_same": True} for ticket in (b, a)
    ]
    report = report_of_run(session.name, session.history, session.records)
    assert ["The log contains 2 answers twice" in one.words for one in report.findings] == [True]
    rows = list(answer_rows(session.log))
    assert [(row["arm"], row["worker"]) for row in rows] == [
        (int(arm), "ann") for arm in session.asked.arms[:3]
    ]
    (work,) = workload(session.history, session.records)
    assert (work.worker, work.n_answers, work.n_pulls, work.share) == ("ann", 3, session.n_pulls, 1.0)
    assert tally.workers == (work,)
