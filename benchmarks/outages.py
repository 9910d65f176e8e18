"""What a store that fails again and again costs: nothing that was acknowledged (by hand; takes minutes).

`shortlist serve` runs on a small disk that another program fills and empties; and on PostgreSQL, where
commits fail, connections are lost and the server is restarted. Many clients ask and tell meanwhile. They
retry what was refused, as often as it takes; some tell everything twice at the same time, and some contradict
answers that were acknowledged. Then the log is read: every acknowledged answer must be there, and the result
must be, bit for bit, that of the same run without outages. Figures go to benchmarks/results/outages.md.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import platform
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import numpy as np
import psycopg
from tests.store.server import Server, programs

import shortlist as sl
from benchmarks.server import Connection
from shortlist.errors import ShortlistError
from shortlist.session.sheet_format import ticket_text
from shortlist.store import open_store

RESULTS = Path(__file__).parent / "results" / "outages.md"
ARMS, CLIENTS = 100, 64
QUESTION: dict[str, Any] = {"m": 3, "epsilon": 0.5, "delta": 0.05, "variances": [1.0] * ARMS}
STRATEGY, SEED = "medelim", 7
LONGEST = 300.0  # seconds for a run, after which it counts as unreadable
DISK = 16  # megabytes

IN_A_NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
MOUNT = f'mount -t tmpfs -o size={DISK}m none "$0" && exec "$@"'

Figures: TypeAlias = "tuple[list[Verdict], Counter[str]]"
"""What became of some runs, and how many outages of each kind there were."""

Outage: TypeAlias = Callable[[], Callable[[], None]]
"""Begins an outage, and returns what ends it."""


# --- those who measure ------------------------------------------------------------------------------------


def mean(arm: int, first_pull: int, pulls: int) -> float:
    """Return the mean of a ticket's rewards, which is the same whoever measures it, and when."""
    noise = float(np.random.default_rng([arm, first_pull]).normal())
    return arm / ARMS + noise / math.sqrt(pulls)


@dataclass
class Seen:
    """What the clients of a run have seen.

    Attributes
    ----------
    acknowledged
        By ticket: the answer that was acknowledged.
    refused
        How often a request was refused for the time being, or not answered.
    conflicts
        How many contradictions were acknowledged.
    broken
        Why the run could not be gone on with; empty if it could.
    """

    acknowledged: dict[str, float] = field(default_factory=dict)
    refused: int = 0
    conflicts: int = 0
    broken: str = ""


class Client:
    """Somebody who measures for a run, until it has ended."""

    def __init__(self, number: int, port: int, run: str, seen: Seen) -> None:
        self.run, self.seen = run, seen
        self.worker = f"client-{number}"
        self.is_hasty, self.is_contrary = number % 4 != 1, number % 4 == 1
        self.connections = [Connection(port), Connection(port)]
        self.random = random.Random(number)

    async def send(self, path: str, body: dict[str, Any], which: int = 0) -> dict[str, Any]:
        """Return what is answered, after as many tries as it takes."""
        connection = self.connections[which]
        while not self.seen.broken:
            try:
                status, said = await connection.send("POST", f"/runs{path}", body)
            except (OSError, IndexError, asyncio.IncompleteReadError):
                connection.close()
                status = 503
            if status in (200, 201):
                return dict(said)
            if status != 503:
                self.seen.broken = f"{path}: {status} {said}"
                break
            self.seen.refused += 1
            await asyncio.sleep(self.random.uniform(0.0, 0.03))
        raise EOFError

    async def begin(self) -> None:
        """Begin the run."""
        body = {"name": self.run, "question": QUESTION, "strategy": STRATEGY, "seed": SEED}
        await self.send("", body)

    async def work(self) -> None:
        """Measure until the run has ended, or cannot be gone on with."""
        with contextlib.suppress(EOFError):
            while not (asked := await self.ask())["is_done"]:
                answers = {
                    ticket["ticket"]: mean(ticket["arm"], first, ticket["pulls"])
                    for ticket, first in zip(asked["tickets"], asked["first_pulls"], strict=True)
                }
                if answers:
                    await self.tell(answers)
                await asyncio.sleep(self.random.uniform(0.0, 0.01))

    async def ask(self) -> dict[str, Any]:
        """Return some tickets; what a client has not told soon is given to others as well."""
        return await self.send(f"/{self.run}/ask", {"worker": self.worker, "limit": 2, "lease": 0.05})

    async def tell(self, answers: dict[str, float]) -> None:
        """Tell answers; then, if this is one of those clients, contradict them."""
        path, times = f"/{self.run}/tell", 1 + self.is_hasty
        body = {"worker": self.worker, "answers": _listed(answers)}
        await asyncio.gather(*(self.send(path, body, which) for which in range(times)))
        self.seen.acknowledged |= answers
        if self.is_contrary and self.random.random() < 0.2:
            others = {ticket: value + 1.0 for ticket, value in answers.items()}
            said = await self.send(path, body | {"answers": _listed(others)})
            self.seen.conflicts += int(said["conflicting"])


def _listed(answers: dict[str, float]) -> list[dict[str, Any]]:
    return [{"ticket": ticket, "mean": value} for ticket, value in answers.items()]


async def measured(port: int, run: str) -> Seen:
    """Begin a run and have it measured by many clients; return what these have seen."""
    seen = Seen()
    clients = [Client(number, port, run, seen) for number in range(CLIENTS)]
    try:
        async with asyncio.timeout(LONGEST):
            await clients[0].begin()
            await asyncio.gather(*(client.work() for client in clients))
    except TimeoutError:
        seen.broken = "the run did not end"
    for connection in (one for client in clients for one in client.connections):
        connection.close()
    return seen


# --- what became of it ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What became of a run.

    Attributes
    ----------
    refused, acknowledged
        How many requests were refused for the time being, and how many answers were acknowledged.
    lost, lost_conflicts
        How many acknowledged answers, and contradictions of them, are not in the log.
    trouble
        Why the run cannot be read or gone on with; empty if it can.
    is_same
        Whether the result is that of the same run without outages.
    """

    refused: int
    acknowledged: int
    lost: int = 0
    lost_conflicts: int = 0
    trouble: str = ""
    is_same: bool = False

    @property
    def is_good(self) -> bool:
        """Whether all is as it should be."""
        return not self.lost and not self.lost_conflicts and not self.trouble and self.is_same


def judged(store: str | Path, run: str, seen: Seen) -> Verdict:
    """Return what became of a run."""
    verdict = Verdict(seen.refused, len(seen.acknowledged), trouble=seen.broken)
    try:
        with sl.Session.resume(store, run) as session:
            return replace(
                verdict,
                lost=sum(answer != told for answer, told in _both(session, seen)),
                lost_conflicts=max(0, seen.conflicts - len(session.conflicts)),
                is_same=_facts(session.result) == _facts(undisturbed()),
            )
    except ShortlistError as error:
        return replace(verdict, trouble=str(error))


def _both(session: sl.Session, seen: Seen) -> Iterator[tuple[float, float]]:
    """Yield what was acknowledged, and what the log has of it."""
    told = {
        ticket_text(session.code, round.number, arm): value
        for round in session.history.rounds
        for arm, value in zip(round.tickets.arms.tolist(), round.means.tolist(), strict=True)
    }
    for ticket, answer in seen.acknowledged.items():
        yield answer, told.get(ticket, np.nan)


def _facts(result: sl.Result) -> dict[str, Any]:
    """Return a result but for the tickets that were issued twice, and for what the guarantee says of them."""
    return {key: fact for key, fact in result.to_dict().items() if key not in ("n_reissued", "guarantee")}


def undisturbed() -> sl.Result:
    """Return the result of the same run where nothing fails."""
    session = sl.Session(sl.Problem(**QUESTION), STRATEGY, seed=SEED)
    while tickets := session.ask():
        session.tell(tickets, means=[mean(one.arm, one.first_pull, one.count) for one in tickets])
    return session.result


# --- servers and outages ----------------------------------------------------------------------------------


@contextmanager
def serving(store: str | Path) -> Iterator[int]:
    """Yield the port of `shortlist serve`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", "--store", str(store), "--port", str(port), "--rate", "100000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "shortlist", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            if process.poll() is not None:
                raise RuntimeError("the server did not start")
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/login")
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def outages(*kinds: Outage, up: float, down: float) -> Iterator[Counter[str]]:
    """Let outages of about so many seconds follow each other; yield how many of each kind there were."""
    stop, counts, chance = threading.Event(), Counter[str](), random.Random(1)

    def work() -> None:
        while not stop.wait(chance.uniform(0.5, 1.5) * up):
            begin = chance.choice(kinds)
            end = begin()
            counts[begin.__name__] += 1
            stop.wait(chance.uniform(0.5, 1.5) * down)
            end()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join()


def can_mount() -> bool:
    """Return whether a small disk can be had."""
    command = [*IN_A_NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def on_a_small_disk(n_runs: int) -> Figures:
    """Return what `on_a_full_disk` does in a process of its own, which alone sees a small disk."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--disk", str(n_runs), "--folder", folder]
        command = [sys.executable, "-m", "benchmarks.outages", *words]
        within = [*IN_A_NAMESPACE, "sh", "-c", MOUNT, folder]
        done = subprocess.run([*within, *command], check=True, stdout=subprocess.PIPE)
    verdicts, counts = json.loads(done.stdout)
    return [Verdict(**one) for one in verdicts], Counter(counts)


def on_a_full_disk(n_runs: int, folder: Path) -> Figures:
    """Return what became of runs in SQLite files, in a folder on a small disk that is full now and then.

    Before the disk is full, another process writes to the file, so that many clients wait for their turn.
    """
    verdicts, counts = [], Counter[str]()
    for k in range(n_runs):  # while a file is new, every write to it takes more of the disk
        store, ballast = folder / f"{k}.db", folder / "ballast"

        def full_disk(store: Path = store, ballast: Path = ballast) -> Callable[[], None]:
            with contextlib.closing(sqlite3.connect(store, 30.0, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with ballast.open("wb") as file, contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free)
                time.sleep(0.1)
            return ballast.unlink

        with serving(store) as port, outages(full_disk, up=0.1, down=0.1) as some:
            seen = asyncio.run(measured(port, "trial"))
        verdicts.append(judged(store, "trial", seen))
        counts += some
        store.unlink()
    return verdicts, counts


_FAILING_COMMITS = """
CREATE FUNCTION now_and_then() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF txid_current() % 4 = 0 THEN
        RAISE EXCEPTION 'no room';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON shortlist_events DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION now_and_then();
"""
_DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'shortlist'"


def on_postgres(n_runs: int, bin_folder: Path) -> Figures:
    """Return what became of runs in PostgreSQL: commits fail, connections are lost, it is restarted."""
    server = Server(bin_folder)

    def execute(statement: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(statement)

    def lost_connections() -> Callable[[], None]:
        execute(_DISCONNECT)
        return lambda: None

    def restart() -> Callable[[], None]:
        server.halt()
        return server.start

    try:
        open_store(server.url).close()  # makes the tables
        with serving(server.url) as port:
            execute(_FAILING_COMMITS)  # a fourth of all transactions fails when it is committed
            kinds = (lost_connections, lost_connections, lost_connections, restart)
            with outages(*kinds, up=1.0, down=0.05) as counts:
                seen = [asyncio.run(measured(port, f"run-{k}")) for k in range(n_runs)]
            execute("DROP FUNCTION now_and_then CASCADE")
            verdicts = [judged(server.url, f"run-{k}", one) for k, one in enumerate(seen)]
    finally:
        server.stop()
    return verdicts, counts


# --- figures ----------------------------------------------------------------------------------------------


def row(name: str, verdicts: list[Verdict], counts: Counter[str]) -> str:
    """Return a line of the table."""
    kinds = ", ".join(f"{n:,} x {kind.replace('_', ' ')}" for kind, n in sorted(counts.items()))
    cells = [
        len(verdicts),
        sum(one.refused for one in verdicts),
        sum(one.acknowledged for one in verdicts),
        sum(one.lost for one in verdicts),
        sum(one.lost_conflicts for one in verdicts),
        sum(one.trouble != "" for one in verdicts),
        sum(one.is_same for one in verdicts),
    ]
    return f"| {' | '.join((name, kinds, *(f'{cell:,}' for cell in cells)))} |"


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description="Let stores fail while clients ask and tell.")
    parser.add_argument("--disk", type=int, default=20, metavar="N", help="runs on a disk that fills up")
    parser.add_argument("--postgres", type=int, default=10, metavar="N", help="runs on PostgreSQL")
    parser.add_argument("--folder", type=Path, help="measure on the disk of this folder, and print JSON")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.folder is not None:
        verdicts, counts = on_a_full_disk(given.disk, given.folder)
        print(json.dumps([[asdict(one) for one in verdicts], counts]))
        return
    lines = [
        "# Stores that fail",
        "",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}. "
        f"{CLIENTS} clients of `shortlist serve`, runs of {ARMS} arms by {STRATEGY}. Clients retry "
        f"what was refused; most of them tell everything twice at the same time, the others contradict some "
        f"answers after they were acknowledged. On PostgreSQL a fourth of all commits fails as well.",
        "",
        "Targets: nothing lost, no run unreadable, and the same result, bit for bit, in every run.",
        "",
        "| store | outages | runs | requests refused | answers acknowledged | of these lost "
        "| conflicts lost | runs unreadable | same result as undisturbed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    found, kinds = programs(), dict[str, Callable[[], Figures]]()
    if given.disk and can_mount():
        kinds["SQLite"] = lambda: on_a_small_disk(given.disk)
    if given.postgres and found is not None:
        kinds["PostgreSQL"] = lambda: on_postgres(given.postgres, found)
    for name, measure in kinds.items():
        verdicts, counts = measure()
        lines.append(row(name, verdicts, counts))
        print(lines[-1], *(one.trouble for one in verdicts if one.trouble), sep="\n", flush=True)
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
