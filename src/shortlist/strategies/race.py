"""The race, which pulls each arm only as often as needed to tell which side of the cut it is on.

A whole run, with noiseless rewards:

>>> import numpy as np
>>> from shortlist.problem import Problem
>>> truth = np.array([0.0, 0.1, 0.5, 0.6, 1.0])
>>> problem = Problem(m=2, epsilon=0.2, delta=0.05, variances=np.full(5, 0.25))
>>> state = init(course(problem))          # every arm awaits its first batch
>>> while not isinstance(state, Done):
...     batch = ask(state)                 # which arms to pull, and how often
...     state = tell(state, Moments(truth[batch.arms]))  # the mean of each arm's fresh rewards
>>> state.selected
array([3, 4])

One call of `tell`, step by step:

1. `_pooled` adds the batch to the totals. The *rung* of an arm says how much information it has.
2. The m arms that look best are the *incumbents*; means of arms with few pulls are lowered first.
3. `_open_outsiders` asks the cut certificate which other arms are not yet settled with all incumbents. If
   none is open, the race ends.
4. `aims` computes how far arms would have to climb if their means stayed as they are; `_counts` turns that
   into a batch. So the few arms that many others are compared with get the most pulls, and arms far from
   the cut get hardly any.

Related files:

- `certificates/cut.py`: when a pair of arms is settled. The proof depends on this file alone, not on which
  arms are pulled when (docs/theory.md, sections 32 and 33).
- `certificates/bounded.py`: the same for rewards of which only bounds are known (section 35). The variances
  that rungs and aims depend on are then estimated.
- `race_course.py`: the rungs and the worst case, computed before the race starts.
- `race_aims.py`: how far to climb. It affects the number of pulls, never the correctness of the result.
- `lanes.py`: many races side by side.
- `racing.py`: an older strategy, after [EMM06].
- tests/oracles/race.py: the same race as a plain generator.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, blocks, is_increasing, kth_largest, largest
from shortlist.certificates.certificate import Certificate, certificate_of, guarantee_by_cuts
from shortlist.certificates.settled_pairs import open_outsiders
from shortlist.problem import Problem
from shortlist.strategies import lanes
from shortlist.strategies.protocol import Added, Anytime, Batch, Done, Moments
from shortlist.strategies.race_aims import Arms, aims, climbing
from shortlist.strategies.race_course import Course, course

PATIENCE = 40  # rounds in which arms ahead of an incumbent climb first; this fades over as many more
CLIMB = 2  # rungs that an arm usually climbs at once,
SMALL = 0.02  # but more if the batch adds less than this fraction to the pulls so far
LEAST = 2e-4  # a batch adds at least this fraction, if need be with pulls that are not wanted;
GROWTH = 1.01  # it grows by this factor per round, so after some hundreds few rounds are left
MOST_GROWTH = 4000  # rounds after which that fraction stops growing, to prevent overflow
CAUTION = 1.03  # the factor by which estimated variances of rewards within bounds are raised,
SMALLER = 0.13  # and more so if they are small, since evidence of large tilts has a smaller weight,
RAISE = 1.1  # and by which it grows if that turns out to be too little
PRIOR = 2.0  # these estimates start with this many rewards, half of them at either bound
WASTE = 1.8  # evidence from squares takes about this many times the pulls that the variance asks for
FAR = 1e6  # gaps are clipped here to prevent overflow; no outsider's gap is that large


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await a batch each.

    Attributes
    ----------
    pulls, means, rungs
        Per arm, so far; the rung is the highest that the arm has reached.
    n_pulls, n_excess
        Over all arms: pulls so far, and how many of them were beyond the top rung.
    n_rounds
        The number of batches told.
    arms, counts
        The batch awaited.
    unit
        Per arm, pulls per unit of information; estimated if rewards are within bounds.
    caution
        The factor by which estimates of `unit` are raised.
    squares
        Per arm, for graded rewards within bounds: the mean of their squares, as shares of the bounds.
    lowered
        Per arm, the mean less some standard errors, as far as these are known: of hardly measured arms, the
        luckiest looks better than it is.
    """

    course: Course
    pulls: IntArray
    means: FloatArray
    rungs: IntArray
    n_pulls: int
    n_excess: int
    n_rounds: int
    arms: IntArray
    counts: IntArray
    unit: FloatArray
    caution: float
    squares: FloatArray
    lowered: FloatArray

    @property
    def known_squares(self) -> FloatArray | None:
        """The mean squares, if they are used."""
        return self.squares if self.course.problem.is_graded else None


@dataclass(frozen=True, eq=False)
class Ended(Done):
    """No outsider is open.

    Attributes
    ----------
    last
        The state in which the race ended; its batch was told.
    """

    last: Open


def init(laid_out: Course) -> Open:
    """Return the first state: every arm awaits its first batch."""
    nothing = np.zeros(laid_out.problem.n, dtype=np.int64)
    means = nothing.astype(np.float64)
    arms, counts = laid_out.problem.arms, laid_out.first
    unit = laid_out.unit
    return Open(laid_out, nothing, means, nothing, 0, 0, 0, arms, counts, unit, CAUTION, means, means)


def ask(state: Open) -> Batch:
    """Return the batch awaited."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the next state: contenders climb further, or no outsider is open."""
    return _decided(_pooled(state, told))


def add(state: Open | Ended, parts: Sequence[Added]) -> Open | Ended:
    """Return the state after rewards that were not asked for, or were taken back; blocks do not matter."""
    before = state.last if isinstance(state, Ended) else state
    pulls, means, squares = before.pulls.copy(), before.means, before.squares
    for part in parts:
        totals, powers = means * pulls, squares * pulls
        np.add.at(pulls, part.arms, part.counts)
        np.add.at(totals, part.arms, part.sums)
        np.add.at(powers, part.arms, part.squares)
        means, squares = (
            np.divide(values, pulls, out=np.zeros_like(values), where=pulls > 0)
            for values in (totals, powers)
        )
    after = replace(
        before, n_pulls=int(pulls.sum()), pulls=pulls, means=means, squares=squares, caution=CAUTION
    )
    after = _with_units(after)
    found = certificate_of(
        before.course.problem, pulls, means, squares=after.known_squares, scale=before.course.scale
    )
    return Ended(np.sort(found.indices), after) if found.is_answer else _decided(after)


def narrow(state: Open | Ended, epsilon: float) -> Open | Ended:
    """Return the state of a race that goes on with a smaller epsilon; an open batch stays as it is."""
    before = state.last if isinstance(state, Ended) else state
    finer = course(before.course.problem.changed(epsilon=epsilon), before.course.scale)
    after = _with_units(replace(before, course=finer, caution=CAUTION))
    return _decided(after) if isinstance(state, Ended) else after


def _with_units(state: Open) -> Open:
    """Return the state with `unit`, rungs and lowered means as its course, totals and caution imply."""
    plan, pulls = state.course, state.pulls
    unit = plan.unit if plan.evidence is None else _units(state, pulls, state.means, state.squares)
    lowered = _lowered(plan, plan.problem.arms, unit, np.maximum(pulls, 1), state.means)
    return replace(state, unit=unit, rungs=plan.reached(pulls, unit), lowered=lowered)


def _decided(state: Open) -> Open | Ended:
    """Return the state with its next batch, or the end of the race."""
    problem, first = state.course.problem, state.course.first
    if (state.pulls < first).any():  # arms that were measured elsewhere, but too little to be compared
        arms = np.flatnonzero(state.pulls < first)
        return replace(state, arms=arms, counts=first[arms] - state.pulls[arms])
    while True:
        for means in (state.lowered, state.means):
            incumbents = largest(means, problem.m)
            is_open, batch = _doubts(state, incumbents)
            if not is_open.any():
                return Ended(incumbents, state)
            is_small = batch.counts.sum() < _least(state.n_rounds, float(state.n_pulls))
            if len(batch.arms) and not (is_small and _may_be_raised(state)):
                return replace(state, arms=batch.arms, counts=batch.counts)
        if not _may_be_raised(state):  # open arms are at the top, where the larger mean settles a pair
            return Ended(incumbents, state)
        state = _with_units(replace(state, caution=state.caution * RAISE))


def certified(state: Open | Ended) -> Certificate:
    """Return what is certified so far; the epsilon of the problem once the race has ended, or less."""
    totals = state.last if isinstance(state, Ended) else state
    problem = totals.course.problem
    if not isinstance(state, Ended):
        return certificate_of(
            problem, totals.pulls, totals.means, squares=totals.known_squares, scale=totals.course.scale
        )
    at_end = Certificate.at_end(problem, state.selected, guarantee_by_cuts(problem))
    found = certificate_of(
        problem,
        totals.pulls,
        totals.means,
        squares=totals.known_squares,
        selected=state.selected,
        scale=totals.course.scale,
    )
    return found if found.is_answer else at_end


def _lowered(
    plan: Course, arms: IntArray, unit: FloatArray, pulls: IntArray, means: FloatArray
) -> FloatArray:
    """Return the means of some arms, lowered by the lead of the luckiest of all; see `_caution`."""
    found, caution = np.empty_like(means), _caution(plan.problem.n)
    for block in blocks(found.shape):
        if plan.evidence is None:
            spreads = np.sqrt(plan.problem.variances[arms[block]] / pulls[block])
        else:
            spreads = np.sqrt(unit[arms[block]] / pulls[block]) * plan.problem.epsilon
        np.subtract(means[block], caution * spreads, out=found[block])
    return found


def _may_be_raised(state: Open) -> bool:
    """Return whether some estimates of `unit` are below the largest value."""
    return bool((state.unit < state.course.unit).any())


def _units(state: Open, pulls: IntArray, means: FloatArray, squares: FloatArray) -> FloatArray:
    """Return estimates of `unit` for rewards within bounds: for a variance just above the estimated one."""
    problem = state.course.problem
    shares = (problem.shares(means) * pulls + 0.5 * PRIOR) / (pulls + PRIOR)
    variances = 4 * shares * (1 - shares)  # relative to the largest
    if problem.is_graded:
        powers = (squares * pulls + 0.5 * PRIOR) / (pulls + PRIOR)
        variances = np.minimum(variances, 4 * WASTE * np.maximum(powers - shares**2, 0.0))
    estimates = variances ** (1 - SMALLER) / 4 * (problem.width / problem.epsilon) ** 2
    found: FloatArray = np.minimum(state.caution * estimates, state.course.unit[0])
    return found


def _caution(n: int) -> float:
    """Return by how many standard errors means are lowered: about the lead of the luckiest of n arms."""
    return math.sqrt(2 * math.log(n))


def _doubts(state: Open, incumbents: IntArray) -> tuple[BoolArray, Batch]:
    """Return which outsiders are open and a batch to settle them, empty if all have reached the top."""
    plan = state.course
    gaps = _gaps(state, float(state.means[incumbents].min()))
    if plan.evidence is None:
        is_open = _open_outsiders(plan, gaps, state.rungs, incumbents)
    else:
        sums = plan.problem.shares(state.means) * state.pulls
        powers = state.squares * state.pulls if plan.problem.is_graded else None
        share = plan.problem.epsilon / plan.problem.width
        is_open = open_outsiders(plan.evidence.about(sums, state.pulls, powers), incumbents, share)
    if not is_open.any():
        return is_open, Batch(incumbents[:0], incumbents[:0])
    expected = _expected(state, gaps, incumbents)
    cost = state.unit if plan.problem.costs is None else state.unit * plan.problem.costs
    outsiders = np.flatnonzero(is_open)
    own, theirs, far = state.rungs[incumbents], state.rungs[outsiders], gaps[outsiders]
    inside, thresholds = aims(
        plan.rungs, Arms(expected, own, cost[incumbents]), Arms(far, theirs, cost, at=outsiders)
    )
    up, outside = climbing(far, theirs, thresholds)
    arms = np.concatenate([incumbents, outsiders[up]])
    climbers = _Climbers.of(state, arms, np.concatenate([own, theirs[up]]))
    counts = _towards(state, climbers, np.concatenate([inside, outside]))
    if counts.sum() < _least(state.n_rounds, float(state.n_pulls)):
        places = np.concatenate([np.arange(len(incumbents)), len(incumbents) + up])
        arms = np.concatenate([incumbents, outsiders])
        counts = _beyond(state, arms, gaps[arms], places, counts)
    return is_open, _in_order(arms, counts)


def _gaps(state: Open, lowest: float) -> FloatArray:
    """Return the gaps of all arms to the lowest incumbent's mean, in units of epsilon."""
    gaps = np.empty_like(state.means)
    for block in blocks(gaps.shape):
        part = np.subtract(state.means[block], lowest, out=gaps[block])
        part /= state.course.problem.epsilon
        np.minimum(part, FAR, out=part)
    return gaps


def _expected(state: Open, gaps: FloatArray, incumbents: IntArray) -> FloatArray:
    """Return the gaps that incumbents would have if the arms with the largest means took their places.

    Otherwise all arms would be measured against an incumbent that is about to be replaced. But if many arms
    are equally good, some lucky one is always ahead, and waiting for it would take hundreds of rounds. So
    this applies for a limited number of rounds and then fades.
    """
    patience = min(1.0, 2.0 - state.n_rounds / PATIENCE)
    if patience <= 0:
        return gaps[incumbents]
    cut = float(kth_largest(gaps, len(incumbents))[0])
    return np.maximum(gaps[incumbents], patience * cut)


def _pooled(state: Open, told: Moments) -> Open:
    """Return the state with a batch added."""
    plan, arms, counts = state.course, state.arms, state.counts
    pulls, pooled, rungs = state.pulls.copy(), state.means.copy(), state.rungs.copy()
    totals, before = pulls[arms] + counts, pooled[arms]
    shares = counts / totals
    after = before + (told.means - before) * shares
    pulls[arms], pooled[arms] = totals, after
    unit, squares = state.unit, state.squares
    if plan.problem.is_graded:
        fresh = plan.problem.mean_squares(counts, told.means, told.variances)
        squares = squares.copy()
        squares[arms] += (fresh - squares[arms]) * shares
    if plan.evidence is not None:
        unit = unit.copy()
        unit[arms] = _units(state, totals, after, squares[arms])
    lowered = state.lowered.copy()
    lowered[arms] = _lowered(plan, arms, unit, totals, after)
    rungs[arms] = reached = plan.reached(totals, unit, arms)
    high = np.flatnonzero(reached >= plan.rungs.top)
    excess = plan.beyond_top(arms[high], state.pulls[arms[high]], counts[high])
    return replace(
        state,
        unit=unit,
        pulls=pulls,
        means=pooled,
        squares=squares,
        lowered=lowered,
        rungs=rungs,
        n_pulls=state.n_pulls + int(counts.sum()),
        n_excess=state.n_excess + excess,
        n_rounds=state.n_rounds + 1,
    )


def _open_outsiders(plan: Course, gaps: FloatArray, rungs: IntArray, incumbents: IntArray) -> BoolArray:
    """Return which outsiders are not yet settled with all incumbents."""
    own, others = gaps[incumbents], gaps.copy()
    others[incumbents] = -np.inf
    furthest, every = plan.rungs.furthest, [*blocks(gaps.shape)]
    highest = max(float((others[block] + furthest[rungs[block]]).max()) for block in every)
    thresholds = plan.rungs.thresholds(own, rungs[incumbents], highest)
    is_open = np.empty(len(gaps), dtype=np.bool_)
    for block in every:
        np.greater(others[block], thresholds[rungs[block]], out=is_open[block])
    return is_open


@dataclass(frozen=True, eq=False)
class _Climbers:
    """Arms that may climb: the units of all arms, and the rungs and pulls of these."""

    course: Course
    unit: FloatArray
    arms: IntArray
    rungs: IntArray
    pulls: IntArray

    @classmethod
    def of(cls, state: Open, arms: IntArray, rungs: IntArray) -> "_Climbers":
        return cls(state.course, state.unit, arms, rungs, state.pulls[arms])

    def take(self, places: IntArray) -> "_Climbers":
        """Return some of the arms, by position."""
        arrays = (self.arms, self.rungs, self.pulls)
        return _Climbers(self.course, self.unit, *(array[places] for array in arrays))

    def to(self, aimed: IntArray) -> IntArray:
        """Return the pulls that bring arms to the rungs aimed at, none if those are not higher."""
        counts = np.zeros(len(aimed), dtype=np.int64)
        for block in blocks(counts.shape):
            rungs = self.rungs[block]
            wanted = self.course.pulls(np.maximum(aimed[block], rungs), self.unit, self.arms[block])
            missing = np.maximum(wanted - self.pulls[block], 0)
            counts[block] = np.where(aimed[block] > rungs, missing, 0)
        return counts

    def excess(self, aimed: IntArray, counts: IntArray) -> int:
        """Return how many pulls would be beyond the top: only arms that aim beyond it have any."""
        beyond = np.flatnonzero(aimed > self.course.rungs.top)
        return self.course.beyond_top(self.arms[beyond], self.pulls[beyond], counts[beyond])


def _in_order(arms: IntArray, counts: IntArray) -> Batch:
    """Return the batch of the arms that are pulled at all, in increasing order of the arms."""
    asked = np.flatnonzero(counts)
    arms, counts = arms[asked], counts[asked]
    if is_increasing(arms):
        return Batch(arms, counts)
    order = np.argsort(arms, kind="stable")
    return Batch(arms[order], counts[order])


def _beyond(state: Open, arms: IntArray, gaps: FloatArray, places: IntArray, climbed: IntArray) -> IntArray:
    """Return pulls of contenders beyond the wanted rungs, which some would reach with too small a batch.

    The best arms go beyond first. If even bringing all of them to the top would be too little, they climb
    exactly to the top: such a batch brings an arm to the top, and the pulls are all zero only if every
    contender has reached it.
    """
    top, least = state.course.rungs.top, _least(state.n_rounds, float(state.n_pulls))
    rungs = limit = state.rungs[arms]
    climbers = _Climbers.of(state, arms, rungs)
    counts = np.zeros(len(arms), dtype=np.int64)
    counts[places] = climbed
    while counts.sum() < least:
        if (limit >= top).all():
            return climbers.to(np.maximum(rungs, top))
        limit = limit + CLIMB
        counts = _with_more(counts, climbers.to(np.minimum(limit, top)), gaps, least)
    return counts


def _towards(state: Open, climbers: _Climbers, wanted: IntArray) -> IntArray:
    """Return pulls for some rungs towards the wanted ones, and for more as long as the batch is small."""
    plan, limit = state.course, climbers.rungs + CLIMB
    counts = climbers.to(np.minimum(wanted, limit))
    while True:
        if state.n_excess + climbers.excess(np.minimum(wanted, limit), counts) > plan.excess:
            wanted = np.minimum(wanted, np.maximum(plan.rungs.top, climbers.rungs))
            counts = climbers.to(np.minimum(wanted, limit))
        further = np.flatnonzero(wanted > limit)
        if counts.sum() >= SMALL * state.n_pulls or not len(further):
            return counts
        limit = limit + CLIMB
        counts[further] = climbers.take(further).to(np.minimum(wanted[further], limit[further]))


def _with_more(counts: IntArray, most: IntArray, gaps: FloatArray, least: float) -> IntArray:
    """Return the pulls, raised to `most` for the best arms first, until there are enough."""
    added = np.maximum(most - counts, 0)
    best_first = np.argsort(-gaps, kind="stable")
    before = np.cumsum(added[best_first]) - added[best_first]
    chosen = best_first[before < least - counts.sum()]
    raised = counts.copy()
    raised[chosen] += added[chosen]
    return raised


def _least(n_rounds: int, pulls: float) -> float:
    """Return the smallest size of a batch after this many rounds and pulls."""
    return max(1.0, LEAST * GROWTH ** min(n_rounds, MOST_GROWTH) * pulls)


def _n_rounds(problem: Problem) -> int:
    """Return the most rounds: in each, pulls grow by a growing fraction, or some arm reaches the top."""
    laid_out = course(problem)
    pulls, rounds = float(laid_out.first.sum()), 1
    while pulls < laid_out.worst_case_pulls:
        pulls += _least(rounds, pulls)
        rounds += 1
    return rounds + problem.n


RACE = lanes.strategy(
    "race",
    "Pulls each arm until it is clear, to within epsilon, whether it is above or below the cut between "
    "the m best and the rest. Arms close to the cut get the most pulls.",
    "docs/theory.md, section 33",
    init=lambda problem: init(course(problem)),
    ask=ask,
    tell=tell,
    guarantee=guarantee_by_cuts,
    worst_case_pulls=lambda problem: course(problem).worst_case_pulls,
    n_rounds=_n_rounds,
    worst_case_cost=lambda problem: course(problem).worst_case_cost,
    anytime=Anytime(certified, add, narrow),  # type: ignore[arg-type]
    cap_from=lambda state: state.course.worst_case_pulls,
    usual_share=0.355,  # measured; with fewer than a dozen arms the race by levels is shorter
)
