"""The null instance, plain and shifted, and the bound from whole pulls."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import expit, rel_entr

from shortlist.arrays import FloatArray
from shortlist.bounds.classes import Classes
from shortlist.bounds.null import null_instance, shifted_null_instance, whole_pulls
from tests.bounds.brute import (
    classes,
    divergence,
    null_minimum,
    null_value,
    one_class,
    random_variances,
    shifted_minimum,
)

pytestmark = pytest.mark.slow

DELTAS = [1e-6, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.5, 0.7]
variance_lists = st.lists(st.floats(0.01, 100), min_size=2, max_size=8)


def direct(variances: FloatArray, delta: float) -> float:
    """Return the minimum by halving an interval for the multiplier, as the sum over arms at the best p."""
    logit = math.log((1 - delta) / delta)
    low, high = 0.0, float(variances.max()) * (logit + math.log(len(variances)) + 1)
    for _ in range(60):
        middle = (low + high) / 2
        if expit(logit - middle / variances).sum() > 1:
            low = middle
        else:
            high = middle
    p = expit(logit - high / variances)
    return 2 * float((variances * (rel_entr(p, 1 - delta) + rel_entr(1 - p, delta))).sum())


# --- plain ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_it_is_the_minimum_that_a_conic_solver_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variances = random_variances(rng, int(rng.integers(2, 9))).tolist()
    delta = DELTAS[seed % 7]
    least = null_minimum(variances, delta)
    assert least * (1 - 1e-6) <= null_instance(classes(variances), delta) <= least * (1 + 1e-9)


@given(variance_lists, st.lists(st.floats(0, 1), min_size=8, max_size=8), st.floats(1e-6, 0.95))
def test_no_probabilities_give_less(variances: list[float], weights: list[float], delta: float) -> None:
    p = np.array(weights[: len(variances)]) / max(1.0, sum(weights[: len(variances)]))
    feasible = null_value(variances, p.tolist(), delta)
    assert null_instance(classes(variances), delta) <= feasible * (1 + 1e-9) + 1e-12 * sum(variances)


@given(variance_lists, st.floats(1e-9, 0.9), st.floats(1.0, 2.0))
def test_it_does_not_rise_with_delta(variances: list[float], delta: float, factor: float) -> None:
    arms = classes(variances)
    assert null_instance(arms, min(0.99, delta * factor)) <= null_instance(arms, delta) * (1 + 1e-12)


@given(variance_lists, st.data(), st.floats(1e-9, 0.9), st.floats(1.0, 10.0))
def test_it_does_not_fall_with_any_variance(
    variances: list[float], data: st.DataObject, delta: float, factor: float
) -> None:
    arm = data.draw(st.integers(0, len(variances) - 1))
    noisier = [s * factor if i == arm else s for i, s in enumerate(variances)]
    assert null_instance(classes(noisier), delta) >= null_instance(classes(variances), delta) * (1 - 1e-12)


@given(variance_lists, st.floats(0.01, 100), st.floats(1e-9, 0.9))
def test_it_does_not_fall_with_one_more_arm(variances: list[float], more: float, delta: float) -> None:
    assert null_instance(classes([*variances, more]), delta) >= null_instance(classes(variances), delta) * (
        1 - 1e-12
    )


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_with_equal_variances_all_answers_are_equally_likely(n: int, delta: float) -> None:
    expected = 2 * n * 3.0 * divergence(1 / n, delta)
    assert null_instance(one_class(3.0, n), delta) == pytest.approx(expected, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("delta", [1e-50, 0.01, 0.3])
@pytest.mark.parametrize("count", [1e12, 2.0**144])
def test_with_very_many_arms_it_is_twice_the_sum_times_ln_1_over_delta(count: float, delta: float) -> None:
    arms = Classes.listed(np.array([0.5, 1.0, 8.0]), count * np.array([4.0, 2.0, 1.0]))
    assert null_instance(arms, delta) == pytest.approx(2 * 12 * count * -math.log(delta), rel=1e-9)


def different(n: int, spread: float) -> FloatArray:
    return np.unique(np.exp(np.random.default_rng(0).uniform(0, math.log(spread), n)))


def test_a_million_different_variances() -> None:
    variances = different(10**6, 100.0)
    arms = Classes.listed(variances, np.ones(len(variances)))
    assert null_instance(arms, 0.05) == pytest.approx(direct(variances, 0.05), rel=1e-8)


@pytest.mark.parametrize("spread", [1.001, 3.0, 1e4, 1e10])
def test_thousands_of_different_variances(spread: float) -> None:
    variances = different(3000, spread)
    found = null_instance(Classes.listed(variances, np.ones(len(variances))), 0.02)
    exact = direct(variances, 0.02)
    assert exact * (1 - 1e-5) <= found <= exact * (1 + 1e-10)


@pytest.mark.parametrize("delta", [1e-50, 0.05, 0.5, 0.9])
def test_variances_may_be_two_hundred_magnitudes_apart(delta: float) -> None:
    arms = Classes.listed(np.array([1e-100, 1e-3, 1.0, 1e100]), np.array([7.0, 3.0, 2.0, 5.0]))
    found = null_instance(arms, delta)
    assert found == pytest.approx(null_instance(one_class(1e100, 5.0), delta), rel=1e-9)
    assert 0 < found < math.inf
    assert math.isfinite(shifted_null_instance(arms, delta))


@pytest.mark.parametrize("n", [2, 3, 8])
def test_it_vanishes_where_guessing_is_enough_and_only_there(n: int) -> None:
    arms = classes([float(s) for s in range(1, n + 1)])
    assert null_instance(arms, 1 - 1 / n) == pytest.approx(0.0, abs=1e-12)
    assert null_instance(arms, 1 - 0.99 / n) == 0.0
    assert null_instance(arms, 1 - 1.01 / n) > 1e-6


# --- shifted --------------------------------------------------------------------------------------


def best_shifted(variances: list[float], delta: float) -> float:
    """Return the largest minimum over the two, three, ... noisiest arms as rivals."""
    best = 0.0
    for n_arms in range(2, len(variances) + 1):
        some = sorted(variances)[-n_arms:]
        shifts = {step / 12 for step in range(13)} | {0.5**halvings / n_arms for halvings in range(6)}
        if n_arms == 2:
            shifts |= {math.sqrt(s) / sum(map(math.sqrt, some)) for s in some}
        best = max(best, shifted_minimum(some, delta, sorted(shifts)))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_shifted_is_no_more_than_all_raised_instances_demand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variances, delta = random_variances(rng, int(rng.integers(2, 6))).tolist(), DELTAS[seed % 8]
    assert (
        shifted_null_instance(classes(variances), delta) <= best_shifted(variances, delta) * (1 + 1e-6) + 1e-8
    )


@pytest.mark.parametrize("delta", [0.001, 0.3])
@pytest.mark.parametrize("variances", [[1.0, 1.0], [1.0, 9.0], [0.01, 4.0], [2.0] * 3, [0.3] * 5])
def test_shifted_is_all_they_demand_of_two_arms_or_equal_ones(variances: list[float], delta: float) -> None:
    found = shifted_null_instance(classes(variances), delta)
    assert found == pytest.approx(best_shifted(variances, delta), rel=1e-3)


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(1e-9, 0.5))
def test_two_arms_have_a_closed_form(one: float, other: float, delta: float) -> None:
    expected = 2 * (math.sqrt(one) + math.sqrt(other)) ** 2 * divergence(0.5, delta)
    found = shifted_null_instance(classes([one, other]), delta)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12 * (one + other))


@given(st.floats(0.01, 100), st.integers(3, 30), st.floats(1e-9, 0.6))
def test_equal_arms_gain_one_part_in_n_less_one(variance: float, n: int, delta: float) -> None:
    plain = 2 * n * variance * divergence(1 / n, delta)
    closed = max(plain * n / (n - 1), 8 * variance * divergence(0.5, delta))
    found = shifted_null_instance(one_class(variance, n), delta)
    assert found >= closed * (1 - 1e-9)
    if delta < 0.3:  # else fewer rivals are sometimes better
        assert found == pytest.approx(closed, rel=1e-9)


def test_fewer_rivals_are_chosen_where_that_is_better() -> None:
    """Two noisy arms and many quiet ones: the two alone demand more than all together."""
    alone = shifted_null_instance(classes([100.0, 100.0]), 0.05)
    assert shifted_null_instance(classes([100.0, 100.0] + [1e-6] * 30), 0.05) >= alone * (1 - 1e-12)
    assert null_instance(classes([100.0, 100.0] + [1e-6] * 30), 0.05) < 0.8 * alone


@given(variance_lists, st.floats(1e-9, 0.9), st.floats(1.0, 2.0))
def test_shifted_does_not_rise_with_delta(variances: list[float], delta: float, factor: float) -> None:
    arms, more = classes(variances), min(0.99, delta * factor)
    assert shifted_null_instance(arms, more) <= shifted_null_instance(arms, delta) * (1 + 1e-11)


def test_one_rival_demands_nothing() -> None:
    assert shifted_null_instance(one_class(5.0, 1.0), 0.05) == 0.0
    assert null_instance(one_class(5.0, 1.0), 0.05) == 0.0


def test_shifted_copes_with_any_number_of_rivals() -> None:
    for n in [*range(2, 40), 99, 100, 101, 399, 400, 401, 5000]:
        value = shifted_null_instance(one_class(1.0, float(n)), 0.05)
        shown = min(n, 400)
        assert value == pytest.approx(2 * shown**2 / (shown - 1) * divergence(1 / shown, 0.05), rel=0.01)
        assert value <= 2 * n**2 / (n - 1) * divergence(1 / n, 0.05) * (1 + 1e-9)


# --- whole pulls ----------------------------------------------------------------------------------


def right_answers(means: list[float], m: int, epsilon: float) -> list[tuple[int, ...]]:
    least = sorted(means)[-m] - epsilon
    return [
        chosen for chosen in combinations(range(len(means)), m) if all(means[arm] >= least for arm in chosen)
    ]


def fewest_arms(n: int, m: int, delta: float) -> float:
    """Return the least expected number of arms pulled, by a linear program over all answers.

    An arm may go without a pull with probability delta, and whenever the answer is the one that would
    be right if that arm had another mean.
    """
    means = [2.2] * (m - 1) + [1.1, 0.0] + [-1.1] * (n - m - 1)
    answers = list(combinations(range(n), m))
    (right,) = right_answers(means, m, 1.0)
    costs = np.concatenate([np.zeros(len(answers)), np.ones(n)])  # P(answer), then P(arm i is pulled)
    rows = []
    for arm in range(n):
        changed = means.copy()
        changed[arm] = -1.1 if arm < m else 2.2
        (other,) = right_answers(changed, m, 1.0)
        row = np.zeros(len(costs))
        row[answers.index(other)] = row[len(answers) + arm] = -1.0
        rows.append(row)
    row = np.zeros(len(costs))
    row[answers.index(right)] = -1.0
    found = linprog(
        costs,
        A_ub=np.array([*rows, row]),
        b_ub=[delta - 1] * (n + 1),
        A_eq=[np.concatenate([np.ones(len(answers)), np.zeros(n)])],
        b_eq=[1.0],
    )
    assert found.fun is not None
    return float(found.fun)


@pytest.mark.parametrize(("n", "m"), [(n, m) for n in range(2, 6) for m in range(1, n)])
def test_whole_pulls_are_what_a_linear_program_demands(n: int, m: int) -> None:
    for delta in [0.001, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95]:
        assert whole_pulls(n, delta) == pytest.approx(fewest_arms(n, m, delta), abs=1e-9)


def test_whole_pulls_fall_with_delta_and_are_never_negative() -> None:
    values = [whole_pulls(7, delta) for delta in np.linspace(0.001, 0.999, 999).tolist()]
    assert all(above >= below >= 0 for above, below in pairwise(values))
    assert values[-1] == 0.0
