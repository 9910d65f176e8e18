"""The race by levels, which pulls only arms still in doubt, level by level, until every pair is settled.

The *incumbents* are the m arms that look best. A pair of an incumbent and an outsider is open until it is
established that the outsider does not beat the incumbent by epsilon; the race ends when no pair is open. At
each level only the arms of open pairs are pulled. When an incumbent is replaced, pairs with the new one may
be open that were never examined: then those of its arms that are at lower levels catch up first.

The proof (`docs/theory.md`) does not depend on which arms are pulled when, as long as batches are fixed in
advance: see `level_course`. Pairs are never enumerated; an outsider is compared with a threshold for its
level.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, largest
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.certificates.assumptions import EQUAL_GAUSSIAN
from shortlist.certificates.swap import charges, spent
from shortlist.problem import Problem
from shortlist.strategies import lanes
from shortlist.strategies.level_course import FAVOUR, Course, course, shares_of_delta
from shortlist.strategies.protocol import Batch, Done, Moments, Strategy

LOYALTY = 0.3  # an incumbent is replaced when behind by this fraction of epsilon (less at later levels)


@dataclass(frozen=True, eq=False)
class Record:
    """The scores and spreads of all arms at one level; NaN for arms that have not reached it.

    `kinds` are classes of spread. `is_present` says which arms were there when this level was the front.
    """

    scores: FloatArray
    kinds: IntArray
    is_present: BoolArray


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await a batch each.

    Attributes
    ----------
    records
        One per level that any arm has reached.
    reached
        The level of each arm; -1 before its first batch.
    scores, spreads, kinds
        The arm's score, spread and class of spread at that level.
    incumbents
        The m arms that look best, in increasing order.
    is_resting
        Which arms rest by the swap certificate.
    accounts
        What each arm has been charged for resting.
    climbs
        The progress of catching up at this front: 0 not begun, 1 outsiders have, 2 all incumbents must.
    returns
        How often incumbents have been chosen again at the last level.
    arms, counts
        The batch awaited.
    """

    course: Course
    records: tuple[Record, ...]
    reached: IntArray
    scores: FloatArray
    spreads: FloatArray
    kinds: IntArray
    incumbents: IntArray
    is_resting: BoolArray
    accounts: FloatArray
    climbs: int
    returns: int
    arms: IntArray
    counts: IntArray

    @property
    def front(self) -> int:
        """The highest level that any arm has reached."""
        return len(self.records) - 1


def init(laid_out: Course) -> Open:
    """Return the first state: every arm awaits its first batch."""
    problem = laid_out.problem
    nobody, none = np.zeros(problem.n, dtype=np.bool_), np.empty(0, dtype=np.int64)
    return Open(
        course=laid_out,
        records=(),
        reached=np.full(problem.n, -1),
        scores=np.zeros(problem.n),
        spreads=np.zeros(problem.n),
        kinds=np.zeros(problem.n, dtype=np.int8),
        incumbents=none,
        is_resting=nobody,
        accounts=np.zeros(problem.n),
        climbs=0,
        returns=0,
        arms=problem.arms,
        counts=laid_out.usual_batch(0, problem.arms),
    )


def ask(state: Open) -> Batch:
    """Return the batch awaited."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the next state: some arms catch up, or the front advances, or no pair is open."""
    had_front = state.front
    state = _recorded(state, told.means)
    if state.front > had_front:
        state = _rested(_with_incumbents(replace(state, climbs=0)))
    while True:
        is_open = _open_outsiders(state)
        behind = _behind(state, is_open)
        if len(behind):
            return _climbing(state, behind)
        if not is_open.any() or _is_swap_enough(state, is_open):
            return Done(state.incumbents)
        if state.front + 1 < state.course.n_levels:
            return _advancing(state, is_open)
        state = _with_incumbents(replace(state, climbs=0, returns=state.returns + 1))


def _recorded(state: Open, means: FloatArray) -> Open:
    """Return the state with a batch added to the records."""
    plan, arms = state.course, state.arms
    reached, scores, spreads = state.reached.copy(), state.scores.copy(), state.spreads.copy()
    kinds, is_resting = state.kinds.copy(), state.is_resting.copy()
    reached[arms] += 1
    level = reached[arms]
    scores[arms] += 2 * plan.weights[level] * (means / plan.problem.epsilon)
    spreads[arms] += plan.spread_added(level, arms, state.counts)
    kinds[arms] = plan.kind(level, spreads[arms])
    is_resting[arms] = False
    records = list(state.records)
    for one in np.unique(level).tolist():
        there = arms[level == one]
        records[one : one + 1] = [
            _entered(records[one] if one < len(records) else None, there, scores, kinds)
        ]
    return replace(
        state,
        records=tuple(records),
        reached=reached,
        scores=scores,
        spreads=spreads,
        kinds=kinds,
        is_resting=is_resting,
    )


def _entered(record: Record | None, arms: IntArray, scores: FloatArray, kinds: IntArray) -> Record:
    """Return the record of a level with these arms added; a new record if they are the first there."""
    if record is None:
        is_present = np.zeros(len(scores), dtype=np.bool_)
        is_present[arms] = True
        return Record(np.where(is_present, scores, np.nan), kinds, is_present)
    entered = record.scores.copy(), record.kinds.copy()
    entered[0][arms], entered[1][arms] = scores[arms], kinds[arms]
    return Record(*entered, record.is_present)


def _with_incumbents(state: Open) -> Open:
    """Return the state with new incumbents: the best means, with some preference for the old incumbents."""
    levels = state.course.levels
    scores = state.scores * (levels[-1] / levels[state.reached])  # scaled to the last level; exact there
    scores[state.incumbents] += 2 * LOYALTY * (levels[-1] - levels[state.front])
    return replace(state, incumbents=largest(scores, state.course.problem.m))


def _open_outsiders(state: Open) -> BoolArray:
    """Return which outsiders have an open pair with an incumbent that has reached their level."""
    is_open: BoolArray = state.scores > _thresholds(state)[state.reached, state.kinds]
    if state.is_resting.any():
        is_open &= ~(state.is_resting & (state.scores <= _rest_thresholds(state)[state.reached]))
    is_open[state.incumbents] = False
    return is_open


def _thresholds(state: Open) -> FloatArray:
    """Return, by level and spread class, the score up to which an outsider is settled with all incumbents."""
    leads = state.course.leads[: len(state.records)]
    scores = np.array([record.scores[state.incumbents] for record in state.records])
    kinds = np.array([record.kinds[state.incumbents] for record in state.records])
    level, place = np.nonzero(~np.isnan(scores))
    least = np.full(leads.shape[:2], np.inf)
    np.minimum.at(least, (level, kinds[level, place]), scores[level, place])
    found: FloatArray = (least[:, None, :] - leads).min(axis=-1)
    return found


def _rest_thresholds(state: Open) -> FloatArray:
    """Return, by level, the score up to which resting there settles an arm with all incumbents."""
    found = np.empty(len(state.records))
    for level, record in enumerate(state.records):
        is_known = record.is_present[state.incumbents].all()
        found[level] = record.scores[state.incumbents].min() - state.course.rest_lead if is_known else -np.inf
    return found


def _behind(state: Open, is_open: BoolArray) -> IntArray:
    """Return the arms that must catch up before the front advances: incumbents first, then open outsiders."""
    if state.returns > 1:  # at the last level all arms catch up, so that the race ends soon
        return np.flatnonzero(state.reached < state.front)
    late = state.incumbents[state.reached[state.incumbents] < state.front]
    if len(late) and state.climbs < 2:
        is_wanted = _is_open_above(state, late)
        late = late if is_wanted.any() and state.climbs == 1 else late[is_wanted]
    return late if len(late) else np.flatnonzero(is_open & (state.reached < state.front))


def _is_open_above(state: Open, incumbents: IntArray) -> BoolArray:
    """Return which of these incumbents have an open pair with an outsider at a higher level."""
    is_found = np.zeros(len(incumbents), dtype=np.bool_)
    reached = state.reached[incumbents]
    for level in np.unique(reached).tolist():
        is_above = state.reached > level
        is_above[state.incumbents] = False
        there = reached == level
        is_found[there] = _is_open_at(state, level, incumbents[there], is_above)
    return is_found


def _is_open_at(state: Open, level: int, incumbents: IntArray, is_outside: BoolArray) -> BoolArray:
    """Return which of these incumbents have an open pair with one of some arms, by the record of a level."""
    record, leads = state.records[level], state.course.leads[level]
    highest = np.full(len(leads), -np.inf)
    np.maximum.at(highest, record.kinds[is_outside], record.scores[is_outside])
    needed = (highest[:, None] + leads).max(axis=0)[record.kinds[incumbents]]
    is_open: BoolArray = needed > record.scores[incumbents]
    return is_open


def _climbing(state: Open, arms: IntArray) -> Open:
    """Return the state in which these arms await the usual batch of their next level."""
    is_outside = not np.isin(arms[0], state.incumbents)
    climbs = max(state.climbs, 1) if is_outside else 2 if state.climbs else 0
    counts = state.course.usual_batch(state.reached[arms] + 1, arms)
    return replace(state, climbs=climbs, arms=arms, counts=counts)


def _advancing(state: Open, is_open: BoolArray) -> Open:
    """Return the state in which all arms of open pairs await the batch of the next level."""
    here = state.incumbents[state.reached[state.incumbents] == state.front]
    doubted = here[_is_open_at(state, state.front, here, is_open)]
    arms, level = np.sort(np.concatenate([np.flatnonzero(is_open), doubted])), state.front + 1
    counts = state.course.usual_batch(level, arms)
    if excess := state.course.excess(level):
        best_first = np.argsort(-state.scores[arms], kind="stable")
        favoured = best_first[np.cumsum(counts[best_first]) * (FAVOUR - 1) <= excess]
        counts[favoured] *= FAVOUR
    return replace(state, arms=arms, counts=counts)


def _rested(state: Open) -> Open:
    """Return the state in which open outsiders far behind rest, if the accounts allow it."""
    plan, record = state.course, state.records[-1]
    if not plan.is_swapping or not record.is_present[state.incumbents].all():
        return state
    least = record.scores[state.incumbents].min()
    is_far = _open_outsiders(state) & record.is_present & (record.scores <= least - plan.rest_lead)
    here = np.flatnonzero(record.is_present)
    accounts = state.accounts.copy()
    accounts[here] += charges(record.scores[here], record.scores[is_far], plan.rest_lead)
    if not is_far.any() or spent(accounts, plan.problem.m) > plan.delta_swaps:
        return state
    return replace(state, accounts=accounts, is_resting=state.is_resting | is_far)


def _is_swap_enough(state: Open, is_open: BoolArray) -> bool:
    """Return whether the accounts allow all open pairs, which are at the front, to be settled by the swap."""
    if not state.course.is_swapping:
        return False
    scores, accounts = state.records[-1].scores, state.accounts.copy()
    here = state.incumbents[state.reached[state.incumbents] == state.front]
    accounts[here] += charges(scores[here], scores[is_open])
    return spent(accounts, state.course.problem.m) <= state.course.delta_swaps


def _guarantee(problem: Problem) -> Guarantee:
    delta_pairs, delta_swaps = shares_of_delta(problem)
    pairs = "one of the m best arms is wrongly declared less than epsilon better than another arm"
    if not delta_swaps:
        return Guarantee.of(
            problem, "docs/theory.md, sections 17 and 19", Ledger((Share(pairs, delta_pairs),))
        )
    swaps = "the swap wrongly declares one of the m best arms at most epsilon better than another arm"
    ledger = Ledger((Share(pairs, delta_pairs), Share(swaps, delta_swaps)))
    return Guarantee.of(problem, "docs/theory.md, sections 17 to 19", ledger, assumptions=EQUAL_GAUSSIAN)


def _strategy(name: str, summary: str, most_levels: int, usual_share: float) -> Strategy[Any]:
    def n_rounds(problem: Problem) -> int:
        """Return the most rounds: at each level all arms may have to catch up from the first, four times."""
        n_levels = course(problem, most_levels).n_levels
        return 2 * n_levels**2 + 4 * n_levels

    return lanes.strategy(
        name,
        summary,
        "docs/theory.md, section 19",
        init=lambda problem: init(course(problem, most_levels)),
        ask=ask,
        tell=tell,
        guarantee=_guarantee,
        worst_case_pulls=lambda problem: course(problem, most_levels).worst_case_pulls,
        n_rounds=n_rounds,
        usual_share=usual_share,
    )


LEVEL_RACE = _strategy(
    "level-race", "Pulls only open arms, level by level, until every pair of arms is settled.", 48, 0.5
)
SHORT_RACE = _strategy(
    "short-race", "The race by levels with only six levels: takes about five rounds.", 6, 0.65
)
