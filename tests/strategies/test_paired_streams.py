"""Pairs of streams: rewards restored from means and variances are as good as the rewards."""

import numpy as np
import pytest
from scipy import stats

import shortlist as sl
from shortlist.strategies.paired_streams import mixed, normals, restored
from shortlist.strategies.protocol import Moments


def test_normal_numbers_look_normal_and_independent() -> None:
    arms, pulls = np.divmod(np.arange(200_000), 400)
    keys = mixed(arms.astype(np.uint64))
    found = normals(keys, pulls)
    assert stats.kstest(found, "norm").pvalue > 0.01
    table = found.reshape(500, 400)
    for one, other in ((table[:, :-1], table[:, 1:]), (table[:-1], table[1:])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.01
    assert len(np.unique(found)) == len(found)
    assert normals(keys[777:778], pulls[777:778])[0] == found[777]


def test_restored_rewards_have_the_moments_told() -> None:
    arms, counts, first = np.array([4, 0, 2]), np.array([2, 30, 7]), np.array([0, 8, 100])
    told = Moments(np.array([1.0, -2.0, 1e6]), np.array([0.5, 4.0, 9.0]))
    parts = np.split(restored(arms, first, counts, told), np.cumsum(counts)[:-1])
    assert [len(own) for own in parts] == counts.tolist()
    assert [own.mean() for own in parts] == pytest.approx(told.means.tolist())
    assert told.variances is not None
    assert [own.var(ddof=1) for own in parts] == pytest.approx(told.variances.tolist())


def test_restored_rewards_are_gaussian_if_the_rewards_are() -> None:
    """Sums of squared differences of two arms have the distribution that single rewards would have."""
    rng = np.random.default_rng(0)
    n_runs, k = 4000, 6
    means, variances = rng.normal(0, 1 / np.sqrt(k), (2, n_runs)), rng.chisquare(k - 1, (2, n_runs)) / (k - 1)
    zeros, counts = np.zeros(n_runs, dtype=np.int64), np.full(n_runs, k)
    one, other = (
        restored(arms, zeros, counts, Moments(means[side], variances[side])).reshape(n_runs, k)
        for side, arms in enumerate((np.arange(n_runs), n_runs + np.arange(n_runs)))
    )
    spread = ((one - other).var(axis=1, ddof=1) * (k - 1)) / 2
    assert stats.kstest(spread, stats.chi2(k - 1).cdf).pvalue > 0.01


def test_the_numbers_differ_from_run_to_run() -> None:
    arms, first, counts = np.array([1]), np.array([0]), np.array([8])
    one, other = (
        restored(arms, first, counts, Moments(np.array([mean]), np.array([1.0]))) - mean
        for mean in (0.5, 0.5000001)
    )
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.9
    scaled = restored(arms, first, counts, Moments(np.array([4.0]), np.array([64.0])))
    assert scaled == pytest.approx(
        8 * restored(arms, first, counts, Moments(np.array([0.5]), np.array([1.0])))
    )


def test_a_noisy_arm_beside_a_quiet_one_is_not_judged_by_the_same_numbers_always() -> None:
    problem = sl.Problem(m=1, epsilon=0.001, delta=0.45, n=2, rewards=sl.Gaussian())
    run = sl.simulate(
        problem, [0.0, 0.002], "paired-race", variances=[1e-4, 1.0], replications=150, budget=4000
    )
    assert run.errors / 150 <= 0.45


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "seed"), [(0.2, 1), (0.45, 2)])
def test_errors_are_rare(delta: float, seed: int) -> None:
    problem = sl.Problem(m=1, epsilon=0.5, delta=delta, n=3, rewards=sl.Gaussian())
    run = sl.simulate(
        problem, [0.51, 0.0, 0.0], "paired-race", variances=[1.0, 4.0, 0.25], replications=300, seed=seed
    )
    assert run.unfinished == 0
    assert run.errors / 300 <= delta + 3 * np.sqrt(delta * (1 - delta) / 300)
