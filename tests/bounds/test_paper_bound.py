"""Values of the paper's dual program at weights in closed form: each set of arms is counted."""

import math

import numpy as np
import pytest

from shortlist.bounds.classes import Classes
from shortlist.bounds.exact import exact_value
from shortlist.bounds.paper_bound import best_product_value, product_value, pulls_per_value, uniform_value
from tests.bounds.brute import (
    classes,
    dual_objective,
    entropy,
    margin,
    one_class,
    product_weights,
    random_variances,
    uniform_weights,
)

DELTAS = [1e-9, 0.001, 0.05, 0.1, 0.3, 0.36, 0.45]


def small(seed: int) -> tuple[list[float], list[int], int, float]:
    """Return variances, the arms inside, m and delta."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    variances = random_variances(rng, n).tolist()
    m = int(rng.integers(1, min(n, 4) + 1))
    inside = rng.choice(n, size=int(rng.integers(m, n + 1)), replace=False)
    return variances, sorted(inside.tolist()), m, DELTAS[seed % len(DELTAS)]


@pytest.mark.parametrize("seeds", [range(start, start + 25) for start in (0, 25)], ids=str)
def test_the_product_value_is_that_of_its_weights(seeds: range) -> None:
    for seed in seeds:
        variances, inside, m, delta = small(seed)
        found = product_value(classes([variances[i] for i in inside]), math.fsum(variances), m, delta)
        exact = dual_objective(variances, m, delta, product_weights({i: variances[i] for i in inside}, m))
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-10 * sum(variances)), f"seed {seed}"


@pytest.mark.parametrize("seeds", [range(start, start + 25) for start in (100, 125)], ids=str)
def test_the_uniform_value_is_at_most_that_of_its_weights(seeds: range) -> None:
    for seed in seeds:
        variances, inside, m, delta = small(seed)
        some = [variances[i] for i in inside]
        found = uniform_value(classes(some), math.fsum(variances), m, delta)
        exact = dual_objective(variances, m, delta, uniform_weights(inside, m))
        assert found <= exact + 1e-12 * abs(exact), f"seed {seed}"
        total, kept = math.fsum(some), (m - 1) / len(some)
        jensen = (1 - kept) * total * (entropy(some) - math.log(len(some) / m))
        formula = margin(delta) * (math.fsum(variances) - kept * total) + max(0.0, jensen)
        assert found == pytest.approx(formula, rel=1e-11, abs=1e-11 * sum(variances)), f"seed {seed}"


@pytest.mark.parametrize(("n", "a", "m"), [(5, 5, 1), (5, 5, 3), (8, 6, 3), (8, 3, 3), (8, 8, 4), (7, 6, 4)])
def test_equal_arms_make_both_exact(n: int, a: int, m: int) -> None:
    exact = dual_objective([2.0] * n, m, 0.05, uniform_weights(range(a), m))
    assert uniform_value(one_class(2.0, a), 2.0 * n, m, 0.05) == pytest.approx(exact, rel=1e-11)
    assert product_value(one_class(2.0, a), 2.0 * n, m, 0.05) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_coarse_classes_give_at_most_the_value_of_their_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, delta = int(rng.integers(5, 9)), int(rng.integers(2, 5)), DELTAS[seed % len(DELTAS)]
    variances = sorted(np.exp(rng.uniform(0, 2, n)).tolist())
    size = n - int(rng.integers(0, 2))
    inside = classes(variances[:size]).few(3)
    bases = {
        arm: float(inside.variances[inside.variances <= variances[arm]].max()) for arm in range(size)
    }  # the least variance in the class of the arm
    assert len(set(bases.values())) < size
    exact = dual_objective(variances, m, delta, product_weights(bases, m))
    found = product_value(inside, math.fsum(variances), m, delta)
    assert found <= exact + 1e-12 * abs(exact)
    assert found >= exact - inside.total * max(0.0, 2 * math.log1p(inside.ratio) - math.log(4 * inside.ratio))


@pytest.mark.parametrize("ratio", [3.0, 10.0, 30.0, 100.0])
@pytest.mark.parametrize("m", [2, 4, 8, 20])
def test_a_very_coarse_class_gives_at_most_the_value_of_its_weights(m: int, ratio: float) -> None:
    """One arm is far noisier than its class says, and in most sets: they have little entropy."""
    coarse = Classes(np.array([1.0]), np.array([m + 1.0]), np.array([m + ratio]), ratio)
    exact = dual_objective([1.0] * m + [ratio], m, 0.36, uniform_weights(range(m + 1), m))
    assert product_value(coarse, m + ratio, m, 0.36) <= exact * (1 + 1e-12)


@pytest.mark.parametrize("spread", [2.0, 100.0, 1e4])
@pytest.mark.parametrize("m", [2, 7, 40])
def test_putting_many_classes_together_costs_little(spread: float, m: int) -> None:
    variances = np.unique(np.exp(np.random.default_rng(2).uniform(0, math.log(spread), 3000)))
    arms = Classes.listed(variances, np.ones(len(variances)))
    few = arms.few(200)
    assert len(few.counts) <= 201
    fine, coarse = (product_value(inside, arms.total, m, 0.05) for inside in (arms, few))
    assert fine * (1 - 1e-3) <= coarse <= fine * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_product_leaves_out_the_noisiest_arms_where_that_pays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, delta = int(rng.integers(3, 8)), int(rng.integers(1, 4)), [0.01, 0.1, 0.3, 0.45][seed % 4]
    variances = sorted(random_variances(rng, n).tolist())
    values = []
    for least_out in {*variances, math.inf}:
        inside = {arm: s for arm, s in enumerate(variances) if s < least_out}
        if len(inside) >= m:
            values.append(dual_objective(variances, m, delta, product_weights(inside, m)))
    found = best_product_value(classes(variances), m, delta)
    assert found == pytest.approx(max(0.0, *values), rel=1e-9, abs=1e-9)


def test_leaving_out_the_noisiest_arms_does_pay() -> None:
    """One arm has most of the variance; sets that contain it leave little to be found."""
    arms = classes([1.0] * 20 + [100.0])
    everyone = product_value(arms, arms.total, 5, 0.05)
    assert best_product_value(arms, 5, 0.05) > 1.5 * everyone


@pytest.mark.parametrize("m", [1, 3, 10, 200])
def test_the_best_product_of_many_arms_lies_between_one_product_and_what_any_weights_reach(m: int) -> None:
    arms = Classes.listed(np.array([0.1, 1.0, 40.0]), np.array([5000.0, 600.0, 9.0]))
    optimum = exact_value(arms, m, 0.05, most=10**5)
    assert optimum is not None
    found = best_product_value(arms, m, 0.05)
    assert product_value(arms, arms.total, m, 0.05) * (1 - 1e-12) <= found <= optimum.limit * (1 + 1e-12)


def test_the_best_product_copes_with_many_different_arms() -> None:
    variances = np.unique(np.exp(np.random.default_rng(3).uniform(0, 5, 20_000)))
    arms = Classes.listed(variances, np.ones(len(variances)))
    fine = product_value(arms, arms.total, 30, 0.05)
    assert fine * (1 - 1e-5) <= best_product_value(arms, 30, 0.05)
    assert best_product_value(arms, 30, 0.05) <= arms.total * (margin(0.05) + math.log(30))


def test_a_value_is_worth_half_its_share_of_confidence() -> None:
    assert pulls_per_value(0.2) == pytest.approx(0.4, rel=1e-15)
