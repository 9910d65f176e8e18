"""What every store must do, in memory, in a file and on a server."""

import itertools
import threading
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shortlist.errors import StoreTrouble
from shortlist.store import Event, Record, Store, open_store
from tests.store.conftest import Place
from tests.store.samples import ANY_EVENT, ONE_OF_EACH, same, told

_names = (f"run {k}" for k in itertools.count())


def put(store: Store, run: str, *events: Event, after: int = 0) -> list[Record]:
    return store.append(run, after, lambda _news, _now: events)


def numbers(records: Sequence[Record]) -> list[int]:
    return [record.number for record in records]


def assert_same(found: Sequence[Record], expected: Sequence[Record]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.number, one.at) == (other.number, other.at)
        assert same(one.event, other.event)


@pytest.mark.parametrize("event", ONE_OF_EACH.values(), ids=ONE_OF_EACH.keys())
def test_every_kind_of_event_is_kept(place: Place, event: Event) -> None:
    (record,) = put(place.open(), "a run", event)
    assert (record.number, record.event) == (1, event)
    assert_same(list(place.open().read("a run")), [record])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.lists(ANY_EVENT, max_size=4), max_size=4))
def test_any_log_is_kept_in_order(place: Place, parts: list[list[Event]]) -> None:
    run, store, kept = next(_names), place.opened[0] if place.opened else place.open(), list[Record]()
    for events in parts:
        fresh = put(store, run, *events, after=len(kept))
        assert numbers(fresh) == list(range(len(kept) + 1, len(kept) + len(events) + 1))
        kept += fresh
    assert_same(list(store.read(run)), kept)
    assert (run in store.runs()) == bool(kept)
    for after in range(len(kept) + 2):
        assert_same(list(store.read(run, after)), kept[after:])


def test_times_are_the_clocks(place: Place) -> None:
    seconds = itertools.count(1000)
    store = place.open(clock=lambda: next(seconds) + 1 / 3)
    given = list[float]()
    for after in (0, 2):
        store.append("a", after, lambda _news, now: given.append(now) or [told("w", 1), told("w", 2)])  # type: ignore[func-returns-value]
    assert given == [1000 + 1 / 3, 1001 + 1 / 3]
    assert [record.at for record in store.read("a")] == [given[0]] * 2 + [given[1]] * 2


def test_decide_sees_what_others_have_appended_and_nothing_else(place: Place) -> None:
    one, other = place.open(), place.open()
    seen = list[list[int]]()

    def decide(news: Sequence[Record], now: float) -> list[Event]:
        seen.append(numbers(news))
        return [told("w", len(seen))]

    one.append("a", 0, decide)
    other.append("a", 0, decide)
    other.append("a", 2, decide)
    one.append("a", 1, decide)
    one.append("another", 0, decide)
    assert seen == [[], [1], [], [2, 3], []]


def test_a_long_absence_is_made_up_for(place: Place) -> None:
    store = place.open()
    first = put(store, "a", *(told("w", k) for k in range(5000)))
    got = list[Record]()
    store.append("a", 700, lambda news, _now: got.extend(news) or [])  # type: ignore[func-returns-value]
    assert_same(got, first[700:])
    assert_same(list(store.read("a", 4999)), first[4999:])


def test_where_decide_raises_nothing_is_appended(place: Place) -> None:
    store = place.open()
    kept = put(store, "a", told("w", 1))

    def decide(news: Sequence[Record], now: float) -> list[Event]:
        raise KeyError("changed my mind")

    for run in ("a", "new"):
        with pytest.raises(KeyError, match="changed my mind"):
            store.append(run, 0, decide)
    assert_same(list(store.read("a")), kept)
    assert store.runs() == ["a"]
    assert numbers(put(store, "a", told("w", 2), after=1)) == [2]


def test_what_cannot_be_kept_leaves_nothing_behind(durable: Place) -> None:
    store = durable.open()
    bad = told("w", 1)
    object.__setattr__(bad, "worker", object())
    with pytest.raises(Exception, match="object"):
        put(store, "a", told("w", 0), bad)
    assert store.runs() == []


def test_where_nothing_is_decided_there_is_no_run(place: Place) -> None:
    store = place.open()
    assert put(store, "a") == []
    assert store.runs() == []
    assert list(store.read("a")) == []
    assert list(store.read("a", 5)) == []


def test_runs_are_independent_and_in_the_order_they_began(place: Place) -> None:
    store = place.open()
    for k, run in enumerate(["zebra", "Ünïcödé 'run'", "apple", "zebra", "apple"]):
        put(store, run, told(run, k), after=len(list(store.read(run))))
    assert place.open().runs() == ["zebra", "Ünïcödé 'run'", "apple"]
    workers = {run: [record.event.worker for record in store.read(run)] for run in store.runs()}  # type: ignore[union-attr]
    assert workers == {"zebra": ["zebra"] * 2, "Ünïcödé 'run'": ["Ünïcödé 'run'"], "apple": ["apple"] * 2}


def test_a_run_is_removed_for_good(place: Place) -> None:
    store = place.open()
    for run in ("a", "b", "c"):
        put(store, run, told(run, 1), told(run, 2))
    store.remove("b")
    store.remove("there is none")
    assert store.runs() == ["a", "c"]
    assert list(store.read("b")) == []
    put(store, "b", told("new", 1))
    assert store.runs() == ["a", "c", "b"]
    assert len(list(store.read("b"))) == 1
    assert len(list(store.read("a"))) == 2


def test_whoever_has_seen_more_than_there_is_may_not_append(place: Place) -> None:
    store = place.open()
    put(store, "a", told("w", 1), told("w", 2))
    store.remove("a")
    put(store, "a", told("w", 1))
    with pytest.raises(StoreTrouble, match=r"'a' has 1 records, but 2 were read before.*removed"):
        put(store, "a", told("w", 3), after=2)
    assert len(list(store.read("a"))) == 1


@pytest.mark.parametrize("name", ["", " ", "a\nb", "nul\0", "half \udc80"])
def test_a_run_must_have_a_name_that_can_be_printed(place: Place, name: str) -> None:
    with pytest.raises(StoreTrouble, match="cannot be the name"):
        put(place.open(), name, told("w", 1))


def test_a_log_is_restored_with_its_times(place: Place) -> None:
    seconds = itertools.count()
    source = open_store(":memory:", clock=lambda: next(seconds) / 3)
    for event in ONE_OF_EACH.values():
        put(source, "a", event, after=len(list(source.read("a"))))
    store = place.open()
    assert store.restore("a", source.read("a")) == len(ONE_OF_EACH)
    assert_same(list(store.read("a")), list(source.read("a")))
    with pytest.raises(StoreTrouble, match="already"):
        store.restore("a", source.read("a"))
    assert store.restore("nothing", []) == 0
    assert store.runs() == ["a"]
    assert numbers(put(store, "a", told("w", 1), after=len(ONE_OF_EACH))) == [len(ONE_OF_EACH) + 1]


def test_a_log_with_a_gap_is_not_restored(place: Place) -> None:
    store = place.open()
    records = put(open_store(":memory:"), "a", *(told("w", k) for k in range(1200)))
    with pytest.raises(StoreTrouble, match="Record 1101 of run 'a' is missing"):
        store.restore("a", records[:1100] + records[1101:])
    assert store.runs() == []


def test_a_store_may_be_closed_while_others_use_it(place: Place) -> None:
    store, other = place.open(), place.open()
    put(store, "a", told("w", 1))
    store.close()
    store.close()
    assert len(list(other.read("a"))) == 1


def test_threads_lose_and_double_nothing(place: Place) -> None:
    store, each = place.open(), 15
    failures = list[BaseException]()

    def work(name: str) -> None:
        try:
            seen = 0
            for k in range(each):
                fresh = store.append("a", seen, lambda _news, _now, k=k: [told(name, k), told(name, k)])  # type: ignore[misc]
                seen = fresh[-1].number
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(f"t{k}",)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_complete(list(store.read("a")), 8, each)


def assert_complete(records: Sequence[Record], workers: int, each: int) -> None:
    """Check that every worker's records are there once, in order, with each call's two side by side."""
    assert numbers(records) == list(range(1, 2 * workers * each + 1))
    by_worker: dict[str, list[int]] = {}
    for first, second in zip(records[::2], records[1::2], strict=True):
        assert same(first.event, second.event)
        by_worker.setdefault(first.event.worker, []).append(first.event.round)  # type: ignore[union-attr]
    assert len(by_worker) == workers
    assert all(rounds == list(range(each)) for rounds in by_worker.values())


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "\udcff"])
def test_there_is_no_run_of_a_name_that_none_can_have(place: Place, name: str) -> None:
    store = place.open()
    put(store, "a run", told("w", 1))
    assert list(store.read(name)) == []
    store.remove(name)
    with pytest.raises(StoreTrouble, match="cannot be the name of a run"):
        put(store, name, told("w", 1))
    assert store.runs() == ["a run"]


def test_a_run_that_is_replaced_while_it_is_read_is_not_taken_for_the_same(durable: Place) -> None:
    store = durable.open()
    put(store, "a", *(told("w", k) for k in range(300)))
    reading = iter(store.read("a"))
    assert next(reading).number == 1
    store.remove("a")
    put(store, "a", *(told("v", k) for k in range(300)))
    with pytest.raises(StoreTrouble, match="not the run that was read before"):
        list(reading)
