"""The progress of runs as read from their logs: always what their decisions, made again, come to."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import shortlist as sl
from shortlist.errors import CorruptLog
from shortlist.session import log as follower
from shortlist.session.log import RunLog
from shortlist.session.run_progress import RunProgress, progress_of_log, read_progress
from shortlist.store import Answered, Asked, Began, Event, MemoryStore, Record, Store, Suspended, Told
from tests.questions import unknown

pytestmark = pytest.mark.slow

KNOWN = sl.Problem(m=1, epsilon=0.4, delta=0.1, variances=[0.25] * 6)
UNKNOWN = unknown(m=1, epsilon=0.5, delta=0.1, n=4, pilot=5)
ALL = sl.Problem(m=2, epsilon=0.4, delta=0.1, variances=[0.25] * 2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(sl.open_store(tmp_path / "runs.db")) as found:
        yield found


def log_of(problem: sl.Problem, strategy: str) -> list[Record]:
    """Return the log of a run in which all that can happen has happened."""
    store, rng = MemoryStore(), np.random.default_rng(3)
    session = sl.Session(problem, strategy, store=store)
    session.suspend("not yet")
    session.suspend("the rig is busy", until=1e10)
    while tickets := session.ask(3, worker="ann"):
        rewards = [
            rng.normal(arm / 4, 0.5, count) for arm, count in zip(tickets.arms, tickets.counts, strict=True)
        ]
        session.tell(tickets[:1], rewards[:1], worker="ann")
        session.suspend("the rig is busy", until=1e10)
        session.suspend("the rig is broken")
        session.suspend("the rig is busy", until=1e10)
        session.tell(tickets[1:], rewards[1:], worker="ann")
        with pytest.warns(sl.errors.Contradiction):
            session.tell(tickets[:1], [rewards[0] + 1], worker="bob")
        if len(session.ask(worker="bob")):
            session.release("bob")
    session.suspend("what is still to do?")
    return list(store.read("main"))


def facts(found: RunProgress | None) -> tuple[object, ...]:
    assert found is not None
    began = found.began
    asked = (began.problem.to_dict(), began.strategy, began.seed, began.code, began.version)
    return (*asked, *(value for name, value in vars(found).items() if name != "began"))


def decided_again(store: Store, run: str) -> tuple[object, ...]:
    log = RunLog(store, run)
    log.catch_up()
    return facts(progress_of_log(log))


def keep(store: Store, run: str, events: list[Event]) -> None:
    store.append(run, 0, lambda *_: events)


@pytest.mark.parametrize(
    ("problem", "strategy"),
    [(KNOWN, "level-race"), (KNOWN, "single-stage"), (KNOWN, "uniform"), (UNKNOWN, "t-race"), (ALL, "race")],
)
def test_progress_is_what_decisions_come_to_after_every_event(
    store: Store, problem: sl.Problem, strategy: str
) -> None:
    log = log_of(problem, strategy)
    for n in range(1, len(log) + 1):
        store.restore(str(n), log[:n])
        assert facts(read_progress(store, str(n))) == decided_again(store, str(n))


def test_progress_counts_all_scores_on_shared_items(store: Store) -> None:
    rng, kept = np.random.default_rng(4), MemoryStore()
    table = (rng.random((6, 80)) < np.linspace(0.3, 0.7, 6)[:, None]).astype(float)
    problem = sl.Problem(1, 0.1, 0.1, n=6, rewards=sl.Bernoulli(), items=80)
    with ThreadPoolExecutor(4) as threads:
        result = sl.select(
            lambda arm, items: table[arm, items].tolist(),
            problem,
            store=kept,
            executor=threads,
            pulls_per_call=1,
        )
    log = list(kept.read("main"))
    assert sum(isinstance(record.event, Answered) for record in log) > 40
    for n in range(1, len(log) + 1, 3):
        store.restore(str(n), log[:n])
        assert facts(read_progress(store, str(n))) == decided_again(store, str(n))
    store.restore("whole", log)
    found = read_progress(store, "whole")
    assert found is not None
    assert found.n_pulls == result.n_pulls


def test_there_is_no_progress_of_no_run(store: Store) -> None:
    assert read_progress(store, "gone") is None


def test_no_decisions_are_made_again_unless_a_run_may_have_ended(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(KNOWN, "level-race")
    last = max(place for place, record in enumerate(log) if isinstance(record.event, Asked))
    ended = progress_of_events(store, "ended", log)
    opened = progress_of_events(store, "open", log[: last + 2])
    monkeypatch.setattr(follower, "RunState", None)
    assert facts(read_progress(store, "ended")) == ended
    assert facts(read_progress(store, "open")) == opened
    store.restore("whole", log[:last])
    with pytest.raises(CorruptLog, match="NoneType"):
        read_progress(store, "whole")


def progress_of_events(store: Store, run: str, log: list[Record]) -> tuple[object, ...]:
    store.restore(run, log)
    return decided_again(store, run)


def test_runs_of_another_version_are_decided_again(store: Store) -> None:
    events = [record.event for record in log_of(KNOWN, "level-race")]
    events = [replace(one, counts=one.counts + 1) if isinstance(one, Asked) else one for one in events]
    other = [replace(one, version="0.0.1") if isinstance(one, Began) else one for one in events]
    keep(store, "other", other)
    with pytest.raises(
        CorruptLog, match="round 0 asked for other pulls than this version of Shortlist computes"
    ):
        read_progress(store, "other")


@pytest.mark.parametrize("round", [0, 1])
def test_answers_that_a_log_has_twice_change_nothing(store: Store, round: int) -> None:
    nine = sl.Problem(m=1, epsilon=0.2, delta=0.1, variances=[0.25] * 9)
    events = [record.event for record in log_of(nine, "level-race")]
    asked = next(event for event in events if isinstance(event, Asked) and event.round == 1)
    told = [(k, event) for k, event in enumerate(events) if isinstance(event, Told)]
    end, first = next((k, event) for k, event in told if event.round == 1)
    others = np.setdiff1d(asked.arms, first.arms)
    again = first if round == 1 else next(e for _, e in told if np.isin(e.arms, others).all())
    assert again.round == round
    assert len(others) > len(again.arms), "the round stays open, even if they are taken for its answers"
    keep(store, "twice", [*events[: end + 1], Suspended("the rig is broken"), again])
    assert facts(read_progress(store, "twice")) == decided_again(store, "twice")


def test_bounds_that_were_declared_later_are_in_the_progress(store: Store) -> None:
    session = sl.Session(KNOWN, "level-race", store=store, name="bounded")
    session.tell(session.ask(2), means=[0.5, 0.5])
    sl.Session(KNOWN.changed(bounds=(0.0, 1.0)), "level-race", store=store, name="bounded")
    found = read_progress(store, "bounded")
    assert found is not None
    assert found.began.problem.bounds == (0.0, 1.0)
    assert facts(found) == decided_again(store, "bounded")


def test_damage_is_found_where_nothing_is_unpacked(store: Store, tmp_path: Path) -> None:
    log = log_of(KNOWN, "level-race")
    store.restore("bad", log)
    number = next(record.number for record in log if isinstance(record.event, Told))
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        connection.execute("UPDATE shortlist_events SET at = at + 1 WHERE number = ?", (number,))
        connection.commit()
    with pytest.raises(CorruptLog, match=f"Record {number} of run 'bad' was damaged or altered"):
        read_progress(store, "bad")
    store.remove("bad")
    store.restore("short", log)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        connection.execute("DELETE FROM shortlist_events WHERE number = ?", (len(log),))
        connection.commit()
    with pytest.raises(CorruptLog, match="The last records of run 'short' are missing"):
        read_progress(store, "short")
