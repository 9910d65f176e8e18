"""Sessions: asking, telling in any order and more than once, replaying, and the loop that measures."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.errors import InvalidAnswers
from shortlist.measure import Call
from shortlist.session.typed_numbers import sheet_number
from shortlist.store import Answered, Told
from shortlist.strategies import strategy_named
from tests.playing import fitting

MEANS = [0.0, 0.3, 0.9, 1.0, 2.0, 2.1]


def problem(**changes: Any) -> sl.Problem:
    question: dict[str, Any] = {"m": 2, "epsilon": 0.5, "delta": 0.1, "variances": [1, 2, 0.5, 1, 4, 1]}
    return sl.Problem(**(question | changes))


def measured(ticket: sl.session.Ticket, seed: int = 0) -> list[float]:
    """Return Gaussian rewards for a ticket, the same whenever it is asked for."""
    rng = Call(problem().entropy(seed), ticket.arm, ticket.count, ticket.first_pull).rng
    scale = float(np.sqrt(problem().variances[ticket.arm]))
    return [float(reward) for reward in rng.normal(MEANS[ticket.arm], scale, ticket.count)]


def finished(session: sl.Session) -> sl.Session:
    """Answer a session's tickets, a round at a time, until it has ended."""
    while tickets := session.ask():
        session.tell(tickets, [measured(ticket, session.seed) for ticket in tickets])
    return session


def contents(session: sl.Session) -> tuple[Any, ...]:
    """Return everything that a session holds, exactly."""
    result, tickets = session.result, session.ask()
    return (
        json.dumps(result.to_dict()),
        result.arms.pulls.tobytes(),
        result.arms.means.tobytes(),
        session.n_pulls,
        session.is_done,
        [(event.round, event.arms.tolist(), event.means.tolist()) for event in session.events],
        list(session.conflicts),
        list(tickets),
    )


def outcome(session: sl.Session) -> tuple[Any, ...]:
    """Return where a session stands, apart from how it was told."""
    found = contents(session)
    return (*found[:5], found[-1])


# --- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_asking_again_returns_the_same(strategy: str) -> None:
    session = sl.Session(fitting(strategy, problem()), strategy)
    for _ in range(3):
        before = contents(session)
        first, second = session.ask(), session.ask()
        assert list(first) == list(second)
        assert contents(session) == before
        session.tell(first, [measured(ticket) for ticket in first])


def test_ask_returns_what_has_not_been_told() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[2], measured(tickets[2]))
    assert [ticket.arm for ticket in session.ask()] == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("limit", [0, 1, 4, 6, 100])
def test_limit_takes_the_first_tickets_only(limit: int) -> None:
    session = sl.Session(problem(), "wnelim")
    assert list(session.ask(limit)) == list(session.ask())[:limit]


def test_a_run_in_small_portions_is_the_same_run() -> None:
    portions = sl.Session(problem(), "vmedelim")
    while tickets := portions.ask(limit=2):
        assert len(tickets) <= 2
        portions.tell(tickets, [measured(ticket) for ticket in tickets])
    assert outcome(portions) == outcome(finished(sl.Session(problem(), "vmedelim")))


def test_tickets_are_a_sequence() -> None:
    tickets = sl.Session(problem(names=list("abcdef")), "wnelim").ask()
    assert len(tickets) == 6
    assert tickets[1] == tickets[-5] == list(tickets)[1]
    assert (tickets[1].arm, tickets[1].name, tickets[1].first_pull, tickets[1].round) == (1, "b", 0, 0)
    assert list(tickets[1:3]) == list(tickets)[1:3]
    with pytest.raises(IndexError):
        tickets[6]


def test_first_pull_counts_the_earlier_pulls_of_the_arm() -> None:
    session = sl.Session(problem(m=1, variances=[1.0] * 6), "medelim")
    pulled: dict[int, int] = {}
    while tickets := session.ask():
        for ticket in tickets:
            assert ticket.first_pull == pulled.get(ticket.arm, 0)
            pulled[ticket.arm] = ticket.first_pull + ticket.count
        session.tell(tickets, means=[MEANS[ticket.arm] for ticket in tickets])
    assert session.result.arms.pulls.tolist() == [pulled[arm] for arm in range(6)]
    assert session.result.n_rounds > 1


# --- telling --------------------------------------------------------------------------------------


def by_ticket(session: sl.Session, tickets: sl.session.Tickets) -> None:
    for ticket in tickets:
        session.tell(ticket, measured(ticket))


def by_slice(session: sl.Session, tickets: sl.session.Tickets) -> None:
    session.tell(tickets[1:], [measured(ticket) for ticket in tickets[1:]])
    session.tell(tickets[:1], [measured(ticket) for ticket in tickets[:1]])


def by_means(session: sl.Session, tickets: sl.session.Tickets) -> None:
    session.tell(tickets, means=[float(np.mean(measured(ticket))) for ticket in tickets])


def by_ticket_and_mean(session: sl.Session, tickets: sl.session.Tickets) -> None:
    for ticket in tickets:
        session.tell(ticket, means=[float(np.mean(measured(ticket)))])


def by_summary(session: sl.Session, tickets: sl.session.Tickets) -> None:
    session.tell(tickets, [sl.Summary(t.count, float(np.mean(measured(t)))) for t in tickets])


def backwards(session: sl.Session, tickets: sl.session.Tickets) -> None:
    for ticket in reversed(tickets):
        session.tell(ticket, measured(ticket))


def everything_twice(session: sl.Session, tickets: sl.session.Tickets) -> None:
    for ticket in [*tickets, *tickets]:
        session.tell(ticket, measured(ticket))


WAYS = [by_ticket, by_slice, by_means, by_ticket_and_mean, by_summary, backwards, everything_twice]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
@pytest.mark.parametrize("strategy", ["wnelim", "vmedelim", "adapted-medelim", "lucb"])
def test_every_way_of_telling_leads_to_the_same_bits(
    strategy: str, way: Callable[[sl.Session, sl.session.Tickets], None]
) -> None:
    asked = problem(epsilon=2.0)
    session = sl.Session(asked, strategy)
    while tickets := session.ask():
        way(session, tickets)
    assert outcome(session) == outcome(finished(sl.Session(asked, strategy)))
    assert session.conflicts == []


@given(st.randoms(use_true_random=False), st.sampled_from(["wnelim", "medelim", "vmedelim", "ugape"]))
@settings(max_examples=40)
def test_partial_tells_in_any_order_lead_to_the_same_bits(random: Any, strategy: str) -> None:
    asked = problem(m=1, epsilon=3.0)
    session = sl.Session(asked, strategy)
    while tickets := session.ask():
        waiting = list(tickets)
        random.shuffle(waiting)
        for ticket in waiting[: random.randint(1, len(waiting))]:
            session.tell(ticket, measured(ticket))
    assert outcome(session) == outcome(finished(sl.Session(asked, strategy)))


def test_pulls_are_counted_as_they_are_told() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[:2], means=[0.0, 0.0])
    assert session.n_pulls == int(tickets.counts[:2].sum())
    session.tell(tickets[2:], means=[0.0] * 4)
    assert session.n_pulls == int(tickets.counts.sum()) == session.result.n_pulls


def test_what_the_arms_were_pulled_adds_up_to_the_pulls_made() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[:2], means=[0.25, 0.5])
    partial = session.result
    assert partial.arms.pulls.sum() == partial.n_pulls
    assert partial.arms.means[:2].tolist() == [0.25, 0.5]


def test_the_callers_arrays_are_copied() -> None:
    session = sl.Session(problem(), "wnelim")
    mine = np.array(MEANS)
    session.tell(session.ask(), means=mine)
    before = contents(session)
    mine[:] = -1.0
    assert contents(session) == before


# --- telling something wrong ----------------------------------------------------------------------


def half_told() -> sl.Session:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[:3], [measured(ticket) for ticket in tickets[:3]])
    return session


def refuses(session: sl.Session, error: type[sl.ShortlistError], *told: Any, **named: Any) -> str:
    """Tell a session something wrong; demand that it raises and that nothing of it is counted."""
    before = contents(session)
    with pytest.raises(error) as caught:
        session.tell(*told, **named)
    assert contents(session) == before
    return str(caught.value)


@pytest.mark.parametrize(
    "means", [[math.nan, 1.0, 2.0], [1.0, 2.0, math.inf], [True, False, True], ["a", "b", "c"]]
)
def test_means_that_are_no_numbers_change_nothing(means: Any) -> None:
    session = half_told()
    assert "finite real numbers" in refuses(session, sl.MeasurementFailed, session.ask(), means=means)


@pytest.mark.parametrize(
    "means",
    [[1.0, True, 2.0], [1.0, None, 2.0], [1j, 1.0, 2.0], [[1.0], [2.0], [3.0]], [[1.0], [2.0, 3.0], [4.0]]],
)
def test_means_with_something_else_among_them_change_nothing(means: Any) -> None:
    session = half_told()
    refuses(session, sl.MeasurementFailed, session.ask(), means=means)


@pytest.mark.parametrize("wrong", [0.5, [0.5], [0.5] * 4, [], None])
def test_there_must_be_one_answer_for_each_ticket(wrong: Any) -> None:
    session = half_told()
    refuses(session, sl.MeasurementFailed, session.ask(), wrong)
    refuses(session, sl.MeasurementFailed, session.ask(), means=wrong)


def test_rewards_and_means_together_are_refused() -> None:
    session = half_told()
    tickets = session.ask()
    rewards = [measured(ticket) for ticket in tickets]
    assert "either" in refuses(session, sl.MeasurementFailed, tickets, rewards, means=[0.0] * 3)
    assert "either" in refuses(session, sl.MeasurementFailed, tickets)


@pytest.mark.parametrize("wrong", [None, [], [1.0], math.nan, "x", [[1.0], [1.0, 2.0]]])
def test_one_wrong_answer_among_right_ones_changes_nothing(wrong: object) -> None:
    session = half_told()
    tickets = session.ask()
    answers: list[object] = [measured(ticket) for ticket in tickets]
    answers[1] = wrong
    assert "arm-4" in refuses(session, sl.MeasurementFailed, tickets, answers)


def test_a_wrong_answer_to_one_ticket_changes_nothing() -> None:
    session = half_told()
    ticket = session.ask()[0]
    refuses(session, sl.MeasurementFailed, ticket, measured(ticket)[:-1])
    refuses(session, sl.MeasurementFailed, ticket)


@pytest.mark.parametrize("change", [{"arm": 6}, {"arm": -1}, {"arm": 10**9}, {"round": 1}, {"round": -1}])
def test_a_ticket_that_was_never_issued_is_refused(change: dict[str, Any]) -> None:
    session = half_told()
    ticket = replace(session.ask()[0], **change)
    refuses(session, sl.errors.NotAsked, ticket, [0.0] * ticket.count)


@pytest.mark.parametrize("round", ["0", None, 0.0, True, [0]])
def test_a_ticket_whose_round_is_no_whole_number_is_refused(round: Any) -> None:
    session = half_told()
    ticket = replace(session.ask()[0], round=round)
    for tickets, rewards in ((ticket, [0.0] * ticket.count), ([ticket], [[0.0] * ticket.count])):
        said = refuses(session, sl.errors.NotAsked, tickets, rewards)
        assert f"the round of a ticket is {round!r}; it must be a whole number" in said


@pytest.mark.parametrize("change", [{"count": 1}, {"first_pull": 7}])
def test_a_ticket_that_was_altered_is_refused(change: dict[str, Any]) -> None:
    session = half_told()
    ticket = replace(session.ask()[0], **change)
    refuses(session, sl.errors.NotAsked, ticket, [0.0] * ticket.count)


def test_tickets_of_another_question_are_refused() -> None:
    """Fewer pulls than were asked for would void the guarantee."""
    session, other = sl.Session(problem(), "wnelim"), sl.Session(problem(epsilon=5.0), "wnelim")
    tickets = other.ask()
    refuses(session, sl.errors.NotAsked, tickets, [measured(ticket) for ticket in tickets])
    refuses(session, sl.errors.NotAsked, tickets[0], measured(tickets[0]))


def test_a_ticket_asked_in_an_earlier_round_only_is_refused_in_this_one() -> None:
    session = sl.Session(problem(m=1, variances=[1.0] * 6), "medelim")
    session.tell(session.ask(), means=MEANS)
    survivors = {ticket.arm for ticket in session.ask()}
    out = next(arm for arm in range(6) if arm not in survivors)
    ticket = replace(session.ask()[0], arm=out)
    assert "did not ask" in refuses(session, sl.errors.NotAsked, ticket, [0.0] * ticket.count)


def test_a_ticket_twice_in_one_call_is_refused() -> None:
    session = half_told()
    tickets = session.ask()
    twice = replace(
        tickets,
        arms=tickets.arms[[0, 1, 0]],
        counts=tickets.counts[[0, 1, 0]],
        first_pulls=tickets.first_pulls[[0, 1, 0]],
    )
    assert "twice" in refuses(session, sl.errors.NotAsked, twice, means=[0.0, 0.0, 0.0])


def test_nothing_can_be_told_beyond_the_end() -> None:
    session = finished(sl.Session(problem(), "wnelim"))
    refuses(session, sl.errors.NotAsked, sl.session.Ticket(1, 0, "arm-0", 3, 0), [0.0] * 3)
    assert len(session.ask()) == 0


# --- telling again --------------------------------------------------------------------------------


def test_the_same_answer_twice_is_no_error() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[0], measured(tickets[0]))
    before = contents(session)
    session.tell(tickets[0], measured(tickets[0]))
    assert contents(session) == before


def test_a_late_repetition_of_a_whole_round_is_no_error() -> None:
    session = sl.Session(problem(), "vmedelim")
    tickets = session.ask()
    answers = [measured(ticket) for ticket in tickets]
    session.tell(tickets, answers)
    before = contents(session)
    session.tell(tickets, answers)
    session.tell(tickets[3], answers[3])
    assert contents(session) == before


@pytest.mark.filterwarnings("ignore::shortlist.errors.Contradiction")
def test_a_different_answer_is_recorded_and_the_first_stands() -> None:
    session = half_told()
    ticket = sl.Session(problem(), "wnelim").ask()[1]
    before = outcome(session)
    n_events = len(session.events)
    session.tell(ticket, means=[99.0])
    assert outcome(session) == before
    assert len(session.events) == n_events
    (conflict,) = session.conflicts
    assert (conflict.round, conflict.arm, conflict.refused) == (0, 1, 99.0)
    assert conflict.kept == np.mean(measured(ticket))


@pytest.mark.filterwarnings("ignore::shortlist.errors.Contradiction")
def test_a_different_answer_for_a_past_round_is_recorded_too() -> None:
    session = sl.Session(problem(m=1, variances=[1.0] * 6), "medelim")
    past = session.ask()
    session.tell(past, means=MEANS)
    session.tell(session.ask(limit=1), means=[0.5])
    before = outcome(session)
    session.tell(past[4], means=[-5.0])
    assert outcome(session) == before
    assert [(c.round, c.arm, c.kept, c.refused) for c in session.conflicts] == [(0, 4, 2.0, -5.0)]


@pytest.mark.filterwarnings("ignore::shortlist.errors.Contradiction")
def test_a_different_answer_after_the_end_is_recorded_too() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets, means=MEANS)
    session.tell(tickets, means=[*MEANS[:5], 77.0])
    assert session.result.selected == ("arm-5", "arm-4")
    assert [(c.arm, c.kept, c.refused) for c in session.conflicts] == [(5, 2.1, 77.0)]


@pytest.mark.filterwarnings("ignore::shortlist.errors.Contradiction")
def test_old_and_new_answers_in_one_call() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[:2], means=[0.0, 0.0])
    session.tell(tickets, means=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert [(c.arm, c.kept, c.refused) for c in session.conflicts] == [(1, 0.0, 1.0)]
    assert session.is_done
    assert session.result.arms.means.tolist() == [0.0, 0.0, 2.0, 3.0, 4.0, 5.0]


# --- replaying ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_replaying_the_events_gives_the_same_session(strategy: str) -> None:
    asked = fitting(strategy, problem(epsilon=2.0))
    live = sl.Session(asked, strategy, seed=3)
    checkpoints = 0
    while (tickets := live.ask(limit=4)) and checkpoints < 40:
        live.tell(tickets, [measured(ticket, seed=3) for ticket in tickets])
        if checkpoints % 7 == 0:
            assert contents(sl.Session.replay(asked, strategy, live.events, seed=3)) == contents(live)
        checkpoints += 1
    finished(live)
    assert contents(sl.Session.replay(asked, strategy, live.events, seed=3)) == contents(live)


def test_a_replayed_session_can_go_on() -> None:
    half = half_told()
    resumed = sl.Session.replay(problem(), "wnelim", half.events)
    assert outcome(finished(resumed)) == outcome(finished(half))


def test_replaying_events_of_another_question_is_refused() -> None:
    session = finished(sl.Session(problem(), "wnelim"))
    smaller = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0])
    with pytest.raises(sl.errors.NotAsked):
        sl.Session.replay(smaller, "wnelim", session.events)


# --- what a session says --------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_a_result_while_open_promises_nothing(strategy: str) -> None:
    session = sl.Session(fitting(strategy, problem()), strategy)
    session.tell(session.ask(limit=1), means=[0.0])
    result = session.result
    assert result.stop is sl.Stop.OPEN
    assert result.guarantee is None
    assert not session.is_done
    with pytest.raises(sl.errors.NoGuarantee, match="has not ended"):
        result.require_guarantee()


def test_a_finished_run_carries_its_guarantee() -> None:
    result = finished(sl.Session(problem(), "wnelim")).result
    assert result.stop is sl.Stop.CERTIFIED
    assert result.require_guarantee() is result.guarantee
    assert result.guarantee is not None
    assert (result.guarantee.epsilon, result.guarantee.delta, result.guarantee.m) == (0.5, 0.1, 2)
    assert result.guarantee.scope is sl.certificates.Scope.TOP_M


def test_a_strategy_without_proof_ends_without_guarantee() -> None:
    result = finished(sl.Session(problem(), "adapted-medelim-published")).result
    assert result.stop is sl.Stop.UNPROVED
    with pytest.raises(sl.errors.NoGuarantee, match="it has no guarantee"):
        result.require_guarantee()


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_nothing_is_asked_when_every_arm_is_wanted(strategy: str) -> None:
    session = sl.Session(problem(m=6), strategy)
    assert len(session.ask()) == 0
    assert session.is_done
    assert session.result.indices.tolist() == list(range(6))
    assert session.result.n_pulls == 0
    json.dumps(session.result.to_dict(), allow_nan=False)


def test_selected_arms_come_best_first() -> None:
    session = sl.Session(problem(names=list("abcdef"), m=3), "wnelim")
    session.tell(session.ask(), means=[5.0, 1.0, 7.0, 2.0, 6.0, 0.0])
    assert session.result.selected == ("c", "e", "a")
    assert session.result.indices.tolist() == [2, 4, 0]


@pytest.mark.parametrize("seed", [-1, True, False, 1.0, "1", None, [1]])
def test_a_seed_must_be_a_whole_number(seed: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="seed"):
        sl.Session(problem(), seed=seed)
    with pytest.raises(sl.InvalidProblem, match="seed"):
        sl.select(lambda *_: 0.0, problem(), seed=seed)


def test_a_numpy_seed_is_as_good_as_an_int() -> None:
    assert sl.Session(problem(), seed=np.int64(3)).seed == 3  # type: ignore[arg-type]


def test_an_unknown_strategy_is_refused_with_those_that_exist() -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        sl.Session(problem(), "best")
    assert "'best'" in str(caught.value)
    assert all(name in str(caught.value) for name in sl.strategies.names())


def test_auto_becomes_a_strategy_with_a_certified_cap() -> None:
    session = sl.Session(problem())
    assert session.strategy in sl.strategies.names()
    assert session.worst_case_pulls == strategy_named(session.strategy).worst_case_pulls(problem())
    assert finished(session).result.stop is sl.Stop.CERTIFIED


# --- the loop that measures -----------------------------------------------------------------------


def simulated(asked: sl.Problem) -> Any:
    return sl.simulated_measure(asked, MEANS)


@pytest.mark.parametrize("strategy", ["auto", *sl.strategies.names()])
def test_select_finds_the_best_and_is_reproducible(strategy: str) -> None:
    asked = fitting(strategy, problem(epsilon=1.0))
    one, other = (sl.select(simulated(asked), asked, strategy, seed=5) for _ in range(2))
    assert one.to_dict() == other.to_dict()
    assert one.arms.means.tobytes() == other.arms.means.tobytes()
    assert {"arm-4", "arm-5"} <= set(one.selected) or (
        asked.m == 1 and set(one.selected) < {"arm-4", "arm-5"}
    )
    assert one.seed == 5


def test_another_seed_gives_other_rewards() -> None:
    asked = problem()
    one, other = (sl.select(simulated(asked), asked, seed=seed) for seed in (1, 2))
    assert one.arms.means.tolist() != other.arms.means.tolist()


def test_the_measure_function_gets_the_ticket_and_its_generator() -> None:
    calls: list[tuple[int, int, float]] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> list[float]:
        calls.append((arm, count, float(rng.random())))
        return [MEANS[arm]] * count

    sl.select(measure, problem(), "wnelim", seed=9, turns=1)
    entropy, tickets = problem().entropy(9), sl.Session(problem(), "wnelim").ask()
    assert calls == [(t.arm, t.count, float(Call(entropy, t.arm, 1, 0).rng.random())) for t in tickets]
    calls.clear()
    sl.select(measure, problem(), "wnelim", seed=9)
    expected = [
        (t.arm, round(t.count * (turn + 1) / 8) - start, float(Call(entropy, t.arm, 1, start).rng.random()))
        for t in tickets
        for turn in range(8)
        for start in [round(t.count * turn / 8)]
    ]
    assert sorted(calls) == sorted(expected)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["wnelim", "vmedelim", "lucb", "ugape"])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.99])
def test_a_budget_is_never_exceeded(strategy: str, fraction: float) -> None:
    asked = problem(epsilon=1.0)
    whole = sl.select(simulated(asked), asked, strategy)
    made: list[int] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        made.append(count)
        return simulated(asked)(arm, count, rng)

    budget = int(fraction * whole.n_pulls)
    result = sl.select(measure, asked, strategy, budget=budget)
    assert sum(made) == result.n_pulls <= budget
    assert result.stop is sl.Stop.BUDGET
    assert result.guarantee is None
    with pytest.raises(sl.errors.NoGuarantee, match="budget"):
        result.require_guarantee()


def test_a_budget_that_suffices_changes_nothing() -> None:
    asked = problem()
    whole = sl.select(simulated(asked), asked, "wnelim")
    exact = sl.select(simulated(asked), asked, "wnelim", budget=whole.n_pulls)
    assert exact.to_dict() == whole.to_dict()
    assert exact.stop is sl.Stop.CERTIFIED


def test_a_session_stopped_by_its_budget_can_go_on() -> None:
    asked = problem(epsilon=1.0)
    session = sl.Session(asked, "vmedelim")
    assert sl.drive(session, simulated(asked), budget=1000).stop is sl.Stop.BUDGET
    assert (
        sl.drive(session, simulated(asked)).to_dict()
        == sl.select(simulated(asked), asked, "vmedelim").to_dict()
    )


@pytest.mark.parametrize(
    ("strategy", "fails_at"),
    [("wnelim", 1), ("wnelim", 4), ("medelim-max", 9), ("vmedelim", 6), ("lucb", 40)],
)
def test_a_run_continued_after_a_failure_is_the_uninterrupted_run(strategy: str, fails_at: int) -> None:
    asked = problem(epsilon=1.0, m=1)
    calls = 0

    def again(arm: int, count: int, rng: np.random.Generator) -> Any:
        return simulated(asked)(arm, count, rng)

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError("the sensor is offline")
        return simulated(asked)(arm, count, rng)

    session = sl.Session(asked, strategy)
    with pytest.raises(sl.MeasurementFailed, match=r"arm-\d.*OSError: the sensor is offline") as caught:
        sl.drive(session, measure, retries=0)
    assert isinstance(caught.value.__cause__, OSError)
    assert n_answered(session) == fails_at - 1
    found = sl.drive(session, measure, reproducible=True)
    assert found.to_dict() == sl.select(again, asked, strategy, reproducible=True).to_dict()


def n_answered(session: sl.Session) -> int:
    """Return how many calls were answered: the last one of a ticket with its being told."""
    events = [record.event for record in session.records]
    return sum(len(event.arms) for event in events if isinstance(event, Answered | Told))


def test_a_wrong_answer_in_the_middle_loses_nothing() -> None:
    asked = problem()
    session = sl.Session(asked, "wnelim")
    with pytest.raises(sl.MeasurementFailed, match="NaN"):
        sl.drive(session, lambda arm, count, _: [MEANS[arm] if arm < 3 else math.nan] * count, turns=1)
    assert [ticket.arm for ticket in session.ask()] == [3, 4, 5]
    assert sl.drive(session, lambda arm, count, _: [MEANS[arm]] * count).selected == ("arm-5", "arm-4")


def test_progress_is_called_whenever_something_was_told() -> None:
    seen: list[int] = []
    asked = problem()
    result = sl.select(
        simulated(asked), asked, "wnelim", progress=lambda session: seen.append(session.n_pulls)
    )
    assert 1 < len(seen) <= 6
    assert seen == sorted(seen)
    assert seen[-1] == result.n_pulls


# --- the result as data and as text ---------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_a_result_is_plain_data(strategy: str) -> None:
    open_session = sl.Session(fitting(strategy, problem(epsilon=1.0)), strategy)
    for result in (open_session.result, finished(open_session).result):
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()


def test_the_data_say_everything() -> None:
    result = finished(sl.Session(problem(names=list("abcdef")), "wnelim", seed=4)).result
    data = result.to_dict()
    assert data["selected"] == list(result.selected)
    assert data["indices"] == result.indices.tolist()
    assert (data["stop"], data["strategy"], data["seed"]) == ("certified", "wnelim", 4)
    assert (data["n_pulls"], data["n_rounds"]) == (result.n_pulls, 1)
    assert data["problem"]["digest"] == result.problem.digest
    assert [arm["name"] for arm in data["arms"]] == list("abcdef")
    assert sum(arm["pulls"] for arm in data["arms"]) == result.n_pulls
    assert sum(share["delta"] for share in data["guarantee"]["ledger"]) <= 0.1


def test_an_arm_never_pulled_has_no_mean_in_the_data() -> None:
    data = sl.Session(problem(), "wnelim").result.to_dict()
    assert [arm["mean"] for arm in data["arms"]] == [None] * 6


def test_a_result_as_text_says_what_why_and_how_much() -> None:
    text = str(finished(sl.Session(problem(), "wnelim")).result)
    assert text.startswith("Selected 2 of 6 arms: arm-")
    assert "With probability at least 90 %, the true mean of each of the 2 selected arms" in text
    assert "0.5 below the 2nd best true mean" in text
    assert "[ZT22] Lemma 5.1" in text
    assert "by wnelim, seed 0" in text


def test_an_open_result_as_text_says_so() -> None:
    text = str(sl.Session(problem(), "wnelim").result)
    assert "none yet" in text
    assert sl.Stop.OPEN.value in text
    assert "probability" not in text


def test_a_long_selection_is_cut_short_in_text() -> None:
    wide = sl.Problem(m=50, epsilon=0.5, delta=0.1, variances=[1.0] * 50)
    text = str(sl.Session(wide).result)
    assert "arm-9, ..." in text
    assert "arm-10" not in text


def test_a_contradiction_is_said_aloud_and_what_is_new_beside_it_counts() -> None:
    session = sl.Session(problem(), "wnelim")
    tickets = session.ask()
    session.tell(tickets[0], means=0.25)
    with pytest.warns(sl.errors.Contradiction, match="arm-0 in round 0 .* 0.25, and the new answer is 3"):
        session.tell(tickets[:2], means=[3.0, 1.0])
    assert len(session.conflicts) == 1
    assert [ticket.arm for ticket in session.ask()] == tickets.arms[2:].tolist()


def test_a_list_of_tickets_is_as_good_as_a_slice() -> None:
    one, other = sl.Session(problem(), "wnelim"), sl.Session(problem(), "wnelim")
    tickets = one.ask()
    one.tell(tickets[1:3], means=[1.0, 2.0])
    other.tell([tickets[1], tickets[2]], means=[1.0, 2.0])
    assert one.result.to_dict() == other.result.to_dict()


@pytest.mark.parametrize("wrong", [3, "arm-0", None, [], [1, 2]])
def test_something_that_is_no_ticket_is_refused(wrong: Any) -> None:
    with pytest.raises(sl.errors.NotAsked, match="tickets that `ask` returned"):
        sl.Session(problem(), "wnelim").tell(wrong, means=[1.0])


def test_arguments_of_select_in_the_wrong_order_are_explained() -> None:
    with pytest.raises(sl.InvalidProblem, match="`problem`"):
        sl.select(problem(), lambda _arm, count, _rng: [0.0] * count)  # type: ignore[arg-type]
    with pytest.raises(sl.InvalidProblem, match="`measure`"):
        sl.select(3, problem())  # type: ignore[arg-type]


# --- rounding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["race", "wnelim"])
def test_rewards_so_large_that_epsilon_drowns_are_refused(strategy: str) -> None:
    session = sl.Session(problem(epsilon=0.1), strategy)
    tickets = session.ask()
    with pytest.raises(sl.MeasurementFailed, match="Subtract a constant"):
        session.tell(tickets, means=[1e15 + ticket.arm for ticket in tickets])
    with pytest.raises(sl.MeasurementFailed, match="Subtract a constant"):
        session.tell(tickets[0], [-1e300] * tickets[0].count)
    assert session.n_pulls == 0
    session.tell(tickets, means=[1e12 + ticket.arm for ticket in tickets])
    assert session.n_pulls > 0


# --- how rewards are measured -------------------------------------------------------------------------

SETTINGS = {"pulls_per_call": None, "together": 1, "on_failure": "suspend"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pulls_per_call": 0}, "`pulls_per_call` is 0"),
        ({"pulls_per_call": "many"}, "`pulls_per_call` is 'many'"),
        ({"together": None}, "`together` is None"),
        ({"together": True}, "`together` is True"),
        ({"on_failure": "never"}, "`on_failure` is 'never'"),
        ({"on_failure": None}, "`on_failure` is None"),
        ({"on_failure": True, "pulls_per_call": 1}, "`on_failure` is True"),
        ({"on_failure": math.nan, "pulls_per_call": 1}, "plain data"),
        ({"on_failure": 0.5}, "`pulls_per_call` is None, but with a number as `on_failure` it must be 1"),
        ({"measure": "a function"}, "`measure` of the settings is 'a function'; it must be a table"),
        ({"file": 3}, "`file` of the settings is 3; it must be text"),
        ({"follows": []}, r"`follows` of the settings is \[\]; it must be a table"),
        ({"follows": {"measure": {}}}, "`follows` must be a table whose keys are settings"),
        ({"words": "x" * 100_300}, "the settings have 100,377 characters; the maximum is 100,180"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any], said: str) -> None:
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(sl.InvalidProblem, match=said):
        session.arrange(SETTINGS | wrong)
    for key in SETTINGS:
        with pytest.raises(sl.InvalidProblem, match=f"the settings lack `{key}`"):
            session.arrange({name: value for name, value in SETTINGS.items() if name != key})
    assert session.settings is None
    session.arrange(SETTINGS | {"model": {"temperature": 0.2}})
    assert session.settings == SETTINGS | {"model": {"temperature": 0.2}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"round": 1}, "are not answered in this call"),
        ({"arm": 1, "name": "arm-1"}, "are not answered in this call"),
        ({"arm": 99}, "are not answered in this call"),
        ({"arm": -1}, "are not answered in this call"),
        ({"name": "another"}, "are not answered in this call"),
        ({"first_pull": -1}, "pulls -1 to -1 of arm-0"),
        ({"first_pull": 10**6}, "pulls 1000000 to 1000000 of arm-0"),
        ({"count": 10**6}, "pulls 0 to 999999 of arm-0"),
        ({"count": 0}, "pulls 0 to -1 of arm-0"),
        ({"count": 3}, "were scored twice"),
    ],
    ids=str,
)
def test_failures_must_be_among_the_pulls_that_are_told(change: dict[str, Any], said: str) -> None:
    session = sl.Session(problem(), "wnelim")
    ticket = session.ask()[0]
    good = [sl.session.Scored(replace(ticket, count=1, first_pull=pull), 0.5, "no signal") for pull in (0, 2)]
    wrong = sl.session.Scored(replace(good[0].ticket, **change), 0.5, "no signal")
    with pytest.raises(sl.errors.NotAsked, match=said):
        session.tell(ticket, means=0.5, scored=[good[1], wrong])
    assert session.n_pulls == 0
    session.tell(ticket, means=0.5, scored=good)
    assert session.scored == good


def test_failures_count_as_the_settings_say() -> None:
    session = sl.Session(problem(), "wnelim")
    ticket = session.ask()[0]
    failed = sl.session.Scored(replace(ticket, count=1), 0.5, "no signal")
    with pytest.raises(sl.MeasurementFailed, match="was scored as inf; a score must be a finite number"):
        session.tell(ticket, means=0.5, scored=[replace(failed, score=math.inf)])
    session.arrange(SETTINGS)
    with pytest.raises(sl.errors.ChangedRun, match="this run suspends after a failure"):
        session.tell(ticket, means=0.5, scored=[failed])
    session.arrange(SETTINGS | {"on_failure": -1.0, "pulls_per_call": 1})
    with pytest.raises(
        sl.errors.ChangedRun, match=r"was scored as 0.5, but this run counts a failure as -1.0"
    ):
        session.tell(ticket, means=0.5, scored=[failed])
    assert session.n_pulls == 0
    session.tell(ticket, means=0.5, scored=[replace(failed, score=-1.0)])
    assert [one.score for one in session.scored] == [-1.0]


def test_a_cell_with_very_many_digits_is_refused_at_once() -> None:
    """In linear time: by a pattern that can divide them in many ways it would take a minute."""
    began = time.monotonic()
    with pytest.raises(InvalidAnswers, match="must be a finite number"):
        sheet_number("line 2", "mean", "1" * 40_000 + "x")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("given", [{7.0: 1.0, 8.0: 2.0, 9.0: 3.0}, {7.0, 8.0, 9.0}])
def test_answers_have_an_order(given: Any) -> None:
    """The keys of a dictionary were once taken for rewards."""
    session = sl.Session(sl.Problem(m=1, epsilon=2.0, delta=0.4, variances=[1.0] * 3))
    tickets = session.ask()
    assert tickets.counts.tolist() == [1, 1, 1]
    with pytest.raises(sl.MeasurementFailed, match="give a list with one answer for each of the 3 tickets"):
        session.tell(tickets, given)


@pytest.mark.parametrize("large", [(2**70, 1.0), (5, 10**400), (5, 1.0, 10**400)])
def test_whole_numbers_too_large_for_an_array_are_no_summaries(large: Any) -> None:
    session = sl.Session(sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0] * 3))
    with pytest.raises(sl.MeasurementFailed):
        session.tell(session.ask(1), [sl.Summary(*large)])
