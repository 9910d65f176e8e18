"""The paired race: right whenever one looks, and a function of the rewards alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.paired_t import log_evidence
from shortlist.strategies import paired_race, strategy_for
from shortlist.strategies.paired_race import Ended, Open
from shortlist.strategies.protocol import Moments

from .test_shared_items import is_false


def question(n: int, m: int = 1, epsilon: float = 0.5, delta: float = 0.05, **changes: Any) -> sl.Problem:
    return sl.Problem(
        m=m, epsilon=epsilon, delta=delta, n=n, rewards=sl.Gaussian(), items=sl.Blocks(), **changes
    )


def told(state: Open, rewards: FloatArray) -> Open | Ended:
    batch = paired_race.ask(state)
    pairs = zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)
    parts = [rewards[arm, state.seen[arm] :][:count] for arm, count in pairs]
    return paired_race.tell(state, Moments(np.array([]), scores=np.concatenate(parts)))


def states(problem: sl.Problem, rewards: FloatArray) -> Iterator[Open | Ended]:
    state: Open | Ended = paired_race.init(problem)
    yield state
    while not isinstance(state, Ended):
        state = told(state, rewards)
        yield state


def end(problem: sl.Problem, rewards: FloatArray) -> Open:
    *_, last = states(problem, rewards)
    assert isinstance(last, Ended)
    assert last.selected.tolist() == last.last.incumbents.tolist()
    return last.last


def drawn(means: list[float], n_blocks: int, seed: int, correlation: float = 0.0) -> FloatArray:
    rng = np.random.default_rng(seed)
    common = np.sqrt(abs(correlation)) * rng.standard_normal(n_blocks)
    signs = np.where(np.arange(len(means)) % 2 == 0, 1.0, np.sign(correlation) or 1.0)
    own = np.sqrt(1 - abs(correlation)) * rng.standard_normal((len(means), n_blocks))
    found: FloatArray = np.array(means)[:, None] + signs[:, None] * common + own
    return found


def least_epsilon(differences: FloatArray, threshold: float) -> float:
    """Return the least epsilon that is certified after any number of blocks, by the definition."""
    found = np.inf
    for k in range(2, len(differences) + 1):
        own = differences[:k]
        low, high = -own.mean(), 1000.0
        for _ in range(80):
            middle = (low + high) / 2
            mean = own.mean() + middle
            spread = ((own - own.mean()) ** 2).sum()
            is_enough = log_evidence(np.array([k]), np.array([k * mean**2 / spread]))[0] >= threshold
            low, high = (low, middle) if is_enough else (middle, high)
        if high < 999:
            found = min(found, max(high, 0.0))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_certified_of_a_pair_is_that_of_the_definition(seed: int) -> None:
    problem, rewards = question(4, m=2, epsilon=0.3), drawn([0.0, 0.2, 0.5, 0.4], 2000, seed, 0.5)
    state = end(problem, rewards)
    for arm in state.incumbents.tolist():
        pairs = state.pairs[arm]
        for other in state.outsiders.tolist():
            differences = (rewards[arm] - rewards[other])[: pairs.seen[other]]
            assert pairs.epsilons[other] == pytest.approx(
                least_epsilon(differences, state.threshold), rel=1e-6
            )
            assert pairs.variances[other] == pytest.approx(differences.var(ddof=1))


def test_the_threshold_counts_all_pairs_of_the_best_and_others() -> None:
    assert paired_race.init(question(10, m=3, delta=0.1)).threshold == pytest.approx(np.log(3 * 7 / 0.1))


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 2), (8, 1)])
def test_nothing_false_is_certified_at_any_moment(n: int, m: int, correlation: float) -> None:
    """An adversary stops as soon as something false is certified; the best are just over epsilon ahead."""
    means = [0.51] * m + [0.0] * (n - m)
    delta, n_runs, n_false = 0.45, 60, 0
    for seed in range(n_runs):
        rewards = drawn(means, 4000, seed, correlation)
        problem = question(n, m, delta=delta)
        looks = states(problem, rewards)
        n_false += any(is_false(paired_race.certified(state), np.array(means)) for state in looks)
    assert n_false <= delta * n_runs + 3 * np.sqrt(n_runs * delta * (1 - delta))


def test_shared_conditions_cancel() -> None:
    rng, problem = np.random.default_rng(1), question(5)
    own = drawn([0.0, 0.0, 1.0, 0.0, 0.3], 3000, 2)
    alone, disturbed = end(problem, own), end(problem, own + rng.normal(0, 100, 3000))
    assert alone.seen.tolist() == disturbed.seen.tolist()
    assert alone.incumbents.tolist() == disturbed.incumbents.tolist() == [2]


def test_a_high_level_costs_nothing() -> None:
    own = 0.1 * drawn([0.0, 0.0, 1.0], 3000, 3)
    problem = question(3, epsilon=0.05)
    assert end(problem, own).seen.tolist() == end(problem, own + 1e8).seen.tolist()


def test_scaling_by_a_power_of_two_changes_no_decision() -> None:
    own = drawn([0.0, 0.4, 1.0, 0.9], 3000, 4, 0.3)
    plain, scaled = end(question(4, m=2), own), end(question(4, m=2, epsilon=0.5 * 2**20), own * 2**20)
    assert plain.seen.tolist() == scaled.seen.tolist()
    assert plain.incumbents.tolist() == scaled.incumbents.tolist()


def test_permuting_arms_permutes_the_answer() -> None:
    own, order = drawn([0.0, 0.4, 1.0, 0.9, 0.2], 3000, 5), np.array([3, 1, 4, 0, 2])
    plain, permuted = end(question(5, m=2), own), end(question(5, m=2), own[order])
    assert sorted(order[permuted.incumbents].tolist()) == plain.incumbents.tolist()
    assert permuted.seen.tolist() == plain.seen[order].tolist()


def test_smaller_is_better_if_asked() -> None:
    own = drawn([0.0, 2.0, 1.0], 3000, 6)
    rules = strategy_for("paired-race", question(3))
    assert end(question(3), -own).incumbents.tolist() == [0]
    run = sl.simulate(question(3, goal="minimise"), [0.0, 2.0, 1.0], variances=[1.0] * 3, replications=3)
    assert run.selected.ravel().tolist() == [0, 0, 0]
    assert rules.name == run.strategy


def test_equal_readings_prove_little() -> None:
    state = paired_race.init(question(2))
    first = int(state.counts[0])
    state = told(state, np.zeros((2, 100)))  # type: ignore[assignment]
    assert isinstance(state, Ended)  # so many equal differences are enough for epsilon
    assert first >= 5
    assert paired_race.certified(state).epsilon == 0


def test_correlated_arms_take_a_fraction() -> None:
    problem, means = question(10, epsilon=0.3), [0.33] + [0.0] * 9
    pulls = [
        sl.simulate(problem, means, variances=[1.0] * 10, correlation=one, replications=10).pulls.mean()
        for one in (0.0, 0.9)
    ]
    assert pulls[1] < 0.25 * pulls[0]


def test_a_smaller_epsilon_goes_on_where_the_larger_ended() -> None:
    own = drawn([0.0, 0.4, 1.0], 9000, 7)
    *_, last = states(question(3), own)
    state: Any = paired_race.narrow(last, 0.2)
    while not isinstance(state, Ended):
        state = told(state, own)
    fresh = end(question(3, epsilon=0.2), own)
    assert state.selected.tolist() == fresh.incumbents.tolist()
    assert paired_race.certified(state).epsilon <= 0.2
