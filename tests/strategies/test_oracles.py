"""Every strategy asks for the same pulls and selects the same arms as its plain transcription."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.strategies import strategy_named
from tests.oracles import ORACLES
from tests.playing import Reward, gaussian_rewards, play, play_oracle
from tests.questions import known

pytestmark = pytest.mark.slow

MANY_ROUNDS = ["kn", "biz", "racing", "lucb-mixture", "top-two"]
ELIMINATION = sorted(ORACLES.keys() - {"lucb", "ugape", "race", "level-race", *MANY_ROUNDS})


def test_every_strategy_has_an_oracle() -> None:
    assert set(ORACLES) == set(sl.strategies.names())


@st.composite
def problems(draw: st.DrawFn) -> sl.Problem:
    n = draw(st.integers(1, 40))
    m = draw(st.integers(1, n))
    kind = draw(st.sampled_from(["equal", "powers", "any", "tenths"]))
    if kind == "equal":
        variances = [draw(st.floats(0.01, 100))] * n
    elif kind == "powers":
        variances = [2.0 ** draw(st.integers(-4, 4)) for _ in range(n)]
    elif kind == "tenths":
        variances = [draw(st.integers(1, 30)) / 10 for _ in range(n)]
    else:
        variances = [draw(st.floats(1e-3, 1e3)) for _ in range(n)]
    epsilon = draw(st.floats(0.01, 2.0))
    delta = draw(st.floats(1e-6, 0.9))
    return sl.Problem(m=m, epsilon=epsilon, delta=delta, variances=variances)


@pytest.mark.parametrize("name", ELIMINATION)
@given(problem=problems(), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_elimination_pulls_and_selects_as_its_oracle(name: str, problem: sl.Problem, seed: int) -> None:
    if strategy_named(name).unfit(problem):
        problem = problem.changed(m=1)
    means = np.random.default_rng(seed).standard_normal(problem.n) * problem.epsilon
    reward = gaussian_rewards(means, problem.variances, seed)
    ours, oracle = play(name, problem, reward), play_oracle(ORACLES[name](problem), reward)
    assert ours.pulls == oracle.pulls
    assert ours.selected == oracle.selected


@pytest.mark.parametrize("name", MANY_ROUNDS)
@given(problem=problems(), seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_strategies_of_many_rounds_pull_and_select_as_their_oracles(
    name: str, problem: sl.Problem, seed: int
) -> None:
    if strategy_named(name).unfit(problem):
        problem = problem.changed(m=1)
    means = np.random.default_rng(seed).standard_normal(problem.n) * 4 * problem.epsilon
    reward = gaussian_rewards(means, problem.variances, seed)
    ours, oracle = play(name, problem, reward), play_oracle(ORACLES[name](problem), reward)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected


@pytest.mark.parametrize("name", ["lucb", "ugape"])
@pytest.mark.parametrize(
    ("n", "m", "spread"),
    [(2, 1, 1.0), (7, 3, 4.0), (12, 11, 2.0), (30, 4, 8.0), (100, 2, 3.0), (120, 20, 1.0)],
)
def test_confidence_strategies_pull_and_select_as_their_oracles(
    name: str, n: int, m: int, spread: float
) -> None:
    rng = np.random.default_rng(n)
    variances = rng.uniform(1.0, spread, n) if spread > 1 else np.ones(n)
    problem = sl.Problem(m=m, epsilon=2.5, delta=0.1, variances=variances)
    means = rng.standard_normal(n) * 2
    reward = gaussian_rewards(means, variances, seed=n)
    ours, oracle = play(name, problem, reward), play_oracle(ORACLES[name](problem), reward)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected
    assert ours.n_pulls > 2 * n  # it did have to look twice


@pytest.mark.parametrize("name", ["lucb", "ugape"])
def test_confidence_strategies_follow_their_oracles_through_exact_ties(name: str) -> None:
    problem = sl.Problem(m=3, epsilon=2.5, delta=0.1, variances=[1.0] * 100)
    means = np.repeat([1.0, 0.0], [3, 97])
    ours = play(name, problem, lambda arm, _number, _count: float(means[arm]))
    oracle = play_oracle(ORACLES[name](problem), lambda arm, _number, _count: float(means[arm]))
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected == {0, 1, 2}


@st.composite
def races(draw: st.DrawFn) -> sl.Problem:
    n = draw(st.integers(2, 24))
    m = draw(st.sampled_from([1, 1, 2, n // 2, n - 1]).filter(lambda m: 1 <= m < n))
    variances = [draw(st.sampled_from([0.1, 1.0, 7.0]))] * n
    if draw(st.booleans()):
        variances = [s * 2 ** draw(st.floats(-3, 3)) for s in variances]
    return known(
        m=m,
        epsilon=draw(st.sampled_from([0.1, 0.5, 1.3])),
        delta=draw(st.sampled_from([1e-6, 0.01, 0.05, 0.3, 0.9])),
        variances=variances,
        noise=draw(st.sampled_from(["sub-gaussian", "gaussian"])),
    )


def surprising_rewards(problem: sl.Problem, seed: int, rate: float, size: float) -> Reward:
    """Rewards whose means change from one level to the next: incumbents fall, and arms must catch up."""

    rng = np.random.default_rng(seed)
    mean, means = np.zeros(problem.n), []
    for _ in range(48):
        mean = np.where(rng.random(problem.n) < rate, size * rng.standard_normal(problem.n), mean)
        means.append(mean)
    noise = np.sqrt(problem.variances) * rng.standard_normal((48, problem.n))

    def reward(arm: int, number: int, count: int) -> float:
        return float(problem.epsilon * means[number][arm] + noise[number, arm] / np.sqrt(count))

    return reward


@given(
    problem=races(),
    seed=st.integers(0, 2**32),
    rate=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    size=st.sampled_from([0.3, 1.0, 4.0, 8.0]),
)
@settings(max_examples=80, deadline=None)
def test_the_race_by_levels_pulls_and_selects_as_its_oracle_whatever_the_surprises(
    problem: sl.Problem, seed: int, rate: float, size: float
) -> None:
    reward = surprising_rewards(problem, seed, rate, size)
    ours, oracle = play("level-race", problem, reward), play_oracle(ORACLES["level-race"](problem), reward)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected


@pytest.mark.parametrize("noise", ["sub-gaussian", "gaussian"])
@pytest.mark.parametrize(("n", "m"), [(3, 1), (6, 4), (9, 3), (20, 2), (40, 1)])
@pytest.mark.parametrize("spread", [1.0, 9.0])
def test_the_race_by_levels_follows_its_oracle_when_the_best_arms_collapse(
    n: int, m: int, noise: str, spread: float
) -> None:
    """The contenders turn bad at once, in the middle, so that arms left behind become incumbents."""
    variances = np.geomspace(1.0, spread, n)
    problem = known(m=m, epsilon=0.1, delta=0.1, variances=variances, noise=noise)

    def reward(arm: int, number: int, count: int) -> float:
        error = 0.1 * np.random.default_rng((n, arm, number)).standard_normal() / np.sqrt(count)
        if arm <= m:
            return float((1.0 if number < 28 else -30.0) + error)
        return float(-1.0 + 0.01 * arm * number + error)

    ours, oracle = play("level-race", problem, reward), play_oracle(ORACLES["level-race"](problem), reward)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected
    front, n_late = -1, 0
    reached = dict.fromkeys(range(n), -1)
    for batch in ours.batches:
        for arm in batch:
            reached[arm] += 1
        n_late += max(reached[arm] for arm in batch) <= front
        front = max(front, *reached.values())
    assert n_late > 0  # arms did catch up


def test_the_race_by_levels_follows_its_oracle_through_exact_ties() -> None:
    for noise in ("sub-gaussian", "gaussian"):
        problem = known(m=3, epsilon=0.2, delta=0.1, variances=[1.0] * 12, noise=noise)
        for means in (np.zeros(12), np.repeat([1.0, 0.0], 6), np.repeat([0.0, 0.1, 0.3], 4)):
            ours = play("level-race", problem, lambda arm, _number, _count, means=means: float(means[arm]))  # type: ignore[misc]
            oracle = play_oracle(
                ORACLES["level-race"](problem),
                lambda arm, _number, _count, means=means: float(means[arm]),  # type: ignore[misc]
            )
            assert ours.batches == oracle.batches
            assert ours.selected == oracle.selected


@given(
    problem=races(),
    seed=st.integers(0, 2**32),
    rate=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    size=st.sampled_from([0.3, 1.0, 4.0, 8.0]),
)
@settings(max_examples=60, deadline=None)
def test_the_race_pulls_and_selects_as_its_oracle_whatever_the_surprises(
    problem: sl.Problem, seed: int, rate: float, size: float
) -> None:
    rewards = surprising_rewards(problem, seed, rate, size)

    def reward(arm: int, number: int, count: int) -> float:
        return rewards(arm, number % 48, count)

    ours, oracle = play("race", problem, reward), play_oracle(ORACLES["race"](problem), reward)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected


@pytest.mark.parametrize(("n", "m"), [(2, 1), (12, 3), (12, 11), (40, 1)])
def test_the_race_follows_its_oracle_through_exact_ties(n: int, m: int) -> None:
    problem = sl.Problem(m=m, epsilon=0.2, delta=0.1, variances=np.geomspace(1.0, 2.0, n))
    for means in (np.zeros(n), np.arange(n) // 2 * 0.1, np.where(np.arange(n) < m, 0.1, 0.0)):
        ours = play("race", problem, lambda arm, _number, _count, means=means: float(means[arm]))  # type: ignore[misc]
        oracle = play_oracle(
            ORACLES["race"](problem),
            lambda arm, _number, _count, means=means: float(means[arm]),  # type: ignore[misc]
        )
        assert ours.batches == oracle.batches
        assert ours.selected == oracle.selected


def test_sizes_of_adapted_medelim_are_exact_where_sums_tie() -> None:
    from shortlist.strategies.adapted_medelim import sizes

    assert sizes(np.array([3.0, 3.0, 2.0, 2.0, 2.0]), 1) == (5, 2, 1)
    assert sizes(np.full(8, 0.1), 1) == (8, 4, 2, 1)
