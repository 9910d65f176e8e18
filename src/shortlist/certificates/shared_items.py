"""Evidence from shared items: when an arm is certainly not better than another by more than epsilon.

Every arm takes the same N items in one random order, so it has seen a *prefix* of that order. Scores are
shares of their bounds, from 0 to 1. There are two kinds of evidence that outsider b is better than incumbent
a by more than epsilon, each a product of bets on one item after the other, averaged over the sizes of bets
(betting on means when sampling without replacement: [WR20], [WR24]):

- *Paired* evidence bets on differences of the scores of a and b on the same item (`pair_steps`).
- *Single* evidence needs the mean of a over all items, and bets on the scores of b alone. Predictions of them
  from arms that were measured on all items make it stronger (`single_steps`).

If b is one of the m best arms, and better than a by more than epsilon, both are supermartingales in the
number of items, whichever cells are measured, when, and by whom (docs/theory.md, section 39).
"""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.problem import Problem

BETS = np.array([0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99])
"""The sizes of bets: the share of evidence that is at stake with every item."""
PAIRED = 0.5
"""The weight of paired evidence; single evidence has the rest."""
TINY = 1e-9  # tolerance for sums of scores, which are rounded
_STEP = 1e-9  # the same for multiples of a step, relative


@dataclass(frozen=True)
class Hypothesis:
    """That an outsider is better than an incumbent by more than epsilon, over all items.

    Attributes
    ----------
    n_items
        The number of items; infinite for the population that they were drawn from.
    allowed
        By how much the sum of an outsider's scores may exceed that of an incumbent.
    excess
        By how much it does at least if that is exceeded: more, where scores are multiples of a step.
    """

    n_items: float
    allowed: float
    excess: float

    @classmethod
    def of(cls, problem: Problem, epsilon: float | None = None) -> "Hypothesis":
        """Return the hypothesis for a problem with items; its epsilon may be replaced."""
        share = (problem.epsilon if epsilon is None else epsilon) / problem.width
        if problem.target == "population":
            return cls(math.inf, share, share)  # per item
        n_items = problem.n_items
        allowed = n_items * share
        if problem.step is None:
            return cls(n_items, allowed, allowed)
        step = problem.step / problem.width
        return cls(n_items, allowed, step * (math.floor(allowed / step * (1 + _STEP) + _STEP) + 1))


@dataclass(frozen=True)
class Thresholds:
    """What the logarithms of evidence must reach.

    Attributes
    ----------
    paired, single
        For each kind of evidence alone. Together they suffice if the sum of the two, each divided by what it
        must reach, is 1.
    """

    paired: float
    single: float

    @classmethod
    def of(cls, problem: Problem) -> "Thresholds":
        """Return the thresholds for a problem with items."""
        each, n_pairs = math.log(problem.m / problem.delta), math.log(problem.n - problem.m)
        if problem.target == "population":
            return cls(each + n_pairs, math.inf)
        return cls(each + n_pairs - math.log(PAIRED), each - math.log(1 - PAIRED))


def pair_steps(
    hypothesis: Hypothesis, differences: FloatArray, before: FloatArray, n_before: int
) -> FloatArray:
    """Return for each item by how much one unit at stake grows if it is bet on the incumbent.

    Parameters
    ----------
    hypothesis
        What is to be refuted.
    differences
        The score of the incumbent less that of the outsider; rows are pairs, columns successive items.
    before, n_before
        For each pair, the sum of the differences on earlier items; and their number.
    """
    if math.isinf(hypothesis.n_items):
        return _steps(1 + differences, np.array(1 - hypothesis.excess))
    left = hypothesis.n_items - n_before - np.arange(differences.shape[1])
    sums = before[:, None] + np.cumsum(differences, axis=1) - differences
    expected = (left - hypothesis.excess - sums) / left  # of 1 + difference, at most
    return _steps(1 + differences, expected)


def single_steps(
    n_items: int, total: float, scores: FloatArray, before: FloatArray, n_before: int, controls: "Controls"
) -> FloatArray:
    """Return for each item by how much one unit at stake grows if it is bet against the outsider.

    Parameters
    ----------
    n_items, total
        The number of items, and what the sum of the outsider's scores over all of them is at least, if the
        hypothesis is true.
    scores
        Of the outsider; rows are outsiders, columns successive items.
    before, n_before
        For each outsider, the sum of its scores on earlier items; and their number.
    controls
        Predictions of these scores.
    """
    left = n_items - n_before - np.arange(scores.shape[1])
    sums = before[:, None] + np.cumsum(scores, axis=1) - scores
    expected = 1 - (total - sums) / left + controls.reach
    return _steps(1 - scores + controls.reach - controls.shortfall, expected)


def _steps(gains: FloatArray, expected: FloatArray) -> FloatArray:
    """Return gains as multiples of what is expected, less 1; nothing is bet where nothing is expected."""
    is_fair = expected > TINY
    return np.where(is_fair, gains / np.where(is_fair, expected, 1.0) - 1, 0.0)


@dataclass(frozen=True, eq=False)
class Controls:
    """Predictions of scores, compared with their mean over all items that are left at the time.

    Attributes
    ----------
    shortfall
        That mean less the prediction for the next item.
    reach
        The largest shortfall that is possible, over all items that are left.
    """

    shortfall: FloatArray
    reach: FloatArray

    @classmethod
    def of(cls, predictions: FloatArray, n_next: int) -> "Controls":
        """Return the controls of the next items, given predictions for all items left, in order."""
        left = predictions.shape[1] - np.arange(n_next)
        from_end = predictions[:, ::-1]
        means = np.cumsum(from_end, axis=1)[:, ::-1][:, :n_next] / left
        least = np.minimum.accumulate(from_end, axis=1)[:, ::-1][:, :n_next]
        return cls(means - predictions[:, :n_next], np.maximum(means - least, 0.0))

    @classmethod
    def none(cls, shape: tuple[int, int]) -> "Controls":
        """Return the controls without predictions."""
        return cls(np.zeros(shape), np.zeros(shape))


def grown(logs: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of products after the last step, for each bet, and of their mean at each step.

    Rows of `logs` are pairs or outsiders, columns bets; rows of `steps` the same, columns items.
    """
    traces = logs[:, :, None] + np.cumsum(
        np.log1p(BETS[:, None] * np.maximum(steps, -1.0)[:, None, :]), axis=2
    )
    return traces[:, :, -1], log_mean(traces)


def log_mean(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of exponentials over bets, the second axis."""
    top = logs.max(axis=1)
    found: FloatArray = top + np.log(np.exp(logs - top[:, None]).mean(axis=1))
    return found


def is_refuted(hypothesis: Hypothesis, sums: FloatArray, n_seen: int) -> BoolArray:
    """Return for which pairs the hypothesis is impossible, whatever the scores on the items left."""
    if math.isinf(hypothesis.n_items):
        return np.full(len(sums), hypothesis.excess >= 1)  # no difference of means is that large
    found: BoolArray = sums - (hypothesis.n_items - n_seen) >= -hypothesis.allowed - TINY
    return found
