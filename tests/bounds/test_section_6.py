"""What Section 6 of the paper says of its three weightings, as numbers."""

import math

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.bounds.paper_bound import left_out, three_values
from tests.bounds.brute import (
    classes,
    conic_primal,
    dual_objective,
    entropy,
    margin,
    product_weights,
    random_variances,
    uniform_weights,
)
from tests.questions import bound_of


def shaped(seed: int) -> sl.Problem:
    """Return a problem with n > 2m whose variance groups are partly large and partly small."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 7))
    parts: list[FloatArray] = []
    for exponent in rng.choice(9, size=rng.integers(1, 6), replace=False):
        count = int(rng.choice([1, 2, m, 2 * m, 2 * m + 1, 4 * m + 3]))
        parts.append(2.0**exponent * rng.uniform(1, 1.999, count))
    variances = np.concatenate([*parts, np.ones(2 * m + 1)])
    delta = float(rng.choice([1e-6, 0.001, 0.01, 0.05, 0.099]))
    return sl.Problem(m=m, epsilon=0.3, delta=delta, variances=rng.permutation(variances))


def unit(problem: sl.Problem) -> float:
    """Return what a value on all arms is worth in pulls, with the factor that Lemma 6.3 lacks."""
    n, m = problem.n, problem.m
    return (n - m) / (n - m + 1) * (1 - problem.delta) / (2 * problem.epsilon**2)


SEEDS = [range(start, start + 20) for start in range(0, 80, 20)]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_the_first_value_contains_the_first_term(seeds: range) -> None:
    for problem in map(shaped, seeds):
        n, m, total = problem.n, problem.m, math.fsum(problem.variances)
        least = margin(problem.delta) * total * (n - m + 1) / n
        assert three_values(problem)[0] >= unit(problem) * least * (1 - 1e-12)
        term = sl.complexity(problem).confidence
        assert (
            three_values(problem)[0] >= term / 6
        )  # (n - m) / n > 1/2, (1 - delta) / 2 > 0.45, margin > 0.8 ln(1/delta)


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_lemma_6_4_products_within_the_large_groups_keep_a_third(seeds: range) -> None:
    for problem in map(shaped, seeds):
        more = problem.variances[sl.heterogeneity(problem).more].tolist()
        arms = classes(more)
        left = float((arms.sums * left_out(arms, problem.m - 1)).sum())
        assert left >= math.fsum(more) / 3
        outside = math.fsum(problem.variances) - math.fsum(more)
        least = margin(problem.delta) * (outside + left) + math.log(problem.m) * left
        assert three_values(problem)[1] == pytest.approx(unit(problem) * least, rel=1e-9)
        assert three_values(problem)[1] >= unit(problem) * math.log(problem.m) * math.fsum(more) / 3


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_lemma_6_5_equal_weights_within_l(seeds: range) -> None:
    for problem in map(shaped, seeds):
        shape = sl.heterogeneity(problem)
        largest = problem.variances[shape.largest].tolist()
        total, m = math.fsum(largest), problem.m
        assert len(largest) == 2 * m
        value = three_values(problem)[2] / unit(problem)
        outside = math.fsum(problem.variances) - (m - 1) / (2 * m) * total
        gained = value - margin(problem.delta) * outside
        assert gained >= (entropy(largest) - math.log(2)) * total / 2 - 1e-9 * value
        less = math.fsum(problem.variances[shape.less])
        assert gained >= less * shape.entropy_reduced / 198 - math.log(2) * total


def small(seed: int) -> sl.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    m, delta = int(rng.integers(1, min(n, 4))), float(rng.choice([0.001, 0.05, 0.2, 0.3]))
    return sl.Problem(m=m, epsilon=0.5, delta=delta, variances=random_variances(rng, n))


@pytest.mark.parametrize("seed", range(40))
def test_the_three_values_are_those_of_their_weights(seed: int) -> None:
    problem = small(seed)
    variances, m, delta = problem.variances.tolist(), problem.m, problem.delta
    shape, factor = sl.heterogeneity(problem), unit(problem)
    v1, v2, v3 = three_values(problem)
    everywhere = dual_objective(variances, m, delta, uniform_weights(range(problem.n), m))
    assert v1 <= factor * everywhere * (1 + 1e-12)
    assert v3 <= factor * dual_objective(variances, m, delta, uniform_weights(shape.largest.tolist(), m)) * (
        1 + 1e-12
    )
    if len(shape.more):
        weights = product_weights({int(arm): variances[arm] for arm in shape.more}, m)
        assert v2 == pytest.approx(factor * dual_objective(variances, m, delta, weights), rel=1e-9)
    else:
        assert v2 == 0.0


def test_the_brute_force_cases_have_large_groups_too() -> None:
    assert sum(len(sl.heterogeneity(small(seed)).more) > 0 for seed in range(40)) >= 8


@pytest.mark.parametrize("seed", range(12))
def test_no_value_exceeds_the_optimum_of_the_primal_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    m, delta = int(rng.integers(1, n)), float(rng.choice([0.001, 0.05, 0.2]))
    problem = sl.Problem(m=m, epsilon=0.5, delta=delta, variances=random_variances(rng, n))
    optimum = conic_primal(problem.variances.tolist(), m, delta) / 0.25
    assert max(three_values(problem)) <= optimum * (1 + 1e-6)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_equal_arms_show_the_factor_that_lemma_6_3_lacks(m: int) -> None:
    problem = sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=[2.0] * 10)
    worth = (10 - m) / (11 - m) * 0.95 / 0.02
    everywhere = worth * 2.0 * (11 - m) * (margin(0.05) + math.log(m))
    within_l = worth * 2.0 * ((11 - m) * margin(0.05) + (m + 1) * math.log(m))
    assert three_values(problem) == pytest.approx([everywhere, everywhere, within_l], rel=1e-9)


def test_there_are_none_to_select_all_or_to_be_right_half_the_time() -> None:
    assert three_values(sl.Problem(m=3, epsilon=0.1, delta=0.05, variances=[1.0, 2.0, 3.0])) == (
        0.0,
        0.0,
        0.0,
    )
    assert three_values(sl.Problem(m=1, epsilon=0.1, delta=0.5, variances=[1.0, 2.0, 3.0])) == (0.0, 0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_theorem_6_1_the_bound_is_of_the_order_of_the_three_terms(seeds: range) -> None:
    for problem in map(shaped, seeds):
        terms = sl.complexity(problem)
        assert sum(three_values(problem)) >= terms.total / 3
        assert bound_of(problem) >= terms.total / 5
