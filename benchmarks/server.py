"""What the server bears: 200 clients that ask and tell at once, with and without somebody who watches.

All clients are on this machine, beside the server, and answer at once: so they are as many as a server will
ever meet, on half the machine that it will have. After that the log is read: every answer that was
acknowledged must be there, as it was told and once; and none that was not told. Figures go to
benchmarks/results/server.md (`make bench`).
"""

import argparse
import asyncio
import itertools
import json
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

from shortlist.session.sheet_format import ticket_text
from shortlist.store import Began, Told, open_store

RESULTS = Path(__file__).parent / "results" / "server.md"
CLIENTS, SECONDS, PHASES = 200, 60.0, 12
ARMS = 2_000
QUESTION = {"m": 10, "epsilon": 0.5, "delta": 0.05, "variances": [1.0] * ARMS}


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
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    with tempfile.TemporaryDirectory() as folder:
        with served(Path(folder)) as (port, server):
            seen, phases, counts = asyncio.run(load(port))
            usage = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        lost, double, unasked = audit(Path(folder, "runs.db"), seen)
    text = written(seen, phases, counts, (lost, double, unasked), usage)
    print(text)
    given.output.write_text(text, encoding="utf-8")


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
    peak = next((line.split()[1] for line in usage.splitlines() if line.startswith("VmHWM")), "0")
    good, bad = seen.statuses[200], {status: n for status, n in seen.statuses.items() if status != 200}
    lines = [
        "# The server under load",
        "",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}, "
        f"{CLIENTS} clients on the same machine for {SECONDS:.0f} seconds, each with one ticket at a time, "
        f"runs of {ARMS:,} arms by race, `synchronous = FULL`. Seconds are for comparison only.",
        "",
        "| request | number | median | 95 % | 99 % | longest |",
        "|---|---|---|---|---|---|",
    ]
    for what, seconds in seen.seconds.items():
        low, high, most = (f"{1e3 * float(np.quantile(seconds, q)):,.0f} ms" for q in (0.5, 0.95, 0.99))
        longest = f"{1e3 * max(seconds):,.0f} ms"
        lines.append(f"| {what} | {len(seconds):,} | {low} | {high} | {most} | {longest} |")
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
        f"| most memory of the server | {int(peak) / 1024:,.0f} MB | |",
        "",
    ]
    return "\n".join(lines)


def _spread(rates: "np.ndarray[Any, np.dtype[np.float64]]") -> str:
    return f"{rates.min():,.0f} to {rates.max():,.0f} in {len(rates)} phases"


if __name__ == "__main__":
    main()
