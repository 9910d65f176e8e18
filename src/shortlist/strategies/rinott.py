"""Rinott's two-stage procedure, for m = 1 and unknown variances.

After a pilot every arm is pulled in proportion to its sample variance, in one batch, and the arm with the
largest mean of all its rewards is selected. The constant h allows for the errors of the sample variances.

[R78] guarantees the best arm if it leads by epsilon. The same constant guarantees more: the selected arm is
never more than epsilon below the best, whatever the means (docs/theory.md, section 27).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray, largest
from shortlist.certificates import Guarantee
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies import pilot
from shortlist.strategies.protocol import Batch, Done, Moments, only_one

_GRID = 401  # the trapezoidal rule converges fast for integrands that vanish smoothly at both ends
_BEYOND = 1e-18  # the probability ignored in each tail


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await their second batch; `means` are those of the pilot."""

    n_pilot: int
    means: FloatArray
    arms: IntArray
    counts: IntArray


def begin(question: Problem, means: FloatArray, variances: FloatArray) -> Open | Done:
    """Return the state after the pilot."""
    n_pilot = pilot.size(question)
    h = constant(question.n, n_pilot, question.delta)
    extra = totals(variances, h, question.epsilon, n_pilot) - n_pilot
    arms = np.flatnonzero(extra > 0)
    return Open(n_pilot, means, arms, extra[arms]) if len(arms) else Done(largest(means, 1))


def totals(variances: FloatArray, h: float, epsilon: float, least: int) -> IntArray:
    """Return how often each arm is to be pulled in total, at least `least` times."""
    root = h / epsilon

    def amounts(block: slice) -> FloatArray:
        return np.maximum(variances[block] * root**2, least)  # [R78] N_i

    return whole_pulls(variances.shape, amounts, "A second stage")


def ask(state: Open) -> Batch:
    """Return the second batch."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Done:
    """Return the final state: the arm with the largest mean of all its rewards is selected."""
    pooled, share = state.means.copy(), state.counts / (state.counts + state.n_pilot)
    pooled[state.arms] += (told.means - pooled[state.arms]) * share
    return Done(largest(pooled, 1))


@lru_cache(maxsize=256)
def constant(n: int, n_pilot: int, delta: float) -> float:
    """Return h, for which the probability that some arm is overrated by epsilon is delta."""
    return root(lambda h: failure(h, n, n_pilot - 1), delta)


def root(failure_at: Callable[[float], float], delta: float) -> float:
    """Return where a decreasing function reaches delta; 0 if it starts below."""
    from scipy.optimize import brentq  # noqa: PLC0415  (scipy is slow to import)

    if failure_at(0.0) <= delta:
        return 0.0
    high = 4.0
    while failure_at(high) > delta:
        high *= 2
    return float(brentq(lambda h: failure_at(h) - delta, 0.0, high, xtol=1e-9, rtol=1e-12))


def failure(h: float, n: int, freedom: int) -> float:
    """Return the probability that one of n - 1 arms comes out ahead of the best in the least favourable case.

    The outer integral is over the chi-square variable of the best arm, the inner one over that of another.
    """
    from scipy.special import ndtr  # noqa: PLC0415  (scipy is slow to import)

    x, weights = chi_square(freedom)
    spreads = np.sqrt(freedom * (1 / x[:, None] + 1 / x))
    ahead = ndtr(-h / spreads) @ weights
    return float(weights @ -np.expm1((n - 1) * np.log1p(-ahead)))  # [R78] P(CS)


@lru_cache(maxsize=32)
def chi_square(freedom: int) -> tuple[FloatArray, FloatArray]:
    """Return points evenly spaced in their logarithms, and their probabilities."""
    from scipy.special import gammainccinv, gammaincinv  # noqa: PLC0415  (scipy is slow to import)

    half = freedom / 2
    low, high = gammaincinv(half, _BEYOND), gammainccinv(half, _BEYOND)
    logs = np.linspace(np.log(low), np.log(high), _GRID)
    heights = np.exp(half * (logs - np.log(half)) - np.exp(logs) + half)
    return 2 * np.exp(logs), heights / heights.sum()


def _guarantee(question: Problem) -> Guarantee:
    event = "some arm is overrated by epsilon or more, compared with the best"
    return pilot.promise(question, "[R78]; docs/theory.md, section 27", event)


RINOTT = pilot.strategy(
    "rinott",
    "Rinott's two stages: a pilot, then pulls in proportion to the sample variances. Selects one arm.",
    "[R78]",
    begin=begin,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    cap=lambda state: state.n_pilot * len(state.means) + int(state.counts.sum()),
    n_rounds=2,
    unfit=only_one,
)
