"""What the paper states about its algorithms, as numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist as sl
from shortlist.strategies import medelim, strategy_named
from shortlist.strategies.wnelim import closed_form_pulls

VARIANCES = st.lists(st.floats(1e-4, 1e4), min_size=2, max_size=60)


@given(variances=VARIANCES, delta=st.floats(1e-9, 0.99), epsilon=st.floats(1e-3, 10))
def test_wnelim_takes_the_pulls_of_lemma_5_1_rounded_up(
    variances: list[float], delta: float, epsilon: float
) -> None:
    problem = sl.Problem(m=1, epsilon=epsilon, delta=delta, variances=variances)
    exact = 8 * sum(variances) / epsilon**2 * (math.log(1 / delta) + sl.entropy(variances))
    assert closed_form_pulls(problem) == pytest.approx(exact, rel=1e-9)
    asked = strategy_named("wnelim").worst_case_pulls(problem)
    assert asked is not None
    assert exact * (1 - 1e-9) <= asked <= exact * (1 + 1e-9) + len(variances)


@given(n=st.integers(1, 10**7), m=st.integers(1, 100))
def test_medelim_at_least_halves_the_arms_until_2m_remain(n: int, m: int) -> None:
    levels = medelim.schedule(n, m, 1.0, 0.1)
    assert all(level.keep == max(level.n_arms // 2, 2 * m) for level in levels)
    assert (levels[-1].keep == 2 * m) if n > 2 * m else not levels
    assert sum(level.epsilon for level in levels) <= 1.0
    assert sum(4 * level.delta for level in levels) <= 0.1


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_illustrative_example(k: int) -> None:
    """Section 5.2: the sums of the two sets, and the entropies up to the terms that the paper drops."""
    problem = sl.instances.illustrative(k).problem
    shape = sl.heterogeneity(problem)
    levels = math.ceil(math.log2(k))
    n = 2 ** (k * k)
    assert problem.n == n
    assert problem.m == 2**k
    assert problem.variances[shape.less].sum() == levels
    assert problem.variances[shape.more].sum() == pytest.approx((n - 2**levels + 1) / n * levels / k)
    assert sl.entropy(problem.variances[shape.less]) == pytest.approx(
        math.log(levels) + math.log(2) * (levels - 1) / 2
    )
    tail = 2.0 ** (1 + k - k * k) / k  # what the large group adds to the reduced set, per unit
    assert shape.entropy_reduced == pytest.approx(sl.entropy(problem.variances[shape.less]), abs=4 * k * tail)
    assert sl.complexity(problem).homogeneous == pytest.approx(
        problem.variances[shape.more].sum() / 0.1**2 * k * math.log(2)
    )


def test_equal_variances_make_the_complexity_that_of_the_homogeneous_case() -> None:
    problem = sl.Problem(m=4, epsilon=0.5, delta=0.05, variances=[2.0] * 50)
    terms = sl.complexity(problem)
    assert terms.heterogeneous == 0.0
    assert terms.total == pytest.approx(50 * 2.0 / 0.25 * math.log(4 / 0.05))


def test_variances_that_all_differ_make_it_independent_of_m() -> None:
    variances = 2.0 ** np.arange(30)
    totals = [
        sl.complexity(sl.Problem(m=m, epsilon=1.0, delta=0.05, variances=variances)).total for m in (2, 5, 9)
    ]
    assert totals == pytest.approx([totals[0]] * 3)
    assert sl.complexity(sl.Problem(m=5, epsilon=1.0, delta=0.05, variances=variances)).homogeneous == 0.0
