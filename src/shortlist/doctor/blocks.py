"""Tests of a measurement in blocks: differences of arms within a block must be Gaussian and independent.

What arms of a block have in common does not matter: neither its distribution nor that it drifts. If the
assumptions hold, each test reports something in at most one diagnosis of 100, and an error in at most one of
1,000.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.doctor.assumptions import NOTE, SKEWED, doubt, series_of, severity, trend
from shortlist.doctor.findings import Finding
from shortlist.doctor.trials import ArmTrials
from shortlist.measure import Source
from shortlist.problem import Problem
from shortlist.strategies.paired_race import blocks_needed, threshold_of

_FEWEST = 8  # blocks: differences of fewer are not tested
_FEWEST_FOR_TAILS = 20
_HEAVY = 1.0  # a smaller excess kurtosis does little harm
_MOST_ARMS = 20
_SURE = 0.99  # of the interval of a correlation
_SAVING = 0.8  # the share of blocks that shared conditions leave over, for a saving worth telling


class _Pair(NamedTuple):
    """Two arms, their rewards in the same blocks, and the differences; these are not all equal."""

    names: str
    rewards: FloatArray
    differences: FloatArray


def differences(problem: Problem, source: Source, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return findings on the differences of the tested arms, and on how much blocks help."""
    pairs = pairs_of(problem, source, tried)
    if not pairs:
        seen = "Too few blocks or arms were tested, or no two arms differ, so differences were not tested."
        return [Finding("note", "differences", seen, "Test with more --pulls and --arms.")]
    if coarse := [pair for pair in pairs if len(np.unique(pair.differences)) <= 2]:
        seen = f"Differences of {coarse[0].names} have only two values, so they are not Gaussian."
        return [Finding("error", "differences", seen, _ON_SHAPE)]
    return [_shape(pairs), _order(pairs), _noise(pairs), _independence(pairs), _help(problem, pairs)]


def pairs_of(problem: Problem, source: Source, tried: Sequence[ArmTrials]) -> list[_Pair]:
    """Return all pairs of tested arms that differ by more than a constant."""
    series = series_of(source, tried)[:_MOST_ARMS]
    found = []
    for one, other in combinations(series, 2):
        length = min(len(one.rewards), len(other.rewards))
        rewards = np.stack([one.rewards[:length], other.rewards[:length]])
        apart = rewards[0] - rewards[1]
        if length >= _FEWEST and apart.min() < apart.max():
            names = f"{problem.name(one.arm.arm)} and {problem.name(other.arm.arm)}"
            found.append(_Pair(names, rewards, apart - apart.mean()))
    return found


def spread_of(pairs: Sequence[_Pair]) -> tuple[float, float]:
    """Return the standard deviation of an arm, and the correlation of two arms within blocks.

    They are such that differences have the median variance of all pairs. Arms whose differences vary more
    than those of independent ones count as independent, with the standard deviation that fits.
    """
    own = float(np.median([pair.rewards.var(axis=1, ddof=1).mean() for pair in pairs]))
    half = float(np.median([pair.differences.var(ddof=1) for pair in pairs])) / 2
    return (math.sqrt(own), 1 - half / own) if half < own else (math.sqrt(half), 0.0)


def _interval(rho: float, k: int) -> tuple[float, float]:
    """Return an interval of a correlation, from k pairs of Gaussian rewards (Fisher's z)."""
    from scipy.special import ndtri  # noqa: PLC0415  (scipy is slow to import)

    middle, half = math.atanh(min(rho, 1 - 1e-12)), float(ndtri((1 + _SURE) / 2)) / math.sqrt(k - 3)
    return math.tanh(middle - half), math.tanh(middle + half)


def _worst(pairs: Sequence[_Pair], test: Callable[[FloatArray], float]) -> tuple[float, _Pair]:
    """Return the chance of the most extreme pair of all, and the pair; `test` gives a standard normal."""
    from scipy.special import ndtr  # noqa: PLC0415  (scipy is slow to import)

    scores = np.abs([test(pair.differences) for pair in pairs])
    place = int(scores.argmax())
    return float(2 * len(pairs) * ndtr(-scores[place])), pairs[place]


_ON_SHAPE = (
    "The guarantee holds for Gaussian differences. Use a longer simulation, or the average of several "
    "simulations, as one reward. Or state `bounds`: then nothing is assumed about differences."
)


def _shape(pairs: Sequence[_Pair]) -> Finding:
    """Test whether differences are skewed (D'Agostino), or have heavy tails (Anscombe and Glynn)."""
    from scipy.stats import kurtosis, kurtosistest, skew, skewtest  # noqa: PLC0415

    chance, pair = _worst(pairs, lambda apart: float(skewtest(apart).statistic))
    skewed, chance = float(skew(pair.differences)), 2 * chance  # 2: for two tests
    if chance <= NOTE and abs(skewed) >= SKEWED:
        seen = f"Differences of {pair.names} have a skewness of about {skewed:.2g}; Gaussian ones have 0."
        return Finding(severity(chance), "differences", seen, _ON_SHAPE + doubt(chance))
    long = [pair for pair in pairs if len(pair.differences) >= _FEWEST_FOR_TAILS]
    if long:
        chance, pair = _worst(long, lambda apart: max(float(kurtosistest(apart).statistic), 0.0))
        heavy, chance = float(kurtosis(pair.differences)), 2 * chance
        if chance <= NOTE and heavy >= _HEAVY:
            seen = f"Differences of {pair.names} have heavy tails (an excess kurtosis of about {heavy:.2g})."
            return Finding(severity(chance), "differences", seen, _ON_SHAPE + doubt(chance))
    return Finding("ok", "differences", "Differences of arms look Gaussian.")


def _order(pairs: Sequence[_Pair]) -> Finding:
    """Test whether differences change with the order of blocks (Spearman); a common drift does no harm."""
    chance, pair = _worst(pairs, _trend_score)
    if chance > NOTE:
        return Finding("ok", "drift", "Differences of arms do not change with the order of blocks.")
    seen = f"Differences of {pair.names} change with the order of blocks."
    advice = (
        "The guarantee assumes that the mean difference of two arms stays the same. Remove the cause of "
        "the change. A drift that all arms share does no harm."
    )
    return Finding(severity(chance), "drift", seen, advice + doubt(chance))


def _noise(pairs: Sequence[_Pair]) -> Finding:
    """Test whether the size of differences changes with the order of blocks."""
    chance, pair = _worst(pairs, lambda apart: _trend_score(np.abs(apart - np.median(apart))))
    if chance > NOTE:
        return Finding("ok", "noise", "Differences vary as much in late blocks as in early ones.")
    seen = f"Differences of {pair.names} vary more and more, or less and less, from block to block."
    advice = "The guarantee assumes one variance for each pair of arms. Remove the cause, or state `bounds`."
    return Finding(severity(chance), "noise", seen, advice + doubt(chance))


def _independence(pairs: Sequence[_Pair]) -> Finding:
    """Test whether differences of successive blocks are correlated."""
    chance, pair = _worst(pairs, lambda apart: _next_to_next(apart) * np.sqrt(len(apart)))
    if chance > NOTE:
        return Finding("ok", "blocks", "Differences of successive blocks are not significantly correlated.")
    rho = _next_to_next(pair.differences)
    seen = f"Differences of {pair.names} in successive blocks are correlated ({rho:.2g})."
    advice = (
        "The guarantee needs blocks that are independent of each other. Draw all random numbers of a block "
        "from its seed; if conditions change slowly, leave more time between blocks."
    )
    return Finding(severity(chance), "blocks", seen, advice + doubt(chance))


def _trend_score(values: FloatArray) -> float:
    from scipy.stats import rankdata  # noqa: PLC0415  (scipy is slow to import)

    return trend(rankdata(values)) * float(np.sqrt(len(values) - 1))


def _next_to_next(apart: FloatArray) -> float:
    return float(apart[1:] @ apart[:-1] / (apart @ apart))


def _help(problem: Problem, pairs: Sequence[_Pair]) -> Finding:
    """Describe how strongly the two best tested arms are correlated within blocks, and what that saves.

    Far worse arms often vary more, and have less in common with the best; but they are settled soon. What is
    saved is said only if the correlation is clear: without any, that happens in one diagnosis of 200.
    """
    best = max(pairs, key=lambda pair: float(problem.merits(pair.rewards.mean(axis=1)).min()))
    spreads = np.array([best.differences.var(ddof=1), best.rewards.var(axis=1, ddof=1).sum()])
    threshold = threshold_of(problem, problem.delta)
    together, apart = blocks_needed(threshold, spreads, np.full(2, problem.epsilon)).tolist()
    rho = float(np.asarray(np.corrcoef(best.rewards))[0, 1])
    low, high = _interval(rho, len(best.differences))
    seen = (
        f"The best of the tested arms, {best.names}, have a correlation of about {rho:.2g} within blocks "
        f"({100 * _SURE:g} % interval: {low:.2g} to {high:.2g})"
    )
    if low <= 0:
        advice = (
            "Make sure that all arms use the seed of the block, and use it in the same way. To detect a "
            "weaker correlation, use more --pulls."
        )
        return Finding(
            "note", "saving", f"{seen}, so it is not clear that shared conditions save pulls.", advice
        )
    seen += (
        f". With {rho:.2g}, two equal arms would take about {_rough(together)} blocks; independent ones, "
        f"about {_rough(apart)}."
    )
    return Finding(
        "ok", "saving", seen if together < _SAVING * apart else f"{seen} Shared conditions save little."
    )


def _rough(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"
