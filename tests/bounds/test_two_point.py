"""The two-point lemma: an event likely in one world cannot be too unlikely in the other."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.arrays import FloatArray
from shortlist.bounds.two_point import constant, least_probability, margin
from tests.bounds.brute import kl

DELTAS = [1e-50, 1e-9, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.36, 0.4, 0.45, 0.49]


@pytest.mark.parametrize("delta", DELTAS)
def test_no_two_coins_break_it(delta: float) -> None:
    likely = 1 - delta + delta * np.linspace(0, 1, 21)
    unlikely = (1 - delta) * np.concatenate([np.logspace(-15, -2, 40), np.linspace(0.01, 0.999999, 60)])
    for p, q in product(likely.tolist(), unlikely.tolist()):
        assert q >= least_probability(kl(p, q), delta) * (1 - 1e-12)


shares = st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=2).map(lambda x: np.array(x) / sum(x))


@given(shares, shares, shares, shares, st.floats(0.001, 0.499), st.floats(0, 1), st.floats(1e-6, 0.999))
def test_no_two_distributions_on_four_outcomes_break_it(
    a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, delta: float, more: float, less: float
) -> None:
    p, q = 1 - delta * (1 - 0.999 * more), (1 - delta) * less  # probabilities of the first two outcomes
    world, other = np.concatenate([p * a, (1 - p) * b]), np.concatenate([q * c, (1 - q) * d])
    divergence = float((world * np.log(world / other)).sum())
    assert q >= least_probability(divergence, delta) * (1 - 1e-12)


@pytest.mark.parametrize("delta", DELTAS)
def test_it_is_tight_for_events_that_are_hardly_possible(delta: float) -> None:
    assert least_probability(kl(1 - delta, 1e-11), delta) == pytest.approx(1e-11, rel=1e-10)


def test_the_constant_is_that_of_the_paper() -> None:
    assert 0.69 < constant(0.1) < 0.70
    assert constant(0.5) == pytest.approx(1 / 4, rel=1e-14)
    assert constant(1e-50) == pytest.approx(1.0, rel=1e-14)


def test_the_constant_falls() -> None:
    values = [constant(delta) for delta in np.linspace(0.001, 0.999, 999).tolist()]
    assert all(above > below for above, below in pairwise(values))


def test_a_larger_divergence_allows_less() -> None:
    assert least_probability(0.0, 0.05) == constant(0.05)
    assert least_probability(0.95 * math.log(7), 0.05) == pytest.approx(constant(0.05) / 7, rel=1e-13)


@pytest.mark.parametrize("delta", DELTAS)
def test_the_margin_is_a_divergence_less_a_little(delta: float) -> None:
    exact = (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta)) + delta * math.log1p(-delta)
    assert (1 - delta) * margin(delta) == pytest.approx(exact, rel=1e-12, abs=1e-13)
    assert margin(delta) == pytest.approx(math.log(constant(delta) / delta), rel=1e-12, abs=1e-13)


def test_the_margin_falls_and_changes_its_sign_at_036() -> None:
    values = [margin(delta) for delta in np.linspace(0.001, 0.499, 499).tolist()]
    assert all(above > below for above, below in pairwise(values))
    assert margin(0.3600) > 0 > margin(0.3602)


@pytest.mark.parametrize("delta", [1e-50, 1e-20, 1e-9])
def test_the_margin_is_about_ln_1_over_delta(delta: float) -> None:
    assert margin(delta) == pytest.approx(-math.log(delta), rel=1e-7)
