"""The rivals of the benchmarks are what was published: their constants, and how often they are wrong."""

import math

import numpy as np
import pytest
from benchmarks import procedures

from shortlist.arrays import FloatArray, IntArray

pytestmark = pytest.mark.slow


def drawing(seed: int, means: tuple[float, ...], correlation: float = 0.0) -> procedures.Draw:
    rng = np.random.default_rng(seed)

    def draw(arms: IntArray, first: int, last: int) -> FloatArray:
        common = math.sqrt(correlation) * rng.standard_normal(last - first)
        own = math.sqrt(1 - correlation) * rng.standard_normal((len(arms), last - first))
        return np.asarray(np.array(means)[arms, None] + common + own)

    return draw


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_kim_and_nelson_err_hardly_less_than_they_may(correlation: float) -> None:
    """Two arms exactly epsilon apart are the hardest case; there the bound is nearly attained."""
    found = [
        procedures.kim_nelson(drawing(seed, (0.0, 0.3), correlation), 2, 0.3, 0.1, pilot=10)
        for seed in range(600)
    ]
    n_wrong = sum(arm == 0 for arm, _ in found)
    assert 0.05 < n_wrong / 600 < 0.125


def test_the_boundary_of_kim_and_nelson() -> None:
    """Of two arms with delta .05 and a pilot of 11, eta is (.1^-.2 - 1)/2."""
    assert procedures.boundary(2, 0.05, 11) == pytest.approx(10 * (0.1**-0.2 - 1))


def test_variances_of_differences() -> None:
    rewards = np.random.default_rng(0).standard_normal((4, 9))
    found = procedures.differences(rewards)
    assert found[1, 3] == pytest.approx((rewards[1] - rewards[3]).var(ddof=1))
    assert found[2, 2] == 0.0


def test_an_arm_that_drops_out_is_not_pulled_again() -> None:
    """An arm far behind ends with the pilot, and the two others are equally often pulled."""
    arm, n_pulls = procedures.kim_nelson(drawing(1, (-50.0, 0.0, 0.6)), 3, 0.3, 0.1, pilot=10)
    assert arm == 2
    assert n_pulls % 2 == 0
    assert n_pulls > 30


@pytest.mark.parametrize(
    ("n", "delta", "pilot", "published"),
    [(20, 0.025, 20, 0.92337), (1000, 0.025, 50, 0.69025), (2, 0.05, 10, 0.85402)],
)
def test_the_constant_of_screening(n: int, delta: float, pilot: int, published: float) -> None:
    """The figures are those of PyPRS 1.0.0, which are rounded."""
    assert procedures.eta(n, delta, pilot) == pytest.approx(published, rel=3e-4)


def test_screening_loses_the_best_arm_rarely() -> None:
    """Of two equal arms either is lost with probability .1 at most; .06 with these rounds."""
    pilot, batch, rounds = 20, 5, 60
    reach = procedures.eta(2, 0.1, pilot) * math.sqrt(pilot - 1)
    n_lost = 0
    for seed in range(800):
        rewards = np.random.default_rng(seed).standard_normal((2, pilot + batch * rounds))
        variances = rewards[:, :pilot].var(axis=1, ddof=1)
        last = variances / rewards.shape[1]
        for size in range(pilot, rewards.shape[1] + 1, batch):
            means = rewards[:, :size].mean(axis=1)
            if procedures.is_screened(means, variances / size, last, reach)[0]:
                n_lost += 1
                break
    assert 0.03 < n_lost / 800 < 0.1


def test_a_good_selection_is_within_epsilon() -> None:
    means = (0.0, 0.2, 0.7, 1.0)
    found = [
        procedures.good_selection(drawing(seed, means), 4, 0.25, 0.1, pilot=10, batch=5)
        for seed in range(200)
    ]
    assert sum(arm != 3 for arm, _ in found) <= 20
    assert min(n_pulls for _, n_pulls in found) >= 40


def test_further_pulls_are_each_drawn_once() -> None:
    asked: list[tuple[int, int]] = []

    def draw(arms: IntArray, first: int, last: int) -> FloatArray:
        asked.extend((int(arm), pull) for arm in arms for pull in range(first, last))
        return np.ones((len(arms), last - first))

    sums = procedures.sums_of(draw, np.array([4, 2, 7]), np.array([5, 5, 0]), np.array([100, 3, 0]))
    assert sums.tolist() == [100.0, 3.0, 0.0]
    assert sorted(asked) == sorted(
        [(4, pull) for pull in range(5, 105)] + [(2, pull) for pull in range(5, 8)]
    )


def test_a_random_walk_hardly_ever_falls_below_the_curve() -> None:
    """It may with probability .1; in discrete time it does less often."""
    walks = np.cumsum(np.random.default_rng(0).standard_normal((1000, 5000)), axis=1)
    is_below = (walks < -procedures.curve(np.arange(1.0, 5001.0), 0.1)).any(axis=1)
    assert 0.03 < is_below.mean() < 0.1


def test_survivors_are_compared_with_their_mean() -> None:
    (arm, n_pulls), n_left = procedures.survivors(drawing(3, (0.0, 1.0, 3.0)), 3, 0.1, 0.05, pilot=10)
    assert (arm, n_left) == (2, 1)
    assert n_pulls > 30
    (_, n_pulls), n_left = procedures.survivors(drawing(3, (0.0, 0.0)), 2, 0.1, 0.05, pilot=10, most=50)
    assert (n_pulls, n_left) == (100, 2)
