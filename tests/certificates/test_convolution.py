"""The convolution certificate, against closed forms, enumeration and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import shortlist as sl
from shortlist.certificates.convolution import failure_probability
from shortlist.strategies import strategy_named
from shortlist.strategies.single_stage import allocation


def probability(information: list[float], m: int, steps: int = 2048) -> float:
    return failure_probability(np.array(information), np.ones(len(information)), m, steps=steps)


@pytest.mark.parametrize("x", [0.5, 3.0, 20.0, 300.0])
def test_two_arms_have_a_closed_form(x: float) -> None:
    def density(u: float) -> float:
        return 2 * u * x * math.exp(-x * (u**2 + (1 - u) ** 2))

    exact = quad(density, 0.0, 1.0, epsrel=1e-10, points=[0.5])[0] + math.exp(-x)
    assert exact <= probability([x, x], 1) <= exact * (1 + 2 * x / 2048)


@given(
    information=st.lists(st.floats(0.1, 60.0), min_size=2, max_size=12),
    data=st.data(),
)
def test_more_steps_or_more_information_never_make_it_worse(
    information: list[float], data: st.DataObject
) -> None:
    m = data.draw(st.integers(1, len(information) - 1))
    found = probability(information, m)
    assert 0 < found <= 1
    assert (
        found
        <= probability(information, m, 1024) * (1 + 1e-12)
        <= probability(information, m, 256) * (1 + 1e-12)
    )
    more = [x * 1.1 for x in information]
    assert probability(more, m) <= found


def test_classes_count_as_so_many_arms() -> None:
    listed = probability([2.0] * 30 + [5.0] * 10 + [9.0], 4)
    together = failure_probability(np.array([9.0, 2.0, 5.0]), np.array([1.0, 30.0, 10.0]), 4)
    assert together == pytest.approx(listed, rel=1e-12)


def test_no_information_proves_nothing() -> None:
    assert probability([0.0, 0.0, 0.0], 1) == pytest.approx(1.0)


def test_a_thousand_arms_take_half_of_what_naive_elimination_takes() -> None:
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * 1000)
    assert allocation(problem).level == pytest.approx(20.6, abs=0.05)
    assert 4 * math.log(1000 / 0.05) == pytest.approx(39.6, abs=0.05)


def test_it_bounds_what_happens_with_gaussian_rewards() -> None:
    """Sub-Gaussian tails are cruder than Gaussian ones, so far fewer runs fail; but some do."""
    problem = sl.Problem(m=2, epsilon=1.0, delta=0.3, variances=[1.0, 4.0, 1.0, 4.0, 9.0, 1.0])
    means = np.array([1.001, 1.001, 0.0, 0.0, 0.0, 0.0])
    outcome = sl.simulate(problem, means, "single-stage", replications=20_000, seed=1)
    assert 0 < outcome.errors <= 0.3 * 20_000


@pytest.mark.parametrize("delta", [1e-50, 1e-6, 0.5, 0.999])
def test_any_delta_can_be_asked_for(delta: float) -> None:
    problem = sl.Problem(m=3, epsilon=1.0, delta=delta, variances=[1e-40, 1.0, 2.0, 3.0, 1e3])
    spread = allocation(problem)
    found = failure_probability(spread.information(problem.variances), np.ones(5), 3)
    assert 0.9 * delta <= found <= delta


def test_many_different_variances_stay_within_delta() -> None:
    variances = np.exp(np.random.default_rng(2).uniform(-5.0, 5.0, 3000))
    problem = sl.Problem(m=20, epsilon=1.0, delta=0.05, variances=variances)
    exact = failure_probability(allocation(problem).information(variances), np.ones(3000), 20)
    assert 0.03 <= exact <= 0.05


def test_the_allocation_depends_on_ratios_only() -> None:
    variances = np.array([0.5, 1.0, 1.0, 7.0, 30.0])
    one = allocation(sl.Problem(m=2, epsilon=0.3, delta=0.1, variances=variances))
    other = allocation(sl.Problem(m=2, epsilon=5.0, delta=0.1, variances=4.0 * variances[::-1]))
    assert (one.level, one.slope) == (other.level, other.slope)


def test_equal_pulls_are_a_single_stage_if_variances_are_equal_and_cost_more_otherwise() -> None:
    equal = sl.plan(sl.Problem(m=3, epsilon=0.1, delta=0.05, variances=[2.0] * 20))
    assert equal["uniform"].worst_case_pulls == equal["single-stage"].worst_case_pulls
    unequal = sl.plan(sl.Problem(m=3, epsilon=0.1, delta=0.05, variances=2.0 ** np.arange(20)))
    assert (unequal["uniform"].worst_case_pulls or 0) > 5 * (unequal["single-stage"].worst_case_pulls or 0)
    assert (
        len(set(strategy_named("uniform").ask(strategy_named("uniform").init(unequal.problem, ())).counts))
        == 1
    )
