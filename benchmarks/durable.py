"""What durable runs cost: asking and telling by many processes, and going on with a long log (`make bench`).

Pairs of an ask and a tell, one ticket each, are counted over some seconds, after every process has opened the
run; both are in the file, synced, before they return. Beside that stands how many bare commits the disk takes
in the same way. A run with a million answers, each told by itself, is opened and gone on with. Figures go to
benchmarks/results/durable.md.
"""

import argparse
import multiprocessing
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.store import Asked, Began, Event, Leased, Record, Told, open_store

RESULTS = Path(__file__).parent / "results" / "durable.md"
ARMS, SECONDS, PROCESSES = 10_000, 5.0, (1, 2, 8, 32)
TICKETS = 1_000_000


def question(n: int) -> sl.Problem:
    """Return a problem that takes n tickets and no deciding."""
    return sl.Problem(m=1, epsilon=1.0, delta=0.05, variances=np.ones(n))


# --- asking and telling ---------------------------------------------------------------------------


def worker(store: str, name: str, ready: Barrier, counts: Any) -> None:
    """Ask for one ticket and tell it, over and over; report how often."""
    session = sl.Session(question(ARMS), "wnelim", store=store)
    session.tell(tickets := session.ask(1, worker=name), means=[0.0] * len(tickets), worker=name)
    ready.wait()
    end, n_pairs = time.monotonic() + SECONDS, 0
    while time.monotonic() < end and (tickets := session.ask(1, worker=name)):
        session.tell(tickets, means=[0.0], worker=name)
        n_pairs += 1
    counts.put(n_pairs)


def pairs(store: str, n: int) -> float:
    """Return how many pairs a second n processes make together."""
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Barrier(n), context.Queue()
    processes = [context.Process(target=worker, args=(store, f"worker-{k}", ready, counts)) for k in range(n)]
    for process in processes:
        process.start()
    total = sum(counts.get() for _ in processes)
    for process in processes:
        process.join()
    return float(total / SECONDS)


def bare_commits(path: Path) -> float:
    """Return how many commits of one row a second a file takes, synced, without Shortlist."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (body BLOB)")
    end, n = time.monotonic() + SECONDS / 2, 0
    while time.monotonic() < end:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (zeroblob(100))")
        connection.execute("COMMIT")
        n += 1
    connection.close()
    return n / (SECONDS / 2)


# --- going on -------------------------------------------------------------------------------------


def long_log(n: int, lot: int) -> Iterator[Event]:
    """Yield the log of a run whose n tickets were asked in lots and told one by one, but for the last."""
    session = sl.Session(question(n), "wnelim")
    began = session.records[0].event
    assert isinstance(began, Began)
    yield began
    asked = session.asked
    yield Asked(0, asked.arms, asked.counts)
    means = np.random.default_rng(1).normal(size=n)
    for first in range(0, n, lot):
        arms = asked.arms[first : first + lot]
        yield Leased(0, arms, f"worker-{first % 7}", float(first))
        for k in range(first, min(first + lot, n - 1)):
            yield Told(0, asked.arms[k : k + 1], means[k : k + 1], worker=f"worker-{first % 7}")


def blobs(n: int) -> Iterator[Event]:
    """Yield the log of the same run, told in lots of a hundred thousand."""
    events = list(long_log(n, n))
    yield from events[:3]
    told = [event for event in events if isinstance(event, Told)]
    for first in range(0, len(told), 100_000):
        some = told[first : first + 100_000]
        arms, means = (np.concatenate([getattr(one, part) for one in some]) for part in ("arms", "means"))
        yield Told(0, arms, means)


def resume(path: Path, events: Iterator[Event]) -> tuple[int, float, float, float]:
    """Return the records of a log, megabytes of its file, and seconds to open it and to end the run."""
    store = open_store(path)
    n = store.restore("main", (Record(k, float(k), event) for k, event in enumerate(events, 1)))
    store.close()
    start = time.perf_counter()
    session = sl.Session.resume(path)
    opened = time.perf_counter() - start
    tickets = session.ask()
    session.tell(tickets, means=[0.0] * len(tickets))
    assert session.is_done, session
    return n, path.stat().st_size / 1e6, opened, time.perf_counter() - start - opened


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description="Measure what durable runs cost.")
    parser.add_argument("--postgres", metavar="URL", help="also measure on this database")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    lines = [
        "# Durable runs",
        "",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}. "
        "Seconds are for comparison only.",
        "",
        f"Pairs of an ask and a tell, one ticket each, over {SECONDS:g} seconds, `synchronous = FULL` "
        "(target: 300 a second by 32 processes):",
        "",
        "| store | processes | pairs a second | bare commits a second |",
        "|---|---|---|---|",
    ]
    say = _saying(lines)
    with tempfile.TemporaryDirectory() as folder:
        for n in PROCESSES:
            before = bare_commits(Path(folder, f"bare-{n}.db"))
            found = pairs(str(Path(folder, f"runs-{n}.db")), n)
            say(f"| SQLite | {n} | {found:,.0f} | {before:,.0f} |")
        if given.postgres:
            found = pairs(given.postgres, 8)
            say(f"| PostgreSQL | 8 | {found:,.0f} | |")
        say("\nGoing on with a run of a million tickets, all told but one (target: below 15 seconds):\n")
        say("| log | records | file | seconds to open | seconds to end |\n|---|---|---|---|---|")
        logs: dict[str, Callable[[], Iterator[Event]]] = {
            "told in lots of 100,000": lambda: blobs(TICKETS),
            "asked by hundreds, told one by one": lambda: long_log(TICKETS, 100),
            "asked one by one, told one by one": lambda: long_log(TICKETS, 1),
        }
        for number, (name, log) in enumerate(logs.items()):
            n_records, size, opened, ended = resume(Path(folder, f"long-{number}.db"), log())
            say(f"| {name} | {n_records:,} | {size:.0f} MB | {opened:.1f} | {ended:.1f} |")
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _saying(lines: list[str]) -> Callable[[str], None]:
    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    return say


if __name__ == "__main__":
    main()
