"""How probably an arm is left out of a random set whose chance is the product of its variances."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from shortlist.arrays import FloatArray
from shortlist.bounds.classes import Classes
from shortlist.bounds.paper_bound import left_out
from tests.bounds.brute import classes, one_class


def exactly(variances: list[float], size: int) -> dict[float, Fraction]:
    """Return the chance to be left out by variance, counted over all sets without rounding."""
    weights = [Fraction(s) for s in sorted(variances)]
    chances = {
        chosen: math.prod(weights[i] for i in chosen) for chosen in combinations(range(len(weights)), size)
    }
    total = sum(chances.values())
    return {
        float(weight): Fraction(sum(p for chosen, p in chances.items() if arm not in chosen)) / total
        for arm, weight in enumerate(weights)
    }


def assert_just_below(found: FloatArray, exact: list[float], tolerance: float = 1e-10) -> None:
    """Never too large, and too small by hardly anything."""
    assert (found <= np.array(exact) * (1 + 1e-15)).all()
    assert found == pytest.approx(exact, rel=0, abs=tolerance)


@given(st.lists(st.sampled_from([0.3, 1.0, 2.0]) | st.floats(0.01, 100), min_size=1, max_size=9), st.data())
@settings(max_examples=60)
def test_it_is_what_counting_all_sets_gives(variances: list[float], data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(variances)))
    assert_just_below(left_out(classes(variances), size), list(map(float, exactly(variances, size).values())))


@pytest.mark.parametrize("size", range(10))
def test_all_sizes_of_sets_of_nine_arms(size: int) -> None:
    variances = [0.1, 0.7, 0.7, 1.0, 1.5, 1.5, 1.5, 8.0, 30.0]
    assert_just_below(left_out(classes(variances), size), list(map(float, exactly(variances, size).values())))


@pytest.mark.parametrize("size", range(1, 8))
def test_ratios_may_be_extreme(size: int) -> None:
    variances = [1e-60, 1e-60, 1e-59, 1.0, 1.5, 1e59, 1e60, 1e60]
    assert_just_below(left_out(classes(variances), size), list(map(float, exactly(variances, size).values())))


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=60), st.data())
def test_the_arms_left_out_are_as_many_as_they_should_be(variances: list[float], data: st.DataObject) -> None:
    arms, size = classes(variances), data.draw(st.integers(0, len(variances)))
    assert float((arms.counts * left_out(arms, size)).sum()) == pytest.approx(len(variances) - size, abs=1e-9)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=60), st.data())
def test_noisier_arms_are_left_out_less_often(variances: list[float], data: st.DataObject) -> None:
    found = left_out(classes(variances), data.draw(st.integers(0, len(variances))))
    assert (np.diff(found) <= 1e-10).all()
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize(("n", "size"), [(2, 1), (10, 3), (1000, 500), (10**6, 1000), (10**9, 10**5)])
def test_equal_arms_are_left_out_equally(n: int, size: int) -> None:
    assert left_out(one_class(0.3, n), size)[0] == pytest.approx(1 - size / n, rel=1e-9)


def test_no_arm_is_left_out_of_all_and_all_are_left_out_of_none() -> None:
    arms = classes([1.0, 2.0, 3.0])
    assert left_out(arms, 0).tolist() == [1.0] * 3
    assert left_out(arms, 3).tolist() == [0.0] * 3


@given(st.floats(1e-50, 1e50))
def test_only_ratios_of_variances_count(scale: float) -> None:
    variances = np.array([0.2, 0.9, 1.0, 3.0, 8.0, 9.0])
    scaled = Classes.listed(variances * scale, np.ones(6))
    assert left_out(scaled, 3) == pytest.approx(left_out(Classes.listed(variances, np.ones(6)), 3), abs=1e-10)


# --- many arms ------------------------------------------------------------------------------------


def one_by_one(variances: FloatArray, size: int) -> FloatArray:
    """Return the chances to be left out by raising the size from 0.

    With e_k the sum over sets of k arms, sets of k arms with arm i have the sum w_i times that of sets
    of k - 1 arms without it; and k e_k is the sum of that over i.
    """
    out = np.ones(len(variances))
    for k in range(1, size + 1):
        kept = variances * out
        out = 1 - k * kept / kept.sum()
    return out


def test_three_thousand_different_arms() -> None:
    variances = np.unique(np.exp(np.random.default_rng(0).uniform(-1, 1, 3000)))
    found = left_out(Classes.listed(variances, np.ones(3000)), 50)
    assert found == pytest.approx(one_by_one(variances, 50), abs=1e-10)


def log_sums(logs: list[float], counts: list[float], size: int) -> float:
    """Return the logarithm of the sum, over all sets of so many arms, of the products of their variances."""
    ways = np.full(size + 1, -np.inf)
    ways[0] = 0.0
    taken = np.arange(size + 1)
    others = taken[:, None] - taken  # row k, column j: j arms of this kind and k - j of those before
    for log, count in zip(logs, counts, strict=True):
        own = (
            gammaln(count + 1) - gammaln(taken + 1) - gammaln(np.maximum(count - taken, 0) + 1) + taken * log
        )
        own = np.where(taken <= count, own, -np.inf)
        ways = logsumexp(np.where(others >= 0, ways[others] + own, -np.inf), axis=1)
    return float(ways[size])


@pytest.mark.parametrize("size", [7, 150, 1000])
def test_a_million_arms_of_four_kinds(size: int) -> None:
    variances, counts = [0.1, 1.0, 2.0, 50.0], [900_000.0, 90_000.0, 9_900.0, 100.0]
    logs = [math.log(s) for s in variances]
    whole = log_sums(logs, counts, size)
    found = left_out(Classes.listed(np.array(variances), np.array(counts)), size)
    for place in range(4):
        fewer = [count - (kind == place) for kind, count in enumerate(counts)]
        assert found[place] == pytest.approx(math.exp(log_sums(logs, fewer, size) - whole), abs=1e-7)


def exactly_by_class(variances: list[int], counts: list[int], size: int) -> Fraction:
    """Return the sum over all sets of so many arms of the products of their variances, as a whole number."""
    ways = [1] + [0] * size
    for variance, count in zip(variances, counts, strict=True):
        own = [math.comb(count, k) * variance**k for k in range(size + 1)]
        ways = [sum(ways[j] * own[k - j] for j in range(k + 1)) for k in range(size + 1)]
    return Fraction(ways[size])


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_more_arms_than_could_be_listed(size: int) -> None:
    variances, counts = [1, 2**50, 2**100, 2**146], [2**144, 2**90, 2**44, 3]
    arms = Classes.listed(np.array(variances, dtype=float), np.array(counts, dtype=float))
    whole = exactly_by_class(variances, counts, size)
    expected = []
    for place in range(4):
        fewer = [count - (kind == place) for kind, count in enumerate(counts)]
        expected.append(float(exactly_by_class(variances, fewer, size) / whole))
    assert_just_below(left_out(arms, size), expected)
