"""No damage shortens a log, or loses a run, in silence."""

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from benchmarks import damage
from benchmarks.damage import PAGE

from shortlist.errors import CorruptLog, LostWrite
from shortlist.store import Store, open_store, sqlite
from shortlist.store.wal import dropped
from tests.store.conftest import Place
from tests.store.samples import told


def filled(place: Place, n: int = 3) -> Store:
    store = place.open()
    for run in ("a", "b", "c"):
        store.append(run, 0, lambda _news, _now, run=run: [told(run, k) for k in range(n)])  # type: ignore[misc]
    return store


def alter(store: Any, statement: str) -> None:
    """Change the tables behind the back of the store."""
    with store._writing() as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0


ATTEMPTS: dict[str, Callable[[Store, str], object]] = {
    "read": lambda store, run: list(store.read(run)),
    "read on": lambda store, run: list(store.read(run, 1)),
    "append": lambda store, run: store.append(run, 2, lambda _news, _now: [told("w", 9)]),
    "restore": lambda store, run: store.restore(run, [], 3),
}


def complaints(store: Store, run: str) -> set[str]:
    """Return what is said by whatever can be done with a run, all of which must fail."""
    found = set()
    for attempt in ATTEMPTS.values():
        with pytest.raises(CorruptLog) as raised:
            attempt(store, run)
        found.add(str(raised.value))
    return found


@pytest.mark.parametrize("n", [3, 64, 65, 400])
def test_a_log_without_its_last_records_is_named(durable: Place, n: int) -> None:
    store = filled(durable, n)
    alter(store, f"DELETE FROM shortlist_events WHERE run = 2 AND number >= {n}")
    with pytest.raises(CorruptLog, match=f"last records of run 'b'.* are {n}, but record {n} does not exist"):
        list(store.read("b"))
    assert all("The last records of run 'b' are missing" in said for said in complaints(store, "b"))
    assert len(list(store.read("a"))) == len(list(store.read("c"))) == n


@pytest.mark.parametrize("change", ["kind = x'61'", "at = 'x'", "body = 'x'", "checksum = 'x'"])
def test_a_record_with_values_of_other_types_is_named(tmp_path: Path, change: str) -> None:
    """A flipped bit can turn a text into bytes, which SQLite returns as they are."""
    store = filled(Place(str(tmp_path / "runs.db")))
    alter(store, f"UPDATE shortlist_events SET {change} WHERE run = 2 AND number = 2")
    with pytest.raises(CorruptLog, match="Record 2 of run 'b' was damaged or altered"):
        list(store.read("b"))


def test_a_log_without_any_records_is_named(durable: Place) -> None:
    store = filled(durable)
    alter(store, "DELETE FROM shortlist_events WHERE run = 2")
    assert all("list of runs there are 3" in said for said in complaints(store, "b"))
    assert store.runs() == ["a", "b", "c"]


def test_what_was_read_before_and_is_gone_is_named(durable: Place) -> None:
    store = filled(durable)
    *_, last = store.read("b")
    alter(store, "DELETE FROM shortlist_events WHERE run = 2 AND number > 1")
    with pytest.raises(CorruptLog, match="The last records of run 'b' are missing"):
        list(store.read("b", last))


@pytest.mark.parametrize(
    "change",
    ["n_events = 2", "n_events = NULL", "n_events = 0", "checksum = NULL", "mark = 'x'", "name = 'x'"],
)
def test_a_damaged_entry_is_named(durable: Place, change: str) -> None:
    store = filled(durable)
    alter(store, f"UPDATE shortlist_runs SET {change} WHERE name = 'b'")
    run = "x" if "name" in change else "b"
    with pytest.raises(CorruptLog, match=f"entry of run '{run}' in the list of runs was damaged"):
        list(store.read(run))
    with pytest.raises(CorruptLog, match=f"entry of run '{run}' in the list of runs was damaged"):
        store.append(run, 3, lambda _news, _now: [told("w", 9)])


def test_a_count_that_is_too_large_is_named(durable: Place) -> None:
    store = filled(durable)
    alter(store, "UPDATE shortlist_runs SET n_events = 4 WHERE name = 'b'")
    assert all("there are 4, but record 4 does not exist" in said for said in complaints(store, "b"))


def test_a_run_whose_entry_is_lost_is_named_and_not_begun_again(durable: Place) -> None:
    store = filled(durable)
    alter(store, "DELETE FROM shortlist_runs WHERE name = 'b'")
    assert store.runs() == ["a", "(run 2, name lost)", "c"]
    for run in ("b", "(run 2, name lost)", "new"):
        assert all("records of run number 2, but no entry" in said for said in complaints(store, run))
    assert len(list(store.read("c"))) == 3
    store.remove("(run 2, name lost)")
    assert store.runs() == ["a", "c"]
    store.append("b", 0, lambda _news, _now: [told("w", 1)])


@pytest.mark.parametrize("lost", [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")], ids="".join)
def test_all_runs_whose_entries_are_lost_are_listed(durable: Place, lost: tuple[str, ...]) -> None:
    store, keys = filled(durable), {"a": 1, "b": 2, "c": 3}
    for run in lost:
        alter(store, f"DELETE FROM shortlist_runs WHERE name = '{run}'")
    assert store.runs() == [f"(run {key}, name lost)" if run in lost else run for run, key in keys.items()]
    for run in lost:
        store.remove(f"(run {keys[run]}, name lost)")
    assert store.runs() == [run for run in keys if run not in lost]


def lose_from_index(path: Path, run: str) -> None:
    """Alter the name of a run in the index of the list of runs, and nowhere else."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'shortlist_runs'"
        ((page,),) = connection.execute(query)
    data = bytearray(path.read_bytes())
    place = data.index(run.encode(), PAGE * (page - 1), PAGE * page)
    data[place] ^= 1
    path.write_bytes(data)


def test_a_run_that_its_index_has_lost_is_named_and_not_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    with closing(open_store(path)) as store:
        store.append("unmistakable", 0, lambda _news, _now: [told("w", 1), told("w", 2), told("w", 3)])
    lose_from_index(path, "unmistakable")
    with pytest.raises(CorruptLog, match=r"is damaged \(.*index.*Nothing was changed.*shortlist copy"):
        open_store(path)
    monkeypatch.setattr("shortlist.store.sqlite._SMALL", 0)  # as a large file, which is not checked
    with closing(open_store(path)) as store:
        assert store.runs() == ["unmistakable"]
        said = complaints(store, "unmistakable")
    assert all("cannot be found there by its name" in one for one in said)


# --- files -------------------------------------------------------------------------------------------------


def test_a_file_without_its_schema_is_not_made_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    data = bytearray(damage.whole(path, {"a": 5}).main)
    data[103:105] = bytes(2)  # no cells on the first page: no tables
    for is_checked in (True, False):
        path.write_bytes(data)
        with pytest.raises(CorruptLog, match="it contains data, but no tables"):
            open_store(path, read_only=is_checked)
        assert path.read_bytes() == data


RUNS = {"a": 4, "b": 45, "c": 3}


@pytest.mark.slow
@pytest.mark.parametrize("small", [sqlite._SMALL, 0])
def test_a_flipped_bit_is_harmless_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("shortlist.store.sqlite._SMALL", small)
    files = damage.whole(tmp_path / "runs.db", RUNS)
    pages = damage.pages_without_records(tmp_path / "runs.db", files)
    bits = damage.some_bits(files, 20) + damage.some_bits(files, 10, pages)
    found, _ = damage.study(tmp_path / "runs.db", files, bits)
    assert {*found} == {"harmless", "named"}, found


def test_a_flipped_bit_in_the_log_of_writes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.store.wal._PAUSE", 0.0)
    files = damage.crashed(tmp_path / "crashed.db", {"a": 4}, 6)
    assert len(damage.logs(tmp_path / "runs.db", files)["a"]) > 6
    found, _ = damage.study(tmp_path / "runs.db", files, damage.some_bits(files, 25))
    assert {*found} == {"named"}, found


def test_a_damaged_log_of_writes_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    files = damage.crashed(tmp_path / "crashed.db", {"a": 4}, 6)
    flipped = files.flipped(8 * (32 + 24 + 100))
    for read_only in (False, True):
        flipped.put(path)
        with pytest.raises(CorruptLog, match=r"-wal file.* damaged at frame 1 of \d+.*Nothing was changed"):
            open_store(path, read_only=read_only)
        assert Path(f"{path}-wal").read_bytes() == flipped.wal
    header = files.flipped(8 * 17)
    header.put(path)
    with pytest.raises(CorruptLog, match="damaged at its header"):
        open_store(path)


def test_the_last_write_of_a_crash_may_be_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    files = damage.crashed(tmp_path / "crashed.db", {"a": 4}, 6)
    expected = damage.logs(path, files)["a"]
    assert files.wal is not None
    damage.Files(files.main, files.wal[:-2000]).put(path)  # the last frame is not whole
    with closing(open_store(path)) as store:
        assert damage.plain(iter(store.read("a"))) == expected[:-1]
    damage.Files(files.main, files.wal[:-2000] + bytes(2000)).put(path)
    with pytest.warns(LostWrite, match=r"last write .* interrupted .*, or damaged.*tell the missing ones"):
        store = open_store(path)
    assert damage.plain(iter(store.read("a"))) == expected[:-1]
    store.close()


def test_a_log_that_is_written_just_now_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(open_store(path)) as store:
        for k in range(5):
            store.append("a", k, lambda _news, _now, k=k: [told("w", k)])  # type: ignore[misc]
        log, file = Path(f"{path}-wal"), tmp_path / "seen"
        whole = log.read_bytes()
        file.write_bytes(whole[:-3000] + bytes(3000))
        with ThreadPoolExecutor(1) as other:
            seen = other.submit(dropped, file)
            time.sleep(0.03)
            file.write_bytes(whole)
            assert seen.result() is None
