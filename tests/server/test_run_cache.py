"""The runs that a server keeps open, within limits; and lists of many runs."""

import gc
import os
import subprocess
import sys
import types
import weakref
from collections.abc import Iterable

import numpy as np
import pytest

import shortlist as sl
from shortlist.server import run_cache as module
from shortlist.server.run_cache import OpenRun, RunCache
from shortlist.server.snapshot import run_summary
from shortlist.session.log import RunLog
from shortlist.session.worker_names import own_name
from shortlist.store import MemoryStore, Record
from shortlist.store.protocol import After


class Counting(MemoryStore):
    """A store that counts how many records are read from it."""

    n_read = 0

    def read(self, run: str, after: After = 0) -> Iterable[Record]:  # type: ignore[override]
        found = super().read(run, after)
        self.n_read += len(found)
        return found


class Clock:
    """Time that passes only when a test says so."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the cache; stores are given it."""
    found = Clock()
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=found))
    return found


def begin(store: MemoryStore, name: str, n: int = 10, strategy: str = "level-race") -> sl.Session:
    problem = sl.Problem(m=1, epsilon=0.3, delta=0.1, variances=[0.25] * n)
    return sl.Session(problem, strategy, store=store, name=name)


def measure(session: sl.Session) -> None:
    """Answer a round."""
    tickets = session.ask()
    session.tell(tickets, means=np.linspace(0.4, 0.6, len(tickets)))


def opened(cache: RunCache) -> list[str]:
    return list(cache._open)


# --- memory -------------------------------------------------------------------------------------------


def test_large_runs_that_are_not_used_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_TICKETS", 10_000)
    store = MemoryStore()
    for name in "abcd":
        begin(store, name, n=2_000)  # 2,000 arms and as many tickets
    cache = RunCache(store)
    for name in "abac":
        cache.look(name, lambda _: None)
    assert opened(cache) == ["a", "c"], "the one that was not used for longest"
    begin(store, "large", n=20_000)
    cache.look("large", lambda _: None)
    assert opened(cache) == ["large"], "the one that is asked for is open, however large"
    for name in ("small", "smaller"):
        begin(store, name)
        cache.look(name, lambda _: None)
    assert opened(cache) == ["small", "smaller"]


def test_what_is_closed_is_let_go_of_at_once() -> None:
    store = MemoryStore()
    begin(store, "trial")
    cache = RunCache(store)
    gc.disable()  # which counts objects, not what they take: large arrays would stay
    try:
        kept = cache.look("trial", lambda run: [weakref.ref(one) for one in (run, run.log, run.log.history)])
        cache.forget("trial")
        assert [one() for one in kept] == [None] * 3
    finally:
        gc.enable()


def test_what_a_run_takes_grows_with_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    store, cache = MemoryStore(), None
    session = begin(store, "growing", n=100)
    begin(store, "other", n=100)
    cache = RunCache(store)
    sizes = []
    for _ in range(3):
        sizes.append(cache.look("growing", lambda run: run.activity.size))
        measure(session)
    rounds = session.history.rounds
    assert sizes == [100 + sum(len(one.tickets) + 20 for one in rounds[:k]) for k in (1, 2, 3)]
    assert OpenRun(store, "growing", is_read_only=True).activity.size == cache.look(
        "growing", lambda run: run.activity.size
    )
    monkeypatch.setattr(module, "_MOST_TICKETS", sizes[1] + 220)
    cache.look("other", lambda _: None)
    assert opened(cache) == ["other"]


def test_no_more_than_a_hundred_runs_are_open() -> None:
    store = MemoryStore()
    for number in range(103):
        begin(store, str(number))
    cache = RunCache(store)
    for number in range(103):
        cache.look(str(number), lambda _: None)
    assert opened(cache) == [str(number) for number in range(3, 103)]


# --- lists --------------------------------------------------------------------------------------------


def test_a_list_of_runs_is_not_read_twice_and_closes_none() -> None:
    store = Counting()
    for number in range(120):
        measure(begin(store, str(number)))
    cache = RunCache(store)
    cache.look("7", lambda _: None)
    first = [cache.summary(name, run_summary) for name in cache.runs()]
    assert opened(cache) == ["7"]
    store.n_read = 0
    assert [cache.summary(name, run_summary) for name in cache.runs()] == first
    assert store.n_read <= 2 + 119, "the last record of each, to see whether it is still there"


def test_a_list_shows_every_change(clock: Clock) -> None:
    store = Counting(clock)
    session = begin(store, "trial")
    begin(store, "other")
    cache = RunCache(store)

    def seen() -> tuple[str, int, str]:
        found = cache.summary("trial", run_summary)
        return found["code"], found["n_pulls"], found["next"]

    before = seen()
    measure(session)
    assert seen()[1] == session.n_pulls > before[1]
    session.ask(worker="ann", lease=0.3)
    clock.seconds += 0.29
    assert seen()[2] == "wait: 10 tickets with 1 worker"
    clock.seconds += 0.02
    assert seen()[2] == "measure: 10 tickets available in round 1", "leases end without an event"
    store.remove("trial")
    with pytest.raises(sl.errors.NoSuchRun):
        seen()
    again = begin(store, "trial")
    measure(again)
    assert seen()[:2] == (again.code, again.n_pulls)
    store.n_read = 0
    cache.summary("other", run_summary)
    cache.summary("other", run_summary)
    assert store.n_read == 2, "its question, and the same again to see whether it is still the last record"


def next_of(cache: RunCache) -> str:
    return str(cache.summary("trial", run_summary)["next"])


def test_a_list_shows_leases_that_end_one_after_the_other(clock: Clock) -> None:
    store = MemoryStore(clock)
    session = begin(store, "trial")
    session.ask(4, worker="ann", lease=0.3)
    session.ask(6, worker="bob", lease=100)
    session.claim(session.asked.take(slice(2)), "ann", 100)
    cache = RunCache(store)
    assert next_of(cache) == "wait: 10 tickets with 2 workers"
    clock.seconds += 0.35
    assert next_of(cache) == "measure: 2 tickets available in round 0"


def test_a_list_shows_a_lease_that_ended_while_it_was_made(clock: Clock) -> None:
    store = MemoryStore(clock)
    begin(store, "trial").ask(worker="ann", lease=0.2)
    cache = RunCache(store)

    def slow(log: RunLog) -> dict[str, object]:
        found = run_summary(log)
        clock.seconds += 0.25
        return found

    assert cache.summary("trial", slow)["next"] == "wait: 10 tickets with 1 worker"
    assert next_of(cache) == "measure: 10 tickets available in round 0"


def test_a_list_shows_that_a_worker_is_gone() -> None:
    store = MemoryStore()
    session = begin(store, "trial")
    cache = RunCache(store)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        session.ask(worker=own_name().replace(f":{os.getpid()}:", f":{process.pid}:"))
        assert next_of(cache) == "wait: 10 tickets with 1 worker"
    assert next_of(cache) == "measure: 10 tickets available in round 0"


def test_summaries_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SUMMARIES", 5)
    store = MemoryStore()
    for number in range(9):
        begin(store, str(number))
    cache = RunCache(store)
    for name in cache.runs():
        cache.summary(name, run_summary)
    assert len(cache._summaries) == 5
