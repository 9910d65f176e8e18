"""Runs on shared items: tickets for the next items of an arm, single scores, and the same answer for all."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.errors import ChangedRun, Contradiction, CorruptLog, InvalidProblem
from shortlist.measure import Summaries
from shortlist.session.answers import Answers
from shortlist.session.call_plan import CallPlan, PartialAnswers
from shortlist.store import Limited, MemoryStore, Told
from shortlist.tickets import Ticket

N, ITEMS = 6, 90
RNG = np.random.default_rng(2)
TABLE = (RNG.random((N, ITEMS)) < np.linspace(0.4, 0.8, N)[:, None] * RNG.random(ITEMS) * 1.6).astype(float)
IDS = [f"question-{place}" for place in range(ITEMS)]


def question(**changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 2, "epsilon": 0.05, "delta": 0.1, "n": N, "items": ITEMS}
    return sl.Problem(**({"rewards": sl.Bernoulli()} | given | changes))


def scores(arm: int, items: list[int]) -> list[float]:
    return TABLE[arm, items].tolist()  # type: ignore[no-any-return]


def finished(session: sl.Session) -> sl.Session:
    while tickets := session.ask():
        session.tell(tickets, [scores(ticket.arm, session.items_of(ticket)) for ticket in tickets])
    return session


def exact(result: sl.Result) -> tuple[Any, ...]:
    return result.selected, result.n_pulls, result.arms.pulls.tolist(), result.arms.means.tolist()


def test_a_ticket_is_for_the_next_items_of_the_order() -> None:
    session = sl.Session(question(), seed=5)
    order = session.problem.order(5).tolist()
    seen = dict.fromkeys(range(N), 0)
    while tickets := session.ask():
        for ticket in tickets:
            assert session.items_of(ticket) == order[seen[ticket.arm] : seen[ticket.arm] + ticket.count]
            seen[ticket.arm] += ticket.count
        session.tell(tickets, [scores(ticket.arm, session.items_of(ticket)) for ticket in tickets])
    assert session.result.arms.pulls.tolist() == [*seen.values()]
    assert session.n_pulls < N * ITEMS
    means = [TABLE[arm, order[:count]].mean() for arm, count in seen.items()]
    assert session.result.arms.means == pytest.approx(means)


def test_lists_are_accepted_and_means_are_refused() -> None:
    session = sl.Session(question())
    first = session.ask()[0]
    own = scores(first.arm, session.items_of(first))
    for answer in (sl.Summary(first.count, 0.5), sl.Summary(first.count, 0.5, 0.1), 0.5):
        with pytest.raises(sl.MeasurementFailed):
            session.tell(first, answer)
    with pytest.raises(sl.MeasurementFailed, match="score of each item"):
        session.tell(first, means=0.5)
    for wrong in (own[1:], [*own, 1.0], [*own[1:], 0.5], [*own[1:], 2.0], [*own[1:], float("nan")]):
        with pytest.raises(sl.MeasurementFailed):
            session.tell(first, wrong)
    assert session.n_pulls == 0
    session.tell(first, np.array(own))
    assert session.n_pulls == first.count
    with pytest.raises(InvalidProblem):
        session.feed(0, 10, 0.5)


def test_scores_off_their_step_are_refused() -> None:
    session = sl.Session(question(rewards=sl.Bounded(0, 1, 0.25)))
    first = session.ask()[0]
    with pytest.raises(sl.MeasurementFailed):
        session.tell(first, [0.25] * (first.count - 1) + [0.3])
    session.tell(first, [0.25] * (first.count - 1) + [0.75])


def test_a_second_answer_with_the_same_mean_and_other_scores_is_a_conflict() -> None:
    session = sl.Session(question())
    first = session.ask()[0]
    one = [1.0, 0.0] + [0.0] * (first.count - 2)
    session.tell(first, one)
    session.tell(first, one)
    assert not session.conflicts
    with pytest.warns(Contradiction):
        session.tell(first, [0.0, 1.0] + [0.0] * (first.count - 2))
    assert len(session.conflicts) == 1


def test_answers_in_any_order_give_the_same_run() -> None:
    expected, rng = exact(finished(sl.Session(question(), seed=3)).result), np.random.default_rng(0)
    session = sl.Session(question(), seed=3)
    while tickets := session.ask():
        for place in rng.permutation(len(tickets)).tolist():
            ticket = tickets[place]
            session.tell(ticket, scores(ticket.arm, session.items_of(ticket)))
    assert exact(session.result) == expected


def test_a_run_resumed_from_its_file_is_the_same(tmp_path: Path) -> None:
    problem = question(known={0: TABLE[0]}, items={name: place for place, name in enumerate(IDS)})
    expected = finished(sl.Session(problem, seed=4))
    path = tmp_path / "run.db"
    while True:  # another session for every few tickets
        with sl.Session(problem, seed=4, store=path) as session:
            tickets = session.ask(4)
            for ticket in tickets:
                session.tell(ticket, scores(ticket.arm, session.items_of(ticket)))
        if not tickets:
            break
    with sl.Session.resume(path) as session:
        assert exact(session.result) == exact(expected.result)
        assert session.problem == problem
        assert session.certified.to_dict() == expected.certified.to_dict()
        assert session.items is not None
        assert session.items.ids == tuple(IDS)
        told = [event for event in session.events if isinstance(event, Told)]
        assert sum(len(event.scores) for event in told if event.scores is not None) == session.n_pulls
        assert exact(sl.Session.replay(problem, "shared-items", told, seed=4).result) == exact(
            expected.result
        )
    for other in (problem.changed(known=None), problem.changed(items=ITEMS), problem.changed(delta=0.2)):
        with pytest.raises(ChangedRun):
            sl.Session(other, seed=4, store=path)


def test_a_smaller_epsilon_goes_on_with_the_same_scores() -> None:
    store = MemoryStore()
    wide = finished(sl.Session(question(epsilon=0.3), seed=1, store=store))
    narrow = sl.Session(question(epsilon=0.0), seed=1, store=store)
    assert not narrow.is_done
    finished(narrow)
    assert (narrow.result.arms.pulls >= wide.result.arms.pulls).all()
    best = np.argsort(-TABLE.mean(axis=1))[:2]
    assert TABLE[narrow.result.indices].mean(axis=1).min() == TABLE[best].mean(axis=1).min()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_smaller_epsilon_is_named_if_scores_of_whole_rows_may_have_been_seen(is_late: bool) -> None:
    """Prefixes and totals may decide about it, but not scores at positions that others have yet to take."""
    store = MemoryStore()
    session = sl.Session(question(epsilon=0.02), seed=2, store=store)
    if is_late:
        assert (finished(session).result.arms.pulls == ITEMS).any()
    else:
        session.tell(tickets := session.ask(), [scores(one.arm, session.items_of(one)) for one in tickets])
    finer = finished(sl.Session(question(epsilon=0.0), seed=2, store=store))
    said = "epsilon was not lowered because of scores on items that other arms had yet to take"
    for found in (finer.result.guarantee, finer.certified.guarantee):
        assert found is not None
        assert ("epsilon-unseen" in found.assumptions) == (said in found.assumption) == is_late


def test_a_smaller_epsilon_is_not_named_for_a_population() -> None:
    problem, store = question(target="population", m=1, epsilon=0.9, delta=0.4), MemoryStore()
    finished(sl.Session(problem, seed=1, store=store))
    again = finished(sl.Session(problem.changed(epsilon=0.05), seed=1, store=store))
    assert (again.result.arms.pulls == ITEMS).any()
    third = sl.Session(problem.changed(epsilon=0.04), seed=1, store=store).certified.guarantee
    assert third is not None
    assert "epsilon-unseen" not in third.assumptions


def test_known_rows_are_taken_in_the_order_of_the_run() -> None:
    """Otherwise the evidence of pairs with them would compare scores on different items."""
    best = int(TABLE.mean(axis=1).argmax())
    session = sl.Session(question(m=1, epsilon=0, known={best: TABLE[best]}), seed=6)
    order = session.problem.order(6)
    session.tell(tickets := session.ask(), [scores(one.arm, session.items_of(one)) for one in tickets])
    assert session._state.scores[best].tolist() == TABLE[best, order].tolist()
    finished(session)
    assert session.result.indices.tolist() == [best]
    assert best not in {int(arm) for event in session.events for arm in event.arms}


# --- measuring by functions ------------------------------------------------------------------------------


@pytest.mark.slow
def test_functions_threads_and_parts_give_the_same_answer() -> None:
    expected = finished(sl.Session(question(), seed=3))
    assert exact(sl.select(scores, question(), seed=3)) == exact(expected.result)
    ways: list[dict[str, Any]] = [{"pulls_per_call": 1}, {"pulls_per_call": 3}, {"turns": 1}]
    for how in ways:
        assert exact(sl.select(scores, question(), seed=3, **how)) == exact(expected.result)
    for how in ways:
        session = sl.Session(question(), seed=3)
        with ThreadPoolExecutor(3) as threads:
            found = sl.drive(session, scores, executor=threads, **how)
        assert found.selected == expected.result.selected
        assert session.certified.to_dict() == expected.certified.to_dict()


def test_scores_may_be_given_by_id() -> None:
    named = question(items={name: place for place, name in enumerate(IDS)})
    expected = exact(finished(sl.Session(named, seed=3)).result)

    def by_id(arm: int, items: list[int]) -> dict[str, float]:
        return {IDS[place]: TABLE[arm, place] for place in sorted(items)}

    assert exact(sl.select(by_id, named, seed=3, turns=1)) == expected
    session = sl.Session(named, seed=3)
    sl.drive(session, by_id, turns=1)
    last, order = session._state.last, named.order(3)
    for arm, seen in enumerate(last.seen.tolist()):
        assert last.scores[arm, :seen].tolist() == TABLE[arm, order[:seen]].tolist()

    def by_number(arm: int, items: list[int]) -> dict[int, float]:
        return {place: TABLE[arm, place] for place in sorted(items)}

    expected = exact(finished(sl.Session(question(), seed=3)).result)
    assert exact(sl.select(by_number, question(), seed=3)) == expected


@pytest.mark.parametrize("fault", ["missing", "other", "more"])
def test_scores_of_other_items_are_refused(fault: str) -> None:
    def wrong(arm: int, items: list[int]) -> dict[int, float]:
        found = {place: TABLE[arm, place] for place in items}
        if fault != "more":
            del found[items[-1]]
        if fault != "missing":
            found[-1] = 1.0
        return found

    with pytest.raises(sl.MeasurementFailed):
        sl.select(wrong, question())


@pytest.mark.slow
def test_a_run_goes_on_after_its_budget(tmp_path: Path) -> None:
    expected = exact(sl.select(scores, question(), seed=3))
    path = tmp_path / "run.db"
    first = sl.select(scores, question(), seed=3, store=path, budget=100)
    assert first.guarantee is None
    assert first.n_pulls <= 100
    second = sl.select(scores, question(), seed=3, store=path, budget=150)
    assert first.n_pulls <= second.n_pulls <= 150
    whole = sl.select(scores, question(), seed=3, store=path)
    assert whole.selected == expected[0]
    assert whole.is_answer
    other = tmp_path / "other.db"
    for budget in (100, 150):
        sl.select(scores, question(), seed=3, store=other, budget=budget, concurrency=4)
    assert exact(sl.select(scores, question(), seed=3, store=other)) == exact(whole)


def test_costs_limit_the_budget() -> None:
    problem = question(costs=[1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    found = sl.select(scores, problem, seed=3, budget=120)
    assert problem.cost_of(found.arms.pulls) <= 120
    assert sl.select(scores, problem, seed=3).guarantee is not None


def test_parts_of_a_ticket_are_joined_in_the_order_of_items() -> None:
    session = sl.Session(question())
    plan = CallPlan.of(session.ask(), 0, pulls_per_call=3)
    parts = PartialAnswers(plan)
    numbers = np.flatnonzero(plan.places(np.arange(plan.n_calls)) == 1)
    pieces = [
        100.0 * number + np.arange(count)
        for number, count in zip(numbers.tolist(), plan.parts(numbers).counts.tolist(), strict=True)
    ]
    late, early = numbers[[0]], numbers[1:]
    nothing = np.full(len(early), np.nan)
    parts.take(early[::-1], np.zeros(len(early)), nothing, np.concatenate(pieces[:0:-1]))
    joined = parts.whole_scores(np.array([1]), late, [pieces[0]])
    assert joined.tolist() == np.concatenate(pieces).tolist()
    parts.forget(np.array([1]))
    assert not parts.scores


def test_withdrawn_scores_are_forgotten() -> None:
    session = sl.Session(question(), seed=3)
    first = session.ask()[0]
    session.tell(first, [1.0] * first.count)
    session.withdraw(0, first.arm, "the wrong model was measured")
    assert isinstance(session.ask()[0], Ticket)
    expected = exact(finished(sl.Session(question(), seed=3)).result)
    assert exact(finished(session).result)[:3] == expected[:3]


def test_other_scores_of_a_part_with_the_same_mean_are_a_conflict() -> None:
    problem = sl.Problem(1, 0.1, 0.1, n=2, rewards=sl.Bernoulli(), items=30)
    session = sl.Session(problem)
    session.arrange({"pulls_per_call": 2, "together": 1, "on_failure": "suspend"})
    call = session.history.parts_of(session.history.round).call_plan.parts(np.array([0]))

    def told(scores: list[float]) -> Answers:
        given = Summaries(call.counts, np.array([0.5]), np.array([np.nan]), scores=[np.array(scores)])
        return Answers.of_calls(problem, call, given)

    session.answer(told([1.0, 0.0]))
    session.answer(told([1.0, 0.0]))
    assert not session.conflicts
    with pytest.warns(sl.errors.Contradiction):
        session.answer(told([0.0, 1.0]))
    assert len(session.conflicts) == 1


def test_a_population_may_need_more_items_than_there_are() -> None:
    table = np.random.default_rng(1).integers(0, 2, (3, 40)).astype(float)
    problem = sl.Problem(1, 0.01, 0.05, n=3, rewards=sl.Bernoulli(), items=40, target="population")
    result = sl.select(lambda arm, items: [table[arm, item] for item in items], problem)
    assert result.stop is sl.Stop.ITEMS
    assert result.guarantee is None
    assert result.n_pulls == 120
    assert result.certified_epsilon > 0.01
    assert "No items or blocks are left" in str(result)


def test_no_answers_and_scores_where_there_are_no_items() -> None:
    nothing = np.empty(0, dtype=np.int64)
    given = Summaries(nothing, np.empty(0), np.empty(0), scores=[])
    with_items = sl.Session(sl.Problem(1, 0.1, 0.1, n=2, rewards=sl.Bernoulli(), items=30))
    with_items.answer(Answers.of_calls(with_items.problem, with_items.asked.take(nothing), given))
    assert with_items.n_made == 0
    without = sl.Session(sl.Problem(1, 0.1, 0.1, n=2, rewards=sl.Bernoulli()))
    with pytest.raises(sl.MeasurementFailed, match="shared items"):
        Answers.of_calls(without.problem, without.asked.take(nothing), given)


# --- budgets that do not pay for a whole round --------------------------------------------------------------

WIDE = (np.random.default_rng(4).random((20, 400)) < np.linspace(0.5, 0.7, 20)[:, None]).astype(float)
WIDE_QUESTION = sl.Problem(1, 0.02, 0.05, n=20, rewards=sl.Bernoulli(), items=400)


def wide(arm: int, items: list[int]) -> list[float]:
    return WIDE[arm, items].tolist()  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_budget_is_spent_in_small_steps_and_the_run_can_be_read_again_and_go_on() -> None:
    store, n_limits = MemoryStore(), 0
    how: dict[str, Any] = {"seed": 3, "store": store, "turns": 1}
    for budget in (450, 600, 900):
        part = sl.select(wide, WIDE_QUESTION, name=str(budget), budget=budget, **how)
        assert 0.9 * budget < part.n_pulls <= budget
        assert part.stop is sl.Stop.BUDGET
        again = sl.Session.resume(store, str(budget))
        assert exact(again.result) == exact(part)
        assert again.result.certified_epsilon == part.certified_epsilon
        n_limits += sum(isinstance(one.event, Limited) for one in again.records)
        more = sl.select(wide, WIDE_QUESTION, name=str(budget), budget=budget + 200, **how)
        assert part.n_pulls <= more.n_pulls <= budget + 200
        assert more.certified_epsilon <= 1.1 * part.certified_epsilon
    assert n_limits >= 3
    assert sl.select(wide, WIDE_QUESTION, name=str(budget), **how).is_answer


def test_a_round_that_was_begun_is_not_made_smaller() -> None:
    session = sl.Session(WIDE_QUESTION, seed=3)
    for _ in range(2):
        session.tell(session.asked, [wide(one.arm, session.items_of(one)) for one in session.asked])
    asked, before = session.asked, session.n_pulls
    session.keep_within(before + int(asked.counts.sum()))
    assert session.asked is asked  # it pays for the round
    session.keep_within(before + 2)
    assert session.asked is asked  # it does not pay for a smaller one
    session.tell(session.ask(1), [wide(asked[0].arm, session.items_of(asked[0]))])
    session.keep_within(session.n_pulls + int(asked.counts[1:].sum()) - 1)
    assert session.asked is asked
    with pytest.raises(CorruptLog, match="limit at an invalid position"):
        session.history.copy().take([Limited(1.0)])
    other = sl.Session(sl.Problem(1, 0.5, 0.1, variances=[1.0, 1.0]), "race")
    other.keep_within(1)
    assert len(other.records) == 1


def test_a_round_with_scores_that_were_measured_ahead_is_not_made_smaller() -> None:
    def played(n_rounds: int) -> sl.Session:
        session = sl.Session(WIDE_QUESTION, seed=6)
        session.arrange({"pulls_per_call": 1, "together": 1, "on_failure": "suspend"})
        for _ in range(n_rounds):
            session.tell(session.asked, [wide(one.arm, session.items_of(one)) for one in session.asked])
        return session

    def is_limited(session: sl.Session) -> bool:
        asked, known = session.asked, session.history.n_partial
        session.keep_within(session.n_made + int(asked.counts.sum()) - known - 1)
        return session.asked is not asked

    n_rounds = next(n for n in range(1, 20) if is_limited(played(n)))
    session = played(n_rounds - 1)
    calls = session.ahead("me")[0].take(np.arange(5))
    found = [np.array(wide(one.arm, session.items_of(one))) for one in calls]
    given = Summaries(calls.counts, np.array([one[0] for one in found]), np.full(5, np.nan), scores=found)
    session.answer(Answers.of_calls(session.problem, calls, given))
    session.tell(session.asked, [wide(one.arm, session.items_of(one)) for one in session.asked])
    assert session.history.n_partial + session.n_ahead == 5
    assert not is_limited(session)
