"""Error rates of the race where errors are likely, against delta, by an exact binomial test.

Each assertion fails by chance with probability at most 1e-6 if the error rate is delta itself.
"""

import numpy as np
import pytest

import shortlist as sl
from tests.statistical.test_error_rates import assert_rate_is_below_delta
from tests.statistical.test_level_race import JUST, slippage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rewards", ["gaussian", "two-point"])
@pytest.mark.parametrize(
    ("n", "m", "spread", "runs"), [(2, 1, 1.0, 60), (6, 5, 1.0, 25), (12, 2, 20.0, 20), (60, 4, 4.0, 10)]
)
def test_slippage_just_above_epsilon(n: int, m: int, spread: float, runs: int, rewards: str) -> None:
    problem = sl.Problem(m=m, epsilon=0.8, delta=0.3, variances=np.geomspace(1.0, spread, n))
    outcome = sl.simulate(problem, slippage(problem), "race", replications=runs, seed=3, rewards=rewards)
    assert_rate_is_below_delta(outcome)


@pytest.mark.parametrize(("n", "m", "delta"), [(10, 2, 0.3), (40, 1, 0.05)])
def test_coins(n: int, m: int, delta: float) -> None:
    problem = sl.Problem(m=m, epsilon=0.3, delta=delta, variances=[0.25] * n)
    means = 0.35 + np.array(slippage(problem, JUST))
    outcome = sl.simulate(problem, means, "race", replications=30, seed=4, rewards="bernoulli")
    assert_rate_is_below_delta(outcome)


def test_it_stops_so_early_that_errors_do_happen() -> None:
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.9, variances=[1.0, 1.0])
    outcome = sl.simulate(problem, slippage(problem), "race", replications=100, seed=5)
    assert_rate_is_below_delta(outcome)
    assert outcome.errors > 0
