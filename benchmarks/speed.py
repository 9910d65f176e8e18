"""Speed and memory of the simulator, as ratios measured in one run (`make bench`).

Three questions: does a run over 33,554,432 arms cost little more than drawing its normals; does it
fit into 8 GiB; do LUCB and UGapE, which move in tiny steps, reach 50,000 pulls per second?
Figures go to benchmarks/results/speed.md.
"""

import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "speed.md"
REPEATS = 5


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def n_normals(problem: sl.Problem, name: str) -> int:
    """Return how many normals a run draws: one for each arm of each batch."""
    strategy = strategy_named(name)
    state, drawn = strategy.init(problem, ()), 0
    while not strategy.verdict(state).is_final:
        batch = strategy.ask(state)
        drawn += len(batch.arms)
        state = strategy.tell(state, Moments(np.zeros(len(batch.arms))))
    return drawn


def large_run(name: str) -> dict[str, float]:
    """Compare one simulated run over illustrative(5) with drawing as many normals, alternately."""
    instance = sl.instances.illustrative(5)
    drawn = n_normals(instance.problem, name)
    plain, ours = [], []
    for _ in range(REPEATS):
        plain.append(seconds(lambda: np.random.default_rng(0).standard_normal(drawn)))
        ours.append(seconds(lambda: sl.simulate(instance.problem, instance.means, name, replications=1)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "normals": drawn,
        "numpy best": min(plain),
        "numpy median": statistics.median(plain),
        "ours best": min(ours),
        "ours median": statistics.median(ours),
        "peak GiB": peak,
    }


def steps(name: str, m: int) -> float:
    """Return the pulls per second of a strategy of small steps at n = 1,000, over 100 replications."""
    problem = sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=np.ones(1000))
    means = sl.instances.slippage(problem).means
    start = time.perf_counter()
    outcome = sl.simulate(problem, means, name, replications=100, budget=20_000)
    return float(outcome.pulls.sum()) / (time.perf_counter() - start)


def main() -> None:
    """Measure everything, each large run in a process of its own, and write the figures."""
    if len(sys.argv) > 1:
        print(json.dumps(large_run(sys.argv[1])))
        return
    lines = [
        "# Speed",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}. "
        f"Best and median of {REPEATS} alternating repeats in one process; seconds are for comparison only.",
        "",
        "## One run over 33,554,432 arms, `illustrative(5)`",
        "",
        "| strategy | normals drawn | NumPy draws them (best / median s) | simulate (best / median s) "
        "| ratio of bests | ratio of medians | peak memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ("wnelim", "vmedelim"):
        command = [sys.executable, "-m", "benchmarks.speed", name]
        got = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        lines.append(
            f"| {name} | {got['normals']:,} | {got['numpy best']:.2f} / {got['numpy median']:.2f} "
            f"| {got['ours best']:.2f} / {got['ours median']:.2f} "
            f"| {got['ours best'] / got['numpy best']:.2f} | {got['ours median'] / got['numpy median']:.2f} "
            f"| {got['peak GiB']:.2f} GiB |"
        )
        print(lines[-1], flush=True)
    lines += ["", "## Pulls per second at n = 1,000, 100 replications", ""]
    lines += ["| strategy | m | pulls per second |", "|---|---|---|"]
    for name in ("lucb", "ugape"):
        for m in (1, 5, 50):
            lines.append(f"| {name} | {m} | {steps(name, m):,.0f} |")
            print(lines[-1], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
