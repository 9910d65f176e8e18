"""The bound from swaps: against all exchanges of an arm that is in for one that is out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.bounds.classes import Classes
from shortlist.bounds.swap import swaps
from tests.bounds.brute import classes, margin, one_class, random_variances, swap_minimum

SIZES = [(n, side) for n in range(2, 8) for side in range(1, n // 2 + 1)]


def by_hand(groups: list[tuple[int, int, float]], delta: float) -> float:
    """Return the bound for sets of arms, given as (arms in, arms out, least variance)."""
    weight = sum(n_in * s for n_in, _, s in groups)
    shares = [s / (n_out * weight) for n_in, n_out, s in groups for _ in range(n_in * n_out)]  # of all pairs
    assert sum(shares) == pytest.approx(1.0)
    entropy = -sum(share * math.log(share) for share in shares)
    return 2 * (1 - delta) * weight * (margin(delta) + entropy)


@pytest.mark.parametrize(("n", "side"), SIZES)
def test_it_is_no_more_than_all_exchanges_demand(n: int, side: int) -> None:
    rng = np.random.default_rng(10 * n + side)
    for delta in (0.01, 0.1, 0.3, 0.45):
        variances = random_variances(rng, n).tolist()
        assert (
            swaps(classes(variances), side, delta) <= swap_minimum(variances, side, delta) * (1 + 1e-6) + 1e-8
        )


@pytest.mark.parametrize(
    "variances", [[1.0, 1.0, 1.0, 5.0, 5.0, 5.0], [1.0] * 3 + [1.1] * 3, [1.0] * 5 + [2.0] * 2]
)
def test_it_is_no_more_than_they_demand_where_groups_are_odd(variances: list[float]) -> None:
    for side, delta in ((1, 0.05), (2, 0.05), (3, 0.05), (3, 0.4)):
        assert (
            swaps(classes(variances), side, delta) <= swap_minimum(variances, side, delta) * (1 + 1e-6) + 1e-8
        )


@pytest.mark.parametrize(("n", "side"), SIZES)
def test_with_equal_arms_it_is_all_that_exchanges_demand(n: int, side: int) -> None:
    for delta in (0.01, 0.3):
        found = swaps(one_class(1.3, n), side, delta)
        assert found == pytest.approx(swap_minimum([1.3] * n, side, delta), rel=1e-6)
        assert found == pytest.approx(by_hand([(side, n - side, 1.3)], delta), rel=1e-12)


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_two_kinds_of_arms_are_two_sets(side: int) -> None:
    """Four arms of variance 9 and four of 1: exchanges within either kind, the noisier first."""
    found = swaps(classes([9.0] * 4 + [1.0] * 4), side, 0.05)
    first = min(side, 2)
    sets = [(first, 4 - first if first == side else 2, 9.0)]
    if side > 2:
        sets.append((side - 2, 4 - (side - 2), 1.0))
    assert found >= by_hand(sets, 0.05) * (1 - 1e-12)
    assert found >= by_hand([(side, 8 - side, 1.0)], 0.05) * (1 - 1e-12)


def test_other_kinds_of_arms_are_other_sets() -> None:
    three = swaps(classes([9.0] * 4 + [2.5] * 4 + [1.0] * 4), 6, 0.05)
    assert three >= by_hand([(2, 2, 9.0), (2, 2, 2.5), (2, 2, 1.0)], 0.05) * (1 - 1e-12)
    close = swaps(classes([1.4] * 4 + [1.0] * 4), 4, 0.05)
    assert close >= by_hand([(2, 2, 1.4), (2, 2, 1.0)], 0.05) * (1 - 1e-12)
    assert swaps(classes([1.0, 500.0]), 1, 0.05) == pytest.approx(by_hand([(1, 1, 1.0)], 0.05), rel=1e-12)


def test_arms_of_almost_equal_variance_are_one_set() -> None:
    found = swaps(classes([1.0, 1.01, 1.02, 1.03, 1.04, 1.045]), 3, 0.05)
    assert found >= by_hand([(3, 3, 1.0)], 0.05) * (1 - 1e-12)
    assert found <= by_hand([(3, 3, 1.045)], 0.05)


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=12), st.data(), st.floats(1e-9, 0.45))
def test_it_does_not_rise_with_delta(variances: list[float], data: st.DataObject, delta: float) -> None:
    side = data.draw(st.integers(1, len(variances) // 2))
    more = data.draw(st.floats(delta, 0.499))
    assert swaps(classes(variances), side, more) <= swaps(classes(variances), side, delta) * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-100, 2.0**20, 1e99])
def test_the_scale_of_variances_is_a_factor(scale: float) -> None:
    variances = [1.0, 1.03, 3.3, 7.1, 7.12]
    scaled = swaps(classes([scale * s for s in variances]), 2, 0.05)
    assert scaled / scale == pytest.approx(swaps(classes(variances), 2, 0.05), rel=1e-11)


@pytest.mark.parametrize("count", [1e6, 2.0**144])
def test_more_arms_than_could_be_listed(count: float) -> None:
    found = swaps(one_class(2.0, count), int(count) // 2, 0.05)
    assert found == pytest.approx(2 * 0.95 * count * (margin(0.05) + 2 * math.log(count / 2)), rel=1e-12)


def test_thousands_of_different_variances_are_put_together() -> None:
    variances = np.unique(np.random.default_rng(0).uniform(1.0, 1.04, 5000))
    arms = Classes.listed(variances, np.ones(len(variances)))
    found = swaps(arms, 2500, 0.05)
    assert found >= by_hand_many(2500, 2500, float(variances[0])) * (1 - 1e-12)
    assert found <= by_hand_many(2500, 2500, float(variances[-1]))


def by_hand_many(n_in: int, n_out: int, variance: float) -> float:
    return 2 * 0.95 * n_in * variance * (margin(0.05) + math.log(n_in * n_out))
