"""Arms with bounds of their own: checked for every kind of input, stored, sent, simulated and certified."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.client.questions import question_dict, question_from
from shortlist.errors import ChangedRun, FinalFailure, InvalidAnswers, InvalidProblem, MeasurementFailed
from shortlist.files.problem_file import question_of, read_problem
from shortlist.server.app import create_app
from shortlist.session import Session
from shortlist.session.feeding import rows_of_sheet
from shortlist.store import MemoryStore
from shortlist.store.codec import decoded, encoded
from shortlist.store.events import Began
from shortlist.totals import certify
from tests.server.calling import Caller

OWN = sl.Bounded([0, 0, 2], [1, 5, 3])
PROBLEM = sl.Problem(m=1, epsilon=0.5, delta=0.05, names=["A", "B", "C"], rewards=OWN)


def test_evidence_uses_the_smallest_and_the_largest_bound() -> None:
    wide = PROBLEM.changed(rewards=sl.Bounded(0, 5))
    assert (PROBLEM.bounds, PROBLEM.own_bounds) == ((0.0, 5.0), [(0, 1), (0, 5), (2, 3)])
    assert PROBLEM.variances.tolist() == [0.25, 6.25, 0.25]
    assert wide.own_bounds is None
    counts, means, spreads = [90, 90, 90], [0.5, 2.0, 2.9], [0.1, 4.0, 0.05]
    assert certify(PROBLEM, counts, means, spreads).epsilon == certify(wide, counts, means, spreads).epsilon
    assert "lie within the bounds of their arms" in str(certify(PROBLEM, counts, means, spreads))


def test_bounds_are_part_of_the_question() -> None:
    assert PROBLEM.changed(rewards=sl.Bounded(0, 5)) != PROBLEM
    assert PROBLEM.changed(rewards=sl.Bounded([0, 0, 3], [1, 5, 4])) != PROBLEM
    assert sl.Problem(m=1, epsilon=0.5, delta=0.05, names=["A", "B", "C"], rewards=OWN) == PROBLEM
    assert pickle.loads(pickle.dumps(PROBLEM)) == PROBLEM
    assert sl.Bounded(0, [1, 5]).own == ((0, 1), (0, 5))
    assert repr(OWN) == "Bounded(low=[0.0, 0.0, 2.0], high=[1.0, 5.0, 3.0])"
    assert sl.Bounded(0, [1, 5]) == sl.Bounded([0, 0], [1, 5]) != sl.Bounded(0, 5)
    assert sl.Bernoulli() == sl.Bernoulli()
    assert PROBLEM.to_dict()["has_own_bounds"] is True
    assert PROBLEM.changed(epsilon=0.2).own_bounds == PROBLEM.own_bounds


@pytest.mark.parametrize(
    ("low", "high", "n"),
    [([0, 0], [1, 1, 1], 3), ([0, 1], [1, 1], 2), ([0, np.nan], [1, 1], 2), ([[0]], [1], 1), ([0], [1], 2)],
)
def test_bounds_that_do_not_fit_are_refused(low: Any, high: Any, n: int) -> None:
    with pytest.raises(InvalidProblem):
        sl.Problem(m=1, epsilon=0.5, delta=0.05, n=n, rewards=sl.Bounded(low, high))


def test_steps_begin_at_the_bound_of_the_arm_and_items_share_bounds() -> None:
    session = Session(PROBLEM.changed(rewards=sl.Bounded([0, 0.5, 2], [1, 4.5, 3], step=1)), "race")
    session.feed(["B"], [1], [1.5])
    with pytest.raises(FinalFailure, match="in steps of 1"):
        session.feed(["A"], [1], [0.5])
    with pytest.raises(InvalidProblem, match="at most 1, as"):
        sl.Bounded([0, 0], [1, 5], step=2)
    with pytest.raises(InvalidProblem, match="the same bounds"):
        sl.Problem(m=1, epsilon=0.5, delta=0.05, n=3, rewards=OWN, items=9)


def constant(arm: int, count: int, rng: np.random.Generator) -> Any:
    return np.full(count, 2.0)


def test_every_door_checks_the_bounds_of_the_arm() -> None:
    """Rewards of 2 are possible for B only."""
    with pytest.raises(MeasurementFailed, match=r"the reward 2 of A is refused.*between 0 and 1"):
        sl.select(constant, PROBLEM, "race")
    session = Session(PROBLEM, "race")
    tickets = session.ask()
    with pytest.raises(MeasurementFailed, match=r"of C is refused.*between 2 and 3"):
        session.tell(tickets[2], means=1.9)
    session.tell(tickets[1], means=1.9)
    with pytest.raises(FinalFailure, match="of A is refused"):
        session.feed(["B", "A"], [9, 9], [2.0, 2.0], label="x")
    with pytest.raises(FinalFailure, match="sample variance 1 of A is too large"):
        session.feed(["B", "A"], [9, 9], [0.5, 0.5], [1.0, 1.0], label="x")
    with pytest.raises(InvalidAnswers, match="of C is refused"):
        rows_of_sheet(session, b"arm,pulls,mean\nB,9,2.5\nC,9,1.5\n", "x", "")
    with pytest.raises(FinalFailure, match="of A is refused"):
        certify(PROBLEM, [9, 9, 9], [2.0, 2.0, 2.5])
    with pytest.raises(InvalidProblem, match=r"`on_failure` is 0.5.*within the bounds of each arm"):
        sl.drive(Session(PROBLEM, "race"), constant, on_failure=0.5)
    overlapping = PROBLEM.changed(rewards=sl.Bounded([0, 0, 0.5], [1, 5, 3]))
    result = sl.drive(Session(overlapping, "race"), constant, on_failure=0.5, budget=0)
    assert result.n_pulls == 0


def test_the_bounds_of_each_arm_are_stored_and_sent() -> None:
    began = Began(PROBLEM, "race", 3, "auto", "abc", "0.1.0", True)
    read = decoded(*encoded(began))
    assert isinstance(read, Began)
    assert read.problem == PROBLEM
    data = question_dict(PROBLEM)
    assert data["bounds"] == [(0, 1), (0, 5), (2, 3)]
    assert question_of(data) == PROBLEM
    with Caller(create_app(MemoryStore())) as client:
        asked = data | {"bounds": [list(pair) for pair in data["bounds"]]}
        made = client.post("/runs", json={"name": "x", "question": asked, "strategy": "race"})
        assert made.status_code < 300
        assert question_from(client.get("/runs/x/question.json").json()) == PROBLEM
        rows = [{"arm": "C", "pulls": 9, "mean": 1.5}]
        refused = client.post("/runs/x/feed", json={"rows": rows, "label": "a"})
        assert "between 2 and 3" in refused.json()["error"]["message"]


def test_problem_files_have_columns_or_a_list_of_bounds(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("name,low,high\nA,0,1\nB,0,5\nC,2,3\n")
    head = '[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.05\nnoise = "bounded"\n'
    file = tmp_path / "x.toml"
    file.write_text(f'{head}arms = "arms.csv"\n')
    assert read_problem(file) == PROBLEM
    file.write_text(f'{head}names = ["A", "B", "C"]\nbounds = [[0, 1], [0, 5], [2, 3]]\n')
    assert read_problem(file) == PROBLEM
    for wrong in ('arms = "arms.csv"\nbounds = [0, 1]\n', "n = 2\nbounds = [[0, 1], [0, 5], [2, 3]]\n"):
        file.write_text(head + wrong)
        with pytest.raises(InvalidProblem):
            read_problem(file)
    (tmp_path / "arms.csv").write_text("name,low\nA,0\nB,0\n")
    file.write_text(f'{head}arms = "arms.csv"\n')
    with pytest.raises(InvalidProblem, match="the columns `low` and `high`"):
        read_problem(file)


def test_a_run_keeps_its_bounds(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    Session(PROBLEM, "race", store=store, name="x")
    changed = PROBLEM.changed(rewards=sl.Bounded([0, 0, 2], [1, 5, 4]))
    with pytest.raises(ChangedRun, match=r"bounds of C was \(2.0, 3.0\), is \(2.0, 4.0\)"):
        Session(changed, "race", store=store, name="x")
    assert Session.resume(store, "x").problem == PROBLEM


@pytest.mark.slow
def test_simulated_coins_show_the_bounds_of_their_arm() -> None:
    means = [0.5, 2.0, 2.9]
    for strategy in ("race", "level-race", "block-race"):
        result = sl.select(sl.simulated_measure(PROBLEM, means), PROBLEM, strategy, seed=2)
        assert result.selected == ("C",)
    found = sl.simulate(PROBLEM, means, "race", replications=20)
    assert found.errors == 0
    assert sl.plan(PROBLEM).usual.pulls["race"].median > 0
    with pytest.raises(InvalidProblem, match="2 and 3 for C"):
        sl.simulate(PROBLEM, [0.5, 2.0, 1.9], "race")


def test_arms_of_narrow_bounds_need_fewer_pulls_where_variances_are_taken_from_them() -> None:
    wide = PROBLEM.changed(rewards=sl.Bounded(0, 5))
    own, all_alike = (sl.plan(one) for one in (PROBLEM, wide))

    def most(plan: Any, name: str) -> int:
        return int(next(row for row in plan.rows if row.strategy == name).worst_case_pulls)

    assert most(own, "wnelim") < 0.7 * most(all_alike, "wnelim")
    assert most(own, "race") <= most(all_alike, "race")
