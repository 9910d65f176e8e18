"""The paired race for independent streams: pull j of every arm forms block j; for few arms.

Only the mean and the sample variance of each batch are told, but pairs need single rewards. For Gaussian
rewards the deviations from the mean, divided by the sample standard deviation, are distributed uniformly over
a sphere, independently of both, so others of the same distribution serve as well: `restored` draws them. A
run with them is a run with rewards, and all that is said of blocks holds (docs/theory.md, section 44).

The numbers come from a hash of the arm's rank, the pull, and the mean and variance told. So a run can be
replayed, and they differ from run to run, as the proof requires: if they were the same in all runs, unlucky
numbers could make most runs wrong.
"""

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Certificate, Guarantee
from shortlist.certificates.assumptions import UNKNOWN_VARIANCES
from shortlist.problem import Problem
from shortlist.strategies import lanes, paired_race
from shortlist.strategies.paired_race import Ended, Open
from shortlist.strategies.protocol import Anytime, Moments, refuse_added

Keys: TypeAlias = NDArray[np.uint64]

_STEP, _MIXERS = 0x9E3779B97F4A7C15, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of a 64-bit counter hash


def init(problem: Problem) -> Open:
    """Return the first state: every arm awaits its first pulls."""
    return replace(paired_race.init(problem), least=2)  # a single pull has no sample variance


def tell(state: Open, told: Moments) -> Open | Ended:
    """Return the state after the means and variances of a batch."""
    if told.variances is None:
        raise TypeError("sample variances must be told as well")
    ranks = state.problem.ranks
    keys = state.arms if ranks is None else ranks[state.arms]
    rewards = restored(keys, state.seen[state.arms], state.counts, told)
    state = paired_race.with_scores(state, rewards)
    return paired_race.decided(state, _means(state))


def _means(state: Open) -> FloatArray:
    found: FloatArray = state.scores.sum(axis=1) / state.seen
    return found


def restored(arms: IntArray, first_pulls: IntArray, counts: IntArray, told: Moments) -> FloatArray:
    """Return rewards with the means and sample variances told, arm after arm."""
    ends = np.cumsum(counts)
    starts, variances = ends - counts, np.zeros(len(arms)) if told.variances is None else told.variances
    keys = mixed((arms.astype(np.uint64) << np.uint64(40)) + first_pulls.astype(np.uint64))
    for moments in (told.means, variances):  # significands: a power of two as the unit does not matter
        keys = mixed(keys ^ np.frexp(moments)[0].view(np.uint64))
    noise = normals(np.repeat(keys, counts), np.arange(ends[-1]) - np.repeat(starts, counts))
    noise -= np.repeat(np.add.reduceat(noise, starts) / counts, counts)
    scales = np.sqrt(variances * (counts - 1) / np.add.reduceat(noise**2, starts))
    found: FloatArray = np.repeat(told.means, counts) + np.repeat(scales, counts) * noise
    return found


def normals(keys: Keys, places: IntArray) -> FloatArray:
    """Return a number for each place of a key, as if drawn from the standard normal distribution."""
    from scipy.special import ndtri  # noqa: PLC0415  (scipy is slow to import)

    with np.errstate(over="ignore"):
        drawn = mixed(keys + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP))
    found: FloatArray = ndtri(((drawn >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)
    return found


def mixed(keys: Keys) -> Keys:
    """Return a hash of 64-bit keys."""
    with np.errstate(over="ignore"):
        for shift, odd in zip((30, 27), _MIXERS, strict=True):
            keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(odd)
    return keys ^ (keys >> np.uint64(31))


def certified(state: Open | Ended) -> Certificate:
    """Return what is certified by the rewards so far."""
    return paired_race.best_certificate(state, _means, guarantee)


def narrow(state: Open | Ended, epsilon: float) -> Open | Ended:
    """Return the state of a run that goes on with a smaller epsilon; an open batch stays as it is."""
    last = state.last if isinstance(state, Ended) else state
    finer = replace(last, problem=last.problem.changed(epsilon=epsilon))
    return paired_race.decided(finer, _means(finer)) if isinstance(state, Ended) else finer


def guarantee(problem: Problem) -> Guarantee:
    """Return the guarantee of whoever stops when all pairs are settled."""
    ledger = paired_race.guarantee(problem).ledger
    source = "docs/theory.md, sections 41 and 44"
    return Guarantee.of(problem, source, ledger, assumptions=UNKNOWN_VARIANCES)


PAIRED_STREAMS = lanes.strategy(
    paired_race.PAIRED_RACE.name,
    "For few arms: compares arms pull by pull, without a pilot. Settled arms are not pulled any more.",
    "docs/theory.md, sections 41 and 44",
    init=init,
    ask=paired_race.ask,
    tell=tell,
    guarantee=guarantee,
    worst_case_pulls=lambda _: None,
    n_rounds=lambda _: None,
    anytime=Anytime(certified, refuse_added, narrow, may_be_void=True),  # type: ignore[arg-type]
    needs_variances=True,
)
