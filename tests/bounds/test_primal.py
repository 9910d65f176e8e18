"""The paper's own program for a handful of arms, and its dual: two ways to one number."""

import numpy as np
import pytest

import shortlist as sl
from shortlist.bounds.exact import exact_dual
from shortlist.bounds.primal import MOST_VARIABLES, primal_bound
from tests.bounds.brute import conic_primal, random_variances

DELTAS = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3]
SIZES = [(n, m) for n in range(2, 7) for m in range(1, n // 2 + 1) if (n, m) != (6, 3)]


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_it_equals_the_exact_dual(n: int, m: int) -> None:
    rng = np.random.default_rng(10 * n + m)
    for delta in (0.01, 0.2):
        problem = sl.Problem(m=m, epsilon=0.7, delta=delta, variances=random_variances(rng, n))
        dual = exact_dual(problem)
        assert primal_bound(problem) == pytest.approx(dual.value, rel=1e-6)
        assert primal_bound(problem) >= dual.value * (1 - 1e-9)  # it is feasible: weak duality


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (4, 3), (5, 3)])
def test_a_conic_solver_finds_the_same_for_any_m(n: int, m: int) -> None:
    rng = np.random.default_rng(10 * n + m)
    variances = random_variances(rng, n).tolist()
    problem = sl.Problem(m=m, epsilon=0.5, delta=0.05, variances=variances)
    assert primal_bound(problem) == pytest.approx(conic_primal(variances, m, 0.05) / 0.25, rel=3e-6)


def test_it_refuses_a_program_that_is_too_large() -> None:
    with pytest.raises(sl.InvalidProblem, match=f"at most {MOST_VARIABLES}"):
        primal_bound(sl.Problem(m=3, epsilon=0.5, delta=0.05, variances=[1.0] * 9))


def test_nothing_is_needed_to_select_all_or_to_be_right_half_the_time() -> None:
    assert primal_bound(sl.Problem(m=3, epsilon=0.5, delta=0.05, variances=[1.0, 2.0, 3.0])) == 0.0
    assert primal_bound(sl.Problem(m=1, epsilon=0.5, delta=0.5, variances=[1.0, 2.0, 3.0])) == 0.0


def test_half_of_epsilon_costs_four_times_as_much() -> None:
    one, other = (
        primal_bound(sl.Problem(m=1, epsilon=epsilon, delta=0.05, variances=[1.0, 2.0, 3.0]))
        for epsilon in (0.2, 0.1)
    )
    assert other == 4 * one
