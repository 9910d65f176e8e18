"""Which store an address means, and what is said of addresses that mean none."""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

from shortlist.errors import NoSuchRun, StoreTrouble
from shortlist.store import MemoryStore, Store, copy_run, open_store
from shortlist.store.address import shown
from shortlist.store.sqlite import SqliteStore
from tests.store.conftest import Place
from tests.store.samples import ONE_OF_EACH, told
from tests.store.test_contract import assert_same, put


def test_a_path_means_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "odd name?mode=ro&x%20#ü.db"
    places: list[str | Path] = [name, Path(name), f"{tmp_path}/{name}"]
    for k, where in enumerate(places):
        store = open_store(where)
        put(store, f"run {k}", told("w", 1))
        store.close()
    assert open_store(tmp_path / name, read_only=True).runs() == ["run 0", "run 1", "run 2"]
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(("-wal", "-shm"))] == [name]


def test_an_sqlite_address_means_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(open_store("sqlite:///one.db"), "a", told("w", 1))
    put(open_store(f"sqlite:///{tmp_path}/one.db"), "b", told("w", 1))
    assert open_store("one.db").runs() == ["a", "b"]


def test_a_relative_path_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("one.db")
    store.close()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    put(store, "a", told("w", 1))
    assert open_store(tmp_path / "one.db").runs() == ["a"]


@pytest.mark.parametrize("address", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_memory_means_a_store_that_does_not_last(address: str) -> None:
    store = open_store(address, clock=lambda: 5.0)
    assert isinstance(store, MemoryStore)
    assert store.append("a", 0, lambda _news, _now: [told("w", 1)])[0].at == 5.0


def test_a_store_means_itself(tmp_path: Path) -> None:
    for store in (MemoryStore(), open_store(tmp_path / "runs.db")):
        assert open_store(store) is store


@pytest.mark.parametrize("where", [None, 5, b"runs.db", MemoryStore, object()])
def test_other_things_are_refused(where: Any) -> None:
    with pytest.raises(StoreTrouble, match=r"object of type.*Give the path"):
        open_store(where)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("mysql://me:secret@server/base", r"mysql:// addresses are not supported.*postgresql://"),
        ("http://me:secret@server/", r"http:// addresses"),
        ("", "empty"),
        ("sqlite://runs.db", "one more slash"),
        ("sqlite:///runs.db?password=secret", "without options"),
        ("postgresql://me:secret@server:port/x", "is invalid"),
        ("postgresql://me:secret@127.0.0.1:1/x", "the server cannot be reached"),
        ("postgres://me@127.0.0.1:1/x?password=secret", "the server cannot be reached"),
        ("postgresql://me:p@secret@127.0.0.1:1/x", "is invalid.*@ as %40"),
        ("postgresql://me:p/secret@127.0.0.1:1/x", "the server cannot be reached"),
        ("postgresql://me:p%20secret@127.0.0.1:1/x", "the server cannot be reached"),
        ("postgresql://me:p secret@127.0.0.1:1/x", "the server cannot be reached"),
        ("postgresql://me@127.0.0.1:1/x?sslpassword=secret", "the server cannot be reached"),
        ("postgresql://me@127.0.0.1:1/x?PASSWORD=secret", "server"),
        ("postgresql+psycopg://me:secret@/x?host=/nonexistent", "the server cannot be reached"),
    ],
)
def test_an_address_that_leads_nowhere_says_so_without_its_password(address: str, complaint: str) -> None:
    with pytest.raises(StoreTrouble, match=complaint) as raised:
        open_store(address)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("runs.db", "runs.db"),
        ("a@b/runs.db", "a@b/runs.db"),
        ("sqlite:////home/a@b/runs.db", "sqlite:////home/a@b/runs.db"),
        ("postgresql://me@server:5432/lab", "postgresql://me@server:5432/lab"),
        ("postgresql://server/lab", "postgresql://server/lab"),
        ("postgresql:///lab?host=/run/pg&port=5433", "postgresql:///lab?host=/run/pg&port=5433"),
        ("postgresql://me:secret@server/lab", "postgresql://me:***@server/lab"),
        ("postgresql://me:sec@ret@server/lab", "postgresql://me:***@server/lab"),
        ("postgresql://me:sec/ret@server/lab", "postgresql://me:***@server/lab"),
        ("postgresql://me:sec ret@server/lab", "postgresql://me:***@server/lab"),
        ("postgresql://me:sec?ret@server/lab", "postgresql://***"),
        ("postgresql://server/lab?password=sec@ret", "postgresql://***"),
        ("postgresql://:secret@server/lab", "postgresql://:***@server/lab"),
        ("postgresql://me@h/lab?password=s&port=1&PASSWORD=s&sslpassword=s", "postgresql://me@h/lab?port=1"),
        ("--store=postgresql://me:secret@server/lab", "--store=postgresql://me:***@server/lab"),
    ],
)
def test_an_address_is_shown_without_secrets(address: str, expected: str) -> None:
    assert shown(address) == expected


def test_a_repr_shows_no_password(postgres: str) -> None:
    store = open_store(postgres.replace("shortlist@", "shortlist:secret@"))
    assert "secret" not in repr(store)
    assert "postgresql://shortlist:***@" in repr(store)
    store.close()


def test_folders_and_missing_things_are_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreTrouble, match=r"is a folder; it must be a file"):
        open_store(tmp_path)
    with pytest.raises(StoreTrouble, match=r"there is no folder .*missing\. Create it"):
        open_store(tmp_path / "missing" / "runs.db")
    for options in ({"must_exist": True}, {"read_only": True}):
        with pytest.raises(StoreTrouble, match=r"There is no store .*runs\.db"):
            open_store(tmp_path / "runs.db", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store_unless_it_must_be_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch()
    for options in ({"must_exist": True}, {"read_only": True}):
        with pytest.raises(StoreTrouble, match="contains no runs"):
            open_store(path, **options)  # type: ignore[arg-type]
    assert open_store(path).runs() == []


def test_a_store_that_is_only_read_sees_news_and_cannot_be_written(durable: Place) -> None:
    writer = durable.open()
    put(writer, "a", told("w", 1))
    reader = open_store(durable.address, read_only=True)
    assert len(list(reader.read("a"))) == 1
    put(writer, "b", told("w", 1))
    assert reader.runs() == ["a", "b"]
    with pytest.raises(StoreTrouble, match="read-only"):
        put(reader, "c", told("w", 1))
    with pytest.raises(StoreTrouble, match="read-only"):
        reader.remove("a")
    assert writer.runs() == ["a", "b"]
    reader.close()


def test_without_psycopg_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreTrouble, match=r"pip install 'psycopg\[binary\]>=[\d.]+'$"):
        open_store("postgresql://server/base")


def source() -> Store:
    seconds = itertools.count()
    store = open_store(":memory:", clock=lambda: next(seconds) / 3)
    for event in ONE_OF_EACH.values():
        put(store, "a", event, after=len(list(store.read("a"))))
    return store


def test_a_run_is_copied_with_its_times_and_copied_once(place: Place, tmp_path: Path) -> None:
    first, target = source(), place.open()
    assert copy_run(first, target, "a") == len(ONE_OF_EACH)
    assert copy_run(first, target, "a") == 0
    onward = open_store(tmp_path / "second.db")
    assert copy_run(target, onward, "a") == len(ONE_OF_EACH)
    assert_same(list(onward.read("a")), list(first.read("a")))
    assert isinstance(onward, SqliteStore)


def test_another_run_of_that_name_is_left_alone(place: Place) -> None:
    first, target = source(), place.open()
    copy_run(first, target, "a")
    put(first, "a", told("w", 1), after=len(ONE_OF_EACH))
    with pytest.raises(StoreTrouble, match=f"continues after record {len(ONE_OF_EACH)}\\."):
        copy_run(target, first, "a")
    put(target, "a", told("w", 1), after=len(ONE_OF_EACH))
    for _ in range(2):
        with pytest.raises(StoreTrouble, match=f"differs from record {len(ONE_OF_EACH) + 1} on"):
            copy_run(first, target, "a")  # the time differs
        put(first, "a", told("w", 2), after=len(ONE_OF_EACH) + 1)
    assert len(list(target.read("a"))) == len(ONE_OF_EACH) + 1


def test_a_copy_is_brought_up_to_date(place: Place) -> None:
    first, target = source(), place.open()
    copy_run(first, target, "a")
    put(first, "a", *(told("w", k) for k in range(1200)), after=len(ONE_OF_EACH))
    assert copy_run(first, target, "a") == 1200
    assert copy_run(first, target, "a") == 0
    assert_same(list(target.read("a")), list(first.read("a")))
    records = put(first, "a", told("w", 1), after=len(ONE_OF_EACH) + 1200)
    for n_there in (0, len(ONE_OF_EACH), records[0].number):
        with pytest.raises(StoreTrouble):
            target.restore("a", records, n_there)
    put(target, "a", told("w", 2), after=len(ONE_OF_EACH) + 1200)
    with pytest.raises(StoreTrouble, match=f"where {len(ONE_OF_EACH) + 1200} were expected"):
        target.restore("a", records, len(ONE_OF_EACH) + 1200)


def test_a_run_that_is_not_there_is_not_copied(place: Place) -> None:
    with pytest.raises(NoSuchRun, match=r"no run 'b' to copy. Existing runs: 'a'"):
        copy_run(source(), place.open(), "b")


@pytest.mark.parametrize("where", ["runs.db", "sqlite:///runs.db", "postgresql://me@server/lab"])
def test_a_store_without_sqlalchemy_says_what_to_install(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shortlist.store.sqlite", "shortlist.store.postgres"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(StoreTrouble, match=r"needs the package SQLAlchemy.* Use: pip install SQLAlchemy$"):
        open_store(where)
