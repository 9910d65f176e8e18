"""The paper's dual program solved: against every set of arms, a conic solver, and what algorithms need."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist as sl
from shortlist.bounds import exact
from shortlist.bounds.classes import Classes
from shortlist.bounds.exact import Optimum, compositions, exact_dual, exact_value
from shortlist.bounds.paper_bound import best_product_value, product_value, uniform_value
from tests.bounds.brute import (
    classes,
    conic_dual,
    conic_primal,
    dual_objective,
    margin,
    normed,
    one_class,
    random_variances,
    sets,
)

DELTAS = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3]


def small(seed: int, most_arms: int = 8) -> tuple[list[float], int, float]:
    """Return variances, m and delta."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most_arms + 1))
    return random_variances(rng, n).tolist(), int(rng.integers(1, min(n, 4))), DELTAS[seed % len(DELTAS)]


def solve(variances: list[float], m: int, delta: float) -> Optimum:
    found = exact_value(classes(variances), m, delta)
    assert found is not None
    return found


# --- compositions ---------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 6))
def test_compositions_are_all_ways_to_take_arms_from_classes(counts: list[int], size: int) -> None:
    ways = sorted(way for way in product(*(range(n + 1) for n in counts)) if sum(way) == size)
    if size > sum(counts):
        return
    as_floats = np.array(counts, dtype=float)
    found = compositions(as_floats, size, len(ways))
    assert found is not None
    assert sorted(map(tuple, found.tolist())) == ways
    assert compositions(as_floats, size, len(ways) - 1) is None


def test_compositions_of_more_arms_than_could_be_listed() -> None:
    found = compositions(np.array([2.0**144, 2.0, 2.0**100]), 3, 100)
    assert found is not None
    assert {tuple(row) for row in found.tolist()} == {
        (a, b, 3 - a - b) for a in range(4) for b in range(3) if a + b <= 3
    }


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(start, start + 25) for start in range(0, 100, 25)], ids=str)
def test_value_and_limit_meet(seeds: range) -> None:
    for seed in seeds:
        found = solve(*small(seed))
        assert found.value <= found.limit * (1 + 1e-12), f"seed {seed}"
        assert found.value == pytest.approx(found.limit, rel=1e-8), f"seed {seed}"


@pytest.mark.parametrize("seed", range(30))
def test_no_weights_exceed_the_limit(seed: int) -> None:
    variances, m, delta = small(seed)
    limit, rng = solve(variances, m, delta).limit, np.random.default_rng(seed)
    everyone = sets(range(len(variances)), m - 1)
    for spread in (0.1, 1.0, 5.0):
        eta = normed({chosen: math.exp(spread * rng.standard_normal()) for chosen in everyone})
        assert dual_objective(variances, m, delta, eta) <= limit * (1 + 1e-12)
    assert dual_objective(variances, m, delta, {everyone[0]: 1.0}) <= limit * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_a_conic_solver_finds_the_same_optimum(seed: int) -> None:
    variances, m, delta = small(seed, most_arms=6)
    assert solve(variances, m, delta).value == pytest.approx(conic_dual(variances, m, delta), rel=1e-6)


@pytest.mark.parametrize("delta", [0.36, 0.4, 0.45, 0.49])
@pytest.mark.parametrize("m", [2, 3])
def test_it_is_right_where_confidence_alone_costs_nothing(m: int, delta: float) -> None:
    variances = [1.0, 1.5, 2.0, 2.0, 6.0]
    expected = conic_dual(variances, m, delta)
    assert solve(variances, m, delta).value == pytest.approx(expected, rel=1e-6, abs=1e-6)


def dual_problem(seed: int) -> sl.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    m, delta = int(rng.integers(1, n // 2 + 1)), DELTAS[seed % len(DELTAS)]
    return sl.Problem(m=m, epsilon=0.5, delta=delta, variances=random_variances(rng, n))


@pytest.mark.parametrize("seed", range(20))
def test_a_conic_solver_finds_it_in_the_primal_program_over_all_worlds(seed: int) -> None:
    problem = dual_problem(seed)
    primal = conic_primal(problem.variances.tolist(), problem.m, problem.delta) / 0.25
    found = exact_dual(problem)
    assert found.value == pytest.approx(primal, rel=3e-6)
    assert found.value <= found.limit * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_best_to_leave_out_the_least_noisy_arm(seed: int) -> None:
    problem = dual_problem(seed)
    values = problem.variances.tolist()
    left_out = [
        solve(values[:arm] + values[arm + 1 :], problem.m, problem.delta).value for arm in range(problem.n)
    ]
    expected = max(left_out) * (1 - problem.delta) / 2 / 0.25
    assert exact_dual(problem).value == pytest.approx(expected, rel=1e-8)


def test_the_off_by_one_of_the_paper_shows() -> None:
    """Without its correction the paper's dual exceeds the optimum of its primal, which none can."""
    for variances, m, optimum, printed in (
        ([0.5407, 1.0, 1.2, 1.67], 1, 20.49, 23.35),
        ([1.874, 1.9, 2.0, 2.3, 3.47], 2, 47.85, 60.81),
    ):
        n, unit = len(variances), 0.95 / 2 / 0.25
        whole = unit * solve(variances, m, 0.05).value
        assert whole == pytest.approx(printed, abs=0.005)
        problem = sl.Problem(m=m, epsilon=0.5, delta=0.05, variances=variances)
        assert exact_dual(problem).value == pytest.approx(optimum, abs=0.005)
        assert whole * (n - m) / (n - m + 1) <= optimum < whole


@pytest.mark.parametrize("delta", [0.001, 0.3])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (10, 4), (10, 10), (10**6, 300), (2.0**144, 5)])
def test_equal_arms_have_a_closed_form(n: float, m: int, delta: float) -> None:
    found = exact_value(one_class(3.0, n), m, delta)
    assert found is not None
    expected = 3.0 * (n - m + 1) * (margin(delta) + math.log(m))
    assert found.value == pytest.approx(expected, rel=1e-10)
    assert found.limit == pytest.approx(expected, rel=1e-10)


def test_one_arm_to_find_has_a_closed_form() -> None:
    assert solve([1.0, 2.0, 5.0], 1, 0.05).value == pytest.approx(8 * margin(0.05), rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_equal_arms_may_be_listed_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, delta = int(rng.integers(4, 9)), int(rng.integers(2, 4)), DELTAS[seed % len(DELTAS)]
    variances = rng.choice([0.5, 1.0, 4.0], n)
    slightly_off = variances * (1 + 1e-9 * rng.permutation(n))
    expected = solve(slightly_off.tolist(), m, delta).value
    assert len(classes(variances.tolist()).counts) < n
    assert solve(variances.tolist(), m, delta).value == pytest.approx(expected, rel=3e-8)


@pytest.mark.parametrize("scale", [1e-90, 1e-3, 7.0, 1e90])
def test_the_scale_of_variances_is_a_factor(scale: float) -> None:
    variances = [1.0, 1.3, 2.0, 5.0, 5.0]
    scaled = solve([scale * s for s in variances], 3, 0.05)
    assert scaled.value / scale == pytest.approx(solve(variances, 3, 0.05).value, rel=1e-8)


@pytest.mark.parametrize("m", [1, 2, 5, 12, 20])
def test_a_hundred_thousand_arms_of_four_kinds(m: int) -> None:
    arms = Classes.listed(np.array([0.1, 0.5, 1.0, 7.0]), np.array([1e5, 1000.0, 500.0, 20.0]))
    found = exact_value(arms, m, 0.05, most=10**4)
    assert found is not None
    assert found.value == pytest.approx(found.limit, rel=1e-8)
    assert found.value >= best_product_value(arms, m, 0.05) * (1 - 1e-9)
    assert found.value >= uniform_value(arms, arms.total, m, 0.05) * (1 - 1e-9)
    assert found.value <= arms.total * (margin(0.05) + math.log(m)) * (1 + 1e-12)


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_stopping_early_gives_less_and_never_more(
    monkeypatch: pytest.MonkeyPatch, seed: int, steps: int
) -> None:
    variances, m, delta = small(seed)
    best = solve(variances, m, delta)
    monkeypatch.setattr(exact, "_MOST_STEPS", steps)
    early = solve(variances, m, delta)
    assert early.value <= best.limit * (1 + 1e-12)
    assert early.limit >= best.value * (1 - 1e-12)
    everything = classes(variances)
    assert early.value >= product_value(everything, everything.total, m, delta) * (1 - 1e-9)


def test_the_solver_is_not_done_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would not test it."""
    variances = [1.0, 1.3, 2.0, 4.0, 4.5, 9.0, 11.0]
    best = solve(variances, 3, 0.05)
    monkeypatch.setattr(exact, "_MOST_STEPS", 0)
    assert solve(variances, 3, 0.05).value < best.value * (1 - 1e-4)


def test_a_looser_tolerance_still_gives_a_bound() -> None:
    arms = classes([1.0, 1.3, 2.0, 4.0, 4.5, 9.0, 11.0])
    loose, tight = exact_value(arms, 3, 0.05, tolerance=0.05), exact_value(arms, 3, 0.05)
    assert loose is not None
    assert tight is not None
    assert loose.value <= tight.limit * (1 + 1e-12)
    assert loose.limit - loose.value <= 0.05 * loose.value


def test_variances_many_magnitudes_apart_give_a_bound_all_the_same() -> None:
    found = solve([1e-60, 1e-20, 1.0, 1.0, 3.0, 1e20], 2, 0.05)
    least = dual_objective([1.0, 1.0, 3.0, 1e20], 1, 0.05, {frozenset(): 1.0})
    assert found.value <= found.limit * (1 + 1e-12)
    assert found.value >= least * (1 - 1e-9)


# --- as a bound on pulls --------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_selecting_m_is_leaving_out_the_others(m: int) -> None:
    variances = [1.0, 1.5, 2.0, 2.0, 4.0, 7.0]
    ours, mirrored = (
        exact_dual(sl.Problem(m=k, epsilon=0.5, delta=0.05, variances=variances)) for k in (m, 6 - m)
    )
    assert ours == mirrored
    assert ours.value > 0


def test_nothing_is_needed_to_select_all_or_to_be_right_half_the_time() -> None:
    assert exact_dual(sl.Problem(m=3, epsilon=0.5, delta=0.05, variances=[1.0, 2.0, 3.0])) == Optimum(
        0.0, 0.0
    )
    assert exact_dual(sl.Problem(m=1, epsilon=0.5, delta=0.5, variances=[1.0, 2.0, 3.0])) == Optimum(0.0, 0.0)


def test_it_refuses_more_unknowns_than_allowed() -> None:
    problem = sl.Problem(m=4, epsilon=0.5, delta=0.05, variances=range(1, 13))
    with pytest.raises(sl.InvalidProblem, match="unknowns"):
        exact_dual(problem, most=100)
    assert exact_value(classes([1.0, 2.0, 3.0]), 2, 0.05, most=2) is None
    assert exact_dual(problem, most=165).value > 0  # 11 choose 3


def test_it_is_in_pulls() -> None:
    variances = [1.0, 1.5, 2.0, 2.0, 4.0]
    problem = sl.Problem(m=2, epsilon=0.1, delta=0.05, variances=variances)
    assert exact_dual(problem).value == pytest.approx(
        0.95 / 0.02 * solve(variances[1:], 2, 0.05).value, rel=1e-12
    )
