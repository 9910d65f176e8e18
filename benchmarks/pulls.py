"""What strategies spend: pulls on named instances, beside what no algorithm can beat (`make bench-pulls`).

Every registered strategy that takes a problem is run on it, all from the same seeds. A strategy that pulls a
few arms at a time is given an allowance of pulls and seconds, and what did not finish is said so. It is run
once, not for both kinds of noise, and so is every other that makes no use of Gaussian noise. One row per
replication goes to benchmarks/results/pulls.csv.gz, the summary to pulls.md and a figure to pulls.svg.
"""

import argparse
import csv
import gzip
import io
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import shortlist as sl
from benchmarks.pulls_cases import NOISES, Case, cases
from benchmarks.pulls_report import Bounds, Row, Task, draw, summary
from shortlist.bounds.characteristic import characteristic_bound
from shortlist.rewards import KINDS
from shortlist.strategies import strategy_named

RESULTS = Path(__file__).parent / "results"
SEED = 2022
WORKERS = 2
MANY_ARMS = 1000  # from so many on there are fewer replications
SMALL_STEPS = {"lucb", "ugape", "lucb-mixture", "top-two"}


class Effort(NamedTuple):
    """How many replications to run, and what a strategy of small steps is allowed."""

    few_arms: int = 200
    many_arms: int = 50
    trial: int = 2
    budget: int = 500_000
    seconds: float = 8.0

    def replications(self, n: int) -> int:
        """Return how many replications a problem with n arms gets."""
        return self.few_arms if n < MANY_ARMS else self.many_arms


FULL = Effort()
QUICK = Effort(few_arms=10, many_arms=4, trial=2, budget=20_000, seconds=2.0)


def bounds(case: Case) -> Bounds:
    """Return the lower bounds of an instance: for the worst means, and for its own."""
    found = case.build()
    problem = found.problem
    own = characteristic_bound(problem, found.means)
    scale = 2 * float(problem.variances.sum()) / problem.epsilon**2
    worst = float(sl.lower_bound(problem) or 0.0)
    left_open = frozenset(
        Task(case.name, noise, name)
        for noise in NOISES
        for name in sl.strategies.names()
        if not is_promised(name, problem.changed(rewards=KINDS[noise]))
    )
    return Bounds(case.name, problem.n, problem.m, problem.delta, scale, worst, own, left_open)


def is_promised(name: str, problem: sl.Problem) -> bool:
    """Return whether a strategy takes a problem and promises what it asks for."""
    strategy = strategy_named(name)
    guarantee = None if strategy.unfit(problem) else strategy.guarantee(problem)
    return guarantee is not None and guarantee.answers(problem)


def run(task: Task, case: Case, effort: Effort, own: float) -> list[Row]:
    """Return one row per replication; none if even the bound exceeds the allowance."""
    found = case.build()
    problem = found.problem.changed(rewards=KINDS[task.noise])
    wanted = effort.replications(problem.n)

    def rows(replications: int, budget: int | None = None) -> list[Row]:
        outcome = sl.simulate(
            problem, found.means, task.strategy, replications=replications, seed=SEED, budget=budget
        )
        columns = (outcome.pulls.tolist(), outcome.is_error.tolist(), outcome.is_final.tolist())
        return [Row(*task, place, SEED, *each) for place, each in enumerate(zip(*columns, strict=True))]

    if task.strategy not in SMALL_STEPS:
        return rows(wanted)
    if own > effort.budget:
        return []
    started = time.monotonic()
    some = rows(min(effort.trial, wanted), effort.budget)
    affordable = int(len(some) * effort.seconds / (time.monotonic() - started))
    if affordable <= len(some) or not all(row.is_final for row in some):
        return some
    return rows(min(wanted, affordable), effort.budget)


def tasks(case: Case, wanted: list[str]) -> Iterator[Task]:
    """Yield what to run on an instance: strategies that take its problem and promise the m best arms."""
    problem = case.build().problem
    for noise in NOISES:
        asked = problem.changed(rewards=KINDS[noise])
        for name in wanted:
            strategy = strategy_named(name)
            if strategy.unfit(asked) or strategy.n_selected(asked) != problem.m:
                continue
            is_same = strategy.guarantee(asked) == strategy.guarantee(
                problem.changed(rewards=KINDS[NOISES[0]])
            )
            if noise == NOISES[0] or not (is_same or name in SMALL_STEPS):
                yield Task(case.name, noise, name)


def measured(
    chosen: list[Case], wanted: list[str], effort: Effort
) -> tuple[list[Bounds], dict[Task, list[Row]]]:
    """Return the bounds of all instances, and the rows of every task, run side by side."""
    found: dict[Task, list[Row]] = {}
    with ProcessPoolExecutor(WORKERS) as pool:
        known = []
        for each in pool.map(_bounds_of, [case.name for case in chosen]):
            known.append(each)
            print(f"{each.instance}: at least {each.own:,.0f} pulls", flush=True)
        todo = [
            (task, each.own) for case, each in zip(chosen, known, strict=True) for task in tasks(case, wanted)
        ]
        futures = {pool.submit(_run_named, task, effort, own): task for task, own in todo}
        for done, future in enumerate(as_completed(futures), 1):
            task = futures[future]
            found[task] = future.result()
            print(f"[{done}/{len(todo)}] {' '.join(task)}: {len(found[task])} replications", flush=True)
    return known, {task: found[task] for task, _ in todo}


def _bounds_of(name: str) -> Bounds:
    return bounds(_named(name))


def _run_named(task: Task, effort: Effort, own: float) -> list[Row]:
    return run(task, _named(task.instance), effort, own)


def _named(name: str) -> Case:
    return next(case for case in cases([]) if case.name == name)


def commit() -> str:
    """Return the commit that is measured, and whether files differ from it."""
    root = Path(__file__).parent.parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" (dirty)" if changed else "")


def provenance(measured_at: str, only: list[str]) -> str:
    """Return at which commit rows were measured; if only those of some strategies were, others are older."""
    return f"{measured_at} for {', '.join(only)}, earlier ones for other strategies" if only else measured_at


def write_csv(path: Path, known: list[Bounds], found: dict[Task, list[Row]]) -> None:
    """Write one line per replication, the same bytes for the same rows."""
    scales = {each.instance: each.scale for each in known}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*Row._fields[:6], "x", *Row._fields[6:]])
    for rows in found.values():
        for row in rows:
            x = f"{row.pulls / scales[row.instance]:.6g}"
            writer.writerow([*row[:6], x, int(row.is_error), int(row.is_final)])
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read_csv(path: Path) -> dict[Task, list[Row]]:
    """Return the rows that were written before."""
    found: dict[Task, list[Row]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            task = Task(line["instance"], line["noise"], line["strategy"])
            replication, seed, pulls = (int(line[name]) for name in ("replication", "seed", "pulls"))
            is_error, is_final = (line[name] == "1" for name in ("is_error", "is_final"))
            found.setdefault(task, []).append(Row(*task, replication, seed, pulls, is_error, is_final))
    return found


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return what was asked for on the command line."""
    parser = argparse.ArgumentParser(description="Measure the pulls of all strategies on named instances.")
    parser.add_argument("--quick", action="store_true", help="few replications, to try it out")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only these instances")
    parser.add_argument("--strategies", default="", metavar="A,B", help="only these strategies")
    parser.add_argument("--keep", action="store_true", help="keep what was measured of other strategies")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where results go")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> None:
    """Measure, then write rows, summary and figure."""
    asked = arguments(given)
    wanted = asked.strategies.split(",") if asked.strategies else list(sl.strategies.names())
    started = time.monotonic()
    known, found = measured(cases(asked.only), wanted, QUICK if asked.quick else FULL)
    if asked.keep:
        chosen = {each.instance for each in known}
        before = read_csv(asked.output / "pulls.csv.gz").items()
        found |= {task: rows for task, rows in before if task not in found and task.instance in chosen}
    asked.output.mkdir(parents=True, exist_ok=True)
    write_csv(asked.output / "pulls.csv.gz", known, found)
    text = summary(known, found, provenance(commit(), wanted if asked.keep else []))
    (asked.output / "pulls.md").write_text(text, encoding="utf-8")
    draw(asked.output / "pulls.svg", known, found)
    print(text)
    print(f"{time.monotonic() - started:,.0f} seconds")


if __name__ == "__main__":
    main()
