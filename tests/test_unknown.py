"""Unknown variances: the question, what sessions demand of answers, constants, and what is planned."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist as sl
from shortlist import simulation
from shortlist.strategies import dudewicz_dalal, kim_nelson, pilot, rinott, strategy_for, t_race
from shortlist.strategies.pilot_bounds import inflation
from tests.playing import gaussian_rewards
from tests.playing_unknown import drawn_variances, play_unknown
from tests.questions import unknown


def asked(n: int = 10, **changes: Any) -> sl.Problem:
    return unknown(**({"m": 1, "epsilon": 0.1, "delta": 0.05, "n": n} | changes))


# --- the question ----------------------------------------------------------------------------------


def test_a_question_is_plain_data() -> None:
    question = unknown(2, 0.5, 0.1, names=["a", "b", "c"], pilot=np.int64(9))  # type: ignore[arg-type]
    assert (question.n, question.name(2), question.arms.tolist()) == (3, "c", [0, 1, 2])
    assert asked().name(3) == "arm-3"
    assert question == pickle.loads(pickle.dumps(question)) == question.changed()
    assert hash(question) == hash(question.changed())
    assert question != question.changed(rewards=sl.Gaussian(pilot=10))
    assert question.to_dict()["noise"] == "gaussian-unknown"
    assert question.to_dict()["pilot"] == 9
    digests = {
        one.digest
        for one in (question, question.changed(rewards=sl.Gaussian(pilot=10)), question.changed(m=1))
    }
    assert len(digests) == 3
    assert repr(question) == "Problem(m=2, epsilon=0.5, delta=0.1, n=3, rewards=Gaussian())"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 0}, "`n` is 0; give the number of arms"),
        ({"n": 2.5}, "`n` is 2.5"),
        ({"n": True}, "`n` is True"),
        ({"n": 3, "names": ["a", "b"]}, "`n` is 3 but there are 2 `names`"),
        ({"n": 0, "names": []}, "`names` is empty"),
        ({"n": 2, "names": ["a", "a"]}, "both 'a'"),
        ({"n": 2, "names": "ab"}, "single string"),
        ({"pilot": 1}, "`pilot` is 1; it must be a whole number, 2 or more"),
        ({"m": 11}, "only 10 arms"),
        ({"epsilon": 0.0}, "`epsilon` is 0.0"),
        ({"delta": 1.0}, "`delta` is 1.0"),
        ({"guarantee": "best"}, "`guarantee` is 'best'"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=words):
        asked(**changes)


def test_known_variances_make_it_a_problem() -> None:
    problem = asked(2, names=["a", "b"], guarantee="indifference").with_variances([1.0, 2.0], delta=0.01)
    assert problem == sl.Problem(1, 0.1, 0.01, [1.0, 2.0], names=["a", "b"], guarantee="indifference")
    with pytest.raises(sl.InvalidProblem, match="3 entries but there are 10 arms"):
        asked().with_variances([1.0] * 3)


# --- names and choices -----------------------------------------------------------------------------


def test_each_kind_of_question_has_strategies_of_its_own() -> None:
    own = {"paired-race", "t-cut-race", "t-race", "dudewicz-dalal", "rinott", "kim-nelson"}
    assert set(sl.strategies.names("unknown")) == own | set(sl.strategies.names())
    assert not own & set(sl.strategies.names())
    with pytest.raises(
        sl.InvalidProblem,
        match=r"t-race is for unknown .*rewards=shortlist\.Gaussian",
    ):
        sl.Session(sl.Problem(1, 0.1, 0.05, [1.0, 1.0]), "t-race")
    with pytest.raises(sl.InvalidProblem, match="there is no strategy 'x'"):
        sl.Session(asked(), "x")
    with pytest.raises(sl.InvalidProblem, match="`variances` is 'some'"):
        sl.strategies.names("some")


@pytest.mark.parametrize(
    ("name", "m", "reason"),
    [
        ("rinott", 2, "it selects one arm only, and m is 2"),
        ("kim-nelson", 2, "it selects one arm only, and m is 2"),
        ("top-two", 2, "it selects one arm only, and m is 2"),
        ("bechhofer", 1, "nothing is proved after a pilot"),
        ("kn", 1, "nothing is proved after a pilot"),
        ("biz", 1, "nothing is proved after a pilot"),
        ("adapted-medelim-published", 1, "nothing is proved after a pilot"),
        ("medelim", 1, "it only screens"),
    ],
)
def test_what_is_not_proved_is_refused(name: str, m: int, reason: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=f"strategy {name} cannot take this problem: {reason}"):
        sl.Session(asked(m=m), name)
    assert sl.plan(asked(m=m))[name].note == reason


def test_the_plan_says_what_is_known_before_the_pilot() -> None:
    for n, best, begin in (
        (100, "t-cut-race", "starts with 6 pulls of each of 100 arms, 600 pulls in total"),
        (10, "paired-race", "starts with 8 pulls of each of 10 arms, 80 pulls in total"),
    ):
        assert sl.plan(asked(n)).best.strategy == sl.Session(asked(n)).strategy == best
        assert f"\n{best}: {begin}. How many more" in str(sl.plan(asked(n)))
    plan = sl.plan(asked(100, pilot=40))
    assert plan.best.strategy == sl.Session(asked(100, pilot=40)).strategy == "t-race"
    assert plan.best.worst_case_pulls is None
    assert plan.best.guarantee is not None
    assert "\nt-race: starts with a pilot of 40 pulls of each of 100 arms, 4,000 in total." in str(plan)
    assert "known after the pilot" in str(plan)
    assert plan["kim-nelson"].note == "only with an indifference zone"
    assert plan["rinott"].rounds == 2
    assert plan.to_dict()["gap"] is None
    assert sl.plan(asked(guarantee="indifference")).best.strategy == "kim-nelson"
    assert sl.plan(asked(guarantee="indifference", m=2)).best.strategy == "paired-race"
    assert "no measurement is needed" in str(sl.plan(asked(2, m=2)))


def test_what_is_promised_whatever_the_means_and_what_is_not() -> None:
    for name, scope in (("t-race", "TOP_M"), ("rinott", "TOP_M"), ("dudewicz-dalal", "TOP_M")):
        promise = strategy_for(name, asked()).guarantee(asked())
        assert promise is not None
        assert promise.scope.name == scope
        assert promise.answers(asked())
    promise = strategy_for("kim-nelson", asked()).guarantee(asked())
    assert promise is not None
    assert not promise.answers(asked())
    assert promise.answers(asked(guarantee="indifference"))


# --- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "h"), [(10, 3.875), (100, 5.184), (1000, 6.332)])
def test_rinott_constants_are_those_computed_elsewhere(n: int, h: float) -> None:
    assert rinott.constant(n, 20, 0.05) == pytest.approx(h, abs=6e-4)


@pytest.mark.parametrize(("n", "m", "h"), [(100, 1, 4.808), (100, 10, 5.979), (1000, 50, 7.773)])
def test_student_constants_are_those_computed_elsewhere(n: int, m: int, h: float) -> None:
    assert dudewicz_dalal.constant(n, m, 20, 0.05) == pytest.approx(h, abs=6e-4)


def test_constants_with_one_degree_of_freedom_have_a_closed_form() -> None:
    """The difference of two Cauchy variables is twice a Cauchy variable."""
    exact = 2 * math.tan(0.45 * math.pi)
    assert dudewicz_dalal.constant(2, 1, 2, 0.05) == pytest.approx(exact, rel=1e-5)
    assert rinott.constant(2, 2, 0.05) == pytest.approx(exact, rel=1e-5)


def test_with_a_large_pilot_constants_are_bechhofers() -> None:
    from shortlist.strategies.bechhofer import constant

    assert dudewicz_dalal.constant(50, 4, 10**6, 0.05) == pytest.approx(constant(50, 4, 0.05), rel=1e-4)


def test_a_guess_may_do() -> None:
    question = asked(2, delta=0.7, pilot=5)
    shown = np.ones(2)
    for name in ("rinott", "dudewicz-dalal", "kim-nelson"):
        played = play_unknown(name, question, lambda arm, *_: float(arm), shown)
        assert played.batches == [{0: 5, 1: 5}]
        assert played.selected == {1}


def test_pilots_grow_with_what_must_be_proved() -> None:
    sizes = [pilot.size(asked(n)) for n in (2, 10, 100, 10_000, 10**6)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[2], sizes[-1]) == (19, 40, 83)
    assert pilot.size(asked(pilot=7)) == 7
    log = math.log(2 * 99 / 0.05)
    assert pilot.penalty(log, 39) <= 1.25 * log < pilot.penalty(log, 38)


def test_bounds_for_all_arms_at_once_cost_more_than_the_race_pays() -> None:
    assert inflation(100, 40, 0.015) == pytest.approx(2.64, abs=0.005)
    assert t_race.penalties(asked(100))[0] / math.log(99 / 0.05) < 1.5


def test_a_tiny_pilot_that_would_need_too_many_pulls_is_refused() -> None:
    session = sl.Session(asked(1000, pilot=2, delta=1e-6))
    with pytest.raises(sl.InvalidProblem, match=r"counted exactly.* not recorded"):
        sl.drive(session, lambda _arm, count, rng: rng.normal(0, 1, count))


def test_slopes_of_kim_nelson_tend_to_those_of_kn() -> None:
    from shortlist.strategies import kn

    problem = sl.Problem(1, 0.1, 0.05, np.ones(30))
    assert kim_nelson.slope(asked(30, pilot=10**7)) == pytest.approx(kn.slope(problem), rel=1e-5)


def test_rates_follow_scales() -> None:
    assert t_race.rates(np.array([64.0, 16.0, 1.0, 0.0]), 8).tolist() == [8, 4, 1, 1]
    assert t_race.rates(np.zeros(3), 8).tolist() == [1, 1, 1]


# --- sessions --------------------------------------------------------------------------------------


def test_select_knows_nothing_of_variances() -> None:
    question = unknown(m=2, epsilon=1.0, delta=0.05, names=list("abcde"))
    result = sl.select(lambda arm, count, rng: rng.normal(2.0 * arm, 0.5 + arm, count), question, seed=1)
    assert result.strategy == "paired-race"
    assert sorted(result.selected) == ["d", "e"]
    assert "Gaussian with one variance for each arm" in str(result)
    assert "No algorithm" not in str(result)
    assert result.to_dict()["gap"] is None
    assert result.to_dict()["problem"]["noise"] == "gaussian-unknown"


def test_the_cap_is_known_after_the_pilot() -> None:
    session = sl.Session(asked(3, epsilon=1.0), "t-race")
    assert session.worst_case_pulls is None
    tickets = session.ask()
    assert tickets.needs_variances
    rng = np.random.default_rng(0)
    session.tell(tickets, [rng.normal(0, 1, ticket.count) for ticket in tickets])
    assert session.worst_case_pulls is not None
    assert session.worst_case_pulls > session.n_pulls
    assert not session.ask().needs_variances


def test_a_pilot_needs_more_than_means() -> None:
    session = sl.Session(asked(3), "t-race")
    tickets = session.ask()
    with pytest.raises(
        sl.MeasurementFailed, match="give `rewards`, summaries with `variance`, or `sample_variances`"
    ):
        session.tell(tickets, means=np.zeros(3))
    count = tickets[0].count
    with pytest.raises(sl.MeasurementFailed, match=r"arm-0 has no variance. Return all 22 rewards"):
        session.tell(tickets[0], sl.Summary(count, 0.0))
    with pytest.raises(
        sl.MeasurementFailed, match="all 22 rewards of arm-1 are equal, so they are not Gaussian"
    ):
        session.tell(tickets[1], [1.0] * count)
    assert session.n_pulls == 0
    assert not session.events


def test_a_second_answer_with_another_variance_is_a_contradiction() -> None:
    session = sl.Session(asked(2, pilot=3))
    ticket = session.ask()[0]
    session.tell(ticket, sl.Summary(3, 1.0, 2.0))
    session.tell(ticket, sl.Summary(3, 1.0, 2.0))
    with pytest.warns(sl.errors.Contradiction, match="the first answer is kept"):
        session.tell(ticket, sl.Summary(3, 1.0, 2.5))
    assert len(session.events) == len(session.conflicts) == 1


def test_a_log_without_the_variances_of_its_pilot_is_refused() -> None:
    from dataclasses import replace

    live = sl.Session(asked(2, pilot=3, epsilon=5.0))
    sl.drive(live, lambda arm, count, rng: rng.normal(arm, 1, count))
    first, *later = live.events
    with pytest.raises(sl.errors.NotAsked, match="round 0 needs sample variances"):
        sl.Session.replay(live.problem, live.strategy, [replace(first, variances=None), *later])


# --- simulation ------------------------------------------------------------------------------------


def test_simulations_are_told_the_truth_apart() -> None:
    question = asked(3, epsilon=1.0)
    with pytest.raises(sl.InvalidProblem, match="give the true `variances`"):
        sl.simulate(question, [0.0, 0.0, 1.0])
    with pytest.raises(sl.InvalidProblem, match="already has variances"):
        sl.simulate(sl.Problem(1, 0.1, 0.05, [1.0]), [0.0], variances=[1.0])
    with pytest.raises(sl.InvalidProblem, match="'two-point' cannot be simulated"):
        sl.simulate(question, [0.0, 0.0, 1.0], variances=[1.0] * 3, rewards="two-point")
    with pytest.raises(sl.InvalidProblem, match="`problem` is 3"):
        sl.simulate(3, [0.0])  # type: ignore[arg-type]


def test_sample_variances_have_the_distribution_of_gaussian_rewards() -> None:
    """Told to a strategy that keeps them: mean s and variance 2 s^2 / (count - 1), independent of means."""
    from shortlist.strategies.protocol import Batch

    arms = simulation._Arms(np.zeros(2), np.array([1.0, 9.0]), None, True)  # type: ignore[arg-type]
    rngs = [np.random.default_rng(seed) for seed in range(20_000)]
    batch = Batch(np.tile([0, 1], (20_000, 1)), np.tile([5, 3], (20_000, 1)))
    drawn = arms.sample_variances(rngs, batch)
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 9.0], rtol=0.04)  # five standard errors
    np.testing.assert_allclose(drawn.var(axis=0), [2 / 4, 2 * 81 / 2], rtol=0.15)


def test_a_resting_arm_is_compared_with_new_incumbents_where_it_stands() -> None:
    """Looking back at levels that both have had takes no further pulls of arms that are far behind."""
    question = asked(40, epsilon=0.5, pilot=24)
    variances = np.ones(40)
    means = np.concatenate([[0.0, 0.0, 0.1], np.full(37, -8.0)])
    shown = drawn_variances(variances, 24, seed=3)
    played = play_unknown("t-race", question, gaussian_rewards(means, variances, seed=3), shown)
    assert played.selected <= {0, 1, 2}
    assert all(sum(counts) == 24 for arm, counts in played.pulls.items() if arm > 2)


def test_many_arms_take_little_memory_and_time() -> None:
    question = asked(100_000, m=3, epsilon=1.0)
    means = np.where(question.arms < 3, 4.0, 0.0)
    variances = np.linspace(1.0, 2.0, 100_000)
    for strategy, most in (("t-race", 1.2 * pilot.size(question)), ("t-cut-race", 25)):
        outcome = sl.simulate(question, means, strategy, variances=variances, replications=1, seed=1)
        assert outcome.selected.tolist() == [[0, 1, 2]]
        assert outcome.pulls[0] < 100_000 * most


def test_answers_in_any_order_go_to_their_own_arms() -> None:
    sessions = [sl.Session(asked(4, pilot=5)) for _ in range(2)]
    tickets = list(sessions[0].ask())
    told = [sl.Summary(5, float(ticket.arm), 1.0 + ticket.arm) for ticket in tickets]
    sessions[0].tell(tickets, told)
    sessions[1].tell(tickets[::-1], told[::-1])
    for session in sessions:
        assert session._state.variances.tolist() == [1.0, 2.0, 3.0, 4.0]


# --- where a guess would do ------------------------------------------------------------------------


def test_dudewicz_dalal_promises_nothing_where_its_constant_is_0() -> None:
    """There the means of the pilot decide, and a quiet best arm is overtaken by some noisy one."""
    question = unknown(1, 0.01, 0.7, 3, pilot=4)
    assert dudewicz_dalal.constant(3, 1, 4, 0.7) == 0
    scales = np.array([0.05, 10.0, 10.0])
    drawn = np.random.default_rng(2).standard_normal((4000, 3)) * scales / np.sqrt(4)
    wrong = int((drawn[:, 1:].max(axis=1) > drawn[:, 0] + question.epsilon).sum())
    assert binomtest(wrong, 4000, 0.7, alternative="greater").pvalue < 1e-6
    with pytest.raises(sl.InvalidProblem, match=r"its proof needs a delta below 0\.6667.* or use t-race"):
        sl.Session(question, "dudewicz-dalal")
    assert strategy_for("dudewicz-dalal", question).guarantee(question) is None
    for fine in (question.changed(delta=0.66), question.changed(m=3)):
        assert strategy_for("dudewicz-dalal", fine).guarantee(fine) is not None
        sl.Session(fine, "dudewicz-dalal")
