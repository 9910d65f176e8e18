"""The convolution certificate for Gaussian rewards, against closed forms and exact failure probabilities."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.convolution import failure_probability, gaussian_failure_probability
from shortlist.strategies import strategy_named
from shortlist.strategies.bechhofer import constant
from shortlist.strategies.gaussian_single_stage import allocation


def bound(information: list[float], m: int, steps: int = 2048) -> float:
    return gaussian_failure_probability(np.array(information), np.ones(len(information)), m, steps)


def level(n: int, m: int, delta: float = 0.05) -> float:
    return allocation(sl.Problem(m=m, epsilon=0.1, delta=delta, variances=[1.0] * n)).level


def exact(best: FloatArray, others: FloatArray) -> float:
    """How probably a best arm is overtaken by another, which lies just more than epsilon below.

    Given are the standard deviations of the sample means in units of epsilon; 0 if there is no noise.
    """
    u = np.linspace(-9.0, 9.0, 18_001)  # by how much the largest mean of the others exceeds theirs

    def at_most(deviations: FloatArray, error: FloatArray) -> FloatArray:
        found: FloatArray = np.prod(
            [norm.cdf(error / s) if s else (error >= 0).astype(float) for s in deviations], axis=0
        )
        return found

    below = at_most(others, u)
    right = at_most(best, 1 - (u[1:] + u[:-1]) / 2)  # no best arm is shown too low by more than 1 - u
    return float(1 - (np.diff(below) * right).sum() - below[0] * at_most(best, 1 - u[:1])[0])


def test_two_arms_have_a_closed_form() -> None:
    """Both errors positive, a wedge of the plane; or one of them, which alone exceeds epsilon."""
    for x in (0.3, 1.0, 3.0, 10.0):
        both = norm.sf(math.sqrt(x)) - 2 * wedge(x)
        one = norm.sf(math.sqrt(2 * x))
        assert both + one <= bound([x, x], 1) <= (both + one) * (1 + 0.02)


def wedge(x: float) -> float:
    """The probability that one error exceeds epsilon by more than the other one is negative."""
    v = np.linspace(-12.0, 0.0, 200_001)
    values = norm.pdf(v) * norm.sf(math.sqrt(2 * x) - v)
    return float((values[1:] + values[:-1]).sum() / 2 * (v[1] - v[0]))


@pytest.mark.parametrize(
    ("n", "usual", "gaussian"), [(2, 8.60, 2.91), (10, 12.68, 5.89), (100, 16.84, 9.29), (1000, 20.60, 12.48)]
)
def test_exact_tails_take_far_less(n: int, usual: float, gaussian: float) -> None:
    assert level(n, 1) == pytest.approx(gaussian, abs=0.005)
    assert failure_probability(np.array([usual]), np.array([float(n)]), 1) == pytest.approx(0.05, rel=0.01)


@given(information=st.lists(st.floats(0.1, 60.0), min_size=2, max_size=12), data=st.data())
def test_more_steps_or_more_information_never_make_it_worse(
    information: list[float], data: st.DataObject
) -> None:
    m = data.draw(st.integers(1, len(information) - 1))
    arm = data.draw(st.integers(0, len(information) - 1))
    found, rounding = bound(information, m), 1 + 1e-11
    assert 0 < found <= 1
    assert found <= bound(information, m, 1024) * rounding <= bound(information, m, 256) * rounding**2
    information[arm] *= data.draw(st.floats(1.0, 1000.0))
    assert bound(information, m) <= found * rounding


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("delta", [0.05, 0.2, 0.4, 0.6, 0.75, 0.9])
def test_no_smaller_variances_and_no_set_of_best_arms_break_the_promise(delta: float, m: int) -> None:
    """Exactly, for every set of best arms, where any noise may be as stated, half of it, or none at all."""
    variances = [1.0, 3.0, 3.0, 0.2]
    problem = sl.Problem(m=m, epsilon=0.1, delta=delta, variances=variances)
    stated = np.sqrt(1 / (2 * allocation(problem).information(problem.variances)))
    seen = set()  # arms 1 and 2 are alike
    for shares in product([0.0, 0.5, 1.0], repeat=4):
        deviations = stated * np.array(shares)
        for best in combinations(range(4), m):
            others = [arm for arm in range(4) if arm not in best]
            case = (*np.sort(deviations[list(best)]).tolist(), *np.sort(deviations[others]).tolist())
            if case not in seen:
                seen.add(case)
                assert exact(deviations[list(best)], deviations[others]) <= delta * (1 + 1e-3)


def test_without_positive_parts_a_quiet_best_arm_would_break_it() -> None:
    """Ten arms fail with probability 0.6 if all have the same noise, and more often if the best has none."""
    deviation = 1 / constant(10, 1, 0.6)
    assert exact(np.full(1, deviation), np.full(9, deviation)) == pytest.approx(0.6, abs=0.002)
    assert exact(np.zeros(1), np.full(9, deviation)) > 0.67
    assert bound([1 / (2 * deviation**2)] * 10, 1) > 0.67


@pytest.mark.parametrize(("n", "delta"), [(2, 0.75), (2, 0.9), (3, 0.9)])
def test_a_random_guess_may_be_right_often_enough(n: int, delta: float) -> None:
    assert level(n, 1, delta) == 0
    problem = sl.Problem(m=1, epsilon=1e-3, delta=delta, variances=[1.0] * n)
    assert strategy_named("gaussian-single-stage").worst_case_pulls(problem) == n
    assert level(n, 1, 0.7) > 0


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("delta", [1e-50, 1e-6, 0.5, 0.9])
def test_any_delta_can_be_asked_for(delta: float, m: int) -> None:
    problem = sl.Problem(m=m, epsilon=1.0, delta=delta, variances=[1e-40, 1.0, 2.0, 3.0, 1e3])
    found = bound(allocation(problem).information(problem.variances).tolist(), m)
    assert 0.9 * delta <= found <= delta


def test_an_arm_alone_on_its_side_of_the_cut_is_not_counted_twice() -> None:
    """With two arms, one of them hardly noisy, the other alone must not err by epsilon."""
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.05, variances=[1e4, 1e-4])
    assert allocation(problem).level == pytest.approx(norm.isf(0.05) ** 2 / 2, rel=0.01)
    information = [1.0, 2.0, 2.0, 5.0, 9.0]
    assert bound(information, 4) == pytest.approx(bound(information, 1), rel=0.01)


def test_the_other_single_stage_asks_for_what_it_always_has() -> None:
    """Runs begun with it on Gaussian rewards must go on as they began."""
    usual = sl.Problem(m=2, epsilon=0.3, delta=0.1, variances=[0.5, 1.0, 1.0, 7.0, 30.0])
    asked = usual.changed(rewards=sl.Gaussian)
    counts = [sl.Session(problem, "single-stage").ask().counts.tolist() for problem in (usual, asked)]
    assert counts[0] == counts[1] == [210, 380, 380, 1889, 5635]
    promise = strategy_named("gaussian-single-stage").guarantee(asked)
    assert promise is not None
    assert "Gaussian with at most the stated variances" in promise.assumption
    assert strategy_named("gaussian-single-stage").guarantee(usual) is None


def test_classes_count_as_so_many_arms() -> None:
    for m in (1, 4, 40):
        listed = bound([2.0] * 30 + [5.0] * 10 + [9.0], m)
        together = gaussian_failure_probability(np.array([9.0, 2.0, 5.0]), np.array([1.0, 30.0, 10.0]), m)
        assert together == pytest.approx(listed, rel=1e-12)


def test_many_different_variances_stay_within_delta() -> None:
    variances = np.exp(np.random.default_rng(2).uniform(-5.0, 5.0, 1000))
    for m in (1, 20):
        problem = sl.Problem(m=m, epsilon=1.0, delta=0.05, variances=variances)
        found = bound(allocation(problem).information(variances).tolist(), m)
        assert 0.03 <= found <= 0.05
