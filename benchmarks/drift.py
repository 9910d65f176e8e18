"""What a machine that slows down during a run does to answers, arm by arm and interleaved.

Implementations are timed on a simulated machine whose level moves by a tenth in the course of the run, either
steadily or all at once. Three of ten are truly faster, by a twentieth. Every run certifies its answer, at
delta = 0.05; an answer is wrong if one of the arms selected is not good to epsilon. Arms measured one after
the other are what `turns=1` asks for, and what version 0.1.0 did. Figures go to benchmarks/results/drift.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray

RESULTS = Path(__file__).parent / "results" / "drift.md"
RUNS, ARMS, DRIFT, GAP, NOISE = 50, 10, 0.1, 0.05, 0.05

Shape: TypeAlias = Callable[[FloatArray], FloatArray]
SHAPES: dict[str, Shape] = {
    "steady": lambda shares: DRIFT * np.minimum(shares, 1.0),
    "sudden, in the middle": lambda shares: np.where(shares > 0.5, DRIFT, 0.0),
}


@dataclass
class Machine:
    """Times arms; its level depends on the pulls made so far, as a share of those of the whole run."""

    means: FloatArray
    shape: Shape
    total: int
    n_pulls: int = 0

    def __call__(self, arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        """Return times of an arm."""
        levels = self.shape((self.n_pulls + np.arange(count)) / self.total)
        self.n_pulls += count
        times: FloatArray = rng.normal(self.means[arm] + levels, NOISE)
        return times


def wrong_answers(shape: Shape, strategy: str, turns: int, runs: int = RUNS) -> int:
    """Return how many of some certified runs select an arm that is not among the good ones."""
    problem = sl.Problem(m=3, epsilon=0.02, delta=0.05, variances=[NOISE**2] * ARMS, goal="minimise")
    n_wrong = 0
    for seed in range(runs):
        means = np.random.default_rng(seed).permutation([1.0] * 3 + [1.0 + GAP] * (ARMS - 3))
        steady = Machine(means, lambda shares: 0.0 * shares, 1)
        total = sl.select(steady, problem, strategy, seed=seed).n_pulls
        found = sl.select(Machine(means, shape, total), problem, strategy, seed=seed, turns=turns)
        assert found.guarantee is not None
        n_wrong += bool((means[found.indices] > 1.0 + problem.epsilon).any())
    return n_wrong


def main() -> None:
    """Count wrong answers and write the figures."""
    lines = [
        "# A machine that slows down",
        "",
        f"Wrong answers among {RUNS} certified runs (delta = 0.05). Three of {ARMS} arms take 1 unit of "
        f"time, the others {1 + GAP:g}, epsilon is 0.02; the machine slows down by {DRIFT:g} units "
        "during the run.",
        "",
        "| machine | strategy | one arm after the other (0.1.0) | 2 turns | 8 turns (default) |",
        "|---|---|---|---|---|",
    ]
    for name, shape in SHAPES.items():
        for strategy in ("single-stage", "race"):
            counts = [wrong_answers(shape, strategy, turns) for turns in (1, 2, 8)]
            lines.append(f"| {name} | {strategy} | {' | '.join(map(str, counts))} |")
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
