"""Every strategy asks for the same pulls and selects the same arms as its plain transcription."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.strategies import strategy_named
from tests.oracles import ORACLES
from tests.playing import gaussian_rewards, play, play_oracle

ONE_BY_ONE = ["lucb-mixture", "top-two"]
ELIMINATION = sorted(ORACLES.keys() - {"lucb", "ugape", *ONE_BY_ONE})


def test_every_strategy_has_an_oracle() -> None:
    assert set(ORACLES) == set(sl.strategies())


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


@pytest.mark.parametrize("name", ONE_BY_ONE)
@given(problem=problems(), seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_mixtures_pull_and_select_as_their_oracles(name: str, problem: sl.Problem, seed: int) -> None:
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


def test_sizes_of_adapted_medelim_are_exact_where_sums_tie() -> None:
    from shortlist.strategies.adapted_medelim import sizes

    assert sizes(np.array([3.0, 3.0, 2.0, 2.0, 2.0]), 1) == (5, 2, 1)
    assert sizes(np.full(8, 0.1), 1) == (8, 4, 2, 1)
