"""The race with limits: right whenever one looks, and the limits are those of the definition."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.paired_t import log_evidence
from shortlist.planning import resolve
from shortlist.strategies import t_cut_race
from shortlist.strategies.protocol import Moments
from shortlist.strategies.t_cut_race import Ended, Open

from .test_shared_items import is_false


def question(n: int, m: int = 1, epsilon: float = 0.5, delta: float = 0.05, **changes: Any) -> sl.Problem:
    return sl.Problem(m=m, epsilon=epsilon, delta=delta, n=n, rewards=sl.Gaussian(), **changes)


Choose = Callable[[Open, np.random.Generator], Open]


def moments(rewards: list[FloatArray], counts: IntArray) -> Moments:
    assert [len(own) for own in rewards] == counts.tolist()
    return Moments(np.array([own.mean() for own in rewards]), np.array([own.var(ddof=1) for own in rewards]))


def states(
    problem: sl.Problem, means: FloatArray, scales: FloatArray, seed: int, choose: Choose | None = None
) -> Iterator[tuple[Open | Ended, list[FloatArray]]]:
    """Yield all states of a run, with the rewards of all arms so far."""
    rng = np.random.default_rng(seed)
    state: Open | Ended = t_cut_race.init(problem)
    rewards = [np.empty(0)] * problem.n
    while not isinstance(state, Ended):
        state = state if choose is None else choose(state, rng)
        new = [
            rng.normal(means[arm], scales[arm], count)
            for arm, count in zip(state.arms, state.counts, strict=True)
        ]
        for arm, own in zip(state.arms.tolist(), new, strict=True):
            rewards[arm] = np.concatenate([rewards[arm], own])
        state = t_cut_race.tell(state, moments(new, state.counts))
        yield state, rewards


def test_limits_are_those_of_the_definition() -> None:
    problem = question(4, m=2)
    upper, lower = np.log(2 / (0.7 * 0.05)), np.log(2 / (0.3 * 0.05))
    uppers, lowers = np.full(4, np.inf), np.full(4, -np.inf)
    for state, rewards in states(problem, np.array([0.0, 0.5, 1.0, 0.8]), np.array([1.0, 2, 1, 0.5]), 3):
        last = state.last if isinstance(state, Ended) else state
        for arm, own in enumerate(rewards):
            k, spread = len(own), ((own - own.mean()) ** 2).sum()
            assert last.pulls[arm] == k
            assert last.means[arm] == pytest.approx(own.mean())
            assert last.deviations[arm] == pytest.approx(spread)
            for sign, threshold, found in ((1, upper, uppers), (-1, lower, lowers)):
                ratios = np.exp(np.linspace(-10, 25, 200_001))
                logs = log_evidence(np.full(len(ratios), k), ratios)
                if logs[-1] < threshold:
                    continue
                reach = np.sqrt(ratios[np.searchsorted(logs, threshold)] * spread / k)
                limit = own.mean() + sign * reach
                found[arm] = min(found[arm], limit) if sign > 0 else max(found[arm], limit)
        assert last.uppers == pytest.approx(uppers, rel=1e-3)
        assert last.lowers == pytest.approx(lowers, rel=1e-3)


def any_arms(state: Open, rng: np.random.Generator) -> Open:
    """Return the state with other arms to be pulled: chosen by looking at all rewards so far."""
    if not len(state.incumbents):
        return state
    from dataclasses import replace

    worst = int(np.argmin(state.uppers - state.means))
    arms = np.unique([worst, *rng.integers(state.problem.n, size=2)])
    return replace(state, arms=arms, counts=np.maximum(2, state.pulls[arms] // 4))


@pytest.mark.slow
@pytest.mark.parametrize("choose", [None, any_arms])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 2), (12, 1)])
def test_nothing_false_is_certified_at_any_moment(n: int, m: int, choose: Choose | None) -> None:
    """An adversary stops as soon as something false is certified, and may choose what is pulled."""
    means, scales = np.array([0.51] * m + [0.0] * (n - m)), np.linspace(0.5, 2, n)
    delta, n_runs, n_false = 0.45, 60, 0
    for seed in range(n_runs):
        looks = states(question(n, m, delta=delta), means, scales, seed, choose)
        n_false += any(
            is_false(t_cut_race.certified(state), means)
            for (state, _), _ in zip(looks, range(60), strict=False)
        )
    assert n_false <= delta * n_runs + 3 * np.sqrt(n_runs * delta * (1 - delta))


def end(problem: sl.Problem, means: FloatArray, scales: FloatArray, seed: int) -> Open:
    *_, (last, _) = states(problem, means, scales, seed)
    assert isinstance(last, Ended)
    return last.last


@pytest.mark.slow
def test_an_error_is_about_as_rare_as_promised() -> None:
    """With many arms, upper limits are what fails: the certificate is not too careful either."""
    problem = question(40, epsilon=0.3, delta=0.4)
    means = np.array([0.31] + [0.0] * 39)
    run = sl.simulate(problem, means, "t-cut-race", variances=np.ones(40), replications=300)
    assert 0.02 <= run.errors / 300 <= 0.4 + 3 * np.sqrt(0.24 / 300)


def test_scaling_and_shifting_change_no_decision() -> None:
    means, scales = np.array([0.0, 0.4, 1.0, 0.9]), np.array([1.0, 2.0, 1.0, 0.5])
    plain = end(question(4, m=2), means, scales, 4)
    scaled = end(question(4, m=2, epsilon=0.5 * 2**20), means * 2**20, scales * 2**20, 4)
    assert plain.pulls.tolist() == scaled.pulls.tolist()
    assert plain.incumbents.tolist() == scaled.incumbents.tolist()


def test_noisy_arms_are_pulled_more() -> None:
    state = end(question(30), np.array([1.0] + [0.0] * 29), np.array([1.0] * 15 + [4.0] * 15), 5)
    assert state.pulls[15:].mean() > 5 * state.pulls[1:15].mean()


def test_a_smaller_epsilon_goes_on() -> None:
    problem, means, scales = question(5), np.array([0.0, 0.4, 1.0, 0.2, 0.3]), np.ones(5)
    rng = np.random.default_rng(7)
    *_, (last, _) = states(problem, means, scales, 6)
    state: Any = t_cut_race.narrow(last, 0.2)
    while not isinstance(state, Ended):
        new = [rng.normal(means[arm], 1, count) for arm, count in zip(state.arms, state.counts, strict=True)]
        state = t_cut_race.tell(state, moments(new, state.counts))
    assert state.selected.tolist() == [2]
    assert t_cut_race.certified(state).epsilon <= 0.2


def test_costs_decide_which_arms_are_spared() -> None:
    means = [0.6] + [0.0] * 19
    cheap = sl.simulate(question(20), means, "t-cut-race", variances=np.ones(20), replications=20)
    dear = question(20, costs=[50.0] + [1.0] * 19)
    spared = sl.simulate(dear, means, "t-cut-race", variances=np.ones(20), replications=20)
    assert spared.errors == cheap.errors == 0
    assert spared.pulls.mean() > cheap.pulls.mean()  # more pulls of cheap arms, fewer of the best


def test_few_arms_are_compared_in_pairs_and_many_by_limits() -> None:
    found = [resolve("auto", question(n)) for n in (2, 10, 17, 18, 1000)]
    assert found == ["paired-race"] * 3 + ["t-cut-race"] * 2
    assert resolve("auto", question(15, m=3)) == "paired-race"
    assert resolve("auto", question(100, m=5)) == "t-cut-race"
    assert resolve("auto", question(3, m=3)) == "paired-race"


@pytest.mark.parametrize("strategy", ["paired-race", "t-cut-race"])
def test_variances_are_needed_in_every_round(strategy: str) -> None:
    session = sl.Session(question(3), strategy)
    for _ in range(2):
        tickets = session.ask()
        with pytest.raises(sl.MeasurementFailed, match="variance"):
            session.tell(tickets, means=[0.0] * len(tickets))
        with pytest.raises(sl.MeasurementFailed, match="variance"):
            session.tell(tickets, [sl.Summary(ticket.count, 0.0) for ticket in tickets])
        session.tell(tickets, [sl.Summary(ticket.count, 0.1 * ticket.arm, 1.0) for ticket in tickets])
    assert session.result.n_rounds == 2
    assert session.certified.epsilon < np.inf
    with pytest.raises(sl.InvalidProblem, match="asked for"):
        session.feed([0], [10], [0.5], [1.0])


@pytest.mark.parametrize("strategy", ["paired-race", "t-cut-race"])
def test_a_summary_is_as_good_as_its_rewards(strategy: str) -> None:
    def rewards(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        return rng.normal(0.4 * arm, 1 + arm, count)

    def summary(arm: int, count: int, rng: np.random.Generator) -> sl.Summary:
        own = rewards(arm, count, rng)
        return sl.Summary(count, float(own.mean()), float(own.var(ddof=1)))

    one, other = (sl.select(measure, question(4), strategy, turns=1) for measure in (rewards, summary))
    assert one.n_pulls == other.n_pulls
    assert one.selected == other.selected == ("arm-3",)


def test_few_equal_rewards_are_no_limit() -> None:
    upper, lower = t_cut_race.limits(question(5), np.array([2, 500]), np.zeros(2))
    assert upper.tolist() == lower.tolist() == [np.inf, 0.0]


def test_every_incumbent_has_an_epsilon_of_its_own() -> None:
    state = end(question(4, m=2), np.array([3.0, 1.0, 0.0, 0.0]), np.ones(4), 8)
    found = t_cut_race.certified(Ended(state.incumbents, state))
    assert found.indices.tolist() == [0, 1]
    assert found.epsilons[0] < found.epsilons[1]


def test_a_run_ends_only_when_the_worst_incumbent_is_certified() -> None:
    means = np.array([2.0, 1.0, 0.4, 0.0, -0.2])
    for seed in range(5):
        *_, (state, _) = states(question(5, m=3), means, np.ones(5), seed)
        assert t_cut_race.certified(state).is_answer
