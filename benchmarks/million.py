"""What a run over a million arms takes: deciding, telling, resuming and memory (`make bench`).

Every row has a process of its own. Times are of the processor, so that other programs change them little; a
ratio compares two times of one process. Figures go to benchmarks/results/million.md.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.strategies import strategy_for
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "million.md"
MILLION = 1_000_000
SIZES = (57_624, 1_016_127)  # of the field's large benchmarks
SPENT = [0.0]  # seconds in the function that measures


def seconds(do: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and its result."""
    start = time.process_time()
    found = do()
    return time.process_time() - start, found


def race(n: int) -> dict[str, float]:
    """Return what a simulated race takes, and drawing as many normals."""
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=np.ones(n))
    means = sl.instances.slippage(problem).means
    small = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=np.ones(9))
    sl.simulate(small, np.zeros(9), "race", replications=1)  # imports
    took, _ = seconds(lambda: sl.simulate(problem, means, "race", replications=1, seed=1))
    drawn = race_alone(problem, means)
    own, _ = seconds(lambda: np.random.default_rng(0).standard_normal(drawn))
    return {"race": took, "its normals": own, "ratio": took / own}


def overhead(n: int, block: int | None = 4096) -> dict[str, float]:
    """Return what `select` takes with a function that draws every reward; the best of five."""

    def measure(_arms: IntArray, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        start = time.process_time()
        rewards = rng.standard_normal(int(counts.sum()))
        means = np.add.reduceat(rewards, np.cumsum(counts) - counts) / counts
        SPENT[0] += time.process_time() - start
        return means

    problem = sl.Problem(m=10, epsilon=0.25, delta=0.05, variances=np.ones(n))
    found = []
    for _ in range(5):
        SPENT[0] = 0.0
        took, _ = seconds(lambda: sl.select(sl.vectorised(measure, block), problem, "race"))
        alone, _ = seconds(lambda: race_alone(problem, np.zeros(n)))
        found.append((took / SPENT[0], took, SPENT[0], alone))
    ratio, took, own, alone = min(found)
    return {"select": took, "the function": own, "ratio": ratio, "deciding alone": alone}


def race_alone(problem: sl.Problem, means: FloatArray) -> int:
    """Run the race alone, without a session; return how many means were drawn."""
    rules, drawn = strategy_for("race", problem), 0
    state, rng = rules.init(problem, ()), np.random.default_rng(np.random.SeedSequence(1, spawn_key=(0,)))
    while not rules.verdict(state).is_final:
        batch = rules.ask(state)
        noise = rng.standard_normal(len(batch.arms)) / np.sqrt(batch.counts)
        state, drawn = rules.tell(state, Moments(means[batch.arms] + noise)), drawn + len(batch.arms)
    return drawn


def telling(n: int) -> dict[str, float]:
    """Return what telling summaries to a stored run takes, one answer, and resuming."""
    rng, found = np.random.default_rng(0), {}
    problem = sl.Problem(m=10, epsilon=0.5, delta=0.05, n=n, rewards=sl.Gaussian())
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        with sl.Session(problem, store=store) as session:
            tickets = session.ask()
            rows = zip(tickets.counts.tolist(), (-rng.gumbel(size=n)).tolist(), [1.0] * n, strict=True)
            given = [sl.Summary(*row) for row in rows]
            found["one answer"], _ = seconds(lambda: session.tell(tickets[0], given[0]))
            found["a million summaries"], _ = seconds(lambda: session.tell(tickets, given))
            session.ask()
            found["the result"], _ = seconds(lambda: session.result)
        found["resuming"], resumed = seconds(lambda: sl.Session.resume(store))
        resumed.close()
    return found


def limits(n: int) -> dict[str, float]:
    """Return what t-cut-race takes through `select`, and alone, for arms of unequal variances."""
    rng = np.random.default_rng(5)
    means, scales = -rng.gumbel(size=n), np.exp(0.3 * rng.normal(size=n))
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=n, rewards=sl.Gaussian())

    def measure(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> list[FloatArray]:
        start = time.process_time()
        rewards = rng.standard_normal(int(counts.sum())) * np.repeat(scales[arms], counts)
        ends = np.cumsum(counts)
        rewards += np.repeat(means[arms], counts)
        found = [*map(rewards.__getitem__, map(slice, (ends - counts).tolist(), ends.tolist()))]
        SPENT[0] += time.process_time() - start
        return found

    start = time.perf_counter()
    took, result = seconds(lambda: sl.select(sl.vectorised(measure, block=1 << 16), problem, turns=1))
    wall = time.perf_counter() - start
    alone, _ = seconds(lambda: deciding(problem, means, scales))
    return {
        "select": took,
        "of that the function": SPENT[0],
        "deciding and drawing alone": alone,
        "pulls per arm": result.n_pulls / n,
        "wall": wall,
    }


def deciding(problem: sl.Problem, means: FloatArray, scales: FloatArray) -> None:
    """Run the strategy alone, with means and variances drawn from their distributions."""
    rules, rng = strategy_for("t-cut-race", problem), np.random.default_rng(0)
    state = rules.init(problem, ())
    while not rules.verdict(state).is_final:
        batch = rules.ask(state)
        arms, counts = batch.arms, batch.counts
        noise, freedom = rng.standard_normal(len(arms)) / np.sqrt(counts), counts - 1
        spreads = scales[arms] ** 2 * rng.chisquare(freedom) / freedom
        state = rules.tell(state, Moments(means[arms] + scales[arms] * noise, spreads))


def split(found: dict[str, float], calls: str) -> str:
    """Return which parts the time of `select` has."""
    own, deciding = found["the function"], found["deciding alone"]
    session = found["select"] - own - deciding
    return f"{calls}, deciding {deciding / own:.1f}, and tickets, calls and events {session / own:.1f}"


ROWS: dict[str, tuple[Callable[[int], dict[str, float]], int, str]] = {
    "race": (race, MILLION, "a simulated race, slippage, m = 1 (target: ratio at most 8)"),
    "overhead": (overhead, 10_000, "`select`, race, a function that draws every reward (target: ratio 3)"),
    "overhead-one-call": (
        partial(overhead, block=None),
        10_000,
        "the same with `block=None`: one call per round (target: ratio 3)",
    ),
    "telling": (telling, MILLION, "a stored run, unknown variances (targets: 2 s to tell, 5 s to resume)"),
    "limits": (limits, SIZES[0], "t-cut-race through `select`, m = 1"),
    "limits-large": (limits, SIZES[1], "t-cut-race through `select`, m = 1"),
}


def main() -> None:
    """Measure every row and write the figures."""
    if len(sys.argv) > 1:
        measure, n, _ = ROWS[sys.argv[1]]
        found = measure(n)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found | {"GiB": peak}))
        return
    lines = [
        "# A million arms",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, load "
        f"{os.getloadavg()[0]:.1f} at the start. Seconds of the processor, except `wall`, which depends on "
        "what else the machine does; a ratio is of two times of "
        "one process. GiB is the peak memory of the process (target: below 2).",
        "",
        "| what | arms | figures | GiB |",
        "|---|---|---|---|",
    ]
    rest: list[str] = []
    for name, (_, n, what) in ROWS.items():
        command = [sys.executable, "-m", "benchmarks.million", name]
        got = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        peak = got.pop("GiB")
        figures = ", ".join(f"{key} {value:.3g}" for key, value in got.items())
        lines.append(f"| {what} | {n:,} | {figures} | {peak:.2f} |")
        print(lines[-1], flush=True)
        if name.startswith("overhead"):
            rest.append(
                split(got, "in calls of 4,096 arms" if name == "overhead" else "in one call per round")
            )
    lines += ["", f"What `select` takes over 10,000 arms, in units of the function: {'; '.join(rest)}."]
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
