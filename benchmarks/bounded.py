"""Measure what the race spends on rewards of which only bounds are known.

`python -m benchmarks.bounded` compares it with the race that assumes the largest variance, 1/4, with the race
that is told p (1 - p), which no proof allows, with `lucb-mixture`, and with KL-LUCB (Kaufmann and
Kalyanakrishnan 2013). The last two pull arms one by one; here so often that the pulls of the less known of a
pair grow by two per cent, which costs them little. The table goes to benchmarks/results/bounded.md.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from scipy.special import xlogy

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.simulation import is_wrong
from shortlist.strategies import mixture, strategy_named
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
FEW, MANY = 3, 200  # runs of the two rivals, and the number of arms above which they take too long


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


def kl_lucb(means: FloatArray, m: int, epsilon: float, seed: int) -> int:
    """Return the pulls of KL-LUCB on coins, with the exploration rate that its authors prove."""
    rng, n = np.random.default_rng(seed), len(means)
    pulls, hits = np.ones(n), rng.binomial(1, means) * 1.0
    while True:
        rate = math.log(405.5 * n * pulls.sum() ** 1.1 / DELTA)
        rate += math.log(max(rate, 1.0))
        observed = hits / pulls
        best = np.argsort(-observed, kind="stable")[:m]
        rest = np.setdiff1d(np.arange(n), best)
        low, high = (kl_limits(observed, rate / pulls, side) for side in (-1, 1))
        weak, strong = best[np.argmin(low[best])], rest[np.argmax(high[rest])]
        if high[strong] - low[weak] < epsilon:
            return int(pulls.sum())
        more = max(1, int(0.02 * min(pulls[weak], pulls[strong])))
        for arm in (weak, strong):
            hits[arm] += rng.binomial(more, means[arm])
            pulls[arm] += more


def kl_limits(means: FloatArray, rates: FloatArray, side: int) -> FloatArray:
    """Return the largest (side 1) or smallest means whose divergence from these does not exceed the rates."""
    inner, outer = means.copy(), np.full_like(means, 1.0 if side > 0 else 0.0)
    for _ in range(40):
        middle = (inner + outer) / 2
        is_near = _divergence(means, middle) <= rates
        inner, outer = np.where(is_near, middle, inner), np.where(is_near, outer, middle)
    return inner


def _divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    q = np.clip(q, 1e-15, 1 - 1e-15)
    return np.asarray(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)), dtype=np.float64)


def lucb_mixture(means: FloatArray, m: int, epsilon: float, seed: int) -> int:
    """Return the pulls of `lucb-mixture` with variance 1/4 on coins."""
    n = len(means)
    problem = sl.Problem(m=m, epsilon=epsilon, delta=DELTA, variances=np.full(n, 0.25))
    rng = np.random.default_rng(seed)
    pulls, hits = np.ones(n), rng.binomial(1, means) * 1.0
    while True:
        observed = hits / pulls
        low, high = mixture.bounds(problem, observed, pulls, problem.variances)
        best = np.argsort(-observed, kind="stable")[:m]
        rest = np.setdiff1d(np.arange(n), best)
        weak, strong = best[np.argmin(low[best])], rest[np.argmax(high[rest])]
        if high[strong] - low[weak] <= epsilon:
            return int(pulls.sum())
        more = max(1, int(0.02 * min(pulls[weak], pulls[strong])))
        for arm in (weak, strong):
            hits[arm] += rng.binomial(more, means[arm])
            pulls[arm] += more


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
    rivals = [
        f"{own / np.mean([rule(means, m, epsilon, seed) for seed in range(FEW)]):.2f}"
        if len(means) <= MANY
        else "-"
        for rule in (lucb_mixture, kl_lucb)
    ]
    return (
        f"| {name}; {m}; {epsilon:g} | {proxy:,.0f} | {own:,.0f} ± {error:,.0f} | {own / proxy:.2f} | "
        f"{own / told:.2f} | {' | '.join(rivals)} | {errors} |"
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
        "the race told p (1 - p) | divided by `lucb-mixture` | divided by KL-LUCB | errors |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in INSTANCES:
        lines.append(row(name, runs))
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
