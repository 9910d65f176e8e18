"""Schemas move forward one version at a time, wholly or not at all."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sql

from shortlist.errors import StoreTrouble
from shortlist.store import Store, open_store
from shortlist.store.migrations import STEPS, Step
from shortlist.store.postgres import PostgresStore
from shortlist.store.sqlite import SqliteStore
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


class Versions:
    """A store that is opened by programs of several versions."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(self, *later: Step, read_only: bool = False) -> SqliteStore | PostgresStore:
        kind = PostgresStore if "://" in self.place.address else SqliteStore
        self.place.opened.append(kind(self.place.address, steps=(*STEPS, *later), read_only=read_only))
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


def begun(store: Store) -> Store:
    store.append("a", 0, lambda _news, _now: [told("w", 1)])
    return store


def test_a_new_store_has_the_present_version(versions: Versions) -> None:
    begun(versions.open())
    assert versions.state() == (list(range(1, len(STEPS) + 1)), ["id", "name"])


def test_an_older_store_is_brought_up_to_date_and_keeps_its_runs(versions: Versions) -> None:
    begun(versions.open())
    later = versions.open(note, label)
    assert versions.state() == ([1, 2, 3], ["id", "name", "note", "label"])
    assert len(list(later.read("a"))) == 1
    versions.open(note, label)
    assert versions.state()[0] == [1, 2, 3]


def test_a_step_that_is_broken_off_leaves_the_version_before(versions: Versions) -> None:
    begun(versions.open())
    with pytest.raises(KeyboardInterrupt):
        versions.open(note, breaks)
    assert versions.state() == ([1, 2], ["id", "name", "note"])
    assert versions.open(note, label).runs() == ["a"]
    assert versions.state() == ([1, 2, 3], ["id", "name", "note", "label"])


def test_a_newer_store_is_refused_and_left_as_it_is(versions: Versions) -> None:
    begun(versions.open(note))
    for read_only in (False, True):
        with pytest.raises(StoreTrouble, match=r"newer Shortlist.*version 2.*up to 1.*Upgrade Shortlist"):
            versions.open(read_only=read_only)
    assert versions.state() == ([1, 2], ["id", "name", "note"])


def test_an_older_store_is_not_brought_up_to_date_only_to_be_read(versions: Versions) -> None:
    begun(versions.open())
    with pytest.raises(StoreTrouble, match=r"older Shortlist.*version 1, and 2 is needed"):
        versions.open(note, read_only=True)
    assert versions.state() == ([1], ["id", "name"])


def test_a_store_without_tables_is_not_only_read(versions: Versions) -> None:
    with pytest.raises(StoreTrouble, match=r"no store|holds no runs"):
        versions.open(read_only=True)
    with pytest.raises(StoreTrouble, match=r"no store|holds no runs"):
        open_store(versions.place.address, must_exist=True)
