"""Strategies for unknown variances: what each failure really costs, and that decisions rest on the proofs.

The bounds are recomputed here from what a strategy does with given sample variances, averaged over their
distribution, by the inequalities of `docs/theory.md`, sections 26 to 31.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import dudewicz_dalal, kim_nelson, pilot, pilot_bounds, strategy_for, t_race
from shortlist.strategies.protocol import Moments
from tests.playing_unknown import play_unknown
from tests.proof.adversary import EDGE
from tests.questions import unknown


def asked(n: int, m: int = 1, **changes: Any) -> sl.Problem:
    return unknown(**({"m": m, "epsilon": 0.5, "delta": 0.05, "n": n, "pilot": 12} | changes))


def last(batches: list[dict[int, int]], arm: int) -> int:
    return sum(batch.get(arm, 0) for batch in batches)


# --- two stages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "n_pilot"), [(2, 5), (6, 12), (6, 30)])
def test_rinott_spends_delta_over_the_pulls_that_it_asks_for(n: int, n_pilot: int) -> None:
    """Pulls for given sample variances, by the strategy; the integral over these, by quadrature from scipy.

    Epsilon is small, so that rounding up and the pilot itself hardly count.
    """
    question, scale = asked(n, pilot=n_pilot, epsilon=1e-3), 7.0
    freedom = n_pilot - 1
    x = stats.chi2(freedom).ppf((np.arange(800) + 0.5) / 800)
    pulls = np.empty(len(x))
    for start in range(0, len(x), n):
        shown = np.resize(scale * x[start : start + n] / freedom, n)
        played = play_unknown("rinott", question, lambda *_: 0.0, shown)
        part = [last(played.batches, arm) for arm in range(n)]
        pulls[start : start + n] = part[: len(x) - start]
    spreads = scale / pulls
    ahead = stats.norm.cdf(question.epsilon / np.sqrt(spreads[:, None] + spreads)).mean(axis=1)
    right = (ahead ** (n - 1)).mean()
    assert right == pytest.approx(0.95, abs=0.002)  # 800 strata leave out some of the tails


@pytest.mark.parametrize(("n", "m", "n_pilot"), [(2, 1, 4), (5, 2, 12), (40, 3, 20), (40, 39, 20)])
def test_the_student_integral_is_what_quadrature_gives(n: int, m: int, n_pilot: int) -> None:
    h = dudewicz_dalal.constant(n, m, n_pilot, 0.05)
    t = stats.t(n_pilot - 1)

    def integrand(z: float) -> float:
        return float(m * t.cdf(z + h) ** (n - m) * t.sf(z) ** (m - 1) * t.pdf(z))

    parts = [(-np.inf, -h), (-h, 0.0), (0.0, np.inf)]
    assert sum(integrate.quad(integrand, *part)[0] for part in parts) == pytest.approx(0.95, abs=1e-5)


def test_every_score_of_two_stages_has_just_the_spread_that_was_planned() -> None:
    """However large the variance: what the weights make of it is (epsilon / h)^2 V / s, not less."""
    question = asked(8, 3)
    shown = np.geomspace(1e-4, 300.0, 8)
    rules = strategy_for("dudewicz-dalal", question)
    zero, units = np.zeros(8), np.eye(8)
    h = dudewicz_dalal.constant(8, 3, 12, 0.05)
    for arm in range(8):
        state = rules.tell(rules.init(question, ()), Moments(units[arm], shown))
        counts = rules.ask(state).counts
        weight = float((zero + state.weights * (state.means - zero))[arm])
        spread = weight**2 / 12 + (1 - weight) ** 2 / counts[arm]
        assert spread == pytest.approx((0.5 / h) ** 2 / shown[arm], rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["rinott", "dudewicz-dalal"])
def test_two_stages_are_right_when_no_two_errors_add_up_to_epsilon(name: str, share: float) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        m = 1 if name == "rinott" else 3
        means = rng.choice([0.0, -0.2, -0.45, -0.55, -1.0], 12) + 1e-3 * rng.standard_normal(12)
        best = np.argsort(-means, kind="stable")[:m]
        errors = np.full(12, 0.5 * EDGE * (1 - share))
        errors[best] = -0.5 * EDGE * share
        shown = rng.exponential(2.0, 12)
        played = play_unknown(name, asked(12, m), lambda arm, *_: float((means + errors)[arm]), shown)  # noqa: B023
        assert means[list(played.selected)].min() >= means[best].min() - 0.5


# --- sequential ------------------------------------------------------------------------------------


def over_pilots(wrong: Callable[[float, float], float], freedom: int, weight: float) -> float:
    """Average a function of two sample variances, whose true values are `weight` and 1 - `weight`."""
    x = np.exp(np.linspace(-8.0, 4.0, 400)) * freedom
    heights = stats.chi2(freedom).pdf(x) * x
    heights /= heights.sum()
    values = [[wrong(weight * one / freedom, (1 - weight) * other / freedom) for other in x] for one in x]
    return float(heights @ np.array(values) @ heights)


def least(is_enough: Callable[[float], bool]) -> float:
    """Return the smallest number that is enough, 0 or more."""
    low, high = 0.0, 1e7
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return 0.0 if is_enough(0.0) else high


@pytest.mark.parametrize("weight", [1e-6, 0.2, 0.5])
@pytest.mark.parametrize("n", [2, 30])
def test_a_pair_of_kim_nelson_has_its_share_of_delta(n: int, weight: float) -> None:
    """Whichever of both arms is noisy. The bar is read off the decisions of the strategy."""
    question = asked(n)

    def is_out(lead: float) -> bool:
        means = np.array([lead, 0.0] + [-1e9] * (n - 2))
        return not isinstance(kim_nelson.begin(question, means, np.full(n, 50.0)), kim_nelson.Open)

    # at the bar, (A / epsilon) (50 + 50) / 12 - epsilon / 2
    exponent = (least(is_out) + 0.25) * 12 / 100 * 0.5
    beta = 1 - 0.95 ** (1 / (n - 1))
    spent = over_pilots(lambda v, w: math.exp(-exponent * (v + w)) / 2, 11, weight)
    assert spent <= beta * (1 + 1e-3)
    if weight < 1e-3:
        assert spent >= 0.99 * beta


@pytest.mark.slow
@pytest.mark.parametrize("n_pilot", [16, 40])
def test_the_lines_of_the_race_spend_delta(n_pilot: int) -> None:
    """The bar is read off decisions at several spreads; it is the lowest of lines, and lines have a price.

    A line y x + c, x being the spread, is crossed wrongly with probability exp(-2 c y U'/U), and on average
    over the worse of two sample variances at most 2 (1 + 4 c y / freedom)^(-freedom / 2).
    """
    question, freedom = asked(2, pilot=n_pilot, epsilon=1.0), n_pilot - 1
    rate, rounds = min(8, n_pilot), n_pilot // min(8, n_pilot)
    spreads = np.geomspace(0.03, 30.0, 150)
    bars = []
    for spread in spreads:
        shown = np.full(2, spread * rounds * rate / 2)

        def is_out(lead: float, shown: FloatArray = shown) -> bool:
            return not isinstance(t_race.begin(question, np.array([lead, 0.0]), shown), t_race.Open)

        bars.append(least(is_out) + 1)
    is_seen = np.array(bars) > 1  # an incumbent leads, so lower bars do not show
    spent = 0.0
    for tilt in t_race.TILTS:
        slope = ((np.array(bars) - tilt) / spreads)[is_seen].max()  # a line lies above the bar
        spent += 2 * (1 + 4 * tilt * slope / freedom) ** (-freedom / 2)
    assert spent == pytest.approx(0.05, rel=0.02)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (30, 1), (30, 7), (30, 29)])
def test_all_pairs_of_the_race_share_delta(n: int, m: int) -> None:
    question = asked(n, m, pilot=20)
    each = [2 * (1 + 2 * a / 19) ** (-19 / 2) for a in t_race.penalties(question)]
    assert m * (n - m) * sum(each) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "m"), [(6, 1), (12, 3), (12, 11)])
def test_the_race_is_right_when_no_line_is_crossed_wrongly(n: int, m: int, seed: int) -> None:
    """Each of the m best shows as low, and each other arm as high, as the lines allow at every level."""
    rng = np.random.default_rng(seed)
    question = asked(n, m, pilot=16)
    means = rng.choice([0.0, -0.2, -0.45, -0.55, -1.0], n) + 1e-3 * rng.standard_normal(n)
    best = set(np.argsort(-means, kind="stable")[:m].tolist())
    shown = rng.exponential(4.0, n) + 0.1
    rates = t_race.rates(shown, 8)
    parts = shown / rates
    sums, rounds_of = np.zeros(n), np.zeros(n)

    def reward(arm: int, number: int, _count: int) -> float:
        look = looks[number]
        # errors of both add up to less than the lowest line, in whatever way they share it
        least = float(t_race.bar(question, np.array([2 * parts.min() / 0.25 / look]))[0])
        error = EDGE * least * 0.5 / 2 * (-1 if arm in best else 1)
        target = means[arm] + error
        mean = (target * look - sums[arm]) / (look - rounds_of[arm])
        sums[arm], rounds_of[arm] = target * look, look
        return float(mean)

    looks = [2]
    while len(looks) < 400:
        looks.append(looks[-1] + max(1, looks[-1] // 16))
    played = play_unknown("t-race", question, reward, shown)
    assert means[list(played.selected)].min() >= means[list(best)].min() - 0.5


# --- bounds from the pilot -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 100])
@pytest.mark.parametrize("n_pilot", [2, 10, 60])
def test_bounds_on_all_variances_hold_with_their_share(n: int, n_pilot: int) -> None:
    question = asked(max(n, 2), pilot=n_pilot)
    problem = pilot_bounds.bounded(question, np.full(question.n, 3.0))
    freedom = n_pilot - 1
    false = stats.chi2(freedom).cdf(3.0 * freedom / problem.variances[0])  # 3 may be that small by chance
    assert 1 - (1 - false) ** question.n == pytest.approx(0.015, rel=1e-6)
    assert problem.delta == pytest.approx(0.035)
    assert problem.noise == "sub-gaussian"


def test_the_pilot_is_not_used_again() -> None:
    """Pilot means that point the other way change nothing."""
    question = asked(4, 1, pilot=10)
    shown = np.ones(4)

    def reward(arm: int, number: int, _count: int) -> float:
        return float(-arm if number == 0 else arm)

    assert play_unknown("wnelim", question, reward, shown).selected == {3}


@pytest.mark.parametrize("log", [0.0, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("freedom", [1, 9, 100])
def test_the_penalty_pays_for_sample_variances(log: float, freedom: int) -> None:
    a = pilot.penalty(log, freedom)
    mean = (1 + 2 * a / freedom) ** (-freedom / 2)
    assert mean == pytest.approx(math.exp(-log), rel=1e-9)
    x = np.exp(np.linspace(-60.0, 4.0, 40_001)) * freedom
    heights = stats.chi2(freedom).pdf(x) * x
    found = (np.exp(-a * x / freedom) * heights).sum() / heights.sum()
    assert found == pytest.approx(math.exp(-log), rel=1e-4)
