"""Async measurements: many calls at once in one event loop, with the same answer as one after the other."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shortlist as sl

TABLE = np.random.default_rng(3).random((6, 60)).round(2)
TABLE[4] = np.minimum(TABLE[4] + 0.3, 1.0)
PROBLEM = sl.Problem(m=1, epsilon=0.05, delta=0.1, n=6, rewards=sl.Bounded(0, 1), items=60)


class Calls:
    """An async measurement that counts how many calls run at once, and on which threads."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.threads: set[int] = set()

    async def __call__(self, arm: int, items: list[int]) -> list[float]:
        self.running += 1
        self.most = max(self.most, self.running)
        self.threads.add(threading.get_ident())
        await asyncio.sleep(0.002)
        self.running -= 1
        return [float(TABLE[arm, item]) for item in items]


def plain(arm: int, items: list[int]) -> list[float]:
    return [float(TABLE[arm, item]) for item in items]


def test_an_async_function_gives_the_answer_of_a_plain_one_with_calls_at_once_in_one_loop() -> None:
    calls = Calls()
    found, expected = sl.select(calls, PROBLEM, concurrency=8), sl.select(plain, PROBLEM)
    assert found.selected == expected.selected
    assert found.n_pulls - found.n_ahead == expected.n_pulls
    assert 2 <= calls.most <= 8
    assert len(calls.threads) == 1
    assert threading.get_ident() not in calls.threads


def test_rewards_of_streams_may_come_from_an_async_function() -> None:
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 3)

    async def draw(arm: int, count: int, rng: np.random.Generator) -> Any:
        await asyncio.sleep(0)
        return rng.normal(arm, 1.0, count)

    assert sl.select(draw, problem).selected == ("arm-2",)


def test_inside_a_running_loop_it_uses_that_loop_and_does_not_block_it() -> None:
    calls, ticks = Calls(), 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def both() -> sl.Result:
        ticking = asyncio.create_task(tick())
        found = await sl.select_async(calls, PROBLEM, concurrency=4)
        ticking.cancel()
        return found

    assert asyncio.run(both()).selected == sl.select(plain, PROBLEM).selected
    assert calls.threads == {threading.get_ident()}
    assert calls.most <= 4
    assert ticks > 10


def test_a_plain_function_in_a_running_loop_runs_beside_it() -> None:
    found = asyncio.run(sl.select_async(plain, PROBLEM))
    assert found.selected == sl.select(plain, PROBLEM).selected


def test_a_cancelled_run_makes_no_new_calls_and_goes_on_later(tmp_path: Any) -> None:
    begun: list[tuple[int, int]] = []
    n_calls = 0

    async def cancelled() -> None:
        both_wait, go_on = asyncio.Event(), asyncio.Event()

        async def measure(arm: int, items: list[int]) -> list[float]:
            nonlocal n_calls
            n_calls += 1
            begun.extend((arm, item) for item in items)
            if n_calls >= 4:
                both_wait.set()
            if n_calls >= 3:
                await go_on.wait()
            return plain(arm, items)

        task = asyncio.create_task(sl.select_async(measure, PROBLEM, store=tmp_path / "a.db", concurrency=2))
        await both_wait.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.sleep(0)

    asyncio.run(cancelled())
    assert n_calls == 4
    again: list[tuple[int, int]] = []

    def later(arm: int, items: list[int]) -> list[float]:
        again.extend((arm, item) for item in items)
        return plain(arm, items)

    found = sl.select(later, PROBLEM, store=tmp_path / "a.db")
    assert found.selected == sl.select(plain, PROBLEM).selected
    assert not {*begun} & {*again}, "what ran when the run was cancelled is recorded"


@pytest.mark.parametrize("function", [Calls(), plain])
def test_an_executor_and_concurrency_are_not_given_together(function: Callable[..., Any]) -> None:
    with pytest.raises(sl.InvalidProblem, match="executor"):
        sl.select(function, PROBLEM, executor=sl.Processes(2), concurrency=2)


def test_errors_of_a_coroutine_are_retried_and_reported() -> None:
    tries = 0

    async def flaky(arm: int, items: list[int]) -> list[float]:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise ConnectionError("try again")
        return plain(arm, items)

    retries = sl.Retries(3, first=0.001)
    assert sl.select(flaky, PROBLEM, retries=retries).selected == sl.select(plain, PROBLEM).selected
    tries = -(10**6)
    with pytest.raises(sl.MeasurementFailed, match="try again"):
        sl.select(flaky, PROBLEM, retries=0)


def test_a_thread_gets_no_call_before_its_last_answer_is_stored() -> None:
    begun, most, lock = 0, 0, threading.Lock()

    class Slow(sl.Session):
        def answer(self, *given: Any, **options: Any) -> None:
            time.sleep(0.005)  # a store takes longer than a call
            super().answer(*given, **options)

    session = Slow(PROBLEM)

    def measure(arm: int, items: list[int]) -> list[float]:
        nonlocal begun, most
        with lock:
            begun += 1
            most = max(most, begun - session.n_made)
        return plain(arm, items)

    found = sl.drive(session, measure, concurrency=4, pulls_per_call=1)
    assert found.selected == sl.select(plain, PROBLEM).selected
    assert most <= 4  # after a crash at most so many calls are repeated
