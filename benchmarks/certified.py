"""Measure what a race certifies before it ends, and whether an adversary can make that false.

`python -m benchmarks.certified` writes two tables to benchmarks/results/certified.md: the certified epsilon
at 10, 25, 50 and 75 % of the pulls, beside what a plan for that budget promises; and how often somebody who
knows the truth, chooses the arms and stops when the certificate is wrong, succeeds.
"""

import argparse
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Certificate
from shortlist.certificates.certificate import certificate_of
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments
from shortlist.strategies.race import Ended

RESULTS = Path(__file__).parent / "results" / "certified.md"
SHARES = (0.1, 0.25, 0.5, 0.75)
DELTA = 0.05

NORMAL: dict[str, tuple[FloatArray, int, float]] = {
    "10 from .2 to .8; 3; .1": (np.linspace(0.2, 0.8, 10), 3, 0.1),
    "20: 3 at .61, 17 at .5; 3; .1": (np.r_[np.full(3, 0.61), np.full(17, 0.5)], 3, 0.1),
    "100: 5 at .61, 95 at .5; 5; .1": (np.r_[np.full(5, 0.61), np.full(95, 0.5)], 5, 0.1),
    "100 from 0 to 1; 5; .05": (np.linspace(0, 1, 100), 5, 0.05),
    "10 at .5; 1; .1": (np.full(10, 0.5), 1, 0.1),
}
COINS: dict[str, tuple[FloatArray, int, float]] = {
    "6 from .04 to .05; 1; .005": (np.array([0.04, 0.041, 0.042, 0.043, 0.044, 0.05]), 1, 0.005),
    "20 from .6 to .95; 3; .03": (np.linspace(0.6, 0.95, 20), 3, 0.03),
    "10 from .2 to .8; 3; .1": (np.linspace(0.2, 0.8, 10), 3, 0.1),
}
TRAPS: dict[str, tuple[list[float], int]] = {
    "two, .5 and .75": ([0.5, 0.75], 1),
    "three equal": ([0.3, 0.3, 0.3], 1),
    "close to 0": ([0.02, 0.02, 0.15], 1),
    "two of four": ([0.3, 0.55, 0.3, 0.55], 2),
    "one bad of three": ([0.7, 0.4, 0.7], 2),
}


def question(kind: str, n: int, m: int, delta: float, epsilon: float) -> sl.Problem:
    """Return a question about coins, or about Gaussian rewards of the same largest variance."""
    if kind == "coins":
        return sl.Problem(m=m, epsilon=epsilon, delta=delta, n=n, rewards=sl.Bernoulli())
    return sl.Problem(m=m, epsilon=epsilon, delta=delta, variances=np.full(n, 0.25))


def drawn(kind: str, means: FloatArray, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return the means of fresh rewards."""
    if kind == "coins":
        return np.asarray(rng.binomial(counts, means) / counts)
    return np.asarray(rng.normal(means, 0.5 / np.sqrt(counts)))


def course(kind: str, means: FloatArray, m: int, epsilon: float, seed: int) -> tuple[int, list[float]]:
    """Return the pulls of a race, and the epsilon certified at shares of them."""
    problem, rng = question(kind, len(means), m, DELTA, epsilon), np.random.default_rng(seed)
    rules = strategy_named("race")
    assert rules.anytime is not None
    states, state = [], rules.init(problem, ())
    while not isinstance(state, Ended):
        batch = rules.ask(state)
        state = rules.tell(state, Moments(drawn(kind, means[batch.arms], batch.counts, rng)))
        states.append(state)
    pulls = [int((one.last if isinstance(one, Ended) else one).pulls.sum()) for one in states]
    places = [max(0, int(np.searchsorted(pulls, share * pulls[-1], side="right")) - 1) for share in SHARES]
    return pulls[-1], [rules.anytime.certificate(states[place]).epsilon for place in places]


def shares_rows(kind: str, cases: dict[str, tuple[FloatArray, int, float]], runs: int) -> list[str]:
    """Return the rows of the first table."""
    rows = []
    for name, (means, m, epsilon) in cases.items():
        found = [course(kind, means, m, epsilon, seed) for seed in range(runs)]
        total = int(np.median([pulls for pulls, _ in found]))
        certified = np.median([epsilons for _, epsilons in found], axis=0)
        problem = question(kind, len(means), m, DELTA, epsilon)
        promised = [sl.plan(problem, budget=int(share * total)).problem.epsilon for share in SHARES]
        cells = [f"{own:.3g} ({plan:.3g})" for own, plan in zip(certified, promised, strict=True)]
        rows.append(f"| {kind}: {name} | {total:,} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    return rows


def is_false(found: Certificate, means: FloatArray) -> bool:
    """Return whether a certificate says something false of these means."""
    best = np.sort(means)[::-1][found.problem.m - 1]
    if (means[found.indices] < best - found.epsilons - 1e-9).any():
        return True
    kept = np.array([status != "out" for status in found.statuses])
    return bool((means[kept] >= best - found.problem.epsilon - 1e-9).sum() < found.problem.m)


def hunted(kind: str, problem: sl.Problem, means: FloatArray, seed: int, n_steps: int = 30) -> bool:
    """Return whether an adversary finds a moment at which the certificate is false.

    He knows the truth, and flatters the worst arms: he pulls those of them that look best, those of the best
    that look worst, or all, by turns and in growing batches.
    """
    rng = np.random.default_rng(seed)
    best = np.argsort(-means, kind="stable")[: problem.m]
    others = np.setdiff1d(problem.arms, best)
    pulls, sums = np.zeros(problem.n, dtype=np.int64), np.zeros(problem.n)

    def pull(arms: IntArray, count: int) -> None:
        sums[arms] += count * drawn(kind, means[arms], np.full(len(arms), count), rng)
        pulls[arms] += count

    pull(problem.arms, int(rng.integers(1, 5)))
    for step in range(n_steps):
        observed = sums / pulls
        if is_false(certificate_of(problem, pulls, observed), means):
            return True
        lucky, unlucky = others[np.argmax(observed[others])], best[np.argmin(observed[best])]
        chosen = (np.array([lucky]), np.array([unlucky]), problem.arms)[step % 3]
        pull(chosen, int(1 + pulls.sum() // 8))
    return False


def hunts_rows(runs: int) -> list[str]:
    """Return the rows of the second table."""
    rows = []
    for kind in ("coins", "normal"):
        for name, (means, m) in TRAPS.items():
            cells = []
            for delta in (0.2, 0.45):
                problem = question(kind, len(means), m, delta, 0.05)
                n_false = sum(hunted(kind, problem, np.array(means), seed) for seed in range(runs))
                cells.append(f"{n_false / runs:.4f}")
            rows.append(f"| {kind}: {name} | {' | '.join(cells)} |")
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="races per instance")
    parser.add_argument("--hunts", type=int, default=200, help="adversaries per trap and delta")
    given = parser.parse_args()
    lines = [
        "# What is certified before the end",
        "",
        f"Written by `python -m benchmarks.certified`. Medians of {given.runs} races, delta = {DELTA},",
        "variance at most 1/4: the epsilon that is certified after a share of the pulls of the race and, in",
        "brackets, the one that a plan for that budget promises.",
        "",
        "| arms; m; epsilon asked for | pulls | 10 % | 25 % | 50 % | 75 % |",
        "|---|---|---|---|---|---|",
        *shares_rows("normal", NORMAL, given.runs),
        *shares_rows("coins", COINS, given.runs),
        "",
        "How often somebody who knows the truth, chooses the arms, and stops when the certificate is false,",
        f"finds such a moment in 30 batches; {given.hunts} tries each.",
        "",
        "| arms | delta = 0.2 | delta = 0.45 |",
        "|---|---|---|",
        *hunts_rows(given.hunts),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
