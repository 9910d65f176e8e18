"""What planning and lower bounds take, each in a process of its own (`make bench`).

The question that matters: is the plan for a million arms with log-uniform variances there within 3
seconds and 1 GiB? Each figure is compared with sorting as many numbers in the same process. Figures go
to benchmarks/results/plan.md.
"""

import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import shortlist as sl

RESULTS = Path(__file__).parent / "results" / "plan.md"


def log_uniform(n: int, m: int) -> sl.Problem:
    """Return a problem whose variances span four powers of ten."""
    variances = np.exp(np.random.default_rng(0).uniform(np.log(0.01), np.log(100.0), n))
    return sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=variances)


def exact_dual(problem: sl.Problem) -> object:
    """Solve the paper's dual program, with whatever has to be loaded for it."""
    from shortlist.bounds.exact import exact_dual as solved  # noqa: PLC0415

    return solved(problem, most=10**6)


def four_classes(m: int) -> sl.Problem:
    """Return a problem of about a hundred thousand arms with four different variances."""
    variances = np.repeat([0.1, 1.0, 5.0, 30.0], [100_000, 1_000, 500, 200])
    return sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=variances)


CASES: dict[str, tuple[Callable[[], sl.Problem], Callable[[sl.Problem], object]]] = {
    "plan, 10^6 arms log-uniform, m = 100": (lambda: log_uniform(10**6, 100), sl.plan),
    "lower_bound, 10^6 arms log-uniform, m = 100": (lambda: log_uniform(10**6, 100), sl.lower_bound),
    "lower_bound, 10^5 arms log-uniform, m = 1,000": (lambda: log_uniform(10**5, 1000), sl.lower_bound),
    "lower_bound, 10 arms log-uniform, m = 3": (lambda: log_uniform(10, 3), sl.lower_bound),
    "lower_bound, illustrative(5): 33,554,432 arms": (
        lambda: sl.instances.illustrative(5).problem,
        sl.lower_bound,
    ),
    "plan for a budget, 10^6 arms log-uniform, 10^9 pulls": (
        lambda: log_uniform(10**6, 100),
        lambda problem: sl.plan(problem, 10**9),
    ),
    "exact dual, four variances, m = 20: 1,540 unknowns": (
        lambda: four_classes(20),
        exact_dual,
    ),
    "exact dual, four variances, m = 60: 37,820 unknowns": (
        lambda: four_classes(60),
        exact_dual,
    ),
}


def measured(case: str) -> dict[str, float]:
    """Return the seconds of a first call and of a second one, of a sort, and the peak memory."""
    make, work = CASES[case]
    problems = [make(), make().changed(delta=0.04)]  # bounds of an equal one would come from a cache
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for problem in problems:
        start = time.perf_counter()
        work(problem)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shuffled = np.random.default_rng(0).permutation(problems[0].variances)
    start = time.perf_counter()
    np.argsort(shuffled)
    return {
        "first": times[0],
        "second": times[1],
        "sort": time.perf_counter() - start,
        "before GiB": before / 2**20,
        "peak GiB": peak / 2**20,
    }


def main() -> None:
    """Measure every case in a new process and write the figures."""
    if len(sys.argv) > 1:
        print(json.dumps(measured(sys.argv[1])))
        return
    lines = [
        "# Plans and lower bounds",
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}; one process per "
        "row. The first call includes loading SciPy. The ratio is that of the second call to one sort of the "
        "variances.",
        "",
        "| what | first call, s | second call, s | times a sort | peak memory (before) |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.plan", case]
        got = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        lines.append(
            f"| {case} | {got['first']:.2f} | {got['second']:.2f} | {got['second'] / got['sort']:,.1f} "
            f"| {got['peak GiB']:.2f} GiB ({got['before GiB']:.2f}) |"
        )
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
