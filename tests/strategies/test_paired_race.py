"""The paired race: right whenever one looks, and a function of the rewards alone."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.paired_t import log_evidence
from shortlist.errors import NoGuarantee
from shortlist.report.run_warnings import findings_of
from shortlist.strategies import paired_race, strategy_for
from shortlist.strategies.paired_race import Ended, Open
from shortlist.strategies.protocol import Moments

from .test_shared_items import is_false

pytestmark = pytest.mark.slow


def question(n: int, m: int = 1, epsilon: float = 0.5, delta: float = 0.05, **changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": m, "epsilon": epsilon, "delta": delta, "n": n}
    return sl.Problem(**(given | {"rewards": sl.Gaussian(), "items": sl.Blocks()} | changes))


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
        low, high = -float(own.mean()), 1000.0
        for _ in range(80):
            middle = (low + high) / 2
            mean = own.mean() + middle
            spread = ((own - own.mean()) ** 2).sum()
            is_enough = log_evidence(np.array([k]), np.array([k * mean**2 / spread]))[0] >= threshold
            low, high = (low, middle) if is_enough else (middle, high)
        if high < 999:
            found = min(found, high)
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


@pytest.mark.parametrize("lockstep", [False, True])
@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 2), (8, 1)])
def test_nothing_false_is_certified_at_any_moment(n: int, m: int, correlation: float, lockstep: bool) -> None:
    """An adversary stops as soon as something false is certified; the best are just over epsilon ahead."""
    means = [0.51] * m + [0.0] * (n - m)
    delta, n_runs, n_false = 0.45, 60, 0
    for seed in range(n_runs):
        rewards = drawn(means, 4000, seed, correlation)
        problem = question(n, m, delta=delta, items=sl.Blocks(lockstep))
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


def test_equal_differences_prove_nothing() -> None:
    """Gaussian differences are never equal: the run ends as before, but nothing is guaranteed."""
    state = end(question(2), np.zeros((2, 100)))
    assert state.seen.min() >= paired_race.EQUAL
    found = paired_race.certified(Ended(state.incumbents, state))
    assert found.is_void
    assert found.guarantee is None
    assert math.isinf(found.epsilon)
    assert "differ by exactly the same amount in all" in found.sentence


def test_a_result_from_equal_differences_has_no_guarantee() -> None:
    """Differences that vary have one, even if some of them are equal."""
    result = sl.select(lambda arm, blocks: [float(arm)] * len(blocks), question(2), seed=0)
    assert result.selected == ("arm-1",)
    assert result.guarantee is None
    assert not result.is_answer
    assert result.stop is sl.Stop.UNPROVED
    assert "Nothing is guaranteed: arm-1 and arm-0 differ by exactly the same amount" in str(result)
    assert any("cached or badly seeded" in finding.words for finding in findings_of(result))
    with pytest.raises(NoGuarantee, match="differ by exactly"):
        result.require_guarantee()
    result = sl.select(
        lambda arm, blocks: [3.0 * arm + (block % 5) * arm for block in blocks], question(2), seed=0
    )
    assert result.guarantee is not None
    assert not result.notes


def test_differences_that_are_equal_but_for_rounding_errors_prove_nothing() -> None:
    """A common disturbance of each block leaves rounding errors, which look like tiny noise."""
    result = sl.select(
        lambda arm, blocks: [0.013 * arm + 3.7 * math.sin(block) for block in blocks], question(3), seed=0
    )
    assert result.arms.pulls.max() < paired_race.EQUAL
    assert result.guarantee is None
    assert "differ by exactly the same amount" in str(result)


def test_equal_differences_are_reported_before_the_end(caplog: pytest.LogCaptureFixture) -> None:
    sl.select(lambda arm, blocks: [float(arm)] * len(blocks), question(2), seed=0)
    assert [record.getMessage()[:48] for record in caplog.records] == [
        "Warning: arm-1 and arm-0 differ by exactly the sa"[:48]
    ]
    assert f"in all {paired_race.DOUBTFUL} blocks" in caplog.text
    caplog.clear()
    sl.select(lambda arm, blocks: [arm + (block % 5) * arm / 9 for block in blocks], question(2), seed=0)
    assert not caplog.records


def test_numbers_that_overflow_settle_nothing() -> None:
    state = paired_race.init(question(2))
    with np.errstate(over="ignore", invalid="ignore"):
        rewards = np.zeros((2, 100))
        rewards[0, :2] = 1e200, -1e200
        assert not isinstance(told(state, rewards), Ended)


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


IN_LOCKSTEP: dict[str, Any] = {"items": sl.Blocks(lockstep=True)}


@pytest.mark.parametrize("seed", range(4))
def test_in_lockstep_no_arm_falls_behind_and_goes_on(seed: int) -> None:
    rewards, stopped = drawn([0.0, 0.9, 1.0, 0.8, -3.0, 0.95], 9000, seed, 0.5), set[int]()
    for state in states(question(6, m=2, epsilon=0.25, **IN_LOCKSTEP), rewards):
        if isinstance(state, Ended):
            break
        assert len(set(state.seen[state.arms].tolist())) == 1
        assert int(state.seen[state.arms[0]]) == state.seen.max()
        assert not stopped & set(state.arms.tolist())
        stopped = set(range(6)) - set(state.arms.tolist())
        assert not stopped & set(state.incumbents.tolist())
    assert 4 in stopped


def test_in_lockstep_an_arm_stops_only_if_all_incumbents_are_certified_to_be_better() -> None:
    """The third arm is worse than the second by less than epsilon: settled at some time, but it goes on."""
    rewards = drawn([3.0, 1.0, 0.9, 0.6], 9000, 3, 0.9)
    n_settled = n_better = 0
    for state in states(question(4, m=2, epsilon=0.3, **IN_LOCKSTEP), rewards):
        if isinstance(state, Ended) or not len(state.incumbents):
            continue
        epsilons = np.array([state.pairs[arm].epsilons for arm in state.incumbents.tolist()])
        for arm in set(range(4)) - set(state.incumbents.tolist()):
            n_settled += bool((epsilons[:, arm] <= 0.3).all() and epsilons[:, arm].max() >= 0)
            n_better += bool(epsilons[:, arm].min() < 0 <= epsilons[:, arm].max())
            assert (arm in state.arms) == (epsilons[:, arm].max() >= 0)
    assert n_settled
    assert n_better


def after_a_change(changes: dict[int, float], m: int) -> Open:
    """Return the state after the last arm has stopped, and the level of some arms has then changed."""
    state: Any = paired_race.init(question(4, m=m, epsilon=0.01, **IN_LOCKSTEP))
    rewards = drawn([9.0, 9.0, 9.0, -9.0], 200, 1)
    rewards[2, :30:2] += 100  # this arm is so noisy that its pair with the last one stays open
    rewards[2, 1:30:2] -= 100
    while not state.is_out[3]:
        rewards[2, state.seen.max()] = rewards[[0, 1], state.seen.max()].mean()
        state = told(state, rewards)
    for arm, change in changes.items():
        rewards[arm, state.seen.max() :] += change
    for _ in range(5):
        state = told(state, rewards)
    assert isinstance(state, Open)
    assert state.is_out.tolist() == [False, False, False, True]
    return state


def test_in_lockstep_an_arm_that_has_stopped_is_settled_with_every_later_incumbent() -> None:
    state = after_a_change({2: 1000.0}, m=1)
    assert state.incumbents.tolist() == [2]
    assert state.pairs[2].epsilons[3] > state.problem.epsilon
    assert not paired_race.open_pairs(state)[0, 3]
    certified = paired_race.certified(state)
    assert certified.statuses[3] == "out"
    assert certified.epsilon < state.pairs[2].epsilons[3]


def test_in_lockstep_an_arm_that_has_stopped_never_is_an_incumbent() -> None:
    state = after_a_change({1: -900.0, 2: -900.0}, m=2)
    assert int(np.argmax(paired_race.estimates(state)[1:])) == 2  # the last one looks better than two others
    assert 3 not in state.incumbents


def test_a_large_difference_does_not_hide_its_variance() -> None:
    rewards = drawn([0.0, 0.0], 8, 8)
    near, far = (
        paired_race.with_all_pairs(led(rewards + np.array([[level], [0.0]]))) for level in (0.0, 2.0**40)
    )
    assert far.pairs[0].variances[1] == pytest.approx(near.pairs[0].variances[1], rel=1e-3)


def led(rewards: FloatArray) -> Open:
    """Return the state in which arm 0 leads after the first blocks."""
    state = paired_race.with_scores(paired_race.init(question(2)), rewards.ravel())
    return replace(state, incumbents=np.array([0]))
