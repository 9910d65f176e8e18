"""What measuring with workers costs, and how much faster two of them are (`make bench`).

A vectorised function that draws every reward is run over 10,000 arms: the whole run should take at most twice
as long as the function itself. A measurement of 10 milliseconds, computing or waiting, is made by two
processes: that should be at least 1.8 times as fast as by one, if as many processors are free; beside it
stands what the same computation gains without Shortlist. Figures go to benchmarks/results/workers.md.
"""

import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl

RESULTS = Path(__file__).parent / "results" / "workers.md"
ARMS, CALLS, SECONDS, REPEATS = 10_000, 200, 0.01, 3
SPENT = [0.0]


def trivial(_arms: Any, counts: Any, rng: np.random.Generator) -> Any:
    """Return the mean of Gaussian rewards, every one of them drawn, and note the time that took."""
    start = time.perf_counter()
    rewards = rng.standard_normal(int(counts.sum()))
    means = np.add.reduceat(rewards, np.cumsum(counts) - counts) / counts
    SPENT[0] += time.perf_counter() - start
    return means


def computing(_arm: int, count: int, _rng: np.random.Generator) -> list[float]:
    """Return rewards after 10 milliseconds of this process's own computing time."""
    stop = time.process_time() + SECONDS
    while time.process_time() < stop:
        pass
    return [0.0] * count


def waiting(_arm: int, count: int, _rng: np.random.Generator) -> list[float]:
    """Return rewards after 10 milliseconds of waiting."""
    time.sleep(SECONDS)
    return [0.0] * count


def overhead(strategy: str) -> tuple[int, int, float, float]:
    """Return pulls, rounds, seconds of a run over many arms, and those in its function; the best of some."""
    problem = sl.Problem(m=10, epsilon=0.25, delta=0.05, variances=np.ones(ARMS))
    found = []
    for _ in range(REPEATS):
        SPENT[0] = 0.0
        start = time.perf_counter()
        result = sl.select(sl.vectorised(trivial), problem, strategy)
        found.append((result.n_pulls, result.n_rounds, time.perf_counter() - start, SPENT[0]))
    return min(found, key=lambda row: row[2] / row[3])


def scaling(measure: Callable[..., Any], executor: ProcessPoolExecutor) -> tuple[float, float]:
    """Return the seconds of a round of calls by one process, and by the executor's; the best of some."""
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.05, variances=np.ones(CALLS))

    def took(**options: Any) -> float:
        start = time.perf_counter()
        sl.select(measure, problem, "wnelim", **options)
        return time.perf_counter() - start

    return min(took() for _ in range(REPEATS)), min(took(executor=executor) for _ in range(REPEATS))


def repeated(measure: Callable[..., Any], times: int) -> None:
    """Make a measurement so many times."""
    for _ in range(times):
        measure(0, 1, None)


def bare(measure: Callable[..., Any], executor: ProcessPoolExecutor) -> float:
    """Return how much faster two processes are if each just makes half the calls; the best of some."""

    def gain() -> float:
        start = time.perf_counter()
        repeated(measure, CALLS)
        middle = time.perf_counter()
        for future in [executor.submit(repeated, measure, CALLS // 2) for _ in range(2)]:
            future.result()
        return (middle - start) / (time.perf_counter() - middle)

    return max(gain() for _ in range(REPEATS))


def main() -> None:
    """Measure and write the figures."""
    lines = [
        "# Scheduler with workers",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, {os.cpu_count()} "
        f"processors, load {os.getloadavg()[0]:.1f} at the start; the best of {REPEATS} runs. Seconds are "
        "for comparison only.",
        "",
        f"A vectorised function that draws every reward, {ARMS:,} arms, one thread (target: 2 or less).",
        "In a race, which has many rounds, about half of the rest is the strategy deciding (by a profile):",
        "",
        "| strategy | pulls | rounds | seconds | in the function | times |",
        "|---|---|---|---|---|---|",
    ]
    for strategy in ("wnelim", "single-stage", "race"):
        pulls, rounds, whole, own = overhead(strategy)
        row = f"| {strategy} | {pulls:,} | {rounds} | {whole:.2f} | {own:.2f} | {whole / own:.2f} |"
        lines.append(row)
        print(row, flush=True)
    lines += [
        "",
        f"{CALLS} calls of {1000 * SECONDS:.0f} ms each, two processes (target: at least 1.8 times as fast):",
        "",
        "| measurement | seconds, one process | seconds, two | times as fast | without Shortlist |",
        "|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(2) as executor:
        executor.submit(os.getpid).result()
        for name, measure in (("computing", computing), ("waiting", waiting)):
            one, two = scaling(measure, executor)
            row = f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} | {bare(measure, executor):.2f} |"
            lines.append(row)
            print(lines[-1], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
