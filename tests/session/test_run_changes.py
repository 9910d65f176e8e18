"""Changes of a run while it goes on: a smaller epsilon, answers that are withdrawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.certificates.certificate import certificate_of
from shortlist.errors import CorruptLog, InvalidProblem, NotAsked
from shortlist.execution import scheduler
from shortlist.report.export import answer_rows
from shortlist.report.workload import workload
from shortlist.server.run_cache import OpenRun
from shortlist.session import Session
from shortlist.store import MemoryStore, Narrowed, Withdrawn

VARIANTS = sl.Problem(m=1, epsilon=0.01, delta=0.05, names=["A", "B", "C", "D"], rewards=sl.Bernoulli())


# --- a smaller epsilon ------------------------------------------------------------------------------


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), None])
def test_a_race_goes_on_with_a_smaller_epsilon(tmp_path: Path, rewards: Any) -> None:
    variances = None if rewards else [0.25] * 4
    question = sl.Problem(m=1, epsilon=0.2, delta=0.1, variances=variances, n=4, rewards=rewards)
    calls = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append(count)
        return rng.binomial(1, [0.2, 0.3, 0.45, 0.1][arm], count).astype(float)

    first = sl.select(measure, question, "race", store=tmp_path / "r.db")
    made = sum(calls)
    finer = question.changed(epsilon=0.1)
    second = sl.select(measure, finer, "race", store=tmp_path / "r.db")
    assert first.n_pulls == made
    assert second.n_pulls == sum(calls) > made
    assert second.guarantee is not None
    assert second.guarantee.epsilon == 0.1
    assert second.selected == ("arm-2",)
    with Session.resume(tmp_path / "r.db") as session:
        assert session.problem.epsilon == 0.1
        assert session.result.to_dict() == second.to_dict()
        assert sum(isinstance(one.event, Narrowed) for one in session.records) == 1
        # Evidence keeps the tilts of the first question: delta is spent on one mixture, chosen in advance.
        merits = session.result.arms.means
        expected = certificate_of(finer, session.result.arms.pulls, merits, scale=0.2)
        assert session.certified.epsilon == min(expected.epsilon, 0.1)
    with pytest.raises(
        sl.errors.ChangedRun,
        match=r"it was 0\.1, is 0\.2.*no new run is needed.*0\.2 is certified already, for arm-2",
    ):
        sl.select(measure, question, "race", store=tmp_path / "r.db")
    with pytest.raises(sl.errors.ChangedRun, match="delta"):
        sl.select(measure, finer.changed(epsilon=0.05, delta=0.2), "race", store=tmp_path / "r.db")


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), None])
def test_an_epsilon_that_no_pulls_can_reach_is_refused_and_not_recorded(rewards: Any) -> None:
    variances = None if rewards else [0.25] * 4
    question = sl.Problem(m=1, epsilon=0.1, delta=0.1, variances=variances, n=4, rewards=rewards)
    store = MemoryStore()
    Session(question, "race", store=store)
    with pytest.raises(InvalidProblem, match=r"pulls"):
        Session(question.changed(epsilon=0.01 if rewards else 1e-8), "race", store=store)
    again = Session.resume(store)
    assert again.problem.epsilon == 0.1
    assert len(again.records) == 1


def test_a_larger_epsilon_needs_no_new_run(tmp_path: Path) -> None:
    question, store = VARIANTS.changed(epsilon=0.1), tmp_path / "r.db"

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        return rng.binomial(1, [0.2, 0.3, 0.5, 0.1][arm], count)

    early = sl.select(measure, question, "race", store=store, budget=60)
    assert 0.1 < early.certified_epsilon < 0.9
    with pytest.raises(
        sl.errors.ChangedRun, match=r"An epsilon of 0\.11 is not certified yet: .*stop it when"
    ):
        sl.select(measure, question.changed(epsilon=0.11), "race", store=store)
    with pytest.raises(sl.errors.ChangedRun, match=r"An epsilon of 0\.9 is certified already, for C: "):
        sl.select(measure, question.changed(epsilon=0.9), "race", store=store)
    for change in ({"m": 2}, {"delta": 0.2}):
        with pytest.raises(sl.errors.ChangedRun, match="give the new run another name"):
            sl.select(measure, question.changed(epsilon=0.9, **change), "race", store=store)


def test_a_larger_epsilon_is_another_question_as_long_as_nothing_can_be_certified(tmp_path: Path) -> None:
    question, store = VARIANTS.changed(epsilon=0.3), tmp_path / "r.db"
    with Session(question, "wnelim", store=store):
        pass
    with pytest.raises(sl.errors.ChangedRun, match="give the new run another name"):
        Session(question.changed(epsilon=0.4), "wnelim", store=store)
    sl.select(lambda _, count, rng: rng.binomial(1, 0.3, count), question, "wnelim", store=store)
    with pytest.raises(sl.errors.ChangedRun, match=r"0\.4 is certified already"):
        Session(question.changed(epsilon=0.4), "wnelim", store=store)


def test_other_strategies_refuse_a_smaller_epsilon(tmp_path: Path) -> None:
    question = VARIANTS.changed(epsilon=0.3)
    with Session(question, "wnelim", store=tmp_path / "r.db"):
        pass
    with pytest.raises(sl.errors.ChangedRun, match="epsilon was"):
        Session(question.changed(epsilon=0.2), "wnelim", store=tmp_path / "r.db")


def test_a_smaller_epsilon_in_the_middle_of_a_round_leaves_its_tickets() -> None:
    store = MemoryStore()
    question = VARIANTS.changed(epsilon=0.3)
    session = Session(question, "race", store=store)
    tickets = session.ask(worker="ann")
    session.tell(tickets[:2], means=[0.0, 0.0])
    finer = Session(question.changed(epsilon=0.1), "race", store=store)
    assert finer.asked.round == tickets.round
    assert (finer.asked.counts == tickets.counts).all()
    finer.tell(tickets[2:], means=[0.0, 0.0])
    assert finer.n_pulls == tickets.counts.sum()
    assert not finer.is_done


# --- an answer withdrawn ----------------------------------------------------------------------------


def test_an_answer_can_be_withdrawn_until_its_round_is_decided() -> None:
    session = Session(VARIANTS.changed(epsilon=0.2), "race", store=MemoryStore())
    tickets = session.ask(worker="ann")
    session.tell(tickets[:3], means=[0.0, 1.0, 0.0])
    n_pulls = session.n_pulls
    session.withdraw(0, tickets[1].arm, "read the wrong scale", by="ann")
    assert session.n_pulls == n_pulls - tickets[1].count
    assert session.history.round.n_missing == 2
    session.tell(tickets[1], means=0.0)
    (one,) = session.history.withdrawn
    assert (one.mean, one.why, one.by) == (1.0, "read the wrong scale", "ann")
    assert not session.conflicts
    session.tell(tickets[3], means=0.0)
    with pytest.raises(NotAsked, match="round 0 was decided"):
        session.withdraw(0, tickets[1].arm, "too late")
    assert session.certified.guarantee is None or "withdrawn" in session.certified.guarantee.assumption


def test_only_answers_that_are_there_can_be_withdrawn() -> None:
    session = Session(VARIANTS, "race")
    with pytest.raises(NotAsked, match="has no answer"):
        session.withdraw(0, 1, "why")
    with pytest.raises(NotAsked, match="did not ask"):
        session.withdraw(0, 9, "why")
    with pytest.raises(InvalidProblem, match="`why`"):
        session.withdraw(0, 1, "w" * 300)


def test_an_answer_in_parts_can_be_withdrawn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_SECONDS", 0.0)  # every call is a task of its own
    problem = sl.Problem(m=1, epsilon=0.2, delta=0.1, variances=[1.0] * 3)
    given: list[int] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        given.append(arm)
        if len(given) == 12:
            raise KeyboardInterrupt
        return rng.normal(arm, 1.0, count)

    session = Session(problem, "race", store=MemoryStore())
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, measure, turns=4)
    told = np.flatnonzero(session.history.round.is_told)
    assert len(told) == 2
    arm = int(session.asked.arms[told[0]])
    made = session.n_made
    session.withdraw(session.asked.round, arm, "a test")
    assert session.n_made == made - int(session.asked.counts[told[0]])
    assert sum(work.n_pulls for work in workload(session.history, session.records)) == session.n_made
    assert arm not in session.answered().arms
    result = sl.drive(session, lambda arm, count, rng: rng.normal(arm, 1.0, count), turns=4)
    assert result.selected == ("arm-2",)
    assert sum(work.n_pulls for work in workload(session.history, session.records)) == result.n_pulls


def test_a_withdrawn_answer_stays_withdrawn_in_exports_and_replays() -> None:
    session = Session(VARIANTS.changed(epsilon=0.2), "race", store=MemoryStore())
    tickets = session.ask(worker="ann")
    session.tell(tickets[:3], means=[1.0, 0.0, 0.0])
    session.withdraw(0, tickets[0].arm, "wrong")
    session.tell(tickets[0], means=0.0)
    rows = [row for row in answer_rows(session.log) if row["arm"] == tickets[0].arm]
    assert [row["mean"] for row in rows] == [0.0]
    again = Session.replay(session.problem, "race", session.events)
    assert not again.conflicts
    assert again.result.arms.means[tickets[0].arm] == 0.0


def test_a_withdrawn_answer_is_not_counted_as_work() -> None:
    session = Session(VARIANTS.changed(epsilon=0.2), "race", store=MemoryStore())
    tickets = session.ask(worker="ann")
    following = OpenRun(session.log.store, session.name, is_read_only=True)

    def work() -> dict[str, tuple[int, int]]:
        found = workload(session.history, session.records)
        following.refresh()
        assert following.activity.workers == found
        assert sum(one.n_pulls for one in found) == session.n_pulls
        return {one.worker: (one.n_answers, one.n_pulls) for one in found}

    each = tickets[0].count
    session.tell(tickets[:2], means=[0.0, 1.0], worker="ann")
    session.withdraw(0, tickets[1].arm, "read the wrong scale", by="bob")
    assert work() == {"ann": (1, each)}
    session.tell(tickets[1], means=0.5, worker="bob")
    assert work() == {"ann": (1, each), "bob": (1, each)}
    session.withdraw(0, tickets[1].arm, "again the wrong scale", by="ann")
    assert work() == {"ann": (1, each)}
    session.tell(tickets[1:], means=[0.0, 0.0, 0.0], worker="ann")
    assert work() == {"ann": (4, 4 * each)}


def test_a_log_that_takes_back_what_is_not_there_is_damaged() -> None:
    session = Session(VARIANTS, "race", store=MemoryStore())
    for event in (Withdrawn(0, 1, 0.5, "x"), Withdrawn(3, 1, 0.5, "x"), Narrowed(0.5), Narrowed(-1.0)):
        with pytest.raises((CorruptLog, NotAsked)):
            session.history.copy().take([event])
