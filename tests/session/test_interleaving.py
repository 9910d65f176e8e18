"""Arms are measured interleaved: in turns spread over the round, in an order that the seed decides."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.drift import SHAPES, wrong_answers

import shortlist as sl
from shortlist.execution.scheduler import Pace
from shortlist.measure import Summaries
from shortlist.report.provenance_text import measured_by
from shortlist.report.workload import workload
from shortlist.session.answers import Answers
from shortlist.session.call_plan import CallPlan
from shortlist.store import Answered, MemoryStore, Released
from shortlist.tickets import Tickets
from tests.execution.measures import N, exact, noisy, problem


def noting(calls: list[tuple[int, int]], stop_after: float = np.inf) -> Callable[..., Any]:
    """Return a measure that notes the arm and the pulls of every call, and dies after some."""

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if len(calls) >= stop_after:
            raise KeyboardInterrupt
        calls.append((arm, count))
        return noisy(arm, count, rng)

    return measure


@pytest.fixture
def one_call_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "blocks", lambda *_: 1)


# --- the order ------------------------------------------------------------------------------------


def order_of_arms(**options: Any) -> list[int]:
    calls: list[tuple[int, int]] = []
    sl.select(noting(calls), problem(), "wnelim", **options)
    return [arm for arm, _ in calls]


def test_every_arm_has_its_turn_in_every_part_of_a_round() -> None:
    passes = np.array(order_of_arms(seed=3)).reshape(8, N)
    assert (np.sort(passes, axis=1) == np.arange(N)).all()
    assert len({tuple(one) for one in passes.tolist()}) == 8
    assert (passes[1::2] == passes[::2, ::-1]).all(), "a steady drift then moves all means alike"


def test_the_order_follows_from_the_seed_and_nothing_else() -> None:
    assert order_of_arms(seed=3) == order_of_arms(seed=3)
    assert order_of_arms(seed=3) != order_of_arms(seed=4)
    assert order_of_arms(seed=3, turns=1) == list(range(N))


def test_the_turns_of_every_arm_are_spread_over_the_whole_round() -> None:
    counts = np.array([3, 100, 8, 1000, 50, 20, 7, 2, 900, 1] * 20)
    asked = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=np.ones(len(counts)))
    arms = np.arange(len(counts))
    call_plan = CallPlan.of(Tickets(asked, 4, arms, counts, 0 * arms), 7, 1, None, 8)
    calls = call_plan.calls(0, call_plan.n_calls)
    for arm in arms:
        mine = np.flatnonzero(calls.arms == arm)
        assert len(mine) == min(counts[arm], 8)
        assert (np.diff(calls.first_pulls[mine]) > 0).all()
        assert np.ptp(calls.counts[mine]) <= 1, "turns are of about equal size"
        turns = np.arange(len(mine))
        shares = mine / call_plan.n_calls * len(mine)
        assert (shares > turns - 0.5).all()
        assert (shares < turns + 1.5).all()


@pytest.mark.parametrize("per_call", [3, 40])
def test_calls_are_no_larger_than_asked_for_and_still_take_turns(per_call: int) -> None:
    calls: list[tuple[int, int]] = []
    sl.select(noting(calls), problem(), "wnelim", pulls_per_call=per_call)
    pulls = np.bincount(*np.array(calls).T)
    assert max(count for _, count in calls) <= per_call
    sizes = np.bincount([arm for arm, _ in calls])
    assert (sizes == np.maximum(8, -(-pulls // per_call))).all()
    assert [arm for arm, _ in calls] != sorted(arm for arm, _ in calls)


def test_a_million_arms_have_few_turns() -> None:
    n = 1_000_000
    asked = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=np.ones(n))
    arms = np.arange(n)
    call_plan = CallPlan.of(Tickets(asked, 0, arms, np.full(n, 100), 0 * arms), 7, 1, None, 8)
    assert call_plan.n_calls == 2 * n


def test_one_arm_alone_and_simulated_or_recorded_arms_need_no_turns(tmp_path: Path) -> None:
    asked = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=np.ones(2))
    one = Tickets(asked, 0, np.array([1]), np.array([50]), np.array([0]))
    assert CallPlan.of(one, 7, 1, None, 8).n_calls == 1
    session = sl.Session(asked, "wnelim")
    sl.drive(session, sl.simulated_measure(asked, [0.0, 1.0]))
    assert session.settings is not None
    assert "turns" not in session.settings


# --- drift ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_machine_that_slows_down_makes_no_answer_wrong(shape: str) -> None:
    assert wrong_answers(SHAPES[shape], "single-stage", turns=8, runs=6) == 0
    assert wrong_answers(SHAPES[shape], "single-stage", turns=1, runs=6) >= 3, "the test sees what it should"


# --- what is kept of a round that is under way ------------------------------------------------------


@pytest.mark.usefixtures("one_call_per_task")
def test_a_driver_that_dies_in_the_middle_of_a_round_loses_the_call_under_way_only(tmp_path: Path) -> None:
    store, calls = tmp_path / "runs.db", list[tuple[int, int]]()
    with pytest.raises(KeyboardInterrupt):
        sl.select(noting(calls, stop_after=50), problem(), "wnelim", store=store)
    with sl.Session.resume(store) as session:
        assert session.n_made == sum(count for _, count in calls) > session.n_pulls
        assert session.answered().counts.sum() == session.n_made - session.n_pulls
    found = sl.select(noting(calls), problem(), "wnelim", store=store, reproducible=True)
    assert len(calls) == 8 * N, "no call was made twice"
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))


@pytest.mark.usefixtures("one_call_per_task")
def test_drivers_share_a_round_call_by_call(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    calls: list[list[tuple[int, int]]] = [[], []]

    both = threading.Barrier(2)

    def drive(number: int) -> sl.Result:
        def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
            if not calls[number]:
                both.wait(60)
            time.sleep(0.01)  # while one measures, the other can write
            return noting(calls[number])(arm, count, rng)

        return sl.select(measure, problem(), "wnelim", store=store, reproducible=True)

    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(drive, range(2)))
    assert exact(results[0]) == exact(results[1]) == exact(sl.select(noisy, problem(), "wnelim"))
    assert sorted(calls[0] + calls[1]) == sorted(arm_calls())
    arms = [{arm for arm, _ in some} for some in calls]
    assert arms[0] & arms[1], "no ticket was measured by both"
    with sl.Session.resume(store) as session:
        rows = workload(session.history, session.records)
        assert sorted(row.n_pulls for row in rows) == sorted(sum(c for _, c in some) for some in calls)
        kinds = {type(record.event) for record in session.records}
        assert {Answered, Released} <= kinds
        assert not session.conflicts


def arm_calls() -> list[tuple[int, int]]:
    calls: list[tuple[int, int]] = []
    sl.select(noting(calls), problem(), "wnelim")
    return calls


def test_an_answer_to_a_call_that_is_known_changes_nothing() -> None:
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, noting([], stop_after=5))
    known = session.answered()
    values = np.arange(float(len(known)))
    answers = sl.measure.Summaries(known.counts, values, np.full(len(known), np.nan))
    with pytest.warns(sl.errors.Contradiction, match="the first answer is kept"):
        session.answer(Answers.of_calls(session.problem, known, answers))
    assert len(session.conflicts) == len(known) > 0
    other = Tickets(known.problem, 0, known.arms, known.counts + 1, known.first_pulls)
    with pytest.raises(sl.errors.NotAsked, match="do not belong to this run"):
        session.answer(Answers.of_calls(session.problem, other, answers))
    calls: list[tuple[int, int]] = []
    found = sl.drive(session, noting(calls), reproducible=True)
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))
    assert len(calls) == 8 * N - len(known), "what was answered is not measured again"


def test_a_call_under_way_is_nobody_else_s(tmp_path: Path) -> None:
    asked, store = problem(variances=np.ones(2), m=1), tmp_path / "runs.db"
    is_slow, may_end = threading.Event(), threading.Event()

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 0 and not is_slow.is_set():
            is_slow.set()
            may_end.wait(60)
        return noisy(arm, count, rng)

    with ThreadPoolExecutor(4) as threads, sl.Session(asked, "wnelim", store=store) as other:
        declared = {"store": store, "executor": threads, "reproducible": True}
        done = threads.submit(sl.select, measure, asked, "wnelim", **declared)  # type: ignore[arg-type]
        assert is_slow.wait(60)
        while other.answered().counts.sum() + other.n_pulls < other.asked.counts.sum() * 7 // 8:
            other.refresh()  # until this call is the only one left
            time.sleep(0.01)
        is_free = other.claim(other.asked, "another", 60.0)
        may_end.set()
        assert not is_free.any()
        assert exact(done.result()) == exact(sl.select(noisy, asked, "wnelim"))


def test_what_a_copy_of_a_history_learns_of_calls_stays_there() -> None:
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, noting([], stop_after=5))
    history, before = session.history, session.n_made
    known = {(call.arm, call.first_pull) for call in history.answered}
    call_plan = history.parts_of(history.round).call_plan
    some = next(
        call
        for call in call_plan.parts(np.arange(call_plan.n_calls))
        if (call.arm, call.first_pull) not in known
    )
    one = (np.array([some.arm]), np.array([some.first_pull]), np.array([some.count]), np.array([1.0]))
    history.copy().take([Answered(0, *one)])
    assert session.n_made == before == history.answered.counts.sum()


# --- what a run keeps to ----------------------------------------------------------------------------


def test_a_run_goes_on_as_it_was_begun(tmp_path: Path) -> None:
    for began, wish in ((1, 8), (8, 1), (4, 8)):
        store = tmp_path / f"{began}.db"
        with pytest.raises(KeyboardInterrupt):
            sl.select(noting([], stop_after=5), problem(), "wnelim", store=store, turns=began)
        with pytest.raises(sl.errors.ChangedRun, match="turns was"):
            sl.select(noisy, problem(), "wnelim", store=store, turns=wish)
        found = sl.select(noisy, problem(), "wnelim", store=store)
        assert exact(found) == exact(sl.select(noisy, problem(), "wnelim", turns=began))


def test_the_settings_say_that_arms_are_interleaved() -> None:
    session = sl.Session(problem(), "wnelim")
    sl.drive(session, noisy)
    assert session.settings is not None
    assert session.settings["turns"] == 8
    assert measured_by(session.settings).endswith("arms interleaved in 8 turns")


def test_the_score_of_failures_is_fixed_with_the_first_call_that_is_answered() -> None:
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, noting([], stop_after=0))
    sl.drive(session, noting([]), on_failure=0.0, budget=0)
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, noting([], stop_after=2), on_failure=0.0)
    assert session.n_made > session.n_pulls == 0
    with pytest.raises(sl.errors.ChangedRun, match="fixed before the first reward"):
        sl.drive(session, noisy)
    assert sl.drive(session, noisy, on_failure=0.0).guarantee is not None


# --- what must not break --------------------------------------------------------------------------


SETTINGS = {"pulls_per_call": None, "together": 1, "on_failure": "suspend"}


def asked(**changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 1, "epsilon": 0.5, "delta": 0.05, "variances": [1.0] * 4}
    return sl.Problem(**(given | changes))


def parts(session: sl.Session, *numbers: int) -> Tickets:
    return session.history.parts_of(session.history.round).call_plan.parts(np.array(numbers))


def answer(session: sl.Session, calls: Tickets, mean: float = 0.0, variance: float = np.nan) -> None:
    n = len(calls)
    given = Summaries(calls.counts, np.full(n, mean), np.full(n, variance))
    session.answer(Answers.of_calls(session.problem, calls, given))


def test_looking_before_a_driver_begins_does_not_settle_the_split(tmp_path: Path) -> None:
    """Whoever asked what had been answered before the first driver came kept the split of no settings."""
    session = sl.Session(asked(), "wnelim", store=tmp_path / "runs.db")
    session.answered()
    session.tell(session.ask()[0], means=0.0)
    other = sl.Session.resume(tmp_path / "runs.db")
    sl.drive(other, lambda arm, count, rng: rng.normal(arm, 1.0, count))
    session.refresh()
    assert session.result.to_dict() == other.result.to_dict()


def test_the_split_cannot_change_after_an_answer(tmp_path: Path) -> None:
    session = sl.Session(asked(), "wnelim", store=tmp_path / "runs.db")
    session.arrange(SETTINGS | {"turns": 8})
    session.tell(session.ask()[0], means=0.0)
    for key, value, old in (("turns", 4, 8), ("pulls_per_call", 3, None), ("together", 2, 1)):
        with pytest.raises(sl.InvalidProblem, match="the split of tickets stays the same"):
            session.arrange(SETTINGS | {"turns": 8} | {key: value, "follows": {key: old}})
    with pytest.raises(sl.InvalidProblem, match="pulls_per_call"):
        session.arrange(SETTINGS | {"turns": 8, "pulls_per_call": 2**63})
    assert sl.Session.resume(tmp_path / "runs.db").n_pulls == session.n_pulls


@pytest.mark.usefixtures("one_call_per_task")
def test_a_budget_counts_the_parts_of_tickets() -> None:
    calls: list[tuple[int, int]] = []
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, noting(calls, stop_after=50))
    budget = session.n_made + 40
    sl.drive(session, noting(calls), budget=budget, reproducible=True)
    assert sum(count for _, count in calls) == session.n_made <= budget


def test_a_budget_pays_for_whole_blocks_in_their_order() -> None:
    """Blocks belong to many tickets: a budget that is too small for the round still pays for most of them."""

    def block(arms: Any, counts: Any, rng: np.random.Generator) -> Any:
        return rng.normal(arms, 1.0)

    measure, whole = sl.vectorised(block, block=4), sl.Session(problem(), "wnelim")
    sl.drive(whole, measure)
    session = sl.Session(problem(), "wnelim")
    first_round = int(session.asked.counts.sum())
    largest_block = 4 * -(-int(session.asked.counts.max()) // 8)
    for share in (3, 2):
        budget = first_round // share
        sl.drive(session, measure, budget=budget)
        assert budget - largest_block < session.n_made <= budget
    assert sl.drive(session, measure).n_pulls == whole.n_pulls
    assert session.result.arms.means.tolist() == whole.result.arms.means.tolist()


def test_larger_calls_are_neither_early_nor_late() -> None:
    """A steady drift moves the means of arms alike, whatever their counts are."""
    counts = np.arange(8, 40)
    arms = np.arange(len(counts))
    asked = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=np.ones(len(counts)))
    tickets = Tickets(asked, 0, arms, counts, 5 * arms)
    call_plan = CallPlan.of(tickets, 7, 1, None, 8)
    calls = call_plan.parts(np.arange(call_plan.n_calls))
    centres = np.tile((np.arange(8) + 0.5) / 8, len(counts))  # of the turns, as parts of the round
    drifts = np.bincount(calls.arms, calls.counts * centres) / counts
    assert np.abs(drifts - 0.5).max() < 0.0075
    assert (call_plan.find(calls) == np.arange(call_plan.n_calls)).all()


@pytest.mark.parametrize("count", [2**53 - 1, 2**53 - 7, 2**40 + 3, 1001])
@pytest.mark.parametrize("calls", [8, 999, 1000])
def test_calls_of_large_tickets_are_found_again(count: int, calls: int) -> None:
    asked = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=[1.0, 1.0])
    tickets = Tickets(asked, 0, np.arange(2), np.array([count, 10]), np.array([3, 4]))
    call_plan = CallPlan.of(tickets, 7, 1, -(-count // calls), 8)
    parts = call_plan.parts(np.arange(call_plan.n_calls))
    assert parts.counts[parts.arms == 0].sum() == count
    assert parts.counts.max() <= -(-count // calls)
    assert (call_plan.find(parts) == np.arange(call_plan.n_calls)).all()


@pytest.mark.parametrize("strategy", ["t-race", "rinott", "auto"])
def test_a_pilot_that_no_strategy_can_use_is_not_recorded(strategy: str, tmp_path: Path) -> None:
    question = sl.Problem(m=1, epsilon=0.1, delta=0.05, n=3, rewards=sl.Gaussian(pilot=16))
    store = tmp_path / "runs.db"
    with sl.Session(question, strategy, store=store) as session:
        tickets, last = session.ask()[:2], session.ask()[2]
        session.tell(tickets, [sl.Summary(t.count, 1.0, 1e18) for t in tickets])
        with pytest.raises(sl.InvalidProblem, match=r"counted exactly.* not recorded"):
            session.tell(last, sl.Summary(last.count, 1.0, 1e18))
        assert session.result.n_rounds == 0
    with sl.Session.resume(store) as session:
        assert len(session.ask()) == 1


def test_a_ticket_told_over_its_parts_was_measured_twice() -> None:
    session = sl.Session(asked(), "wnelim")
    session.arrange(SETTINGS | {"turns": 8})
    answer(session, parts(session, 0), 5.0)
    first, second = session.ask()[0], session.ask()[1]
    session.tell(second, means=0.5)
    assert session.result.n_reissued == 0
    session.tell(first, means=0.5)
    assert session.result.n_reissued == 1


def test_bounds_that_are_declared_later_hold_for_parts_too(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with sl.Session(asked(variances=[0.25] * 4), "wnelim", store=store) as session:
        session.arrange(SETTINGS | {"turns": 8})
        answer(session, parts(session, *range(7)), 5.0)
    bounded = asked(variances=[0.25] * 4, bounds=(0, 1))
    with pytest.raises(sl.errors.ChangedRun, match="recorded before the bounds"):
        sl.Session(bounded, "wnelim", store=store)


@pytest.mark.parametrize("variance", [np.inf, -1.0, np.nan, 1e308])
def test_a_pilot_has_finite_variances(variance: float) -> None:
    question = sl.Problem(m=1, epsilon=0.1, delta=0.05, n=3, rewards=sl.Gaussian(pilot=16))
    session = sl.Session(question)
    session.arrange(SETTINGS | {"turns": 8})
    calls = parts(session, *range(8))  # all of one ticket; eight times 1e308 is infinite
    with pytest.raises(sl.MeasurementFailed, match="variance"):
        answer(session, calls, variance=variance)
    assert session.n_made == 0


@pytest.mark.parametrize("mean", [np.nan, np.inf])
def test_a_mean_is_a_number(mean: float) -> None:
    session = sl.Session(asked(), "wnelim")
    session.arrange(SETTINGS | {"turns": 8})
    with pytest.raises(sl.MeasurementFailed, match="finite number"):
        answer(session, parts(session, 0), mean)
    assert session.n_made == 0


def test_calls_of_a_block_are_told_by_those_who_hold_them() -> None:
    """A block is measured whole; of one whose tickets two workers hold, each tells its own calls only."""
    store, lock = MemoryStore(), threading.Lock()
    told: list[int] = []

    def block(arms: Any, counts: Any, rng: np.random.Generator) -> Any:
        with lock:
            told.append(len(arms))
        time.sleep(0.002)
        return rng.normal(arms, 1.0) + time.monotonic() % 1  # not reproducible

    def drive() -> None:
        session = sl.Session(problem(), "wnelim", store=store)
        sl.drive(session, sl.vectorised(block, block=4))

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session = sl.Session.resume(store)
    assert session.is_done
    assert session.conflicts == []
