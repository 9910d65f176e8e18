"""Error rates of the race where errors are likely, against delta, by an exact binomial test.

Each assertion fails by chance with probability at most 1e-6 if the error rate is delta itself. Errors do
happen here: the race stops as soon as it may, and the swap certificate leaves little to spare.
"""

import numpy as np
import pytest

import shortlist as sl
from tests.questions import known
from tests.statistical.test_error_rates import assert_rate_is_below_delta

pytestmark = pytest.mark.slow

JUST = 1.0001


def slippage(problem: sl.Problem, gap: float = JUST, seed: int = 0) -> list[float]:
    """The m best arms, wherever they are, lead all others by just more than epsilon."""
    means = np.zeros(problem.n)
    means[np.random.default_rng(seed).permutation(problem.n)[: problem.m]] = gap * problem.epsilon
    return means.tolist()


@pytest.mark.parametrize("rewards", ["gaussian", "two-point"])
@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize(
    ("n", "m", "spread", "runs"),
    [(2, 1, 1.0, 500), (3, 1, 9.0, 200), (6, 5, 1.0, 100), (12, 2, 20.0, 60), (30, 5, 4.0, 40)],
)
def test_evidence(n: int, m: int, spread: float, runs: int, delta: float, rewards: str) -> None:
    variances = np.geomspace(1.0, spread, n)
    problem = sl.Problem(m=m, epsilon=0.8, delta=delta, variances=variances)
    outcome = sl.simulate(
        problem, slippage(problem), "level-race", replications=runs, seed=3, rewards=rewards
    )
    assert_rate_is_below_delta(outcome)
    if n == 2 and delta == 0.3:
        assert outcome.errors > 10  # it stops as early as it may


@pytest.mark.parametrize(
    ("n", "m", "epsilon", "delta", "runs"),
    [
        (2, 1, 0.2, 0.3, 400),
        (5, 1, 0.8, 0.3, 1000),
        (5, 1, 1.3, 0.05, 1000),
        (5, 3, 1.1, 0.3, 500),
        (20, 1, 1.6, 0.3, 1000),
        (20, 1, 2.0, 0.05, 1000),
        (20, 3, 1.2, 0.3, 300),
    ],
)
def test_the_swap_certificate(n: int, m: int, epsilon: float, delta: float, runs: int) -> None:
    problem = known(m=m, epsilon=epsilon, delta=delta, variances=[1.0] * n, noise="gaussian")
    outcome = sl.simulate(problem, slippage(problem), "level-race", replications=runs, seed=5)
    assert_rate_is_below_delta(outcome)
    if delta == 0.3 and n <= 5:
        assert outcome.errors > 5


@pytest.mark.parametrize("noise", ["gaussian", "sub-gaussian"])
def test_arms_far_behind_and_good_enough_arms_change_nothing(noise: str) -> None:
    problem = known(m=2, epsilon=1.0, delta=0.3, variances=[1.0] * 9, noise=noise)
    means = np.array([1.0, 1.01, 0.9, 0.0, 0.0, 0.0, -1.0, -2.0, -9.0])
    outcome = sl.simulate(problem, means, "level-race", replications=300, seed=8)
    assert_rate_is_below_delta(outcome)
