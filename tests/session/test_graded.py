"""Graded rewards within bounds: sample variances travel with answers, and are used, kept and replayed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl

PROBLEM = sl.Problem(m=1, epsilon=0.05, delta=0.05, n=6, rewards=sl.Bounded())


def grade(arm: int, count: int, rng: np.random.Generator) -> Any:
    return 0.5 + 0.03 * arm + rng.uniform(-0.1, 0.1, count)


def means_only(arm: int, count: int, rng: np.random.Generator) -> sl.Summary:
    return sl.Summary(count, float(grade(arm, count, rng).mean()))


@pytest.mark.slow
@pytest.mark.parametrize("pulls_per_call", [None, 3, 1])
def test_the_variances_of_rewards_are_used_however_they_are_measured(pulls_per_call: int | None) -> None:
    told = sl.select(grade, PROBLEM, pulls_per_call=pulls_per_call)
    untold = sl.select(means_only, PROBLEM)
    assert told.selected == untold.selected == ("arm-5",)
    assert 3 * told.n_pulls < untold.n_pulls


def test_a_run_that_is_resumed_takes_the_same_course(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    whole = sl.select(grade, PROBLEM)
    for budget in (60, 150, 10**9):
        last = sl.select(grade, PROBLEM, store=store, name="r", budget=budget)
    assert last.n_pulls == whole.n_pulls
    assert last.certified_epsilon == whole.certified_epsilon
    assert sl.select(grade, PROBLEM, store=store, name="r").n_pulls == whole.n_pulls


def test_answers_with_and_without_variances_may_be_mixed() -> None:
    session, rng = sl.Session(PROBLEM), np.random.default_rng(1)
    tickets = session.ask()
    for number, ticket in enumerate(tickets):
        rewards = grade(ticket.arm, ticket.count, rng)
        if number % 2:
            session.tell(ticket, rewards)
        else:
            session.tell(ticket, means=float(rewards.mean()))
    assert session.asked.round == 1
    tickets = session.ask()
    rewards = [grade(ticket.arm, ticket.count, rng) for ticket in tickets]
    session.tell(tickets, rewards)
    assert session.asked.round == 2


def test_the_same_answer_again_is_no_conflict_and_another_variance_is() -> None:
    session = sl.Session(PROBLEM)
    ticket, other, *_ = session.ask()
    assert ticket.count >= 3
    rewards = np.full(ticket.count, 0.5)
    rewards[:2] = 0.4, 0.6
    session.tell(ticket, rewards)
    session.tell(ticket, rewards)
    session.tell(ticket, means=float(rewards.mean()))  # says less, but nothing else
    assert not session.history.conflicts
    with pytest.warns(sl.errors.Contradiction):
        session.tell(ticket, np.full(ticket.count, float(rewards.mean())))
    assert len(session.history.conflicts) == 1
    session.tell(other, means=0.5)
    session.tell(other, rewards[: other.count] if other.count < ticket.count else rewards)
    assert len(session.history.conflicts) == 1


def test_fed_variances_make_the_certificate_sharper_and_leave_with_their_rows() -> None:
    counts, means = [300] * 6, (0.5 + 0.03 * np.arange(6)).tolist()
    plain = sl.certify(PROBLEM, counts, means)
    sharp = sl.certify(PROBLEM, counts, means, sample_variances=[0.004] * 6)
    assert sharp.epsilon < plain.epsilon / 2
    session = sl.Session(PROBLEM)
    session.feed(list(range(6)), counts, means, [0.004] * 6, label="one")
    assert session.certified.epsilon == pytest.approx(sharp.epsilon)
    session.feed(list(range(6)), counts, means, [0.02] * 6, label="two")
    session.feed(list(range(6)), counts, means, [0.004] * 6, label="one")  # known
    assert session.history.n_fed == 3600
    session.feed(list(range(6)), [0] * 6, means, label="two")
    assert session.certified.epsilon == pytest.approx(sharp.epsilon, rel=1e-6)
    session.feed(list(range(6)), counts, means, label="one")  # the variances were wrong, and are unknown now
    assert session.certified.epsilon == pytest.approx(plain.epsilon, rel=1e-6)


def test_impossible_variances_are_refused() -> None:
    with pytest.raises(sl.ShortlistError):
        sl.certify(PROBLEM, [10] * 6, [0.5] * 6, sample_variances=[0.5] * 6)
