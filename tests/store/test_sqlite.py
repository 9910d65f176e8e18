"""Files that were damaged, replaced, locked or come from elsewhere."""

import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist.errors import CorruptLog, StoreTrouble
from shortlist.store import Ended, Event, Leased, Store, Told, open_store, sqlite
from shortlist.store.sqlite import SqliteStore
from tests.store.samples import arms, told


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = open_store(path)
    yield opened
    opened.close()


def put(store: Store, run: str, *events: Event) -> None:
    store.append(run, 0, lambda _news, _now: events)


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def row(path: Path, number: int) -> tuple[int, str, float, bytes, bytes]:
    query = "SELECT number, kind, at, body, checksum FROM shortlist_events WHERE run = 1 AND number = ?"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, (number,)).fetchone()  # type: ignore[no-any-return]


def first_bad(store: Store, run: str = "a", after: int = 0) -> tuple[int, str]:
    """Return how many records could be read before the complaint, and the complaint."""
    good = list[int]()
    with pytest.raises(CorruptLog) as raised:
        good.extend(record.number for record in store.read(run, after))
    return len(good), str(raised.value)


def test_the_file_is_kept_as_it_must_be_to_be_safe(path: Path, store: Store) -> None:
    put(store, "a", told("w", 1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert isinstance(store, SqliteStore)
    with store._writing() as writer:
        assert writer.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert writer.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


def test_every_altered_byte_of_a_record_is_found(path: Path, store: Store) -> None:
    put(store, "a", told("w", 0), Told(1, arms(1, 5), np.array([0.5, 0.25]), None, "wörker"), told("w", 2))
    _, kind, at, body, checksum = row(path, 2)
    parts: dict[str, bytes] = {"body": body, "checksum": checksum, "kind": kind.encode()}
    for column, data in parts.items():
        kept: bytes | str = kind if column == "kind" else data
        for place, flip in itertools.product(range(len(data)), (1, 128)):
            altered = bytes([*data[:place], data[place] ^ flip, *data[place + 1 :]])
            text = "CAST(? AS TEXT)" if column == "kind" else "?"
            change(path, f"UPDATE shortlist_events SET {column} = {text} WHERE number = 2", altered)
            good, complaint = first_bad(store)
            assert good == 1
            assert "Record 2 of run 'a'" in complaint
        change(path, f"UPDATE shortlist_events SET {column} = ? WHERE number = 2", kept)
    change(path, "UPDATE shortlist_events SET at = ? WHERE number = 2", np.nextafter(at, 0))
    assert first_bad(store)[0] == 1
    change(path, "UPDATE shortlist_events SET at = ? WHERE number = 2", at)
    assert len(list(store.read("a"))) == 3


@pytest.mark.parametrize("value", ["text", "", 5, 1.5, b""])
def test_a_body_of_another_type_is_found(path: Path, store: Store, value: object) -> None:
    put(store, "a", told("w", 0), told("w", 1))
    change(path, "UPDATE shortlist_events SET body = ? WHERE number = 2", value)
    assert "Record 2 of run 'a' was damaged" in first_bad(store)[1]


def test_a_moved_or_missing_record_is_found(path: Path, store: Store) -> None:
    put(store, "a", *(told("w", k) for k in range(5)))
    change(path, "DELETE FROM shortlist_events WHERE number = 3")
    assert first_bad(store) == (2, first_bad(store, after=1)[1])
    assert "Record 3 of run 'a' is missing" in first_bad(store)[1]
    assert "Record 3 of run 'a' is missing" in first_bad(store, after=3)[1]
    change(path, "UPDATE shortlist_events SET number = 3 WHERE number = 4")
    assert "Record 3 of run 'a' was damaged" in first_bad(store)[1]


def test_a_missing_first_record_is_found(path: Path, store: Store) -> None:
    put(store, "a", *(told("w", k) for k in range(3)))
    change(path, "DELETE FROM shortlist_events WHERE number = 1")
    assert "Record 1 of run 'a' is missing" in first_bad(store)[1]


def test_a_record_of_another_run_is_found(path: Path, store: Store) -> None:
    for run, arm in (("a", 1), ("b", 2)):
        put(store, run, told("w", 0 * arm), told("w", arm), told("w", 3))
    change(path, "DELETE FROM shortlist_events WHERE run = 1 AND number = 3")
    change(path, "UPDATE shortlist_events SET run = 1 WHERE run = 2 AND number = 3")
    assert "Record 3 of run 'a' was damaged" in first_bad(store)[1]


def test_another_kind_of_the_same_form_is_found(path: Path, store: Store) -> None:
    put(store, "a", told("w", 0), Leased(1, arms(1), "w", 0.5), told("w", 2))
    change(path, "UPDATE shortlist_events SET kind = 'told' WHERE number = 2")
    assert "Record 2 of run 'a' was damaged" in first_bad(store)[1]


def test_nothing_is_decided_on_damaged_news(path: Path, store: Store) -> None:
    put(store, "a", told("w", 0), told("w", 1))
    change(path, "UPDATE shortlist_events SET kind = 'ended' WHERE number = 2")
    with pytest.raises(CorruptLog, match="Record 2"):
        put(store, "a", told("w", 2))
    change(path, "UPDATE shortlist_events SET kind = 'told' WHERE number = 2")
    assert len(list(store.read("a"))) == 2


def test_records_of_a_newer_version_say_to_upgrade(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.store.chain.encoded", lambda _: ("dreamt", b"\1"))
    put(store, "a", Ended(arms(1)))
    assert "Record 1 of run 'a' cannot be read" in first_bad(store)[1]
    assert "upgrade Shortlist" in first_bad(store)[1]


def filled(path: Path) -> bytes:
    store = open_store(path)
    put(store, "a", *(told("a worker with quite a long name" * 20, k) for k in range(300)))
    store.close()
    return path.read_bytes()


@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_reported(path: Path, part: float) -> None:
    data = filled(path)
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(CorruptLog, match=r"is damaged \(database disk image is malformed\).*backup"):
        list(open_store(path, read_only=True).read("a"))


@pytest.mark.parametrize("read_only", [True, False])
def test_an_overwritten_file_is_reported(path: Path, read_only: bool) -> None:
    data = filled(path)
    path.write_bytes(b"not what it was " * 10 + data[160:])
    with pytest.raises(CorruptLog, match=r"is not a store of Shortlist \(file is not a database\)"):
        open_store(path, read_only=read_only)
    assert path.read_bytes()[160:] == data[160:]


def test_a_file_with_a_page_of_noise_is_reported(path: Path) -> None:
    data = filled(path)
    middle = len(data) // 2 // 4096 * 4096
    path.write_bytes(data[:middle] + np.random.default_rng(1).bytes(4096) + data[middle + 4096 :])
    with pytest.raises(CorruptLog):
        list(open_store(path).read("a"))


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreTrouble, match=r"another program, with tables such as 'recipes'"):
            open_store(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_store_that_stays_locked_is_reported(path: Path) -> None:
    store, other = SqliteStore(path, patience=0.05), open_store(path)
    got, done = threading.Event(), threading.Event()

    def decide(_news: object, _now: float) -> list[Event]:
        got.set()
        done.wait(10)
        return [told("other", 1)]

    thread = threading.Thread(target=lambda: other.append("a", 0, decide))
    thread.start()
    got.wait(10)
    with pytest.raises(
        StoreTrouble, match=r"another process has kept it locked.*Earlier results are safe.*Wait"
    ):
        put(store, "b", told("w", 1))
    assert list(store.read("b")) == []  # readers need not wait
    done.set()
    thread.join()
    put(store, "b", told("w", 1))
    assert store.runs() == ["a", "b"]
    store.close()
    other.close()


def test_large_and_small_records_may_be_mixed(store: Store) -> None:
    large = Told(0, np.arange(200_000), np.random.default_rng(1).random(200_000))
    events = [event for k in range(60) for event in (told("w", k), large if k % 9 == 0 else told("v", k))] * 4
    put(store, "a", *events)
    found = [len(record.event.arms) for record in store.read("a")]  # type: ignore[union-attr]
    assert found == [len(event.arms) for event in events]


def test_a_reader_keeps_nobody_waiting(path: Path, store: Store) -> None:
    put(store, "a", *(told("w", k) for k in range(1000)))
    reader = iter(store.read("a"))
    next(reader)
    store.append("a", 1000, lambda _news, _now: [told("w", 1000)])
    assert len(list(reader)) == 1000


def replace_by_another(path: Path) -> None:
    """Put another store in the place of a file, as one does who restores a backup."""
    with closing(open_store(path.with_name("other.db"))) as other:
        put(other, "a", told("w", 1))
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    path.with_name("other.db").replace(path)


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("moved.db")),
    "replaced": replace_by_another,
    "log of writes removed": lambda path: Path(f"{path}-wal").unlink(),
    "index of the log removed": lambda path: Path(f"{path}-shm").unlink(),
}


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES.keys())
def test_nothing_is_acknowledged_into_a_file_that_lost_its_name(
    path: Path, store: Store, lose: Callable[[Path], object]
) -> None:
    put(store, "a", told("w", 1))
    lose(path)
    with pytest.raises(StoreTrouble, match=r"removed, or replaced.*not saved.*restore a backup.*repeat"):
        put(store, "a", told("w", 2))
    if path.exists():
        return
    with pytest.raises(StoreTrouble, match="removed, or replaced"):
        put(store, "new", told("w", 2))
    assert not path.exists(), "a store that was removed is not begun again unasked"


def test_a_file_that_is_lost_during_a_write_is_noticed(path: Path, store: Store) -> None:
    put(store, "a", told("w", 1))
    with pytest.raises(StoreTrouble, match="not saved"):
        store.append("a", 1, lambda _news, _now: path.unlink() or [told("w", 2)])  # type: ignore[func-returns-value]
    with pytest.raises(StoreTrouble, match="removed, or replaced"):
        store.runs()


def test_a_file_that_is_put_back_is_gone_on_with(path: Path, store: Store) -> None:
    put(store, "a", told("w", 1))
    path.rename(path.with_name("moved.db"))
    with pytest.raises(StoreTrouble, match="not saved"):
        put(store, "a", told("w", 2))
    path.with_name("moved.db").rename(path)
    store.append("a", 1, lambda _news, _now: [told("w", 3)])
    assert len(list(store.read("a"))) in (2, 3)


def test_a_file_that_replaced_another_is_left_alone(path: Path, store: Store) -> None:
    put(store, "a", told("w", 1), told("w", 2))
    replace_by_another(path)
    with closing(open_store(path)) as other:
        put(other, "b", told("w", 1))
        with pytest.raises(StoreTrouble, match="not saved"):
            put(store, "a", told("w", 3))
        store.close()
        put(other, "b", told("w", 2))
    assert open_store(path).runs() == ["a", "b"]


def test_tables_that_appear_while_a_store_is_opened_are_no_damage(tmp_path: Path) -> None:
    """Many processes may open a new store at the same time; one of them creates its tables."""
    path = tmp_path / "runs.db"
    connection = sqlite3.connect(path)

    class Meanwhile:
        is_created = False

        def execute(self, statement: str) -> Any:
            rows = connection.execute(statement).fetchall()
            if not self.is_created:
                self.is_created = True
                open_store(path).close()
            return Rows(rows)

    class Rows(list[Any]):
        def fetchone(self) -> Any:
            return self[0]

    try:
        sqlite._refuse_foreign(Meanwhile(), "The store")  # type: ignore[arg-type]
    finally:
        connection.close()
