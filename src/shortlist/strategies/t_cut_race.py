"""A race for unknown variances with a limit for every mean: for many arms, in independent streams.

A whole run, of three arms:

>>> import numpy as np
>>> from shortlist.problem import Problem
>>> from shortlist.rewards import Gaussian
>>> problem = Problem(m=1, epsilon=0.5, delta=0.05, n=3, rewards=Gaussian())
>>> state = init(problem)                  # every arm awaits its first batch
>>> while not isinstance(state, Ended):
...     batch = ask(state)                 # which arms are pulled how often
...     state = tell(state, Moments(np.array([0.0, 1.0, 0.2])[batch.arms], np.ones(len(batch.arms))))
>>> state.selected, state.last.pulls.tolist()
(array([1]), [14, 29, 22])

Every arm has an upper and a lower limit of its mean, from the evidence of `certificates/paired_t.py`, in
which its rewards take the place of differences. The upper limits of the m best arms hold at all times, and
the lower limits of all others, except with probability delta. So no incumbent lies more than epsilon below
the m-th best once no upper limit of an outsider exceeds a lower limit of an incumbent by more
(docs/theory.md, section 43). Upper limits, on which most pulls are spent, do not depend on the number of
outsiders: a thousand arms take hardly more pulls each than ten.

One call of `tell`:

1. `_pooled` updates means, deviations and limits. Limits never get wider.
2. The m arms with the largest means are the *incumbents*; after `PATIENCE` rounds, means of arms with few
   pulls are lowered first. If all limits are apart, the run ends.
3. `_aims` looks for the cut, between incumbents and outsiders, that all limits are expected to reach with the
   fewest pulls. The arms whose limits have not reached it go on.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, kth_largest, largest
from shortlist.certificates import Certificate, Guarantee, Ledger, Share
from shortlist.certificates.assumptions import UNKNOWN_VARIANCES
from shortlist.certificates.certificate import all_rounded_up
from shortlist.certificates.paired_t import fewest_blocks, sufficient_ratios
from shortlist.problem import Problem
from shortlist.strategies import lanes
from shortlist.strategies.earlier_incumbents import remembered
from shortlist.strategies.paired_race import EXTRA, FURTHEST, LEAP, blocks_needed
from shortlist.strategies.protocol import Anytime, Batch, Done, Moments, Strategy, refuse_added

UPPER = 0.7  # the share of delta for upper limits
FIRST = 6  # pulls of the first batch, at least
GROWTH = 0.06  # a batch is at least this share of the pulls before
PATIENCE = 40  # rounds before means are lowered to choose incumbents; it takes as many more to do so in full
SHARES = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99])
"""Where cuts are tried, between the best outsider and the worst incumbent raised by epsilon."""


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await a batch each.

    Attributes
    ----------
    problem
        The question.
    pulls, means, deviations
        Per arm, so far; deviations are sums of squared deviations from the mean.
    uppers, lowers
        Limits of the means.
    incumbents
        The m arms that look best.
    arms, counts
        The batch awaited.
    earlier
        Sets of earlier incumbents, for which more may be certified than for the present ones.
    n_rounds
        The number of batches told.
    patience
        The number of rounds before means are lowered to choose incumbents.
    """

    problem: Problem
    pulls: IntArray
    means: FloatArray
    deviations: FloatArray
    uppers: FloatArray
    lowers: FloatArray
    incumbents: IntArray
    arms: IntArray
    counts: IntArray
    earlier: tuple[IntArray, ...] = ()
    n_rounds: int = 0
    patience: float = PATIENCE

    def of_outsiders(self, values: FloatArray) -> FloatArray:
        """Return values by arm, with minus infinity for the incumbents."""
        found = values.copy()
        found[self.incumbents] = -np.inf
        return found


@dataclass(frozen=True, eq=False)
class Ended(Done):
    """No limits overlap by more than epsilon; `last` is the state in which the run ended."""

    last: Open


def thresholds(problem: Problem) -> tuple[float, float]:
    """Return what the logarithms of evidence must reach, for an upper and for a lower limit."""
    upper = math.log(problem.m / (UPPER * problem.delta))
    lower = math.log((problem.n - problem.m) / ((1 - UPPER) * problem.delta))
    return upper, lower


def init(problem: Problem) -> Open:
    """Return the first state: every arm awaits its first batch."""
    nothing, zeros = np.zeros(problem.n, dtype=np.int64), np.zeros(problem.n)
    counts = np.full(problem.n, max(FIRST, fewest_blocks(thresholds(problem)[0])))
    limits = zeros + np.inf, zeros - np.inf
    return Open(problem, nothing, zeros, zeros, *limits, nothing[:0], problem.arms, counts)


def ask(state: Open) -> Batch:
    """Return the batch awaited."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Open | Ended:
    """Return the next state: arms whose limits are not apart go on, or all are."""
    if told.variances is None:
        raise TypeError("sample variances must be told as well")
    return _decided(_pooled(state, told.means, told.variances))


def _pooled(state: Open, means: FloatArray, variances: FloatArray) -> Open:
    """Return the state with the rewards of the batch awaited."""
    arms, counts = state.arms, state.counts
    pulls, pooled, deviations = state.pulls.copy(), state.means.copy(), state.deviations.copy()
    uppers, lowers = state.uppers.copy(), state.lowers.copy()
    totals, shifts = pulls[arms] + counts, means - pooled[arms]
    deviations[arms] += variances * (counts - 1) + shifts**2 * (pulls[arms] * counts / totals)
    pooled[arms] += shifts * (counts / totals)
    pulls[arms] = totals
    reaches = limits(state.problem, totals, deviations[arms])
    uppers[arms] = np.minimum(uppers[arms], pooled[arms] + reaches[0])
    lowers[arms] = np.maximum(lowers[arms], pooled[arms] - reaches[1])
    return replace(
        state,
        pulls=pulls,
        means=pooled,
        deviations=deviations,
        uppers=uppers,
        lowers=lowers,
        n_rounds=state.n_rounds + 1,
    )


def limits(problem: Problem, pulls: IntArray, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how far the upper limits of arms lie above, and the lower ones below, their sample means."""
    ratios = np.stack([sufficient_ratios(pulls, threshold) for threshold in thresholds(problem)])
    with np.errstate(invalid="ignore"):  # equal rewards, too few to be enough evidence
        upper, lower = np.where(np.isinf(ratios), np.inf, np.sqrt(ratios * deviations / pulls))
    return upper, lower


def _decided(state: Open) -> Open | Ended:
    """Return the state with its next batch, or the end of the race."""
    best = np.sort(largest(_lowered(state), state.problem.m))
    state = replace(state, incumbents=best, earlier=remembered(state.earlier, state.incumbents, best))
    uppers = state.of_outsiders(state.uppers)
    if uppers.max() <= state.lowers[state.incumbents].min() + state.problem.epsilon:
        return Ended(state.incumbents, state)
    arms, ends = _aims(state, uppers)
    pulls = state.pulls[arms]
    targets = np.maximum(np.minimum(LEAP * ends, FURTHEST * pulls), (1 + GROWTH) * pulls)
    counts = np.maximum(np.ceil(targets).astype(np.int64) - pulls, 2)  # sample variances need two
    return replace(state, arms=arms, counts=counts)


def _lowered(state: Open) -> FloatArray:
    """Return the means; after many rounds, less the lead that lucky arms among the rivals would have.

    If very many arms are equally good, some lucky arm with few pulls always has the largest mean. One after
    the other would lead for a round, until more pulls show that it is no better than the others. The m
    luckiest of k equal arms lead by about sqrt(2 ln(k / m)) standard errors.
    """
    caution, m = min(1.0, state.n_rounds / state.patience - 1.0), state.problem.m
    if caution <= 0:
        return state.means
    floor = float(kth_largest(state.means, m)[0])
    n_rivals = np.count_nonzero(state.means > floor - state.problem.epsilon) - m
    if n_rivals <= m:
        return state.means
    errors = np.sqrt(state.deviations / (state.pulls - 1) / state.pulls)
    lowered: FloatArray = state.means - caution * math.sqrt(2 * math.log(n_rivals / m)) * errors
    return lowered


def _aims(state: Open, uppers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the arms that go on, and how many pulls they will probably need in all.

    Of all cuts that are tried, it is the one which the limits of all arms will probably reach with the lowest
    cost. `uppers` are the upper limits of outsiders; those that have reached all cuts are left out at once.
    An outsider that looks better than an incumbent was lucky: it is taken to be as good as the incumbent.
    """
    problem, inside = state.problem, state.incumbents
    floor = float(state.means[inside].min())
    ceiling = min(floor, float(state.of_outsiders(state.means).max()))
    cuts = ceiling + SHARES * (floor + problem.epsilon - ceiling)
    is_doubtful = uppers > cuts[0]
    is_doubtful[inside] = True
    arms = np.flatnonzero(is_doubtful)
    doubtful = _Doubtful.of(state, arms, floor)
    best, found = math.inf, (inside, np.zeros(len(inside)))
    for cut in cuts.tolist():
        places, ends = doubtful.needed(cut, cut - problem.epsilon)
        more = ends - doubtful.pulls[places]
        cost = float(more.sum() if problem.costs is None else problem.costs[arms[places]] @ more)
        if cost < best:
            best, found = cost, (arms[places], ends)
    return found


@dataclass(frozen=True, eq=False)
class _Doubtful:
    """The arms that may go on, in order: which of them are incumbents, and what the forecast depends on."""

    is_inside: BoolArray
    pulls: IntArray
    means: FloatArray
    variances: FloatArray
    limits: FloatArray
    thresholds: FloatArray

    @classmethod
    def of(cls, state: Open, arms: IntArray, floor: float) -> "_Doubtful":
        upper, lower = thresholds(state.problem)
        is_inside = np.zeros(len(arms), dtype=np.bool_)
        is_inside[np.searchsorted(arms, state.incumbents)] = True
        pulls, means = state.pulls[arms], state.means[arms]
        means = np.where(is_inside, means, np.minimum(means, floor))
        variances = state.deviations[arms] / np.maximum(pulls - 1, 1)
        limits = np.where(is_inside, state.lowers[arms], state.uppers[arms])
        return cls(is_inside, pulls, means, variances, limits, np.where(is_inside, lower, upper))

    def needed(self, cut: float, below: float) -> tuple[IntArray, FloatArray]:
        """Return the positions of arms whose limits have not reached a cut, and their probable pulls.

        Upper limits of outsiders must reach the cut, lower limits of incumbents `below`.
        """
        is_open = np.where(self.is_inside, self.limits < below, self.limits > cut)
        places = np.flatnonzero(is_open)
        means = self.means[places]
        gaps = np.where(self.is_inside[places], means - below, cut - means)
        ends = blocks_needed(self.thresholds[places], self.variances[places], np.maximum(gaps, 0.0))
        return places, np.maximum(ends, (1 + GROWTH / 2) * self.pulls[places])


def pays(problem: Problem) -> bool:
    """Return whether limits are expected to take fewer pulls than pairs (`paired_race`): for many arms.

    It is a forecast for arms of equal variances, all but the best with equal means. A pair takes as many
    pulls of each arm as twice the variance asks for, and more if there are several incumbents, of which the
    worst decides; limits share the gap of an outsider and an incumbent.
    """
    upper, lower = (threshold + EXTRA for threshold in thresholds(problem))
    n_outside = problem.n - problem.m
    pairs = 2 * problem.n * (math.log(problem.m * n_outside / problem.delta) + EXTRA) * problem.m**0.25
    limits = n_outside * upper / SHARES**2 + problem.m * lower / (1 - SHARES) ** 2
    return bool(limits.min() < pairs)


# --- what is certified at any moment ----------------------------------------------------------------------


def certified(state: Open | Ended) -> Certificate:
    """Return what is certified by the rewards so far, for the arms that look best.

    Before the end, for those that looked best earlier if more is certified for them.
    """
    last = state.last if isinstance(state, Ended) else state
    if not len(last.incumbents):
        return Certificate.of_nothing(last.problem)
    sets = [last.incumbents, *(last.earlier if state is last else ())]
    found = (_certified_for(replace(last, incumbents=chosen)) for chosen in sets)
    return min(found, key=lambda one: one.epsilon)


def _certified_for(state: Open) -> Certificate:
    """Return what is certified for the incumbents."""
    problem = state.problem
    uppers, inside = state.of_outsiders(state.uppers), state.incumbents
    exact = np.maximum(uppers.max() - state.lowers[inside], 0.0)
    own = all_rounded_up(exact)
    own = np.where(exact <= problem.epsilon, np.minimum(own, problem.epsilon), own)
    is_out = state.uppers <= state.lowers[inside].min() + problem.epsilon
    return Certificate.of_epsilons(
        problem, inside, own, is_out=is_out, merits=state.means, promise=guarantee(problem)
    )


def narrow(state: Open | Ended, epsilon: float) -> Open | Ended:
    """Return the state of a run that goes on with a smaller epsilon; an open batch stays as it is."""
    last = state.last if isinstance(state, Ended) else state
    finer = replace(last, problem=last.problem.changed(epsilon=epsilon))
    return _decided(finer) if isinstance(state, Ended) else finer


def guarantee(problem: Problem) -> Guarantee:
    """Return the guarantee of whoever stops when the limits are apart."""
    upper = "the true mean of one of the m best arms exceeds its upper limit at some time"
    lower = "the true mean of another arm is below its lower limit at some time"
    shares = Share(upper, UPPER * problem.delta), Share(lower, (1 - UPPER) * problem.delta)
    source = "docs/theory.md, section 43"
    return Guarantee.of(problem, source, Ledger(shares), assumptions=UNKNOWN_VARIANCES)


def _strategy(patience: float) -> Strategy[Any]:
    return lanes.strategy(
        "t-cut-race",
        "For many arms, without a pilot: pulls the arms whose confidence limits have not yet cleared the cut "
        "between the m best and the rest.",
        "docs/theory.md, section 43",
        init=lambda problem: replace(init(problem), patience=patience),
        ask=ask,
        tell=tell,
        guarantee=guarantee,
        worst_case_pulls=lambda _: None,
        n_rounds=lambda _: None,
        anytime=Anytime(certified, refuse_added, narrow),  # type: ignore[arg-type]
        needs_variances=True,
    )


T_CUT_RACE = _strategy(PATIENCE)
T_CUT_RACE_0_2 = _strategy(math.inf)
"""The rule of version 0.2.0: the arms with the largest means are incumbents, however few pulls they have."""
