"""Strategies on mixtures, `racing`, `lucb-mixture` and `top-two`: totals, caps, refusals."""

import math

import numpy as np
import pytest

import shortlist as sl
from shortlist.strategies import lucb_mixture, mixture, racing, strategy_named
from tests.playing import gaussian_rewards, play

pytestmark = pytest.mark.slow


def twenty(m: int, **changes: object) -> sl.Problem:
    problem = sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=[1.0] * 20)
    return problem.changed(**changes) if changes else problem


@pytest.mark.parametrize(
    ("name", "m", "gap", "at_most"),
    [
        ("lucb-mixture", 3, None, 10_000),
        ("lucb-mixture", 1, 0.11, 15_547),
        ("lucb-mixture", 3, 0.11, 22_080),
        ("racing", 1, None, 17_000),
        ("racing", 3, 0.11, 50_000),
        ("top-two", 1, None, 7_000),
        ("top-two", 1, 0.11, 16_000),
    ],
)
def test_twenty_arms_take_no_more_pulls_than_elsewhere(
    name: str, m: int, gap: float | None, at_most: int
) -> None:
    """Twenty arms, means linear on [0, 1] or `gap` apart. One standard error of 40 runs is 5 % at most."""
    problem = twenty(m)
    means = sl.instances.linear(problem) if gap is None else sl.instances.slippage(problem, gap)
    outcome = sl.simulate(problem, means.means, name, replications=40, seed=8)
    assert outcome.errors == 0
    assert outcome.pulls.std() / math.sqrt(40) < 0.05 * at_most
    assert 0.75 * at_most < outcome.pulls.mean() < at_most


@pytest.mark.parametrize("delta", [1e-9, 0.05, 0.9])
def test_half_widths_fall_and_are_one_formula_in_information(delta: float) -> None:
    counts = np.geomspace(1e-3, 1e9, 2000)
    widths = mixture.half_widths(counts, np.ones(2000), 0.1, delta)
    assert (np.diff(widths) < 0).all()
    again = mixture.half_widths(7 * counts, np.full(2000, 7.0), 0.1, delta)
    np.testing.assert_allclose(again, widths, rtol=1e-12)


@pytest.mark.parametrize(("m", "delta"), [(1, 0.05), (10, 0.5), (19, 1e-8)])
def test_enough_is_where_intervals_become_as_short_as_epsilon(m: int, delta: float) -> None:
    problem = twenty(m, delta=delta, epsilon=0.25)
    pulls = mixture.enough(problem) / 0.25**2 * np.array([1.0, 1 - 1e-6])
    lower, upper = mixture.bounds(problem, np.zeros(2), pulls, np.ones(2))
    assert upper[0] - lower[0] <= 0.25 < upper[1] - lower[1]


@pytest.mark.parametrize("m", [1, 4, 9])
def test_the_cap_of_racing_is_attained_if_nothing_tells_arms_apart(m: int) -> None:
    problem = sl.Problem(m=m, epsilon=0.5, delta=0.1, variances=np.linspace(1.0, 5.0, 10))
    most = mixture.enough(problem) / 0.25
    assert racing.worst_case_pulls(problem) == sum(math.ceil(most * v) for v in problem.variances)
    played = play("racing", problem, lambda _arm, _number, _count: 1.5)
    assert played.n_pulls == racing.worst_case_pulls(problem)
    assert len(played.batches) <= racing.n_rounds(problem)


def test_no_arm_is_pulled_once_its_interval_is_as_short_as_epsilon() -> None:
    problem = sl.Problem(m=2, epsilon=0.5, delta=0.1, variances=np.linspace(1.0, 5.0, 8))
    played = play("lucb-mixture", problem, gaussian_rewards(np.zeros(8), problem.variances, seed=1))
    sizes, most = lucb_mixture.sizes(problem), lucb_mixture.most_batches(problem)
    for arm, batches in played.pulls.items():
        assert set(batches) == {int(sizes[arm])}
        assert len(batches) <= most[arm]
        counts = (most[arm] - np.array([0.0, 1.0])) * sizes[arm]
        lower, upper = mixture.bounds(problem, np.zeros(2), counts, np.full(2, problem.variances[arm]))
        assert upper[0] - lower[0] <= 0.5 < upper[1] - lower[1]
    assert len(played.batches) <= lucb_mixture.n_rounds(problem)


def test_a_cap_holds_however_large_the_means() -> None:
    """Rounding of large means must not keep an arm in doubt for ever."""
    problem = sl.Problem(m=2, epsilon=1e-3, delta=0.1, variances=[1e-5] * 6)
    for name in ("racing", "lucb-mixture", "kn"):
        asked = problem.changed(m=1) if strategy_named(name).unfit(problem) else problem
        played = play(name, asked, lambda arm, number, _count: 1e9 + 1e-7 * ((arm + number) % 3))
        worst = strategy_named(name).worst_case_pulls(asked)
        assert worst is not None
        assert played.n_pulls <= worst


def test_top_two_selects_one_arm_only() -> None:
    assert strategy_named("top-two").unfit(twenty(3)) == "it selects one arm only, and m is 3"
    with pytest.raises(sl.InvalidProblem, match="selects one arm only"):
        sl.simulate(twenty(3), np.zeros(20), "top-two")


@pytest.mark.parametrize("name", ["racing", "lucb-mixture", "kn"])
def test_pulls_beyond_counting_are_refused(name: str) -> None:
    problem = sl.Problem(m=1, epsilon=3e-7, delta=1e-40, variances=[1.0] * 50)
    with pytest.raises(sl.InvalidProblem, match=r"2\*\*53"):
        sl.Session(problem, name)


@pytest.mark.parametrize("name", ["racing", "lucb-mixture", "top-two"])
def test_they_promise_the_best_whatever_the_noise(name: str) -> None:
    promise = strategy_named(name).guarantee(twenty(1))
    assert promise is not None
    assert promise.scope is sl.certificates.Scope.TOP_M
    assert "sub-Gaussian" in promise.assumption
