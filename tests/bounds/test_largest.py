"""The bound reported: the largest of all, with the others beside it."""

import copy
import math
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.bounds.classes import Classes
from shortlist.bounds.exact import exact_dual
from shortlist.bounds.null import null_instance, shifted_null_instance, whole_pulls
from shortlist.bounds.paper_bound import best_product_value, three_values
from shortlist.bounds.swap import swaps
from tests.bounds.brute import classes, random_variances
from tests.questions import bound_of

pytestmark = pytest.mark.slow

DUALS = {"dual-exact", "dual-product", "dual-uniform", "dual-large-groups", "dual-noisiest"}
NULLS = {"null-instance", "null-instance-shifted", "whole-pulls"}
MIRRORED = {*NULLS, "swaps", "dual-exact", "dual-product"}


def problem(variances: Any, m: int, epsilon: float = 0.5, delta: float = 0.05) -> sl.Problem:
    return sl.Problem(m=m, epsilon=epsilon, delta=delta, variances=variances)


@st.composite
def problems(draw: st.DrawFn, most_delta: float = 0.99) -> sl.Problem:
    n = draw(st.integers(2, 9))
    values = st.floats(0.1, 10.0) | st.sampled_from([0.5, 1.0, 2.0])
    variances = draw(st.lists(values, min_size=n, max_size=n))
    delta = draw(st.floats(1e-6, most_delta))
    return problem(variances, draw(st.integers(1, n - 1)), draw(st.floats(0.05, 5.0)), delta)


def random_problem(seed: int) -> sl.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    delta = float(rng.choice([1e-6, 0.01, 0.05, 0.2, 0.3, 0.4, 0.49]))
    return problem(random_variances(rng, n), int(rng.integers(1, n)), delta=delta)


# --- what it is -----------------------------------------------------------------------------------


@given(problems())
@settings(max_examples=30)
def test_it_is_the_largest_candidate(asked: sl.Problem) -> None:
    bound = bound_of(asked)
    values = list(bound.candidates.values())
    assert values == sorted(values, reverse=True)
    assert bound.pulls == max(values)
    assert bound.candidates[bound.name] == bound.pulls
    assert all(value >= 0 for value in values)
    expected = NULLS | ({"swaps"} | DUALS if asked.delta < 0.5 else set())
    assert set(bound.candidates) == expected


@pytest.mark.parametrize("seed", range(20))
def test_every_candidate_is_the_bound_it_is_named_for(seed: int) -> None:
    asked = random_problem(seed)
    n, delta, bound = asked.n, asked.delta, bound_of(asked)
    side = min(asked.m, n - asked.m)
    arms = sorted(asked.variances.tolist())
    rivals = classes(arms[side - 1 :])
    expected = {
        "null-instance": null_instance(rivals, delta) / 0.25,
        "null-instance-shifted": shifted_null_instance(rivals, delta) / 0.25,
        "whole-pulls": whole_pulls(n, delta),
        "swaps": swaps(classes(arms), side, delta) / 0.25,
        "dual-product": (1 - delta) / 0.5 * best_product_value(classes(arms[1:]), side, delta),
        "dual-exact": max(0.0, exact_dual(asked).value),
    }
    expected |= dict(
        zip(("dual-uniform", "dual-large-groups", "dual-noisiest"), three_values(asked), strict=True)
    )
    assert dict(bound.candidates) == pytest.approx(expected, rel=1e-11)
    for name, value in expected.items():
        assert bound.candidates[name] <= value
    if delta < 0.5:
        names = ("dual-uniform", "dual-large-groups", "dual-noisiest")
        assert (bound.terms.v1, bound.terms.v2, bound.terms.v3) == tuple(map(bound.candidates.get, names))


@pytest.mark.parametrize("seeds", [range(start, start + 35) for start in (0, 35)], ids=str)
def test_the_exact_dual_is_the_largest_dual(seeds: range) -> None:
    for seed in seeds:
        asked = random_problem(seed)
        found = bound_of(asked).candidates
        assert found["dual-product"] <= found["dual-exact"] * (1 + 1e-8), f"seed {seed}"
        if asked.m <= asked.n / 2 and asked.delta <= 0.36:  # the three values are not mirrored
            assert max(found[name] for name in DUALS) <= found["dual-exact"] * (1 + 1e-8), f"seed {seed}"


def test_it_is_a_float() -> None:
    bound = bound_of(problem([1.0, 2.0, 3.0], 1))
    assert isinstance(bound, float)
    assert bound == bound.pulls == float(bound)
    assert type(bound.pulls) is float
    assert hash(bound) == hash(bound.pulls)
    assert 2 * bound == 2 * bound.pulls
    assert math.ceil(bound) == math.ceil(bound.pulls)
    assert bound.name in repr(bound)
    assert repr(bound.pulls) in repr(bound)


def test_it_cannot_be_changed_through_its_candidates() -> None:
    bound: Any = bound_of(problem([1.0, 2.0, 3.0], 1))
    with pytest.raises(TypeError):
        bound.candidates["whole-pulls"] = 1e9


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_can_be_stored(protocol: int) -> None:
    bound = bound_of(problem([1.0, 2.0, 3.0], 1))
    assert_same(pickle.loads(pickle.dumps(bound, protocol)), bound)


def test_it_can_be_copied() -> None:
    bound = bound_of(problem([1.0, 2.0, 3.0, 9.0], 2))
    assert_same(copy.copy(bound), bound)
    assert_same(copy.deepcopy(bound), bound)


def assert_same(one: sl.bounds.LowerBound, other: sl.bounds.LowerBound) -> None:
    assert type(one) is type(other) is sl.bounds.LowerBound
    assert (one, one.name, one.terms) == (other, other.name, other.terms)
    assert list(one.candidates.items()) == list(other.candidates.items())


def test_the_gap_is_a_multiple_of_the_bound() -> None:
    bound = bound_of(problem([1.0, 2.0, 3.0], 1))
    assert bound.gap(3 * bound.pulls) == pytest.approx(3.0, rel=1e-15)
    nothing = bound_of(problem([1.0, 2.0, 3.0], 3))
    assert nothing.gap(0) == 1.0
    assert nothing.gap(5) == math.inf


# --- what it does not depend on -------------------------------------------------------------------


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_the_order_of_arms_changes_nothing(asked: sl.Problem, random: Any) -> None:
    shuffled = asked.variances.tolist()
    random.shuffle(shuffled)
    other = problem(shuffled, asked.m, asked.epsilon, asked.delta)
    assert_same(bound_of(other), bound_of(asked))


@given(problems())
@settings(max_examples=25)
def test_half_of_epsilon_costs_four_times_as_much(asked: sl.Problem) -> None:
    bound = bound_of(asked)
    finer = bound_of(problem(asked.variances, asked.m, asked.epsilon / 2, asked.delta))
    for name, pulls in bound.candidates.items():
        assert finer.candidates[name] == (pulls if name == "whole-pulls" else 4 * pulls)
    assert finer.terms.v1 == 4 * bound.terms.v1


@given(problems(), st.integers(-40, 10))
@settings(max_examples=25)
def test_a_power_of_two_is_a_factor(asked: sl.Problem, exponent: int) -> None:
    factor = 2.0**exponent
    bound = bound_of(asked)
    scaled = bound_of(problem(asked.variances * factor, asked.m, asked.epsilon, asked.delta))
    for name, pulls in bound.candidates.items():
        if name in {"null-instance", "dual-exact", "dual-uniform", "dual-noisiest"}:
            assert scaled.candidates[name] == factor * pulls
        elif name != "whole-pulls":
            assert scaled.candidates[name] == pytest.approx(factor * pulls, rel=1e-11)


@pytest.mark.parametrize("seed", range(15))
def test_the_unit_of_rewards_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variances = rng.choice(np.exp(rng.uniform(-1, 1, 4)), int(rng.integers(2, 9)))
    asked, unit = problem(variances, 1 + seed % (len(variances) - 1)), float(rng.uniform(0.01, 100))
    other = problem(variances * unit**2, asked.m, asked.epsilon * unit)
    assert dict(bound_of(other).candidates) == pytest.approx(dict(bound_of(asked).candidates), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_selecting_m_is_leaving_out_the_others(seed: int) -> None:
    asked = random_problem(seed)
    ours = bound_of(asked).candidates
    mirrored = bound_of(problem(asked.variances, asked.n - asked.m, delta=asked.delta)).candidates
    assert {name: ours[name] for name in MIRRORED} == {name: mirrored[name] for name in MIRRORED}


# --- how it moves ---------------------------------------------------------------------------------


@given(problems(most_delta=0.9), st.floats(1.0, 2.0))
@settings(max_examples=40)
def test_it_does_not_rise_with_delta(asked: sl.Problem, factor: float) -> None:
    more = min(0.999, asked.delta * factor)
    bound, less = (
        bound_of(asked),
        bound_of(problem(asked.variances, asked.m, asked.epsilon, more)),
    )
    assert less <= bound * (1 + 1e-11)
    for name, pulls in less.candidates.items():
        assert pulls <= bound.candidates[name] * (1 + 1e-8)


@pytest.mark.parametrize(
    ("variances", "m"),
    [([1.0, 1.0, 1.0, 100.0, 500.0], 2), ([1.0, 2.0, 3.0, 4.0], 3), ([1.0] * 12, 6), ([1.0, 50.0], 1)],
    ids=str,
)
def test_it_falls_with_delta_over_a_fine_grid(variances: list[float], m: int) -> None:
    grid = np.concatenate(
        [np.logspace(-6, -1.2, 10), np.linspace(0.07, 0.999, 40), [0.36, 0.3602, 0.4999, 0.5]]
    )
    bounds = [bound_of(problem(variances, m, delta=delta)) for delta in np.sort(grid).tolist()]
    assert all(above >= below * (1 - 1e-11) for above, below in pairwise(bounds))
    assert bounds[0] > 0


def test_noise_costs() -> None:
    variances = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    bounds = [bound_of(problem([*variances[:-1], last], 2)) for last in (6.0, 7.0, 20.0, 1000.0)]
    assert all(below < above for below, above in pairwise(bounds))


# --- every problem has one ------------------------------------------------------------------------


@pytest.mark.parametrize("variances", [[3.0], [1.0, 2.0], [1.0] * 7])
@pytest.mark.parametrize("delta", [1e-50, 0.05, 0.9])
def test_selecting_all_needs_nothing(variances: list[float], delta: float) -> None:
    bound = bound_of(problem(variances, len(variances), delta=delta))
    assert (bound.pulls, bound.name) == (0.0, "whole-pulls")
    assert (bound.terms.v1, bound.terms.v2, bound.terms.v3) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("delta", [0.5, 0.6, 0.9, 0.999])
def test_little_confidence_needs_little(delta: float) -> None:
    bound = bound_of(problem([1.0, 2.0, 3.0, 3.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 20.0], 2, delta=delta))
    assert set(bound.candidates) == NULLS
    assert (bound > 0) == (delta < 1 - 1 / 11)
    assert (bound.terms.v1, bound.terms.v2, bound.terms.v3) == (0.0, 0.0, 0.0)


@given(
    st.lists(st.floats(-99, 99), min_size=2, max_size=7),
    st.data(),
    st.sampled_from([1e-50, 1e-9, 0.05, 0.3, 0.36, 0.4999, 0.5, 0.9, 0.999]),
)
@settings(max_examples=60)
def test_it_copes_with_all_that_a_problem_may_be(
    exponents: list[float], data: st.DataObject, delta: float
) -> None:
    variances = [10.0**exponent for exponent in exponents]
    m = data.draw(st.integers(1, len(variances) - 1))
    bound = bound_of(problem(variances, m, math.sqrt(sum(variances)) * 1e-3, delta))
    assert all(0 <= pulls < math.inf for pulls in bound.candidates.values())


@pytest.mark.parametrize("m", [1, 5, 1000, 199_990])
def test_it_copes_with_many_different_arms(m: int) -> None:
    variances = np.random.default_rng(0).uniform(1.0, 9.0, 200_000)
    bound = bound_of(problem(variances, m))
    information = bound.pulls * 0.25 / (2 * variances.sum())
    assert 0.9 * math.log(20) < information < math.log(20) + math.log(200_000**2)


def test_it_copes_with_many_equal_arms() -> None:
    bound = bound_of(problem(np.ones(10**6), 500_000, delta=0.1))
    assert bound.name in {"swaps", "dual-exact", "dual-product", "dual-uniform"}
    assert "dual-exact" in bound.candidates


def test_each_bound_wins_somewhere() -> None:
    names = {
        bound_of(asked).name
        for asked in (
            problem([1.0] * 100, 1),
            problem([1.0] * 1000, 1),
            problem([1e-9] * 5, 1),
            problem([1.0] * 100, 50),
            problem([1.0, 1.0, 1.0, 100.0, 500.0], 2, delta=0.45),
        )
    }
    assert names >= {"null-instance", "null-instance-shifted", "whole-pulls", "swaps", "dual-exact"}


def test_the_classes_of_a_problem_are_enough() -> None:
    """Arms listed in any way that gives the same classes have the same bound."""
    one = problem([1.0, 1.0, 5.0, 2.0], 2)
    assert Classes.of(one).counts.tolist() == [2.0, 1.0, 1.0]
    assert_same(bound_of(one), bound_of(problem([5.0, 1.0, 2.0, 1.0], 2)))


@pytest.mark.parametrize(
    ("pulls", "words"), [(1.0, "1 pull on"), (1.001, "1 pull on"), (1.8, "1.8 pulls on")]
)
def test_a_bound_of_one_is_one_pull(pulls: float, words: str) -> None:
    found = bound_of(problem([1.0, 1.0], 1))
    assert f"needs at least {words}" in sl.bounds.LowerBound({"it": pulls}, found.terms).meaning
