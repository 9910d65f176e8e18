"""The race on rewards of which only bounds are known: it is right, ends in time, and adapts."""

import math
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.bounded import BoundedEvidence
from shortlist.certificates.settled_pairs import open_outsiders
from shortlist.strategies import race, strategy_named
from shortlist.strategies.protocol import Done, Moments
from shortlist.strategies.race_course import course

pytestmark = pytest.mark.slow

RULES = strategy_named("race")
CASES = [(2, 1, 0.3, 0.2), (5, 2, 0.4, 0.2), (10, 1, 0.05, 0.15), (40, 5, 0.2, 0.3)]


def question(n: int, m: int, delta: float, epsilon: float, **changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"n": n, "m": m, "delta": delta, "epsilon": epsilon, "rewards": sl.Bernoulli()}
    return sl.Problem(**(given | changes))


def states(problem: sl.Problem, means: FloatArray, seed: int | None) -> list[Any]:
    """Return the states of a race on coins; without a seed every batch shows the true means."""
    rng, state = np.random.default_rng(seed), RULES.init(problem, ())
    found = [state]
    while not isinstance(state, Done):
        batch = RULES.ask(state)
        shown = means[batch.arms]
        if seed is not None:
            shown = rng.binomial(batch.counts, shown) / batch.counts
        state = RULES.tell(state, Moments(problem.merits(shown)))
        found.append(state)
    return found


@pytest.mark.parametrize(("n", "m", "delta", "epsilon"), CASES)
@pytest.mark.parametrize("mean", [0.0, 0.04, 0.5, 0.97])
def test_it_ends_within_its_cap_and_its_rounds(
    n: int, m: int, delta: float, epsilon: float, mean: float
) -> None:
    """Equal arms take longest: nothing but the cap ends the race between them."""
    problem = question(n, m, delta, epsilon)
    rounds, cap = RULES.n_rounds(problem), RULES.worst_case_pulls(problem)
    assert rounds is not None
    assert cap is not None
    for seed in (None, 1):
        *seen, end = states(problem, np.full(n, mean), seed)
        assert len(seen) <= rounds
        assert all((state.unit <= state.course.unit).all() for state in seen)
        last = seen[-1]
        assert int(last.pulls.sum() + RULES.ask(last).counts.sum()) <= cap
        assert len(end.selected) == m


@pytest.mark.parametrize("caution", [race.CAUTION, 0.02])
@pytest.mark.parametrize("seed", range(12))
def test_at_the_end_every_pair_is_settled(seed: int, caution: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the totals alone: by the certificate at every cut, or because both arms are at the top.

    If variances are estimated far too low, the estimates are raised until that is so.
    """
    monkeypatch.setattr(race, "CAUTION", caution)
    n, m, delta, epsilon = CASES[seed % len(CASES)]
    problem = question(n, m, delta, epsilon)
    means = np.random.default_rng(seed).random(n) if seed < 6 else np.full(n, seed / 20)
    end = states(problem, means, seed)[-1]
    final = end.last
    assert (final.unit <= final.course.unit).all()
    evidence = BoundedEvidence.of(n, m, delta, epsilon)
    is_open = open_outsiders(evidence.about(final.means * final.pulls, final.pulls), end.selected, epsilon)
    enough = course(problem).enough
    for outsider in np.flatnonzero(is_open):
        assert final.pulls[outsider] >= enough[outsider]
        assert (final.pulls[end.selected] >= enough[end.selected]).all()
        assert (final.means[outsider] <= final.means[end.selected]).all()


def test_estimates_never_exceed_the_largest_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the top would not be reached with the pulls that are enough, and the cap would not hold."""
    monkeypatch.setattr(race, "CAUTION", 5.0)
    for n, m, delta, epsilon in CASES:
        *seen, end = states(question(n, m, delta, epsilon), np.full(n, 0.5), 1)
        assert all((state.unit <= state.course.unit).all() for state in (*seen, end.last))


TRAPS = {
    "two": ([0.5, 0.75], 1, 0.24),
    "close to 0": ([0.02, 0.02, 0.02, 0.15], 1, 0.12),
    "close to 1": ([0.98, 0.8, 0.8, 0.8, 0.8], 1, 0.17),
    "two of four": ([0.3, 0.55, 0.3, 0.55], 2, 0.24),
    "many equal, one bad in": ([0.7, 0.4, 0.7, 0.7], 3, 0.29),
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.slow
def test_errors_stay_below_delta_where_it_is_large(trap: str) -> None:
    (means, m, epsilon), delta = TRAPS[trap], 0.45
    problem = question(len(means), m, delta, epsilon)
    outcome = sl.simulate(problem, means, "race", replications=100, seed=7)
    assert outcome.is_final.all()
    assert outcome.error_rate_interval(0.999)[0] <= delta


@pytest.mark.parametrize(
    ("means", "epsilon", "least", "most"),
    [
        ([0.04, 0.041, 0.042, 0.043, 0.044, 0.05], 0.005, 0.15, 0.35),
        ([0.9, 0.9, 0.9, 0.96], 0.05, 0.2, 0.6),
        ([0.45, 0.45, 0.45, 0.45, 0.55], 0.09, 0.6, 1.15),
    ],
)
def test_it_adapts_to_the_variance_that_is_there(
    means: list[float], epsilon: float, least: float, most: float
) -> None:
    """Compared with the race that assumes the largest variance."""
    n = len(means)
    adaptive = sl.simulate(question(n, 1, 0.05, epsilon), means, "race", replications=20, seed=3)
    proxy = sl.Problem(m=1, epsilon=epsilon, delta=0.05, variances=[0.25] * n)
    usual = sl.simulate(proxy, means, "race", rewards="bernoulli", replications=20, seed=3)
    assert least < adaptive.pulls.mean() / usual.pulls.mean() < most
    assert adaptive.errors == 0


def test_other_bounds_and_the_smallest_means_are_the_same_race() -> None:
    means, n = np.array([0.2, 0.5, 0.7, 0.75]), 4
    plain = states(question(n, 2, 0.1, 0.1, rewards=sl.Bounded()), means, 5)
    wide = question(n, 2, 0.1, 2.0, rewards=sl.Bounded(-10, 10))
    scaled = [
        replay(wide, plain, lambda x: 20 * x - 10),
        replay(wide.changed(goal="minimise"), plain, lambda x: 10 - 20 * x),
    ]
    for found in scaled:
        assert found == plain[-1].selected.tolist()


def replay(problem: sl.Problem, plain: list[Any], scale: Any) -> list[int]:
    """Tell a race the rewards of another one in other units; it must ask for the same pulls."""
    rng, state = np.random.default_rng(5), RULES.init(problem, ())
    means = np.array([0.2, 0.5, 0.7, 0.75])
    for before in plain[:-1]:
        batch, other = RULES.ask(before), RULES.ask(state)
        assert batch.arms.tolist() == other.arms.tolist()
        assert batch.counts.tolist() == other.counts.tolist()
        shown = rng.binomial(batch.counts, means[batch.arms]) / batch.counts
        state = RULES.tell(state, Moments(problem.merits(scale(shown))))
    selected: list[int] = state.selected.tolist()
    return selected


def test_lanes_are_what_they_would_be_alone() -> None:
    problem, means = question(5, 2, 0.2, 0.15), np.array([0.1, 0.3, 0.35, 0.6, 0.65])
    together = sl.simulate(problem, means, "race", replications=6, seed=11)
    for lane in range(6):
        rng = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(lane,)))
        state, pulls = RULES.init(problem, ()), 0
        while not isinstance(state, Done):
            batch = RULES.ask(state)
            shown = rng.binomial(batch.counts, means[batch.arms]) / batch.counts
            state, pulls = RULES.tell(state, Moments(shown)), pulls + int(batch.counts.sum())
        assert together.pulls[lane] == pulls
        assert together.selected[lane].tolist() == state.selected.tolist()


def test_the_first_batch_is_smaller_than_for_the_largest_variance() -> None:
    bounded, proxy = course(question(6, 1, 0.05, 0.05)), course(sl.Problem(1, 0.05, 0.05, [0.25] * 6))
    assert (bounded.first < 0.6 * proxy.first).all()
    assert math.isclose(bounded.worst_case_pulls / proxy.worst_case_pulls, 1.3, rel_tol=0.3)
