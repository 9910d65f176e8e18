"""What the server bears: 200 clients that ask and tell at once, with and without somebody who watches.

All clients are on this machine, beside the server, and answer at once: so they are as many as a server will
ever meet, on half the machine that it will have. After that the log is read: every answer that was
acknowledged must be there, as it was told and once; and none that was not told. Figures go to
benchmarks/results/server.md (`make bench`).

`python -m benchmarks.server --many` is a whole run of 100,000 arms with unknown variances by 200 clients, who
ask for some hundred tickets at a time. Its figures go to benchmarks/results/server-many-arms.md.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import resource
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.session.sheet_format import ticket_text
from shortlist.store import Began, Told, open_store

RESULTS = Path(__file__).parent / "results" / "server.md"
CLIENTS, SECONDS, PHASES = 200, 60.0, 12
ARMS = 2_000
QUESTION = {"m": 10, "epsilon": 0.5, "delta": 0.05, "variances": [1.0] * ARMS}
MANY, TICKETS = 100_000, 250  # arms, and tickets per request
MANY_QUESTION = {"m": 1, "epsilon": 0.5, "delta": 0.05, "n": MANY, "noise": "gaussian-unknown"}
MANY_RESULTS = RESULTS.with_name("server-many-arms.md")


class Connection:
    """A connection that stays open; requests go over it one after the other."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and what was answered."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        status = int((await reader.readline()).split()[1])
        length = 0
        while line := (await reader.readline()).strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return status, json.loads(await reader.readexactly(length))

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


@dataclass
class Seen:
    """What the clients have seen."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {"ask": [], "tell": []})
    statuses: Counter[int] = field(default_factory=Counter)
    answers: dict[str, float] = field(default_factory=dict)  # by ticket: what was acknowledged
    done: list[float] = field(default_factory=list)  # when each answer was acknowledged
    runs: list[str] = field(default_factory=list)


async def client(number: int, port: int, seen: Seen, end: float) -> None:
    """Ask for a ticket and tell it, over and over; go on to the next run when one has ended."""
    connection, worker = Connection(port), f"client-{number}"

    async def timed(what: str, body: Any) -> Any:
        start = time.perf_counter()
        status, answer = await connection.send("POST", f"/runs/{run}/{what}", {"worker": worker} | body)
        seen.seconds[what].append(time.perf_counter() - start)
        seen.statuses[status] += 1
        return answer

    for which in itertools.count():
        run = f"run-{which}"
        if which == len(seen.runs):
            seen.runs.append(run)
        await connection.send("POST", "/runs", {"name": run, "question": QUESTION, "strategy": "race"})
        while time.monotonic() < end:
            asked = await timed("ask", {"limit": 1, "lease": 600.0})
            if asked["is_done"]:
                break
            if not asked["tickets"]:
                await asyncio.sleep(0.05)  # until the others have ended the round
                continue
            (ticket,) = asked["tickets"]
            rng = np.random.default_rng(ticket["seed"])
            mean = ticket["arm"] / ARMS + float(rng.normal()) / ticket["pulls"] ** 0.5
            told = await timed("tell", {"answers": [{"ticket": ticket["ticket"], "mean": mean}]})
            if told.get("taken") == 1:
                seen.answers[ticket["ticket"]] = mean
                seen.done.append(time.monotonic())
        else:
            return


async def many_client(number: int, port: int, seen: Seen, means: FloatArray) -> None:
    """Ask for many tickets and tell them, over and over, until the run is done."""
    connection, worker = Connection(port), f"client-{number}"

    async def timed(what: str, body: Any) -> Any:
        start = time.perf_counter()
        status, answer = await connection.send("POST", f"/runs/many/{what}", {"worker": worker} | body)
        seen.seconds[what].append(time.perf_counter() - start)
        seen.statuses[status] += 1
        return answer

    while not (asked := await timed("ask", {"limit": TICKETS, "lease": 600.0}))["is_done"]:
        if not (tickets := asked["tickets"]):
            await asyncio.sleep(1.0)  # until the others have ended the round
            continue
        rng = np.random.default_rng(tickets[0]["seed"])
        counts = np.array([ticket["pulls"] for ticket in tickets])
        found = means[[ticket["arm"] for ticket in tickets]] + rng.normal(size=len(counts)) / counts**0.5
        spreads = rng.chisquare(counts - 1) / (counts - 1)
        rows = zip(tickets, counts.tolist(), found.tolist(), spreads.tolist(), strict=True)
        answers = [
            {"ticket": ticket["ticket"], "count": count, "mean": mean, "variance": spread}
            for ticket, count, mean, spread in rows
        ]
        if (await timed("tell", {"answers": answers})).get("taken") == len(answers):
            seen.answers |= {one["ticket"]: one["mean"] for one in answers}


async def many(port: int) -> tuple[Seen, Any, float]:
    """Let all clients work on one run; return what they saw, the run at its end, and the seconds."""
    seen, means = Seen(), np.random.default_rng(7).normal(size=MANY)
    begin = {"name": "many", "question": MANY_QUESTION, "seed": 1}
    assert (await Connection(port).send("POST", "/runs", begin))[0] in (200, 201)
    start = time.monotonic()
    await asyncio.gather(*(many_client(k, port, seen, means) for k in range(CLIENTS)))
    _, run = await Connection(port).send("GET", "/runs/many.json")
    return seen, run, time.monotonic() - start


async def reader(port: int, seen: Seen, counts: Counter[str]) -> None:
    """Watch the run that is under way, as an open page does, and load it anew every second."""
    streams, connection = {}, Connection(port)
    try:
        while True:
            run = seen.runs[-1]
            if run not in streams:
                streams[run] = asyncio.create_task(watch(port, run, counts))
            status, _ = await connection.send("GET", f"/runs/{run}.json")
            counts[f"loaded {status}"] += 1
            await asyncio.sleep(1.0)
    finally:
        for task in streams.values():
            task.cancel()


async def watch(port: int, run: str, counts: Counter[str]) -> None:
    """Take in the events of a run."""
    stream, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.write(f"GET /runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    try:
        while line := await stream.readline():
            counts["events"] += line.startswith(b"event: run")
    finally:
        writer.close()


async def load(port: int) -> tuple[Seen, list[tuple[float, bool]], Counter[str]]:
    """Let all clients work; return what they saw, answers a second by phase, and what a reader saw."""
    seen, phases, counts = Seen(), list[tuple[float, bool]](), Counter[str]()
    end = time.monotonic() + SECONDS + 5.0
    clients = [asyncio.create_task(client(k, port, seen, end)) for k in range(CLIENTS)]
    await asyncio.sleep(5.0)  # until all are at work
    watching: asyncio.Task[None] | None = None
    for phase in range(PHASES):
        if is_watched := phase % 4 in (1, 2):  # so that a slow change of the machine falls on both alike
            watching = watching or asyncio.create_task(reader(port, seen, counts))
        elif watching is not None:
            watching.cancel()
            watching = None
        start = time.monotonic()
        await asyncio.sleep(SECONDS / PHASES)
        now = time.monotonic()
        phases.append((sum(start <= at < now for at in seen.done) / (now - start), is_watched))
    if watching is not None:
        watching.cancel()
    await asyncio.gather(*clients)
    return seen, phases, counts


def audit(path: Path, seen: Seen) -> tuple[int, int, int]:
    """Return how many acknowledged answers are not in the log as told, are there twice, or came unasked."""
    logged: Counter[tuple[str, float]] = Counter()
    store = open_store(path, read_only=True)
    for run in store.runs():
        code = ""
        for record in store.read(run):
            event = record.event
            if isinstance(event, Began):
                code = event.code
            elif isinstance(event, Told):
                for arm, mean in zip(event.arms.tolist(), event.means.tolist(), strict=True):
                    logged[ticket_text(code, event.round, arm), mean] += 1
    lost = sum((ticket, mean) not in logged for ticket, mean in seen.answers.items())
    tickets = Counter(ticket for ticket, _ in logged.elements())
    return lost, sum(count > 1 for count in tickets.values()), len(tickets) - len(seen.answers)


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Yield the port of a server with a new store, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", "--store", str(folder / "runs.db"), "--port", str(port), "--rate", "100000"]
    server = subprocess.Popen([sys.executable, "-m", "shortlist", *words], stdout=subprocess.DEVNULL)
    try:
        while True:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port, server
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description="Measure what the server bears.")
    parser.add_argument("--many", action="store_true", help=f"a whole run of {MANY:,} arms instead")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    with tempfile.TemporaryDirectory() as folder:
        with served(Path(folder)) as (port, server):
            if given.many:
                found, run, seconds = asyncio.run(many(port))
            else:
                seen, phases, counts = asyncio.run(load(port))
            usage = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
            times = Path(f"/proc/{server.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        audited = audit(Path(folder, "runs.db"), found if given.many else seen)
    if given.many:
        spent = sum(map(int, times[11:13])) / os.sysconf("SC_CLK_TCK")
        text = written_many(found, run, (seconds, spent), audited, usage)
    else:
        text = written(seen, phases, counts, audited, usage)
    print(text)
    (given.output or (MANY_RESULTS if given.many else RESULTS)).write_text(text, encoding="utf-8")


def written_many(
    seen: Seen, run: Any, seconds: tuple[float, float], audited: tuple[int, int, int], usage: str
) -> str:
    """Return the figures of a whole run as a page."""
    lost, double, unasked = audited
    return "\n".join(
        [
            f"# {MANY:,} arms over HTTP",
            "",
            f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}, "
            f"{CLIENTS} clients on the same machine, each with up to {TICKETS} tickets at a time, one run of "
            f"{MANY:,} arms with unknown variances, `synchronous = FULL`. Seconds are for comparison only.",
            "",
            *_request_rows(seen),
            "",
            "| what | figure | target |",
            "|---|---|---|",
            f"| state of the run | {run['label']} | Certified |",
            f"| pulls | {run['n_pulls']:,} in {run['n_rounds']} rounds | |",
            f"| other statuses than 200 | {_other_statuses(seen) or 'none'} | none of 500 or more |",
            f"| answers acknowledged | {len(seen.answers):,} | |",
            f"| acknowledged, but not in the log as told | {lost} | 0 |",
            f"| in the log twice | {double} | 0 |",
            f"| in the log, but never acknowledged | {unasked} | 0 |",
            f"| seconds | {seconds[0]:,.0f} | |",
            f"| seconds of the server's processor time | {seconds[1]:,.0f} | |",
            f"| most memory of the server | {_peak(usage):,.0f} MB | |",
            "",
        ]
    )


def written(
    seen: Seen,
    phases: list[tuple[float, bool]],
    counts: Counter[str],
    audited: tuple[int, int, int],
    usage: str,
) -> str:
    """Return the figures as a page."""
    alone = np.array([rate for rate, is_watched in phases if not is_watched])
    watched = np.array([rate for rate, is_watched in phases if is_watched])
    good, bad = seen.statuses[200], _other_statuses(seen)
    lines = [
        "# The server under load",
        "",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}, "
        f"{CLIENTS} clients on the same machine for {SECONDS:.0f} seconds, each with one ticket at a time, "
        f"runs of {ARMS:,} arms by race, `synchronous = FULL`. Seconds are for comparison only.",
        "",
        *_request_rows(seen),
    ]
    lost, double, unasked = audited
    ratio = float(np.mean(watched) / np.mean(alone))
    lines += [
        "",
        "| what | figure | target |",
        "|---|---|---|",
        f"| requests answered with 200 | {good:,} | |",
        f"| other statuses | {bad or 'none'} | none of 500 or more |",
        f"| answers acknowledged | {len(seen.answers):,} | |",
        f"| acknowledged, but not in the log as told | {lost} | 0 |",
        f"| in the log twice | {double} | 0 |",
        f"| in the log, but never acknowledged | {unasked} | 0 |",
        f"| answers a second, nobody watching | {alone.mean():,.0f} ({_spread(alone)}) | |",
        f"| answers a second, one page open | {watched.mean():,.0f} ({_spread(watched)}) | |",
        f"| the second by the first | {ratio:.2f} | 0.9 or more |",
        f"| events sent to the open page | {counts['events']:,} | |",
        f"| most memory of the server | {_peak(usage):,.0f} MB | |",
        "",
    ]
    return "\n".join(lines)


def _request_rows(seen: Seen) -> list[str]:
    """Return a table of how long requests took."""
    rows = ["| request | number | median | 95 % | 99 % | longest |", "|---|---|---|---|---|---|"]
    for what, seconds in seen.seconds.items():
        low, high, most = (f"{1e3 * float(np.quantile(seconds, q)):,.0f} ms" for q in (0.5, 0.95, 0.99))
        longest = f"{1e3 * max(seconds):,.0f} ms"
        rows.append(f"| {what} | {len(seconds):,} | {low} | {high} | {most} | {longest} |")
    return rows


def _other_statuses(seen: Seen) -> dict[int, int]:
    return {status: n for status, n in seen.statuses.items() if status != 200}


def _peak(usage: str) -> float:
    """Return the most memory of a process in megabytes."""
    return next((int(line.split()[1]) / 1024 for line in usage.splitlines() if line.startswith("VmHWM")), 0.0)


def _spread(rates: FloatArray) -> str:
    return f"{rates.min():,.0f} to {rates.max():,.0f} in {len(rates)} phases"


if __name__ == "__main__":
    main()
