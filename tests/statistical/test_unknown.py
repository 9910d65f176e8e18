"""Strategies for unknown variances on hard instances: totals measured elsewhere, and error rates.

Where nothing else is said, the chance of a false alarm is 1e-6 a test, if a strategy errs with probability
delta. Faulty constants are caught elsewhere; here gross errors are.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist as sl
from tests.questions import known, unknown

pytestmark = pytest.mark.slow

RUNS = 400


def wrong(name: str, question: sl.Problem, means: object, variances: object) -> int:
    outcome = sl.simulate(question, means, name, variances=variances, replications=RUNS, seed=11)  # type: ignore[arg-type]
    assert outcome.unfinished == 0
    return outcome.errors


@pytest.mark.parametrize(
    ("name", "n_pilot", "published"), [("rinott", 20, 585_648), ("kim-nelson", 50, 173_228)]
)
def test_totals_are_those_measured_elsewhere(name: str, n_pilot: int, published: int) -> None:
    """100 arms with variances from 0.1 to 10; every second one is given to the best arm once."""
    pulls, errors = [], 0
    for rank in range(0, 100, 2):
        variances = np.roll(np.geomspace(0.1, 10.0, 100), -rank)
        question = unknown(1, 0.1, 0.05, 100, pilot=n_pilot, guarantee="indifference")
        means = np.where(question.arms == 0, 0.1 * (1 + 1e-9), 0.0)
        outcome = sl.simulate(question, means, name, variances=variances, replications=1, seed=rank)
        pulls.append(outcome.pulls)
        errors += int((outcome.selected[:, 0] != 0).sum())
    assert np.mean(pulls) == pytest.approx(published, rel=0.03)
    assert binomtest(errors, len(pulls), 0.05, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("name", ["t-race", "dudewicz-dalal", "rinott", "kim-nelson", "wnelim"])
@pytest.mark.parametrize("m", [1, 3])
def test_error_rates_stay_below_delta_on_slippage(name: str, m: int) -> None:
    if name in {"rinott", "kim-nelson"} and m > 1:
        m = 1
    question = unknown(m, 1.0, 0.1, 10, pilot=8)
    means = np.where(question.arms < m, 1.0 + 1e-6, 0.0)
    errors = wrong(name, question, means, np.geomspace(0.3, 8.0, 10))
    assert binomtest(errors, RUNS, 0.1, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(("n", "m"), [(2, 1), (6, 2)])
def test_dudewicz_dalal_spends_all_of_delta_in_the_least_favourable_case(n: int, m: int) -> None:
    question = unknown(m, 1.0, 0.2, n, pilot=4)
    means = np.where(question.arms < m, 1.0 + 1e-6, 0.0)
    errors = wrong("dudewicz-dalal", question, means, np.geomspace(0.5, 20.0, n))
    assert binomtest(errors, RUNS, 0.2).pvalue > 1e-6


def test_a_pair_of_kim_nelson_errs_nearly_as_often_as_allowed() -> None:
    """One arm hardly noisy: there the sum of sample variances has the fewest degrees of freedom."""
    question = unknown(1, 0.5, 0.1, 2, pilot=6, guarantee="indifference")
    errors = wrong("kim-nelson", question, [0.5 * (1 + 1e-9), 0.0], [4.0, 1e-3])
    assert binomtest(errors, RUNS, 0.1, alternative="greater").pvalue > 1e-6
    assert binomtest(errors, RUNS, 0.06, alternative="less").pvalue > 1e-6


def test_ignoring_that_variances_are_estimated_would_be_seen() -> None:
    """Sample variances of a small pilot, taken for the truth, err far more often than delta."""
    rng = np.random.default_rng(5)
    means, errors = np.array([1.0 + 1e-6, 0.0]), 0
    for _ in range(300):
        shown = 4.0 * rng.chisquare(2, 2) / 2
        problem = known(1, 1.0, 0.02, shown, noise="gaussian", guarantee="indifference")
        pulls = sl.Session(problem, "bechhofer").ask().counts
        drawn = means + rng.standard_normal(2) * 2.0 / np.sqrt(pulls)
        errors += int(np.argmax(drawn) != 0)
    assert binomtest(errors, 300, 0.02, alternative="greater").pvalue < 1e-6
