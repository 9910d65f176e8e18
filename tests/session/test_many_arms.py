"""Runs over very many arms: nothing in a run may loop over arms in Python."""

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.session.call_plan import CallPlan, PartialAnswers
from shortlist.tickets import Tickets

MANY = 200_000
MEANS = -np.random.default_rng(5).gumbel(size=MANY)


def busiest_line(do: Callable[[], Any]) -> int:
    """Return how often a call executes the line of Python that it executes most often."""
    times: Counter[tuple[CodeType, int]] = Counter()

    def count(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            times[frame.f_code, frame.f_lineno] += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        do()
    finally:
        sys.settrace(before)
    return max(times.values())


def noisy_means(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(MEANS[arms] + rng.standard_normal(len(arms)) / np.sqrt(counts))


def test_loops_over_arms_are_counted() -> None:
    assert busiest_line(lambda: [arm + 1 for arm in range(MANY)]) >= MANY
    assert busiest_line(lambda: np.arange(MANY).sum()) < 10


@pytest.mark.parametrize("turns", [1, 8])
def test_a_run_over_many_arms_does_not_loop_over_them(turns: int) -> None:
    problem = sl.Problem(m=10, epsilon=1.0, delta=0.05, variances=np.ones(MANY))
    measure, found = sl.vectorised(noisy_means, block=1 << 15), []
    times = busiest_line(lambda: found.append(sl.select(measure, problem, "race", turns=turns)))
    assert found[0].is_answer
    assert times < MANY / 10


def plan_of(n: int, turns: int) -> CallPlan:
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=np.ones(n))
    arms, nothing = np.arange(n), np.zeros(n, dtype=np.int64)
    return CallPlan.of(Tickets(problem, 0, arms, arms % 5 + 1, nothing), 3, 4, None, turns)


def test_all_calls_at_once_are_the_calls_one_by_one() -> None:
    plan = plan_of(40, 3)
    every = plan.parts(np.arange(plan.n_calls))
    for number in range(plan.n_calls):
        (one,) = plan.parts(np.array([number]))
        assert one == every[number]
        assert plan.places(np.array([number]))[0] == plan.places(np.arange(plan.n_calls))[number]
    order = plan.numbers(0, plan.n_calls)
    whole = plan.calls(0, plan.n_calls)
    assert [call.arm for call in whole] == every.take(order).arms.tolist()
    assert [call.first_pull for call in whole] == every.take(order).first_pulls.tolist()


def test_a_plan_finds_its_calls_and_not_those_of_another_round() -> None:
    plan, other = plan_of(40, 3), plan_of(30, 2)
    numbers = plan.numbers(0, plan.n_calls)
    assert plan.find(plan.parts(numbers)).tolist() == numbers.tolist()
    found = other.find(plan.parts(numbers))
    is_there = [call in [*other.parts(np.arange(other.n_calls))] for call in plan.parts(numbers)]
    assert (found >= 0).tolist() == is_there


def test_driver_and_session_share_a_plan_for_the_same_tickets() -> None:
    plan = plan_of(40, 3)
    assert CallPlan.of(plan.tickets, 3, 4, None, 3) is plan
    assert CallPlan.of(plan.tickets, 3, 4, None, 2) is not plan
    assert CallPlan.of(plan.tickets, 4, 4, None, 3) is not plan


def test_tickets_are_pooled_alike_whether_their_calls_were_answered_together_or_not() -> None:
    plan = plan_of(40, 3)
    every = np.arange(plan.n_calls)
    means, variances = np.random.default_rng(0).normal(size=(2, plan.n_calls)) ** 2
    wanted = PartialAnswers(plan).whole(every, means, variances)
    early = every[(every % 7 == 0) | (every < 20)]
    late = np.setdiff1d(every, early)
    parts = PartialAnswers(plan)
    first = parts.whole(early, means[early], variances[early])
    parts.take(early, means[early], variances[early])
    second = parts.whole(late, means[late], variances[late])
    order = np.argsort(np.concatenate([first[0], second[0]]))
    for one, two, whole in zip(first, second, wanted, strict=True):
        np.testing.assert_array_equal(np.concatenate([one, two])[order], whole)
