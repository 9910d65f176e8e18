"""The loop that measures: the same run with any workers, and clear words for whatever goes wrong."""

import io
import multiprocessing
import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import loky
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.arrays import IntArray
from shortlist.certificates import Certificate
from shortlist.execution.scheduler import Pace
from shortlist.measure import Call, Calls, FunctionSource, pooled, summary_of
from shortlist.report import progress
from shortlist.report.progress import Account
from shortlist.session.call_plan import CallPlan, PartialAnswers
from shortlist.tickets import Tickets
from tests.execution.measures import MEANS, N, Once, exact, noisy, noisy_block, problem
from tests.questions import unknown

BAD = ["raises", "leaves", "is_nan", "is_short", "is_text", "is_nothing"]
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "function": (noisy, {}),
    "split": (noisy, {"pulls_per_call": 3}),
    "vectorised": (sl.vectorised(noisy_block, block=4), {}),
    "vectorised and split": (sl.vectorised(noisy_block, block=4), {"pulls_per_call": 3}),
    "simulated": (sl.simulated_measure(problem(), MEANS), {}),
}
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]


def pools() -> dict[str, Callable[[], Executor]]:
    return {
        "fork": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")),
        "threads": lambda: ThreadPoolExecutor(2),
        "spawn": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")),
        "loky": lambda: loky.ProcessPoolExecutor(2),
    }


@pytest.fixture(scope="module")
def executors() -> Iterator[dict[str, Executor]]:
    made = {name: make() for name, make in pools().items()}
    for name, executor in made.items():  # forked processes are to start while there are no threads
        if name != "threads":
            for future in [executor.submit(time.sleep, 0.05) for _ in range(2)]:
                future.result()
    yield made
    for executor in made.values():
        executor.shutdown()


@pytest.fixture(params=list(pools()))
def executor(request: pytest.FixtureRequest, executors: dict[str, Executor]) -> Executor:
    return executors[request.param]


# --- the same run, whoever measures ---------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_is_the_same_whoever_measures(executor: Executor, way: str) -> None:
    measure, options = WAYS[way]
    alone = sl.select(measure, problem(), "race", seed=5, **options)
    assert exact(sl.select(measure, problem(), "race", seed=5, executor=executor, **options)) == exact(alone)
    assert alone.n_pulls > 100
    assert exact(alone) != exact(sl.select(measure, problem(), "race", seed=6, **options))


def test_processes_of_the_run_s_own_give_the_same_answer() -> None:
    before = set(multiprocessing.active_children())
    found = sl.select(noisy, problem(), "race", executor=sl.Processes(2))
    assert exact(found) == exact(sl.select(noisy, problem(), "race"))
    assert set(multiprocessing.active_children()) <= before


def test_a_function_without_a_name_can_go_to_other_processes(executor: Executor) -> None:
    shift = 0.5
    found = sl.select(lambda a, c, rng: noisy(a, c, rng) + shift, problem(), "wnelim", executor=executor)
    assert exact(found) == exact(sl.select(lambda a, c, rng: noisy(a, c, rng) + shift, problem(), "wnelim"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("told", [[0], [3], [0, 1, 2, 3, 4], [1, 5, 10], list(range(1, N))])
def test_what_was_told_before_changes_nothing_of_the_rest(way: str, told: list[int]) -> None:
    measure, options = WAYS[way]
    whole = sl.Session(problem(), "wnelim", seed=5)
    sl.drive(whole, measure, **options)
    (event,) = [np.concatenate([event.means for event in whole.events])]
    arms = np.concatenate([event.arms for event in whole.events])
    means = dict(zip(arms.tolist(), event.tolist(), strict=True))
    session = sl.Session(problem(), "wnelim", seed=5)
    session.tell([session.ask()[arm] for arm in told], means=[means[arm] for arm in told])
    assert exact(sl.drive(session, measure, **options)) == exact(whole.result)
    assert not session.conflicts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_a_budget_ends_a_run_that_can_go_on_to_the_same_answer(way: str, fraction: float) -> None:
    measure, options = WAYS[way]
    whole = sl.select(measure, problem(), "race", **options)
    session = sl.Session(problem(), "race")
    budget = int(fraction * whole.n_pulls)
    with ThreadPoolExecutor(2) as threads:
        short = sl.drive(session, measure, budget=budget, executor=threads, **options)
    assert short.stop is sl.Stop.BUDGET
    assert short.n_pulls <= budget
    assert exact(sl.drive(session, measure, **options)) == exact(whole)


def test_a_budget_below_the_first_round_is_warned_of_before_anything_is_measured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not if results that were fed select arms already, and not without need."""
    said: list[str] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        said.append(caplog.text)
        return rng.normal(arm, 1.0, count)

    question = sl.Problem(1, 0.5, 0.05, n=6, rewards=sl.Gaussian())
    needed = int(sl.Session(question).asked.counts.sum())
    short = sl.select(measure, question, budget=needed - 1)
    assert (len(short.indices), short.n_rounds) == (0, 0)
    (record,) = caplog.records
    assert record.message.startswith(f"The budget of {needed - 1} is too small for any selection: the first")
    assert f"alone takes {needed} pulls." in record.message
    assert said[0] == caplog.text
    caplog.clear()
    sl.select(measure, question, budget=needed)
    coins = sl.Problem(1, 0.1, 0.05, n=3, rewards=sl.Bernoulli())
    fed = sl.Session(coins, "race")
    fed.feed(["arm-0", "arm-1", "arm-2"], [500] * 3, successes=[50, 100, 200], label="before")
    sl.drive(fed, sl.simulated_measure(coins, [0.1, 0.2, 0.4]), budget=1)
    assert not caplog.records
    dear = sl.Problem(1, 0.5, 0.05, [1.0] * 3, costs=[1.0, 2.0, 3.5])
    sl.select(measure, dear, "single-stage", budget=2.5)
    assert "The budget of 2.5 is too small" in caplog.text
    assert "in the units of `costs`" in caplog.text


def test_bundling_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    expected = exact(sl.select(WAYS["vectorised"][0], problem(), "race", pulls_per_call=2))

    def blocks(*_: Any) -> int:
        sizes.append(1 + len(sizes) % 5)
        return sizes[-1]

    monkeypatch.setattr(Pace, "blocks", blocks)
    assert exact(sl.select(WAYS["vectorised"][0], problem(), "race", pulls_per_call=2)) == expected
    assert len(set(sizes)) == 5


class Counting(ThreadPoolExecutor):
    """Counts the tasks handed in, and the most that were unfinished at a time."""

    n_tasks = most = open = 0
    lock = threading.Lock()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        with self.lock:
            self.n_tasks, self.open = self.n_tasks + 1, self.open + 1
            self.most = max(self.most, self.open)
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self.count)
        return future

    def count(self, _: "Future[Any]") -> None:
        with self.lock:
            self.open -= 1


def test_many_cheap_arms_become_few_tasks() -> None:
    n = 2000
    wide = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=np.ones(n))
    with Counting(2) as threads:
        sl.select(lambda _a, count, _r: [0.0] * count, wide, "wnelim", executor=threads)
    assert threads.n_tasks < n / 10
    assert threads.most <= 6


def test_a_dear_call_is_a_task_of_its_own_and_no_round_is_one_task() -> None:
    pace = Pace()
    assert pace.blocks(1, 10, 1000, 2) == 1, "nothing is known yet"
    pace.note(1, 10, 5.0)
    assert pace.blocks(1, 10, 1000, 2) == 1
    cheap = Pace()
    cheap.note(1, 10, 1e-6)
    found = [cheap.blocks(1, 10, 1000, 2) for _ in range(6)]
    assert found == [4, 16, 64, 250, 250, 250], "grows by degrees, up to a share that keeps all workers busy"
    assert cheap.blocks(1, 10**9, 1000, 2) == 1, "more pulls take longer"


# --- how a round is split into calls -----------------------------------------------------------------------


def tickets(counts: list[int]) -> Tickets:
    arms = np.arange(len(counts))
    asked = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=np.ones(max(1, len(counts))))
    return Tickets(asked, 0, arms, np.array(counts), 10 * arms)


@settings(max_examples=150)
@given(
    counts=st.lists(st.integers(1, 20), min_size=1, max_size=12),
    per_call=st.none() | st.integers(1, 25),
    together=st.integers(1, 7),
    turns=st.integers(1, 8),
    data=st.data(),
)
def test_calls_cover_every_pull_once_and_blocks_every_call_wanted(
    counts: list[int], per_call: int | None, together: int, turns: int, data: st.DataObject
) -> None:
    call_plan = CallPlan.of(tickets(counts), 7, together, per_call, turns)
    calls = call_plan.calls(0, call_plan.n_calls)
    pulls = [(c.arm, c.first_pull + pull) for c in calls for pull in range(c.count)]
    every = [(arm, 10 * arm + pull) for arm, count in enumerate(counts) for pull in range(count)]
    assert sorted(pulls) == every
    assert pulls == every or call_plan.is_interleaved
    assert max(call.count for call in calls) <= (per_call or 20)
    numbers = call_plan.numbers(0, call_plan.n_calls)
    owners = call_plan.places(numbers)
    assert owners.tolist() == [call.arm for call in calls]
    assert call_plan.find(call_plan.parts(numbers)).tolist() == numbers.tolist()
    wrong = Tickets(call_plan.tickets.problem, 0, calls.arms, calls.counts + 1, calls.first_pulls)
    assert (call_plan.find(wrong) == -1).all()
    first, stop = sorted(data.draw(st.tuples(*[st.integers(0, call_plan.n_calls)] * 2)))
    assert list(call_plan.calls(first, stop)) == list(calls)[first:stop]
    wanted, barred = np.array(
        data.draw(st.lists(st.tuples(*[st.booleans()] * 2), min_size=20, max_size=20))
    ).T
    found = call_plan.blocks(
        call_plan.by_call(wanted[: len(counts)]), call_plan.by_call(barred[: len(counts)])
    )
    of = [set(owners[first : first + together].tolist()) for first in range(0, call_plan.n_calls, together)]
    expected = [
        block for block, arms in enumerate(of) if wanted[list(arms)].any() and not barred[list(arms)].any()
    ]
    assert [block for blocks in found for block in blocks] == expected


@settings(max_examples=60)
@given(
    counts=st.lists(st.integers(1, 20), min_size=1, max_size=8),
    per_call=st.integers(1, 25),
    turns=st.integers(1, 8),
    data=st.data(),
)
def test_answers_in_any_order_are_pooled_in_the_order_of_their_numbers(
    counts: list[int], per_call: int, turns: int, data: st.DataObject
) -> None:
    call_plan = CallPlan.of(tickets(counts), 7, 1, per_call, turns)
    every = np.arange(call_plan.n_calls)
    means, spreads = (
        np.random.default_rng(0).normal(size=call_plan.n_calls),
        np.full(call_plan.n_calls, np.nan),
    )
    found: dict[int, float] = {}
    parts = PartialAnswers(call_plan)
    for number in data.draw(st.permutations(range(call_plan.n_calls))):
        one = slice(number, number + 1)
        places, told, _ = parts.whole(every[one], means[one], spreads[one])
        parts.take(every[one], means[one], spreads[one])
        found |= dict(zip(places.tolist(), told.tolist(), strict=True))
    for arm in range(len(counts)):
        mine = np.flatnonzero(call_plan.places(every) == arm)
        sizes = call_plan.parts(mine).counts
        assert found[arm] == pytest.approx(np.average(means[mine], weights=sizes), abs=1e-12)
    again = PartialAnswers(call_plan).whole(every, means, spreads)
    assert dict(zip(again[0].tolist(), again[1].tolist(), strict=True)) == found, "bit for bit"
    assert parts.n_pulls.tolist() == counts


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), min_size=1, max_size=5))
def test_pooled_is_what_all_rewards_together_give(lots: list[list[float]]) -> None:
    mean, variance = pooled_rows([summary_of(lot, len(lot), "arm-0") for lot in lots])
    rewards = np.concatenate(lots)
    assert mean == pytest.approx(rewards.mean(), abs=1e-9)
    if len(rewards) == 1:
        assert np.isnan(variance)
    else:
        assert variance == pytest.approx(rewards.var(ddof=1), rel=1e-9, abs=1e-9)


def pooled_rows(lots: list[sl.Summary]) -> tuple[float, float]:
    rows = [[lot.count, lot.mean, np.nan if lot.variance is None else lot.variance] for lot in lots]
    counts, means, variances = np.array(rows).T[:, None]
    mean, variance = pooled(counts.astype(np.int64), means, variances)
    return float(mean[0]), float(variance[0])


def test_a_spread_that_is_not_known_for_one_part_is_not_known_for_the_whole() -> None:
    assert np.isnan(pooled_rows([sl.Summary(3, 1.0), sl.Summary(2, 2.0, 0.5)])[1])
    assert pooled_rows([sl.Summary(3, 0.1, 0.0)] * 3) == (0.1, 0.0)


# --- functions that measure many arms at once -----------------------------------------------------


def rows(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> Any:
    return [rng.normal(MEANS[arm], 1.0, count) for arm, count in zip(arms, counts, strict=True)]


def test_rewards_may_come_as_means_as_lists_or_as_a_table() -> None:
    def as_means(*given: Any) -> Any:
        return np.array([row.mean() for row in rows(*given)])

    def as_table(*given: Any) -> Any:
        return np.array(rows(*given))

    asked = problem(variances=np.ones(N))  # equal counts
    listed = sl.select(sl.vectorised(rows), asked, "wnelim")
    for function in (as_means, as_table):
        found = sl.select(sl.vectorised(function), asked, "wnelim")
        assert found.arms.means == pytest.approx(listed.arms.means, abs=1e-12)
        assert found.n_pulls == listed.n_pulls > N


def test_blocks_are_no_larger_than_said_and_have_generators_of_their_own() -> None:
    seen: list[tuple[list[int], float]] = []

    def function(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> Any:
        seen.append((arms.tolist(), float(rng.random())))
        arms[:], counts[:] = 0, 0  # what is ours to change is a copy
        return np.zeros(len(arms))

    sl.select(sl.vectorised(function, block=4), problem(), "wnelim", turns=1)
    assert [arms for arms, _ in seen] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert len({draw for _, draw in seen}) == 3
    seen.clear()
    sl.select(sl.vectorised(function, block=4), problem(), "wnelim")
    assert {len(arms) for arms, _ in seen} == {4}
    assert len(seen) == len({draw for _, draw in seen}) == 8 * N / 4
    seen.clear()
    sl.select(sl.vectorised(function), problem(), "wnelim")
    assert [arms for arms, _ in seen] == [list(range(N))], "what is measured all at once needs no turns"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: np.zeros(n - 1), "shape"),
        (lambda n: np.zeros((n, 3)), "shape"),
        (lambda _: 0.5, "shape"),
        (lambda _: None, "object"),
        (lambda n: ["a"] * n, "<U1"),
        (lambda n: np.full(n, True), "bool"),
        (lambda n: [[0.0]] * (n - 1), "shape"),
        (lambda _: [[0.0], [1.0, 2.0]], "list"),
        (lambda _: {"a": 1}, "object"),
        (lambda n: [0.0, None] + [0.0] * (n - 2), "arm number"),
        (lambda n: np.array([0.0, np.nan] + [0.0] * (n - 2)), "arm-1.*arm number 1 is nan"),
        (lambda n: np.ma.masked_array(np.zeros(n), [False, True] + [False] * (n - 2)), "arm-1.*nan"),
    ],
)
def test_a_wrong_answer_of_a_vectorised_function_is_explained(answer: Any, said: str) -> None:
    with pytest.raises(sl.MeasurementFailed, match=said) as caught:
        sl.select(sl.vectorised(lambda arms, *_: answer(len(arms))), problem(), "wnelim")
    assert "arm-" in str(caught.value)
    assert "round 0" in str(caught.value)


@pytest.mark.parametrize("reward", [0.5, 1, np.float32(0.5), True])
def test_a_single_number_is_refused_at_the_first_call_unless_every_call_is_for_one_pull(reward: Any) -> None:
    n_calls = 0

    def measure(*_: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        return reward

    coins = sl.Problem(1, 0.3, 0.1, n=3, rewards=sl.Bernoulli() if reward == 1 else sl.Bounded(0, 1))
    with pytest.raises(sl.MeasurementFailed, match=rf"single number {reward}\. Return .*\[{reward}\]"):
        sl.select(measure, coins)
    assert n_calls == 1
    found = sl.select(measure, coins, pulls_per_call=1, budget=30)
    assert found.n_pulls == n_calls - 1 == 30
    assert sl.select(measure, coins, on_failure=0.0, budget=30).n_pulls == 30
    on_items = sl.Problem(1, 0.3, 0.1, n=3, rewards=coins.rewards, items=100)
    with pytest.raises(sl.MeasurementFailed, match="Return a list with the score of each item"):
        sl.select(measure, on_items)
    assert sl.select(measure, on_items, pulls_per_call=1, budget=30).n_pulls == 30


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("deed", BAD)
def test_a_passing_fault_is_mended_by_trying_again(deed: str, tmp_path: Path) -> None:
    measure = Once(tmp_path, deed, times=3)
    found = sl.select(measure, problem(), "race")
    assert exact(found) == exact(sl.select(noisy, problem(), "race"))
    assert measure.n_done == 3


@pytest.mark.parametrize("deed", BAD)
@pytest.mark.parametrize("kind", ["alone", "threads", "fork"])
def test_a_lasting_fault_is_named_and_the_run_can_go_on(
    executors: dict[str, Executor], kind: str, deed: str, tmp_path: Path
) -> None:
    executor = executors.get(kind)
    session = sl.Session(problem(), "race")
    measure = Once(tmp_path, deed, times=3)
    with pytest.raises(sl.MeasurementFailed) as caught:
        sl.drive(session, measure, executor=executor, retries=2, turns=1)
    message = str(caught.value)
    assert message.startswith("measuring arm-3 (arm 3, round 0, pulls 0 to ")
    assert "failed 3 times, each time with the same seed" in message
    assert measure.n_done == 3
    assert 3 in [ticket.arm for ticket in session.ask()]
    assert session.result.guarantee is None
    found = sl.drive(session, measure, executor=executor)
    assert exact(found) == exact(sl.select(noisy, problem(), "race", turns=1))
    assert not session.conflicts


def test_the_error_itself_comes_along_with_where_it_happened(executor: Executor, tmp_path: Path) -> None:
    with pytest.raises(sl.MeasurementFailed, match="OSError: the sensor is offline") as caught:
        sl.select(Once(tmp_path, "raises"), problem(), "race", executor=executor, retries=0)
    cause = caught.value.__cause__
    assert isinstance(cause, OSError)
    if not isinstance(executor, ThreadPoolExecutor):
        assert "in raises" in cause.__notes__[0]


class Unsendable(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def unsendable(_arm: int, _count: int, _rng: np.random.Generator) -> None:
    raise Unsendable("this", "that")


def test_an_error_that_cannot_be_pickled_is_told_in_words(executor: Executor) -> None:
    with pytest.raises(sl.MeasurementFailed, match="Unsendable: this and that"):
        sl.select(unsendable, problem(), "race", executor=executor, retries=0)


def test_tries_are_counted_and_have_the_same_seed() -> None:
    draws: list[float] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        draws.append(float(rng.random()))
        raise ValueError("no")

    with pytest.raises(sl.MeasurementFailed, match="ValueError: no"):
        sl.select(measure, problem(), retries=5)
    assert len(draws) == 6
    assert len(set(draws)) == 1


def test_failures_may_be_scored_and_are_then_counted(executor: Executor, tmp_path: Path) -> None:
    session = sl.Session(problem(), "wnelim")
    measure = Once(tmp_path, "raises", times=1000)
    found = sl.drive(session, measure, executor=executor, retries=1, on_failure=-5.0)
    assert measure.n_done == 2 * found.arms.pulls[3]
    assert {(scored.ticket.arm, scored.ticket.count, scored.score) for scored in session.scored} == {
        (3, 1, -5.0)
    }
    assert {scored.reason for scored in session.scored} == {"OSError: the sensor is offline."}
    assert found.arms.means[3] == -5.0
    assert found.n_scored == found.arms.pulls[3] == found.to_dict()["n_scored"] > 0
    assert f"{found.n_scored} of them failed and were scored." in str(found)
    others = np.arange(N) != 3
    honest = sl.select(noisy, problem(), "wnelim", pulls_per_call=1)
    assert found.arms.means[others].tolist() == honest.arms.means[others].tolist()


def test_pulls_fail_one_by_one_where_failures_are_scored() -> None:
    counts = set()

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        counts.add(count)
        if rng.random() < 0.3:
            raise OSError("the sensor is offline")
        return [1.0] * count

    question = problem(variances=[0.25] * 4, m=1, epsilon=0.1)
    found = sl.select(measure, question, "wnelim", retries=0, on_failure=0.0)
    assert counts == {1}
    assert found.arms.means == pytest.approx(np.full(4, 0.7), abs=0.1)  # not 0 or 1, as if all pulls were one
    with pytest.raises(sl.InvalidProblem, match=r"`pulls_per_call` is 20, but .* it must be 1"):
        sl.select(measure, question, on_failure=0.0, pulls_per_call=20)


@pytest.mark.parametrize("workers", [None, sl.Processes(1)])
def test_a_failure_that_a_whole_block_shares_is_not_scored(workers: Any) -> None:
    def function(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> Any:
        raise OSError("the sensor is offline")

    session = sl.Session(problem(), "wnelim")
    with pytest.raises(sl.MeasurementFailed, match="3 others in the same block"):
        sl.drive(session, sl.vectorised(function, block=4), on_failure=-9, retries=0, executor=workers)
    assert session.scored == []
    assert session.n_pulls == 0


def test_what_was_scored_is_listed_once_however_often_the_run_is_taken_up_again() -> None:
    n_calls = 0

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            raise KeyboardInterrupt
        raise OSError("the sensor is offline")

    session = sl.Session(problem(), "wnelim")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, measure, retries=0, on_failure=-5.0)
    assert session.result.n_scored == session.n_pulls == 0  # no ticket was whole
    found = sl.drive(session, measure, retries=0, on_failure=-5.0)
    assert found.n_scored == found.n_pulls == len(session.scored)


def test_a_pilot_that_refuses_scores_does_not_list_them() -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 1:
            raise OSError("the sensor is offline")
        return noisy(arm, count, rng)

    session = sl.Session(unknown(m=1, epsilon=1.0, delta=0.05, n=3))
    for _ in range(2):
        with pytest.raises(sl.MeasurementFailed, match="are equal"):
            sl.drive(session, measure, retries=0, on_failure=0.0)
        assert session.scored == []


def test_only_what_failed_of_a_block_is_scored() -> None:
    def function(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> Any:
        return np.where(arms == 2, np.nan, MEANS[arms])

    session = sl.Session(problem(), "wnelim")
    found = sl.drive(session, sl.vectorised(function, block=4), on_failure=-9)
    assert found.arms.means == pytest.approx(np.where(np.arange(N) == 2, -9.0, MEANS))
    assert {scored.ticket.arm for scored in session.scored} == {2}
    assert found.n_scored == found.arms.pulls[2]


def test_a_mean_too_large_for_epsilon_is_named_and_the_others_count() -> None:
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(sl.MeasurementFailed, match=r"arm-6 \(arm 6, round 0.*Subtract a constant"):
        sl.drive(session, lambda arm, count, _: [1e200 if arm == 6 else 0.0] * count)
    assert 6 in session.ask().arms
    assert session.n_made > 0


# --- workers that die or hang ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fork", "spawn", "loky", "own"])
def test_a_process_that_dies_is_replaced_and_the_answer_is_the_same(kind: str, tmp_path: Path) -> None:
    executor = sl.Processes(2) if kind == "own" else pools()[kind]()
    measure = Once(tmp_path, "dies", times=2)
    found = sl.select(measure, problem(), "race", executor=executor)
    assert exact(found) == exact(sl.select(noisy, problem(), "race"))
    assert measure.n_done == 2
    if isinstance(executor, Executor):
        executor.shutdown()


def test_a_call_that_kills_its_worker_every_time_is_found_and_named(tmp_path: Path) -> None:
    session = sl.Session(problem(), "race")
    measure = Once(tmp_path, "dies", times=1000)
    fork = pools()["fork"]()
    with pytest.raises(sl.errors.WorkersLost) as caught:
        sl.drive(session, measure, executor=fork, retries=1)
    fork.shutdown()
    message = str(caught.value)
    assert "Running calls: arm-3 (arm 3, round 0, pull" in message
    assert "BrokenProcessPool" in message
    assert exact(sl.drive(session, noisy)) == exact(sl.select(noisy, problem(), "race"))


def test_a_call_that_kills_its_worker_is_told_from_those_sent_along_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "blocks", lambda *_: 4)
    fork = pools()["fork"]()
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(
        sl.errors.WorkersLost, match=r"Running calls: arm-3 \(arm 3, round 0, pulls \d+ to \d+\)\. "
    ):
        sl.drive(session, Once(tmp_path, "dies", times=1000), executor=fork, retries=0)
    fork.shutdown()
    assert exact(sl.drive(session, noisy)) == exact(sl.select(noisy, problem(), "wnelim"))


def test_an_executor_that_was_shut_down_is_said_to_be() -> None:
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(sl.errors.WorkersLost, match="after shutdown"):
        sl.select(noisy, problem(), executor=threads)


def unready() -> None:
    raise OSError("no licence")


def test_a_pool_that_never_starts_ends_the_run() -> None:
    spawn = multiprocessing.get_context("fork")
    for timeout in (None, 5.0):
        with (
            ProcessPoolExecutor(2, mp_context=spawn, initializer=unready) as pool,
            pytest.raises(sl.errors.WorkersLost, match="BrokenProcessPool"),
        ):
            sl.select(noisy, problem(), executor=pool, retries=1, timeout=timeout)


class Fragile(ThreadPoolExecutor):
    """An executor that breaks and of which no second one can be made."""

    def submit(self, _fn: Any, /, *_args: Any, **_kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_exception(loky.process_executor.TerminatedWorkerError("a worker is gone"))
        return future


def test_an_executor_that_cannot_be_replaced_ends_the_run_with_what_was_under_way() -> None:
    with pytest.raises(sl.errors.WorkersLost, match=r"a worker is gone.*arm-0 \(arm 0, round 0") as caught:
        sl.select(noisy, problem(), "race", executor=Fragile(2), turns=1)
    assert isinstance(caught.value.__cause__, loky.process_executor.TerminatedWorkerError)


def test_a_hanging_process_of_the_run_s_own_is_ended_and_its_call_tried_again(tmp_path: Path) -> None:
    measure = Once(tmp_path, "hangs")
    found = sl.select(measure, problem(), "wnelim", executor=sl.Processes(1), timeout=0.2)
    assert measure.n_done == 1
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))


def test_a_hanging_thread_is_left_behind_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "blocks", lambda *_: 1)  # else it is first found to be one of several
    free = threading.Event()

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 3:
            free.wait(60)
        return noisy(arm, count, rng)

    session = sl.Session(problem(), "wnelim")
    with ThreadPoolExecutor(2) as threads:
        with pytest.raises(sl.MeasurementFailed, match=r"arm-3 \(arm 3, .*TimeoutError.*0.1 seconds"):
            sl.drive(session, measure, executor=threads, timeout=0.1, retries=0)
        free.set()
    assert exact(sl.drive(session, noisy)) == exact(sl.select(noisy, problem(), "wnelim"))


@pytest.mark.parametrize(("on_failure", "pulls_per_call"), [("suspend", None), ("suspend", 1), (-5.0, 1)])
def test_an_answer_that_comes_late_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, on_failure: Any, pulls_per_call: int | None
) -> None:
    monkeypatch.setattr("shortlist.execution.scheduler._GRACE", 0.3)
    monkeypatch.setattr(Pace, "blocks", lambda *_: 1)
    first_of_arm_3 = Call(problem().entropy(0), 3, 1, 0).rng.bit_generator.state
    is_second_try = threading.Event()

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if rng.bit_generator.state == first_of_arm_3:  # overdue after 0.7 seconds
            is_late = not is_second_try.is_set()
            is_second_try.set()
            time.sleep(1.0 if is_late else 2.0)  # the first try comes while the second hangs
        return noisy(arm, count, rng)

    question = problem(epsilon=1.4)  # few pulls, as each may be a call
    session = sl.Session(question, "wnelim")
    how: dict[str, Any] = {
        "pulls_per_call": pulls_per_call,
        "on_failure": on_failure,
        "retries": 1,
        "timeout": 0.4,
        "reproducible": True,
    }
    with ThreadPoolExecutor(6) as threads:
        found = sl.drive(session, measure, executor=threads, **how)
    assert session.scored == []
    assert exact(found) == exact(sl.select(noisy, question, "wnelim", pulls_per_call=pulls_per_call))


def test_workers_that_all_hang_end_the_run() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(sl.errors.WorkersLost, match="every worker hangs"):
            sl.select(lambda *_: free.wait(60), problem(), "wnelim", executor=threads, timeout=0.1)
        free.set()


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_alone", [True, False])
def test_the_first_interrupt_keeps_what_is_being_measured(is_alone: bool) -> None:
    counts: list[int] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        counts.append(count)
        if len(counts) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        return noisy(arm, count, rng)

    session = sl.Session(problem(), "race")
    with ThreadPoolExecutor(2) as threads, pytest.raises(KeyboardInterrupt):
        sl.drive(session, measure, executor=None if is_alone else threads)
    assert session.n_pulls + session.answered().counts.sum() == session.n_made == sum(counts)
    assert len(counts) < N
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert exact(sl.drive(session, noisy)) == exact(sl.select(noisy, problem(), "race"))


def interrupting(arm: int, count: int, rng: np.random.Generator) -> Any:
    if arm == 2:
        for process in (os.getppid(), os.getpid()):  # a terminal interrupts all processes of a program
            os.kill(process, signal.SIGINT)
        time.sleep(0.05)
    return noisy(arm, count, rng)


def test_worker_processes_finish_what_they_do_when_a_terminal_interrupts_all(
    executors: dict[str, Executor],
) -> None:
    session = sl.Session(problem(), "race")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, interrupting, executor=executors["fork"])
    left = session.ask()
    assert left.round > 0 or 2 not in left.arms  # the signal may come when the round is complete
    assert exact(sl.drive(session, noisy)) == exact(sl.select(noisy, problem(), "race"))


def test_the_second_interrupt_leaves_at_once() -> None:
    free, entered = threading.Event(), threading.Event()

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 1:
            entered.set()
            free.wait(60)
        return noisy(arm, count, rng)

    def interrupt() -> None:
        entered.wait(60)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    session = sl.Session(problem(), "race")
    with ThreadPoolExecutor(2) as threads:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            sl.drive(session, measure, executor=threads)
        assert not free.is_set(), "it did not wait for the call"
        free.set()
    assert 1 in session.ask().arms
    assert exact(sl.drive(session, noisy)) == exact(sl.select(noisy, problem(), "race"))


@pytest.mark.parametrize("is_stored", [False, True])
def test_an_interrupt_says_that_recorded_results_are_kept(tmp_path: Path, is_stored: bool) -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return noisy(arm, count, rng)

    store: dict[str, Any] = {"store": tmp_path / "runs.db", "name": "trial"} if is_stored else {}
    for concurrency in (None, 2):
        with pytest.raises(KeyboardInterrupt) as caught:
            sl.select(measure, problem(), "race", concurrency=concurrency, **store)
        notes = getattr(caught.value, "__notes__", [])
        kept = "The recorded results of run 'trial' are kept. The same call resumes the run."
        assert notes == ([kept] if is_stored else [])
    if is_stored:
        assert exact(sl.select(noisy, problem(), "race", **store)) == exact(
            sl.select(noisy, problem(), "race")
        )


def test_a_program_that_handles_interrupts_itself_goes_on_doing_so() -> None:
    def handler(*_: Any) -> None:
        raise RuntimeError("mine")

    before = signal.signal(signal.SIGINT, handler)
    try:
        with suppress(sl.MeasurementFailed):
            sl.select(lambda *_: os.kill(os.getpid(), signal.SIGINT), problem(), retries=0)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


# --- randomness, arguments, progress --------------------------------------------------------------


def test_the_caller_s_own_randomness_is_left_as_it_was() -> None:
    def draws() -> tuple[float, float]:
        return random.random(), np.random.random()  # noqa: NPY002

    def seed() -> None:
        random.seed(4)
        np.random.seed(4)  # noqa: NPY002

    seed()
    expected = draws()
    seed()
    sl.select(noisy, problem(), "race")
    assert draws() == expected


def test_a_source_is_given_blocks_of_calls() -> None:
    class Source:
        together = 3
        is_reproducible = True

        def answers(self, calls: Any) -> list[Any]:
            assert isinstance(calls, Calls)
            sizes.append(len(calls))
            return [noisy(call.arm, call.count, call.rng) for call in calls]

    sizes: list[int] = []
    found = sl.select(Source(), problem(), "wnelim", turns=1)
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim", turns=1))
    assert sizes == [3, 3, 3, 2]
    sizes.clear()
    found = sl.select(Source(), problem(), "wnelim")
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))
    assert sizes == [3] * 29 + [1]
    assert exact(sl.select(FunctionSource(noisy), problem(), "wnelim")) == exact(found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"executor": 3}, "`executor` is 3"),
        ({"retries": -1}, "`retries` is -1"),
        ({"pulls_per_call": 0}, "`pulls_per_call` is 0"),
        ({"turns": 0}, "`turns` is 0"),
        ({"on_failure": "stop"}, "`on_failure` is 'stop'"),
        ({"on_failure": float("nan")}, "`on_failure` is nan"),
        ({"on_failure": True}, "`on_failure` is True"),
        ({"timeout": 0.0, "executor": sl.Processes(1)}, "`timeout` is 0.0"),
        ({"timeout": 1.0}, "`timeout` needs an `executor`"),
    ],
)
def test_options_that_make_no_sense_are_explained(options: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        sl.select(noisy, problem(), **options)
    assert said in str(caught.value)


def test_what_cannot_be_sent_to_other_processes_is_said_at_once() -> None:
    lock = threading.Lock()
    with pytest.raises(sl.InvalidProblem, match="cannot be sent to other processes"):
        sl.select(lambda *_: lock.locked(), problem(), executor=sl.Processes(1))
    for wrong in (3, "noisy", None):
        with pytest.raises(sl.InvalidProblem, match="function"):
            sl.vectorised(wrong)  # type: ignore[arg-type]


def test_progress_says_the_share_open_arms_what_is_certified_and_the_time_left() -> None:
    seen: list[tuple[float | None, str]] = []
    certified: list[Certificate] = []
    now = 0.0
    session = sl.Session(problem(), "race")
    account = Account(session, lambda: now)

    def look(session: sl.Session) -> None:
        nonlocal now
        now += 1
        seen.append(account.frame(session, 200))
        certified.append(session.certified)

    sl.drive(session, noisy, progress=look)
    assert seen[0][1].endswith(f"{N} arms open, nothing certified yet")
    shares = [share for share, _ in seen if share is not None]
    assert shares == sorted(shares)
    assert (len(shares), shares[-1]) == (len(seen), 1.0)
    epsilon = session.problem.epsilon
    for (share, words), found in zip(seen, certified, strict=True):
        n_open = found.statuses.count("open")
        assert f"{n_open} arm{'' if n_open == 1 else 's'} open" in words
        assert (share or 0) >= min(1.0, epsilon / found.epsilon)
        if found.guarantee is not None:
            said = float(words.split("certified to within ")[1].split(" ")[0])
            assert found.epsilon <= said <= 1.01 * found.epsilon  # rounded up
            assert f" (asked: {epsilon:g})" in words
    assert seen[0][1].startswith("1 pull, ")
    share, words = next((share, words) for share, words in seen if " left" in words)
    spent = [words for _, words in seen].index(words) + 1
    assert share is not None
    seconds = float(words.split("about ")[1].split(" ")[0]) * (60 if " min left" in words else 1)
    assert spent >= 3
    assert 0 < seconds <= (session.worst_case_pulls or 0)  # at a pull a second


def test_progress_fits_into_a_line_and_counts_one_arm() -> None:
    many = sl.Problem(m=2, epsilon=1e-4, delta=0.1, variances=[1.0] * 300)
    session = sl.Session(many, "race")
    account = Account(session)
    session.tell(session.ask(1), means=[0.5])
    for most in (30, 60, 80):
        assert 0 < len(account.frame(session, most)[1]) <= most
    known = {0: [0] * 40}
    items = sl.Session(sl.Problem(1, 0.1, 0.1, n=2, rewards=sl.Bernoulli(), items=40, known=known))
    assert Account(items).frame(items, 200)[1].startswith("0 scores, 2 arms open, ")
    endless = sl.Session(problem(m=1), "lucb")
    assert Account(endless).frame(endless) == (None, f"0 pulls, {N} arms open")


def test_a_certificate_is_computed_once_a_round_and_rarely_if_it_takes_long() -> None:
    times = iter(float(time) for time in range(10**6))  # every look at the clock takes a second
    session = sl.Session(problem(), "race")
    account, words = Account(session, lambda: next(times)), set[str]()
    sl.drive(
        session, noisy, progress=lambda now: words.add(account.frame(now, 200)[1].split("certified")[-1])
    )
    assert 1 < len(words) < session.result.n_rounds


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def slow(arm: int, count: int, rng: np.random.Generator) -> Any:
    time.sleep(0.01)
    return noisy(arm, count, rng)


def test_a_bar_is_shown_by_default_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    texts = {}
    for kind, wish in ((Terminal, None), (Terminal, False), (io.StringIO, None)):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", kind())
            sl.select(slow, problem(), "race", progress=wish)
            texts[kind, wish] = sys.stderr.getvalue()  # type: ignore[union-attr]
    assert texts[Terminal, False] == texts[io.StringIO, None] == ""
    lines = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", texts[Terminal, None]).replace("\r", "\n").splitlines()
    assert re.search(r" % \d+ arms? open, (nothing )?certified", "\n".join(lines))
    assert max(map(len, lines)) <= 80
    with pytest.raises(
        sl.InvalidProblem, match="`progress` is 3; it must be True, False, None or a function"
    ):
        sl.select(noisy, problem(), progress=3)  # type: ignore[arg-type]


def test_progress_is_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.05)
    sl.select(slow, problem(), "race", progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("pulling: ") and len(line) <= 80 for line in lines)


@pytest.mark.parametrize("on_failure", ["suspend", 0.0])
def test_a_reward_out_of_bounds_is_not_tried_again(on_failure: Any) -> None:
    calls: list[int] = []

    def lucky(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append(arm)
        return np.full(count, 2.0 if len(calls) == 1 else 0.5)

    problem = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[0.25, 0.25], bounds=(0, 1))
    with pytest.raises(sl.MeasurementFailed, match=r"the reward 2 of arm-\d is refused") as caught:
        sl.select(lucky, problem, on_failure=on_failure)
    assert "times, each time" not in str(caught.value)
    assert len(calls) == 1


# --- variances that are not known -------------------------------------------------------------------


@pytest.mark.parametrize(
    "keywords",
    [{}, {"pulls_per_call": 7}, {"pulls_per_call": 7, "turns": 1}, {"turns": 1}, {"executor": "threads"}],
    ids=repr,
)
def test_a_pilot_is_told_the_spread_of_all_its_rewards(keywords: dict[str, Any]) -> None:
    question = unknown(m=1, epsilon=0.5, delta=0.1, n=3, pilot=20)
    session = sl.Session(question, seed=4)
    with ThreadPoolExecutor(2) as pool:
        given = keywords | ({"executor": pool} if "executor" in keywords else {})
        result = sl.drive(session, lambda arm, count, rng: rng.normal(arm, 1 + arm, count), **given)
    told = session.events[0]
    assert told.variances is not None
    n_calls = 8 if keywords.get("turns") != 1 else 3 if "pulls_per_call" in keywords else 1
    starts = [round(20 * turn / 8) for turn in range(8)] if n_calls == 8 else list(range(0, 20, 7))[:n_calls]
    for arm, mean, variance in zip(told.arms, told.means, told.variances, strict=True):
        calls = [(first, stop - first) for first, stop in pairwise([*starts, 20])]
        parts = [
            Call(session.entropy, int(arm), size, first).rng.normal(arm, 1 + arm, size)
            for first, size in calls
        ]
        rewards = np.concatenate(parts)
        assert mean == pytest.approx(rewards.mean())
        assert variance == pytest.approx(rewards.var(ddof=1))
    assert result.selected == ("arm-2",)


class Stopwatch(FunctionSource):
    """A source that other workers would disturb."""

    needs_this_thread = True


def test_measurements_that_need_this_thread_take_no_workers() -> None:
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(sl.InvalidProblem, match="in one thread, one after the other"),
    ):
        sl.select(Stopwatch(noisy), problem(), executor=executor)
