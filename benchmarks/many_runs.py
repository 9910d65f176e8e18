"""A store with many runs, and a server with large ones: what beginning, listing and looking take.

Beginning a run is compared with a store that has no other runs. A server lists all runs for the first time,
and again; then it is asked for a hundred runs of 100,000 arms, one after the other, and its memory is
measured. Figures go to benchmarks/results/many-runs.md: `.venv/bin/python -m benchmarks.many_runs --write`.
"""

import argparse
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.store import MemoryStore, open_store

RESULTS = Path(__file__).parent / "results" / "many-runs.md"
RUNS, TRIALS = 2_000, 40
LARGE, ARMS = 100, 100_000
BEFORE = {
    "begin a run, no others in the store": "7.9 ms",
    "begin a run beside 2,000": "996 ms, 126 times as long",
    "list 2,000 runs: `shortlist list`": "11.46 s",
    "list 2,000 runs: the page, the first time": "0.43 s",
    "list 2,000 runs: the page, again": "0.04 s",
    "list 2,000 runs: `/index.json`, all runs, the first time": "14.99 s",
    "list 2,000 runs: `/index.json`, all runs, again": "22.63 s",
    "server's memory before it looks at a run": "87 MB",
    "after one run of 100,000 arms in its fourth round": "133 MB",
    "after 100 such runs": "3,242 MB",
}
"""What version 0.1.0 took, on the machine of the committed figures."""
QUESTION = sl.Problem(m=3, epsilon=0.3, delta=0.05, variances=[0.25] * 50)


def template(problem: sl.Problem, rounds: int) -> MemoryStore:
    """Return a store with one run, measured for so many rounds at most."""
    store, rng = MemoryStore(), np.random.default_rng(0)
    session = sl.Session(problem, "level-race", store=store)
    while len(tickets := session.ask()) and tickets.round < rounds:
        means = np.linspace(0.9, 0.1, problem.n)[tickets.arms] + rng.normal(0, 0.02, len(tickets))
        for part in np.array_split(np.arange(len(tickets)), 5 if problem.n < 1000 else 1):
            session.tell(tickets.take(part), means=means[part], worker="rig")
    return store


def fill(path: Path, n_runs: int, *templates: MemoryStore) -> None:
    """Put copies of runs into a store."""
    with closing(open_store(path)) as store:
        for number in range(n_runs):
            store.restore(f"run-{number}", templates[number % len(templates)].read("main"))


def seconds(do: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def beginnings(paths: list[Path]) -> list[float]:
    """Return how long it takes to begin a run in each store: the median, in turns."""
    stores = [open_store(path) for path in paths]
    taken: list[list[float]] = [[] for _ in stores]
    for trial in range(TRIALS):
        for store, some in zip(stores, taken, strict=True):
            name = f"new-{trial}"
            some.append(seconds(partial(sl.Session, QUESTION, "race", store=store, name=name)))
            store.remove(name)
    for store in stores:
        store.close()
    return [statistics.median(some) for some in taken]


class Served:
    """A server of a store."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        found = re.search(r"http://[^ ;]+", process.stdout.readline())
        assert found
        self.url = found[0].rstrip(".")

    def get(self, path: str) -> bytes:
        """Return what is answered."""
        with urllib.request.urlopen(self.url + path, timeout=600) as reply:
            return bytes(reply.read())

    @property
    def megabytes(self) -> float:
        """The memory that it takes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024


@contextmanager
def served(path: Path) -> Iterator[Served]:
    """Yield a server of a store."""
    command = [sys.executable, "-u", "-m", "shortlist", "serve", "--store", str(path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Served(process)
    finally:
        process.terminate()
        process.wait(timeout=60)


def lists(path: Path) -> dict[str, float]:
    """Return how long lists of all runs take, by what is asked for."""
    command = [sys.executable, "-m", "shortlist", "list", "--json", "--store", str(path)]
    found = {"`shortlist list`": seconds(lambda: subprocess.run(command, check=True, capture_output=True))}
    with served(path) as server:
        server.get("/login")
        for what, address in {"the page": "/", "`/index.json`, all runs": "/index.json"}.items():
            found[f"{what}, the first time"] = seconds(partial(server.get, address))
            found[f"{what}, again"] = seconds(partial(server.get, address))
    return found


def memory(path: Path, n_runs: int) -> tuple[float, float, float]:
    """Return the memory of a server before it has looked at large runs, after one, and after all."""
    with served(path) as server:
        server.get("/index.json?page=1000000")
        taken = [server.megabytes]
        for number in range(n_runs):
            server.get(f"/runs/run-{number}/round.json?known=3")
            if number in (0, n_runs - 1):
                taken.append(server.megabytes)
    return taken[0], taken[1], taken[-1]


def main() -> None:
    """Measure, and print or write a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", help=f"write {RESULTS.name}, too")
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--large", type=int, default=LARGE)
    options.add_argument("--arms", type=int, default=ARMS)
    given = options.parse_args()
    large = sl.Problem(m=10, epsilon=0.3, delta=0.05, variances=np.full(given.arms, 0.25))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("empty.db", "many.db", "large.db")]
        fill(paths[0], 0)
        fill(paths[1], given.runs, template(QUESTION, 1), template(QUESTION, 10**9))
        empty, many = beginnings(paths[:2])
        listed = lists(paths[1])
        fill(paths[2], given.large, template(large, 3))
        before, one, all_ = memory(paths[2], given.large)
    taken = {
        "begin a run, no others in the store": f"{1e3 * empty:.1f} ms",
        f"begin a run beside {given.runs:,}": f"{1e3 * many:.1f} ms, {many / empty:.1f} times as long",
        **{f"list {given.runs:,} runs: {what}": f"{one:.2f} s" for what, one in listed.items()},
        "server's memory before it looks at a run": f"{before:,.0f} MB",
        f"after one run of {given.arms:,} arms in its fourth round": f"{one:,.0f} MB",
        f"after {given.large} such runs": f"{all_:,.0f} MB",
    }
    text = "\n".join(
        [
            "# A store with many runs, a server with large ones",
            "",
            f"Python {platform.python_version()}, SQLite. Half of the runs in the list have ended.",
            "",
            "| what | taken | by version 0.1.0 |",
            "|---|---|---|",
            *(f"| {what} | {one} | {BEFORE.get(what, '')} |" for what, one in taken.items()),
            "",
        ]
    )
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
