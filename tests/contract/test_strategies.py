"""What every strategy must do, whatever its rule. A new strategy is tested here by being registered."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments
from tests.playing import fitting, gaussian_rewards, play, same
from tests.questions import bound_of

pytestmark = pytest.mark.parametrize("name", sl.strategies.names())

CASES = {
    "one of two": (1, [1.0, 1.0]),
    "three of ten": (3, [0.5, 1, 2, 4, 8, 1, 1, 3, 0.7, 1.3]),
    "one of ten": (1, [0.5, 1, 2, 4, 8, 1, 1, 3, 0.7, 1.3]),
    "most of ten": (7, [0.5, 1, 2, 4, 8, 1, 1, 3, 0.7, 1.3]),
    "all but one": (5, [1.0, 2, 3, 4, 5, 6]),
    "equal": (2, [1.0] * 24),
    "powers": (1, [2.0**k for k in range(-3, 4)] * 4),
}


def question(case: str, epsilon: float = 1.5, delta: float = 0.1) -> sl.Problem:
    m, variances = CASES[case]
    return sl.Problem(m=m, epsilon=epsilon, delta=delta, variances=variances)


def problem_of(name: str, case: str, epsilon: float = 1.5, delta: float = 0.1) -> sl.Problem:
    """The case, asking for one arm only if the strategy can select no more."""
    return fitting(name, question(case, epsilon, delta))


def usual(name: str) -> sl.Problem:
    return problem_of(name, "three of ten")


def means_of(problem: sl.Problem, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).permutation(np.linspace(0.0, 6.0, problem.n))


def states(name: str, problem: sl.Problem, most: int = 12) -> list[tuple[Any, FloatArray]]:
    """The first states of a run, each with what it was told next."""
    strategy = strategy_named(name)
    state = strategy.init(problem, ())
    found: list[tuple[Any, FloatArray]] = []
    reward = gaussian_rewards(means_of(problem), problem.variances, seed=5)
    while not strategy.verdict(state).is_final and len(found) < most:
        batch = strategy.ask(state)
        told = [reward(int(arm), len(found), int(n)) for arm, n in zip(batch.arms, batch.counts, strict=True)]
        found.append((state, np.array(told)))
        state = strategy.tell(state, Moments(np.array(told)))
    return found


@pytest.mark.parametrize("case", CASES)
def test_it_selects_what_it_says(name: str, case: str) -> None:
    problem = problem_of(name, case)
    played = play(name, problem, gaussian_rewards(means_of(problem), problem.variances, seed=2))
    assert len(played.selected) == strategy_named(name).n_selected(problem)
    assert played.selected <= set(range(problem.n))


@pytest.mark.parametrize("case", CASES)
def test_ask_is_idempotent_and_tell_leaves_its_arguments_unchanged(name: str, case: str) -> None:
    strategy = strategy_named(name)
    for state, told in states(name, problem_of(name, case)):
        before, given = copy.deepcopy(state), told.copy()
        first = strategy.ask(state)
        after = strategy.tell(state, Moments(told))
        assert same(first, strategy.ask(state))
        assert same(before, state)
        assert told.tobytes() == given.tobytes()
        assert same(after, strategy.tell(state, Moments(told)))


def test_a_batch_asks_each_arm_once_for_at_least_one_pull(name: str) -> None:
    for case in CASES:
        for state, _ in states(name, problem_of(name, case)):
            batch = strategy_named(name).ask(state)
            assert len(set(batch.arms.tolist())) == len(batch.arms) > 0
            assert batch.counts.min() >= 1
            assert batch.arms.dtype == batch.counts.dtype == np.int64


def test_a_state_survives_being_saved_bit_for_bit(name: str) -> None:
    strategy = strategy_named(name)
    for state, told in states(name, usual(name)):
        restored = pickle.loads(pickle.dumps(state))
        assert same(state, restored)
        assert same(strategy.tell(state, Moments(told)), strategy.tell(restored, Moments(told)))


def test_an_ended_strategy_asks_for_nothing_and_stays_as_it_is(name: str) -> None:
    problem, strategy = usual(name), strategy_named(name)
    state = strategy.init(problem, ())
    while not strategy.verdict(state).is_final:
        batch = strategy.ask(state)
        state = strategy.tell(state, Moments(means_of(problem)[batch.arms]))
    assert strategy.ask(state).arms.shape == strategy.ask(state).counts.shape == (0,)
    assert same(strategy.tell(state, Moments(np.empty(0))), state)


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_selecting_all_arms_takes_no_pulls(name: str, n: int) -> None:
    problem = sl.Problem(m=n, epsilon=0.1, delta=0.05, variances=np.linspace(1, 3, n))
    session = sl.Session(problem, name)
    assert session.is_done
    assert not session.ask()
    assert session.result.n_pulls == 0
    assert sorted(session.result.indices.tolist()) == list(range(n))
    assert strategy_named(name).worst_case_pulls(problem) == 0
    assert sl.simulate(problem, np.zeros(n), name, replications=3).pulls.tolist() == [0, 0, 0]


@pytest.mark.parametrize("case", CASES)
def test_replay_of_the_log_is_the_live_run(name: str, case: str) -> None:
    problem = problem_of(name, case)
    live = sl.Session(problem, name, seed=3)
    sl.drive(live, sl.simulated_measure(problem, means_of(problem)))
    again = sl.Session.replay(problem, name, live.events, seed=3)
    assert live.settings is not None
    again.arrange(live.settings)
    assert same(live._state, again._state)
    assert live.result.to_dict() == again.result.to_dict()


def test_partial_tells_in_any_order_are_one_tell(name: str) -> None:
    problem = usual(name)
    whole, parts = sl.Session(problem, name), sl.Session(problem, name)
    rng = np.random.default_rng(0)
    while tickets := whole.ask():
        means = rng.standard_normal(len(tickets)) + means_of(problem)[tickets.arms]
        whole.tell(tickets, means=means)
        for place in rng.permutation(len(tickets)).tolist():
            parts.tell(tickets[place], sl.Summary(tickets[place].count, float(means[place])))
        assert same(whole._state, parts._state)
    assert whole.result.to_dict() == parts.result.to_dict()


def test_telling_more_than_was_asked_is_an_error(name: str) -> None:
    problem = usual(name)
    session = sl.Session(problem, name)
    tickets = session.ask()
    stranger = sl.session.Tickets(
        problem, tickets.round + 1, tickets.arms, tickets.counts, tickets.first_pulls
    )
    with pytest.raises(sl.errors.NotAsked):
        session.tell(stranger, means=np.zeros(len(tickets)))
    with pytest.raises(sl.MeasurementFailed):
        session.tell(tickets[0], [0.0] * (tickets[0].count + 1))
    assert session.n_pulls == 0
    assert not session.events


@pytest.mark.parametrize("case", ["three of ten", "most of ten", "powers"])
def test_permuting_the_arms_permutes_the_answer(name: str, case: str) -> None:
    problem = problem_of(name, case)
    order = np.random.default_rng(8).permutation(problem.n)
    shuffled = sl.Problem(m=problem.m, epsilon=1.5, delta=0.1, variances=problem.variances[order])
    reward = gaussian_rewards(means_of(problem), problem.variances, seed=4)
    plain = play(name, problem, reward)
    moved = play(name, shuffled, lambda arm, number, count: reward(int(order[arm]), number, count))
    assert {int(order[arm]) for arm in moved.selected} == plain.selected
    assert {int(order[arm]): pulls for arm, pulls in moved.pulls.items()} == plain.pulls


@pytest.mark.parametrize("power", [-9, 4])
@pytest.mark.parametrize("case", ["three of ten", "powers"])
def test_changing_the_unit_by_a_power_of_two_changes_nothing(name: str, case: str, power: int) -> None:
    problem, unit = problem_of(name, case), 2.0**power
    variances = problem.variances * unit**2
    scaled = sl.Problem(m=problem.m, epsilon=1.5 * unit, delta=0.1, variances=variances)
    reward = gaussian_rewards(means_of(problem), problem.variances, seed=4)
    plain = play(name, problem, reward)
    other = play(name, scaled, lambda arm, number, count: unit * reward(arm, number, count))
    assert other.batches == plain.batches
    assert other.selected == plain.selected


def test_adding_a_constant_to_all_rewards_changes_nothing(name: str) -> None:
    problem = usual(name)
    reward = gaussian_rewards(means_of(problem), problem.variances, seed=4)
    plain = play(name, problem, reward)
    moved = play(name, problem, lambda arm, number, count: reward(arm, number, count) - 40.0)
    assert moved.batches == plain.batches
    assert moved.selected == plain.selected


@pytest.mark.parametrize("case", CASES)
def test_a_lane_is_what_it_would_be_alone(name: str, case: str) -> None:
    problem = problem_of(name, case)
    together = sl.simulate(problem, means_of(problem), name, replications=4, seed=9)
    for lane in range(4):
        rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(lane,)))
        strategy = strategy_named(name)
        state, pulls = strategy.init(problem, ()), 0
        while not strategy.verdict(state).is_final:
            batch = strategy.ask(state)
            scales = np.sqrt(problem.variances[batch.arms] / batch.counts)
            noise = rng.standard_normal(len(batch.arms))
            state = strategy.tell(state, Moments(noise * scales + means_of(problem)[batch.arms]))
            pulls += int(batch.counts.sum())
        assert together.pulls[lane] == pulls
        assert together.selected[lane].tolist() == strategy.verdict(state).selected.tolist()


@pytest.mark.parametrize("case", CASES)
def test_pulls_never_exceed_the_certified_worst_case(name: str, case: str) -> None:
    problem = problem_of(name, case)
    worst = sl.plan(problem)[name].worst_case_pulls
    assert worst == strategy_named(name).worst_case_pulls(problem)
    if worst is None:
        assert name in {"lucb", "ugape", "biz", "top-two"}
        return
    for seed in range(2):
        outcome = sl.simulate(problem, means_of(problem, seed), name, replications=10, seed=seed)
        assert outcome.pulls.max() <= worst
    noisiest_first = np.argsort(np.argsort(problem.variances, kind="stable"), kind="stable")
    adverse = sl.simulate(problem, 100.0 * noisiest_first, name, replications=1, rewards="noiseless")
    if strategy_named(name).take_lanes is None:
        assert adverse.pulls[0] == worst  # the noisiest arms survive: the bound is attained
    assert adverse.pulls[0] <= worst


@pytest.mark.parametrize("case", CASES)
def test_it_takes_the_rounds_of_the_plan_and_no_fewer_pulls_than_any_algorithm_must(
    name: str, case: str
) -> None:
    problem = problem_of(name, case)
    row = sl.plan(problem)[name]
    played = play(name, problem, gaussian_rewards(means_of(problem), problem.variances, seed=2))
    if row.rounds is not None and strategy_named(name).take_lanes is None:
        assert len(played.batches) == row.rounds
    assert row.rounds is None or len(played.batches) <= row.rounds
    assert (row.rounds is None) == (row.worst_case_pulls is None)
    if (
        row.guarantee is not None
        and row.guarantee.scope is sl.certificates.Scope.TOP_M
        and row.worst_case_pulls
    ):
        assert row.worst_case_pulls >= bound_of(problem)


def test_the_ledger_spends_at_most_delta(name: str) -> None:
    for case in CASES:
        problem = problem_of(name, case)
        guarantee = strategy_named(name).guarantee(problem)
        if guarantee is None:
            assert name in {"adapted-medelim-published", "bechhofer", "gaussian-single-stage", "kn", "biz"}
            continue
        assert guarantee.ledger.total <= problem.delta * (1 + 1e-12)
        assert all(share.delta > 0 and share.event for share in guarantee.ledger.shares)
        assert str(guarantee).endswith(".")


def test_without_noise_the_answer_is_exact(name: str) -> None:
    for case in CASES:
        problem = problem_of(name, case, epsilon=0.05)
        means = means_of(problem)
        if strategy_named(name).worst_case_pulls(problem) is None:
            means = means * 100  # gaps far above epsilon, so that few pulls settle it
        outcome = sl.simulate(problem, means, name, replications=1, rewards="noiseless")
        best = set(np.argsort(-means)[: problem.m].tolist())
        assert best <= set(outcome.selected[0].tolist())
        assert outcome.errors == 0


def test_the_order_of_means_in_memory_does_not_matter(name: str) -> None:
    problem, strategy = usual(name), strategy_named(name)
    rng = np.random.default_rng(6)
    rows, columns = strategy.init(problem, (4,)), strategy.init(problem, (4,))
    for _ in range(20):
        batch = strategy.ask(rows)
        if not batch.arms.size:
            break
        means = means_of(problem)[batch.arms] + rng.standard_normal(batch.arms.shape)
        rows, columns = (
            strategy.tell(rows, Moments(means)),
            strategy.tell(columns, Moments(np.asfortranarray(means))),
        )
        assert strategy.ask(rows).arms.tolist() == strategy.ask(columns).arms.tolist()
        assert strategy.verdict(rows).selected.tolist() == strategy.verdict(columns).selected.tolist()


def test_a_problem_that_it_cannot_take_is_refused_with_the_reason(name: str) -> None:
    for case in CASES:
        problem = question(case)
        reason = strategy_named(name).unfit(problem)
        if not reason:
            continue
        assert sl.plan(problem)[name].note == reason
        assert not sl.plan(problem)[name].is_certified
        for refused in (
            lambda: sl.Session(problem, name),  # noqa: B023
            lambda: sl.simulate(problem, means_of(problem), name),  # noqa: B023
        ):
            with pytest.raises(sl.InvalidProblem, match=reason):
                refused()
