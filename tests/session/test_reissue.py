"""Tickets measured more than once, or perhaps: counted and named by the result, or never issued again."""

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.measure import TableSource
from shortlist.report.fragment import result_html
from shortlist.report.model import report_of_run
from shortlist.report.report_text import report_lines
from shortlist.report.run_text import status_dict
from shortlist.session.answers import Answers
from shortlist.session.lease_table import LeaseTable
from shortlist.session.state import RunState
from shortlist.session.worker_names import own_name
from shortlist.store import Arranged, Began, Event, Leased, MemoryStore, Released, Told
from shortlist.store.codec import decoded, encoded
from tests.execution.measures import MEANS as TRUE_MEANS
from tests.execution.measures import Once, problem

TWO = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[4.0, 4.0])
MEANS = (0.0, 0.6)  # so arm 0 is wrong
ASSUMED = "neither the duration nor the failure of a measurement depends on its reward"


def noisy(arm: int, count: int, rng: np.random.Generator) -> Any:
    """Return rewards that follow the seed, which nobody but us knows."""
    return rng.normal(TRUE_MEANS[arm], 1.0, count)


class Unknown(Once):
    """One of which it is not known."""

    is_reproducible = False


@dataclass
class Clock:
    """A clock that stands still until it is set."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def staged(seed: int, **how: Any) -> sl.Result:
    """Return the result of a run whose draws follow no seed, and take long where they speak against arm 0.

    Two workers share it. A slow draw takes fifty times as long as a lease.
    """
    clock, rng = Clock(), np.random.default_rng(seed)
    session = sl.Session(TWO, "level-race", store=MemoryStore(clock), **how)
    idle, busy = ["ann", "bob"], list[Any]()
    while not session.is_done:
        for worker in list(idle):
            for ticket in session.ask(1, worker=worker, lease=1.0):
                noise = rng.normal(0.0, (4.0 / ticket.count) ** 0.5)
                is_slow = noise < 0 if ticket.arm == 0 else noise > 0
                end = clock.now + (50.0 if is_slow else 0.1)
                heapq.heappush(busy, (end, worker, ticket, MEANS[ticket.arm] + noise))
                idle.remove(worker)
        if busy and (not idle or busy[0][0] <= clock.now + 1.1):
            clock.now, worker, ticket, mean = heapq.heappop(busy)
            session.record(Answers.of(session.problem, ticket, None, mean, worker))
            idle.append(worker)
        else:
            clock.now += 1.1  # whoever is idle looks again when a lease has run out
    return session.result


N_RUNS = 24  # at delta 0.1, seven wrong answers or more have a probability below 0.01


def test_reissued_tickets_choose_the_quicker_value_and_the_result_says_so() -> None:
    found = [staged(seed) for seed in range(N_RUNS)]
    wrong = [result for result in found if result.selected == ("arm-0",)]
    assert len(wrong) > N_RUNS / 2, "the staged case is not one"
    assert sum(result.n_reissued == 0 for result in wrong) < 7, "by chance alone"
    for result in filter(lambda result: result.n_reissued, found):
        assert result.guarantee is not None
        assert ASSUMED in result.guarantee.assumption
        assert f"{result.n_reissued} ticket" in str(result)
        assert f"The guarantee assumes that {ASSUMED}." in str(result)


def test_without_reissue_the_guarantee_holds_and_nothing_needs_to_be_said() -> None:
    found = [staged(seed, reissue=False) for seed in range(N_RUNS)]
    assert sum(result.selected == ("arm-0",) for result in found) < 7
    assert all(result.n_reissued == 0 for result in found)
    assert all("more than once" not in str(result) for result in found)
    assert all(ASSUMED not in str(result) for result in found)


# --- which tickets count ----------------------------------------------------------------------------


def leased(worker: str, *arms: int, until: float = 1.0) -> Leased:
    return Leased(0, np.array(arms), worker, until)


def told(*arms: int, again: tuple[int, ...] = ()) -> Told:
    return Told(0, np.array(arms), np.zeros(len(arms)), again=again)


def released(worker: str, *arms: int, by: str = "") -> Released:
    return Released(0, np.array(arms), worker, by)


def n_again(*events: Event) -> int:
    history = RunState(Began(problem(), "race", 0, "race", "abcd", "0.1.0"))
    history.take(events)
    return history.n_again


@pytest.mark.parametrize(
    ("events", "n"),
    [
        pytest.param([leased("ann", 0), told(0)], 0, id="issued once"),
        pytest.param([leased("ann", 0), leased("ann", 0, until=2.0), told(0)], 0, id="renewed"),
        pytest.param(
            [leased("ann", 0, 1), leased("bob", 1), told(0), told(1)], 1, id="issued to a second worker"
        ),
        pytest.param([leased("ann", 0), leased("bob", 0)], 0, id="not answered yet"),
        pytest.param([leased("ann", 0), leased("bob", 0), leased("ann", 0), told(0)], 1, id="there and back"),
        pytest.param([leased("ann", 0), told(1), leased("bob", 0), told(0)], 1, id="with answers in between"),
        pytest.param([leased("ann", 0), released("ann", 0), leased("bob", 0), told(0)], 0, id="given back"),
        pytest.param(
            [leased("ann", 0), leased("bob", 0), released("bob", 0), told(0)],
            1,
            id="the second gives it back",
        ),
        pytest.param(
            [leased("ann", 0), released("ann", 0, by="eve"), leased("bob", 0), told(0)], 1, id="taken away"
        ),
        pytest.param(
            [leased("ann", 0), released("ann", 0, by="eve"), told(0)], 0, id="taken away, but answered"
        ),
        pytest.param(
            [leased("ann", 0), released("ann", 0, by="ann"), leased("ann", 0), told(0)], 1, id="broken off"
        ),
        pytest.param([released("ann", 0, by="ann"), told(0)], 1, id="broken off without a lease"),
        pytest.param([told(0, 1, 2, again=(1, 2))], 2, id="tried again by its driver"),
        pytest.param(
            [leased("ann", 1), leased("bob", 1), told(0, 1, again=(1,))], 1, id="both, counted once"
        ),
    ],
)
def test_which_tickets_count_as_repeated(events: list[Event], n: int) -> None:
    assert n_again(*events) == n
    history = RunState(Began(problem(), "race", 0, "race", "abcd", "0.1.0"))
    for event in events:  # one by one it comes to the same as all together
        history.take([event])
    assert history.n_again == n


def test_holders_of_one_ticket_in_one_batch_of_leases_are_compared_in_order() -> None:
    leases = LeaseTable(3)
    leases.note(np.array([2, 0, 2]), ["ann", "bob"], [2, 1], np.ones(3))
    assert leases.is_again(np.arange(3)).tolist() == [False, False, True]
    copy = leases.copy()
    copy.note(np.array([2, 0]), ["bob"], [2], np.ones(2))
    assert copy.is_again(np.arange(3)).tolist() == [True, False, True]
    assert leases.is_again(np.arange(3)).tolist() == [False, False, True]


@pytest.mark.parametrize("event", [told(3, 1, again=(1,)), told(3, again=(3,)), released("ann", 3, by="eve")])
def test_the_log_keeps_it(event: Any) -> None:
    kind, body = encoded(event)
    back = decoded(kind, body)
    assert {**vars(back), "arms": 0, "means": 0} == {**vars(event), "arms": 0, "means": 0}


def test_events_that_do_not_say_it_are_written_as_before() -> None:
    assert encoded(told(3))[1][0] == encoded(released("ann", 3))[1][0] == 2, "the short form"
    for event in (told(3, 1), released("ann", 3, 1)):
        assert b"again" not in encoded(event)[1]
        assert b'"by"' not in encoded(event)[1]
    began = Began(problem(), "race", 0, "race", "abcd", "0.1.0")
    assert b"reissue" not in encoded(began)[1]
    back = decoded(*encoded(Began(problem(), "race", 0, "race", "abcd", "0.1.0", reissue=False)))
    assert isinstance(back, Began)
    assert back.reissue is False


# --- what only a driver knows -------------------------------------------------------------------------


def test_a_failure_tried_again_is_counted_unless_the_measurement_is_declared_reproducible(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found = sl.select(Unknown(tmp_path / "a", "raises", times=2), problem(), "race")
    assert found.n_reissued == found.to_dict()["n_reissued"] == 1
    assert str(found).count("1 ticket may have been measured more than once, because") == 1
    declared = sl.select(Unknown(tmp_path / "b", "raises", times=2), problem(), "race", reproducible=True)
    assert declared.n_reissued == 0
    assert "more than once" not in str(declared)
    assert sl.select(noisy, problem(), "race").n_reissued == 0


def test_a_run_that_failed_and_was_taken_up_again_counts_what_had_failed(tmp_path: Path) -> None:
    for session in (sl.Session(problem(), "race"), sl.Session(problem(), "race", store=tmp_path / "runs.db")):
        folder = tmp_path / f"{session.is_private}"
        folder.mkdir()
        with pytest.raises(sl.MeasurementFailed):
            sl.drive(session, Unknown(folder, "raises"), retries=0)
        assert session.result.n_reissued == 0, "it has no answer yet"
        assert sl.drive(session, noisy).n_reissued == 1
        session.close()


def test_parts_of_a_ticket_that_are_measured_again_count() -> None:
    begun: list[int] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        begun.append(arm)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return noisy(arm, count, rng)

    session = sl.Session(problem(), "wnelim")
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, measure, pulls_per_call=2)
    assert 1 <= session.n_made <= 2, "the first task was one call, and is kept"
    assert sl.drive(session, noisy, pulls_per_call=2).n_reissued >= len(set(begun[1:]))


def test_an_answer_that_was_refused_and_is_measured_again_counts() -> None:
    session = sl.Session(problem(), "wnelim")
    with pytest.raises(sl.MeasurementFailed, match="Subtract a constant"):
        sl.drive(session, lambda arm, count, _: [1e200 if arm == 6 else 0.0] * count)
    assert sl.drive(session, noisy).n_reissued == 1


def test_simulated_arms_and_tables_are_reproducible_by_construction(tmp_path: Path) -> None:
    table = TableSource.of(problem(), [np.random.default_rng(a).normal(size=4000) for a in range(11)])
    for source in (sl.simulated_measure(problem(), np.zeros(11)), table):
        session = sl.Session(problem(), "wnelim")
        session.release("me", by="me", begun=session.ask()[:1])
        assert sl.drive(session, source).n_reissued == 0
        assert session.history.n_again == 1


# --- the declaration ------------------------------------------------------------------------------------


def test_a_declaration_may_come_at_any_time_and_stays() -> None:
    store = MemoryStore()
    session = sl.Session(problem(), "wnelim", store=store)
    session.release("me", by="me", begun=session.ask()[:1])
    assert sl.drive(session, noisy, budget=100).n_reissued == 1
    session = sl.Session(problem(), "wnelim", store=store, reproducible=True)
    assert session.result.n_reissued == 0
    assert sl.drive(session, noisy).n_reissued == 0, "a driver that does not repeat it does not withdraw it"
    assert [set(r.event.settings) for r in session.records if isinstance(r.event, Arranged)] == [
        {"pulls_per_call", "together", "on_failure", "turns"},
        {"pulls_per_call", "together", "on_failure", "turns", "reproducible"},
    ]


def test_it_may_be_declared_before_any_driver_has_begun() -> None:
    session = sl.Session(problem(), "wnelim", reproducible=True)
    assert session.settings == {"reproducible": True}
    sl.drive(session, noisy)
    assert session.settings is not None
    assert session.settings["reproducible"] is True
    with pytest.raises(sl.errors.ChangedRun, match="pulls_per_call"):
        sl.drive(session, noisy, pulls_per_call=3)


@pytest.mark.parametrize("option", ["reproducible", "reissue"])
def test_other_values_are_refused(option: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=f"`{option}` is 'yes'"):
        sl.Session(problem(), **{option: "yes"})  # type: ignore[arg-type]


# --- without reissue --------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> Iterator[sl.Session]:
    with sl.Session(problem(), "wnelim", store=MemoryStore(clock), reissue=False) as session:
        yield session


def test_a_ticket_stays_with_its_worker_when_its_lease_has_run_out(kept: sl.Session, clock: Clock) -> None:
    held = kept.ask(2, worker="ann", lease=1.0)
    clock.now = 1e6
    assert not set(kept.ask(worker="bob").arms) & set(held.arms)
    assert not set(kept.ask().arms) & set(held.arms), "nor does one without a name get it"
    assert kept.ask(worker="ann").arms.tolist()[:2] == held.arms.tolist()
    kept.tell(held[0], means=0.0, worker="ann")
    assert held[0].arm not in kept.ask().arms


def test_it_goes_to_others_when_it_is_given_back_or_taken_away(kept: sl.Session, clock: Clock) -> None:
    back, away = kept.ask(1, worker="ann"), kept.ask(1, worker="bob")
    clock.now = 1e6
    kept.release("ann")
    kept.release("bob", by="eve")
    assert set(kept.ask(worker="col").arms) >= {back[0].arm, away[0].arm}
    kept.tell([back[0], away[0]], means=[0.0, 0.0], worker="col")
    assert kept.history.n_again == 1, "bob may be measuring it still"


def test_a_driver_of_this_machine_that_is_gone_does_not_keep_its_tickets(kept: sl.Session) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    ghost = own_name().replace(f":{os.getpid()}:", f":{child}:")
    held = kept.ask(2, worker=ghost)
    assert set(kept.ask(worker=own_name()).arms) >= set(held.arms)


def test_it_is_settled_when_the_run_begins() -> None:
    store = MemoryStore()
    sl.Session(problem(), "wnelim", store=store, reissue=False)
    assert not sl.Session(problem(), "wnelim", store=store).history.began.reissue
    with pytest.raises(sl.errors.ChangedRun, match="reissue was False, is True"):
        sl.Session(problem(), "wnelim", store=store, reissue=True)


def test_who_is_overdue_is_still_said_to_hold_tickets(kept: sl.Session) -> None:
    kept.ask(2, worker="ann", lease=1.0)  # of 1970
    (holder,) = status_dict(kept.log)["holders"]
    assert (holder["worker"], holder["n_tickets"]) == ("ann", 2)


# --- where it is said ---------------------------------------------------------------------------------------


def test_every_view_of_a_run_names_the_tickets_and_the_assumption(tmp_path: Path) -> None:
    session = sl.Session(problem(), "wnelim", store=MemoryStore(), name="trial")
    session.release("me", by="me", begun=session.ask()[:3])
    sl.drive(session, noisy)
    said = "3 tickets may have been measured more than once, because"
    report = report_of_run("trial", session.history, session.records)
    lines = "\n".join(report_lines(report))
    assert said in lines
    assert f"and {ASSUMED}." in lines
    assert said in result_html(session.result)
    assert status_dict(session.log)["n_reissued"] == 3


def test_a_worker_releases_its_own_tickets_and_none_that_others_have_by_now() -> None:
    leases, every = LeaseTable(3), np.arange(3)
    leases.note(every, ["ann"], [3], np.full(3, 10.0))
    leases.note(np.array([1]), ["bob"], [1], np.full(1, 20.0))  # the lease of ann had expired
    leases.release(every, "ann")
    assert leases.is_held(5.0).tolist() == [False, True, False]
    assert leases.is_held_by("bob").tolist() == [False, True, False]
    assert leases.until(every).tolist() == [-np.inf, 20.0, -np.inf]
    leases.release(every, "eve")  # who never had any
    assert leases.is_held(5.0).tolist() == [False, True, False]
