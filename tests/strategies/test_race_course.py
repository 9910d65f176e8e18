"""The course of a race: what settles, settles; and rungs, pulls and the cap agree in all units."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.cut import PRIOR_ABOVE, PRIOR_BELOW, Prices
from shortlist.certificates.cut import log_evidence as mixture
from shortlist.strategies import race
from shortlist.strategies.protocol import Added, Moments
from shortlist.strategies.race_aims import climbing
from shortlist.strategies.race_course import BEYOND, FIRST, STEP, Course, Rungs, course, rungs
from tests.oracles.race import log_evidence

LADDERS = [(2, 1, 0.05), (3, 2, 0.9), (20, 3, 0.05), (100, 99, 0.3), (1000, 1, 1e-5)]


def margin(prices: Prices, outsider: tuple[float, float], incumbent: tuple[float, float]) -> float:
    """The least, over a fine search, of the logarithm of the proof's sum times delta; gaps, information."""
    (low, x), (high, y) = outsider, incumbent
    ends = sorted([low, high + 1.0])
    cuts = np.linspace(ends[0] - 0.5, ends[1] + 0.5, 1501)
    return min(_log_sum(prices, (cut - low, x), (high - (cut - 1), y)) for cut in cuts.tolist())


def _log_sum(prices: Prices, below: tuple[float, float], above: tuple[float, float]) -> float:
    p = log_evidence("below", *below) - prices.below
    q = log_evidence("above", *above) - prices.above
    return float(np.logaddexp.reduce([p, q, prices.discount + p + q]))


@st.composite
def positions(draw: st.DrawFn) -> tuple[Rungs, FloatArray, list[int], FloatArray, list[int]]:
    """Incumbents and outsiders at gaps and rungs, most of them near where it is hard to tell."""
    ladder = rungs(*draw(st.sampled_from(LADDERS)))
    rung = st.integers(0, len(ladder.information) - 1) | st.integers(ladder.top - 6, ladder.top + 6)
    n_in, n_out = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    gaps_in = [0.0] + [draw(st.floats(0, 3)) for _ in range(n_in - 1)]
    gaps_out = [draw(st.floats(-1.5, 0.3) | st.floats(-9, 0)) for _ in range(n_out)]
    return (
        ladder,
        np.array(gaps_in),
        [draw(rung) for _ in gaps_in],
        np.array(gaps_out),
        [draw(rung) for _ in gaps_out],
    )


@given(position=positions())
@settings(max_examples=60, deadline=None)
def test_no_pair_is_settled_that_is_not_settled_at_every_cut(
    position: tuple[Rungs, FloatArray, list[int], FloatArray, list[int]],
) -> None:
    ladder, gaps_in, rungs_in, gaps_out, rungs_out = position
    highest = float((gaps_out + ladder.reaches[rungs_out, -2]).max())
    thresholds = ladder.thresholds(gaps_in, np.array(rungs_in), highest)
    for gap, rung in zip(gaps_out.tolist(), rungs_out, strict=True):
        if gap > thresholds[rung]:
            continue
        for gap_in, rung_in in zip(gaps_in.tolist(), rungs_in, strict=True):
            outsider = gap, float(ladder.information[rung])
            incumbent = gap_in, float(ladder.information[rung_in])
            assert margin(ladder.prices, outsider, incumbent) >= -1e-9


@pytest.mark.parametrize(("n", "m", "delta"), LADDERS)
def test_hardly_any_pair_settled_at_every_cut_is_left_open(n: int, m: int, delta: float) -> None:
    """An outsider could not lie nearer by a tenth of epsilon, or by 3 %; at the top, hardly at all."""
    ladder = rungs(n, m, delta)
    prices, top = ladder.prices, ladder.top
    for rung_in in (top // 2, top - 8, top, top + 20):
        for rung_out in (4, top // 3, top - 15, top):
            gap = _threshold(ladder, rung_in, rung_out)
            outsider, incumbent = float(ladder.information[rung_out]), float(ladder.information[rung_in])
            assert margin(prices, (gap, outsider), (0.0, incumbent)) >= -1e-9
            nearer = gap + max(0.1, 0.03 * abs(gap))
            assert margin(prices, (nearer, outsider), (0.0, incumbent)) < 0
    assert _threshold(ladder, top, top) > -0.03


def _threshold(ladder: Rungs, rung_in: int, rung_out: int) -> float:
    """The largest gap of a lone outsider that is settled with a lone incumbent."""
    low, high = -30.0, 1.0
    for _ in range(50):
        gap = (low + high) / 2
        highest = gap + float(ladder.reaches[rung_out, -2])
        found = ladder.thresholds(np.zeros(1), np.array([rung_in]), highest)[rung_out]
        low, high = (gap, high) if gap <= found else (low, gap)
    return low


@pytest.mark.parametrize(("n", "m", "delta"), LADDERS)
def test_rungs_rise_through_the_top_and_tables_are_sufficient(n: int, m: int, delta: float) -> None:
    ladder = rungs(n, m, delta)
    assert ladder.information[ladder.top] == ladder.prices.enough()
    assert np.allclose(ladder.information[1:] / ladder.information[:-1], STEP, rtol=1e-12)
    assert len(ladder.information) == ladder.top + BEYOND + 1
    assert FIRST / math.sqrt(STEP) <= ladder.information[0] <= FIRST * math.sqrt(STEP)
    assert ladder.targets[-1] == 0.0
    assert ladder.targets[0] < -ladder.prices.discount
    for rung, x in enumerate(ladder.information.tolist()):
        for target, reach in zip(ladder.targets[::8].tolist(), ladder.reaches[rung, :-1:8], strict=True):
            assert log_evidence("below", float(reach), x) >= ladder.prices.below + target - 1e-9
        clear = float(ladder.clearances[rung, 0])
        assert log_evidence("above", clear, x) >= ladder.prices.above - 1e-9
        assert log_evidence("above", clear * (1 - 1e-9), x) < ladder.prices.above
    assert (ladder.reaches[:, -1] == -np.inf).all()
    assert (PRIOR_BELOW, PRIOR_ABOVE) == (1.0, 4.0)  # as in the oracle


@given(above=st.floats(-40, 2), which=st.sampled_from(LADDERS))
def test_what_is_needed_is_rounded_up(above: float, which: tuple[int, int, float]) -> None:
    ladder = rungs(*which)
    needed = float(ladder.prices.still_needed(np.array(above)))
    place = int(ladder.places(np.array([above]))[0])
    if needed == -math.inf:
        assert place == len(ladder.targets)
        assert above > -1e-15
    else:
        assert ladder.targets[place] >= needed - 1e-12
        assert place == 0 or ladder.targets[place - 1] < needed + 1e-12


@given(seed=st.integers(0, 10**6), which=st.sampled_from(LADDERS))
@settings(max_examples=40, deadline=None)
def test_an_outsider_is_to_climb_to_the_first_rung_that_would_settle_it(
    seed: int, which: tuple[int, int, float]
) -> None:
    ladder, rng = rungs(*which), np.random.default_rng(seed)
    thresholds = np.maximum.accumulate(rng.uniform(-3, 0.2, len(ladder.information)))
    gaps, at = rng.uniform(-4, 0.5, 30), rng.integers(0, len(thresholds), 30)
    found, (places, wanted) = at.copy(), climbing(gaps, at, thresholds)
    found[places] = wanted
    for gap, rung, aim in zip(gaps.tolist(), at.tolist(), found.tolist(), strict=True):
        enough = [i for i in range(rung, len(thresholds)) if thresholds[i] >= gap]
        assert aim == (enough[0] if enough else len(thresholds) - 1)


# Pulls


def laid_out(units: FloatArray, m: int = 1, delta: float = 0.05) -> Course:
    return course(sl.Problem(m=m, epsilon=1.0, delta=delta, variances=units))


@given(powers=st.lists(st.floats(-6, 9), min_size=2, max_size=6), epsilon=st.sampled_from([1.0, 0.1, 0.37]))
def test_the_pulls_of_a_rung_reach_it_and_fewer_do_not(powers: list[float], epsilon: float) -> None:
    units = 10.0 ** np.array(powers)
    plan = course(sl.Problem(m=1, epsilon=epsilon, delta=0.05, variances=units * epsilon**2))
    assert np.allclose(plan.unit, units, rtol=1e-12)
    arms = plan.problem.arms
    for rung in range(len(plan.rungs.information)):
        pulls = plan.pulls(np.full(len(arms), rung), plan.unit[arms])
        assert (plan.reached(pulls, plan.unit[arms]) >= rung).all()
        assert (pulls >= plan.rungs.information[rung] * units * (1 - 1e-12)).all()
        is_fewer = pulls - 1 < plan.rungs.information[rung] * units * (1 - 2e-12)
        is_fewer &= pulls > plan.first
        assert (plan.reached(pulls - 1, plan.unit[arms])[is_fewer] < rung).all()


@given(powers=st.lists(st.floats(-6, 9), min_size=2, max_size=6), pulls=st.integers(1, 10**12))
def test_no_arm_is_taken_to_stand_above_its_information(powers: list[float], pulls: int) -> None:
    plan = laid_out(10.0 ** np.array(powers))
    counts = np.maximum(plan.first, pulls)
    information = plan.rungs.information[plan.reached(counts, plan.unit)]
    assert (information * plan.unit <= counts * (1 + 2e-12)).all()


@pytest.mark.parametrize("unit", [1.0, 0.37, 13.0])
def test_many_arms_of_one_unit_have_a_table_that_says_what_the_formulas_say(unit: float) -> None:
    n = 30_000
    plan, units = laid_out(np.full(n, unit)), np.full(n, unit)
    uneven = laid_out(np.append(np.full(n - 1, unit), 2 * unit))
    assert plan.table is not None
    assert uneven.table is None
    assert laid_out(np.full(9, unit)).table is None
    pulls = np.append(np.arange(1, n), 10**9)
    assert (plan.reached(pulls, units) == uneven.reached(pulls, units)).all()
    rungs = np.resize(np.arange(len(plan.rungs.information)), n)
    assert (plan.pulls(rungs, units) == uneven.pulls(rungs, units)).all()
    last = np.array([n - 1])
    assert (uneven.reached(pulls[last], uneven.unit, last) == uneven.reached(pulls, uneven.unit)[last]).all()


@pytest.mark.parametrize("n", [2, 3, 17])
def test_every_arm_starts_on_the_first_rung(n: int) -> None:
    units = np.geomspace(1e-6, 1e9, n)
    plan = laid_out(units)
    assert plan.first.tolist() == [max(1, math.ceil(plan.rungs.information[0] * unit)) for unit in units]
    assert (plan.first <= plan.enough).all()


@pytest.mark.parametrize(
    ("variances", "m", "delta"),
    [
        (np.ones(20), 3, 0.05),
        (np.ones(2), 1, 0.05),
        (np.ones(100), 50, 0.9),
        (np.geomspace(1, 1e6, 30), 2, 0.1),
    ],
)
def test_the_cap(variances: FloatArray, m: int, delta: float) -> None:
    """All arms at the top, and a fifth more unless naive elimination promises less."""
    problem = sl.Problem(m=m, epsilon=0.1, delta=delta, variances=variances)
    plan = course(problem)
    x = Prices.of(problem.n, m, delta).enough()
    total = sum(max(1, math.ceil(x * s / problem.epsilon**2)) for s in variances.tolist())
    shares = variances / variances.sum()
    entropy = -float((shares * np.log(shares)).sum())
    naive = 8 * float(variances.sum()) / problem.epsilon**2 * (entropy - math.log(delta))
    assert plan.enough.sum() == total
    assert plan.excess == max(0, min(int(0.2 * total), int(naive) - total))
    assert plan.worst_case_pulls == total + plan.excess
    row = sl.plan(problem)["race"]
    assert row.worst_case_pulls == plan.worst_case_pulls


@pytest.mark.parametrize("finer", [0.9, 0.25, 0.01])
def test_the_tables_of_a_smaller_epsilon_keep_the_tilts_of_the_first(finer: float) -> None:
    """In units of the smaller epsilon only the prior information changes."""
    n, m, delta = 20, 3, 0.05
    ladder = rungs(n, m, delta, finer)
    smaller = sl.Problem(m=m, epsilon=0.2 * finer**0.5, delta=delta, variances=np.ones(n))
    expected = rungs(n, m, delta, (smaller.epsilon / 0.2) ** 2).reaches
    assert course(smaller, 0.2).rungs.reaches.tobytes() == expected.tobytes()
    below = mixture(ladder.reaches[:, :-1], ladder.information[:, None], finer * PRIOR_BELOW)
    assert (below >= ladder.prices.below + ladder.targets - 1e-9).all()
    above = mixture(ladder.clearances[:, 0], ladder.information, finer * PRIOR_ABOVE)
    assert (above >= ladder.prices.above - 1e-9).all()
    cuts, top = np.linspace(0, 1, 4001), np.array(ladder.information[ladder.top])
    p = mixture(cuts, top, finer * PRIOR_BELOW) - ladder.prices.below
    q = mixture(1 - cuts, top, finer * PRIOR_ABOVE) - ladder.prices.above
    assert (np.exp(p) + np.exp(q) + np.exp(ladder.prices.discount + p + q) >= 1 - 1e-9).all()
    first = rungs(n, m, delta).information[0]
    assert ladder.information[0] <= 1.05 * finer * first


def test_a_batch_that_is_too_small_is_only_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    beyond = race._beyond

    def noted(state: Any, arms: Any, gaps: Any, places: Any, climbed: Any) -> Any:
        counts = beyond(state, arms, gaps, places, climbed)
        seen.append(len(climbed))
        assert (counts[places] >= climbed).all()
        assert counts.sum() > climbed.sum()
        return counts

    monkeypatch.setattr(race, "_beyond", noted)
    monkeypatch.setattr(race, "LEAST", 0.05)  # above what is added usually
    problem = sl.Problem(m=2, epsilon=0.2, delta=0.05, variances=np.linspace(0.5, 2, 30))
    sl.simulate(problem, np.linspace(0, 2, 30), "race", replications=5)
    assert max(seen) > 2


def test_pulls_beyond_the_top_are_counted_in_every_round() -> None:
    problem, seen = sl.Problem(m=1, epsilon=1, delta=0.05, variances=np.full(200, 100.0)), []
    state: Any = race.init(course(problem))
    means, rng = np.where(problem.arms == 0, 0.0, -0.7), np.random.default_rng(3)
    while isinstance(state, race.Open):
        noise = rng.standard_normal(len(state.arms)) * 10 / np.sqrt(state.counts)
        state = race.tell(state, Moments(means[state.arms] + noise))
        last = state if isinstance(state, race.Open) else state.last
        seen.append(last.n_excess)
        assert last.n_excess == np.maximum(last.pulls - last.course.enough, 0).sum()
        assert last.n_excess <= last.course.excess
    assert len(set(seen)) > 2


@pytest.mark.parametrize("rewards", [None, sl.Bounded(0, 1)])
def test_means_are_lowered_by_standard_errors_whatever_was_added(rewards: Any) -> None:
    n, rng = 40, np.random.default_rng(1)
    variances = None if rewards else rng.uniform(0.05, 0.25, n)
    problem = sl.Problem(m=3, epsilon=0.1, delta=0.05, n=n, variances=variances, rewards=rewards)
    means = rng.uniform(0.2, 0.8, n)
    state: Any = race.init(course(problem))

    def check() -> None:
        variances = problem.variances if rewards is None else state.unit * state.course.problem.epsilon**2
        lowered = state.means - math.sqrt(2 * math.log(n)) * np.sqrt(variances / state.pulls)
        assert state.lowered == pytest.approx(lowered, abs=1e-12)

    for _ in range(4):
        noise = 0.3 * rng.standard_normal(len(state.arms)) / np.sqrt(state.counts)
        rewards_of_arms = np.clip(means[state.arms] + noise, 0, 1)
        state = race.tell(state, Moments(rewards_of_arms, np.full(len(state.arms), 0.05)))
        assert isinstance(state, race.Open)
        check()
    sums = np.array([8.0, 1.0])
    state = race.add(state, [Added(np.array([1, 2]), np.array([9, 9]), sums, sums, ("", ""))])
    check()
    state = race.narrow(state, 0.05)
    check()
