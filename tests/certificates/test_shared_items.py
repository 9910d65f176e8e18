"""Evidence from shared items: it is a supermartingale in the number of items, and monotone."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.shared_items import (
    BETS,
    PAIRED,
    Controls,
    Hypothesis,
    Thresholds,
    grown,
    is_refuted,
    pair_steps,
    single_steps,
)
from tests.oracles import shared_items as oracle


def question(**changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 2, "epsilon": 0.1, "delta": 0.05, "n": 7, "items": 40}
    return sl.Problem(**({"rewards": sl.Bernoulli()} | given | changes))


def evidence(steps: FloatArray) -> FloatArray:
    found: FloatArray = np.exp(grown(np.zeros((len(steps), len(BETS))), steps)[1])
    return found


def of_pair(incumbent: FloatArray, outsider: FloatArray, excess: float) -> FloatArray:
    hypothesis = Hypothesis(len(incumbent), excess, excess)
    return evidence(pair_steps(hypothesis, (incumbent - outsider)[None], np.zeros(1), 0)).ravel()


def of_one(scores: FloatArray, total: float, predictions: FloatArray | None = None) -> FloatArray:
    """Single evidence; one prediction per item."""
    controls = Controls.none((1, len(scores)))
    if predictions is not None:
        controls = Controls.of(predictions[None], len(scores))
    return evidence(single_steps(len(scores), total, scores[None], np.zeros(1), 0, controls)).ravel()


def test_bets_are_those_of_the_oracle() -> None:
    assert tuple(BETS) == oracle.BETS


@pytest.mark.parametrize("seed", range(6))
def test_evidence_is_that_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_items = int(rng.integers(1, 30))
    a, b = rng.random((2, n_items)) if seed % 2 else rng.integers(0, 2, (2, n_items)).astype(float)
    excess = float(rng.random() * n_items / 3)
    assert of_pair(a, b, excess) == pytest.approx(oracle.paired(a, b, n_items, excess), rel=1e-9)
    guesses = rng.random(n_items)
    total = float(b.sum() + rng.normal())
    of_place = [guesses[place:] for place in range(n_items)]
    expected = oracle.single(b, n_items, total, of_place)
    assert of_one(b, total, guesses) == pytest.approx(expected, rel=1e-9)
    alone = oracle.single(b, n_items, total, [np.zeros(n_items - place) for place in range(n_items)])
    assert of_one(b, total) == pytest.approx(alone, rel=1e-9)


def test_evidence_in_parts_is_evidence_at_once() -> None:
    rng = np.random.default_rng(3)
    differences, hypothesis = rng.uniform(-1, 1, (4, 30)), Hypothesis(40, 2.0, 2.0)
    logs, trace = grown(np.zeros((4, len(BETS))), pair_steps(hypothesis, differences, np.zeros(4), 0))
    first, early = grown(
        np.zeros((4, len(BETS))), pair_steps(hypothesis, differences[:, :11], np.zeros(4), 0)
    )
    sums = differences[:, :11].sum(axis=1)
    last, late = grown(first, pair_steps(hypothesis, differences[:, 11:], sums, 11))
    assert np.concatenate([early, late], axis=1) == pytest.approx(trace, rel=1e-9)
    assert last == pytest.approx(logs, rel=1e-9)


TABLES = [
    np.array([[0, 1, 0, 1, 0, 0], [1, 1, 0, 1, 1, 0]], dtype=float),
    np.array([[0, 0, 1, 0, 0, 1], [1, 1, 0, 1, 1, 0]], dtype=float),  # each succeeds where the other fails
    np.array([[0.2, 0.9, 0.4, 0.4, 0.0, 0.1], [0.3, 0.7, 0.9, 0.5, 0.2, 0.4]]),
    np.array([[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], dtype=float),
    np.array([[0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5, 0.5, 0.6]]),
]


@pytest.mark.parametrize("table", TABLES)
def test_over_all_orders_false_evidence_has_mean_1(table: FloatArray) -> None:
    """Exactly, by enumeration; and it ever reaches a threshold with the probability 1/threshold at most."""
    a, b = table
    guesses = 0.3 + 0.5 * a + 0.1 * np.sin(np.arange(6))  # one per item, from the other arm and the item
    orders = np.array([*itertools.permutations(range(6))])
    pairs = np.array([of_pair(a[order], b[order], float(b.sum() - a.sum())) for order in orders])
    singles = np.array([of_one(b[order], float(b.sum()), guesses[order]) for order in orders])
    for found in (pairs, singles):
        assert found.mean(axis=0) == pytest.approx(np.ones(6), abs=1e-9)
    for found in (pairs, singles, PAIRED * pairs + (1 - PAIRED) * singles):
        for threshold in (1.2, 2.0, 5.0, 20.0):
            assert (found.max(axis=1) >= threshold).mean() <= 1 / threshold


def test_given_any_prefix_the_next_evidence_has_the_same_mean() -> None:
    """Not only on the whole: so whoever stops anywhere has no advantage."""
    a, b = TABLES[2]
    guesses = 0.5 * a + 0.2
    for known in ((), (3,), (1, 4), (5, 0, 2)):
        orders = [(*known, *rest) for rest in itertools.permutations(set(range(6)) - set(known))]
        k = len(known)
        ways = [np.array(order) for order in orders]
        pairs = [of_pair(a[order], b[order], float(b.sum() - a.sum())) for order in ways]
        singles = [of_one(b[order], float(b.sum()), guesses[order]) for order in ways]
        for found in (np.array(pairs), np.array(singles)):
            before = found[0, k - 1] if k else 1.0
            assert found[:, k:].mean(axis=0) == pytest.approx(np.full(6 - k, before), abs=1e-9)


def test_a_prediction_that_knows_the_next_item_is_not_fair() -> None:
    """What the test above would not forgive: predictions that change with the item to come."""
    b = TABLES[2][1]
    found = []
    for order in itertools.permutations(range(6)):
        scores = b[list(order)]
        leaks = [np.where(np.arange(place, 6) == place, 1.0, 0.0) for place in range(6)]
        found.append(oracle.single(scores, 6, float(b.sum()), leaks))
    assert np.mean(found, axis=0)[-1] > 1.5


@pytest.mark.parametrize("seed", range(4))
def test_evidence_rises_with_what_it_speaks_against(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, guesses = rng.random(20), rng.random(20)
    a = rng.random(20)
    true = float(b.sum() - a.sum())
    rows = [of_pair(a, b, true + more) for more in (-2.0, -1.0, -0.1, 0.0)]
    assert all((low <= high + 1e-12).all() for low, high in itertools.pairwise(rows))
    rows = [of_one(b, float(b.sum()) + more, guesses) for more in (-2.0, -1.0, -0.1, 0.0)]
    assert all((low <= high + 1e-12).all() for low, high in itertools.pairwise(rows))


def test_controls_are_those_of_a_plain_loop() -> None:
    predictions = np.random.default_rng(1).random((3, 17))
    found = Controls.of(predictions, 9)
    for row, place in itertools.product(range(3), range(9)):
        left = predictions[row, place:].tolist()
        mean = sum(left) / len(left)
        assert found.shortfall[row, place] == pytest.approx(mean - left[0])
        assert found.reach[row, place] == pytest.approx(mean - min(left))
    assert found.shortfall.shape == found.reach.shape == (3, 9)


def test_good_predictions_make_single_evidence_stronger() -> None:
    rng = np.random.default_rng(2)
    easy = rng.random(400)
    scores = np.clip(easy + rng.normal(0, 0.05, 400), 0, 1)
    total = float(scores.sum()) + 20
    assert of_one(scores, total, easy)[100] > 10 * of_one(scores, total)[100]


def test_a_hypothesis_is_refuted_if_the_items_left_cannot_make_it_true() -> None:
    hypothesis = Hypothesis(10, 1.0, 2.0)
    assert is_refuted(hypothesis, np.array([2.9, 3.0, 4.0]), 6).tolist() == [False, True, True]
    assert not is_refuted(hypothesis, np.array([-1.1]), 10).any()  # behind by more than is allowed
    assert is_refuted(hypothesis, np.array([-1.0]), 10).all()


def test_with_all_items_a_pair_is_refuted_exactly_if_it_is_good() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        a, b = rng.integers(0, 2, (2, 12)).astype(float)
        hypothesis = Hypothesis.of(question(items=12, epsilon=0.15))
        is_good = b.mean() - a.mean() <= 0.15
        assert is_refuted(hypothesis, np.array([(a - b).sum()]), 12).tolist() == [is_good]


@pytest.mark.parametrize(
    ("epsilon", "items", "step", "allowed", "excess"),
    [
        (0.0, 10, 1.0, 0.0, 1.0),
        (0.1, 10, 1.0, 1.0, 2.0),
        (0.3, 10, 1.0, 3.0, 4.0),
        (0.29, 100, 1.0, 29.0, 30.0),  # as floating-point numbers the product is less than 29
        (0.15, 10, 1.0, 1.5, 2.0),
        (0.1, 10, 0.25, 1.0, 1.25),
        (0.1, 10, None, 1.0, 1.0),
        (0.0, 10, None, 0.0, 0.0),
        (0.7, 1000, 0.1, 700.0, 700.1),
    ],
)
def test_what_exceeds_epsilon_is_the_next_multiple_of_the_step(
    epsilon: float, items: int, step: float | None, allowed: float, excess: float
) -> None:
    found = Hypothesis.of(question(epsilon=epsilon, items=items, rewards=sl.Bounded(0, 1, step)))
    assert found.n_items == items
    assert found.allowed == pytest.approx(allowed)
    assert found.excess == pytest.approx(excess)


def test_the_unit_of_scores_does_not_matter() -> None:
    small = Hypothesis.of(question(epsilon=0.1, rewards=sl.Bounded(0, 1, 0.25)))
    large = Hypothesis.of(question(epsilon=2.0, rewards=sl.Bounded(-10, 10, 5.0)))
    assert (small.allowed, small.excess) == pytest.approx((large.allowed, large.excess))
    assert Hypothesis.of(question(epsilon=0.1), 0.3).allowed == pytest.approx(12)


def test_all_false_evidence_together_is_worth_delta() -> None:
    """For each of the m best: half of its evidence is single, half is shared by pairs with n - m others."""
    problem = question()
    found = Thresholds.of(problem)
    n_pairs = problem.m * (problem.n - problem.m)
    assert found.paired == pytest.approx(math.log(n_pairs / (PAIRED * problem.delta)))
    assert found.single == pytest.approx(math.log(problem.m / ((1 - PAIRED) * problem.delta)))
    spent = n_pairs * math.exp(-found.paired) + problem.m * math.exp(-found.single)
    assert spent == pytest.approx(problem.delta)
    population = Thresholds.of(question(target="population"))
    assert population.paired == pytest.approx(math.log(n_pairs / problem.delta))
    assert math.isinf(population.single)


def test_for_a_population_the_next_difference_has_the_same_mean_whatever_came_before() -> None:
    problem = question(target="population", epsilon=0.2)
    hypothesis = Hypothesis.of(problem)
    steps = pair_steps(hypothesis, np.array([[0.5, -1.0, 1.0]]), np.array([17.0]), 30)
    assert steps[0] == pytest.approx([1.5 / 0.8 - 1, -1.0, 2 / 0.8 - 1])
    assert not is_refuted(hypothesis, np.array([100.0]), 200).any()
    impossible = Hypothesis.of(problem, 1.0)
    assert is_refuted(impossible, np.zeros(1), 1).all()
    assert (pair_steps(impossible, np.ones((1, 3)), np.zeros(1), 0) == 0).all()
