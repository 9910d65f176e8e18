"""Whether a race over a million arms ends in a minute (`make bench`).

The arms are simulated, all but m of them just below the cut. Each run has a process of its own; beside its
time stands that of drawing as many normals. Figures go to benchmarks/results/race.md.
"""

import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "race.md"
SIZES = ((10_000, 1), (10_000, 100), (100_000, 100), (1_000_000, 1), (1_000_000, 100), (1_000_000, 1_000))


def one(n: int, m: int) -> dict[str, float]:
    """Return what one race over n arms took."""
    problem = sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=np.ones(n))
    means = sl.instances.slippage(problem).means
    start = time.perf_counter()
    outcome = sl.simulate(problem, means, "race", replications=1, seed=1)
    took = time.perf_counter() - start
    drawn, rounds = _drawn(problem, means)
    start = time.perf_counter()
    np.random.default_rng(0).standard_normal(drawn)
    return {
        "pulls": float(outcome.pulls[0]),
        "errors": outcome.errors,
        "rounds": rounds,
        "normals": drawn,
        "seconds": took,
        "normals seconds": time.perf_counter() - start,
        "GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _drawn(problem: sl.Problem, means: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[int, int]:
    """Return how many batch means the same race needs, and in how many rounds."""
    rules, rng, drawn, rounds = strategy_named("race"), _generator(), 0, 0
    state = rules.init(problem, ())
    while not rules.verdict(state).is_final:
        batch = rules.ask(state)
        noise = rng.standard_normal(len(batch.arms)) / np.sqrt(batch.counts)
        state = rules.tell(state, Moments(means[batch.arms] + noise))
        drawn, rounds = drawn + len(batch.arms), rounds + 1
    return drawn, rounds


def _generator() -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(1, spawn_key=(0,)))


def main() -> None:
    """Measure every size and write the figures."""
    if len(sys.argv) > 1:
        print(json.dumps(one(int(sys.argv[1]), int(sys.argv[2]))))
        return
    lines = [
        "# Races over many arms",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}. Unit variances, "
        "epsilon 0.1, delta 0.05, slippage; one run each, simulated from end to end. Seconds are for "
        "comparison only; beside them stands how many times as long as drawing its normals the run took.",
        "",
        "| n | m | pulls | average information | rounds | errors | seconds | times | peak memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for n, m in SIZES:
        command = [sys.executable, "-m", "benchmarks.race", str(n), str(m)]
        got = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        lines.append(
            f"| {n:,} | {m:,} | {got['pulls']:,.0f} | {got['pulls'] * 0.005 / n:.2f} | {got['rounds']:.0f} "
            f"| {got['errors']:.0f} | {got['seconds']:.1f} | {got['seconds'] / got['normals seconds']:.0f} "
            f"| {got['GiB']:.2f} GiB |"
        )
        print(lines[-1], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
