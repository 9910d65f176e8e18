"""The evidence of a run on shared items: which pairs it settles, and for which epsilon it would be enough.

A pair is an incumbent and an outsider. Each step of the evidence that the outsider is not better by more than
epsilon is in `certificates/shared_items.py`; here the steps are added up over the items that arms have seen:

- *Paired* evidence is about the differences of the two on the items that both have seen.
- *Single* evidence is about the outsider alone, if the incumbent was measured on all items.

The evidence for another epsilon is found from the same scores, as if the question had had it from the
beginning. So the smallest epsilon that is certified is found by bisection.
"""

import math
from dataclasses import replace

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.certificates.certificate import rounded_up
from shortlist.certificates.shared_items import (
    BETS,
    TINY,
    Controls,
    Hypothesis,
    grown,
    is_refuted,
    pair_steps,
    single_steps,
)
from shortlist.strategies.item_state import Open, Pairs, Singles

_AT_ONCE = 1 << 22  # numbers in working arrays
_BISECTIONS = 12  # for certified epsilons


def with_pairs(state: Open) -> Open:
    """Return the state with paired evidence of incumbents and outsiders up to their common prefixes."""
    pairs, outsiders = dict(state.pairs), state.outsiders
    for arm in state.incumbents.tolist():
        pairs[arm] = _paired(state, state.hypothesis, arm, outsiders, state.pairs_of(arm))
    return replace(state, pairs=pairs)


def _paired(state: Open, hypothesis: Hypothesis, arm: int, others: IntArray, known: Pairs) -> Pairs:
    """Return the evidence about an incumbent and other arms, up to their common prefixes."""
    found = known.copy()
    if math.isfinite(hypothesis.n_items) and state.is_full[arm]:
        both = others[state.is_full[others]]  # compared exactly
        found.is_settled[both] |= state.sums[both] - state.sums[arm] <= hypothesis.allowed + TINY
        others = np.setdiff1d(others, both)
    others = others[~found.is_settled[others]]
    ends = np.minimum(state.seen[arm], state.seen[others])
    for start, end in np.unique(np.stack([found.seen[others], ends]), axis=1).T.tolist():
        if start >= end:
            continue
        group = others[(found.seen[others] == start) & (ends == end)]
        for chunk in chunks(group, end - start):
            differences = state.scores[arm, start:end] - state.scores[chunk, start:end]
            steps = pair_steps(hypothesis, differences, found.sums[chunk], start)
            found.logs[chunk], trace = grown(found.logs[chunk], steps)
            found.sums[chunk] += differences.sum(axis=1)
            found.latest[chunk] = trace[:, -1]
            found.is_settled[chunk] = (trace >= state.thresholds.paired).any(axis=1) | is_refuted(
                hypothesis, found.sums[chunk], end
            )
            found.seen[chunk] = end
    return found


def with_singles(state: Open) -> Open:
    """Return the state with single evidence, if some incumbents were measured on all items."""
    full = state.incumbents[state.is_full[state.incumbents]]
    if state.problem.target == "population" or not len(full):
        return replace(state, singles=None)
    total = float(state.sums[full].min()) + state.hypothesis.excess
    known = state.singles
    if known is None or known.total != total:
        known = Singles.none(total, state.problem.n)
    others = state.outsiders[~state.is_full[state.outsiders]]
    singles = _single(state, known, others)
    pairs = dict(state.pairs)
    for arm in full.tolist():
        pairs[arm] = _settled_by_both(state, pairs[arm], singles, others)
    return replace(state, singles=singles, pairs=pairs)


def _single(state: Open, known: Singles, others: IntArray) -> Singles:
    """Return the single evidence about other arms up to their prefixes."""
    n_items, total = state.n_items, known.total
    seen, logs, latest = known.seen.copy(), known.logs.copy(), known.latest.copy()
    is_settled = known.is_settled.copy()
    others = others[~is_settled[others]]
    for start, end in np.unique(np.stack([seen[others], state.seen[others]]), axis=1).T.tolist():
        if start >= end:
            continue
        group = others[(seen[others] == start) & (state.seen[others] == end)]
        for chunk in chunks(group, end - start):
            scores, before = state.scores[chunk, start:end], state.scores[chunk, :start].sum(axis=1)
            controls = Controls.none(scores.shape)
            if state.controls is not None:
                own = (array[chunk, start:end] for array in (state.controls.shortfall, state.controls.reach))
                controls = Controls(*own)
            steps = single_steps(n_items, total, scores, before, start, controls)
            logs[chunk], trace = grown(logs[chunk], steps)
            latest[chunk] = trace[:, -1]
            is_settled[chunk] = (trace >= state.thresholds.single).any(axis=1)
            is_settled[chunk] |= state.sums[chunk] + (n_items - end) < total - TINY
            seen[chunk] = end
    return Singles(total, seen, logs, latest, is_settled)


def _settled_by_both(state: Open, pairs: Pairs, singles: Singles, others: IntArray) -> Pairs:
    """Return the pairs of an incumbent that was measured on all items, settled by either or both."""
    found = pairs.copy()
    is_level = found.seen[others] == singles.seen[others]
    paired = found.latest[others] - state.thresholds.paired
    single = singles.latest[others] - state.thresholds.single
    is_enough = is_level & (np.logaddexp(paired, single) >= 0)
    found.is_settled[others] |= singles.is_settled[others] | is_enough
    return found


def open_pairs(state: Open, chosen: IntArray | None = None) -> BoolArray:
    """Return which pairs are open; rows are incumbents, or other chosen arms, columns all arms."""
    chosen = state.incumbents if chosen is None else chosen
    is_open = np.array([~state.pairs_of(arm).is_settled for arm in chosen.tolist()])
    is_open[:, chosen] = False
    return is_open


def smallest_epsilon(state: Open, arm: int, others: IntArray) -> float:
    """Return the smallest epsilon, to some digits, with which an arm is settled with others."""
    is_settled = bool(state.pairs_of(arm).is_settled[others].all())
    low, high = 0.0, state.problem.epsilon if is_settled else state.problem.width
    others = others[is_open_at(state, arm, others, low)]
    for _ in range(_BISECTIONS if len(others) else 0):
        middle = (low + high) / 2
        is_open = is_open_at(state, arm, others, middle)
        if is_open.any():
            low, others = middle, others[is_open]
        else:
            high = middle
    if not len(others):
        return 0.0
    return min(rounded_up(high), state.problem.epsilon) if is_settled else rounded_up(high)


def is_open_at(state: Open, arm: int, others: IntArray, epsilon: float) -> BoolArray:
    """Return which outsiders would be open if the question had this epsilon from the beginning."""
    hypothesis = Hypothesis.of(state.problem, epsilon)
    found = _paired(state, hypothesis, arm, others, Pairs.none(state.problem.n))
    part = others[~found.is_settled[others] & ~state.is_full[others]]
    if state.is_full[arm] and math.isfinite(hypothesis.n_items) and len(part):
        total = float(state.sums[arm]) + hypothesis.excess
        singles = _single(state, Singles.none(total, state.problem.n), part)
        found = _settled_by_both(state, found, singles, part)
    return ~found.is_settled[others]


def chunks(arms: IntArray, n_items: int) -> list[IntArray]:
    """Return arms in groups small enough for working arrays with so many items and all bets."""
    size = max(1, _AT_ONCE // max(1, n_items * len(BETS)))
    return [arms[start : start + size] for start in range(0, len(arms), size)]
