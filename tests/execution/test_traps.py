"""Five ways in which many workers make a guarantee false without anybody noticing; none may come back.

Each test was seen to fail with its protection taken out.
"""

import multiprocessing
import pickle
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.execution import scheduler as loop
from tests.execution.measures import MEANS, N, exact, global_noise, noisy, problem

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]


# --- 1. a repeated measurement must never be remembered -------------------------------------------


class Remembering(ThreadPoolExecutor):
    """Returns what it returned before when it is given an equal call, as caches and some clusters do."""

    def __init__(self) -> None:
        super().__init__(2)
        self.known: dict[bytes, Future[Any]] = {}
        self.n_hits = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        key = pickle.dumps((fn, args, kwargs))
        if key in self.known:
            self.n_hits += 1
        else:
            self.known[key] = super().submit(fn, *args, **kwargs)
        return self.known[key]


def test_the_executor_of_this_test_remembers() -> None:
    with Remembering() as executor:
        assert len({executor.submit(time.perf_counter_ns).result() for _ in range(5)}) == 1


DRAWN: list[float] = []


def drawing(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
    rewards = noisy(arm, count, rng)
    DRAWN.extend(rewards.tolist())
    return rewards


def test_no_two_calls_are_equal_even_where_equal_calls_are_remembered() -> None:
    DRAWN.clear()
    with Remembering() as executor:
        found = sl.select(drawing, problem(m=1), "lucb", executor=executor, reproducible=True)
        assert executor.n_hits == 0
    assert len(DRAWN) == len(set(DRAWN)) == found.n_pulls
    assert found.n_pulls > 10 * N
    assert exact(found) == exact(sl.select(noisy, problem(m=1), "lucb"))


TRIES: list[int] = []


def failing_at_first(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
    TRIES.append(arm)
    if TRIES.count(3) in {1, 2}:
        raise OSError("offline")
    return noisy(arm, count, rng)


def test_a_failure_is_not_remembered_either() -> None:
    TRIES.clear()
    with Remembering() as executor:
        how: dict[str, Any] = {"executor": executor, "retries": 20, "reproducible": True}
        found = sl.select(failing_at_first, problem(), "wnelim", **how)
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))


# --- 2. workers must not share randomness ---------------------------------------------------------


def global_block(arms: IntArray, counts: IntArray, _: np.random.Generator) -> FloatArray:
    return MEANS[arms] + np.random.normal(size=len(arms)) + random.gauss(0.0, 1.0)  # noqa: NPY002


def standard_noise(_arm: int, count: int, _: np.random.Generator) -> list[float]:
    return [random.gauss(0.0, 1.0) for _ in range(count)]


@pytest.fixture(scope="module")
def forked() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as executor:
        yield executor


def shared(n: int) -> list[float]:
    time.sleep(0.2)
    return np.random.normal(size=n).tolist()  # type: ignore[no-any-return]  # noqa: NPY002


def test_forked_workers_share_randomness_if_nothing_is_done(forked: ProcessPoolExecutor) -> None:
    drawn = [future.result()[0] for future in [forked.submit(shared, 1) for _ in range(4)]]
    assert len(set(drawn)) < 4, "otherwise the next test would show nothing"


@pytest.mark.parametrize(
    "measure",
    [global_noise, standard_noise, sl.vectorised(global_block, block=3)],
    ids=["numpy.random", "random", "vectorised"],
)
def test_forked_workers_draw_different_rewards(forked: ProcessPoolExecutor, measure: Any) -> None:
    asked = sl.Problem(m=1, epsilon=0.7, delta=0.1, variances=np.ones(N))
    session = sl.Session(asked, "race")
    found = sl.drive(session, measure, executor=forked)
    means = np.concatenate([event.means for event in session.events])
    assert len(set(means.tolist())) == len(means) > 2 * N
    assert exact(found) == exact(sl.select(measure, asked, "race"))


# --- 3. never average in the order of completion --------------------------------------------------


def test_good_rewards_that_take_longer_count_as_much() -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        rewards = noisy(arm, count, rng)
        time.sleep(0.002 if rewards[0] > MEANS[arm] else 0.0)
        return rewards

    asked = problem(variances=np.full(N, 0.1))
    with ThreadPoolExecutor(8) as threads:
        found = sl.select(measure, asked, "wnelim", executor=threads, pulls_per_call=2, turns=1)
    for arm in range(N):
        count = int(found.arms.pulls[arm])
        calls = [(first, min(2, count - first)) for first in range(0, count, 2)]
        drawn = [
            noisy(arm, size, sl.measure.Call(asked.entropy(0), arm, size, first).rng) for first, size in calls
        ]
        assert found.arms.means[arm] == pytest.approx(np.concatenate(drawn).mean(), abs=1e-12)


def test_nothing_is_decided_before_a_round_is_whole() -> None:
    rounds: list[tuple[int, int]] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        if arm == 4:
            time.sleep(0.05)  # the best comes last
        return noisy(arm, count, rng)

    def progress(session: sl.Session) -> None:
        result = session.result
        rounds.append((result.n_rounds, int((result.arms.pulls > 0).sum())))

    with ThreadPoolExecutor(4) as threads:
        sl.select(measure, problem(), "race", executor=threads, progress=progress)
    assert all(measured == N for n_rounds, measured in rounds if n_rounds > 0)
    assert any(n_rounds == 0 for n_rounds, _ in rounds)


# --- 4. a ticket counts once ----------------------------------------------------------------------


def test_what_was_told_stands_when_its_block_is_measured_again() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[:2], means=[0.25, 0.5])
    changing = iter(range(1000))
    found = sl.drive(session, sl.vectorised(lambda arms, *_: arms + 0.001 * next(changing), block=4))
    assert found.arms.means[:2].tolist() == [0.25, 0.5]
    assert found.n_pulls == tickets.counts.sum()
    assert not session.conflicts


def test_an_answer_that_comes_after_its_time_and_again_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_GRACE", 0.1)
    again = threading.Event()
    tries: list[int] = []

    def measure(arm: int, count: int, _: np.random.Generator) -> list[float]:
        if arm == 3:
            tries.append(len(tries))
            if len(tries) == 1:
                again.wait(60)  # late: it comes back when the second try is under way
                return [10.0] * count
            again.set()
            time.sleep(0.05)
            return [20.0] * count
        return [float(arm)] * count

    session = sl.Session(problem(), "wnelim")
    with ThreadPoolExecutor(3) as threads:
        found = sl.drive(session, measure, executor=threads, timeout=0.2, retries=100, turns=1)
    assert len(tries) > 1
    assert found.arms.means[3] in {10.0, 20.0}
    assert found.n_pulls == sum(ticket.count for ticket in sl.Session(problem(), "wnelim").ask())
    assert not session.conflicts


# --- 5. what fails is not missing at random -------------------------------------------------------


def failing_when_high(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
    rewards = noisy(arm, count, rng)
    if arm == 4 and rewards.max() > MEANS[arm] + 1.0:
        raise OverflowError("out of range")
    return rewards


@pytest.mark.parametrize("n_threads", [0, 3])
def test_a_failure_that_depends_on_the_reward_stops_the_run(n_threads: int) -> None:
    session = sl.Session(problem(), "wnelim")
    with ThreadPoolExecutor(max(1, n_threads)) as threads:
        executor = threads if n_threads else None
        with pytest.raises(sl.MeasurementFailed, match=r"arm-4 \(arm 4, .*out of range"):
            sl.drive(session, failing_when_high, executor=executor, retries=30, pulls_per_call=5)
    assert session.result.guarantee is None
    assert session.result.stop is sl.Stop.OPEN
    assert 4 in session.ask().arms
    assert exact(sl.drive(session, noisy, pulls_per_call=5)) == exact(
        sl.select(noisy, problem(), "wnelim", pulls_per_call=5)
    )
