"""Real simulations with unknown variances: how many pulls, and how often right.

`python -m benchmarks.unknown` runs strategies that know no variances on two simulations whose exact answers
are known, the inventory and the flow line, and writes benchmarks/results/unknown.md. About 10 minutes on one
core. Rewards are averages and only roughly Gaussian, so the guarantee is on trial as well.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

import shortlist as sl
from benchmarks import inventory, throughput
from shortlist.arrays import FloatArray, IntArray, kth_largest
from shortlist.simulation import is_wrong

RESULTS = Path(__file__).parent / "results" / "unknown.md"
Draw: TypeAlias = Callable[[IntArray, np.random.Generator], FloatArray]
"""``draw(arms, rng)`` returns one reward for each arm listed."""


class Case(NamedTuple):
    """A question, how rewards are drawn, the true means, and the strategies to try."""

    title: str
    question: sl.Problem
    draw: Draw
    means: FloatArray
    strategies: tuple[str, ...]


def cases() -> Iterator[Case]:
    """Yield the questions of the study."""
    stock = inventory.systems()
    for epsilon, strategies in ((0.5, ("t-race", "race")), (1.0, ("t-race", "race", "dudewicz-dalal"))):
        yield Case(
            f"inventory, 10 best of 1,600, epsilon {epsilon:g} (of a cost of 106)",
            sl.Problem(m=10, epsilon=epsilon, delta=0.05, n=len(stock.means), rewards=sl.Gaussian()),
            lambda arms, rng: inventory.rewards(stock, arms, rng),
            -stock.means,
            strategies,
        )
    designs = throughput.lines()
    means = -1 / throughput.throughputs(designs)
    yield Case(
        "flow line, best of 3,249, epsilon 0.003 (of 0.173; 0.1 in throughput), pilot 30",
        sl.Problem(m=1, epsilon=0.003, delta=0.05, n=len(means), rewards=sl.Gaussian(pilot=30)),
        lambda arms, rng: throughput.rewards(designs, arms, rng),
        means,
        ("t-race",),
    )


def run(case: Case, strategy: str, seed: int) -> sl.Result:
    """Return the result of one run."""
    session = sl.Session(case.question, strategy, seed=seed)
    while tickets := session.ask():
        rng = np.random.default_rng((seed, tickets.round))
        session.tell(tickets, summaries(tickets, case.draw(np.repeat(tickets.arms, tickets.counts), rng)))
    return session.result


def summaries(tickets: sl.session.Tickets, rewards: FloatArray) -> list[sl.Summary]:
    """Return the rewards of each ticket summed up, given those of all tickets in a row."""
    starts = np.cumsum(tickets.counts) - tickets.counts
    means = np.add.reduceat(rewards, starts) / tickets.counts
    squares = np.add.reduceat((rewards - np.repeat(means, tickets.counts)) ** 2, starts)
    variances = squares / np.maximum(tickets.counts - 1, 1)
    rows = zip(tickets.counts.tolist(), means.tolist(), variances.tolist(), strict=True)
    return [sl.Summary(count, mean, variance if count > 1 else None) for count, mean, variance in rows]


def study(case: Case, strategy: str, seeds: int) -> str:
    """Return a row of the table: what a strategy did over some seeds."""
    results = [run(case, strategy, seed) for seed in range(seeds)]
    right = sum(not is_wrong(case.question, case.means, result.indices[None])[0] for result in results)
    best = sum(_is_best(case, result.indices) for result in results)
    pulls = np.array([result.n_pulls for result in results]) / case.question.n
    rounds = np.mean([result.n_rounds for result in results])
    return (
        f"| {case.title} | {strategy} | {pulls.mean():,.0f} | {pulls.min():,.0f} to {pulls.max():,.0f} | "
        f"{rounds:.0f} | {right} of {seeds} | {best} |"
    )


def _is_best(case: Case, selected: IntArray) -> bool:
    least = kth_largest(case.means, case.question.m)[0]
    return bool((case.means[selected] >= least - 1e-9).all())  # mirror images of a flow line are equally good


def main() -> None:
    """Run the study over as many seeds as the command line says, by default 20; print and write it."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    lines = [
        "# Unknown variances",
        "",
        "Two simulations with known exact answers. The strategies do not know the variances, which range",
        "from 3 to 52 in the inventory; in the flow line the scales range from 0.02 to 0.16.",
        "*Right* is what is guaranteed with probability 0.95: all arms within epsilon of the m-th best.",
        "*Exact*: the m best themselves. Rewards are averages, only roughly Gaussian.",
        "",
        "| case | strategy | pulls per arm | least to most | rounds | right | exact |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases():
        for strategy in case.strategies:
            lines.append(study(case, strategy, seeds))
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
