"""The cut certificate against quadrature and brute force: nothing here uses its closed forms twice."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from shortlist.certificates.cut import (
    ABOVE,
    BELOW,
    PAIRS,
    PRIOR_ABOVE,
    PRIOR_BELOW,
    Prices,
    deviation_for,
    least_deviation,
    log_evidence,
)

PRIORS = (PRIOR_BELOW, PRIOR_ABOVE)
INFORMATION = st.floats(0.9, 300.0)
PRICES = st.builds(
    lambda m, others, delta: (Prices.of(m + others, m, delta), m, others, delta),
    st.integers(1, 1000),
    st.integers(1, 10**6),
    st.sampled_from([1e-6, 0.01, 0.05, 0.3, 0.9]),
)


def evidence(deviation: float, information: float, prior: float) -> float:
    """The mixture itself: tilts are absolute values of a normal variable with this prior precision."""

    def integrand(tilt: float) -> float:
        density = 2 * math.sqrt(prior / (2 * math.pi)) * math.exp(-prior * tilt**2 / 2)
        return density * math.exp(information * (tilt * deviation - tilt**2 / 2))

    middle = max(0.0, information * deviation / (information + prior))
    width = 12 / math.sqrt(information + prior)
    return float(quad(integrand, max(0.0, middle - width), middle + width, epsabs=0, epsrel=1e-11)[0])


def log_of(deviation: float, information: float, prior: float) -> float:
    return float(log_evidence(np.array(deviation), np.array(information), prior))


def test_weights_add_up_to_one() -> None:
    assert math.fsum([BELOW, ABOVE, PAIRS]) == 1.0
    assert min(BELOW, ABOVE, PAIRS) > 0


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("information", [1.0, 3.7, 20.0, 90.0])
@pytest.mark.parametrize("times", [1.0, 1.5, 3.0, 6.0])
def test_evidence_is_the_mixture(information: float, prior: float, times: float) -> None:
    deviation = times / math.sqrt(information)
    expected = math.log(evidence(deviation, information, prior))
    assert log_of(deviation, information, prior) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("information", [1.0, 10.0, 60.0])
def test_gaussian_evidence_is_one_on_average(information: float, prior: float) -> None:
    """What is counted, and what is not: together their expectation is 1, so what is counted has less."""
    scale = 1 / math.sqrt(information)

    def density(deviation: float) -> float:
        return math.exp(-((deviation / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))

    def counted(deviation: float) -> float:
        logs = -((deviation / scale) ** 2) / 2 + log_of(deviation, information, prior)
        return math.exp(logs) / (scale * math.sqrt(2 * math.pi))

    def whole(deviation: float) -> float:
        return density(deviation) * evidence(deviation, information, prior)

    far = 10 * scale * math.sqrt(1 + information / prior)
    upper = quad(counted, scale, far, epsrel=1e-9, limit=200)[0]
    lower = quad(whole, -12 * scale, scale, epsrel=1e-9, limit=200)[0]
    assert upper + lower == pytest.approx(1.0, abs=1e-6)
    assert 0.1 < upper < 1.0


@given(information=INFORMATION, times=st.floats(-8.0, 8.0), prior=st.sampled_from(PRIORS))
def test_deviations_below_the_least_count_as_nothing(information: float, times: float, prior: float) -> None:
    deviation = times / math.sqrt(information)
    is_counted = deviation >= 1 / math.sqrt(information)
    assert (log_of(deviation, information, prior) > -math.inf) == is_counted


@given(
    information=INFORMATION,
    more=st.floats(1.0, 50.0),
    times=st.floats(1.0, 9.0),
    prior=st.sampled_from(PRIORS),
)
def test_counted_evidence_rises_with_information(
    information: float, more: float, times: float, prior: float
) -> None:
    """So an arm may be taken to stand on the rung below its information."""
    deviation = times * float(least_deviation(np.array(information)))
    assert log_of(deviation, information * more, prior) >= log_of(deviation, information, prior) - 1e-12


def test_below_the_least_deviation_it_need_not_rise() -> None:
    assert evidence(0.3, 4.0, 1.0) < evidence(0.3, 1.0, 1.0)


@given(information=INFORMATION, one=st.floats(-5, 5), other=st.floats(-5, 5), prior=st.sampled_from(PRIORS))
def test_evidence_rises_with_the_deviation(
    information: float, one: float, other: float, prior: float
) -> None:
    low, high = sorted([one, other])
    assert log_of(low, information, prior) <= log_of(high, information, prior)


@given(information=INFORMATION, target=st.floats(-3.0, 40.0), prior=st.sampled_from(PRIORS))
def test_the_deviation_is_sufficient_and_hardly_larger_than_it_must_be(
    information: float, target: float, prior: float
) -> None:
    found = float(deviation_for(np.array(target), np.array(information), prior))
    assert log_of(found, information, prior) >= target
    assert log_of(found * (1 - 1e-9), information, prior) < target


@pytest.mark.parametrize("rule", range(4))
def test_the_sum_of_the_proof_stays_at_most_one_on_average_whatever_is_pulled_when(rule: int) -> None:
    """All sequences of rewards +1 and -1, from three arms, under rules that look at the past."""
    n, m, best = 3, 2, (0, 1)

    def total(sums: list[int], pulls: list[int]) -> float:
        below = {b: evidence(-sums[b] / pulls[b], pulls[b], PRIOR_BELOW) if pulls[b] else 1.0 for b in best}
        above = evidence(sums[2] / pulls[2], pulls[2], PRIOR_ABOVE) if pulls[2] else 1.0
        pairs = sum(PAIRS / (m * (n - m)) * below[b] * above for b in best)
        return sum(BELOW / m * below[b] for b in best) + ABOVE / (n - m) * above + pairs

    def arms(sums: list[int], left: int) -> list[int]:
        if rule == 0:
            return [left % 3]
        if rule == 1:
            return [int(np.argmax(sums))]
        if rule == 2:
            return [0, 2] if sums[2] >= sums[0] else [1]
        return [2] if sums[2] > 0 else [0, 1]

    def expected(sums: list[int], pulls: list[int], left: int) -> float:
        if not left:
            return total(sums, pulls)
        pulled = arms(sums, left)
        after = [pulls[arm] + (arm in pulled) for arm in range(n)]
        values = []
        for rewards in product([-1, 1], repeat=len(pulled)):
            gained = dict(zip(pulled, rewards, strict=True))
            values.append(expected([sums[arm] + gained.get(arm, 0) for arm in range(n)], after, left - 1))
        return math.fsum(values) / len(values)

    assert total([0] * n, [0] * n) == pytest.approx(1.0, rel=1e-14)
    assert 0.3 < expected([0] * n, [0] * n, 5) <= 1.0


# Prices


@given(given=PRICES, p=st.floats(-30, 5), q=st.floats(-30, 5))
def test_relative_logarithms_are_the_sum_of_the_proof(
    given: tuple[Prices, int, int, float], p: float, q: float
) -> None:
    """Evidence of one pair alone, weighed as in the proof, times delta."""
    prices, m, others, delta = given
    below, above = math.exp(p + prices.below), math.exp(q + prices.above)
    total = BELOW / m * below + ABOVE / others * above + PAIRS / (m * others) * below * above
    relative = math.exp(p) + math.exp(q) + math.exp(prices.discount + p + q)
    assert total * delta == pytest.approx(relative, rel=1e-9)


@given(given=PRICES, q=st.floats(-60, 3))
def test_what_is_still_needed_is_just_enough(given: tuple[Prices, int, int, float], q: float) -> None:
    prices = given[0]
    needed = float(prices.still_needed(np.array(q)))
    if q >= 0:
        assert needed == -math.inf
        return
    total = math.exp(needed) + math.exp(q) + math.exp(prices.discount + needed + q)
    assert total == pytest.approx(1.0, rel=1e-9)
    assert needed <= 0


def test_without_evidence_above_all_is_needed_below() -> None:
    assert Prices.of(5, 2, 0.1).still_needed(np.array([-np.inf, 0.0, np.inf])).tolist() == [
        0,
        -np.inf,
        -np.inf,
    ]


def is_settled(prices: Prices, information: float, cuts: np.ndarray) -> bool:
    """Whether equal means are settled at these cuts exactly."""
    with np.errstate(over="ignore"):
        p = log_evidence(cuts, np.array(information), PRIOR_BELOW) - prices.below
        q = log_evidence(1 - cuts, np.array(information), PRIOR_ABOVE) - prices.above
        return bool((np.exp(p) + np.exp(q) + np.exp(prices.discount + p + q) >= 1).all())


@given(given=PRICES)
@settings(max_examples=25, deadline=None)
def test_enough_is_enough_at_every_cut_and_hardly_more(given: tuple[Prices, int, int, float]) -> None:
    prices = given[0]
    enough = prices.enough()
    cuts = np.linspace(-1.0, 2.0, 30_001)
    for more in (1.0, 1 - 1e-12, 1.01, 1.3, 3.0, 40.0):
        assert is_settled(prices, enough * more, cuts)
    assert not is_settled(prices, enough * 0.99, cuts)


@pytest.mark.parametrize(
    ("n", "m", "delta", "x"), [(2, 1, 0.05, 23.34), (100, 1, 0.05, 40.6), (20, 3, 0.05, 38.7)]
)
def test_enough_is_as_it_was(n: int, m: int, delta: float, x: float) -> None:
    assert Prices.of(n, m, delta).enough() == pytest.approx(x, rel=0.01)
