"""What a server may do to a store, and what a store does on a server."""

import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sql

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store import Event, Store, open_store
from shortlist.store.postgres import PostgresStore
from shortlist.store.sql import _NAMELESS, _ROWS
from tests.store.samples import told
from tests.store.server import Server

pytestmark = pytest.mark.slow


@pytest.fixture
def store(postgres: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(postgres, patience=0.3)
    yield opened
    opened.close()


def put(store: Store, run: str, *events: Event, after: int = 0) -> None:
    store.append(run, after, lambda _news, _now: events)


def execute(store: PostgresStore, statement: str) -> None:
    with store._engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_the_time_is_that_of_the_server_when_the_lock_was_had(store: PostgresStore) -> None:
    put(store, "a", told("w", 1))
    (record,) = store.read("a")
    assert abs(record.at - time.time()) < 60
    before = time.time()
    time.sleep(0.05)
    put(store, "a", told("w", 2), after=1)
    assert list(store.read("a"))[1].at > before


def test_whoever_appends_keeps_others_from_that_run_only(store: PostgresStore, postgres: str) -> None:
    other = open_store(postgres)
    got, done = threading.Event(), threading.Event()

    def decide(_news: object, _now: float) -> list[Event]:
        got.set()
        done.wait(20)
        return [told("other", 1)]

    put(store, "a", told("w", 1))
    for run in ("a", "new"):
        thread = threading.Thread(target=lambda run=run: other.append(run, 0, decide))
        thread.start()
        got.wait(20)
        put(store, f"beside {run}", told("w", 1))
        with pytest.raises(
            StoreTrouble, match=r"kept the run locked for too long.*Earlier results are safe.*Wait"
        ):
            put(store, run, told("w", 2))
        done.set()
        thread.join()
        got.clear()
        done.clear()
    put(store, "a", told("w", 2))
    assert [len(list(store.read(run))) for run in ("a", "new")] == [3, 1]
    other.close()


def test_a_server_that_restarts_is_an_error_once(server: Server, store: PostgresStore) -> None:
    put(store, "a", told("w", 1))

    def decide(_news: object, _now: float) -> list[Event]:
        server.halt()
        return [told("w", 2)]

    with pytest.raises(StoreTrouble, match=r"Earlier results are safe.*rerun the command"):
        store.append("a", 1, decide)
    with pytest.raises(StoreTrouble, match=r"the server cannot be reached.*Earlier results are safe"):
        put(store, "a", told("w", 2), after=1)
    server.start()
    assert len(list(store.read("a"))) == 1
    put(store, "a", told("w", 2), after=1)
    server.halt()
    server.start()
    assert len(list(store.read("a"))) == 2  # idle connections are replaced without a word


def test_an_altered_or_missing_record_is_found(store: PostgresStore) -> None:
    put(store, "a", *(told("w", k) for k in range(4)))
    execute(store, "UPDATE shortlist_events SET body = set_byte(body, 9, 77) WHERE number = 3")
    with pytest.raises(CorruptLog, match="Record 3 of run 'a' was damaged"):
        list(store.read("a"))
    execute(store, "DELETE FROM shortlist_events WHERE number = 3")
    with pytest.raises(CorruptLog, match="Record 3 of run 'a' is missing"):
        list(store.read("a"))


def test_a_run_that_is_removed_while_others_wait_begins_anew(store: PostgresStore, postgres: str) -> None:
    put(store, "a", told("w", 1), told("w", 2))
    other = open_store(postgres)
    with store._writing() as connection:
        store._end(connection, "a")
        thread = threading.Thread(target=put, args=(other, "a", told("other", 1)))
        thread.start()
        time.sleep(0.2)
        connection.execute(sql.text("DELETE FROM shortlist_events"))
        connection.execute(sql.text("DELETE FROM shortlist_runs"))
    thread.join()
    assert len(list(store.read("a"))) == 1
    other.close()


def test_a_server_that_does_not_wait_for_its_disk_is_told_to(store: PostgresStore, postgres: str) -> None:
    careless = PostgresStore(postgres.replace("search_path", "synchronous_commit%3Doff%20-csearch_path"))
    with careless._engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    careless.close()


def test_a_database_that_is_not_there_is_reported(server: Server) -> None:
    with pytest.raises(StoreTrouble, match=r"refused.*\"elsewhere\" does not exist.*createdb"):
        open_store(server.url.replace("/postgres?", "/elsewhere?"))


def test_a_user_without_rights_is_reported(store: PostgresStore, postgres: str) -> None:
    execute(store, "CREATE ROLE guest LOGIN")
    with pytest.raises(StoreTrouble, match="no schema to create tables in"):
        open_store(postgres.replace("shortlist@", "guest@"))
    execute(store, f"GRANT USAGE ON SCHEMA {postgres.rpartition('%3D')[2]} TO guest")
    with pytest.raises(StoreTrouble, match=r"lacks a permission \(permission denied.*Grant"):
        open_store(postgres.replace("shortlist@", "guest@"))


def test_a_page_of_a_long_log_is_found_by_its_key(store: PostgresStore) -> None:
    put(store, "a", *(told("w", k) for k in range(2000)))
    with store._engine.connect() as connection:
        plan = connection.execute(sql.text(f"EXPLAIN {_ROWS}"), {"run": "a", "first": 50, "limit": 100})
        steps = "\n".join(plan.scalars())
    assert "Index Scan using shortlist_events_pkey" in steps
    assert "Sort" not in steps


def test_the_list_of_runs_is_not_worth_compiling(store: PostgresStore) -> None:
    store.append("a", 0, lambda _news, _now: [told("w", 0)])
    with store._reading() as connection:
        (found,) = connection.scalar(sql.text(f"EXPLAIN (ANALYZE, FORMAT JSON) {_NAMELESS.text}"))
    assert "Execution Time" in found
    assert "JIT" not in found
