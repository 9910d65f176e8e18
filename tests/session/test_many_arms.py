"""Runs over very many arms: nothing in a run may loop over arms in Python."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.certificate import _evidence
from shortlist.certificates.settled_pairs import open_outsiders
from shortlist.execution.tasks import Task, perform
from shortlist.measure import Call, Calls, summary_of
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


@pytest.mark.slow
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


def rewards_of(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> list[FloatArray]:
    rewards = rng.standard_normal(int(counts.sum())) + np.repeat(MEANS[arms], counts)
    ends = np.cumsum(counts)
    return [*map(rewards.__getitem__, map(slice, (ends - counts).tolist(), ends.tolist()))]


def unknown(n: int, **changes: Any) -> sl.Problem:
    return sl.Problem(m=3, epsilon=1.0, delta=0.05, n=n, rewards=sl.Gaussian(), **changes)


@pytest.mark.slow
def test_a_run_with_unknown_variances_does_not_loop_over_arms() -> None:
    measure, found = sl.vectorised(rewards_of, block=1 << 16), []
    assert busiest_line(lambda: found.append(sl.select(measure, unknown(MANY), turns=1))) < MANY / 10
    assert found[0].strategy == "t-cut-race"
    assert found[0].is_answer


def summaries_of(tickets: Tickets, seed: int = 0) -> list[sl.Summary]:
    means, variances = np.random.default_rng(seed).normal(size=(2, len(tickets)))
    rows = zip(tickets.counts.tolist(), means.tolist(), (variances**2 + 1e-9).tolist(), strict=True)
    return [sl.Summary(*row) for row in rows]


def test_many_summaries_are_told_and_read_again_without_a_loop(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with sl.Session(unknown(MANY), store=store) as session:
        tickets = session.ask()
        given = summaries_of(tickets)
        assert busiest_line(lambda: session.tell(tickets, given)) < MANY / 10
        assert session.n_pulls == tickets.counts.sum()
        resumed: list[sl.Session] = []
        assert busiest_line(lambda: resumed.append(sl.Session.resume(store))) < MANY / 10
        assert busiest_line(lambda: resumed[0].result) < MANY / 10
        np.testing.assert_array_equal(resumed[0].asked.arms, session.asked.arms)
        np.testing.assert_array_equal(resumed[0].result.arms.means, session.result.arms.means)
        resumed[0].close()


def test_summaries_together_count_as_they_do_one_by_one() -> None:
    problem = unknown(30)
    sessions = [sl.Session(problem, "t-cut-race") for _ in range(3)]
    tickets = sessions[0].ask()
    given = summaries_of(tickets)
    sessions[0].tell(tickets, given)
    for ticket, one in zip(tickets, given, strict=True):
        sessions[1].tell(ticket, one)
    means, variances = [one.mean for one in given], [one.variance for one in given]
    sessions[2].tell(tickets, means=np.array(means), sample_variances=variances)  # type: ignore[arg-type]
    for other in sessions[1:]:
        np.testing.assert_array_equal(other.asked.arms, sessions[0].asked.arms)
        np.testing.assert_array_equal(other.asked.counts, sessions[0].asked.counts)
        np.testing.assert_array_equal(other.result.arms.means, sessions[0].result.arms.means)


WRONG: list[dict[str, Any]] = [
    {"mean": float("nan")},
    {"mean": float("inf")},
    {"mean": True},
    {"mean": "1"},
    {"count": 5},
    {"count": True},
    {"variance": -1.0},
    {"variance": float("nan")},
    {"variance": float("inf")},
    {"variance": None},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_one_wrong_summary_among_many_is_refused(wrong: dict[str, Any]) -> None:
    session = sl.Session(unknown(30), "t-cut-race")
    tickets = session.ask()
    given = summaries_of(tickets)
    given[7] = replace(given[7], **wrong)
    with pytest.raises(sl.errors.MeasurementFailed):
        session.tell(tickets, given)
    assert session.n_made == 0


@pytest.mark.parametrize(
    ("means", "variances"),
    [
        ([0.0] * 30, [1.0] * 29),
        ([0.0] * 30, [1.0] * 29 + [-1.0]),
        ([0.0] * 30, [1.0] * 29 + [float("nan")]),
        ([0.0] * 30, None),
        (None, [1.0] * 30),
    ],
)
def test_wrong_sample_variances_are_refused(means: Any, variances: Any) -> None:
    session = sl.Session(unknown(30), "t-cut-race")
    with pytest.raises(sl.errors.MeasurementFailed):
        session.tell(session.ask(), means=means, sample_variances=variances)


def test_negative_sample_variances_are_named() -> None:
    session = sl.Session(unknown(30), "t-cut-race")
    with pytest.raises(sl.errors.MeasurementFailed, match="`sample_variances` must not be negative"):
        session.tell(session.ask(), means=[0.0] * 30, sample_variances=[1.0] * 29 + [-1.0])


def test_sample_variances_of_rewards_are_their_own() -> None:
    session = sl.Session(unknown(30), "t-cut-race")
    tickets = session.ask()
    with pytest.raises(sl.errors.MeasurementFailed, match="go with `means`"):
        session.tell(tickets, summaries_of(tickets), sample_variances=[1.0] * 30)


def test_a_summary_outside_the_bounds_is_refused_among_many() -> None:
    problem = sl.Problem(m=1, epsilon=0.2, delta=0.05, n=30, rewards=sl.Bounded(0, 1))
    for wrong in ({"mean": 1.5}, {"variance": 0.9}):
        session = sl.Session(problem, "race")
        tickets = session.ask()
        given = [sl.Summary(count, 0.5, 0.1) for count in tickets.counts.tolist()]
        given[3] = replace(given[3], **wrong)  # type: ignore[arg-type]
        with pytest.raises(sl.errors.FinalFailure):
            session.tell(tickets, given)


def test_rewards_of_many_arms_have_the_moments_of_each_arm() -> None:
    rng = np.random.default_rng(2)
    calls = Calls(0, np.arange(60), rng.integers(1, 300, 60), np.zeros(60, dtype=np.int64))
    answers = [rng.normal(100, 1, count) for count in calls.counts]

    @dataclass
    class Fixed:
        together: int = 60

        def answers(self, calls: Sequence[Call]) -> list[FloatArray]:  # noqa: ARG002
            return answers

    outcome = perform(Fixed(), Task(0, calls, 60))
    assert not outcome.errors
    for place, own in enumerate(answers):
        assert outcome.means[place] == own.mean()
        if len(own) > 1:
            assert outcome.variances[place] == own.var(ddof=1)
    answers[9] = np.append(answers[9][1:], np.nan)
    errors = perform(Fixed(), Task(0, calls, 60)).errors
    assert [*errors] == [9]
    with pytest.raises(sl.errors.MeasurementFailed) as alone:
        summary_of(answers[9], len(answers[9]), "arm number 9")
    assert str(errors[9]) == str(alone.value)
    answers[5] = answers[5].astype(np.float32)  # an array of another type counts as well
    assert [*perform(Fixed(), Task(0, calls, 60)).errors] == [9]
    answers[9] = np.ones(calls.counts[9] + 1)
    assert [*perform(Fixed(), Task(0, calls, 60)).errors] == [9]


@pytest.mark.parametrize(("times", "level"), [(1, 0.0), (10**7, 1.2)])
def test_very_many_arms_are_out_as_few_of_them_are(times: int, level: float) -> None:
    """With very many pulls, evidence changes between two cuts: each of them decides about some arms."""
    rng, n = np.random.default_rng(4), 3 * 4096
    problem = sl.Problem(m=2, epsilon=0.3, delta=0.05, variances=np.ones(n))
    counts, means = times * rng.integers(20, 400, n), rng.normal(level, 0.4, n)
    counts[:2], means[:2] = 400, 0.8
    evidence, unit = _evidence(problem, counts, means, None, problem.epsilon)
    found = open_outsiders(evidence, np.array([0, 1]), problem.epsilon / unit)
    with mock.patch("shortlist.certificates.settled_pairs._FEW", n):
        wanted = open_outsiders(evidence, np.array([0, 1]), problem.epsilon / unit)
    assert 100 < wanted.sum() < n - 100
    np.testing.assert_array_equal(found, wanted)
