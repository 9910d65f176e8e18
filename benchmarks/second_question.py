"""Measure how often a second question is answered wrongly that was chosen by looking at a first run.

`python -m benchmarks.second_question` asks which of 31 arms is the best, stops early, takes the arm that
looks best, and asks again with fewer arms: whether it beats the arm in production, which is truly the
better one. If both runs took items, blocks or random numbers in the same order, the second would see again
the very scores that made the lucky arm look best. The first column shows that: there both runs get their
random numbers from the seed alone, as in version 0.2.0. The table goes to benchmarks/results/second-
question.md.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray

RESULTS = Path(__file__).parent / "results" / "second-question.md"
N, ITEMS = 31, 120  # arms, of which the first is in production; items
DELTAS = (0.05, 0.2, 0.45)
Ask = Callable[[list[int], float, int, int | None], sl.Result]
"""``ask(arms, delta, run, budget)`` asks which of these arms is the best; each run has a world of its own."""


def on_items(arms: list[int], delta: float, run: int, budget: int | None) -> sl.Result:
    """Ask on shared items: production has one point more than all others."""
    table = np.zeros((N, ITEMS))
    rng = np.random.default_rng(run)
    for arm in range(N):
        table[arm, rng.permutation(ITEMS)[: 60 + (arm == 0)]] = 1

    def measure(arm: int, items: list[int]) -> list[float]:
        return [float(score) for score in table[arms[arm], items]]

    return answered(measure, arms, delta, budget, epsilon=0.0, rewards=sl.Bernoulli(), items=ITEMS)


def in_blocks(arms: list[int], delta: float, run: int, budget: int | None) -> sl.Result:
    """Ask in blocks: production is better by more than epsilon."""

    def measure(arm: int, blocks: list[int]) -> list[float]:
        drawn = [np.random.default_rng([run, block, arms[arm]]).standard_normal() for block in blocks]
        return [float(one + 0.12 * (arms[arm] == 0)) for one in drawn]

    return answered(measure, arms, delta, budget, epsilon=0.1, rewards=sl.Gaussian(), items=sl.Blocks())


def on_streams(arms: list[int], delta: float, run: int, budget: int | None) -> sl.Result:
    """Ask on streams that draw from the seeds of calls: production is better by more than epsilon."""

    def measure(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        return rng.normal(0.12 * (arms[arm] == 0), 1.0, count)

    question = {"epsilon": 0.1, "variances": np.ones(len(arms)), "seed": run, "strategy": "race"}
    return answered(measure, arms, delta, budget, **question)


def answered(measure: Any, arms: list[int], delta: float, budget: int | None, **given: Any) -> sl.Result:
    """Return the result of a run."""
    how = {name: given.pop(name) for name in ("seed", "strategy") if name in given}
    problem = sl.Problem(m=1, delta=delta, names=[f"arm {arm:02}" for arm in arms], **given)
    return sl.select(measure, problem, budget=budget, turns=1, **how)


@contextmanager
def seed_alone() -> Iterator[None]:
    """Let all random numbers of a run derive from its seed, whatever the question."""
    entropy = sl.Problem.entropy
    sl.Problem.entropy = lambda self, seed: seed  # type: ignore[method-assign] # noqa: ARG005
    try:
        yield
    finally:
        sl.Problem.entropy = entropy  # type: ignore[method-assign]


def is_wrong(ask: Ask, delta: float, run: int) -> bool:
    """Return whether a second run certifies another arm than production, which is the best.

    Streams keep the place of the lucky arm, which tells its random numbers: all arms before it stay, too.
    """
    first = ask([*range(N)], delta, run, N * (60 if ask is on_streams else 30))
    lucky = 1 + int(np.nan_to_num(first.arms.means[1:], nan=-np.inf).argmax())
    second = ask([*range(lucky + 1)] if ask is on_streams else [0, lucky], delta, run, None)
    return second.guarantee is not None and second.indices[0] != 0


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    lines = [
        "# A second question, chosen by looking",
        "",
        "`python -m benchmarks.second_question` lets a run choose among 31 arms, and stops it early. A",
        "second run compares the arm that looked best with the arm in production, which is better. The",
        "table has the share of second runs that certify the wrong arm: if both runs get their order and",
        f"random numbers from the seed alone, and as it is, from question and seed. {runs} runs each.",
        "",
        "| arms share | delta | wrong, seed alone | wrong, question and seed |",
        "|---|---|---|---|",
    ]
    for name, ask in (("items", on_items), ("blocks", in_blocks), ("nothing (streams)", on_streams)):
        for delta in DELTAS:
            with seed_alone():
                before = sum(is_wrong(ask, delta, run) for run in range(runs))
            after = sum(is_wrong(ask, delta, run) for run in range(runs))
            lines.append(f"| {name} | {delta:g} | {before / runs:.3f} | {after / runs:.3f} |")
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
