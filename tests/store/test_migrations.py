"""Schemas move forward one version at a time, wholly or not at all."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sql

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store import Event, Store, chain, open_store
from shortlist.store.migrations import STEPS, Step
from shortlist.store.postgres import PostgresStore
from shortlist.store.sqlite import SqliteStore
from shortlist.store.tables import EVENTS
from tests.store.conftest import Place
from tests.store.samples import told


def note(connection: sql.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE shortlist_runs ADD COLUMN note TEXT DEFAULT 'none'")


def label(connection: sql.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE shortlist_runs ADD COLUMN label TEXT DEFAULT 'none'")


def breaks(connection: sql.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE shortlist_runs ADD COLUMN label TEXT DEFAULT 'none'")
    connection.exec_driver_sql("UPDATE shortlist_runs SET name = 'half way'")
    raise KeyboardInterrupt


NOW, COLUMNS = (1, 2), ["id", "name", "n_events", "mark", "checksum"]


class Versions:
    """A store that is opened by programs of several versions."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(
        self, *later: Step, read_only: bool = False, steps: Sequence[Step] = STEPS
    ) -> SqliteStore | PostgresStore:
        kind = PostgresStore if "://" in self.place.address else SqliteStore
        self.place.opened.append(kind(self.place.address, steps=(*steps, *later), read_only=read_only))
        return self.place.opened[-1]  # type: ignore[return-value]

    def state(self) -> tuple[list[int], list[str]]:
        """Return the versions there have been, and the columns there are."""
        store = open_store(self.place.address) if not self.place.opened else self.place.opened[0]
        with store._engine.connect() as connection:  # type: ignore[attr-defined]
            versions = connection.exec_driver_sql("SELECT version FROM shortlist_versions ORDER BY version")
            columns = sql.inspect(connection).get_columns("shortlist_runs")
            return list(versions.scalars()), [column["name"] for column in columns]


@pytest.fixture
def versions(durable: Place) -> Iterator[Versions]:
    yield Versions(durable)  # noqa: PT022


def begun(store: SqliteStore | PostgresStore) -> SqliteStore | PostgresStore:
    store.append("a", 0, lambda _news, _now: [told("w", 1)])
    return store


def test_a_new_store_has_the_present_version(versions: Versions) -> None:
    begun(versions.open())
    assert versions.state() == ([*NOW], COLUMNS)


def test_an_older_store_is_brought_up_to_date_and_keeps_its_runs(versions: Versions) -> None:
    begun(versions.open())
    later = versions.open(note, label)
    assert versions.state() == ([*NOW, 3, 4], [*COLUMNS, "note", "label"])
    assert len(list(later.read("a"))) == 1
    versions.open(note, label)
    assert versions.state()[0] == [*NOW, 3, 4]


def test_a_step_that_is_broken_off_leaves_the_version_before(versions: Versions) -> None:
    begun(versions.open())
    with pytest.raises(KeyboardInterrupt):
        versions.open(note, breaks)
    assert versions.state() == ([*NOW, 3], [*COLUMNS, "note"])
    assert versions.open(note, label).runs() == ["a"]
    assert versions.state() == ([*NOW, 3, 4], [*COLUMNS, "note", "label"])


def test_a_newer_store_is_refused_and_left_as_it_is(versions: Versions) -> None:
    begun(versions.open(note))
    for read_only in (False, True):
        with pytest.raises(StoreTrouble, match=r"newer Shortlist.*version 3.*up to 2.*Upgrade"):
            versions.open(read_only=read_only)
    assert versions.state() == ([*NOW, 3], [*COLUMNS, "note"])


def test_an_older_store_is_not_brought_up_to_date_only_to_be_read(versions: Versions) -> None:
    old(versions)
    assert len(list(versions.open(note, read_only=True).read("a"))) == 3
    assert versions.state() == ([1], ["id", "name"])


def test_a_damaged_list_of_versions_is_named(versions: Versions) -> None:
    store = begun(versions.open())
    with store._writing() as connection:
        connection.exec_driver_sql("UPDATE shortlist_versions SET version = 3 WHERE version = 2")
    with pytest.raises(CorruptLog, match=r"list of schema versions.* damaged: it contains \[1, 3\]"):
        versions.open()


# --- from version 1, that of Shortlist 0.1.0, to version 2, which counts records --------------------------


def old(versions: Versions, n: int = 3) -> Any:
    """Return a store of version 1 with a run, as a program of that version has it open."""
    store = versions.open()
    store.append("a", 0, lambda _news, _now: [told("w", k) for k in range(n)])
    with store._writing() as connection:
        for column in COLUMNS[2:]:
            connection.exec_driver_sql(f"ALTER TABLE shortlist_runs DROP COLUMN {column}")
        connection.exec_driver_sql("DELETE FROM shortlist_versions WHERE version = 2")
    return store


def append_as_version_1(store: Any, event: Event) -> None:
    """Append a record to the only run as version 0.1.0 does: without counting it."""
    with store._writing() as connection:
        last = connection.exec_driver_sql(
            "SELECT number, checksum FROM shortlist_events ORDER BY number DESC LIMIT 1"
        ).one()
        names = ("number", "kind", "at", "body", "checksum")
        row = dict(zip(names, chain.row(chain.Link(*last), 5.0, event), strict=True))
        connection.execute(EVENTS.insert(), {"run": 1} | row)


def test_records_are_counted_when_a_store_is_brought_up_to_date(versions: Versions) -> None:
    old(versions, 70)
    store = versions.open()
    assert versions.state() == ([*NOW], COLUMNS)
    assert len(list(store.read("a"))) == 70
    with store._writing() as connection:
        connection.exec_driver_sql("DELETE FROM shortlist_events WHERE number > 60")
    with pytest.raises(CorruptLog, match="there are 70, but record 61 does not exist"):
        list(store.read("a"))


def test_a_damaged_log_stays_named_when_a_store_is_brought_up_to_date(versions: Versions) -> None:
    with old(versions)._writing() as connection:
        connection.exec_driver_sql("UPDATE shortlist_events SET kind = 'ended' WHERE number = 2")
    store = versions.open()
    put_another(store)
    with pytest.raises(CorruptLog, match="Record 2 of run 'a' was damaged"):
        list(store.read("a"))
    with pytest.raises(CorruptLog, match="entry of run 'a' in the list of runs was damaged"):
        store.append("a", 3, lambda _news, _now: [told("w", 4)])


def put_another(store: Store) -> None:
    store.append("another", 0, lambda _news, _now: [told("w", 1)])
    assert len(list(store.read("another"))) == 1


def test_a_program_of_version_1_may_go_on_beside_one_of_version_2(versions: Versions) -> None:
    before = old(versions)
    store = versions.open()
    append_as_version_1(before, told("old", 3))
    append_as_version_1(before, told("old", 4))
    assert len(list(store.read("a"))) == 5
    assert len(list(store.read("a", 4))) == 1
    store.append("a", 3, lambda _news, _now: [told("new", 5)])
    assert len(list(store.read("a"))) == 6


def test_a_store_without_tables_is_not_only_read(versions: Versions) -> None:
    with pytest.raises(StoreTrouble, match=r"no store|contains no runs"):
        versions.open(read_only=True)
    with pytest.raises(StoreTrouble, match=r"no store|contains no runs"):
        open_store(versions.place.address, must_exist=True)
