"""The swap certificate, against double sums and, for two arms, exact probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.swap import charges, spent
from shortlist.strategies.level_course import course
from tests.questions import known


def double_sum(ahead: list[float], behind: list[float], lead: float) -> list[float]:
    return [math.fsum(math.exp(i - j) for i in behind if i <= j - lead) for j in ahead]


values = st.one_of(st.floats(-300.0, 300.0), st.integers(-5, 5).map(float))
leads = st.sampled_from([-math.inf, 0.0, 1.0, 3.5, 100.0])


@given(ahead=st.lists(values, min_size=1), behind=st.lists(values), lead=leads)
def test_charges_are_the_double_sum(ahead: list[float], behind: list[float], lead: float) -> None:
    found = charges(np.array(ahead), np.array(behind), lead)
    np.testing.assert_allclose(found, double_sum(ahead, behind, lead), rtol=1e-11)


def test_the_order_of_arms_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    ahead, behind = rng.standard_normal(9), rng.standard_normal(30) - 3
    found = charges(ahead, behind, 1.0)
    np.testing.assert_allclose(charges(ahead[::-1], rng.permutation(behind), 1.0), found[::-1], rtol=1e-13)


def test_a_lead_of_exactly_so_much_is_charged_and_a_smaller_one_is_not() -> None:
    ahead, behind = np.array([3.0, 3.0, 2.9]), np.array([1.0, 1.0])
    np.testing.assert_allclose(charges(ahead, behind, 2.0), [2 * math.exp(-2), 2 * math.exp(-2), 0.0])


def test_nobody_behind_costs_nothing() -> None:
    np.testing.assert_array_equal(charges(np.array([1.0, -3.0]), np.array([])), [0.0, 0.0])
    np.testing.assert_array_equal(charges(np.array([1.0, -3.0]), np.array([]), 2.0), [0.0, 0.0])
    np.testing.assert_array_equal(charges(np.array([1.0, -3.0]), np.array([5.0]), 2.0), [0.0, 0.0])


@pytest.mark.parametrize("shift", [-1e6, -700.0, 0.0, 700.0, 1e6])
def test_only_differences_of_scores_matter(shift: float) -> None:
    ahead, behind = np.array([4.0, 1.0]), np.array([-3.0, 0.5, -600.0])
    exact = double_sum(ahead.tolist(), behind.tolist(), -math.inf)
    np.testing.assert_allclose(charges(ahead + shift, behind + shift), exact, rtol=1e-9)


def test_leads_beyond_the_range_of_exponentials_cost_nothing_or_more_than_anyone_has() -> None:
    assert charges(np.array([2000.0]), np.array([0.0]))[0] == 0.0
    with np.errstate(over="ignore"):
        assert charges(np.array([0.0]), np.array([2000.0]))[0] == math.inf


@given(
    accounts=st.lists(st.one_of(st.just(0.0), st.floats(0.0, 1.0)), min_size=1, max_size=30), data=st.data()
)
def test_spent_is_what_the_m_fullest_accounts_hold(accounts: list[float], data: st.DataObject) -> None:
    m = data.draw(st.integers(1, len(accounts)))
    given = np.array(accounts)
    assert spent(given, m) == pytest.approx(math.fsum(sorted(accounts)[-m:]), rel=1e-12)
    assert given.tolist() == accounts


def lead_density(problem: sl.Problem, gap: float) -> tuple[float, float, float]:
    """A race of two arms, one better by `gap`, by the density of its lead from level to level.

    Returns the probabilities of settling them falsely by the swap and by evidence, and the expected charge
    for settling them rightly by the swap.
    """
    plan = course(problem)
    step = 0.02
    grid = step * np.arange(-4000, 4001)
    cost = charges(np.abs(grid), np.array([0.0]))
    density: FloatArray = np.zeros(0)
    false_swap, false_evidence, charged = 0.0, 0.0, 0.0
    for k, weight in enumerate(plan.weights.tolist()):
        pulls = int(plan.usual_batch(k, problem.arms)[0])
        scale = math.sqrt(8 * weight**2 * problem.variances[0] / (problem.epsilon**2 * pulls))
        if k == 0:
            density = norm.pdf(grid, 2 * weight * gap, scale)
        else:
            reach = math.ceil((2 * weight * gap + 9 * scale) / step)
            kernel = norm.pdf(step * np.arange(-reach, reach + 1), 2 * weight * gap, scale)
            density = np.convolve(density, kernel * step, mode="full")[reach:-reach]
        is_evident = np.abs(grid) >= plan.leads[k, 0, 0]
        is_swapped = ~is_evident & (cost <= plan.delta_swaps)
        false_swap += float(density[is_swapped & (grid < 0)].sum()) * step
        false_evidence += float(density[is_evident & (grid < 0)].sum()) * step
        charged += float((density * cost)[is_swapped & (grid > 0)].sum()) * step
        density = np.where(is_evident | is_swapped, 0.0, density)
    assert float(density.sum()) * step < 1e-9
    return false_swap, false_evidence, charged


@pytest.mark.parametrize("delta", [0.01, 0.3])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.7, 1.0, 1.4, 2.0])
def test_two_arms_are_settled_falsely_no_more_often_than_the_charges_allow(
    epsilon: float, delta: float
) -> None:
    """Exact. Large epsilon means few pulls a level, so that rounding them up counts."""
    problem = known(m=1, epsilon=epsilon, delta=delta, variances=[1.0] * 2, noise="gaussian")
    for gap in (1.0, 1.2):
        false_swap, false_evidence, charged = lead_density(problem, gap)
        assert false_swap <= charged * (1 + 1e-6)
        assert charged <= 0.7 * delta * (1 + 1e-6)
        assert false_evidence <= 0.3 * delta * (1 + 1e-6)


def test_the_certificate_is_tight_where_nothing_is_rounded() -> None:
    problem = known(m=1, epsilon=0.01, delta=0.1, variances=[1.0] * 2, noise="gaussian")
    false_swap, _, charged = lead_density(problem, 1.0)
    assert 0.99 * charged <= false_swap <= charged * (1 + 1e-4)
    assert charged >= 0.3 * 0.7 * 0.1  # and no small part of delta
    smaller, _, charged_less = lead_density(problem, 0.9)
    assert smaller > charged_less  # below epsilon it promises nothing


def test_charges_neither_vanish_nor_overflow() -> None:
    assert charges(np.array([1.0]), np.array([0.0, 1000.0]), 0.0) == pytest.approx(math.exp(-1))
    assert charges(np.array([0.0]), np.array([800.0])).tolist() == [math.inf]
