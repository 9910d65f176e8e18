"""How busy workers are by default, for every kind of question, and how busy the rounds allow them to be.

Runs are measured on a virtual clock. Pulls take unequal times (lognormal, sigma 0.5), 1 s or 20 ms on
average, whoever makes them. By default a round with several arms is cut into up to 8 calls per arm, and a
round with one arm is one call. "Small calls" have at most the pulls of 50 ms, as `shortlist doctor`
proposes: --pulls-per-call 1 or 2. "Rounds allow" is how busy the same workers would be if the rounds of the
default were cut into single pulls, and each worker always took the next one: a round waits for its last
pull, whatever the cut. On shared items and in blocks, workers that would wait measure ahead, and so may be
busier than that.

Figures go to benchmarks/results/idle.md.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shortlist as sl
from benchmarks.ahead import VirtualWorkers, made_up
from shortlist.execution.tasks import Task

RESULTS = Path(__file__).parent / "results" / "idle.md"
WORKERS = (2, 4, 8, 16)
SECONDS = (1.0, 0.02)
CALL = 0.05  # seconds of a small call
SIGMA = 0.5
QUIET = 0.01  # seconds
_TABLE = made_up(20, 400, 0)


class Question(NamedTuple):
    """A question in words, the problem, and its measurement."""

    words: str
    problem: sl.Problem
    measure: Callable[..., Any]


class Busy(NamedTuple):
    """How busy workers were, and how busy the rounds of the run allow them to be."""

    pulls: int
    rounds: int
    busy: float
    allowed: float


def streams(arm: int, count: int, rng: np.random.Generator) -> Any:
    """Return Gaussian rewards of arms with means from 0 to 2."""
    return rng.normal(arm / 10, 1.0, count)


def coins(arm: int, count: int, rng: np.random.Generator) -> Any:
    """Return rewards of 0 or 1."""
    return (rng.random(count) < 0.3 + 0.025 * arm) * 1.0


def scores(arm: int, items: Sequence[int]) -> list[float]:
    """Return scores on shared items."""
    return [float(_TABLE[arm, item]) for item in items]


def blocks(arm: int, seeds: Sequence[int]) -> list[float]:
    """Return rewards of which half the variance is shared by all arms."""
    return [
        float(np.random.default_rng(seed).normal() + np.random.default_rng([seed, arm]).normal(arm / 10))
        for seed in seeds
    ]


def questions() -> Iterator[Question]:
    """Yield one question of each kind, about 20 arms."""
    gaussian = sl.Gaussian()
    yield Question("known variances", sl.Problem(2, 0.5, 0.05, variances=[1.0] * 20), streams)
    yield Question("unknown variances", sl.Problem(2, 0.5, 0.05, n=20, rewards=gaussian), streams)
    yield Question("0 or 1", sl.Problem(2, 0.1, 0.05, n=20, rewards=sl.Bernoulli()), coins)
    yield Question("shared items", sl.Problem(1, 0.03, 0.05, n=20, rewards=sl.Bernoulli(), items=400), scores)
    yield Question("blocks", sl.Problem(2, 0.3, 0.05, n=20, rewards=gaussian, items=sl.Blocks()), blocks)


def pull_times(seconds: float, arm: int, first_pull: int, count: int) -> list[float]:
    """Return how long some pulls take, the same whoever makes them."""
    drawn = [np.random.default_rng([arm, pull]).normal() for pull in range(first_pull, first_pull + count)]
    return [seconds * float(np.exp(SIGMA * one - SIGMA**2 / 2)) for one in drawn]


def least_time(pulls: Sequence[float], n_workers: int) -> float:
    """Return how long workers take if each always takes the next single pull."""
    free = [0.0] * n_workers
    for seconds in pulls:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def measured(question: Question, n_workers: int, seconds: float, size: int | None = None) -> Busy:
    """Return how busy workers are in a run with at most so many pulls per call, 8 turns by default."""
    with sl.Session(question.problem) as session:
        rounds: defaultdict[int, list[float]] = defaultdict(list)

        def latency(_source: Any, task: Task) -> float:
            times = [
                one
                for call in task.calls
                for one in pull_times(seconds, call.arm, call.first_pull, call.count)
            ]
            rounds[session.asked.round].extend(times)
            return sum(times)

        workers = VirtualWorkers(n_workers, latency, QUIET)
        result = sl.drive(session, question.measure, executor=workers, pulls_per_call=size, progress=False)
        workers.shutdown()
    total = sum(map(sum, rounds.values()))
    least = sum(least_time(times, n_workers) for times in rounds.values())
    busy = workers.busy / (n_workers * workers.now)
    return Busy(result.n_pulls, result.n_rounds, busy, total / (n_workers * least))


def main() -> None:
    """Measure and write the table."""
    lines = [
        "# How busy workers are",
        "",
        (__doc__ or "").split("\n\n")[1].replace("\n", " "),
        "",
        "| rewards | workers | pulls | rounds | busy, pulls of 1 s | of 20 ms | rounds allow | "
        "small calls, 1 s | 20 ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for question in questions():
        for n_workers in WORKERS:
            slow, quick = (measured(question, n_workers, seconds) for seconds in SECONDS)
            small = [
                f"{measured(question, n_workers, seconds, max(1, round(CALL / seconds))).busy:.0%}"
                for seconds in SECONDS
            ]
            lines.append(
                f"| {question.words} | {n_workers} | {slow.pulls:,} | {slow.rounds} | {slow.busy:.0%} | "
                f"{quick.busy:.0%} | {slow.allowed:.0%} | {' | '.join(small)} |"
            )
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
