"""Measure what the race spends on rewards of which only bounds are known.

`python -m benchmarks.bounded` compares it with the race that assumes the largest variance, 1/4, and with the
race that is told p (1 - p), which no proof allows. The table goes to benchmarks/results/bounded.md.
"""

import argparse
import math
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.simulation import is_wrong
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "bounded.md"
INSTANCES: dict[str, tuple[FloatArray, int, float]] = {
    "6 from .04 to .05": (np.array([0.04, 0.041, 0.042, 0.043, 0.044, 0.05]), 1, 0.005),
    "2: .04, .05": (np.array([0.04, 0.05]), 1, 0.005),
    "2: .45, .55": (np.array([0.45, 0.55]), 1, 0.05),
    "20 from .6 to .95": (np.linspace(0.6, 0.95, 20), 3, 0.03),
    "5 at .95, 95 at .895": (np.r_[np.full(5, 0.95), np.full(95, 0.895)], 5, 0.05),
    "1 at .99, 29 at .975": (np.r_[0.99, np.full(29, 0.975)], 1, 0.01),
    "1 at .56, 19 at .45": (np.r_[0.56, np.full(19, 0.45)], 1, 0.1),
    "10 at .5": (np.full(10, 0.5), 1, 0.1),
    "10 at .04": (np.full(10, 0.04), 1, 0.01),
    "1000 from .1 to .9": (np.linspace(0.1, 0.9, 1000), 5, 0.05),
    "1 at .9, 999 at .5": (np.r_[0.9, np.full(999, 0.5)], 1, 0.1),
}
DELTA = 0.05


def pulls(problem: sl.Problem, means: FloatArray, runs: int) -> tuple[float, float, int]:
    """Return the mean number of pulls of the race on coins, its standard error, and the number of errors."""
    rules, found, errors = strategy_named("race"), [], 0
    for seed in range(runs):
        rng, state, total = np.random.default_rng(seed), rules.init(problem, ()), 0
        while not rules.verdict(state).is_final:
            batch = rules.ask(state)
            total += int(batch.counts.sum())
            state = rules.tell(state, Moments(rng.binomial(batch.counts, means[batch.arms]) / batch.counts))
        found.append(total)
        errors += bool(is_wrong(problem, means, rules.verdict(state).selected[None])[0])
    return float(np.mean(found)), float(np.std(found, ddof=1)) / math.sqrt(runs), errors


def row(name: str, runs: int) -> str:
    """Return a row of the table."""
    means, m, epsilon = INSTANCES[name]
    numbers = {"m": m, "epsilon": epsilon, "delta": DELTA}
    problems = (
        sl.Problem(**numbers, variances=np.full(len(means), 0.25)),  # type: ignore[arg-type]
        sl.Problem(**numbers, n=len(means), rewards=sl.Bernoulli()),  # type: ignore[arg-type]
        sl.Problem(**numbers, variances=means * (1 - means)),  # type: ignore[arg-type]
    )
    (proxy, _, _), (own, error, errors), (told, _, _) = (pulls(one, means, runs) for one in problems)
    return (
        f"| {name}; {m}; {epsilon:g} | {proxy:,.0f} | {own:,.0f} ± {error:,.0f} | {own / proxy:.2f} | "
        f"{own / told:.2f} | {errors} |"
    )


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs per instance and race")
    runs = parser.parse_args().runs
    lines = [
        "# Rewards of 0 or 1",
        "",
        f"Written by `python -m benchmarks.bounded`: mean pulls of {runs} runs, delta = {DELTA}.",
        "",
        "| arms; m; epsilon | race, variance 1/4 | race, `Bernoulli()` | divided by the first | divided by "
        "the race told p (1 - p) | errors |",
        "|---|---|---|---|---|---|",
    ]
    for name in INSTANCES:
        lines.append(row(name, runs))
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
