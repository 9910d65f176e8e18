"""What every strategy for unknown variances must do, whatever its rule."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import pilot, strategy_for
from shortlist.strategies.protocol import Moments
from tests.playing import Reward, gaussian_rewards, same
from tests.playing_unknown import drawn_variances, play_unknown
from tests.questions import unknown

REFUSED = {"medelim", "adapted-medelim-published", "bechhofer", "gaussian-single-stage", "kn", "biz"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("name", sorted(set(sl.strategies.names("unknown")) - REFUSED)),
]

CASES = {
    "one of two": (1, [1.0, 1.0]),
    "three of ten": (3, [0.5, 1, 2, 4, 8, 1, 1, 3, 0.7, 1.3]),
    "all but one": (5, [1.0, 2, 3, 4, 5, 6]),
    "powers": (1, [2.0**k for k in range(-3, 4)] * 3),
}


def question_of(name: str, case: str, **changes: Any) -> sl.Problem:
    m, variances = CASES[case]
    given = {"m": m, "epsilon": 3.0, "delta": 0.1, "n": len(variances), "pilot": 16} | changes
    asked = unknown(**given)
    return asked.changed(m=1) if strategy_for(name, asked).unfit(asked) else asked


def means_of(question: sl.Problem, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).permutation(np.linspace(0.0, 24.0, question.n))


def setting(name: str, case: str, **changes: Any) -> tuple[sl.Problem, Reward, FloatArray]:
    """A question, rewards and the sample variances of its pilot."""
    question, variances = question_of(name, case, **changes), CASES[case][1]
    reward = gaussian_rewards(means_of(question), variances, seed=5)
    return question, reward, drawn_variances(variances, pilot.size(question), seed=5)


def states(name: str, case: str, most: int = 8) -> list[tuple[Any, Moments]]:
    """The first states of a run, each with what it was told next."""
    question, reward, shown = setting(name, case)
    rules = strategy_for(name, question)
    state = rules.init(question, ())
    found: list[tuple[Any, Moments]] = []
    while not rules.verdict(state).is_final and len(found) < most:
        batch = rules.ask(state)
        told = [reward(int(arm), len(found), int(n)) for arm, n in zip(batch.arms, batch.counts, strict=True)]
        given = Moments(np.array(told), None if found and not rules.needs_variances else shown[batch.arms])
        found.append((state, given))
        state = after(name, question, state, given)
    return found


def after(name: str, question: sl.Problem, state: Any, given: Moments) -> Any:
    return strategy_for(name, question).tell(state, given)


@pytest.mark.parametrize("case", CASES)
def test_ask_and_tell_change_nothing_and_states_can_be_saved(name: str, case: str) -> None:
    question = question_of(name, case)
    rules = strategy_for(name, question)
    for state, given in states(name, case):
        before, told = copy.deepcopy(state), copy.deepcopy(given)
        batch = rules.ask(state)
        assert len(set(batch.arms.tolist())) == len(batch.arms) > 0
        assert batch.counts.min() >= 1
        assert batch.arms.dtype == batch.counts.dtype == np.int64
        following = after(name, question, state, given)
        assert same(batch, rules.ask(state))
        assert same(before, state)
        assert same(told, given)
        restored = pickle.loads(pickle.dumps(state))
        assert same(state, restored)
        assert same(following, after(name, question, restored, given))


def test_an_ended_strategy_asks_for_nothing_and_stays_as_it_is(name: str) -> None:
    question = question_of(name, "three of ten").changed(m=10)
    rules = strategy_for(name, question)
    for lanes in ((), (3,)):
        state = rules.init(question, lanes)
        assert rules.verdict(state).is_final.all()
        assert rules.ask(state).counts.sum() == 0
        assert same(rules.tell(state, Moments(np.empty((*lanes, 0)))), state)
    assert sl.simulate(question, np.zeros(10), name, variances=np.ones(10)).pulls.max() == 0
    session = sl.Session(question, name)
    assert session.is_done
    assert session.result.guarantee is not None


@pytest.mark.parametrize("case", CASES)
def test_replay_of_the_log_is_the_live_run(name: str, case: str) -> None:
    question, scales = question_of(name, case), np.sqrt(CASES[case][1])
    live = sl.Session(question, name, seed=3)
    result = sl.drive(live, lambda arm, count, rng: rng.normal(means_of(question)[arm], scales[arm], count))
    again = sl.Session.replay(question, name, live.events, seed=3)
    assert same(live._state, again._state)
    assert live.result.to_dict() == again.result.to_dict() == result.to_dict()
    assert live.worst_case_pulls == again.worst_case_pulls
    assert len(result.indices) == question.m
    assert live.events[0].variances is not None
    is_needed = strategy_for(name, question).needs_variances
    assert all((event.variances is not None) == is_needed for event in live.events if event.round > 0)
    if live.worst_case_pulls is not None:
        assert result.n_pulls <= live.worst_case_pulls


def test_partial_tells_in_any_order_are_one_tell(name: str) -> None:
    question, _, shown = setting(name, "three of ten")
    is_needed = strategy_for(name, question).needs_variances
    whole, parts = sl.Session(question, name), sl.Session(question, name)
    rng = np.random.default_rng(0)
    while tickets := whole.ask():
        means = rng.standard_normal(len(tickets)) + means_of(question)[tickets.arms]
        is_shown = tickets.round == 0 or is_needed
        variances = shown[tickets.arms] if is_shown else [None] * len(tickets)
        told = [
            sl.Summary(ticket.count, mean, variance)
            for ticket, mean, variance in zip(tickets, means.tolist(), variances, strict=True)
        ]
        assert tickets.needs_variances == is_shown
        whole.tell(tickets, told)
        for place in rng.permutation(len(tickets)).tolist():
            parts.tell(tickets[place], told[place])
        assert same(whole._state, parts._state)
    assert whole.result.to_dict() == parts.result.to_dict()


@pytest.mark.parametrize("case", ["three of ten", "powers"])
def test_permuting_the_arms_permutes_the_answer(name: str, case: str) -> None:
    question, reward, shown = setting(name, case)
    order = np.random.default_rng(8).permutation(question.n)
    plain = play_unknown(name, question, reward, shown)
    moved = play_unknown(
        name, question, lambda arm, number, count: reward(int(order[arm]), number, count), shown[order]
    )
    assert {int(order[arm]) for arm in moved.selected} == plain.selected
    if name != "paired-race":  # there, rewards that were not told depend on the number of the arm
        assert {int(order[arm]): pulls for arm, pulls in moved.pulls.items()} == plain.pulls


@pytest.mark.parametrize("power", [-9, 4])
def test_neither_the_unit_nor_the_origin_of_rewards_matters(name: str, power: int) -> None:
    question, reward, shown = setting(name, "three of ten")
    unit = 2.0**power
    plain = play_unknown(name, question, reward, shown)
    scaled = play_unknown(
        name,
        question.changed(epsilon=3.0 * unit),
        lambda arm, number, count: unit * reward(arm, number, count),
        shown * unit**2,
    )
    moved = play_unknown(name, question, lambda arm, number, count: reward(arm, number, count) - 40.0, shown)
    assert plain.batches == scaled.batches
    if name != "paired-race":  # there, rewards that were not told depend on the bits of the mean
        assert plain.batches == moved.batches
    assert plain.selected == scaled.selected == moved.selected


@pytest.mark.parametrize("case", CASES)
def test_a_lane_is_what_it_would_be_alone(name: str, case: str) -> None:
    question, variances = question_of(name, case), np.array(CASES[case][1])
    means = means_of(question)
    together = sl.simulate(question, means, name, variances=variances, replications=4, seed=9)
    rules = strategy_for(name, question)
    for lane in range(4):
        rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(lane,)))
        state, pulls = rules.init(question, ()), 0
        while not rules.verdict(state).is_final:
            batch = rules.ask(state)
            noise = rng.standard_normal(len(batch.arms))
            told = noise * np.sqrt(variances[batch.arms] / batch.counts) + means[batch.arms]
            shown = None
            if not pulls or rules.needs_variances:
                freedom = batch.counts - 1
                shown = variances[batch.arms] * rng.chisquare(freedom) / freedom
            state = after(name, question, state, Moments(told, shown))
            pulls += int(batch.counts.sum())
        assert together.pulls[lane] == pulls
        assert together.selected[lane].tolist() == rules.verdict(state).selected.tolist()


@pytest.mark.parametrize("case", CASES)
def test_pulls_stay_below_the_cap_that_the_pilot_gives(name: str, case: str) -> None:
    """Rewards that tell arms apart as little as can be: the cap is put to the test."""
    question, _, shown = setting(name, case)
    rules = strategy_for(name, question)
    assert rules.worst_case_pulls(question) is None
    if rules.needs_variances:
        assert rules.cap_from is None  # there is no pilot
        return
    assert rules.cap_from is not None
    assert rules.cap_from(rules.init(question, ())) is None
    told = 1e-9 * shown[question.arms]
    state = rules.tell(rules.init(question, ()), Moments(told, shown))
    cap = rules.cap_from(state)
    if rules.verdict(state).is_final or cap is None:
        assert rules.verdict(state).is_final or name in {"lucb", "ugape", "top-two"}
        return
    played = play_unknown(name, question, lambda arm, _number, _count: float(told[arm]), shown)
    assert played.n_pulls <= cap
    if rules.n_rounds(question) is not None:
        assert len(played.batches) <= (rules.n_rounds(question) or 0)


def test_the_ledger_spends_delta(name: str) -> None:
    for case in CASES:
        question = question_of(name, case)
        promise = strategy_for(name, question).guarantee(question)
        assert promise is not None
        assert promise.delta == 0.1
        assert promise.epsilon == 3.0
        assert promise.ledger.total == pytest.approx(0.1, rel=1e-12)
        assert all(share.delta > 0 and share.event for share in promise.ledger.shares)
        assert "Gaussian" in str(promise)
        assert "stated" not in str(promise)


def test_without_noise_the_answer_is_exact(name: str) -> None:
    for case in CASES:
        question = question_of(name, case)
        outcome = sl.simulate(
            question, means_of(question), name, variances=CASES[case][1], replications=2, rewards="noiseless"
        )
        best = np.sort(np.argsort(-means_of(question))[: question.m])
        assert outcome.selected.tolist() == [best.tolist()] * 2
