"""How busy workers are on shared items, and how many scores they measure for nothing.

Sixteen workers with heavy-tailed latencies (lognormal, sigma 1) measure made-up tables on a virtual clock:
calls take no time, but their answers arrive in the order of the clock. Workers that would wait for a decision
measure ahead. Figures go to benchmarks/results/ahead.md.
"""

import heapq
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.execution.tasks import Outcome, Task

RESULTS = Path(__file__).parent / "results" / "ahead.md"
WORKERS = 16
_QUIET = 0.003  # seconds without a new task, after which the driver is taken to wait


class VirtualWorkers(Executor):
    """Workers on a virtual clock: tasks end in the order of the clock, whenever the driver waits.

    `latency` returns how long a task takes, given what `perform` gets: the source and the task. After `quiet`
    seconds without a new task, the driver is taken to wait.

    Attributes
    ----------
    now, busy
        The time on the clock, and the time that all workers together were busy.
    """

    def __init__(self, n: int, latency: Callable[[Any, Task], float], quiet: float = _QUIET) -> None:
        self._max_workers, self._latency, self._quiet = n, latency, quiet
        self.now = self.busy = 0.0
        self._pending: list[tuple[Future[Any], Callable[..., Any], tuple[Any, Task]]] = []
        self._running: list[tuple[float, int, Future[Any], Callable[[], Outcome]]] = []
        self._n_started, self._last, self._is_open = 0, time.monotonic(), True
        self._lock = threading.Condition()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Queue a task."""
        future: Future[Any] = Future()
        with self._lock:
            self._pending.append((future, partial(fn, **kwargs), (args[0], args[1])))
            self._last = time.monotonic()
            self._lock.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the clock."""
        self._is_open = False
        if wait or cancel_futures:
            self._thread.join()

    def _work(self) -> None:
        while self._is_open:
            with self._lock:
                self._start_tasks()
                if not self._running or time.monotonic() - self._last < self._quiet:
                    self._lock.wait(self._quiet / 3)
                    continue
                self.now, _, future, do = heapq.heappop(self._running)
            future.set_result(do())
            self._last = time.monotonic()

    def _start_tasks(self) -> None:
        while self._pending and len(self._running) < self._max_workers:
            future, do, args = self._pending.pop(0)
            if future.set_running_or_notify_cancel():
                seconds = self._latency(*args)
                self.busy += seconds
                self._n_started += 1
                done: Callable[[], Outcome] = partial(_timed, do, args, seconds)
                heapq.heappush(self._running, (self.now + seconds, self._n_started, future, done))


def _timed(perform: Callable[..., Outcome], args: tuple[Any, Task], seconds: float) -> Outcome:
    """Return the outcome of a task, as if it had taken so long."""
    return replace(perform(*args), seconds=seconds)


def made_up(n: int, n_items: int, seed: int) -> FloatArray:
    """Return 0/1 scores of arms of different ability on items of different difficulty."""
    rng = np.random.default_rng(seed)
    ability, ease = rng.normal(0.8, 0.5, n), rng.normal(0, 1.5, n_items)
    odds = np.exp(np.exp(rng.normal(0.3, 0.3, n_items)) * (ability[:, None] + ease))
    scores: FloatArray = (rng.random((n, n_items)) < odds / (1 + odds)).astype(np.float64)
    return scores


def measured(table: FloatArray, m: int, epsilon: float, seed: int) -> tuple[float, sl.Result, sl.Result]:
    """Return how busy workers were, their result, and that of a single worker."""
    n, n_items = table.shape
    problem = sl.Problem(m, epsilon, 0.05, n=n, rewards=sl.Bernoulli(), items=n_items)
    rng = np.random.default_rng(seed)

    def look_up(arm: int, items: list[int]) -> list[float]:
        return [float(table[arm, item]) for item in items]

    workers = VirtualWorkers(WORKERS, lambda *_: float(rng.lognormal(0, 1)))
    found = sl.select(look_up, problem, seed=seed, executor=workers, pulls_per_call=1, turns=1)
    workers.shutdown()
    alone = sl.select(look_up, problem, seed=seed, pulls_per_call=1, turns=1)
    return workers.busy / (WORKERS * workers.now), found, alone


def main() -> None:
    """Measure and write the table."""
    lines = [
        "# Workers on shared items",
        "",
        __doc__.split("\n\n")[1].replace("\n", " "),
        "",
        "| arms x items | m | epsilon | scores | busy | measured for nothing | decisions | same answer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n, n_items, m, epsilon in (
        (20, 400, 3, 0.03),
        (30, 500, 1, 0.02),
        (40, 1319, 3, 0.02),
        (100, 1000, 5, 0.03),
    ):
        for seed in (0, 1) if n < 100 else (0,):
            busy, found, alone = measured(made_up(n, n_items, seed), m, epsilon, seed)
            is_same = found.selected == alone.selected and found.n_pulls - found.n_ahead == alone.n_pulls
            lines.append(
                f"| {n} x {n_items} | {m} | {epsilon} | {found.n_pulls:,} | {busy:.1%} | "
                f"{found.n_ahead / found.n_pulls:.1%} | {found.n_rounds} | {'yes' if is_same else 'NO'} |"
            )
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
