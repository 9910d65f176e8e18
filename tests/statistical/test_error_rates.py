"""Error rates on hard instances, against delta, by an exact binomial test.

Each assertion fails by chance with probability at most 1e-6 if the error rate is delta itself. The
algorithms are far more careful than that, so no error at all is expected; but a rule broken by a
factor of two would pass here too. The tests in `proof` are the ones that see such faults.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist as sl
from shortlist.strategies import strategy_named
from tests.questions import known

pytestmark = pytest.mark.slow

DELTA, RUNS, ALARM = 0.05, 1000, 1e-6
ELIMINATION = [name for name in sl.strategies.names() if strategy_named(name).take_lanes is None]


def assert_rate_is_below_delta(outcome: sl.simulation.Simulation) -> None:
    assert outcome.unfinished == 0
    test = binomtest(outcome.errors, len(outcome.pulls), outcome.problem.delta, alternative="greater")
    assert test.pvalue > ALARM, f"{outcome.errors} errors of {len(outcome.pulls)}"


def hard_problem(n: int = 40, m: int = 4) -> sl.Problem:
    variances = np.exp(np.random.default_rng(3).uniform(0.0, np.log(30.0), n))
    return sl.Problem(m=m, epsilon=0.5, delta=DELTA, variances=variances)


@pytest.mark.parametrize("rewards", ["gaussian", "two-point"])
@pytest.mark.parametrize("name", ELIMINATION)
def test_elimination_on_the_hard_instances(name: str, rewards: str) -> None:
    problem = hard_problem()
    by_variance = np.argsort(problem.variances).tolist()
    for chosen in (by_variance[:4], by_variance[-4:], by_variance[10:14]):
        l = next(arm for arm in reversed(by_variance) if arm not in chosen)  # noqa: E741
        for instance in (
            sl.instances.hard(problem, l, M=chosen),
            sl.instances.hard(problem, l, F=chosen[:3]),
        ):
            outcome = sl.simulate(problem, instance.means, name, replications=RUNS, seed=11, rewards=rewards)
            assert_rate_is_below_delta(outcome)


@pytest.mark.parametrize("name", ["lucb", "ugape"])
def test_confidence_strategies_on_the_hard_instances(name: str) -> None:
    problem = sl.Problem(m=2, epsilon=2.0, delta=DELTA, variances=[1.0, 2.0, 4.0, 1.0, 0.5])
    for instance in (
        sl.instances.hard(problem, 2, M=[0, 3]),
        sl.instances.hard(problem, 2, F=[4]),
    ):
        outcome = sl.simulate(problem, instance.means, name, replications=RUNS, seed=5)
        assert_rate_is_below_delta(outcome)


@pytest.mark.parametrize("rewards", ["gaussian", "two-point"])
@pytest.mark.parametrize("name", ["racing", "lucb-mixture", "top-two"])
def test_mixtures_just_beyond_epsilon(name: str, rewards: str) -> None:
    m = 1 if name == "top-two" else 2
    problem = sl.Problem(m=m, epsilon=2.0, delta=DELTA, variances=[1.0, 2.0, 4.0, 1.0, 0.5, 3.0])
    means = sl.instances.slippage(problem, 1 + 1e-6).means
    outcome = sl.simulate(problem, means, name, replications=RUNS, seed=5, rewards=rewards)
    assert_rate_is_below_delta(outcome)


@pytest.mark.parametrize("name", ["kn", "biz"])
def test_ranking_and_selection_just_beyond_epsilon(name: str) -> None:
    variances = np.ones(10) if name == "biz" else np.geomspace(0.2, 5.0, 10)
    for best, spread in ((0, 0.0), (9, 1.0)):
        problem = known(m=1, epsilon=2.0, delta=DELTA, variances=variances, noise="gaussian")
        means = -spread * np.linspace(0.0, 1.0, 10)
        means[best] = means.max() + 2 + 1e-6
        outcome = sl.simulate(problem, means, name, replications=RUNS, seed=5)
        assert_rate_is_below_delta(outcome)


@pytest.mark.parametrize("quiet", [[], [0], [5], [0, 5], [1, 2, 3, 4]])
@pytest.mark.parametrize(("m", "delta"), [(1, 0.2), (1, 0.6), (2, 0.4), (3, 0.05), (5, 0.9)])
def test_a_single_stage_for_gaussian_rewards_just_beyond_epsilon(
    m: int, delta: float, quiet: list[int]
) -> None:
    """Some arms are far less noisy than stated, on either side of the cut."""
    variances = np.array([1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    problem = known(m=m, epsilon=0.2, delta=delta, variances=variances, noise="gaussian")
    pulls = sl.Session(problem, "gaussian-single-stage").ask().counts
    deviations = np.sqrt(variances / pulls)
    deviations[quiet] *= 0.01
    means, rng = np.zeros(6), np.random.default_rng(m)
    means[6 - m :] = 0.2 * (1 + 1e-9)  # the noisiest arms are best
    shown = means + deviations * rng.standard_normal((20_000, 6))
    errors = int((shown[:, 6 - m :].min(axis=1) <= shown[:, : 6 - m].max(axis=1)).sum())
    assert binomtest(errors, 20_000, delta, alternative="greater").pvalue > ALARM
    if not quiet:
        assert errors > 0.7 * delta * 20_000, "the bound is nearly attained"


@pytest.mark.parametrize("rewards", ["bernoulli", "uniform"])
def test_other_rewards(rewards: str) -> None:
    problem = sl.Problem(m=2, epsilon=0.3, delta=DELTA, variances=[0.25] * 8)
    means = np.array([0.81, 0.5, 0.5, 0.81, 0.5, 0.3, 0.2, 0.5])
    for name in ("wnelim", "adapted-medelim"):
        outcome = sl.simulate(problem, means, name, replications=200, seed=5, rewards=rewards)
        assert_rate_is_below_delta(outcome)


def test_the_check_fails_for_twice_the_errors_allowed() -> None:
    problem = hard_problem()
    outcome = sl.simulate(problem, sl.instances.slippage(problem).means, "wnelim", replications=RUNS)
    assert_rate_is_below_delta(replace(outcome, is_error=np.arange(RUNS) < RUNS * DELTA))
    with pytest.raises(AssertionError, match="100 errors of 1000"):
        assert_rate_is_below_delta(replace(outcome, is_error=np.arange(RUNS) < 2 * RUNS * DELTA))
