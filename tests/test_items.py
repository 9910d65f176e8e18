"""Problems with shared items: what is accepted, how they are told apart, written down and read again."""

import pickle
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.errors import InvalidProblem
from shortlist.items import Items, is_on_step
from shortlist.store import Began, Told
from shortlist.store.codec import decoded, encoded


def question(**changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 1, "epsilon": 0.1, "delta": 0.05, "n": 3, "items": 4}
    return sl.Problem(**({"rewards": sl.Bernoulli()} | given | changes))


def test_items_are_a_number_a_list_or_a_dictionary() -> None:
    numbered, listed = Items.of(3), Items.of(["x", {"text": "y"}, 2.5])
    named = Items.of({"first": "x", "second": "y", 3: "z"})
    assert (numbered.n, listed.n, named.n) == (3, 3, 3)
    assert [numbered.value(place) for place in range(3)] == [0, 1, 2]
    assert [listed.value(place) for place in range(3)] == ["x", {"text": "y"}, 2.5]
    assert [named.id(place) for place in range(3)] == ["first", "second", "3"]
    assert named.places == {"first": 0, "second": 1, "3": 2}
    assert Items.of(np.array([1.5, 2.5])).values == (1.5, 2.5)
    assert Items.of(named) is named
    assert len({one.digest for one in (numbered, listed, named, Items.of(["x", "y", "z"]))}) == 4
    assert Items.of({"a": 1, "b": 2}).digest == Items.of({"a": 1, "b": 2}).digest


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, "items"),
        (-1, "items"),
        (2.5, "must be the number of items"),
        ("abc", "must be the number of items"),
        ([], "empty"),
        ({}, "empty"),
        ([object()], "item number 0 cannot be written as JSON"),
        ([1.0, float("nan")], "item number 1 cannot be written as JSON"),
        ({1: "x", "1": "y"}, "same id"),
    ],
)
def test_items_that_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        question(items=given)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": sl.Gaussian()}, "must have bounds"),
        ({"rewards": sl.SubGaussian([1.0, 1.0, 1.0])}, "must have bounds"),
        ({"guarantee": "indifference"}, "must be 'pac'"),
        ({"target": "population", "epsilon": 0}, "not for a population"),
        ({"target": "elsewhere"}, "target"),
        ({"epsilon": -0.1}, "epsilon"),
        ({"items": None, "known": {0: [1, 0, 1, 0]}}, "are about `items`"),
        ({"items": None, "target": "population"}, "are about `items`"),
        ({"items": None, "epsilon": 0}, "epsilon"),
        ({"known": [1, 0]}, "dictionary from arms"),
        ({"known": {0: [1, 0, 1]}}, "Only complete rows help"),
        ({"known": {3: [1, 0, 1, 0]}}, "not an arm"),
        ({"known": {"nobody": [1, 0, 1, 0]}}, "not an arm"),
        ({"known": {0: [1, 0, 1, 0], "arm-0": [1, 0, 1, 0]}}, "two rows for one arm"),
        ({"known": {0: [1, 0, 0.5, 0]}}, "0.5 of arm-0, which is not possible"),
        ({"known": {1: [1, 0, 2, 0]}}, "2 of arm-1, which is not possible"),
        ({"known": {1: [1, 0, float("nan"), 0]}}, "known"),
    ],
)
def test_questions_that_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        question(**changes)


@pytest.mark.parametrize("step", [0, -1, 6, float("nan")])
def test_steps_that_are_refused(step: float) -> None:
    with pytest.raises(InvalidProblem, match="step"):
        sl.Bounded(0, 5, step)


def test_scores_are_multiples_of_the_step_above_the_lower_bound() -> None:
    scores = np.array([-1.0, -0.5, 0.0, -0.75, 0.3000000001 - 0.3])
    assert is_on_step(scores, -1.0, 0.5).tolist() == [True, True, True, False, True]
    assert is_on_step(scores, -1.0, None).all()
    with pytest.raises(InvalidProblem, match="not possible"):
        question(rewards=sl.Bounded(0, 5, 1), known={0: [1, 2, 2.5, 0]})
    assert question(rewards=sl.Bounded(0, 5, 1), known={0: [1, 2, 5, 0]}).known is not None


def test_epsilon_may_be_0_and_cells_exclude_known_rows() -> None:
    problem = question(epsilon=0, known={"arm-1": [1, 0, 1, 0]})
    assert problem.cells.tolist() == [4, 0, 4]
    assert problem.n_cells == 8
    assert problem.step == 1.0
    assert "on 4 items" in problem.words
    assert question(known={}).known is None


OTHERS: list[dict[str, Any]] = [
    {},
    {"items": 5},
    {"items": ["a", "b", "c", "d"]},
    {"items": {"a": 1, "b": 2, "c": 3, "d": 4}},
    {"items": {"a": 1, "b": 2, "d": 4, "c": 3}},
    {"items": {"a": 1, "b": 2, "c": 3, "d": 5}},
    {"target": "population"},
    {"rewards": sl.Bounded()},
    {"rewards": sl.Bounded(0, 1, 0.5)},
    {"rewards": sl.Bounded(0, 1, 0.25)},
    {"goal": "minimise"},
    {"known": {0: [1, 0, 1, 0]}},
    {"known": {1: [1, 0, 1, 0]}},
    {"known": {0: [1, 0, 0, 1]}},
    {"items": {"a": 1, "b": 2, "c": 3, "d": 4}, "known": {2: [1, 0, 0, 1]}, "epsilon": 0},
]


def test_different_questions_have_different_digests() -> None:
    assert len({question(**changes).digest for changes in OTHERS}) == len(OTHERS)


@pytest.mark.parametrize("changes", OTHERS)
def test_a_question_survives_pickling_changes_and_the_log(changes: dict[str, Any]) -> None:
    problem = question(**changes)
    for again in (pickle.loads(pickle.dumps(problem)), problem.changed()):
        assert again == problem
        assert again.digest == problem.digest
    began = Began(problem, "shared-items", 3, "auto", "abc", "0.1.0", True)
    read = decoded(*encoded(began))
    assert isinstance(read, Began)
    assert read.problem == problem
    assert read.problem.n_items == problem.n_items
    assert read.problem.target == problem.target
    assert read.problem.step == problem.step
    assert read.problem.items is not None
    assert problem.items is not None
    assert read.problem.items.ids == problem.items.ids
    if problem.known is not None:
        assert read.problem.known is not None
        assert read.problem.known.arms.tolist() == problem.known.arms.tolist()
        assert read.problem.known.scores.tolist() == problem.known.scores.tolist()


def test_scores_survive_the_log() -> None:
    told = Told(2, np.array([1, 4]), np.array([0.5, 1.0]), scores=np.array([0.0, 1.0, 1.0, 1.0, 1.0]))
    read = decoded(*encoded(told))
    assert isinstance(read, Told)
    assert read.scores is not None
    assert read.scores.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    without = decoded(*encoded(Told(2, np.array([1]), np.array([0.5]))))
    assert isinstance(without, Told)
    assert without.scores is None


def test_the_order_is_random_and_fixed_by_the_seed() -> None:
    problem = question(items=50)
    orders = [tuple(problem.order(seed).tolist()) for seed in range(20)]
    assert len(set(orders)) == 20
    assert all(sorted(order) == [*range(50)] for order in orders)
    firsts = [question().order(seed)[0] for seed in range(400)]
    assert np.bincount(firsts, minlength=4).min() > 70


def test_known_rows_are_taken_in_the_order_of_the_run() -> None:
    row = [1, 0, 0, 0]
    problem = question(known={1: row})
    for seed in range(4):
        order = problem.order(seed)
        ordered = problem.in_order(problem.entropy(seed))
        assert ordered.known is not None
        assert ordered.known.scores[0].tolist() == [row[place] for place in order]
