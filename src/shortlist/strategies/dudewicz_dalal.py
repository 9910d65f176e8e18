"""The two-stage procedure of Dudewicz and Dalal for unknown variances, extended to any m by Koenig and Law.

After a pilot each arm is pulled in proportion to its sample variance, in one batch. Its two batch means are
weighted such that the error is epsilon / h times a Student variable. Its distribution is exactly the same for
all arms, whatever their variances. So h is Bechhofer's constant with Student's distribution in place of the
normal one.

The papers guarantee the m best arms if they lead by epsilon. The same constant guarantees more: no selected
arm is more than epsilon below the m-th best, whatever the means (docs/theory.md, section 28).

The proof needs h > 0. If delta is so large that a random guess fails no more often, h is 0 and the problem is
refused: no weights give all errors the same distribution, and the pilot's means are not a random guess.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray, largest
from shortlist.certificates import Guarantee
from shortlist.problem import Problem
from shortlist.strategies import pilot
from shortlist.strategies.protocol import Batch, Done, Moments
from shortlist.strategies.rinott import root, totals

_GRID = 4001
_BEYOND = 1e-17  # the probability ignored in each tail


@dataclass(frozen=True, eq=False)
class Open:
    """Every arm awaits its second batch; `means` are the pilot's means and `weights` their weights."""

    m: int
    n_pilot: int
    means: FloatArray
    weights: FloatArray
    counts: IntArray


def begin(question: Problem, means: FloatArray, variances: FloatArray) -> Open | Done:
    """Return the state after the pilot."""
    n_pilot = pilot.size(question)
    h = constant(question.n, question.m, n_pilot, question.delta)
    if h == 0:  # only in runs started before such problems were refused; there is no guarantee
        return Done(largest(means, question.m))
    pulls = totals(variances, h, question.epsilon, n_pilot + 1)  # [DD75] N_i
    weights = first_weights(variances * (h / question.epsilon) ** 2, pulls, n_pilot)
    return Open(question.m, n_pilot, means, weights, pulls - n_pilot)


def first_weights(needed: FloatArray, pulls: IntArray, n_pilot: int) -> FloatArray:
    """Return the weights of the pilot's means; the second batch has weight 1 minus that, perhaps negative.

    The squares of both weights, each divided by its number of pulls, add up to 1 / `needed`, where `needed`
    is the unrounded number of pulls. If all rewards of the pilot were equal, there is no noise to scale.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = pulls / needed - 1
        spread = np.sqrt(np.maximum(excess * (pulls / n_pilot - 1), 0.0))
    return np.where(needed > 0, n_pilot / pulls * (1 + spread), n_pilot / pulls)  # [DD75] W_i1


def ask(state: Open) -> Batch:
    """Return the second batch."""
    return Batch(np.arange(len(state.means)), state.counts)


def tell(state: Open, told: Moments) -> Done:
    """Return the final state: the m arms with the largest weighted means are selected."""
    return Done(largest(told.means + state.weights * (state.means - told.means), state.m))


@lru_cache(maxsize=256)
def constant(n: int, m: int, n_pilot: int, delta: float) -> float:
    """Return h: m of n Student variables, raised by h, are the m largest with probability 1 - delta."""
    return root(lambda h: failure(h, n, m, n_pilot - 1), delta)


def failure(h: float, n: int, m: int, freedom: int) -> float:
    """Return the probability that m Student variables, raised by h, do not all exceed n - m others."""
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415  (scipy is slow to import)

    end = np.arcsinh(-stdtrit(freedom, _BEYOND))
    steps = np.sinh(np.linspace(-end, end, _GRID))
    points = np.unique(np.concatenate([steps, steps - h]))  # a fine grid wherever a factor changes
    with np.errstate(divide="ignore"):
        least = -np.expm1(m * np.log1p(-stdtr(freedom, points)))  # of the smallest of m, before raising
        passed = -np.expm1((n - m) * np.log1p(-stdtr(freedom, -(points + h))))
    chances = np.diff(least)
    return float((chances * (passed[1:] + passed[:-1]) / 2).sum())  # [KL85] P(CS), any m


def _unfit(question: Problem) -> str:
    if is_proved(question):
        return ""
    guess = 1 - 1 / math.comb(question.n, question.m)
    return (
        f"its proof needs a delta below {guess:.4g}, the probability that a random selection is wrong. Ask "
        f"with a smaller delta, or use t-race"
    )


def is_proved(question: Problem) -> bool:
    """Return whether some weights give the errors of all arms the same distribution."""
    is_trivial = question.m == question.n
    return is_trivial or constant(question.n, question.m, pilot.size(question), question.delta) > 0


def _guarantee(question: Problem) -> Guarantee | None:
    if not is_proved(question):
        return None
    event = "the errors of one of the m best arms and of another add up to epsilon or more"
    return pilot.promise(question, "[DD75], [KL85]; docs/theory.md, section 28", event)


DUDEWICZ_DALAL = pilot.strategy(
    "dudewicz-dalal",
    "Dudewicz and Dalal, Koenig and Law: a pilot, then one batch sized by the sample variances.",
    "[DD75], [KL85]",
    begin=begin,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    cap=lambda state: state.n_pilot * len(state.means) + int(state.counts.sum()),
    n_rounds=2,
    unfit=_unfit,
)
