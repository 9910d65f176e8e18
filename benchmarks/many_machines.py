"""A hundred thousand arms on a Dask cluster, of which a worker is killed: the same answer, in little memory.

`python -m benchmarks.many_machines` starts a scheduler and 4 workers, each a process of its own, and finds
the fastest of 100,949 flow lines (`examples/flow_line.py`, R = 60) with them. In the first round it kills a
worker. The answer must be bit for bit the one of a run without Dask. Figures go to
benchmarks/results/many-machines.md. Some minutes on two cores.
"""

import argparse
import importlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import distributed
import numpy as np
from examples import flow_line

import shortlist as sl

RESULTS = Path(__file__).parent / "results" / "many-machines.md"
WORKERS, SIZE, EPSILON = 4, 60, 2.74e-4
MOST = 500  # MB of the scheduler


@cache
def simulation(size: int) -> flow_line.OnCpu:
    """Return the simulation of all designs of a size; a worker makes it once, so it need not be sent."""
    return flow_line.OnCpu(flow_line.designs(size))


def measure(size: int, arms: Any, counts: Any, rng: np.random.Generator) -> sl.Summary:
    """Return means and sample variances of fresh replications."""
    return simulation(size)(arms, counts, rng)


@contextmanager
def cluster(n_workers: int) -> Iterator[tuple[distributed.Client, int]]:
    """Yield a client of a new cluster, and the id of the scheduler's process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        start = [sys.executable, "-m", "dask"]
        quiet: dict[str, Any] = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "cwd": Path.cwd(),
        }
        own = ["--scheduler-file", str(file), "--no-dashboard"]
        scheduler = subprocess.Popen([*start, "scheduler", *own, "--port", "0"], **quiet)
        workers = subprocess.Popen(
            [*start, "worker", *own, "--nworkers", str(n_workers), "--nthreads", "1"], **quiet
        )
        try:
            while not file.exists():
                time.sleep(0.1)
            with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
                client.wait_for_workers(n_workers, timeout=300)
                yield client, scheduler.pid
        finally:
            for process in (workers, scheduler):
                process.terminate()
                process.wait()


def megabytes(pid: int, what: str = "VmHWM") -> float:
    """Return the most memory that a process has had so far."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(what)), 0.0)


def run(size: int, epsilon: float, executor: Any = None, kill: int | None = None) -> tuple[sl.Result, float]:
    """Return the result of a run, and its seconds; kill a process after a third of the first round."""
    n, killed = len(flow_line.designs(size)), list[int]()

    def progress(session: sl.Session) -> None:
        if kill is not None and not killed and session.n_pulls > 2 * n:
            os.kill(kill, signal.SIGKILL)
            killed.append(kill)

    question = sl.Problem(m=1, epsilon=epsilon, delta=0.05, n=n, rewards=sl.Gaussian(), goal="minimise")
    start = time.perf_counter()
    module = importlib.import_module("benchmarks.many_machines")  # workers cannot import from `__main__`
    source = sl.vectorised(partial(module.measure, size))
    result = sl.select(source, question, seed=1, turns=1, executor=executor, progress=progress)
    assert kill is None or killed, "the run ended before a worker was killed"
    return result, time.perf_counter() - start


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description="Measure a run of many arms on a Dask cluster.")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    given = parser.parse_args()
    with cluster(WORKERS) as (client, scheduler):
        before = megabytes(scheduler)
        victim, *others = client.run(os.getpid).values()
        there, seconds = run(given.size, given.epsilon, client, victim)
        client.wait_for_workers(WORKERS, timeout=300)
        most, of_worker = megabytes(scheduler), max(map(megabytes, others))
    here, alone = run(given.size, given.epsilon)
    is_same = there.indices.tolist() == here.indices.tolist() and there.n_pulls == here.n_pulls
    is_same = is_same and there.arms.means.tolist() == here.arms.means.tolist()
    every = flow_line.designs(given.size)
    n = len(every)
    text = f"""# Many machines

The fastest of {n:,} flow lines (`examples/flow_line.py`), epsilon {given.epsilon:g}, delta 0.05, unknown
variances: {there.n_pulls:,} pulls in {there.n_rounds} rounds by {there.strategy}, seed 1. A Dask scheduler
and {WORKERS} workers, each a process of its own, on one machine; a worker is killed in the first round.
Python {platform.python_version()}, NumPy {np.__version__}, Dask {distributed.__version__}, {os.cpu_count()}
processors, load {os.getloadavg()[0]:.1f} at the end. Seconds are for comparison only.

| what | figure | target |
|---|---|---|
| certified | {there.guarantee is not None} | True |
| bit for bit the answer, means and pulls of a run without Dask | {is_same} | True |
| most memory of the scheduler | {most:,.0f} MB ({before:,.0f} MB before the run) | {MOST} MB or less |
| most memory of a worker | {of_worker:,.0f} MB | |
| most memory of the program that decides | {megabytes(os.getpid()):,.0f} MB | |
| seconds with Dask | {seconds:,.0f} | |
| seconds without | {alone:,.0f} | |
"""
    print(text)
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
