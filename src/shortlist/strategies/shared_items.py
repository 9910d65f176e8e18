"""Shared items: finds the m best arms on a fixed set of items, which all arms take in one random order.

A whole run, with a table of scores of three arms on 40 items:

>>> import numpy as np
>>> from shortlist.problem import Problem
>>> from shortlist.rewards import Bernoulli
>>> table = np.array([[0.0, 1.0] * 20, [1.0] * 40, [0.0] * 40])
>>> problem = Problem(m=1, epsilon=0.1, delta=0.05, n=3, rewards=Bernoulli(), items=40)
>>> state = init(problem)                  # every arm awaits its first items
>>> while not isinstance(state, Ended):
...     batch = ask(state)                 # which arms take how many of the next items
...     cells = [table[arm, state.seen[arm]:][:count] for arm, count in zip(batch.arms, batch.counts)]
...     state = tell(state, Moments(np.array([]), scores=np.concatenate(cells)))
>>> state.selected
array([1])

Decisions are made when all arms of a batch have reached their *marks*, fixed positions in the order of items.
So they depend on the seed and the scores alone, not on who measured what when. One call of `tell`:

1. The m arms that look best are the *incumbents*. Means are compared on the same items.
2. `with_pairs` and `with_singles` (`item_evidence.py`) add the new scores to the evidence that no outsider is
   better than an incumbent by more than epsilon. If every pair is settled, the run ends.
3. Of each open pair, the arm that has seen fewer items goes on to its next mark. Or, where that is expected
   to cost less in the end, all incumbents are measured on all items and join the *panel*: their scores then
   help to predict those of outsiders on later items (`item_forecasts.py`).

With all items measured the answer is exact, so a run never costs more than the whole table.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, all_but, largest
from shortlist.certificates import Certificate, Guarantee, Ledger, Share
from shortlist.certificates.shared_items import Controls, Hypothesis, Thresholds
from shortlist.problem import Problem
from shortlist.strategies import lanes
from shortlist.strategies.earlier_incumbents import remembered
from shortlist.strategies.item_evidence import (
    chunks,
    is_open_at,
    open_pairs,
    smallest_epsilon,
    with_pairs,
    with_singles,
)
from shortlist.strategies.item_forecasts import fewest_items, forecast_ends, joining_pays
from shortlist.strategies.item_state import Ended, Open
from shortlist.strategies.marks import marks
from shortlist.strategies.protocol import Anytime, Batch, Moments, refuse_added

LEAP = 0.7  # a batch brings arms to this share of the items that they are expected to need,
FURTHEST = 1.5  # but to no more than this multiple of the items that they have seen; at least to a mark
RIDGE = 12.0  # predictions are shrunk as if by so many more items, unrelated to any arm
_ROUNDING = 1e-9  # sums of scores differ by more than rounding


def init(problem: Problem) -> Open | Ended:
    """Return the first state; complete rows that are known already are taken in the order of items."""
    n, n_items = problem.n, problem.n_items
    scores, seen = np.zeros((n, 0 if problem.known is None else n_items)), np.zeros(n, dtype=np.int64)
    if problem.known is not None:
        scores[problem.known.arms] = _shares(problem, problem.merits(problem.known.scores))
        seen[problem.known.arms] = n_items
    state = Open(
        problem,
        Hypothesis.of(problem),
        Thresholds.of(problem),
        scores,
        seen,
        np.array([math.fsum(row) for row in scores]),
        np.where(seen > 0, 0, n_items),
        None,
        {},
        None,
        problem.arms[:0],
        np.flatnonzero(seen == 0),
        np.full(int((seen == 0).sum()), marks(n_items)[1]),
    )
    return state if len(state.arms) else _decided(state)


def ask(state: Open) -> Batch:
    """Return the batch awaited."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Open | Ended:
    """Return the state after the scores of a batch, arm after arm, each in the order of items."""
    if told.scores is None:
        raise ValueError("shared items need the score of each item")
    shares = _shares(state.problem, told.scores)
    seen, ends = state.seen.copy(), np.cumsum(state.counts)
    scores = _widened(state.scores, int((seen[state.arms] + state.counts).max()))
    for arm, count, end in zip(state.arms.tolist(), state.counts.tolist(), ends.tolist(), strict=True):
        scores[arm, seen[arm] : seen[arm] + count] = shares[end - count : end]
    seen[state.arms] += state.counts
    sums = state.sums.copy()
    sums[state.arms] += np.add.reduceat(shares, ends - state.counts)
    for arm in state.arms[seen[state.arms] == state.n_items].tolist():
        sums[arm] = math.fsum(scores[arm])  # the same in any order: rounding must not tell what comes next
    controls = _extended_controls(state, scores, seen)
    return _decided(replace(state, scores=scores, seen=seen, sums=sums, controls=controls))


def _widened(table: FloatArray, width: int) -> FloatArray:
    """Return a copy of a table with this many columns, or more if it has them; new ones contain 0."""
    found = np.zeros((len(table), max(width, table.shape[1])))
    found[:, : table.shape[1]] = table
    return found


def _shares(problem: Problem, merits: FloatArray) -> FloatArray:
    """Return scores as shares of the bounds; where they are multiples of a step, without rounding errors."""
    shares = problem.shares(merits)
    if problem.step is None:
        return shares
    step = problem.step / problem.width
    if problem.goal == "maximise":
        return np.rint(shares / step) * step
    return 1 - np.rint((1 - shares) / step) * step  # multiples are counted from the lower bound


def _extended_controls(state: Open, scores: FloatArray, seen: IntArray) -> Controls | None:
    """Return the controls up to new prefixes; predictions depend on nothing but what was known before.

    An arm joins the panel because of scores at positions before `serves_from`, so it must not be used to
    predict scores at those positions. Predictions change at every mark, also at those that a batch skips:
    which are skipped may depend on scores of other arms on later items.
    """
    moved = state.arms[seen[state.arms] < state.n_items]
    panel_from = np.sort(state.serves_from[state.is_full])
    if state.problem.target == "population" or not (
        len(panel_from) and len(moved) and (panel_from[0] < seen[moved]).any()
    ):
        return state.controls
    known = state.controls or Controls.none((len(seen), 0))
    width = int(seen[seen < state.n_items].max())  # complete rows need no predictions
    shortfall, reach = _widened(known.shortfall, width), _widened(known.reach, width)
    positions = marks(state.n_items).tolist()
    for start, end in itertools.pairwise(positions):  # whichever of them a batch has skipped
        panel = np.flatnonzero(state.is_full & (state.serves_from <= start))
        group = moved[(state.seen[moved] <= start) & (start < seen[moved])]
        if not (len(panel) and len(group) and start):
            continue
        rows = state.scores[panel]
        before = rows[:, :start] - rows[:, :start].mean(axis=1, keepdims=True)
        gram = before @ before.T + RIDGE * np.eye(len(panel)) / 4
        for arms in chunks(group, state.n_items - start):
            own = scores[arms, :start]
            weights = np.linalg.solve(gram, before @ (own - own.mean(axis=1, keepdims=True)).T).T
            found = Controls.of(weights @ rows[:, start:], end - start)
            shortfall[arms, start:end], reach[arms, start:end] = found.shortfall, found.reach
    return Controls(shortfall, reach)


def _decided(state: Open) -> Open | Ended:
    """Return the state with its next batch, or the end."""
    state = _with_incumbents(state)
    state = with_singles(with_pairs(state))
    is_open = open_pairs(state)
    if not is_open.any():
        return Ended(state.incumbents, state)
    if joining_pays(state, is_open, estimates(state)):
        return _joined(state)
    return _advanced(state, is_open)


def _with_incumbents(state: Open) -> Open:
    """Return the state with the arms that look best now; earlier ones are remembered for certificates."""
    chosen = _incumbents(state)
    return replace(state, incumbents=chosen, earlier=remembered(state.earlier, state.incumbents, chosen))


def _incumbents(state: Open) -> IntArray:
    return np.sort(largest(estimates(state), state.problem.m))


def estimates(state: Open) -> FloatArray:
    """Return estimates of the means, for which arms are compared with others on the same items.

    They are compared by the arms that were chosen to be measured on all items or, before there are any, by
    those that have seen most. Rows that were known before are of arms that may be unlike the best.
    """
    is_full, exact = state.is_full, state.sums / state.n_items
    if is_full.all():
        return exact
    is_chosen = is_full & (state.serves_from > 0)
    top = state.n_items if is_chosen.any() else int(state.seen[~is_full].max())
    reference = is_chosen if is_chosen.any() else state.seen == top
    level = np.concatenate([[0.0], np.cumsum(state.scores[reference, :top].mean(axis=0))])
    mean = state.sums[reference].mean() / top  # the same in any order of items that others have not seen
    found: FloatArray = (state.sums - level[np.minimum(state.seen, top)]) / np.maximum(state.seen, 1) + mean
    if is_full.any() and top < state.n_items:
        exact = exact + (state.scores[is_full, :top].mean(axis=1) - exact[is_full]).mean()
    return np.where(is_full, exact, found)


def _joined(state: Open) -> Open:
    """Return the state in which incumbents are about to be measured on all items."""
    arms = state.incumbents[~state.is_full[state.incumbents]]
    serves_from = state.serves_from.copy()
    serves_from[arms] = _last_position(state)
    return replace(state, serves_from=serves_from, arms=arms, counts=state.n_items - state.seen[arms])


def likely_ends(state: Open) -> FloatArray:
    """Return for each arm how many items it will probably have seen in the end."""
    if not len(state.incumbents):
        return np.full(state.problem.n, 2 * fewest_items(state.thresholds, state.hypothesis))
    return np.maximum(forecast_ends(state, open_pairs(state), estimates(state)), state.seen)


def _last_position(state: Open) -> int:
    """Return the last position whose scores all decisions so far depended on.

    Who joined earlier did so because of scores before `serves_from`, and an arm that reached the last item in
    steps because of all scores (its `serves_from` is the number of items): what was decided since depends on
    them too.
    """
    return int(max(state.seen[~state.is_full].max(), state.serves_from[state.is_full].max(initial=0)))


def within(state: Open | Ended, cost: float) -> Open | Ended:
    """Return the state with the smallest step in place of a batch that costs too much, if it costs less.

    Not if rows are complete: who joins the panel must not depend on a budget that somebody chose after a look
    at scores on later items.
    """
    if isinstance(state, Ended) or not len(state.incumbents) or _price(state) <= cost:
        return state
    if state.is_full.any() and state.problem.target == "pool":
        return state
    serves_from = np.where(state.is_full, state.serves_from, state.n_items)  # nobody joins the panel now
    smaller = _advanced(replace(state, serves_from=serves_from), open_pairs(state), leap=0.0)
    return smaller if _price(smaller) <= cost else state


def _price(state: Open) -> float:
    costs = state.problem.costs
    return float(state.counts.sum() if costs is None else state.counts @ costs[state.arms])


def _advanced(state: Open, is_open: BoolArray, leap: float = LEAP) -> Open:
    """Return the state in which the shorter prefixes of open pairs are about to be extended."""
    seen, n_items = state.seen, state.n_items
    is_moving = np.zeros(state.problem.n, dtype=np.bool_)
    for arm, is_open_with in zip(state.incumbents.tolist(), is_open, strict=True):
        others = np.flatnonzero(is_open_with)
        is_moving[others[seen[others] <= seen[arm]]] = True
        is_moving[arm] |= bool((seen[others] >= seen[arm]).any())
    arms = np.flatnonzero(is_moving & (seen < n_items))
    ends = np.minimum(leap * forecast_ends(state, is_open, estimates(state))[arms], FURTHEST * seen[arms])
    positions = marks(n_items)
    following = positions[np.searchsorted(positions, np.maximum(seen[arms], ends), side="right")]
    return replace(state, arms=arms, counts=following - seen[arms])


# --- what is certified at any moment ----------------------------------------------------------------------


def certified(state: Open | Ended) -> Certificate:
    """Return what is certified by the scores so far, for the arms that look best.

    Before the end, for those that looked best earlier if more is certified for them.
    """
    if isinstance(state, Ended):
        return _certified_for(state.last, state.last.incumbents)
    if not len(state.incumbents):
        return Certificate.of_nothing(state.problem)
    best = _certified_for(state, state.incumbents)
    for chosen in state.earlier:
        found = _certified_for(state, chosen, below=min(best.epsilon, state.problem.width))
        best = found if found.epsilon < best.epsilon else best
    return best


def _certified_for(state: Open, chosen: IntArray, below: float = math.inf) -> Certificate:
    """Return what is certified for m arms; nothing if that is not below some epsilon."""
    problem, promise = state.problem, guarantee(state.problem)
    others = all_but(problem.n, chosen)
    nothing = Certificate.of_nothing(problem)
    if below < math.inf and any(is_open_at(state, arm, others, below).any() for arm in chosen.tolist()):
        return nothing
    own = np.array([smallest_epsilon(state, arm, others) for arm in chosen.tolist()])
    if own.max() >= problem.width:
        return nothing
    is_out = np.all(~open_pairs(state, chosen), axis=0)
    chosen, is_out = _with_better_rows(state, chosen, is_out)
    return Certificate.of_epsilons(
        problem, chosen, own, is_out=is_out, merits=estimates(state), promise=promise
    )


def _with_better_rows(state: Open, chosen: IntArray, is_out: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return m arms and which arms are out, with selected rows exchanged for better complete ones.

    The means of complete rows are known exactly. So an arm whose row is better than that of a selected arm
    lies no further below the m-th best than that one, and what is certified for it holds for the other, too.
    """
    chosen, is_out = chosen.copy(), is_out.copy()
    rows = np.where(state.is_full, state.sums, np.nan)
    while state.problem.target == "pool" and state.is_full[chosen].any():
        others = all_but(state.problem.n, chosen)
        if not state.is_full[others].any():
            break
        worst, better = int(np.nanargmin(rows[chosen])), int(others[np.nanargmax(rows[others])])
        if not rows[better] > rows[chosen[worst]] + _ROUNDING:
            break
        is_out[chosen[worst]] = False  # it was compared with outsiders only
        chosen[worst] = better
    return chosen, is_out


def certificate_of_prefixes(problem: Problem, scores: FloatArray, seen: IntArray) -> Certificate:
    """Return what prefixes certify whose lengths did not depend on later items; no predictions are used.

    Scores are in the order of items, 0 where not seen; `seen` has the length of each arm's prefix.
    """
    if problem.m == problem.n:
        return Certificate.at_end(problem, problem.arms, guarantee(problem))
    state = init(problem.changed(known=None))
    if not seen.all():
        missing = problem.name(int(np.argmin(seen)))
        return Certificate.of_nothing(problem, f"Nothing is certified: {missing} was not measured at all.")
    shares = np.where(np.arange(scores.shape[1]) < seen[:, None], problem.shares(problem.merits(scores)), 0.0)
    state = replace(cast("Open", state), scores=shares, seen=seen, sums=shares.sum(axis=1))
    state = replace(state, incumbents=_incumbents(state))
    return certified(with_singles(with_pairs(state)))


def narrow(state: Open | Ended, epsilon: float) -> Open | Ended:
    """Return the state of a run that goes on with a smaller epsilon; an open batch stays as it is."""
    last = state.last if isinstance(state, Ended) else state
    problem = last.problem.changed(epsilon=epsilon)
    fresh = replace(last, problem=problem, hypothesis=Hypothesis.of(problem), pairs={}, singles=None)
    if isinstance(state, Ended):
        return _decided(fresh)
    if not len(last.incumbents):  # the first batch is awaited
        return fresh
    return with_singles(with_pairs(fresh))


def guarantee(problem: Problem) -> Guarantee:
    """Return the guarantee of whoever stops when all pairs are settled.

    An arm looks much worse than it is if the weighted e-values against its mean and its leads reach m/delta.
    """
    event = "one of the m best arms looks much worse than it is, by its mean or by its leads over other arms"
    ledger = Ledger((Share(event, problem.delta),))
    if problem.has_blocks:
        own: tuple[str, ...] = ("constant-differences", "independent-differences", "question-first")
    else:
        is_pool = problem.target == "pool"
        own = (
            ("fixed-scores", "question-first") if is_pool else ("fixed-scores", "items-drawn", "fresh-items")
        )
    source = "docs/theory.md, section 39"
    return Guarantee.of(problem, source, ledger, assumptions=("within-bounds", *own))


def unfit(problem: Problem) -> str:
    """Return why the strategy cannot be used for a problem; empty if it can."""
    is_fit = problem.items is not None and problem.is_bounded
    return "" if is_fit else "it is for problems with `items` whose rewards have bounds"


SHARED_ITEMS = lanes.strategy(
    "shared-items",
    "Measures all arms on the same items, in one random order, and compares them item by item. Settled "
    "arms are not measured any more, and no run costs more than the whole table.",
    "docs/theory.md, section 39",
    init=cast("Callable[[Problem], Open]", init),  # it may have ended, if all rows are known
    ask=ask,
    tell=tell,
    guarantee=guarantee,
    worst_case_pulls=lambda problem: None if problem.has_blocks else problem.n_cells,
    n_rounds=lambda problem: None if problem.has_blocks else problem.n * len(marks(problem.n_items)),
    worst_case_cost=lambda problem: None if problem.has_blocks else problem.cost_of(problem.cells),
    unfit=unfit,
    anytime=Anytime(certified, refuse_added, narrow, within=within),  # type: ignore[arg-type]
    likely_ends=likely_ends,
)
