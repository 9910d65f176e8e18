"""Measure which share of a table of scores `shared-items` needs.

`python -m benchmarks.items` writes benchmarks/results/items.md. There is one real table,
examples/digits.csv.gz: whether each of 50 classifiers reads each of 800 digits correctly, 1 or 0.
`--tables FOLDER` adds the tables in a folder: CSV files (also .gz) with a line for each item and a column for
each arm, and with scores between 0 and 1. They are named by their files.

Others are made up: arm i answers item k correctly with probability 1 / (1 + exp(-a_k (theta_i - b_k))).
Optuna's Wilcoxon pruner is measured if Optuna is installed.
"""

import argparse
import importlib
import importlib.util
import json
import math
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates import shared_items as certificates
from shortlist.measure.result_files import read_scores
from shortlist.simulation import Simulation, is_wrong
from shortlist.strategies import shared_items, strategy_named
from shortlist.strategies.protocol import Moments

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "items.md"
DELTA = 0.05
SUBSETS = 2_000  # random subsets for the error rate of one size
FEW, FEWER = 10, 3  # runs of the race, and of Optuna, which takes long
TINY = 1e-12  # the weight of evidence that is not to be used


class Real(NamedTuple):
    """A question about a real table."""

    name: str
    table: FloatArray
    m: int
    epsilon: float

    @property
    def problem(self) -> sl.Problem:
        """The question, about scores of 0 and 1 if all are."""
        rewards = sl.Bernoulli() if np.isin(self.table, (0, 1)).all() else sl.Bounded(0, 1)
        n, n_items = self.table.shape
        return sl.Problem(self.m, self.epsilon, DELTA, n=n, rewards=rewards, items=n_items)

    @property
    def title(self) -> str:
        """The name and the size of the table."""
        return f"{self.name}, {len(self.table)} x {self.table.shape[1]}"


SHIPPED = ROOT / "examples" / "digits.csv.gz"
ASKED = [(1, 0.05), (1, 0.02), (1, 0.0), (5, 0.05)]  # m, epsilon


def real_tables(folder: Path | None) -> dict[str, FloatArray]:
    """Return the table of the project, and those of a folder."""
    files = [] if folder is None else sorted(folder.glob("*.csv*"))
    found = {}
    for file in (SHIPPED, *files):
        try:
            found[file.name.partition(".")[0]] = read_scores(file).scores
        except sl.InvalidProblem as error:
            print(f"Left out: {error}", file=sys.stderr)
    return found


def described(tables: Iterable[str]) -> str:
    """Return a sentence that says which tables are measured."""
    _, *others = tables
    given = f" Not part of the project (`--tables`): {', '.join(others)}." if others else ""
    return f"Table of the project: digits ({SHIPPED.relative_to(ROOT)}).{given}"


MADE_UP = [  # arms, items, m, epsilon
    (10, 400, 1, 0.02),
    (10, 400, 3, 0.03),
    (30, 500, 1, 0.02),
    (30, 500, 5, 0.03),
    (100, 1000, 1, 0.02),
    (100, 1000, 5, 0.03),
    (300, 1000, 1, 0.02),
    (300, 1000, 5, 0.03),
]
LARGE = [(240, 750), (1_000, 10_000)]


def made_up(n: int, n_items: int, seed: int) -> FloatArray:
    """Return a table of 0 and 1, by arms of different ability on items of different difficulty."""
    rng = np.random.default_rng(seed)
    abilities = rng.normal(0.8, 0.5, n)[:, None]
    difficulties, slopes = rng.normal(0.0, 1.5, n_items), np.exp(rng.normal(0.3, 0.3, n_items))
    chances = 1 / (1 + np.exp(-slopes * (abilities - difficulties)))
    found: FloatArray = (rng.random((n, n_items)) < chances).astype(np.float64)
    return found


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Use both kinds of evidence, or give the whole of delta to one of them."""
    with ExitStack() as changes:
        if kind != "both":
            weight = 1 - TINY if kind == "pairs" else TINY
            changes.enter_context(mock.patch.object(certificates, "PAIRED", weight))
        if kind == "pairs":
            changes.enter_context(mock.patch.object(shared_items, "joining_pays", return_value=False))
        yield


def simulated(
    problem: sl.Problem, table: FloatArray, runs: int, kind: str = "both", seed: int = 0
) -> Simulation:
    """Return runs on a table, each with the items in another random order."""
    with only(kind):
        return sl.simulate(problem, table, "shared-items", replications=runs, seed=seed)


def share(found: Simulation) -> float:
    """Return the mean share of the table that was measured."""
    return float(found.pulls.mean()) / (found.problem.n * found.problem.n_items)


def spread(found: Simulation) -> float:
    """Return the standard error of `share`."""
    whole = found.problem.n * found.problem.n_items
    return (
        float(found.pulls.std(ddof=1)) / math.sqrt(len(found.pulls)) / whole if len(found.pulls) > 1 else 0.0
    )


# --- the alternatives -------------------------------------------------------------------------------------


def race_share(asked: Real, runs: int) -> float:
    """Return the pulls of the race, which draws items for each arm by itself, with replacement."""
    table, problem = asked.table, asked.problem.changed(items=None)
    rules, total = strategy_named("race"), 0
    for seed in range(runs):
        rng, state = np.random.default_rng(seed), rules.init(problem, ())
        while not rules.verdict(state).is_final:
            batch = rules.ask(state)
            total += int(batch.counts.sum())
            means = [
                rng.choice(table[arm], count).mean()
                for arm, count in zip(batch.arms, batch.counts, strict=True)
            ]
            state = rules.tell(state, Moments(np.array(means)))
    return float(total / runs / table.size)


def subset_errors(asked: Real, size: int) -> float:
    """Return how often the m best on a random subset of the items include one that is not within epsilon."""
    rng, table = np.random.default_rng(1), asked.table
    picked = [
        np.argsort(-table[:, rng.choice(table.shape[1], size, replace=False)].mean(axis=1), kind="stable")[
            : asked.m
        ]
        for _ in range(SUBSETS)
    ]
    return float(is_wrong(asked.problem, table.mean(axis=1), np.array(picked)).mean())


def pruned(table: FloatArray, runs: int) -> tuple[float, list[int]]:
    """Return the share and the answers of Optuna's Wilcoxon pruner."""
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    calls, answers = 0, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        items, arms = rng.permutation(table.shape[1]).tolist(), rng.permutation(len(table)).tolist()
        study = optuna.create_study(direction="maximize", pruner=optuna.pruners.WilcoxonPruner())
        for arm in arms:
            trial, scores = study.ask(), []
            for item in items:
                scores.append(float(table[arm, item]))
                trial.report(scores[-1], item)
                if trial.should_prune():
                    break
            calls += len(scores)
            study.tell(trial, sum(scores) / len(scores))  # as its documentation advises, also if pruned
        answers.append(arms[study.best_trial.number])
    return calls / runs / table.size, answers


# --- the tables of results --------------------------------------------------------------------------------


def real_row(asked: Real, runs: int) -> str:
    """Return a row about a real table."""
    table = asked.table
    both, pairs, single = (
        simulated(asked.problem, table, runs, kind) for kind in ("both", "pairs", "single")
    )
    size = max(1, round(share(both) * table.shape[1]))
    race = f"{race_share(asked, min(FEW, runs)):.0%}" if asked.epsilon else "-"
    columns = [
        asked.title,
        f"{asked.m}; {asked.epsilon:g}",
        f"{share(both):.1%} ± {spread(both):.1%}",
        f"{both.errors}",
        f"{share(pairs):.1%}",
        f"{share(single):.1%}",
        race,
        f"{size} items: {subset_errors(asked, size):.1%}",
    ]
    return f"| {' | '.join(columns)} |"


def pruned_rows(questions: list[Real], runs: int) -> Iterator[str]:
    """Yield rows about Optuna's pruner, one for each question about the same table."""
    table = questions[0].table
    cells, answers = pruned(table, min(FEWER, runs))
    for asked in questions:
        own = share(simulated(asked.problem, table, runs))
        errors = is_wrong(asked.problem, table.mean(axis=1), np.array(answers)[:, None]).sum()
        yield f"| {asked.title} | 1; {asked.epsilon:g} | {own:.1%} | {cells:.1%} | {errors} |"


def made_up_row(n: int, n_items: int, m: int, epsilon: float, *, tables: int) -> str:
    """Return a row about made-up tables."""
    problem = sl.Problem(m, epsilon, DELTA, n=n, rewards=sl.Bernoulli(), items=n_items)
    found: dict[str, list[Simulation]] = {}
    for seed in range(tables):
        table = made_up(n, n_items, seed)
        arms = np.random.default_rng([seed, 1]).permutation(n).tolist()
        for kind in ("both", "pairs", "single"):
            found.setdefault(kind, []).append(simulated(problem, table, 1, kind, seed))
        for count in (1, 3):
            known = problem.changed(known={arm: table[arm] for arm in arms[:count]})
            found.setdefault(f"{count} known", []).append(simulated(known, table, 1, seed=seed))
    shares = {kind: float(np.mean([share(one) for one in runs])) for kind, runs in found.items()}
    errors = sum(one.errors for one in found["both"])
    better = min(shares["pairs"], shares["single"])
    return (
        f"| {n} x {n_items:,} | {m}; {epsilon:g} | {shares['both']:.1%} | {errors} | {shares['pairs']:.1%} | "
        f"{shares['single']:.1%} | {shares['both'] / better:.2f} | {shares['1 known']:.1%} | "
        f"{shares['3 known']:.1%} |"
    )


def large(n: int, n_items: int) -> dict[str, float]:
    """Return the share, the seconds of deciding and the memory of one run; call it in a fresh process."""
    table = made_up(n, n_items, 1)
    problem = sl.Problem(5, 0.02, DELTA, n=n, rewards=sl.Bernoulli(), items=n_items)
    start, before = time.perf_counter(), time.process_time()
    found = simulated(problem, table, 1)
    return {
        "share": share(found),
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - before,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def large_row(n: int, n_items: int) -> str:
    """Return a row about a large table, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.items", "--large", str(n), str(n_items)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    return (
        f"| {n:,} x {n_items:,} | {found['share']:.1%} | {found['seconds']:.1f} | {found['cpu']:.1f} | "
        f"{found['gigabytes']:.2f} |"
    )


def section(title: str, text: str, header: str, rows: Iterable[str]) -> list[str]:
    """Return the lines of a table of results, and print its rows as they come."""
    lines = [f"## {title}", "", text, "", header, "|---" * (header.count("|") - 1) + "|"]
    for row in rows:
        lines.append(row)
        print(row, flush=True)
    return [*lines, ""]


def on_real_tables(runs: int, tables: dict[str, FloatArray]) -> list[str]:
    """Return the section about real tables."""
    return section(
        "Real tables",
        REAL.format(tables=described(tables), runs=runs, few=min(FEW, runs), subsets=SUBSETS),
        "| table | m; epsilon | `shared-items` | errors | pairs only | single only | race | subset of the "
        "same size: errors |",
        (real_row(Real(*of, *asked), runs) for of in tables.items() for asked in ASKED),
    )


def wilcoxon_pruner(runs: int, tables: dict[str, FloatArray]) -> list[str]:
    """Return the section about Optuna."""
    title = "Optuna's Wilcoxon pruner"
    if importlib.util.find_spec("optuna") is None:
        return [f"## {title}", "", "Not measured: Optuna was not installed.", ""]
    version = importlib.import_module("optuna").__version__
    questions = [[Real(*of, m, epsilon) for m, epsilon in ASKED if m == 1] for of in tables.items()]
    return section(
        title,
        WILCOXON.format(version=version, few=min(FEWER, runs)),
        "| table | m; epsilon | `shared-items` | pruner | its errors |",
        (row for of_one in questions for row in pruned_rows(of_one, runs)),
    )


def made_up_tables(runs: int, _: object) -> list[str]:
    """Return the section about made-up tables."""
    return section(
        "Made-up tables",
        MADE_UP_TEXT.format(runs=runs),
        "| table | m; epsilon | `shared-items` | errors | pairs only | single only | divided by the better | "
        "1 known row | 3 known rows |",
        (made_up_row(*case, tables=runs) for case in MADE_UP),
    )


def large_tables(_: int, __: object) -> list[str]:
    """Return the section about time and memory."""
    return section(
        "Time and memory of deciding",
        LARGE_TEXT.format(version=platform.python_version(), machine=platform.machine()),
        "| table | share | seconds | CPU seconds | memory in all, GiB |",
        (large_row(*size) for size in LARGE),
    )


SECTIONS = {
    "real": on_real_tables,
    "optuna": wilcoxon_pruner,
    "made-up": made_up_tables,
    "large": large_tables,
}


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="random orders, or made-up tables, for each row")
    parser.add_argument("--only", choices=SECTIONS, help="one section; others stay as they are in the file")
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="a folder with more tables of scores")
    parser.add_argument(
        "--large", type=int, nargs=2, metavar=("ARMS", "ITEMS"), help="one large table; prints JSON"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.large:
        print(json.dumps(large(*given.large)))
        return
    earlier = given.output.read_text(encoding="utf-8").split("\n## ")[1:] if given.output.is_file() else []
    known = {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in earlier}
    tables = real_tables(given.tables)
    for name, build in SECTIONS.items():
        if given.only in (None, name):
            lines = build(given.runs, tables)
            known[lines[0].removeprefix("## ")] = "\n".join(lines)
    text = [INTRODUCTION.format(delta=DELTA), *(known[title] for title in TITLES if title in known)]
    given.output.write_text("\n".join(text), encoding="utf-8")


TITLES = ("Real tables", "Optuna's Wilcoxon pruner", "Made-up tables", "Time and memory of deciding")
INTRODUCTION = """\
# Shared items

Written by `python -m benchmarks.items`. The share of a table of scores (arms x items) that is measured before
the m best arms are certain to within epsilon, with delta = {delta}. The whole table is 100 %. *Errors* are
runs with a selected arm that is more than epsilon below the m-th best, over all items.
"""
REAL = """\
{tables}
{runs} random orders of the items, with standard errors.

- *Pairs only* and *single only*: the same strategy with one of its two kinds of evidence, which gets the
  whole of delta.
- *Race*: draws items for each arm by itself, with replacement; {few} runs.
- *Subset*: all arms are measured on the same items, with as many scores in all as `shared-items` takes on
  average. How often the m best on them are a wrong answer, in {subsets:,} random subsets. Nobody knows in
  advance how many items suffice, nor afterwards whether they did."""
WILCOXON = """\
Optuna {version}, {few} runs. Arms come in random order; each is measured until Optuna's pruner, with its
defaults, stops it because it looks worse than the best arm so far. It answers for m = 1 only, and promises
nothing about the answer."""
MADE_UP_TEXT = """\
{runs} tables for each row, each with one random order. Arm i answers item k correctly with probability
1 / (1 + exp(-a_k (theta_i - b_k))): theta normal (0.8, 0.5), b normal (0, 1.5), ln a normal (0.3, 0.3). Known
rows belong to arms that were drawn at random; they cost nothing."""
LARGE_TEXT = """\
One run with m = 5, epsilon = 0.02 on a made-up table, in a process of its own; looking up the scores is
included. Targets: 1,000 x 10,000 within a minute and 2 GiB. Python {version}, {machine}."""


if __name__ == "__main__":
    main()
