"""The pairwise certificate, against high precision, quadrature, enumeration and exact probabilities."""

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

import shortlist as sl
from shortlist.certificates.pairwise import TILTS, WEIGHTS, enough, log_evidence, settling_lead
from shortlist.strategies.level_course import Course, course
from tests.questions import known

CHANCES = {0.5: "0.4", 0.75: "0.25", 1.2: "0.2", 2.0: "0.15"}

levels = st.floats(1e-3, 300.0)
fractions = st.floats(0.05, 1.0)
log_prices = st.floats(0.01, 200.0)


def exact_log_evidence(lead: float, level: float, spread: float) -> Decimal:
    """The logarithm of the evidence to forty digits."""
    with localcontext() as context:
        context.prec = 40
        G, H = Decimal(lead) + 2 * Decimal(level), Decimal(spread)
        terms = [
            Decimal(weight) * (Decimal(str(c)) * G - Decimal(str(c)) ** 2 * H).exp()
            for c, weight in CHANCES.items()
        ]
        return sum(terms, start=Decimal(0)).ln()


def lead_of(level: float, spread: float, log_price: float) -> float:
    return float(settling_lead(np.array([level]), np.array([spread]), log_price)[0])


def evidence(lead: float, level: float, spread: float) -> float:
    return float(np.exp(log_evidence(np.array(lead), np.array(level), np.array(spread))))


def test_weights_are_a_distribution_over_positive_tilts() -> None:
    assert sum(map(Decimal, CHANCES.values())) == 1
    assert dict(zip(TILTS.tolist(), WEIGHTS.tolist(), strict=True)) == {
        c: float(weight) for c, weight in CHANCES.items()
    }
    assert (TILTS > 0).all()
    assert evidence(0.0, 0.0, 0.0) == pytest.approx(1.0, abs=1e-15)  # it starts at 1


@given(lead=st.floats(-500.0, 500.0), level=levels, fraction=fractions)
def test_evidence_is_a_mixture_of_exponentials(lead: float, level: float, fraction: float) -> None:
    spread = 2 * level * fraction
    found = float(log_evidence(np.array(lead), np.array(level), np.array(spread)))
    size = 1 + abs(lead) + level
    assert found == pytest.approx(float(exact_log_evidence(lead, level, spread)), abs=1e-14 * size)


@given(level=levels, fraction=fractions, log_price=log_prices)
def test_the_settling_lead_is_the_root_and_never_below_it(
    level: float, fraction: float, log_price: float
) -> None:
    spread = 2 * level * fraction
    lead = lead_of(level, spread, log_price)
    size = 1e-13 * (1 + abs(lead) + level + log_price)
    assert exact_log_evidence(lead + size, level, spread) >= Decimal(log_price)
    low, high = lead - 100.0, lead + 100.0
    for _ in range(60):
        middle = (low + high) / 2
        is_enough = exact_log_evidence(middle, level, spread) >= Decimal(log_price)
        low, high = (low, middle) if is_enough else (middle, high)
    assert -size <= lead - high <= 1e-9 * (1 + abs(high))


@given(level=levels, fraction=fractions, log_price=log_prices, factor=st.floats(1.001, 2.0))
def test_more_spread_or_a_higher_price_take_a_larger_lead(
    level: float, fraction: float, log_price: float, factor: float
) -> None:
    spread = 2 * level * fraction
    lead = lead_of(level, spread, log_price)
    assert lead_of(level, spread * factor, log_price) > lead
    assert lead_of(level, spread, log_price * factor) > lead
    assert lead_of(level * factor, spread, log_price) < lead


def test_leads_of_many_pairs_are_found_together() -> None:
    x = np.geomspace(0.1, 30.0, 17)[:, None, None]
    spreads = x * (1.05 ** -np.arange(7)[:, None] + 1.05 ** -np.arange(7))
    together = settling_lead(np.broadcast_to(x, spreads.shape), spreads, 9.0)
    for k, a, b in product(range(17), range(7), range(7)):
        alone = lead_of(float(x[k, 0, 0]), float(spreads[k, a, b]), 9.0)
        assert together[k, a, b] == pytest.approx(alone, abs=1e-11)


@given(log_price=log_prices)
def test_enough_is_the_least_level_at_which_the_larger_score_settles_every_pair(log_price: float) -> None:
    last = enough(log_price)
    for factor in (1.0, 1.1, 3.0):
        assert exact_log_evidence(0.0, factor * last, 2 * factor * last) >= Decimal(log_price)
    assert lead_of(last, 2 * last, log_price) <= 0
    assert lead_of(last, 1.3 * last, log_price) < 0
    assert exact_log_evidence(0.0, last * (1 - 1e-7), 2 * last * (1 - 1e-7)) < Decimal(log_price)
    assert last <= 2 * (log_price + math.log(1 / 0.4)) * (1 + 1e-8)  # the tilt 1/2 alone pays by then


def mean_over_normal(lead: float, level: float, spread: float, drift: float, deviation: float) -> float:
    """The expected evidence when the lead moves by a normal amount on the way to this level and spread."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    moved = lead + drift + deviation * nodes
    terms = np.exp(log_evidence(moved, np.full(120, level), np.full(120, spread)))
    return float(weights @ terms / math.sqrt(2 * math.pi))


@pytest.mark.parametrize("lead", [-20.0, 0.0, 7.0])
@pytest.mark.parametrize("weight", [0.01, 0.5, 2.0])
@pytest.mark.parametrize("shares", [(1.0, 1.0), (1.0, 0.5), (0.3, 0.8)])
def test_evidence_is_a_martingale_at_a_gap_of_epsilon(
    lead: float, weight: float, shares: tuple[float, float]
) -> None:
    """Arm i beats j by epsilon: the lead of j moves by -2 weight, with variance twice the spread added."""
    added = weight * sum(shares)
    now = evidence(lead, 3.0, 5.0)
    after = mean_over_normal(lead, 3.0 + weight, 5.0 + added, -2 * weight, math.sqrt(2 * added))
    assert after == pytest.approx(now, rel=1e-9)
    wider = mean_over_normal(lead, 3.0 + weight, 5.0 + added, -2.2 * weight, math.sqrt(2 * added))
    quieter = mean_over_normal(lead, 3.0 + weight, 5.0 + added, -2 * weight, math.sqrt(1.8 * added))
    assert wider < now
    assert quieter < now
    closer = mean_over_normal(lead, 3.0 + weight, 5.0 + added, -1.8 * weight, math.sqrt(2 * added))
    noisier = mean_over_normal(lead, 3.0 + weight, 5.0 + added, -2 * weight, math.sqrt(2.2 * added))
    assert closer > now
    assert noisier > now


@pytest.mark.parametrize("pulls", [(1, 1), (2, 5), (7, 7), (30, 4)])
@pytest.mark.parametrize("variances", [(1.0, 1.0), (0.3, 4.0)])
@pytest.mark.parametrize("lead", [-5.0, 0.0, 3.0])
def test_evidence_is_a_supermartingale_for_two_point_rewards(
    lead: float, variances: tuple[float, float], pulls: tuple[int, int]
) -> None:
    """Every outcome of one batch of fair signs of each arm, i ahead by epsilon = 0.7 in truth."""
    epsilon, weight = 0.7, min(0.7**2 * t / (2 * s) for s, t in zip(variances, pulls, strict=True))
    spread = sum(weight**2 * 2 * s / (epsilon**2 * t) for s, t in zip(variances, pulls, strict=True))
    assert spread <= 2 * weight * (1 + 1e-12)
    deviations = [math.sqrt(s) for s in variances]
    expected = 0.0
    for a, b in product(range(pulls[0] + 1), range(pulls[1] + 1)):
        mean_i = epsilon + deviations[0] * (2 * a / pulls[0] - 1)
        mean_j = deviations[1] * (2 * b / pulls[1] - 1)
        chance = float(binom.pmf(a, pulls[0], 0.5) * binom.pmf(b, pulls[1], 0.5))
        moved = lead + 2 * weight * (mean_j - mean_i) / epsilon
        expected += chance * evidence(moved, 1.0 + weight, 1.5 + spread)
    now = evidence(lead, 1.0, 1.5)
    assert 0.5 * now < expected <= now * (1 + 1e-12)


def crossing_probability(plan: Course, arms: tuple[int, int]) -> float:
    """How probably a pair at a gap of epsilon is ever settled, by its lead's density from level to level."""
    step = 0.02
    grid = np.arange(-150.0, 60.0, step)
    density, crossed, spreads = np.zeros(0), 0.0, np.zeros(2)
    for k, weight in enumerate(plan.weights.tolist()):
        added = plan.spread_added(k, np.array(arms), plan.usual_batch(k, np.array(arms)))
        spreads += added
        scale = math.sqrt(2 * float(added.sum()))
        if k == 0:
            density = norm.pdf(grid, -2 * weight, scale)
        else:
            reach = math.ceil((2 * weight + 9 * scale) / step)
            kernel = norm.pdf(step * np.arange(-reach, reach + 1), -2 * weight, scale)
            density = np.convolve(density, kernel * step, mode="full")[reach:-reach]
        kinds = plan.kind(k, spreads)
        is_across = grid >= plan.leads[k, kinds[0], kinds[1]]
        crossed += float(density[is_across].sum()) * step
        density = np.where(is_across, 0.0, density)
    assert crossed + float(density.sum()) * step == pytest.approx(1.0, abs=2e-3)
    return crossed


@pytest.mark.parametrize(
    ("m", "delta", "variances", "arms"),
    [
        (1, 0.3, [1.0, 1.0], (0, 1)),
        (1, 0.05, [1.0] * 10, (0, 1)),
        (3, 0.3, [1.0] * 20, (0, 1)),
        (2, 0.1, [1.0, 9.0, 4.0, 1.0, 2.0], (0, 1)),
        (2, 0.1, [1.0, 9.0, 4.0, 1.0, 2.0], (0, 3)),
        (2, 0.1, [1.0, 9.0, 4.0, 1.0, 2.0], (2, 1)),
    ],
)
def test_a_pair_is_settled_falsely_as_rarely_as_its_price_says(
    m: int, delta: float, variances: list[float], arms: tuple[int, int]
) -> None:
    problem = sl.Problem(m=m, epsilon=0.05, delta=delta, variances=variances)
    allowed = delta / (m * (problem.n - m))
    found = crossing_probability(course(problem), arms)
    assert allowed / 8 <= found <= allowed


@pytest.mark.slow
@given(data=st.data(), n=st.integers(2, 80), delta=st.sampled_from([1e-6, 0.05, 0.3, 0.9]))
@settings(max_examples=25)
def test_a_course_charges_for_all_pairs_and_never_rounds_a_spread_down(
    data: st.DataObject, n: int, delta: float
) -> None:
    m = data.draw(st.integers(1, n - 1))
    one = data.draw(st.booleans())
    variances = [2.5] * n if one else data.draw(st.lists(st.floats(0.01, 100.0), min_size=n, max_size=n))
    noise = data.draw(st.sampled_from(["gaussian", "sub-gaussian"]))
    problem = known(m=m, epsilon=0.4, delta=delta, variances=variances, noise=noise)
    plan = course(problem)
    is_swapping = noise == "gaussian" and len(set(variances)) == 1 and n <= 64
    assert plan.is_swapping == is_swapping
    assert plan.delta_pairs + plan.delta_swaps == pytest.approx(delta, rel=1e-15)
    log_price = math.log(m * (n - m) / plan.delta_pairs)
    classes = plan.leads.shape[-1]
    assert (np.diff(plan.levels) > 0).all()
    assert plan.weights.sum() == pytest.approx(float(plan.levels[-1]), rel=1e-12)
    assert (plan.rate >= 1).all()
    for k, x in enumerate(plan.levels.tolist()):
        for a in range(k % 7, classes, 7):
            for b in {0, a}:
                spread = x * (1.05**-a + 1.05**-b)
                lead = float(plan.leads[k, a, b]) + 1e-12 * (1 + x + log_price)
                assert exact_log_evidence(lead, x, spread) >= Decimal(log_price)
        spreads = x * np.geomspace(1.0, 0.2, 50)
        assert (x * 1.05 ** -plan.kind(k, spreads).astype(float) >= spreads * (1 - 1e-12)).all()
        added = plan.spread_added(k, problem.arms, plan.usual_batch(k, problem.arms))
        assert (added <= plan.weights[k] * (1 + 1e-12)).all()
        exact = plan.weights[k] ** 2 * 2 * problem.variances / 0.4**2 / plan.usual_batch(k, problem.arms)
        np.testing.assert_allclose(added, exact, rtol=1e-12)
    assert plan.leads[-1, 0, 0] <= 0  # at the last level the larger score settles every pair
