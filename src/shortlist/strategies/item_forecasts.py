"""Forecasts for shared items: whether it pays to measure the incumbents on all items.

Forecasts affect the number of cells that are measured, never the correctness of the answer.
"""

import math

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.shared_items import Hypothesis, Thresholds
from shortlist.strategies.item_state import Open

LEAST = 16  # items that incumbents have seen before their full rows are considered
MARGIN = 0.9  # by which share of the cost of pairs full rows must be forecast to be cheaper
EXTRA = 1.5  # what mixtures of bets cost, in the logarithm of evidence
PRIOR = 0.5  # variances are raised by this, divided by the number of items
RIDGE = 3.0
SOON = 1.03  # an open arm takes at least this multiple of the items that it has seen


def joining_pays(state: Open, is_open: BoolArray, means: FloatArray) -> bool:
    """Return whether all incumbents should be measured on all items now.

    Never before as much was spent otherwise: so a wrong forecast costs at most as much again.
    """
    incumbents, seen, n_items = state.incumbents, state.seen, state.n_items
    costs = np.ones(state.problem.n) if state.problem.costs is None else state.problem.costs
    missing = n_items - seen[incumbents]
    if state.problem.target == "population" or not missing.any() or seen[incumbents].min() < LEAST:
        return False
    rows = float(costs[incumbents] @ missing)
    if costs @ np.minimum(seen, state.problem.cells) < rows:
        return False
    ends = _ends_of_pairs(state, is_open, means)
    pairs = costs @ _more(ends.max(axis=0), seen) + costs[incumbents] @ _more(
        ends.max(axis=1), seen[incumbents]
    )
    outsiders = np.flatnonzero(is_open.any(axis=0))
    alone = np.minimum(_ends_alone(state, outsiders, means), ends.max(axis=0)[outsiders])
    return bool(rows + costs[outsiders] @ _more(alone, seen[outsiders]) < MARGIN * pairs)


def forecast_ends(state: Open, is_open: BoolArray, means: FloatArray) -> FloatArray:
    """Return for each arm after how many items it is expected to be settled; 0 if it is already."""
    pairs = _ends_of_pairs(state, is_open, means)
    outsiders = np.flatnonzero(is_open.any(axis=0))
    ends: FloatArray = pairs.max(axis=0)
    ends[state.incumbents] = pairs.max(axis=1)
    has_single = math.isfinite(state.thresholds.single)
    if has_single and len(outsiders) and state.is_full[state.incumbents].all():
        ends[outsiders] = np.minimum(ends[outsiders], _ends_alone(state, outsiders, means))
    return ends


def fewest_items(thresholds: Thresholds, hypothesis: Hypothesis) -> float:
    """Return the number of items below which no pair can be settled, or hardly ever."""
    share = min(hypothesis.excess / min(hypothesis.n_items, 1e9), 0.5)
    return min(thresholds.paired, thresholds.single) / math.log(2 / (1 - share))


def _more(ends: FloatArray, seen: IntArray) -> FloatArray:
    return np.maximum(ends - seen, 0.0)


def _ends_of_pairs(state: Open, is_open: BoolArray, means: FloatArray) -> FloatArray:
    """Return the numbers of items after which open pairs are expected to be settled; 0 for others."""
    ends = np.zeros(is_open.shape)
    is_population = state.problem.target == "population"
    margin = state.hypothesis.excess / (1 if is_population else state.n_items)
    for place, arm in enumerate(state.incumbents.tolist()):
        others = np.flatnonzero(is_open[place])
        common = np.minimum(state.seen[arm], state.seen[others])
        for size in np.unique(common).tolist():
            group = others[common == size]
            variances = (state.scores[arm, :size] - state.scores[group, :size]).var(axis=1)
            gaps = means[arm] - means[group] + margin
            needed = state.thresholds.paired + EXTRA
            ends[place, group] = _end(state, variances + PRIOR / size, gaps, needed, size)
    return ends


def _ends_alone(state: Open, outsiders: IntArray, means: FloatArray) -> FloatArray:
    """Return the same for outsiders, if all incumbents were measured on all items."""
    ends = np.zeros(len(outsiders))
    cut = means[state.incumbents].min() + state.hypothesis.excess / state.n_items
    panel = np.union1d(state.incumbents, np.flatnonzero(state.is_full))
    for size in np.unique(state.seen[outsiders]).tolist():
        places = np.flatnonzero(state.seen[outsiders] == size)
        helpers = panel[state.seen[panel] >= size]
        rows, own = state.scores[helpers, :size], state.scores[outsiders[places], :size]
        rows, own = rows - rows.mean(axis=1, keepdims=True), own - own.mean(axis=1, keepdims=True)
        weights = np.linalg.solve(rows @ rows.T + RIDGE * np.eye(len(helpers)), rows @ own.T).T
        variances = (own - weights @ rows).var(axis=1)
        gaps = cut - means[outsiders[places]]
        needed = state.thresholds.single + EXTRA
        ends[places] = _end(state, variances + PRIOR / size, gaps, needed, size)
    return ends


def _end(state: Open, variances: FloatArray, gaps: FloatArray, needed: float, n_seen: int) -> FloatArray:
    """Return after how many items evidence, about gap^2 k / (2 variance (1 - k/N)), suffices."""
    endless = 2 * variances * needed / np.maximum(gaps, 1e-9) ** 2
    found: FloatArray = np.maximum(endless / (1 + endless / state.n_items), SOON * n_seen)
    return np.minimum(found, state.n_items)
