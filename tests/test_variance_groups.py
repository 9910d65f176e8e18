"""Entropy, variance groups, the arm sets of [ZT22] Section 4, and the three terms of Theorem 4.1."""

import math
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.variance_groups import variance_groups

positive = st.floats(1e-6, 1e6)
vectors = st.lists(positive, min_size=1, max_size=12)


def problem(variances: Any, m: int, epsilon: float = 0.5, delta: float = 0.05) -> sl.Problem:
    return sl.Problem(m=m, epsilon=epsilon, delta=delta, variances=variances)


def reference_entropy(values: Any) -> float:
    """Return Ent as [ZT22] Section 3 defines it, summed without rounding until the end."""
    total = math.fsum(values)
    shares = [value / total for value in values]
    return -math.fsum(share * math.log(share) for share in shares if share > 0)  # some may underflow


# --- entropy --------------------------------------------------------------------------------------


@given(vectors)
def test_entropy_is_its_definition(values: list[float]) -> None:
    assert sl.entropy(values) == pytest.approx(reference_entropy(values), rel=1e-12, abs=1e-14)


@given(vectors)
def test_entropy_lies_between_zero_and_ln_n(values: list[float]) -> None:
    assert 0.0 <= sl.entropy(values) <= math.log(len(values)) + 1e-12


@given(vectors, st.floats(1e-250, 1e250))
def test_entropy_does_not_depend_on_the_scale(values: list[float], scale: float) -> None:
    scaled = [value * scale for value in values]
    assert sl.entropy(scaled) == pytest.approx(sl.entropy(values), rel=1e-12, abs=1e-14)


@given(st.lists(vectors, min_size=1, max_size=6))
def test_entropy_has_the_grouping_property(groups: list[list[float]]) -> None:
    """Ent(a) = Ent(s) + sum_j s_j / S Ent(a_j), with s_j the sum of group j and S that of all."""
    sums = [math.fsum(group) for group in groups]
    within = math.fsum(s * sl.entropy(group) for s, group in zip(sums, groups, strict=True)) / math.fsum(sums)
    everything = [value for group in groups for value in group]
    assert sl.entropy(everything) == pytest.approx(sl.entropy(sums) + within, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 1000])
def test_entropy_is_ln_n_when_all_are_equal(n: int) -> None:
    assert sl.entropy([0.1] * n) == pytest.approx(math.log(n), rel=1e-14)


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1.0, 1e308])
def test_entropy_of_one_value_is_zero(value: float) -> None:
    assert sl.entropy([value]) == 0.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-300, 1e300], 0.0),
        ([5e-324, 1.7e308], 0.0),
        ([1e308] * 8, math.log(8)),
        ([5e-324] * 8, math.log(8)),
        ([1e-320, 1e300, 1e300], math.log(2)),
        ([1.0, 1e-18], 1e-18 * (1 + 18 * math.log(10))),
    ],
)
def test_entropy_copes_with_extreme_ratios(values: list[float], expected: float) -> None:
    assert sl.entropy(values) == pytest.approx(expected, rel=1e-12, abs=1e-16)


@pytest.mark.parametrize(
    "values",
    [
        [],
        1.0,
        None,
        "1.0",
        ["1.0", "2.0"],
        [1.0, 0.0],
        [1.0, -1.0],
        [1.0, math.nan],
        [1.0, math.inf],
        [True, True],
        [1j, 2.0],
        [[1.0, 2.0]],
        [[1.0], [1.0, 2.0]],
        [1.0, None],
    ],
    ids=repr,
)
def test_entropy_refuses_what_has_none(values: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="entropy needs"):
        sl.entropy(values)


def test_entropy_takes_whole_numbers() -> None:
    assert sl.entropy([1, 1]) == pytest.approx(math.log(2), rel=1e-15)


# --- variance groups ------------------------------------------------------------------------------


def reference_groups(variances: FloatArray) -> list[list[int]]:
    """Return the non-empty G_j of [ZT22] Section 4 in exact arithmetic."""
    least = Fraction(float(variances.min()))
    by_group: dict[int, list[int]] = {}
    for arm, variance in enumerate(variances):
        ratio, j = Fraction(float(variance)) / least, 1
        while not 2 ** (j - 1) <= ratio < 2**j:
            j += 1
        by_group.setdefault(j, []).append(arm)
    return [by_group[j] for j in sorted(by_group)]


def found_groups(variances: FloatArray) -> list[list[int]]:
    return [group.tolist() for group in variance_groups(variances)]


def around_powers(least: float, exponents: range) -> FloatArray:
    """Return the smallest variance, and its multiples by powers of two with their two neighbours."""
    near = [least]
    for exponent in exponents:
        power = math.ldexp(least, exponent)
        near += [float(np.nextafter(power, 0)), power, float(np.nextafter(power, np.inf))]
    return np.array(near)


@pytest.mark.parametrize("least", [1.0, 0.1, 3.0, 0.3, 7.1, 1e-300, 1e-310, 1.9999999999999998])
@pytest.mark.parametrize("exponents", [range(1, 4), range(1, 40, 3)], ids=["few", "many"])
def test_groups_are_exact_at_powers_of_two_and_one_ulp_off(least: float, exponents: range) -> None:
    variances = around_powers(least, exponents)
    assert found_groups(variances) == reference_groups(variances)


@pytest.mark.parametrize("least", [1.0, 0.1, 3.0])
def test_a_power_of_two_opens_a_group_and_one_ulp_less_does_not(least: float) -> None:
    below, exactly = float(np.nextafter(2 * least, 0)), 2 * least
    assert found_groups(np.array([least, below, exactly])) == [[0, 1], [2]]


@given(st.lists(st.floats(1e-3, 1e3) | st.integers(-9, 9).map(lambda k: 2.0**k), min_size=1, max_size=40))
def test_groups_agree_with_exact_arithmetic(variances: list[float]) -> None:
    values = np.array(variances)
    assert found_groups(values) == reference_groups(values)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=60), st.sampled_from([0.1, 3.0, 1.0]))
def test_exact_powers_of_two_are_grouped_by_their_exponent(exponents: list[int], least: float) -> None:
    values = np.array([math.ldexp(least, k) for k in exponents])
    expected = [[i for i, k in enumerate(exponents) if k == level] for level in sorted(set(exponents))]
    assert found_groups(values) == expected


def test_groups_span_all_of_double_precision() -> None:
    values = np.array([5e-324, 1e-323, 1.5, 1.7e308])
    assert found_groups(values) == reference_groups(values) == [[0], [1], [2], [3]]


def test_groups_of_many_arms_are_complete_and_in_order() -> None:
    values = np.exp(np.random.default_rng(0).uniform(-9, 9, 100_000))
    groups = variance_groups(values)
    assert np.sort(np.concatenate(groups)).tolist() == list(range(len(values)))
    for group, above in pairwise(groups):
        assert (np.diff(group) > 0).all()
        assert values[group].max() < values[above].min()


# --- the arm sets ---------------------------------------------------------------------------------

variance_lists = st.lists(
    st.floats(0.1, 10.0) | st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0, 8.0]), min_size=2, max_size=40
)


@given(variance_lists, st.integers(1, 4))
def test_more_and_less_split_the_arms_by_the_size_of_their_group(variances: list[float], m: int) -> None:
    m = min(m, len(variances))
    shape = sl.heterogeneity(problem(variances, m))
    groups = reference_groups(np.array(variances))
    assert [group.tolist() for group in shape.groups] == groups
    assert shape.more.tolist() == sorted(arm for group in groups if len(group) > 2 * m for arm in group)
    assert shape.less.tolist() == sorted(arm for group in groups if len(group) <= 2 * m for arm in group)


@given(variance_lists, st.integers(1, 4))
def test_reduced_keeps_small_groups_whole_and_2m_of_each_large_one(variances: list[float], m: int) -> None:
    m = min(m, len(variances))
    shape = sl.heterogeneity(problem(variances, m))
    reduced = set(shape.reduced.tolist())
    assert len(reduced) == len(shape.reduced)
    assert [len(reduced & set(group.tolist())) for group in shape.groups] == [
        min(len(group), 2 * m) for group in shape.groups
    ]
    expected = reference_entropy(np.array(variances)[shape.reduced])
    assert shape.entropy_reduced == pytest.approx(expected, rel=1e-12, abs=1e-14)


@given(variance_lists, st.integers(1, 4))
def test_largest_are_the_2m_noisiest_of_the_reduced(variances: list[float], m: int) -> None:
    m = min(m, len(variances))
    shape = sl.heterogeneity(problem(variances, m))
    values = np.array(variances)
    assert set(shape.largest.tolist()) <= set(shape.reduced.tolist())
    falling = sorted(values[shape.reduced], reverse=True)[: 2 * m]
    assert sorted(values[shape.largest], reverse=True) == falling
    assert len(set(shape.largest.tolist())) == len(shape.largest)


def most_entropy(variances: FloatArray, m: int) -> float:
    """Return the largest entropy over every choice of 2m arms from each large group."""
    groups = reference_groups(variances)
    choices = [combinations(g, 2 * m) if len(g) > 2 * m else iter([tuple(g)]) for g in groups]
    return max(reference_entropy(variances[list(sum(chosen, ()))]) for chosen in product(*choices))


def several_groups(seed: int) -> tuple[FloatArray, int]:
    """Return a small problem: one to three groups, most larger than 2m, their variances spread unevenly."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 3))
    exponents = rng.choice(6, size=rng.integers(1, 5 - m), replace=False)
    parts = []
    for exponent in exponents:
        within = rng.random(2 * m + rng.integers(0, 4)) ** rng.choice([0.2, 1.0, 5.0])
        parts.append(2.0**exponent * (1 + 0.999 * within))
    return rng.permutation(np.concatenate([[1.0], *parts])), m


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 300, 50)], ids=str)
def test_reduced_truly_maximises_the_entropy(seeds: range) -> None:
    for seed in seeds:
        variances, m = several_groups(seed)
        found = sl.heterogeneity(problem(variances, m)).entropy_reduced
        assert found == pytest.approx(most_entropy(variances, m), rel=1e-13, abs=1e-15), f"seed {seed}"


def test_the_brute_force_cases_have_several_large_groups() -> None:
    n_large = [
        sum(len(group) > 2 * m for group in reference_groups(variances))
        for variances, m in map(several_groups, range(300))
    ]
    assert sum(n >= 2 for n in n_large) >= 100


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(
    "variances",
    [
        [1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0],
        [1.0] * 4 + [float(np.nextafter(1, 2))] * 4,
        [1.0, 1.0 + 1e-12, 1.0 + 2e-12, 1.0 + 3e-12, 1.0 + 4e-12, 64.0, 64.0 + 1e-10, 65.0],
        [1.0, 1.1, 1.2, 1.3, 1.9, 1024.0, 1030.0, 1900.0, 2000.0, 2040.0],
    ],
    ids=["ties", "one ulp apart", "close", "far apart"],
)
def test_reduced_maximises_the_entropy_in_awkward_cases(variances: list[float], m: int) -> None:
    found = sl.heterogeneity(problem(variances, m)).entropy_reduced
    assert found == pytest.approx(most_entropy(np.array(variances), m), rel=1e-13)


def test_reduced_copes_with_variances_hundreds_of_magnitudes_apart() -> None:
    variances = np.array([1e-90] * 3 + [1.5e-90] * 2 + [1e90, 1.25e90, 1.5e90, 1.75e90])
    shape = sl.heterogeneity(problem(variances, m=1, epsilon=1e60))
    assert shape.entropy_reduced == pytest.approx(most_entropy(variances, 1), rel=1e-13)


def test_a_homogeneous_problem_is_all_more() -> None:
    shape = sl.heterogeneity(problem([2.5] * 9, m=3))
    assert (shape.more.tolist(), shape.less.tolist()) == (list(range(9)), [])
    assert len(shape.reduced) == len(shape.largest) == 6
    assert shape.entropy_reduced == pytest.approx(math.log(6), rel=1e-14)


def test_one_arm_per_group_is_all_less() -> None:
    shape = sl.heterogeneity(problem([2.0**k for k in range(9)], m=3))
    assert (shape.more.tolist(), shape.less.tolist()) == ([], list(range(9)))
    assert shape.reduced.tolist() == list(range(9))
    assert shape.largest.tolist() == [3, 4, 5, 6, 7, 8]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.floats(1.0, 1.99), st.integers(1, 12)), min_size=1, max_size=30
    ),
    st.integers(2, 8),
)
@settings(max_examples=300)
def test_entropy_of_the_reduced_set_obeys_lemma_4_2(parts: list[tuple[int, float, int]], m: int) -> None:
    variances = [2.0**exponent * within for exponent, within, copies in parts for _ in range(copies)]
    m = max(2, min(m, len(variances)))
    if len(variances) >= m:
        shape = sl.heterogeneity(problem(variances, m, epsilon=1.0))
        assert shape.entropy_reduced <= 8 * math.log(m)  # [ZT22] Lemma 4.2


def test_lemma_4_2_holds_with_2m_arms_in_every_group() -> None:
    for m in (2, 3, 10):
        variances = np.repeat(2.0 ** np.arange(40), 2 * m)
        assert sl.heterogeneity(problem(variances, m, epsilon=1.0)).entropy_reduced <= 8 * math.log(m)


# --- complexity -----------------------------------------------------------------------------------


@given(variance_lists, st.integers(1, 4), st.floats(0.01, 10), st.floats(1e-9, 0.5))
def test_the_three_terms_are_those_of_theorem_4_1(
    variances: list[float], m: int, epsilon: float, delta: float
) -> None:
    m = min(m, len(variances))
    asked = problem(variances, m, epsilon, delta)
    groups, terms = reference_groups(np.array(variances)), sl.complexity(asked)
    more = math.fsum(variances[arm] for group in groups if len(group) > 2 * m for arm in group)
    less = math.fsum(variances[arm] for group in groups if len(group) <= 2 * m for arm in group)
    entropy_reduced = sl.heterogeneity(asked).entropy_reduced
    assert terms.confidence == pytest.approx(math.fsum(variances) / epsilon**2 * math.log(1 / delta))
    assert terms.homogeneous == pytest.approx(more / epsilon**2 * math.log(m))
    assert terms.heterogeneous == pytest.approx(less / epsilon**2 * entropy_reduced, rel=1e-11)
    assert terms.total == pytest.approx(terms.confidence + terms.homogeneous + terms.heterogeneous)


@given(variance_lists, st.integers(1, 4), st.randoms(use_true_random=False))
def test_complexity_does_not_depend_on_the_order_of_arms(variances: list[float], m: int, random: Any) -> None:
    m = min(m, len(variances))
    shuffled = list(variances)
    random.shuffle(shuffled)
    one, other = sl.complexity(problem(variances, m)), sl.complexity(problem(shuffled, m))
    for term in ("confidence", "homogeneous", "heterogeneous", "total"):
        assert getattr(one, term) == pytest.approx(getattr(other, term), rel=1e-11, abs=1e-12)


def test_complexity_of_the_homogeneous_case() -> None:
    terms = sl.complexity(problem([2.0] * 10, m=4, epsilon=0.5, delta=0.01))
    assert terms.total == pytest.approx(10 * 2.0 / 0.25 * math.log(4 / 0.01))
    assert terms.heterogeneous == 0.0


@pytest.mark.parametrize("epsilon", [1e-45, 1e90])
def test_complexity_does_not_mind_the_unit_of_the_rewards(epsilon: float) -> None:
    terms = sl.complexity(problem([1e-90, 3e-90, 9e-90], m=1, epsilon=epsilon))
    assert math.isfinite(terms.total)


def test_groups_of_many_like_arms_are_put_together_exactly() -> None:
    """Whole blocks of one variance, apart and adjoining, and blocks that mix two."""
    block = 1 << 14
    levels = [1.0, 4.0, 4.0, 1.0, 1.0, 16.0]
    variances = np.repeat(levels, block)
    variances[5 * block + 3 :: 7] = 4.0
    groups = variance_groups(np.append(variances, [1.0, 4.0]))
    expected = [np.flatnonzero(np.append(variances, [1.0, 4.0]) == level) for level in (1.0, 4.0, 16.0)]
    assert [group.tolist() for group in groups] == [group.tolist() for group in expected]
