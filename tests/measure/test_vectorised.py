"""Functions that measure many arms at once: what they may return, also as arrays that are not NumPy's.

The arrays of `array_api_strict` that are used here are on a device of their own: NumPy cannot read them by
`np.asarray`, as with arrays on a GPU.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import array_api_strict as xp
import numpy as np
import pytest

import shortlist as sl
from shortlist.measure import Call
from shortlist.measure.many import Summaries, moments, pooled

DEVICE = xp.Device("device1")
UNKNOWN = sl.Problem(m=2, epsilon=0.3, delta=0.05, n=30, rewards=sl.Gaussian())


def away(values: Any, dtype: Any = xp.float64) -> Any:
    return xp.asarray(np.asarray(values), dtype=dtype, device=DEVICE)


def rows(arms: Any, counts: Any, rng: np.random.Generator) -> Any:
    return arms[:, None] / 10 + rng.normal(size=(len(arms), int(counts.max())))


def summary(arms: Any, counts: Any, rng: np.random.Generator) -> sl.Summary:
    """Return what single rewards sum up to, with counts that differ."""
    every = rows(arms, counts, rng)
    cut = [every[place, :count] for place, count in enumerate(counts)]
    return sl.Summary(counts, np.array([c.mean() for c in cut]), np.array([c.var(ddof=1) for c in cut]))


def summary_away(arms: Any, counts: Any, rng: np.random.Generator) -> sl.Summary:
    here = summary(arms, counts, rng)
    return sl.Summary(away(here.count, xp.int64), away(here.mean), away(here.variance))


def single(arms: Any, counts: Any, rng: np.random.Generator) -> list[sl.Summary]:
    here = summary(arms, counts, rng)
    columns: list[Any] = [here.count, here.mean, here.variance]
    return [sl.Summary(*numbers) for numbers in zip(*columns, strict=True)]


def answers(function: Callable[..., Any], counts: list[int]) -> Any:
    calls = [Call(0, arm, count, 0) for arm, count in enumerate(counts)]
    return sl.vectorised(function).answers(calls)


@pytest.mark.parametrize("function", [summary, summary_away])
def test_a_summary_of_arrays_is_as_good_as_one_summary_for_each_arm(function: Any) -> None:
    found = sl.select(sl.vectorised(function), UNKNOWN, seed=3)
    plain = sl.select(sl.vectorised(single), UNKNOWN, seed=3)
    assert found.guarantee is not None
    assert (found.selected, found.n_pulls) == (plain.selected, plain.n_pulls)
    assert found.arms.means.tolist() == plain.arms.means.tolist()


def test_a_summary_without_variances_is_one_of_means() -> None:
    given = answers(lambda _, counts, __: sl.Summary(counts, np.array([1.0, 2.0])), [3, 4])
    assert [*given] == [sl.Summary(3, 1.0), sl.Summary(4, 2.0)]


@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
def test_rewards_are_summed_up_where_they_are(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(1).normal(1e3, 1.0, (5, 400)).astype(np.float32)
    copied = []
    copy = type(away(drawn)).__dlpack__

    def spy(array: Any, **options: Any) -> Any:
        copied.append(array.shape)
        return copy(array, **options)

    monkeypatch.setattr(type(away(drawn)), "__dlpack__", spy)
    found = answers(lambda *_: away(drawn, dtype), [400] * 5)
    assert copied == [(5,)] * 3
    exact = drawn.astype(np.float64)
    np.testing.assert_allclose(found.means, exact.mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found.variances, exact.var(axis=1, ddof=1), rtol=1e-5)


def test_sums_in_single_precision_are_corrected() -> None:
    """The mean of the first row lies between two numbers of single precision, and so does that of NumPy."""
    drawn = np.full((2, 3), 16_777_216, dtype=np.float32)
    drawn[0, 2] += 2
    means, variances = moments(away(drawn, xp.float32))
    np.testing.assert_allclose(means, [16_777_216 + 2 / 3, 16_777_216], rtol=1e-14)
    np.testing.assert_allclose(variances, [4 / 3, 0])


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_run_is_the_same_with_rewards_elsewhere(size: int) -> None:
    known = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=np.ones(30))
    options: dict[str, Any] = {"seed": 2, "pulls_per_call": size}
    plain = sl.select(sl.vectorised(rows, block=1), known, **options)
    found = sl.select(sl.vectorised(lambda *call: away(rows(*call)), block=1), known, **options)
    assert (found.selected, found.n_pulls) == (plain.selected, plain.n_pulls)
    np.testing.assert_allclose(found.arms.means, plain.arms.means, rtol=1e-12)


@pytest.mark.parametrize("dtype", [xp.bool, xp.int64, xp.float32, xp.float64])
def test_successes_and_failures_elsewhere(dtype: Any) -> None:
    problem = sl.Problem(1, 0.3, 0.1, n=3, rewards=sl.Bernoulli())

    def function(arms: Any, counts: Any, rng: np.random.Generator) -> Any:
        return away(rng.random((len(arms), counts[0])) < 0.1 + 0.4 * arms[:, None], dtype)

    found = sl.select(sl.vectorised(function), problem, pulls_per_call=4, turns=1)
    assert found.selected == ("arm-2",)
    assert set(np.unique(found.arms.means * found.arms.pulls % 1).round(9)) <= {0.0, 1.0}


def test_rewards_elsewhere_are_held_to_the_declared_bounds() -> None:
    problem = sl.Problem(1, 0.3, 0.1, n=3, rewards=sl.Bounded(0, 1))

    def function(arms: Any, counts: Any, _: Any) -> Any:
        rewards = np.full((len(arms), counts[0]), 0.5)
        rewards[0, 0] = 1.5 if counts[0] > 1 else 0.5  # no mean is out of bounds
        return away(rewards)

    with pytest.raises(sl.MeasurementFailed, match=r"the reward 1\.5 of arm-"):
        sl.select(sl.vectorised(function, block=1), problem, "wnelim", turns=1)


def test_scores_on_shared_items_may_be_elsewhere() -> None:
    problem = sl.Problem(1, 0.05, 0.1, n=4, items=50, rewards=sl.Bounded(0, 1))

    def function(arms: Any, items: list[Any]) -> Any:
        return (arms[:, None] + np.array(items, dtype=float) % 3) / 10

    plain = sl.select(sl.vectorised(function), problem)  # type: ignore[arg-type]
    found = sl.select(sl.vectorised(lambda *call: away(function(*call))), problem)
    assert found.arms.means.tolist() == plain.arms.means.tolist()


def test_a_function_may_fill_the_same_array_at_every_call() -> None:
    problem = sl.Problem(1, 0.05, 0.1, n=4, items=50, rewards=sl.Bounded(0, 1))
    buffer = np.empty((4, 50))

    def fresh(arms: Any, items: list[Any]) -> Any:
        return (arms[:, None] + np.array(items, dtype=float) % 7) / 10

    def reused(arms: Any, items: list[Any]) -> Any:
        found = buffer[: len(arms), : len(items)]
        found[:] = fresh(arms, items)
        return found

    plain, found = (sl.select(sl.vectorised(one), problem) for one in (fresh, reused))  # type: ignore[arg-type]
    assert found.arms.means.tolist() == plain.arms.means.tolist()


def test_one_refused_answer_of_many_is_found_without_recording_each_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded, answer = [], sl.Session.answer

    def counted(session: sl.Session, answers: Any, **how: Any) -> Any:
        recorded.append(len(answers.tickets))
        return answer(session, answers, **how)

    monkeypatch.setattr(sl.Session, "answer", counted)

    def function(arms: Any, counts: Any, _: Any) -> sl.Summary:
        return sl.Summary(counts, arms / 10, np.where(arms == 5, 0.0, 1.0))

    problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=1000, rewards=sl.Gaussian())
    session = sl.Session(problem)
    with pytest.raises(sl.MeasurementFailed, match="arm-5"):
        sl.drive(session, sl.vectorised(function, block=None), turns=1)
    assert len(recorded) <= 1 + 2 * 10  # halves of halves
    assert session.n_pulls == session.asked.counts.sum() - session.asked.counts[5]


def test_a_list_may_contain_arrays_that_are_elsewhere() -> None:
    given = answers(lambda *_: [away([1.0, 2.0]), away([3.0])], [2, 1])
    assert [one.tolist() for one in given] == [[1.0, 2.0], [3.0]]


def test_one_call_per_round() -> None:
    n_calls, sizes = 0, []

    def function(arms: Any, counts: Any, rng: np.random.Generator) -> Any:
        nonlocal n_calls
        n_calls += 1
        sizes.append(len(arms))
        return summary(arms, counts, rng)

    wide = sl.Problem(m=1, epsilon=1.0, delta=0.05, n=6000, rewards=sl.Gaussian())
    found = sl.select(sl.vectorised(function, block=None), wide)
    assert n_calls == found.n_rounds
    assert sizes[0] == 6000


def test_one_call_per_round_can_be_resumed(tmp_path: Any) -> None:
    source, where = sl.vectorised(summary, block=None), tmp_path / "runs.db"
    stopped = sl.select(source, UNKNOWN, seed=3, store=where, budget=30 * 20)
    assert stopped.stop is sl.Stop.BUDGET
    found = sl.select(source, UNKNOWN, seed=3, store=where)
    assert found.arms.means.tolist() == sl.select(source, UNKNOWN, seed=3).arms.means.tolist()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda c: sl.Summary(c, away([1.0])), r"a summary whose means are float64 of shape \(1,\)"),
        (lambda c: sl.Summary(c, c * 1.0, np.array([-1.0, 1.0])), r"the variance -1\.0; it must be at least"),
        (lambda c: sl.Summary(c, c * 1.0, np.array([np.inf, 1.0])), r"the variance inf; it must be at least"),
        (lambda c: sl.Summary(c, np.array(["a", "b"])), r"a summary whose means are <U1"),
        (lambda c: sl.Summary(c + 1, c * 1.0, c * 1.0), "measure 3 rewards .* says that they are 4"),
        (lambda c: sl.Summary(c * np.nan, c * 1.0), "measure 3 rewards .* says that they are nan"),
        (lambda c: np.ma.array(c, mask=c > 0), "the mean of 3 rewards of arm number . is nan; .*masked"),
        (lambda c: sl.Summary(c, np.ma.array(c, mask=c > 0)), "arm number . is nan; .*masked"),
        (
            lambda c: [np.ma.array([1, 0, 1], mask=[False, False, True])] * len(c),
            "reward 3 of 3 of arm .* is masked",
        ),
        (lambda c: sl.Summary(c, c * np.nan, c * 1.0), "the mean of 3 rewards of arm number . is nan"),
        (lambda _: away(np.ones((2, 3, 1))), r"an array of shape \(2, 3, 1\)"),
        (lambda _: away(np.ones((2, 3)) * 1j, xp.complex128), "of complex128"),
        (lambda _: away(np.full((2, 3), np.inf)), "the mean of 3 rewards of arm number . is nan"),
    ],
)
def test_other_answers_are_refused(answer: Callable[[Any], Any], words: str) -> None:
    problem = sl.Problem(1, 1.0, 0.5, variances=[1.0, 1.0])
    with pytest.raises(sl.MeasurementFailed, match=words):
        sl.select(
            sl.vectorised(lambda _, counts, __: answer(counts), block=2),
            problem,
            "wnelim",
            pulls_per_call=3,
            turns=1,
            retries=0,
        )


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.bool_])
def test_a_masked_score_on_shared_items_is_named(dtype: Any) -> None:
    problem = sl.Problem(1, 0.05, 0.1, n=2, items=["first", "second"], rewards=sl.Bernoulli())

    def function(arms: Any, items: list[Any]) -> Any:
        mask = (arms[:, None] == 1) & (np.array(items) == "second")
        return np.ma.array(np.ones((len(arms), len(items)), dtype), mask=mask)

    with pytest.raises(sl.MeasurementFailed, match="the score of arm number 1 on item 1 is masked"):
        sl.select(sl.vectorised(function), problem, retries=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", [0, 2**53 + 1, 2**63, 1.5])
def test_a_wrong_block_is_named(block: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`block` is"):
        sl.vectorised(rows, block=block)


def test_async_functions_are_refused_with_what_works() -> None:
    async def function(*_: Any) -> Any: ...

    class Client:
        __call__ = function

    for measure in (function, partial(function, 1), Client()):
        with pytest.raises(sl.InvalidProblem, match=r"is async.* omit `vectorised`"):
            sl.vectorised(measure)


def test_no_library_is_imported_for_it() -> None:
    code = "import sys, shortlist; print({'cupy', 'torch', 'jax', 'array_api_strict'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_summaries_can_be_sliced_with_rewards_elsewhere() -> None:
    found = answers(lambda *_: away(np.arange(12.0).reshape(4, 3)), [3] * 4)
    assert isinstance(found, Summaries)
    assert found[1:3].means.tolist() == [4.0, 7.0]
    assert found[2] == sl.Summary(3, 7.0, 1.0)


def test_batches_of_single_rewards_have_a_variance_together() -> None:
    single, means, unknown = (
        np.ones((1, 3), dtype=np.int64),
        np.array([[1.0, 2.0, 6.0]]),
        np.full((1, 3), np.nan),
    )
    mean, variance = pooled(single, means, unknown)
    assert (mean[0], variance[0]) == (3.0, 7.0)
    assert np.isnan(pooled(2 * single, means, unknown)[1][0])
