"""Items, blocks and draws come in an order that follows from the question as first asked, and the seed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.errors import CorruptLog, InvalidProblem
from shortlist.session.state import RunState
from shortlist.store import Began
from shortlist.store.codec import decoded, encoded

NAMES = ["ann", "bob", "cat", "dan", "eve", "flo"]
MIXED = [4, 0, 5, 2, 1, 3]
TABLE = np.random.default_rng(3).random((6, 200))
KINDS: dict[str, dict[str, Any]] = {
    "items": {"rewards": sl.Bounded(), "items": 200},
    "blocks": {"rewards": sl.Gaussian(), "items": sl.Blocks()},
    "bounded blocks": {"rewards": sl.Bounded(), "items": sl.Blocks()},
    "known variances": {"variances": [1.0, 2.0, 0.5, 1.0, 3.0, 1.0]},
    "unknown variances": {"rewards": sl.Gaussian()},
    "costs": {"variances": [1.0] * 6, "costs": [1.0, 2.0, 3.0, 1.0, 2.0, 1.0]},
}


def question(**changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 1, "epsilon": 0.1, "delta": 0.05, "names": NAMES}
    return sl.Problem(**(given | {"rewards": sl.Bounded(), "items": 200} | changes))


@pytest.mark.parametrize(
    "change",
    [
        {"m": 2},
        {"epsilon": 0.09},
        {"delta": 0.06},
        {"names": [*NAMES[:5], "fla"]},
        {"names": NAMES[:5]},
        {"rewards": sl.Bounded(0, 2)},
        {"rewards": sl.Bernoulli()},
        {"rewards": sl.Bounded(step=0.5)},
        {"items": 201},
        {"items": list(range(200))},
        {"items": {f"q{place}": None for place in range(200)}},
        {"target": "population"},
        {"known": {"ann": [0.5] * 200}},
        {"costs": [1.0, 1, 1, 1, 1, 2]},
    ],
)
def test_another_question_has_another_order(change: dict[str, Any]) -> None:
    assert question().entropy(0) != question(**change).entropy(0)
    assert not np.array_equal(question().order(), question(**change).order()[:200])


def test_the_same_question_has_the_same_order_and_each_seed_another_one() -> None:
    assert question().order(3).tolist() == question().order(3).tolist()
    assert len({tuple(question().order(seed).tolist()) for seed in range(20)}) == 20


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7", None])
def test_a_seed_that_no_run_takes_has_no_order(seed: Any) -> None:
    with pytest.raises(InvalidProblem, match="seed"):
        question().order(seed)


def test_what_has_no_fixed_items_has_no_order() -> None:
    for none in (question(items=sl.Blocks()), sl.Problem(1, 0.1, 0.1, variances=[1.0, 1.0])):
        with pytest.raises(InvalidProblem, match="has an order"):
            none.order()


@pytest.mark.parametrize("kind", KINDS)
def test_arms_in_another_order_are_the_same_question_with_the_same_answer(kind: str) -> None:
    def result(names: list[str], problem: sl.Problem) -> tuple[Any, ...]:
        def on_items(arm: int, items: list[int]) -> FloatArray:
            row = TABLE[NAMES.index(names[arm])]
            found: FloatArray = np.minimum(1.0, row[np.array(items) % 200] + 0.3 * (names[arm] == "dan"))
            return found

        def drawn(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
            return rng.normal(float(names[arm] == "dan"), 1.0, count)

        found = sl.select(drawn if problem.items is None else on_items, problem, seed=4)
        rows = zip(names, found.arms.pulls.tolist(), found.arms.means.tolist(), strict=True)
        return found.selected, found.n_pulls, sorted(rows)

    given: dict[str, Any] = {"m": 1, "epsilon": 0.2, "delta": 0.05, **KINDS[kind]}
    mixed = given | {
        name: [given[name][arm] for arm in MIXED] for name in ("variances", "costs") if name in given
    }
    names = [NAMES[arm] for arm in MIXED]
    assert result(NAMES, sl.Problem(**given, names=NAMES)) == result(names, sl.Problem(**mixed, names=names))


def test_known_rows_and_own_bounds_follow_their_arms() -> None:
    rows = {"bob": TABLE[1], "eve": TABLE[4]}
    names = [NAMES[arm] for arm in MIXED]
    assert question(known=rows).entropy(1) == question(known=rows, names=names).entropy(1)
    assert question(known=rows).entropy(1) != question(known={"bob": TABLE[4], "eve": TABLE[1]}).entropy(1)
    high = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    one = sl.Problem(1, 0.1, 0.1, names=NAMES, rewards=sl.Bounded(0, high))
    other = sl.Problem(1, 0.1, 0.1, names=names, rewards=sl.Bounded(0, [high[arm] for arm in MIXED]))
    assert one.entropy(0) == other.entropy(0) != one.changed(names=names).entropy(0)


def test_a_smaller_epsilon_keeps_the_order_of_the_run(tmp_path: Path) -> None:
    def measure(arm: int, items: list[int]) -> FloatArray:
        return TABLE[arm, items]

    first = question(epsilon=0.2)
    sl.select(measure, first, store=tmp_path / "runs.db")
    seen: list[tuple[int, int]] = []

    def noted(arm: int, items: list[int]) -> FloatArray:
        seen.extend((arm, item) for item in items)
        return TABLE[arm, items]

    found = sl.select(noted, first.changed(epsilon=0.05), store=tmp_path / "runs.db")
    order = first.order().tolist()
    for arm in range(6):
        own = [item for one, item in seen if one == arm]
        last = int(found.arms.pulls[arm])
        assert sorted(own) == sorted(order[last - len(own) : last])
    session = sl.Session.resume(tmp_path / "runs.db")
    assert session.entropy == first.entropy(0) != session.problem.entropy(0)


def test_runs_on_items_and_blocks_of_earlier_versions_are_refused() -> None:
    for problem in (question(), question(items=sl.Blocks())):
        began = Began(problem, "shared-items", 0, "auto", "abc", "0.2.0")
        with pytest.raises(CorruptLog, match="did not depend on the question; start a new run"):
            RunState(began)
    stream = Began(sl.Problem(1, 0.5, 0.1, variances=[1.0, 1.0]), "race", 7, "race", "abc", "0.2.0")
    assert RunState(stream).entropy == 7


def test_the_log_keeps_what_random_numbers_derive_from() -> None:
    session = sl.Session(question(), seed=2**70)
    began = session.records[0].event
    assert isinstance(began, Began)
    assert began.entropy == session.entropy == question().entropy(2**70)
    again = decoded(*encoded(began))
    assert isinstance(again, Began)
    assert again.entropy == began.entropy
