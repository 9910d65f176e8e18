"""The race, judged by what it pulled and was told: nothing it says about itself is believed.

Evidence is recomputed here from the batches alone, at the pulls that were made and the means they had, for
cuts close together. Of the package's own figures only the cap is taken, and checked against the proof's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.cut import Prices
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments
from shortlist.strategies.race_course import course

pytestmark = pytest.mark.slow

ROUNDING = 1e-9
WEIGHTS = {"below": 0.45, "above": 0.05, "both": 0.5}
Told = Callable[["Log", int, int], float]


@dataclass
class Log:
    """What was pulled and told so far."""

    problem: sl.Problem
    batches: list[dict[int, int]] = field(default_factory=list)
    rewards: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    selected: set[int] = field(default_factory=set)

    def enter(self, batch: dict[int, int], means: dict[int, float]) -> None:
        self.batches.append(batch)
        for arm, count in batch.items():
            self.rewards.setdefault(arm, []).append((count, means[arm]))

    def pulls(self, arm: int) -> int:
        return sum(count for count, _ in self.rewards[arm])

    def mean(self, arm: int) -> float:
        return math.fsum(count * mean for count, mean in self.rewards[arm]) / self.pulls(arm)

    def information(self, arm: int) -> float:
        return self.pulls(arm) * self.problem.epsilon**2 / float(self.problem.variances[arm])

    def log_evidence(self, arm: int, side: str, cuts: FloatArray) -> FloatArray:
        """That the arm's mean lies below cuts, or above them: the whole mixture, counted or not."""
        prior, sign = (1.0, 1.0) if side == "below" else (4.0, -1.0)
        x = self.information(arm)
        z = x * sign * (cuts - self.mean(arm)) / self.problem.epsilon / math.sqrt(x + prior)
        found: FloatArray = z**2 / 2 + log_ndtr(z) + math.log(2) - 0.5 * math.log1p(x / prior)
        return found

    def log_sum(self, outsider: int, incumbent: int, cuts: FloatArray) -> FloatArray:
        """What the proof's sum is at least, if the outsider's mean is the cut and the incumbent is bad."""
        n, m = self.problem.n, self.problem.m
        below = self.log_evidence(outsider, "below", cuts)
        above = self.log_evidence(incumbent, "above", cuts - self.problem.epsilon)
        parts = [
            below + math.log(WEIGHTS["below"] / m),
            above + math.log(WEIGHTS["above"] / (n - m)),
            below + above + math.log(WEIGHTS["both"] / (m * (n - m))),
        ]
        found: FloatArray = np.logaddexp.reduce(parts)
        return found


def raced(problem: sl.Problem, told: Told) -> Log:
    strategy = strategy_named("race")
    state: Any = strategy.init(problem, ())
    log = Log(problem)
    while not strategy.verdict(state).is_final:
        asked = strategy.ask(state)
        batch = dict(zip(asked.arms.tolist(), asked.counts.tolist(), strict=True))
        means = {arm: told(log, arm, count) for arm, count in batch.items()}
        log.enter(batch, means)
        state = strategy.tell(state, Moments(np.array([means[arm] for arm in asked.arms.tolist()])))
    log.selected = set(strategy.verdict(state).selected.tolist())
    return log


def jumping(problem: sl.Problem, seed: int, rate: float, size: float, noise: float) -> Told:
    """Rewards with means that jump from one batch of an arm to the next, at random."""
    current = [0.0] * problem.n
    rngs = [np.random.default_rng((seed, arm)) for arm in range(problem.n)]

    def told(_log: Log, arm: int, count: int) -> float:
        rng = rngs[arm]
        if rng.random() < rate:
            current[arm] = size * problem.epsilon * rng.standard_normal()
        return float(current[arm] + noise * math.sqrt(problem.variances[arm] / count) * rng.standard_normal())

    return told


def constant(means: FloatArray) -> Told:
    return lambda _log, arm, _count: float(means[arm])


def shifted(means: FloatArray, told: Told) -> Told:
    return lambda log, arm, count: float(means[arm]) + told(log, arm, count)


@st.composite
def problems(draw: st.DrawFn) -> sl.Problem:
    n = draw(st.integers(2, 20))
    m = draw(st.sampled_from(sorted({1, min(3, n - 1), n // 2, n - 1})))
    variances = [1.7] * n
    kind = draw(st.sampled_from(["equal", "unequal", "wild"]))
    if kind != "equal":
        power = st.floats(-3, 3) if kind == "unequal" else st.floats(-14, 10)
        variances = [s * 2 ** draw(power) for s in variances]
    return sl.Problem(
        m=m,
        epsilon=draw(st.sampled_from([0.1, 0.3, 1.0])),
        delta=draw(st.sampled_from([1e-5, 0.05, 0.3, 0.9])),
        variances=variances,
    )


@st.composite
def races(draw: st.DrawFn) -> tuple[sl.Problem, Told]:
    problem = draw(problems())
    rate, size = draw(
        st.sampled_from([(0.0, 1.0), (1.0, 0.4), (0.2, 1.0), (0.1, 5.0), (1.0, 5.0), (0.05, 0.1)])
    )
    seed, noise = draw(st.integers(0, 10**6)), draw(st.sampled_from([0.0, 0.3, 1.0]))
    return problem, jumping(problem, seed, rate, size, noise)


def assert_settled(log: Log) -> None:
    """Every pair of the answer is settled, whatever cut is drawn."""
    assert len(log.selected) == log.problem.m
    epsilon, price = log.problem.epsilon, math.log(1 / log.problem.delta)
    for j in log.selected:
        for i in set(range(log.problem.n)) - log.selected:
            ends = sorted([log.mean(i), log.mean(j) + epsilon])
            cuts = np.linspace(ends[0] - 2 * epsilon, ends[1] + 2 * epsilon, 1001)
            assert log.log_sum(i, j, cuts).min() >= price - ROUNDING


def assert_within_what_was_promised(log: Log) -> None:
    problem, strategy = log.problem, strategy_named("race")
    x = Prices.of(problem.n, problem.m, problem.delta).enough()
    enough = [max(1, math.ceil(x * s / problem.epsilon**2 * (1 - 1e-12))) for s in problem.variances]
    shares = problem.variances / problem.variances.sum()
    naive = -math.log(problem.delta) - float((shares * np.log(shares)).sum())
    naive *= 8 * float(problem.variances.sum()) / problem.epsilon**2
    excess = sum(max(0, log.pulls(arm) - enough[arm]) for arm in range(problem.n))
    assert excess <= max(0, min(0.2 * sum(enough), naive - sum(enough)) + 1e-6)
    most, rounds = strategy.worst_case_pulls(problem), strategy.n_rounds(problem)
    assert most is not None
    assert rounds is not None
    assert sum(sum(batch.values()) for batch in log.batches) <= most
    assert most <= max(sum(enough), min(1.2 * sum(enough), naive)) + 1
    assert len(log.batches) <= rounds
    assert set(log.batches[0]) == set(range(problem.n))
    assert all(batch and min(batch.values()) >= 1 for batch in log.batches)


@given(race=races())
@settings(max_examples=60, deadline=None)
def test_every_pair_is_settled_for_every_cut_and_pulls_stay_within_what_was_promised(
    race: tuple[sl.Problem, Told],
) -> None:
    log = raced(*race)
    assert_settled(log)
    assert_within_what_was_promised(log)


@given(problem=problems(), seed=st.integers(0, 10**6), noise=st.sampled_from([1.0, 2.0, 4.0]))
@settings(max_examples=80, deadline=None)
def test_if_a_bad_arm_is_selected_the_sum_of_the_proof_is_too_large(
    problem: sl.Problem, seed: int, noise: float
) -> None:
    """With the true means, which only the proof knows. Rewards are worse than declared, so errors happen."""
    n, m = problem.n, problem.m
    means = problem.epsilon * np.random.default_rng(seed).choice([0.0, 1.01, 2.5], n)
    told = jumping(problem, seed, 0.0, 0.0, noise)
    log = raced(problem, shifted(means, told))
    best = sorted(range(n), key=lambda i: (-means[i], i))[:m]
    if all(means[j] >= means[best[-1]] - problem.epsilon for j in log.selected):
        return
    below = {i: log.log_evidence(i, "below", means[[i]])[0] for i in best}
    above = {j: log.log_evidence(j, "above", means[[j]])[0] for j in range(n) if j not in best}
    logs = [value + math.log(0.45 / m) for value in below.values()]
    logs += [value + math.log(0.05 / (n - m)) for value in above.values()]
    logs += [b + a + math.log(0.5 / (m * (n - m))) for b in below.values() for a in above.values()]
    assert np.logaddexp.reduce(logs) >= math.log(1 / problem.delta) - ROUNDING


def test_such_errors_do_happen() -> None:
    problem = sl.Problem(m=1, epsilon=0.3, delta=0.3, variances=[1.7] * 4)
    means, errors = np.array([0.31, 0.0, 0.0, 0.0]), 0
    for seed in range(20):
        told = jumping(problem, seed, 0.0, 0.0, 3.0)
        log = raced(problem, shifted(means, told))
        errors += log.selected != {0}
    assert errors > 3


# It ends


@pytest.mark.parametrize(
    ("n", "m", "variances"),
    [
        (2, 1, [1.0, 1.0]),
        (2, 1, [1e-6, 1e6]),
        (12, 11, np.geomspace(1e-4, 1e4, 12)),
        (12, 1, np.geomspace(1e-4, 1e4, 12)),
        (9, 4, np.ones(9)),
        (40, 3, np.repeat([1e-9, 1.0, 1e5, 3.0], 10)),
    ],
)
@pytest.mark.parametrize("at", [0.0, 0.1, 14203787.957292609, 1.9430561e9])
@pytest.mark.parametrize("last_bits", [0, 1, 2])
def test_it_ends_where_means_hardly_differ(
    n: int, m: int, variances: FloatArray, at: float, last_bits: int
) -> None:
    problem = sl.Problem(m=m, epsilon=0.5, delta=0.1, variances=variances)
    means = np.full(n, at) + np.arange(n) % 2 * last_bits * np.spacing(at)
    log = raced(problem, constant(means))
    assert_within_what_was_promised(log)
    assert_settled(log)


@pytest.mark.parametrize("seed", range(6))
def test_it_ends_where_rewards_keep_all_means_equal(seed: int) -> None:
    """Whatever has been told, the next batch brings an arm back to the others: nobody ever leads."""
    rng = np.random.default_rng(seed)
    n = 2 + 3 * seed
    problem = sl.Problem(m=1 + seed // 2, epsilon=0.2, delta=0.05, variances=np.exp(rng.uniform(-2, 2, n)))

    def told(log: Log, arm: int, count: int) -> float:
        earlier = log.rewards.get(arm, [])
        owed = math.fsum(number * mean for number, mean in earlier)
        return -owed / count + 1e-3 * problem.epsilon * float(rng.standard_normal())

    log = raced(problem, told)
    assert_within_what_was_promised(log)
    assert_settled(log)


@pytest.mark.parametrize(("n", "m", "most_rounds"), [(1000, 1, 110), (3000, 10, 110)])
def test_equal_arms_however_many_do_not_take_the_lead_in_turn(n: int, m: int, most_rounds: int) -> None:
    """Some lucky one is always ahead; if it became an incumbent at once, it would take hundreds of rounds."""
    problem = sl.Problem(m=m, epsilon=0.1, delta=0.05, variances=np.ones(n))
    rules, rng, rounds = strategy_named("race"), np.random.default_rng(n), 0
    state: Any = rules.init(problem, ())
    while not rules.verdict(state).is_final:
        noise = rng.standard_normal(len(rules.ask(state).arms)) / np.sqrt(rules.ask(state).counts)
        state = rules.tell(state, Moments(noise))
        rounds += 1
    assert rounds < most_rounds


def test_where_all_in_doubt_stand_at_the_top_the_larger_means_are_in() -> None:
    """With one pull each, both stand there at once; the second arm is surer, but the first has the lead."""
    top = Prices.of(2, 1, 0.05).enough()
    variances = [(1 - 1e-9) / top, 0.945 / top]
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.05, variances=variances)
    for lead in (0.001, 0.003, 0.005):
        log = raced(problem, constant(np.array([lead, 0.0])))
        assert log.batches == [{0: 1, 1: 1}]
        assert log.selected == {0}


def test_a_batch_too_small_brings_arms_just_to_the_top() -> None:
    """Two arms of a thousand, far ahead of the others: what they take is too little for a usual batch."""
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0] + [1e5] * 998)
    means = np.concatenate([[0.0, 0.0], np.full(998, -1e6)])
    log = raced(problem, constant(means))
    enough = int(course(problem).enough[0])
    assert [log.pulls(0), log.pulls(1)] == [enough, enough]
    assert_within_what_was_promised(log)


def test_rewards_however_large_do_not_overflow() -> None:
    problem = sl.Problem(m=2, epsilon=0.1, delta=0.05, variances=[1.0, 1.0, 1.0, 2.0])
    log = raced(problem, constant(np.array([1e200, 0.0, 0.0, -1e200])))
    assert 0 in log.selected
    assert 3 not in log.selected


# The ledger


@pytest.mark.parametrize(("n", "m"), [(2, 1), (10, 3), (65, 4), (64, 63)])
@pytest.mark.parametrize("delta", [0.08, 1e-4])
def test_prices_are_what_the_ledger_says(n: int, m: int, delta: float) -> None:
    """Each part of the sum alone reaches what its share allows just when the pair is settled."""
    problem = sl.Problem(m=m, epsilon=0.1, delta=delta, variances=np.linspace(1.0, 2.0, n))
    guarantee = strategy_named("race").guarantee(problem)
    assert guarantee is not None
    shares = [share.delta for share in guarantee.ledger.shares]
    assert math.fsum(shares) == pytest.approx(delta, rel=1e-14)
    assert shares == pytest.approx([delta * weight for weight in WEIGHTS.values()], rel=1e-14)
    prices = course(problem).rungs.prices
    assert prices.below == pytest.approx(math.log(m / shares[0]), rel=1e-14)
    assert prices.above == pytest.approx(math.log((n - m) / shares[1]), rel=1e-14)
    both = prices.below + prices.above - prices.discount
    assert both == pytest.approx(math.log(m * (n - m) / shares[2]), rel=1e-14)
