"""Blocks and unknown variances: pulls beside other procedures, errors on traps, and time with many arms.

`python -m benchmarks.blocks` writes benchmarks/results/blocks.md; half an hour on two cores. `--runs` sets
the number of runs for pulls, `--tries` that for errors.
"""

import argparse
import multiprocessing
import platform
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from benchmarks import inventory
from shortlist.arrays import FloatArray
from shortlist.certificates import Certificate
from shortlist.strategies import strategy_for
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "blocks.md"
DELTA = 0.05
OTHERS = ("t-race", "kim-nelson", "rinott", "dudewicz-dalal")


@dataclass(frozen=True)
class Case:
    """An instance: means, and standard deviations."""

    title: str
    m: int
    epsilon: float
    means: tuple[float, ...]
    scales: tuple[float, ...]

    def question(self, delta: float = DELTA, **changes: Any) -> sl.Problem:
        """Return the question about this instance."""
        n = len(self.means)
        return sl.Problem(m=self.m, epsilon=self.epsilon, delta=delta, n=n, rewards=sl.Gaussian(), **changes)


def cases() -> Iterator[Case]:
    """Yield the instances of the table of pulls."""
    rng = np.random.default_rng(1)
    for n in (20, 100, 1000):
        for m in (1, 5):
            for spread in (0.0, 1.2):
                scales = tuple(np.exp(rng.uniform(-spread, spread, n)).tolist())
                words = "equal" if spread == 0 else "1 to 11"
                means = tuple([0.55] * m + [0.0] * (n - m))
                yield Case(f"{m} of {n:,} just over epsilon ahead, scales {words}", m, 0.5, means, scales)
        means = tuple((-0.25 * np.arange(n)).tolist())
        yield Case(f"1 of {n:,} in steps of epsilon / 2, scales equal", 1, 0.5, means, (1.0,) * n)


def pulls(case: Case, strategy: str, correlation: float | None, runs: int) -> tuple[float, int]:
    """Return the mean number of pulls, and the number of errors; with blocks if there is a correlation."""
    variances = np.square(case.scales)
    if correlation is not None:
        question = case.question(items=sl.Blocks())
        found = sl.simulate(
            question, case.means, variances=variances, correlation=correlation, replications=runs
        )
        return float(found.pulls.mean()), found.errors
    question = case.question(guarantee="indifference" if strategy == "kim-nelson" else "pac")
    if strategy != "auto" and strategy_for(strategy, question).unfit(question):
        return np.nan, 0
    runs = min(runs, 5) if strategy == "kim-nelson" and question.n >= 1000 else runs
    found = sl.simulate(question, case.means, strategy, variances=variances, replications=runs)
    return float(found.pulls.mean()), found.errors


def table_of_pulls(pool: ProcessPoolExecutor, runs: int) -> list[str]:
    """Return the table of pulls, relative to `t-race`."""
    columns: list[tuple[str, str, float | None]] = [
        ("t-race", "t-race", None),
        ("auto", "auto", None),
        ("paired-race", "paired-race", None),
        ("t-cut-race", "t-cut-race", None),
        ("blocks, correlation 0", "", 0.0),
        (".5", "", 0.5),
        (".9", "", 0.9),
        *((name, name, None) for name in OTHERS[1:]),
    ]
    lines = [
        "| instance | t-race, pulls | " + " | ".join(name for name, _, _ in columns[1:]) + " | wrong |",
        "|---|" + "---|" * (len(columns) + 1),
    ]
    every = list(cases())
    jobs = [
        [pool.submit(pulls, case, strategy, correlation, runs) for _, strategy, correlation in columns]
        for case in every
    ]
    for case, row in zip(every, jobs, strict=True):
        found = [job.result() for job in row]
        base = found[0][0]
        ratios = ["-" if np.isnan(mean) else f"{mean / base:.2f}" for mean, _ in found[1:]]
        errors = sum(errors for _, errors in found)
        lines.append(f"| {case.title} | {base:,.0f} | {' | '.join(ratios)} | {errors} |")
        print(lines[-1], flush=True)
    return lines


def of_inventory(correlated: bool, seed: int) -> tuple[int, bool]:
    """Return the pulls of a run over 100 inventory policies, and whether its answer is right."""
    stock = inventory.systems()
    arms = np.arange(0, 1600, 16)
    means = -stock.means[arms]

    def costs(chosen: Any, blocks: Any, *_: Any) -> FloatArray:
        rows = np.empty((len(chosen), len(blocks)))
        for column, block in enumerate(blocks):
            if correlated:  # the same demands for all policies
                rows[:, column] = simulated(stock, arms[chosen], np.random.default_rng(block))
            else:
                own = [np.random.default_rng([block, int(arm)]) for arm in chosen]
                rows[:, column] = [
                    simulated(stock, arms[[arm]], rng)[0] for arm, rng in zip(chosen, own, strict=True)
                ]
        return -rows

    question = sl.Problem(
        m=5, epsilon=0.5, delta=DELTA, n=len(arms), rewards=sl.Gaussian(), items=sl.Blocks()
    )
    result = sl.select(sl.vectorised(costs), question, seed=seed)
    limit = np.sort(means)[-5] - 0.5
    return result.n_pulls, bool((means[result.indices] >= limit).all())


def simulated(stock: Any, arms: Any, rng: np.random.Generator) -> FloatArray:
    """Return the average costs of policies over 30 periods with the same demands for all."""
    demands = rng.poisson(25, 30)
    reorder, level = stock.reorder[arms], stock.level[arms]
    amount, spent = level.copy(), np.zeros(len(arms))
    for demand in demands:
        is_low = amount < reorder
        spent += np.where(is_low, 32 + 3 * (level - amount), 0)
        amount = np.where(is_low, level, amount) - demand
        spent += np.where(amount > 0, amount, -5 * amount)
    return spent / 30


def is_false(certificate: Certificate, means: FloatArray) -> bool:
    """Return whether something that is certified is not true."""
    if certificate.guarantee is None:
        return False
    problem = certificate.problem
    limit = np.sort(means)[-problem.m]
    is_good = means >= limit - problem.epsilon - 1e-9
    statuses = np.array(certificate.statuses)
    return bool(
        (means[certificate.indices] < limit - certificate.epsilons - 1e-9).any()
        or (~is_good & (statuses == "in")).any()
        or (is_good & (statuses != "out")).sum() < problem.m
    )


def adversary(n: int, m: int, correlation: float, strategy: str, delta: float, seed: int) -> bool:
    """Return whether anything false is certified at any moment of a run; then the adversary stops."""
    rng = np.random.default_rng([seed, n, m])
    means = np.array([0.51] * m + [0.0] * (n - m))
    scales = np.exp(rng.uniform(-1, 1, n)) if strategy else np.ones(n)
    blocks: dict[str, Any] = {} if strategy else {"items": sl.Blocks()}
    problem = sl.Problem(m=m, epsilon=0.5, delta=delta, n=n, rewards=sl.Gaussian(), **blocks)
    rules = strategy_for(strategy or "paired-race", problem)
    assert rules.anytime is not None
    state, seen, table = rules.init(problem, ()), np.zeros(n, dtype=np.int64), np.empty((n, 0))
    signs = np.where(np.arange(n) % 2, np.sign(correlation) or 1.0, 1.0)
    for _ in range(200):
        if rules.verdict(state).is_final:
            return False
        batch = rules.ask(state)
        width = int((seen[batch.arms] + batch.counts).max())
        while table.shape[1] < width:
            more = max(64, width - table.shape[1])
            common = np.sqrt(abs(correlation)) * signs[:, None] * rng.standard_normal(more)
            own = np.sqrt(1 - abs(correlation)) * rng.standard_normal((n, more))
            table = np.concatenate([table, means[:, None] + scales[:, None] * (common + own)], axis=1)
        parts = [table[arm, seen[arm] :][:count] for arm, count in zip(batch.arms, batch.counts, strict=True)]
        seen[batch.arms] += batch.counts
        told = Moments(
            np.array([own.mean() for own in parts]),
            np.array([own.var(ddof=1) if len(own) > 1 else 0.0 for own in parts]),
            np.concatenate(parts),
        )
        state = rules.tell(state, told)
        if is_false(rules.anytime.certificate(state), means):
            return True
    return False


def table_of_errors(pool: ProcessPoolExecutor, tries: int) -> list[str]:
    """Return the table of runs in which anything false was certified at any moment."""
    lines = [
        "| arms, m | correlation | strategy | delta .2: false | delta .45: false |",
        "|---|---|---|---|---|",
    ]
    traps: list[tuple[int, int, float, str]] = [
        (2, 1, -0.9, ""), (2, 1, 0.0, ""), (2, 1, 0.9, ""), (5, 2, -0.9, ""), (5, 2, 0.5, ""),
        (10, 1, 0.0, ""), (50, 3, 0.9, ""),
        (2, 1, 0.0, "paired-race"), (5, 2, 0.0, "paired-race"), (15, 1, 0.0, "paired-race"),
        (2, 1, 0.0, "t-cut-race"), (5, 2, 0.0, "t-cut-race"), (5, 2, -0.9, "t-cut-race"),
        (15, 1, 0.0, "t-cut-race"), (50, 1, 0.0, "t-cut-race"),
    ]  # fmt: skip
    for n, m, correlation, strategy in traps:
        shares = []
        for delta in (0.2, 0.45):
            tried = partial(adversary, n, m, correlation, strategy, delta)
            shares.append(sum(pool.map(tried, range(tries), chunksize=25)) / tries)
        name = f"{strategy}, streams" if strategy else "paired-race, blocks"
        lines.append(f"| {n}, {m} | {correlation:g} | {name} | {shares[0]:.3f} | {shares[1]:.3f} |")
        print(lines[-1], flush=True)
    return lines


def large(n: int, n_blocks: int) -> str:
    """Return a sentence on the time and memory of deciding among very many arms."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal(n_blocks) * 3 + rng.standard_normal((n, n_blocks))
    table += np.linspace(0.0, -3.0, n)[:, None]
    problem = sl.Problem(m=5, epsilon=0.35, delta=DELTA, n=n, rewards=sl.Gaussian(), items=sl.Blocks())
    rules = strategy_for("paired-race", problem)
    state, seen, spent, rounds = rules.init(problem, ()), np.zeros(n, dtype=np.int64), 0.0, 0
    while not rules.verdict(state).is_final:
        batch = rules.ask(state)
        if int((seen[batch.arms] + batch.counts).max()) > n_blocks:
            break
        parts = [table[arm, seen[arm] :][:count] for arm, count in zip(batch.arms, batch.counts, strict=True)]
        seen[batch.arms] += batch.counts
        told = Moments(np.array([own.mean() for own in parts]), scores=np.concatenate(parts))
        start = time.process_time()
        state = rules.tell(state, told)
        spent, rounds = spent + time.process_time() - start, rounds + 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    how = "ended" if rules.verdict(state).is_final else "was broken off"
    return (
        f"{n:,} arms, the 5 best to within 0.35 standard deviations: the run {how} after {rounds} decisions, "
        f"{int(seen.max()):,} blocks and {seen.sum():,} pulls; deciding took {spent:.1f} s of CPU in all, "
        f"and the process {memory:.1f} GiB, the table of rewards included."
    )


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--tries", type=int, default=2000)
    given = parser.parse_args()
    workers = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))
    with workers as pool:
        spent = table_of_pulls(pool, given.runs)
        stock = {
            kind: list(pool.map(partial(of_inventory, kind), range(given.runs))) for kind in (True, False)
        }
        errors = table_of_errors(pool, given.tries)
        size = pool.submit(large, 10_000, 600).result()
    shared, apart = (np.array([n for n, _ in stock[kind]]).mean() for kind in (True, False))
    right = [sum(is_right for _, is_right in stock[kind]) for kind in (True, False)]
    print(size)
    lines = [
        "# Blocks and unknown variances",
        "",
        f"Python {platform.python_version()}, numpy {np.__version__}. Gaussian rewards, delta 0.05, "
        f"{given.runs} runs each; pulls relative to those of `t-race` for independent streams. With blocks, "
        "arms have the stated correlation. `kim-nelson` has the weaker guarantee of an indifference zone, "
        "`rinott` and `kim-nelson` select one arm only. *Wrong*: answers that were not within epsilon, of "
        "all runs of the row.",
        "",
        *spent,
        "",
        f"Inventory, the 5 cheapest of 100 policies to within 0.5 of a cost of 106, in blocks: "
        f"{shared:,.0f} pulls with the same demands for all policies (right in {right[0]} of "
        f"{given.runs}), {apart:,.0f} with demands of their own ({right[1]} of {given.runs}).",
        "",
        "## Errors",
        "",
        f"The m best are ahead by hardly more than epsilon. An adversary looks after every batch, and "
        f"stops as soon as anything false is certified: the epsilon of an arm, or a status. The share of "
        f"{given.tries:,} runs in which that happened; it must not exceed delta. Streams have scales "
        f"between 0.4 and 2.7.",
        "",
        *errors,
        "",
        "## Very many arms",
        "",
        size,
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
