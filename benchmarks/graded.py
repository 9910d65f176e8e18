"""Measure what the race spends on graded rewards between 0 and 1 that vary less than coins.

`python -m benchmarks.graded` draws rewards from beta distributions, and compares the race with `Bounded()`,
which uses squares, with the race that knows sums only, with the race that assumes the largest variance, 1/4,
and with the race that is told the true variances. The table goes to benchmarks/results/graded.md.
"""

import argparse
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.simulation import is_wrong
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "graded.md"
INSTANCES: dict[str, tuple[FloatArray, int, float, float]] = {
    "20 from .6 to .8": (np.linspace(0.6, 0.8, 20), 3, 0.03, 0.1),
    "20 from .5 to .9": (np.linspace(0.5, 0.9, 20), 3, 0.03, 0.2),
    "2: .5, .56": (np.array([0.5, 0.56]), 1, 0.05, 0.15),
    "10 at .5": (np.full(10, 0.5), 1, 0.05, 0.1),
    "10 at .5, nearly coins": (np.full(10, 0.5), 1, 0.1, 0.45),
    "20 from .9 to .98": (np.linspace(0.9, 0.98, 20), 3, 0.02, 0.03),
    "100 from .3 to .8": (np.linspace(0.3, 0.8, 100), 5, 0.05, 0.15),
}
DELTA = 0.05


def pulls(problem: sl.Problem, means: FloatArray, sd: float, runs: int) -> tuple[float, int]:
    """Return the mean number of pulls of the race on such rewards, and the number of errors."""
    rules, total, errors = strategy_named("race"), 0, 0
    weights = means * (1 - means) / sd**2 - 1
    for seed in range(runs):
        rng, state = np.random.default_rng(seed), rules.init(problem, ())
        while not rules.verdict(state).is_final:
            batch = rules.ask(state)
            total += int(batch.counts.sum())
            drawn = [
                rng.beta(means[arm] * weights[arm], (1 - means[arm]) * weights[arm], count)
                for arm, count in zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)
            ]
            variances = [one.var(ddof=1) if len(one) > 1 else np.nan for one in drawn]
            told = Moments(np.array([one.mean() for one in drawn]), np.array(variances))
            state = rules.tell(state, told)
        errors += bool(is_wrong(problem, means, rules.verdict(state).selected[None])[0])
    return total / runs, errors


def row(name: str, runs: int) -> str:
    """Return a row of the table."""
    means, m, epsilon, sd = INSTANCES[name]
    n, asked = len(means), {"m": m, "epsilon": epsilon, "delta": DELTA}
    own, errors = pulls(sl.Problem(**asked, n=n, rewards=sl.Bounded()), means, sd, runs)  # type: ignore[arg-type]
    sums, _ = pulls(sl.Problem(**asked, n=n, rewards=sl.Bernoulli()), means, sd, runs)  # type: ignore[arg-type]
    proxy, _ = pulls(sl.Problem(**asked, variances=np.full(n, 0.25)), means, sd, runs)  # type: ignore[arg-type]
    known, _ = pulls(sl.Problem(**asked, variances=np.full(n, sd**2)), means, sd, runs)  # type: ignore[arg-type]
    return (
        f"| {name}; {m}; {epsilon:g}; {sd:g} | {proxy:,.0f} | {sums:,.0f} | {own:,.0f} | {own / proxy:.2f} | "
        f"{own / sums:.2f} | {own / known:.2f} | {errors} |"
    )


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs per instance and race")
    runs = parser.parse_args().runs
    lines = [
        "# Graded rewards",
        "",
        f"Written by `python -m benchmarks.graded`: mean pulls of {runs} runs, delta = {DELTA}.",
        "",
        "| arms; m; epsilon; standard deviation | variance 1/4 | sums only | with squares | divided by 1/4 | "
        "by sums only | by told variances | errors |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in INSTANCES:
        lines.append(row(name, runs))
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
