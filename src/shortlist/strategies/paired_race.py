"""The paired race: finds the m best arms from differences within blocks, whose variances are unknown.

In a block all arms are measured under the same conditions: with the same random numbers, in the same minute,
on the same field. A whole run, in which three arms share a large disturbance of each block:

>>> import numpy as np
>>> from shortlist.items import Blocks
>>> from shortlist.problem import Problem
>>> from shortlist.rewards import Gaussian
>>> problem = Problem(m=1, epsilon=0.5, delta=0.05, n=3, rewards=Gaussian(), items=Blocks())
>>> day = np.arange(1000)
>>> rewards = 100 * np.sin(day) + np.array([np.sin(2 * day), 1 + np.sin(3 * day), np.sin(5 * day)])
>>> state = init(problem)                  # every arm awaits its first blocks
>>> while not isinstance(state, Ended):
...     batch = ask(state)                 # which arms are measured in how many of the next blocks
...     cells = [rewards[arm, state.seen[arm]:][:count] for arm, count in zip(batch.arms, batch.counts)]
...     state = tell(state, Moments(np.array([]), scores=np.concatenate(cells)))
>>> state.selected, int(state.last.seen.sum())
(array([1]), 26)

Decisions are made when all arms of a batch have reached their marks, fixed numbers of blocks. So they depend
on the rewards alone, not on who measured what when. One call of `tell`:

1. The m arms that look best are the *incumbents*; arms are compared in the same blocks.
2. For each pair of an incumbent and an outsider, `_with_pairs` finds by how much the outsider may still be
   better (`certificates/paired_t.py`). A pair is settled once that is at most epsilon, at any number of
   blocks: it stays so. If every pair is settled, the run ends.
3. Of each open pair, the arm that was measured in fewer blocks goes on to a later mark.

In lockstep, where a block cannot be measured later, all arms go on to the next mark together. An arm stops if
all incumbents are certified to be better: then it is none of the m best, whoever is an incumbent later.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, all_but, largest
from shortlist.certificates import Certificate, Guarantee, Ledger, Share
from shortlist.certificates.assumptions import PAIRED
from shortlist.certificates.certificate import all_rounded_up
from shortlist.certificates.paired_t import GAINS, fewest_blocks, sufficient_ratios
from shortlist.items import MOST_ITEMS, Blocks
from shortlist.problem import Problem
from shortlist.strategies import lanes
from shortlist.strategies.earlier_incumbents import remembered
from shortlist.strategies.marks import marks
from shortlist.strategies.protocol import Anytime, Batch, Done, Moments, refuse_added

LEAP = 0.7  # a batch brings arms to this share of the blocks that they are expected to need,
FURTHEST = 1.5  # but to no more than this multiple of the blocks that they have seen; at least to a mark
EXTRA = 1.0  # what the lower bound of one-sided evidence costs, in its logarithm
EQUAL = 50  # differences that are all equal count only from so many on: Gaussian ones never are
DOUBTFUL = 10  # equal differences are worth a warning
_ROUNDING = (
    8 * np.finfo(np.float64).eps
)  # differences of rewards of size 1 may vary by this if they are equal
_AT_ONCE = 1 << 20  # numbers in working arrays
_MARKS = marks(MOST_ITEMS)


@dataclass(frozen=True, eq=False)
class Pairs:
    """What is known about one incumbent and every other arm.

    Attributes
    ----------
    seen
        For each other arm, the number of blocks that count.
    origins, sums, squares
        The first difference, and the sum and the sum of squares of all differences from it.
    epsilons
        By how much the other arm may be better: the least that was certified after any number of blocks. It
        is negative if the incumbent is certified to be better by so much.
    """

    seen: IntArray
    origins: FloatArray
    sums: FloatArray
    squares: FloatArray
    epsilons: FloatArray

    @classmethod
    def none(cls, n: int) -> "Pairs":
        """Return what is known before the first block."""
        zeros = np.zeros(n)
        return cls(np.zeros(n, dtype=np.int64), zeros, zeros, zeros, np.full(n, np.inf))

    def copy(self) -> "Pairs":
        """Return an independent copy."""
        return Pairs(*(getattr(self, name).copy() for name in self.__dataclass_fields__))

    @property
    def means(self) -> FloatArray:
        """The mean differences."""
        return self.origins + self.sums / np.maximum(self.seen, 1)

    @property
    def variances(self) -> FloatArray:
        """The sample variances of the differences."""
        deviations = self.squares - self.sums**2 / np.maximum(self.seen, 1)
        return np.maximum(deviations, 0.0) / np.maximum(self.seen - 1, 1)


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await the rewards of their next blocks.

    Attributes
    ----------
    problem
        The question.
    threshold
        What the logarithm of a pair's evidence must reach.
    scores
        By arm and block, larger being better; 0 where not measured. Columns are added when needed.
    seen
        For each arm, the number of its blocks.
    pairs
        The evidence, by incumbent.
    incumbents
        The m arms that look best.
    arms, counts
        The batch awaited.
    least
        The fewest blocks of a batch, for each arm.
    earlier
        Sets of earlier incumbents, for which more may be certified than for the present ones.
    """

    problem: Problem
    threshold: float
    scores: FloatArray
    seen: IntArray
    pairs: dict[int, Pairs]
    incumbents: IntArray
    arms: IntArray
    counts: IntArray
    least: int = 1
    earlier: tuple[IntArray, ...] = ()

    @property
    def outsiders(self) -> IntArray:
        """All arms but the incumbents."""
        return all_but(self.problem.n, self.incumbents)

    @property
    def is_out(self) -> BoolArray:
        """In lockstep: which arms have stopped, since they are certified to be none of the m best."""
        found: BoolArray = self.problem.is_lockstep & (self.seen < self.seen.max())
        return found


@dataclass(frozen=True, eq=False)
class Ended(Done):
    """All pairs are settled; `last` is the state in which the run ended."""

    last: Open


def init(problem: Problem) -> Open:
    """Return the first state: every arm awaits as many blocks as the clearest answer would need."""
    threshold = threshold_of(problem, problem.delta)
    nothing = np.zeros(problem.n, dtype=np.int64)
    counts = np.full(problem.n, _mark_from(fewest_blocks(threshold)))
    scores = np.empty((problem.n, 0))
    return Open(problem, threshold, scores, nothing, {}, nothing[:0], problem.arms, counts)


def threshold_of(problem: Problem, delta: float) -> float:
    """Return what the logarithm of a pair's evidence must reach."""
    return math.log(problem.m * (problem.n - problem.m) / delta)


def _mark_from(position: float) -> int:
    return int(_MARKS[min(int(np.searchsorted(_MARKS, position)), len(_MARKS) - 1)])


def ask(state: Open) -> Batch:
    """Return the batch awaited."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Open | Ended:
    """Return the state after the rewards of a batch, arm after arm, each in the order of blocks."""
    if told.scores is None:
        raise ValueError("blocks need the reward of each block")
    state = with_scores(state, told.scores)
    return decided(state, estimates(state))


def with_scores(state: Open, new: FloatArray) -> Open:
    """Return the state with the rewards of the batch awaited."""
    arms, counts = state.arms, state.counts
    width, ends = int((state.seen[arms] + counts).max()), np.cumsum(counts)
    scores = np.zeros((state.problem.n, max(width, state.scores.shape[1])))
    scores[:, : state.scores.shape[1]] = state.scores
    rows, firsts = np.repeat(arms, counts), np.repeat(state.seen[arms] - (ends - counts), counts)
    scores[rows, firsts + np.arange(len(new))] = new
    seen = state.seen.copy()
    seen[arms] += counts
    return replace(state, scores=scores, seen=seen)


def estimates(state: Open) -> FloatArray:
    """Return estimates of the means; each arm is compared with the furthest arms in the same blocks."""
    top = int(state.seen.max())
    level = np.concatenate([[0.0], np.cumsum(state.scores[state.seen == top].mean(axis=0))])
    found: FloatArray = (state.scores.sum(axis=1) - level[state.seen]) / state.seen + level[top] / top
    return found


def decided(state: Open, means: FloatArray) -> Open | Ended:
    """Return the state with its next batch, or the end; `means` are estimates for all arms."""
    best = np.sort(largest(np.where(state.is_out, -np.inf, means), state.problem.m))
    earlier = remembered(state.earlier, state.incumbents, best)
    state = _with_pairs(replace(state, incumbents=best, earlier=earlier))
    is_open = open_pairs(state)
    if not is_open.any():
        return Ended(state.incumbents, state)
    if state.problem.is_lockstep:
        return _advanced_together(state)
    return _advanced(state, is_open, forecast_ends(state, is_open, means))


def _with_pairs(state: Open) -> Open:
    """Return the state with the evidence of open pairs up to their common blocks."""
    pairs = dict(state.pairs)
    for arm in state.incumbents.tolist():
        known, others = pairs.get(arm) or Pairs.none(state.problem.n), state.outsiders
        own = known.epsilons[others]
        others = others[own >= 0 if state.problem.is_lockstep else own > state.problem.epsilon]
        pairs[arm] = _extended(state, arm, others, known)
    return replace(state, pairs=pairs)


def with_all_pairs(state: Open) -> Open:
    """Return the state with the evidence of settled pairs, too, up to their common blocks."""
    pairs = {
        arm: _extended(state, arm, state.outsiders, state.pairs.get(arm) or Pairs.none(state.problem.n))
        for arm in state.incumbents.tolist()
    }
    return replace(state, pairs=state.pairs | pairs)


def _extended(state: Open, arm: int, others: IntArray, known: Pairs) -> Pairs:
    """Return what is known about an incumbent and other arms, up to their common blocks."""
    found, ends = known.copy(), np.minimum(state.seen[arm], state.seen[others])
    for start, end in np.unique(np.stack([found.seen[others], ends]), axis=1).T.tolist():
        if start >= end:
            continue
        n_blocks = np.arange(start + 1, end + 1)
        ratios = sufficient_ratios(n_blocks, state.threshold)
        group = others[(found.seen[others] == start) & (ends == end)]
        for chunk in np.array_split(group, -(-len(group) * (end - start) // _AT_ONCE)):
            differences = state.scores[arm, start:end] - state.scores[chunk, start:end]
            if start == 0:
                found.origins[chunk] = differences[:, 0]
            differences -= found.origins[chunk, None]
            sums = found.sums[chunk, None] + np.cumsum(differences, axis=1)
            squares = found.squares[chunk, None] + np.cumsum(differences**2, axis=1)
            deviations = np.maximum(squares - sums**2 / n_blocks, 0.0)
            with np.errstate(invalid="ignore"):  # equal differences, too few to be enough evidence
                leads = np.sqrt(ratios * deviations / n_blocks)
            is_nothing = np.isinf(ratios) | ((deviations == 0) & (n_blocks < EQUAL))
            leads = np.where(is_nothing, np.inf, leads) - (found.origins[chunk, None] + sums / n_blocks)
            found.epsilons[chunk] = np.minimum(found.epsilons[chunk], leads.min(axis=1))
            found.sums[chunk], found.squares[chunk], found.seen[chunk] = sums[:, -1], squares[:, -1], end
    return found


def open_pairs(state: Open) -> BoolArray:
    """Return which pairs are open; rows are incumbents, columns all arms."""
    epsilons = np.array([state.pairs[arm].epsilons for arm in state.incumbents.tolist()])
    is_open: BoolArray = ~(epsilons <= state.problem.epsilon)
    is_open[:, state.incumbents] = False
    is_open[:, state.is_out] = False
    return is_open


def forecast_ends(state: Open, is_open: BoolArray, means: FloatArray) -> FloatArray:
    """Return for each arm after how many blocks it is expected to be settled; 0 if it is already."""
    ends = np.zeros(is_open.shape)
    for place, arm in enumerate(state.incumbents.tolist()):
        others = np.flatnonzero(is_open[place])
        pairs = state.pairs[arm]
        gaps = np.maximum(means[arm] - means[others] + state.problem.epsilon, 0.0)
        ends[place, others] = blocks_needed(state.threshold, pairs.variances[others], gaps)
    found: FloatArray = ends.max(axis=0)
    found[state.incumbents] = ends.max(axis=1)
    return found


def blocks_needed(threshold: float | FloatArray, variances: FloatArray, gaps: FloatArray) -> FloatArray:
    """Return about how many blocks settle a pair whose differences have these variances and means."""
    with np.errstate(divide="ignore", over="ignore"):
        growth = np.log1p(gaps**2 / np.maximum(variances, 1e-300))
        found = 2 * (threshold + EXTRA) / np.maximum(growth, 1e-12)
        for _ in range(2):
            found = (2 * (threshold + EXTRA) + np.log1p(found * GAINS[0])) / np.maximum(growth, 1e-12)
    return np.minimum(found, float(_MARKS[-1]))


def likely_ends(state: Open) -> FloatArray:
    """Return for each arm how many blocks it will probably have in the end."""
    if not len(state.incumbents):
        return np.full(state.problem.n, 1.5 * state.counts[0])
    found = forecast_ends(state, open_pairs(state), estimates(state))
    if state.problem.is_lockstep:
        found[~state.is_out] = found.max()
    return np.maximum(found, state.seen)


def _advanced(state: Open, is_open: BoolArray, ends: FloatArray) -> Open:
    """Return the state in which the arms of open pairs that are behind are about to go on."""
    seen = state.seen
    is_moving = np.zeros(state.problem.n, dtype=np.bool_)
    for arm, is_open_with in zip(state.incumbents.tolist(), is_open, strict=True):
        others = np.flatnonzero(is_open_with)
        is_moving[others[seen[others] <= seen[arm]]] = True
        is_moving[arm] |= bool((seen[others] >= seen[arm]).any())
    arms = np.flatnonzero(is_moving & (seen + state.least <= _MARKS[-1]))
    targets = np.minimum(LEAP * ends[arms], FURTHEST * seen[arms])
    places = np.searchsorted(_MARKS, np.fmax(seen[arms] + state.least, targets))
    following = _MARKS[np.minimum(places, len(_MARKS) - 1)]
    return replace(state, arms=arms, counts=following - seen[arms])


def _advanced_together(state: Open) -> Open:
    """Return the state in which all arms that may be among the m best are about to go on, in lockstep."""
    is_worse = np.all([state.pairs[arm].epsilons < 0 for arm in state.incumbents.tolist()], axis=0)
    is_worse[state.incumbents] = False
    arms = np.flatnonzero(~(state.is_out | is_worse))
    top = int(state.seen.max())
    return replace(state, arms=arms, counts=np.full(len(arms), _mark_from(top + 1) - top))


# --- what is certified at any moment ----------------------------------------------------------------------


def certified(state: Open | Ended) -> Certificate:
    """Return what is certified by the rewards so far."""
    return best_certificate(state, estimates, guarantee)


def best_certificate(
    state: Open | Ended,
    estimated: Callable[[Open], FloatArray],
    promised: Callable[[Problem], Guarantee],
) -> Certificate:
    """Return what is certified for the arms that look best.

    Before the end, for those that looked best earlier if more is certified for them: the theorem of section
    41 is about all sets of m arms.
    """
    last = state.last if isinstance(state, Ended) else state
    if not len(last.incumbents):
        return Certificate.of_nothing(last.problem)
    sets = [last.incumbents, *(last.earlier if state is last else ())]
    means, promise = estimated(last), promised(last.problem)
    found = (with_all_pairs(replace(last, incumbents=chosen)) for chosen in sets)
    return min((certificate_of_pairs(one, means, promise) for one in found), key=lambda one: one.epsilon)


def certificate_of_table(problem: Problem, scores: FloatArray, seen: IntArray) -> Certificate:
    """Return what rewards in blocks certify that exist already.

    There is a row for each arm and a column for each block; `seen` has the number of blocks of each arm,
    which are the first ones.
    """
    problem = problem.changed(items=Blocks())  # how arms were measured does not matter
    if problem.m == problem.n:
        return Certificate.at_end(problem, problem.arms, guarantee(problem))
    if not seen.all():
        missing = problem.name(int(np.argmin(seen)))
        return Certificate.of_nothing(problem, f"Nothing is certified: {missing} was not measured at all.")
    is_seen = np.arange(scores.shape[1]) < seen[:, None]
    merits = np.where(is_seen, problem.merits(scores), 0.0)
    state = replace(init(problem), scores=merits, seen=seen)
    return certified(replace(state, incumbents=np.sort(largest(estimates(state), problem.m))))


def certificate_of_pairs(state: Open, means: FloatArray, promise: Guarantee) -> Certificate:
    """Return what the evidence of pairs certifies."""
    problem, others = state.problem, state.outsiders
    others = others[~state.is_out[others]]
    pairs = [state.pairs[arm] for arm in state.incumbents.tolist()]
    own = all_rounded_up(np.array([known.epsilons[others].max(initial=0.0) for known in pairs]))
    is_answer = not open_pairs(state).any()
    own = np.minimum(own, problem.epsilon) if is_answer else own  # it is rounded up
    is_out = np.all(~open_pairs(state), axis=0)
    why_void, notes = _equal_differences(state)
    if why_void:
        return Certificate.of_nothing(problem, why_void, notes, is_void=True)
    return Certificate.of_epsilons(
        problem, state.incumbents, own, is_out=is_out, merits=means, promise=promise, notes=notes
    )


def _equal_differences(state: Open) -> tuple[str, tuple[str, ...]]:
    """Return why nothing is guaranteed, if equal differences settle a pair; and a warning about such a pair.

    Differences that are equal apart from rounding errors are not Gaussian (section 41).
    """
    sizes = np.abs(state.scores).max(axis=1, initial=0.0)
    found = []
    for arm in state.incumbents.tolist():
        known = state.pairs[arm]
        is_equal = np.sqrt(known.variances) <= _ROUNDING * np.maximum(sizes, sizes[arm])
        is_equal &= (known.seen >= DOUBTFUL) | ((known.seen > 1) & np.isfinite(known.epsilons))
        found += [(known, arm, other) for other in state.outsiders[is_equal[state.outsiders]].tolist()]
    if not found:
        return "", ()
    known, arm, other = max(found, key=lambda one: math.isfinite(one[0].epsilons[one[2]]))
    first, second = state.problem.name(arm), state.problem.name(other)
    what = "blocks" if state.problem.has_blocks else "pulls"
    said = f"{first} and {second} differ by exactly the same amount in all {known.seen[other]:,} {what}"
    check = (
        f"Equal differences usually mean that rewards are cached or badly seeded. Check that rewards depend "
        f"on the seed, and that they are not rounded. If {first} and {second} are the same, remove one of "
        f"them."
    )
    if math.isinf(known.epsilons[other]):
        return "", (f"Warning: {said}. {check}",)
    return f"Nothing is guaranteed: {said}. Gaussian differences are never all equal.", (f"Warning: {check}",)


def narrow(state: Open | Ended, epsilon: float) -> Open | Ended:
    """Return the state of a run that goes on with a smaller epsilon; an open batch stays as it is."""
    last = state.last if isinstance(state, Ended) else state
    finer = replace(last, problem=last.problem.changed(epsilon=epsilon))
    return decided(finer, estimates(finer)) if isinstance(state, Ended) else finer


def guarantee(problem: Problem) -> Guarantee:
    """Return the guarantee of whoever stops when all pairs are settled.

    The lead of a pair looks much smaller than it is if the e-value against it reaches m (n - m)/delta.
    """
    event = (
        "for some pair of a best arm and another arm, the lead of the best arm looks much smaller than it is"
    )
    ledger = Ledger((Share(event, problem.delta),))
    return Guarantee.of(problem, "docs/theory.md, section 41", ledger, assumptions=PAIRED)


def unfit(problem: Problem) -> str:
    """Return why the strategy cannot be used for a problem; empty if it can."""
    is_fit = problem.has_blocks and not problem.is_bounded
    return "" if is_fit else "it is for Gaussian rewards in blocks"


PAIRED_RACE = lanes.strategy(
    "paired-race",
    "Measures all arms in the same blocks and compares them block by block. Settled arms are not "
    "measured any more.",
    "docs/theory.md, section 41",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=guarantee,
    worst_case_pulls=lambda _: None,
    n_rounds=lambda _: None,
    unfit=unfit,
    anytime=Anytime(certified, refuse_added, narrow, may_be_void=True),  # type: ignore[arg-type]
    likely_ends=likely_ends,
    estimates=lambda state: estimates(state.last if isinstance(state, Ended) else state),
)
