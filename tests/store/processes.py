"""What several processes do to a store, to be run as a program: ``python -m tests.store.processes NAME ...``.

It forks, which a process with threads of its own (such as that of the tests) had better not.
"""

import os
import random
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psycopg
import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite

from shortlist.errors import StoreTrouble
from shortlist.store import Record, Store, open_store
from shortlist.store.postgres import PostgresStore
from shortlist.store.sqlite import SqliteStore
from tests.store.samples import same, told

NOBODY = 65534
LOADED = (
    psycopg,
    sqlalchemy.dialects.postgresql.psycopg,
    sqlalchemy.dialects.sqlite,
    PostgresStore,
    SqliteStore,
)
"""Loaded before any process is forked: to do it in each would take longer than all the rest."""


def put_pair(store: Store, worker: str, number: int, after: int) -> int:
    """Append two equal records in one call; return the number of the last."""
    pair = [told(worker, number)] * 2
    return store.append("shared", after, lambda _news, _now: pair)[-1].number


def put_pairs(store: Store, worker: str, each: int) -> None:
    after = 0
    for k in range(each):
        after = put_pair(store, worker, k, after)


def fork(work: Callable[[], None]) -> int:
    """Start a child that does some work and ends without the usual farewells; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def wait_for(children: list[int]) -> None:
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert not any(codes), codes


def together(n: int, work: Callable[[int], None]) -> None:
    """Let n children start at the same moment."""
    gate, key = os.pipe()

    def child(k: int) -> None:
        os.close(key)
        os.read(gate, 1)
        work(k)

    children = [fork(lambda k=k: child(k)) for k in range(n)]  # type: ignore[misc]
    os.close(gate)
    os.close(key)
    wait_for(children)


def cold(address: str, n: str) -> None:
    """Open a store that is not there yet in n processes at the same time."""

    def work(k: int) -> None:
        put_pair(open_store(address), f"w{k}", 0, 0)

    together(int(n), work)


def many(address: str, n: str, each: str) -> None:
    """Append to one run in n processes."""
    together(int(n), lambda k: put_pairs(open_store(address), f"w{k}", int(each)))


def inherited(address: str) -> None:
    """Use one store in a process and in its children, forked while another thread writes."""
    store = open_store(address)
    put_pairs(store, "parent", 3)
    thread = threading.Thread(target=put_pairs, args=(store, "thread", 40))
    thread.start()
    children = [fork(lambda k=k: put_pairs(store, f"child{k}", 10)) for k in range(6)]  # type: ignore[misc]
    put_pairs(store, "parent again", 10)
    thread.join()
    wait_for(children)


def kills(address: str, n: str) -> None:
    """Kill a writer n times, wherever it is; whatever it had acknowledged must be there, and pairs whole."""
    random.seed(1)
    acknowledged: dict[str, int] = {}
    for k in range(int(n)):
        is_late = k % 3 > 0  # the others while they open the store, and the first while it creates it
        n_signs = random.randint(2, 6) if is_late else 1
        acknowledged[f"w{k}"] = _killed(address, f"w{k}", is_late, n_signs, random.uniform(0.002, 0.03))
    records = list(open_store(address).read("shared"))
    _assert_pairs(records)
    counts = [sum(record.event.worker == name for record in records) // 2 for name in acknowledged]  # type: ignore[union-attr]
    for name, count in zip(acknowledged, counts, strict=True):
        assert acknowledged[name] <= count <= acknowledged[name] + 1, (name, acknowledged[name], count)
    assert sum(counts) > int(n), "hardly anything was written before the kills"
    print(f"{sum(counts)} calls, of which {sum(acknowledged.values())} acknowledged")


def _killed(address: str, name: str, is_late: bool, n_signs: int, seconds: float) -> int:
    """Return how many calls a writer had acknowledged when it was killed, so long after some signs of it."""
    news, telling = os.pipe()

    def work() -> None:
        if not is_late:
            os.write(telling, b"!")
        store, after = open_store(address), 0
        for k in range(10**6):
            after = put_pair(store, name, k, after)
            os.write(telling, b".")

    child = fork(work)
    os.close(telling)
    for _ in range(n_signs):
        os.read(news, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(news, "rb") as pipe:
        return len(pipe.read()) + n_signs * is_late


def _assert_pairs(records: list[Record]) -> None:
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert len(records) % 2 == 0
    assert all(same(one.event, two.event) for one, two in zip(records[::2], records[1::2], strict=True))


def limited(address: str) -> None:
    """Write until files may not grow any more; then let them grow again, and go on."""
    open_store(address).close()
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, allowed[1]))
    _until_full(address, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, allowed))


def full(folder: str) -> None:
    """Write until the disk is full; then make room, and go on."""
    ballast = Path(folder, "ballast")
    ballast.write_bytes(bytes(200_000))
    _until_full(str(Path(folder, "runs.db")), ballast.unlink)


def _until_full(address: str, make_room: Callable[[], None]) -> None:
    store, after, trouble = open_store(address), 0, ""
    worker = "a worker with a long name " * 50
    while not trouble:
        assert after < 10_000, "the disk never became full"
        try:
            after = put_pair(store, worker, after // 2, after)
        except StoreTrouble as raised:
            trouble = str(raised)
    assert "Earlier results are safe." in trouble, trouble
    assert "full" in trouble, trouble
    assert len(list(store.read("shared"))) == after
    make_room()
    after = put_pair(store, worker, after // 2, after)
    records = list(open_store(address).read("shared"))
    _assert_pairs(records)
    assert len(records) == after
    print(trouble)


def _trouble(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except StoreTrouble as raised:
        return str(raised)
    raise AssertionError("it worked")


def forbidden(address: str) -> None:
    """Try to write where only reading is allowed; then only read, which must work."""
    path = Path(address)
    store = open_store(address)  # loads all modules, while they may be read
    put_pairs(store, "w", 3)
    store.close()  # the last to close tidies up
    before = path.read_bytes()
    path.chmod(0o444)
    path.parent.chmod(0o555)

    def as_nobody() -> None:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        for name in (path, path.with_name("new.db")):
            trouble = _trouble(lambda name=name: open_store(name))  # type: ignore[misc]
            assert "folder" in trouble, trouble
            print(trouble, flush=True)
        store = open_store(address, read_only=True)
        assert len(list(store.read("shared"))) == 6
        assert "read-only" in _trouble(lambda: put_pair(store, "w", 9, 6))

    wait_for([fork(as_nobody)])
    path.parent.chmod(0o755)
    assert path.read_bytes() == before
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    programs = (cold, many, inherited, kills, limited, full, forbidden)
    {program.__name__: program for program in programs}[name](*arguments)
