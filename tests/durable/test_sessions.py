"""Runs in a store: they go on where they stopped, share out their tickets, and refuse to become others."""

import os
import secrets
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy

import shortlist as sl
from shortlist.errors import ChangedRun, CorruptLog, NoSuchRun, StoreTrouble
from shortlist.session.call_plan import TURNS
from shortlist.session.state import RunState
from shortlist.session.worker_names import is_gone, own_name
from shortlist.store import (
    Answered,
    Arranged,
    Asked,
    Began,
    Ended,
    Leased,
    MemoryStore,
    Record,
    Released,
    Scored,
    Store,
    Suspended,
    Told,
    open_store,
)
from tests.durable.processes import MEANS, N, Slowly, digest, mean, question
from tests.execution import measures
from tests.questions import unknown
from tests.store.conftest import Place

pytestmark = pytest.mark.slow

PROBLEM = question(epsilon=0.8)


class Clock:
    """A clock that stands still until it is moved on."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def begun(store: Store, **changes: Any) -> sl.Session:
    return sl.Session(PROBLEM, "race", store=store, **({"seed": 5} | changes))


def answers(tickets: sl.session.Tickets) -> list[float]:
    return [mean(PROBLEM.entropy(5), ticket.arm, ticket.first_pull, ticket.count) for ticket in tickets]


def undisturbed() -> sl.Session:
    session = sl.Session(PROBLEM, "race", seed=5)
    sl.drive(session, Slowly(0.0), turns=1)
    return session


# --- going on ---------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_stopped_to_the_same_answer(place: Place) -> None:
    for _ in range(60):
        session = begun(place.open())
        tickets = session.ask(limit=7)
        if not tickets:
            break
        session.tell(tickets, means=answers(tickets))
    assert digest(begun(place.open())) == digest(undisturbed())


def test_selecting_again_measures_nothing_twice(durable: Place) -> None:
    calls: list[tuple[int, int]] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append((arm, count))
        if len(calls) == 9:
            raise KeyboardInterrupt
        return rng.normal(MEANS[arm], 1.0, count)

    def select(**where: Any) -> sl.Result:
        how: dict[str, Any] = {"retries": 0, "turns": 1, "reproducible": True}
        return sl.select(measure, PROBLEM, "race", seed=3, **how, **where)

    with pytest.raises(KeyboardInterrupt):
        select(store=durable.address)
    stopped, n_told = len(calls), sum(len(event.arms) for event in sl.Session.resume(durable.address).events)
    assert n_told > 0
    first = select(store=durable.address)
    n_calls = len(calls)
    assert select(store=durable.address).to_dict() == first.to_dict()
    assert len(calls) == n_calls
    calls.clear()
    calls.extend([(0, 0)] * 9)
    assert select().to_dict() == first.to_dict()
    assert n_calls - stopped == len(calls) - 9 - n_told


def test_a_vectorised_run_goes_on_bit_for_bit(durable: Place) -> None:
    question, block = measures.problem(), sl.vectorised(measures.noisy_block, block=4)
    whole = sl.select(block, question, "race", seed=1)
    short = sl.select(block, question, "race", seed=1, budget=whole.n_pulls // 2, store=durable.address)
    assert short.n_pulls < whole.n_pulls
    rest = sl.select(block, question, "race", seed=1, store=durable.address)
    assert rest.to_dict() == whole.to_dict()


def test_unknown_variances_and_names_survive(durable: Place) -> None:
    question = unknown(m=1, epsilon=0.8, delta=0.1, names=["Ä,1", "β", "c", "d"], goal="minimise")
    session = sl.Session(question, seed=2, store=durable.address)
    alone = sl.Session(question, seed=2)
    while tickets := session.ask(limit=3):
        rewards = [np.random.default_rng(t.arm).normal(t.arm, 1.0, t.count) for t in tickets]
        session.tell(tickets, rewards)
        session = sl.Session.resume(durable.address)
    while tickets := alone.ask():
        alone.tell(tickets, [np.random.default_rng(t.arm).normal(t.arm, 1.0, t.count) for t in tickets])
    assert session.problem == question
    assert session.result.selected == ("Ä,1",)
    assert digest(session) == digest(alone)


def test_auto_stays_what_it_was_when_the_run_began(place: Place) -> None:
    first = sl.Session(PROBLEM, seed=5, store=place.open(), budget=1)
    again = sl.Session(PROBLEM, seed=5, store=place.open(), budget=10**9)
    assert again.strategy == first.strategy
    assert sl.Session(PROBLEM, first.strategy, seed=5, store=place.open()).strategy == first.strategy


def test_the_log_says_all_that_happened(place: Place) -> None:
    session = begun(place.open())
    sl.drive(session, Slowly(0.0))
    kinds = [type(record.event) for record in begun(place.open()).records]
    assert kinds[:4] == [Began, Arranged, Asked, Leased]
    assert kinds[4] in {Answered, Told}
    assert kinds[-1] is Ended
    assert kinds.count(Asked) == session.result.n_rounds
    assert kinds.count(Ended) == kinds.count(Began) == 1


def test_nothing_to_find_out_ends_at_once(place: Place) -> None:
    session = sl.Session(PROBLEM.changed(m=N), store=place.open())
    assert session.is_done
    assert [type(record.event) for record in session.records] == [Began, Ended]
    assert len(sl.Session(PROBLEM.changed(m=N), store=place.open()).records) == 2


# --- what may not change ----------------------------------------------------------------------------


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "m": ({"m": 4}, "m was 3, is 4"),
    "delta": ({"delta": 0.1}, "delta was 0.05, is 0.1"),
    "goal": ({"goal": "minimise"}, "goal was maximise, is minimise"),
    "noise": ({"rewards": sl.Gaussian}, "noise was sub-gaussian, is gaussian"),
    "guarantee": ({"guarantee": "indifference"}, "guarantee was pac, is indifference"),
    "names": (
        {"names": [f"x{arm}" for arm in range(N)]},
        "name of arm 0 was arm-0, is x0, and 15 more of 16",
    ),
    "variances": (
        {"variances": [0.5, *np.linspace(0.5, 2.0, N)[1:-1], 3.0]},
        "variance of arm-15 was 2.0, is 3.0",
    ),
    "n": ({"variances": [1.0] * 5}, "n was 16, is 5"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_question_is_refused_field_by_field(case: str) -> None:
    store = MemoryStore()
    begun(store)
    changes, said = CHANGES[case]
    with pytest.raises(ChangedRun) as refused:
        sl.Session(PROBLEM.changed(**changes), "race", seed=5, store=store)
    assert f"another question: {said}. To resume" in str(refused.value)
    assert len(list(store.read("main"))) == 1


def test_all_differences_are_named_at_once() -> None:
    store = MemoryStore()
    begun(store)
    with pytest.raises(
        ChangedRun, match=r"m was 3, is 2; epsilon was .*; strategy was race, is wnelim; seed was 5, is 6"
    ):
        sl.Session(PROBLEM.changed(m=2, epsilon=0.5), "wnelim", seed=6, store=store)
    sl.Session(PROBLEM.changed(m=2), "wnelim", seed=6, store=store, name="another")


def test_another_way_of_measuring_is_refused() -> None:
    store = MemoryStore()
    question = measures.problem()
    block = sl.vectorised(measures.noisy_block, block=4)
    sl.select(block, question, "race", budget=20, store=store)
    for other in (sl.vectorised(measures.noisy_block, block=8), measures.noisy):
        with pytest.raises(ChangedRun, match=r"together was 4, is [18]"):
            sl.select(other, question, "race", store=store)
    with pytest.raises(ChangedRun, match="pulls_per_call was not given, is 3"):
        sl.select(block, question, "race", store=store, pulls_per_call=3)
    sl.select(block, question, "race", store=store)


def test_what_is_said_about_rewards_is_compared_entry_by_entry() -> None:
    session = begun(MemoryStore())
    sl.drive(session, Slowly(0.0), budget=0, about={"measure": {"kind": "command", "command": ["a", "b"]}})
    with pytest.raises(ChangedRun, match=r"measure: command was \['a', 'b'\], is \['a', 'c'\]\."):
        sl.drive(session, Slowly(0.0), about={"measure": {"kind": "command", "command": ["a", "c"]}})


def test_what_is_said_about_rewards_must_be_plain_data_and_comes_back_as_such(place: Place) -> None:
    about = {"measure": {"command": ("a", 1), "scale": 0.1}}
    sl.drive(begun(place.open()), Slowly(0.0), budget=0, about=about)
    sl.drive(begun(place.open()), Slowly(0.0), budget=0, about=about)
    with pytest.raises(sl.InvalidProblem, match="`about` must be plain data"):
        sl.drive(begun(place.open()), Slowly(0.0), about={"rng": object()})


def test_a_session_lets_go_of_a_store_that_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with sl.Session(PROBLEM, store=path) as session:
        tickets = session.ask(1)
        session.tell(tickets, means=[0.5])
        assert len(list(tmp_path.iterdir())) > 1, "a log beside the file, while it is open"
    assert list(tmp_path.iterdir()) == [path]
    store = open_store(path)
    sl.Session(PROBLEM, store=store).close()
    assert store.runs() == ["main"]
    store.close()


def test_failures_get_a_score_before_the_first_reward_and_then_no_other_one(durable: Place) -> None:
    broken = 0

    def failing(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == broken:
            raise ValueError("no")
        return rng.normal(MEANS[arm], 1.0, count)

    def select(**how: Any) -> sl.Result:
        how |= {"store": durable.address, "retries": 0, "turns": 1}
        return sl.select(failing, PROBLEM, "wnelim", seed=1, **how)

    with pytest.raises(sl.MeasurementFailed):
        select()  # the first arm fails: there is no reward yet
    broken = 2
    with pytest.raises(sl.MeasurementFailed):
        select(name="late")
    with pytest.raises(ChangedRun, match=r"is suspend, .* cannot become 0\.0"):
        select(name="late", on_failure=0.0)
    result = select(on_failure=0.0)
    assert result.n_scored > 0
    again = sl.Session.resume(durable.address)
    assert again.result.n_scored == result.n_scored == sum(one.ticket.count for one in again.scored)
    assert {one.ticket.arm for one in again.scored} == {2}
    for other in ({"on_failure": 1.0}, {}):
        with pytest.raises(ChangedRun, match=r"`on_failure` .* is 0\.0, .* cannot become (1\.0|suspend)"):
            select(**other)
    kinds = [type(record.event) for record in again.records]
    assert kinds.index(Scored) < len(kinds) - kinds[::-1].index(Told), "scores come with the answer"


def test_a_run_that_is_not_there_is_named(place: Place) -> None:
    store = place.open()
    with pytest.raises(NoSuchRun, match=r"no run 'nothing' in the store\. The store is empty"):
        sl.Session.resume(store, "nothing").ask()
    begun(store, name="drilling")
    with pytest.raises(NoSuchRun, match="Existing runs: drilling"):
        sl.Session.resume(store, "driling").ask()
    assert store.runs() == ["drilling"]


# --- leases -----------------------------------------------------------------------------------------


def test_workers_get_different_tickets_and_each_gets_its_own_again(place: Place) -> None:
    store = place.open()
    one, two = begun(store), begun(place.open())
    first = one.ask(5, worker="ann")
    second = two.ask(100, worker="bob")
    assert len(first) == 5
    assert len(second) == N - 5
    assert not set(first.arms.tolist()) & set(second.arms.tolist())
    assert one.ask(5, worker="ann").arms.tolist() == first.arms.tolist()
    assert begun(place.open()).ask(3, worker="ann").arms.tolist() == first.arms.tolist()[:3]
    assert not one.ask(worker="cyd")
    assert not one.is_done
    n_records = len(one.records)
    one.ask(5, worker="ann")
    assert len(one.records) == n_records, "asking again soon writes nothing"


def test_a_lease_ends_and_the_late_answer_is_kept(place: Place) -> None:
    clock = Clock()
    store = place.open(clock)
    session = begun(store)
    mine = session.ask(5, worker="ann", lease=60.0)
    clock.now += 59.0
    assert not set(session.ask(worker="bob").arms.tolist()) & set(mine.arms.tolist())
    clock.now += 2.0
    assert set(session.ask(worker="bob", lease=60.0).arms.tolist()) > set(mine.arms.tolist())
    assert not session.ask(worker="ann"), "by now they are with another"
    session.tell(mine, means=answers(mine), worker="ann")
    assert session.n_pulls == mine.counts.sum()
    assert not session.conflicts
    session.tell(mine, means=answers(mine), worker="bob")
    assert len(session.events) == 1


def test_asking_again_late_makes_a_lease_longer(place: Place) -> None:
    clock = Clock()
    session = begun(place.open(clock))
    mine = session.ask(5, worker="ann", lease=60.0)
    clock.now += 40.0
    session.ask(5, worker="ann", lease=60.0)
    clock.now += 40.0
    assert not set(session.ask(worker="bob").arms.tolist()) & set(mine.arms.tolist())


def test_what_is_given_back_can_be_had(place: Place) -> None:
    session = begun(place.open())
    session.ask(worker="ann")
    assert not session.ask(worker="bob")
    session.release("ann")
    assert len(session.ask(worker="bob")) == N
    assert isinstance(session.records[-2].event, Released)
    session.release("ann")
    assert not session.ask(worker="cyd")


def test_a_driver_leaves_to_others_what_they_hold_and_waits_for_it(place: Place) -> None:
    session = begun(place.open())
    held = session.ask(4, worker="ann")
    waited = []

    def progress(running: sl.Session) -> None:
        others = running.others(own_name())
        if others and len(running.ask()) == len(held):
            waited.append(others)
            session.tell(held, means=answers(held), worker="ann")

    driver = begun(place.open())
    sl.drive(driver, Slowly(0.0), progress=progress, turns=1)
    assert driver.is_done
    assert waited
    assert waited[0]["ann"].tolist() == held.arms.tolist()
    assert digest(driver) == digest(undisturbed())
    by_ann = [event for event in driver.events if event.worker == "ann"]
    assert [event.arms.tolist() for event in by_ann] == [held.arms.tolist()]


def test_tickets_of_a_process_that_died_here_are_free_at_once(place: Place) -> None:
    session = begun(place.open())
    ended = subprocess.Popen(["true"])
    ended.wait()
    name = own_name().replace(f":{os.getpid()}:", f":{ended.pid}:")
    assert not is_gone(own_name())
    assert is_gone(name)
    assert not is_gone(name[:-1] + ("0" if name[-1] != "0" else "1")), "another machine's cannot be seen"
    assert not is_gone("ann")
    session.claim(session.asked, name, 1000.0)
    assert len(session.ask(worker="bob")) == N


def test_a_driver_gives_back_what_it_did_not_measure(durable: Place) -> None:
    session = begun(durable.open())

    def failing(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 7:
            raise ValueError("no")
        return rng.normal(MEANS[arm], 1.0, count)

    with pytest.raises(sl.MeasurementFailed):
        sl.drive(session, failing, retries=0)
    assert not session.others("nobody")


def test_why_a_driver_stopped_is_kept_until_something_is_told(place: Place) -> None:
    session = begun(place.open())
    session.suspend("the instrument broke", "ann")
    again = begun(place.open())
    assert again._history.suspended == Suspended("the instrument broke", "ann")
    tickets = again.ask(1)
    again.tell(tickets, means=answers(tickets))
    assert again._history.suspended is None


# --- logs that do not add up ------------------------------------------------------------------------


def altered(change: Any) -> MemoryStore:
    """Return a finished run's log, with some of its events changed."""
    store = MemoryStore()
    session = begun(store)
    sl.drive(session, Slowly(0.0))
    other = MemoryStore()
    other.restore("main", [Record(r.number, r.at, change(r.event)) for r in session.records])
    return other


def test_decisions_that_differ_from_the_log_are_found() -> None:
    def more(event: Any) -> Any:
        is_it = isinstance(event, Asked) and event.round == 2
        return Asked(2, event.arms, event.counts + 1) if is_it else event

    with pytest.raises(
        CorruptLog, match="round 2 asked for other pulls than this version of Shortlist computes"
    ):
        begun(altered(more))


def test_an_end_that_differs_from_the_log_is_found() -> None:
    with pytest.raises(CorruptLog, match="the run ended with other arms"):
        begun(altered(lambda event: Ended(np.array([0, 1, 2])) if isinstance(event, Ended) else event))


def test_an_answer_to_nothing_asked_is_found() -> None:
    def other(event: Any) -> Any:
        is_it = isinstance(event, Told) and event.round == 1
        return Told(1, event.arms + 100, event.means) if is_it else event

    with pytest.raises(CorruptLog, match="an answer in round 1 does not match"):
        begun(altered(other))


def test_a_log_without_its_question_is_refused() -> None:
    store = MemoryStore()
    store.append("main", 0, lambda _news, _now: [Suspended("what?")])
    with pytest.raises(CorruptLog, match="does not start with its question"):
        begun(store)


def test_runs_share_a_file_and_do_not_mix(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    one, two = begun(store, name="one"), begun(store, name="two", seed=6)
    sl.drive(one, Slowly(0.0))
    assert two.n_pulls == 0
    assert one.code != two.code
    assert store.runs() == ["one", "two"]
    store.close()


# --- things that go wrong ---------------------------------------------------------------------------


def test_a_run_that_was_replaced_is_not_taken_for_the_one_that_was_read(place: Place) -> None:
    old = begun(place.open())
    tickets = old.ask(3)
    store = place.open()
    store.remove("main")
    new = sl.Session(PROBLEM.changed(m=1), "race", seed=9, store=store)
    for k in range(4):
        new.ask(1, worker=f"w{k}")
    n_records = len(new.records)
    with pytest.raises(StoreTrouble, match=r"not the run that was read before|was removed"):
        old.tell(tickets, means=answers(tickets))
    with pytest.raises(StoreTrouble, match=r"not the run that was read before|was removed"):
        old.ask(worker="ann")
    assert len(sl.Session.resume(store).records) == n_records


def test_an_answer_is_not_taken_when_the_file_was_removed(tmp_path: Path) -> None:
    session = sl.Session(PROBLEM, "race", seed=5, store=tmp_path / "runs.db")
    tickets = session.ask()
    (tmp_path / "runs.db").unlink()
    with pytest.raises(StoreTrouble, match=r"was removed.* The answers of this call are not saved"):
        session.tell(tickets, means=answers(tickets))
    assert session.n_pulls == 0


def test_taking_in_that_is_broken_off_is_made_good(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    session = begun(place.open())
    tickets = session.ask()
    with monkeypatch.context() as patched:
        patched.setattr(RunState, "_close_round", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.tell(tickets, means=answers(tickets))
    assert session.n_pulls == tickets.counts.sum(), "it had been appended"
    sl.drive(session, Slowly(0.0), turns=1)
    assert digest(session) == digest(undisturbed())


def interrupted(_: RunState) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("lease", [0, -1.0, float("nan"), float("inf"), 1e18, "1h", None])
def test_a_lease_must_be_a_time(lease: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`lease` is"):
        begun(MemoryStore()).ask(worker="ann", lease=lease)


def test_drivers_in_threads_of_one_process_share_the_work() -> None:
    store, calls = MemoryStore(), []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append(arm)
        time.sleep(0.02)
        return rng.normal(MEANS[arm], 1.0, count)

    def drive() -> None:
        sl.drive(sl.Session(PROBLEM, "wnelim", store=store), measure)

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(calls) == sorted([*range(N)] * TURNS)


def test_waiting_for_others_takes_no_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    begun(store).ask(worker="bob")
    n_appends = 0
    append = store.append

    def counted(*arguments: Any) -> Any:
        nonlocal n_appends
        n_appends += 1
        return append(*arguments)

    monkeypatch.setattr(store, "append", counted)

    def progress(_: sl.Session) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sl.drive(begun(store), Slowly(0.0), progress=progress)
    assert n_appends <= 2, "how rewards are measured, and that nothing is given back"


def test_codes_of_runs_are_six_random_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    store, letters, drawn_from = MemoryStore(), iter("kqzfmbkqzfmc"), set()

    def choice(some: str) -> str:
        drawn_from.add(some)
        return next(letters)

    monkeypatch.setattr(secrets, "choice", choice)
    assert begun(store, name="one").code == "kqzfmb"
    assert begun(store, name="two").code == "kqzfmc"
    assert [len(set(some)) for some in drawn_from] == [23]


def test_beginning_a_run_asks_a_store_no_more_than_if_there_were_no_others(durable: Place) -> None:
    store, statements = durable.open(), []
    engine: sqlalchemy.Engine = store._engine  # type: ignore[attr-defined]
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *about: statements.append(about[2]))

    def asked(name: str) -> list[str]:
        statements.clear()
        begun(store, name=name)
        return [one for one in statements if "shortlist_" in one]

    first = asked("first")
    for number in range(10):
        begun(store, name=str(number))
    assert asked("last") == first
