"""What a measure function may return, and what simulated arms draw."""

import contextlib
import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.measure import REWARDS, Call, CommandSource, summary_of
from shortlist.measure.simulated import checked_means
from shortlist.noise import bernoulli, bernoulli_proxy, bounded

NOISY = ["gaussian", "bernoulli", "two-point", "uniform"]


def problem(variances: Any = (1.0, 4.0, 9.0), m: int = 1) -> sl.Problem:
    return sl.Problem(m=m, epsilon=0.5, delta=0.05, variances=list(variances))


# --- what a measurement may return ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "count", "mean"),
    [
        ([1.0, 2.0, 6.0], 3, 3.0),
        ((1.0, 2.0, 6.0), 3, 3.0),
        (np.array([1.0, 2.0, 6.0]), 3, 3.0),
        (np.array([1, 2, 6], dtype=np.uint8), 3, 3.0),
        (np.array([250, 250], dtype=np.uint8), 2, 250.0),
        (np.array([0.5, 0.25], dtype=np.float32), 2, 0.375),
        ([1, 0], 2, 0.5),
        ([1.0], 1, 1.0),
        (0.25, 1, 0.25),
        (3, 1, 3.0),
        (np.float64(0.25), 1, 0.25),
        (np.array(0.25), 1, 0.25),
        (sl.Summary(3, 0.5), 3, 0.5),
        (sl.Summary(2, 0.5), 2, 0.5),
        (sl.Summary(np.int64(3), np.float64(0.5)), 3, 0.5),
        ((3, 0.5), 3, 0.5),
        ((np.int64(1000), 0.5), 1000, 0.5),
        ((1, 0.5), 1, 0.5),
        ((0.5, 1.5), 2, 1.0),
        ([2, 5.0], 2, 3.5),
    ],
    ids=repr,
)
def test_genuine_rewards_have_a_mean(answer: object, count: int, mean: float) -> None:
    assert summary_of(answer, count, "arm-0").mean == mean


def test_rewards_have_a_spread_where_there_are_two_or_more() -> None:
    assert summary_of([1.0, 2.0, 6.0], 3, "arm-0") == sl.Summary(3, 3.0, 7.0)
    assert summary_of([1.0], 1, "arm-0") == sl.Summary(1, 1.0, None)
    assert summary_of(sl.Summary(3, 0.5, 2.0), 3, "arm-0") == sl.Summary(3, 0.5, 2.0)


@pytest.mark.parametrize("variance", [-1.0, math.nan, math.inf, "1", True], ids=repr)
def test_a_summary_has_a_genuine_variance_or_none(variance: Any) -> None:
    with pytest.raises(sl.MeasurementFailed, match="arm-0"):
        summary_of(sl.Summary(3, 0.5, variance), 3, "arm-0")


WRONG_ANSWERS = [
    (math.nan, 1),
    ([1.0, math.nan, 2.0], 3),
    ([1.0, math.inf, 2.0], 3),
    (np.array([1.0, -math.inf]), 2),
    (True, 1),
    (np.True_, 1),
    ([True, False, True], 3),
    ([1.0, True, 2.0], 3),
    ([1.0, np.False_, 2.0], 3),
    (np.array([True, False]), 2),
    ("0.5", 1),
    (b"0.5", 1),
    ("abc", 3),
    (["1.0", "2.0", "3.0"], 3),
    ([1.0, 2.0, "3.0"], 3),
    (None, 1),
    (None, 3),
    ([None, 1.0, 2.0], 3),
    ([None], 1),
    (1j, 1),
    ([1.0, 1j], 2),
    (0.5, 2),
    ([], 1),
    ([1.0], 2),
    ([1.0, 2.0, 3.0], 2),
    ([1.0, 2.0], 1),
    ([[1.0, 2.0, 3.0]], 3),
    ([[1.0], [2.0], [3.0]], 3),
    (np.ones((2, 2)), 2),
    (np.ones((1, 1)), 1),
    ([[1.0, 2.0], [3.0]], 2),
    ({1.0, 2.0}, 2),
    ({"mean": 0.5}, 1),
    (sl.Summary(4, 0.5), 3),
    (sl.Summary(2, 0.5), 3),
    (sl.Summary(3, math.nan), 3),
    (sl.Summary(3, math.inf), 3),
    (sl.Summary(3, True), 3),
    (sl.Summary(3, "0.5"), 3),
    (sl.Summary(3, None), 3),
    (sl.Summary(3, [1.0, 2.0, 3.0]), 3),
    (sl.Summary("3", 0.5), 3),
    ((4, 0.5), 3),
    ((3, math.nan), 3),
    ((3, "0.5"), 3),
    ((True, 0.5), 1),
    (np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), 3),
]


@pytest.mark.parametrize(("answer", "count"), WRONG_ANSWERS, ids=repr)
def test_anything_else_is_a_failed_measurement(answer: object, count: int) -> None:
    with pytest.raises(sl.MeasurementFailed, match="the new drug"):
        summary_of(answer, count, "the new drug")


def test_a_plain_pair_at_two_pulls_is_ambiguous() -> None:
    with pytest.raises(sl.MeasurementFailed, match=r"\(2, 0.5\).*two rewards or a \(count, mean\).*Summary"):
        summary_of((2, 0.5), 2, "arm-0")


def test_the_message_says_what_came_and_what_to_do() -> None:
    with pytest.raises(sl.MeasurementFailed) as caught:
        summary_of([1.0, 2.0], 3, "arm-7")
    message = str(caught.value)
    assert "arm-7" in message
    assert "3 times" in message
    assert "[1.0, 2.0]" in message
    assert "exactly 3 rewards" in message


def test_a_long_wrong_answer_is_shown_in_short() -> None:
    with pytest.raises(sl.MeasurementFailed) as caught:
        summary_of([math.nan] * 10_000, 10_000, "arm-0")
    assert len(str(caught.value)) < 300


def test_the_mean_of_huge_rewards_is_finite_or_refused() -> None:
    with contextlib.suppress(sl.MeasurementFailed):
        assert math.isfinite(summary_of([1e308, 1e308, 1e308], 3, "arm-0").mean)


def test_a_generator_is_no_list_of_rewards() -> None:
    with pytest.raises(sl.MeasurementFailed, match="flat list"):
        summary_of((reward for reward in [1.0, 2.0]), 2, "arm-0")


@pytest.mark.parametrize(
    "answer", [None, True, "0.5", math.nan, [], [1.0, 2.0], [[1.0], [2.0, 3.0]]], ids=repr
)
def test_select_reports_a_wrong_answer_as_a_failed_measurement(answer: object) -> None:
    asked = sl.Problem(m=1, epsilon=100.0, delta=0.05, variances=[1.0, 1.0])  # one pull of each arm
    with pytest.raises(sl.MeasurementFailed, match="arm-0"):
        sl.select(lambda *_: answer, asked, "wnelim", turns=1)


# --- randomness of a measurement ------------------------------------------------------------------


def test_the_generator_depends_on_entropy_arm_and_first_pull_only() -> None:
    def call(entropy: int, arm: int, first_pull: int) -> Call:
        return Call(entropy, arm, 3, first_pull)

    draws = {
        key: call(*key).rng.random(4).tobytes()
        for key in [(s, a, f) for s in (0, 1, 2**40) for a in (0, 1, 70_000) for f in (0, 1, 5, 2**33)]
    }
    assert len(set(draws.values())) == len(draws)
    np.random.default_rng(5).random(100)
    assert all(call(*key).rng.random(4).tobytes() == drawn for key, drawn in draws.items())


# --- simulated arms -------------------------------------------------------------------------------


def draw(rewards: str, means: Any, variances: Any, counts: Any, seed: int = 0) -> FloatArray:
    """Return one batch mean for each arm, all in a single lane."""
    out: FloatArray = np.empty((1, len(counts)))
    given = (np.array([means], float), np.array([variances], float), np.array([counts], np.int64))
    REWARDS[rewards].draw(out, [np.random.default_rng(seed)], *given)
    return out.reshape(-1)


def true_variance(rewards: str, mean: float, proxy: float) -> float:
    return mean * (1 - mean) if rewards == "bernoulli" else proxy


@pytest.mark.parametrize("rewards", NOISY)
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_batch_means_have_the_right_mean_and_variance(rewards: str, count: int) -> None:
    """Over N = 40,000 batches the mean is normal and the variance nearly so.

    Limits are six standard errors: a false alarm has probability 2e-9 for the mean, and for the
    variance, whose standard error follows from the fourth moment, less than 1e-6. Seeded, so an alarm
    is the same for everyone.
    """
    n, mean, proxy = 40_000, 0.3, 0.25
    drawn = draw(rewards, [mean] * n, [proxy] * n, [count] * n, seed=count)
    variance = true_variance(rewards, mean, proxy) / count
    assert abs(drawn.mean() - mean) < 6 * math.sqrt(variance / n)
    centred = (drawn - mean) ** 2
    assert abs(centred.mean() - variance) < 6 * max(float(centred.std()) / math.sqrt(n), 1e-12)


@pytest.mark.parametrize("rewards", NOISY)
def test_arms_of_one_batch_are_uncorrelated(rewards: str) -> None:
    n = 40_000
    drawn = draw(rewards, [0.5] * n, [0.25] * n, [3] * n) - 0.5
    correlation = float((drawn[:-1] * drawn[1:]).mean() / drawn.var())
    assert abs(correlation) < 6 / math.sqrt(n)  # six standard errors: a false alarm in 5e8


@pytest.mark.parametrize("rewards", ["gaussian", "two-point", "uniform"])
def test_each_arm_has_its_own_mean_variance_and_count(rewards: str) -> None:
    n = 20_000
    means, variances, counts = [5.0, -2.0, 0.0], [1.0, 16.0, 0.01], [1, 4, 9]
    drawn = draw(rewards, means * n, variances * n, counts * n).reshape(n, 3)
    spread = np.sqrt(np.array(variances) / counts)
    standard = (drawn - means) / spread
    assert (abs(standard.mean(axis=0)) < 6 / math.sqrt(n)).all()
    # the fourth central moment of each is at most 3 sigma^4, so sd(variance) <= sqrt(2 / n)
    assert (abs(standard.var(axis=0) - 1) < 6 * math.sqrt(2 / n)).all()


def test_one_two_point_reward_is_the_mean_plus_or_minus_one_scale() -> None:
    drawn = draw("two-point", [3.0] * 500, [4.0] * 500, [1] * 500)
    assert set(drawn.tolist()) == {1.0, 5.0}


def test_two_point_batches_lie_on_their_lattice() -> None:
    drawn = draw("two-point", [0.0] * 500, [1.0] * 500, [4] * 500)
    assert set(drawn.tolist()) == {-1.0, -0.5, 0.0, 0.5, 1.0}


def test_uniform_rewards_stay_within_root_three_scales() -> None:
    drawn = draw("uniform", [10.0] * 5000, [4.0] * 5000, [1] * 5000)
    assert abs(drawn - 10.0).max() <= 2.0 * math.sqrt(3)
    assert abs(drawn - 10.0).max() > 0.99 * 2.0 * math.sqrt(3)  # missed by all 5000 with probability 1e-22


def test_bernoulli_batches_are_whole_numbers_of_successes() -> None:
    for count in (1, 3, 10):
        drawn = draw("bernoulli", [0.4] * 500, [0.25] * 500, [count] * 500)
        successes = drawn * count
        assert (np.round(successes) / count == drawn).all()
        assert 0 <= drawn.min() < drawn.max() <= 1


def test_certain_bernoulli_rewards_never_vary() -> None:
    assert draw("bernoulli", [0.0, 1.0], [0.25, 0.25], [1000, 1000]).tolist() == [0.0, 1.0]


def test_noiseless_rewards_are_the_means() -> None:
    means = [0.1, -1e9, 1 / 3]
    assert draw("noiseless", means, [1.0] * 3, [1, 7, 2**40]).tolist() == means


@pytest.mark.parametrize("rewards", ["gaussian", "bernoulli", "two-point", "noiseless"])
def test_huge_batches_cost_nothing_and_have_no_noise_left(rewards: str) -> None:
    assert draw(rewards, [0.5], [0.25], [2**52]) == pytest.approx([0.5], abs=1e-6)


def counts_of(size: str) -> list[int]:
    long = (1 << 20) + 3  # uniform rewards beyond this are drawn in parts
    return {"short": [1, 2, 30, 4, 1000, 6], "long": [5, long, 7, 3, long, 2]}[size]


@pytest.mark.parametrize("rewards", [*NOISY, "noiseless"])
@pytest.mark.parametrize("size", ["short", "long"])
@pytest.mark.parametrize("cuts", [[1], [3], [1, 2, 3, 4, 5], [2, 4]])
def test_blocks_do_not_change_what_a_lane_draws(rewards: str, size: str, cuts: list[int]) -> None:
    counts = np.array([counts_of(size)])
    means, variances = np.linspace(0.1, 0.9, 6)[None], np.full((1, 6), 0.25)
    whole, parts = np.empty((1, 6)), np.empty((1, 6))
    REWARDS[rewards].draw(whole, [np.random.default_rng(3)], means, variances.copy(), counts)
    rng = np.random.default_rng(3)
    for start, stop in zip([0, *cuts], [*cuts, 6], strict=True):
        block = np.s_[:, start:stop]
        REWARDS[rewards].draw(parts[block], [rng], means[block], variances[block].copy(), counts[block])
    assert parts.tolist() == whole.tolist()


@pytest.mark.parametrize("rewards", [*NOISY, "noiseless"])
def test_lanes_do_not_change_what_each_other_draws(rewards: str) -> None:
    counts = np.array([[1, 2, 3, 40], [5, 6, 7, 8], [100, 1, 1, 1]])
    means, variances = np.full((3, 4), 0.5), np.full((3, 4), 0.25)
    together = np.empty((3, 4))
    REWARDS[rewards].draw(
        together, [np.random.default_rng(lane) for lane in range(3)], means, variances.copy(), counts
    )
    for lane in range(3):
        alone = np.empty((1, 4))
        rows = np.s_[lane : lane + 1]
        REWARDS[rewards].draw(
            alone, [np.random.default_rng(lane)], means[rows], variances[rows].copy(), counts[rows]
        )
        assert alone[0].tolist() == together[lane].tolist()


@pytest.mark.parametrize("rewards", REWARDS)
def test_a_simulated_measure_answers_with_a_summary(rewards: str) -> None:
    asked = problem([0.25, 0.5, 1.0])
    measure = sl.simulated_measure(asked, [0.2, 0.5, 0.8], rewards)
    answer = measure(1, 12, Call(0, 1, 12, 0).rng)
    assert isinstance(answer, sl.Summary)
    assert answer.count == 12
    assert answer == measure(1, 12, Call(0, 1, 12, 0).rng)
    assert asked.variances.tolist() == [0.25, 0.5, 1.0]


# --- the variance proxy of a coin -----------------------------------------------------------------


def least_proxy(p: float) -> float:
    """Return sup over l of 2 / l^2 ln E exp(l (X - p)) for a 0/1 variable with mean p, numerically."""

    def loss(l: float) -> float:  # noqa: E741
        if abs(l) < 1e-3:
            return -p * (1 - p)  # the limit at 0
        log_mgf = np.logaddexp(math.log(p) + l * (1 - p), math.log1p(-p) - l * p)
        return float(-2 / l**2 * log_mgf)

    found = 0.0
    for low, high in [(-80.0, -8.0), (-8.0, 0.0), (0.0, 8.0), (8.0, 80.0)]:
        found = max(found, -float(minimize_scalar(loss, bounds=(low, high), method="bounded").fun))
    return found


@pytest.mark.parametrize("p", [1e-6, 0.001, 0.05, 0.2, 0.4, 0.49, 0.4999, 0.5001, 0.6, 0.9, 0.999, 1 - 1e-6])
def test_bernoulli_proxy_is_the_least_that_is_true(p: float) -> None:
    assert bernoulli_proxy(np.array([p]))[0] == pytest.approx(least_proxy(p), rel=1e-5)


def test_bernoulli_proxy_is_smooth_and_symmetric_around_one_half() -> None:
    x = np.array([0.0, 1e-9, 1e-6, 0.99e-4, 1.01e-4, 1e-3, 0.1, 0.4])
    expected = [0.25 if d == 0 else 2 * d / (4 * math.atanh(2 * d)) for d in x]
    assert bernoulli_proxy(0.5 + x) == pytest.approx(expected, rel=1e-11)
    assert bernoulli_proxy(0.5 - x) == pytest.approx(expected, rel=1e-11)


def test_bernoulli_proxy_lies_between_the_variance_and_one_quarter() -> None:
    p = np.linspace(0.0, 1.0, 1001)
    proxy = bernoulli_proxy(p)
    assert (proxy >= p * (1 - p) * (1 - 1e-12)).all()
    assert (proxy <= 0.25).all()


def test_certain_success_and_certain_failure_have_the_same_proxy() -> None:
    never, always = bernoulli_proxy(np.array([0.0, 1.0]))
    assert never == pytest.approx(always)


# --- true means -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ([0.1, 0.2], "3 arms"),
        ([0.1, 0.2, 0.3, 0.4], "3 arms"),
        ([[0.1, 0.2, 0.3]], "3 arms"),
        (0.5, "0 dimensions"),
        ([0.1, math.nan, 0.3], "NaN or infinity"),
        ([0.1, math.inf, 0.3], "NaN or infinity"),
        (["a", "b", "c"], "real number"),
        ([1j, 0.2, 0.3], "real number"),
        (np.array([1j, 0.2, 0.3]), "real number"),
        ([[0.1], [0.2, 0.3]], "real number"),
        ({"arm-0": 0.5}, "real number"),
    ],
    ids=repr,
)
def test_true_means_must_be_one_finite_number_per_arm(means: object, said: str) -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        checked_means(problem(), means, "gaussian")
    assert "`means`" in str(caught.value)
    assert said in str(caught.value)


def test_unknown_rewards_are_refused_with_those_that_exist() -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        checked_means(problem(), [0.1, 0.2, 0.3], "cauchy")
    assert "'cauchy'" in str(caught.value)
    assert all(name in str(caught.value) for name in REWARDS)


@pytest.mark.parametrize("mean", [-0.01, 1.01])
def test_bernoulli_means_are_probabilities(mean: float) -> None:
    with pytest.raises(sl.InvalidProblem, match="between 0 and 1"):
        checked_means(problem(), [0.1, mean, 0.3], "bernoulli")


def test_bernoulli_rewards_noisier_than_stated_are_refused() -> None:
    understated = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[0.25, 0.2, 0.25], names=["a", "b", "c"])
    for use in (checked_means, sl.simulated_measure):
        with pytest.raises(sl.InvalidProblem) as caught:
            use(understated, [0.5, 0.5, 0.5], "bernoulli")
        assert "b has variance 0.2" in str(caught.value)
        assert "0.25" in str(caught.value)
    with pytest.raises(sl.InvalidProblem, match="b has variance"):
        sl.simulate(understated, [0.5, 0.5, 0.5], rewards="bernoulli", replications=1)


def test_bernoulli_rewards_with_their_least_proxy_are_accepted() -> None:
    means = np.array([0.1, 0.5, 0.97])
    asked = problem(bernoulli_proxy(means))
    assert checked_means(asked, means, "bernoulli").tolist() == means.tolist()


def test_the_variance_itself_is_too_small_a_proxy_for_a_coin() -> None:
    with pytest.raises(sl.InvalidProblem):
        checked_means(problem([0.25, 0.1 * 0.9, 0.25]), [0.5, 0.1, 0.5], "bernoulli")


@pytest.mark.parametrize("n", [99_999_999_999_999, 2**80])
def test_more_arms_than_memory_holds_are_refused_in_one_line(n: int) -> None:
    with pytest.raises(sl.InvalidProblem, match=f"`n` is {n}"):
        bounded(0, 1, n)
    with pytest.raises(sl.InvalidProblem, match=f"`n` is {n}"):
        bernoulli(n)


# --- True and False ---------------------------------------------------------------------------------

RIGHT = sl.Problem(1, 0.2, 0.1, n=3, rewards=sl.Bernoulli(), items=30)


def is_right(arm: int, item: int) -> bool:
    return (item * 7) % 10 < 3 + 3 * arm


async def _by_coroutine(arm: int, items: list[int]) -> list[bool]:
    return [is_right(arm, item) for item in items]


def _by_rows(arms: Any, items: list[int]) -> list[list[bool]]:
    return [[is_right(arm, item) for item in items] for arm in arms]


def _print_all(how: str) -> tuple[str, ...]:
    rule = "(int(line) * 7) % 10 < 3 + 3 * {arm}"
    return (sys.executable, "-c", f"import json, sys; found = [{rule} for line in sys.stdin]; {how}")


GRADERS: dict[str, Any] = {
    "list": lambda arm, items: [is_right(arm, item) for item in items],
    "array": lambda arm, items: np.array([is_right(arm, item) for item in items]),
    "by id": lambda arm, items: {item: np.bool_(is_right(arm, item)) for item in items},
    "vectorised": sl.vectorised(_by_rows),  # type: ignore[arg-type]
    "async": _by_coroutine,
    "lines": CommandSource(RIGHT, _print_all("print(*found, sep='\\n')")),
    "JSON": CommandSource(RIGHT, _print_all("print(json.dumps(found))"), output="json"),
    "persistent": CommandSource(
        RIGHT,
        (
            sys.executable,
            "-uc",
            "import json, sys\nfor line in sys.stdin:\n  one = json.loads(line)\n"
            "  score = one['item'] * 7 % 10 < 3 + 3 * one['arm']\n"
            "  print(json.dumps(dict(id=one['id'], score=score)))",
        ),
        persistent=True,
    ),
}


@pytest.mark.parametrize("door", GRADERS)
def test_true_and_false_are_rewards_of_0_and_1_at_every_door(door: str) -> None:
    plain = sl.select(lambda arm, items: [int(is_right(arm, item)) for item in items], RIGHT)
    found = sl.select(GRADERS[door], RIGHT)
    assert found.selected == plain.selected
    assert found.arms.means.tolist() == plain.arms.means.tolist()


@pytest.mark.parametrize("door", GRADERS)
def test_true_and_false_are_no_graded_scores_at_any_door(door: str) -> None:
    graded, grader = RIGHT.changed(rewards=sl.Bounded(0, 1)), GRADERS[door]
    if isinstance(grader, CommandSource):
        grader = replace(grader, problem=graded)
    with pytest.raises(sl.MeasurementFailed):
        sl.select(grader, graded, retries=0)


def test_true_and_false_in_streams_of_successes() -> None:
    problem = sl.Problem(1, 0.3, 0.1, n=2, rewards=sl.Bernoulli())
    plain = sl.select(lambda arm, count, rng: (rng.random(count) < 0.2 + 0.6 * arm) * 1, problem)
    found = sl.select(lambda arm, count, rng: rng.random(count) < 0.2 + 0.6 * arm, problem)
    assert found.arms.means.tolist() == plain.arms.means.tolist()
    single = sl.vectorised(
        lambda arms, counts, rng: rng.random((len(arms), counts[0])) < 0.2 + 0.6 * arms[:, None]
    )
    assert sl.select(single, problem, pulls_per_call=1).selected == ("arm-1",)
    session = sl.Session(problem, "race")
    session.tell(session.ask(1), [[True] * session.asked.counts[0]])
    assert session.result.arms.means[0] == 1
    with pytest.raises(sl.MeasurementFailed):
        summary_of(sl.Summary(2, True), 2, "a", is_binary=True)
