"""Procedures of ranking and selection, as rivals in benchmarks: no part of Shortlist, and for one arm only.

- `kim_nelson`: the fully sequential procedure of Kim and Nelson (2001) with the variances of differences, as
  published. It is valid with common random numbers. It promises the best arm if no other lies within epsilon.
- `good_selection`: GSP of Ni, Ciocan, Henderson and Hunter (2017), on one processor. Screening in rounds, in
  which noisy arms are pulled more often, and then Rinott's second stage. It promises an arm within epsilon.
- `survivors`: bi-PASS, after Pei, Nelson and Hunter (2022), on one processor. Arms are compared with the mean
  of all survivors, and dropped below a curve. It promises that few good arms are lost (the expected share is
  delta), not that the last one is good; here it goes on until one is left, or until its budget is spent.

Each takes `draw(arms, first, last)`: a table of rewards, rows for arms, columns for blocks from `first` on.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import optimize, stats

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.strategies import rinott

Draw: TypeAlias = Callable[[IntArray, int, int], FloatArray]

_AHEAD = 64  # blocks that are drawn at once where a procedure asks for one at a time; only those used count


class Found(NamedTuple):
    """The arm selected, and the number of pulls."""

    arm: int
    n_pulls: int


# --- Kim and Nelson ---------------------------------------------------------------------------------------


def kim_nelson(draw: Draw, n: int, epsilon: float, delta: float, *, pilot: int) -> Found:
    """Return the last survivor; survivors are compared after every block."""
    arms = np.arange(n)
    first = draw(arms, 0, pilot)
    sums, n_pulls = first.sum(axis=1), n * pilot
    spreads = differences(first) * boundary(n, delta, pilot) / epsilon  # [KN01] Setup, h^2 S^2 / delta
    n_blocks, ahead, drawn = pilot, np.empty((n, 0)), pilot
    while True:
        leads = sums[None, :] - sums[:, None]  # of the arm in the column over that in the row
        limits = np.maximum(spreads - epsilon * n_blocks, 0.0) / 2  # [KN01] Screening, r W_il(r)
        is_out = ((leads > limits) | ((leads == limits) & (arms[None, :] < arms[:, None]))).any(axis=1)
        arms, sums, spreads = arms[~is_out], sums[~is_out], spreads[np.ix_(~is_out, ~is_out)]
        ahead = ahead[~is_out]
        if len(arms) == 1:
            return Found(int(arms[0]), n_pulls)
        if n_blocks == drawn:
            ahead, drawn = draw(arms, n_blocks, n_blocks + _AHEAD), n_blocks + _AHEAD
        sums = sums + ahead[:, n_blocks - drawn]
        n_blocks, n_pulls = n_blocks + 1, n_pulls + len(arms)


def boundary(n: int, delta: float, pilot: int) -> float:
    """Return h^2, for arms that may depend on each other."""
    beta = delta / (n - 1)  # [KN01] Setup, common random numbers
    return float((2 * beta) ** (-2 / (pilot - 1)) - 1) * (pilot - 1)  # [KN01] Setup, 2 c eta (n_0 - 1), c = 1


def differences(rewards: FloatArray) -> FloatArray:
    """Return the sample variances of the differences of all pairs of rows."""
    covariances = np.cov(rewards)
    own = np.diag(covariances)
    return np.maximum(own[:, None] + own[None, :] - 2 * covariances, 0.0)


# --- the good selection procedure -------------------------------------------------------------------------


def good_selection(
    draw: Draw, n: int, epsilon: float, delta: float, *, pilot: int, batch: int = 10, rounds: int = 10
) -> Found:
    """Return the arm with the largest mean after screening and Rinott's second stage.

    Half of delta is for screening, half for the second stage. `batch` is the average number of pulls of an
    arm in a round.
    """
    arms, first = np.arange(n), draw(np.arange(n), 0, pilot)
    sums, counts, variances = first.sum(axis=1), np.full(n, pilot), first.var(axis=1, ddof=1)
    scales = np.sqrt(variances)
    sizes = np.maximum(np.ceil(batch * scales / scales.mean()), 1).astype(np.int64)
    reach = eta(n, delta / 2, pilot) * math.sqrt(pilot - 1)
    last = variances / (pilot + rounds * sizes)  # variances of means after the last round
    for round_ in range(rounds + 1):
        if round_:
            sums[arms] += sums_of(draw, arms, counts[arms], sizes[arms])
            counts[arms] += sizes[arms]
        arms = arms[
            ~is_screened(sums[arms] / counts[arms], variances[arms] / counts[arms], last[arms], reach)
        ]
        if len(arms) == 1:
            return Found(int(arms[0]), int(counts.sum()))
    h = rinott.constant(n, pilot, delta / 2)
    wanted = np.maximum(np.ceil((h / epsilon) ** 2 * variances[arms]).astype(np.int64), counts[arms])
    sums[arms] += sums_of(draw, arms, counts[arms], wanted - counts[arms])
    counts[arms] = wanted
    return Found(int(arms[np.argmax(sums[arms] / counts[arms])]), int(counts.sum()))


def is_screened(means: FloatArray, now: FloatArray, last: FloatArray, reach: float) -> BoolArray:
    """Return which arms another one beats, given variances of means now and after the last round."""
    leads = means[None, :] - means[:, None]
    clocks, ends = 1 / (now[:, None] + now[None, :]), 1 / (last[:, None] + last[None, :])
    found: BoolArray = np.any(clocks * leads > reach * np.sqrt(ends), axis=1)
    return found


def sums_of(draw: Draw, arms: IntArray, firsts: IntArray, counts: IntArray) -> FloatArray:
    """Return the sums of further pulls of arms, each with a number of its own."""
    found = np.zeros(len(arms))
    for first, count in np.unique(np.stack([firsts, counts]), axis=1).T.tolist():
        same = np.flatnonzero((firsts == first) & (counts == count))
        for start in range(first, first + count, _AHEAD):
            found[same] += draw(arms[same], start, min(start + _AHEAD, first + count)).sum(axis=1)
    return found


@lru_cache(maxsize=32)
def eta(n: int, delta: float, pilot: int) -> float:
    """Return the constant of screening: the expectation of 2 P(Z > eta sqrt(R)) is an arm's share of delta.

    R is the smaller of two independent chi-square variables with pilot - 1 degrees of freedom.
    """
    share = -math.expm1(math.log1p(-delta) / (n - 1))
    return float(optimize.brentq(lambda value: screening_error(value, pilot) - share, 1e-6, 100.0))


def screening_error(value: float, pilot: int) -> float:
    """Return the expectation of 2 P(Z > value sqrt(R))."""
    chi = stats.chi2(pilot - 1)
    points = chi.ppf((np.arange(20_000) + 0.5) / 20_000)
    at_least = chi.sf(points)
    return float(np.mean(2 * stats.norm.sf(value * np.sqrt(points)) * 2 * at_least))


# --- bi-PASS ----------------------------------------------------------------------------------------------


def survivors(
    draw: Draw, n: int, epsilon: float, delta: float, *, pilot: int, most: int = 10_000
) -> tuple[Found, int]:
    """Return the best survivor, and how many there are, when one is left or after the most blocks.

    `epsilon` is not used: the procedure has no indifference zone.
    """
    del epsilon
    arms, first = np.arange(n), draw(np.arange(n), 0, pilot)
    sums, variances, n_pulls, n_blocks = first.sum(axis=1), first.var(axis=1, ddof=1), n * pilot, pilot
    ahead, drawn = np.empty((n, 0)), pilot
    while True:
        behind, clocks = sums.mean() - sums, n_blocks / variances
        is_kept = behind / variances < curve(clocks, delta)
        arms, sums, variances, ahead = arms[is_kept], sums[is_kept], variances[is_kept], ahead[is_kept]
        if len(arms) == 1 or n_blocks >= most:
            return Found(int(arms[np.argmax(sums)]), n_pulls), len(arms)
        if n_blocks == drawn:
            ahead, drawn = draw(arms, n_blocks, n_blocks + _AHEAD), n_blocks + _AHEAD
        sums = sums + ahead[:, n_blocks - drawn]
        n_blocks, n_pulls = n_blocks + 1, n_pulls + len(arms)


def curve(clocks: FloatArray, delta: float) -> FloatArray:
    """Return how low Brownian motion may fall; it ever falls lower with probability delta at most."""
    found: FloatArray = np.sqrt((-2 * math.log(2 * delta) + np.log(clocks + 1)) * (clocks + 1))
    return found
