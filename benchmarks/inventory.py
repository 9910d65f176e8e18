"""The (s, S) inventory of Koenig and Law: 1,600 arms whose means and variances are known exactly.

Demand is Poisson(25) in each of 30 periods, and the stock starts at S. At a review, before the demand,
a stock I below s is filled up to S at the cost 32 + 3 (S - I). After it, each unit in stock costs 1, and
each unit owed costs 5; what is owed is delivered later. A reward is minus the average cost per period.

The first two moments of the cost to go follow from those of one period later, by what stock is left; so
they are found for all arms at once, going backwards, without any simulation.
"""

import math
from typing import NamedTuple

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.instances import Instance

DEMAND = 25
PERIODS = 30
ORDER, UNIT, HOLDING, OWING = 32.0, 3.0, 1.0, 5.0
MOST_DEMAND = 150  # more has probability 1e-64
SIDE = 40
"""s and S - s run from 1 to this number."""


class Systems(NamedTuple):
    """Reorder points s, levels S, and the exact mean and variance of the average cost of each."""

    reorder: IntArray
    level: IntArray
    means: FloatArray
    variances: FloatArray


def systems() -> Systems:
    """Return all 1,600 systems, s from 1 to 40 and S - s from 1 to 40."""
    reorder, width = (side.ravel() for side in np.mgrid[1 : SIDE + 1, 1 : SIDE + 1])
    means, variances = moments(reorder, reorder + width)
    return Systems(reorder, reorder + width, means, variances)


def moments(reorder: IntArray, level: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the variance of the average cost of systems (s, S), by dynamic programming."""
    width = int((level - reorder).max())
    stays = _stays(width)  # from s + k to s + k', nothing being ordered
    held = _costs(reorder[:, None] + np.arange(width + 1))
    first = second = np.zeros((len(level), width + 1))  # moments of the cost to go from s + k, before demand
    top = (level - reorder)[:, None]
    falls = _falls(reorder, level, width, orders=False)  # after the last period nothing is ordered
    ordering = _falls(reorder, level, width, orders=True)
    for _ in range(PERIODS):
        at_top, at_top_2 = np.take_along_axis(first, top, 1), np.take_along_axis(second, top, 1)
        second = (
            (held**2 + 2 * held * first + second) @ stays.T
            + falls[2]
            + 2 * at_top * falls[1]
            + at_top_2 * falls[0]
        )
        first = (held + first) @ stays.T + falls[1] + at_top * falls[0]
        falls = ordering
    mean = np.take_along_axis(first, top, 1)[:, 0]
    spread = np.take_along_axis(second, top, 1)[:, 0] - mean**2
    return mean / PERIODS, spread / PERIODS**2


def rewards(found: Systems, arms: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return one reward for each arm listed, simulated: minus the average cost of 30 periods."""
    reorder, level = found.reorder[arms], found.level[arms]
    stock, spent = level, np.zeros(len(arms))
    for _ in range(PERIODS):
        is_low = stock < reorder
        spent += np.where(is_low, ORDER + UNIT * (level - stock), 0.0)
        stock = np.where(is_low, level, stock) - rng.poisson(DEMAND, len(arms))
        spent += _costs(stock)
    return -spent / PERIODS


def _poisson(most: int) -> FloatArray:
    demands = np.arange(most + 1)
    logs = demands * math.log(DEMAND) - DEMAND - np.array([math.lgamma(d + 1) for d in demands])
    return np.asarray(np.exp(logs))


def _stays(width: int) -> FloatArray:
    probabilities = _poisson(width)
    before, after = np.ogrid[: width + 1, : width + 1]
    return np.where(before >= after, probabilities[np.abs(before - after)], 0.0)


def _costs(stock: IntArray) -> FloatArray:
    return HOLDING * np.maximum(stock, 0) + OWING * np.maximum(-stock, 0)


def _falls(reorder: IntArray, level: IntArray, width: int, *, orders: bool) -> FloatArray:
    """Return the moments 0, 1 and 2 of the period's cost where stock falls below s, for each s + k."""
    found = np.zeros((3, len(level), width + 1))
    for demand, probability in enumerate(_poisson(MOST_DEMAND)):
        after = reorder[:, None] + np.arange(width + 1) - demand
        costs = _costs(after) + (ORDER + UNIT * (level[:, None] - after) if orders else 0.0)
        chance = probability * (after < reorder[:, None])
        found += np.stack([chance, chance * costs, chance * costs**2])
    return found


def instance(m: int = 10, *, epsilon: float = 1.0, delta: float = 0.05) -> Instance:
    """Return the instance of all 1,600 arms: costs are negated, so that the cheapest are the best."""
    found = systems()
    names = [f"({s},{S})" for s, S in zip(found.reorder, found.level, strict=True)]
    problem = sl.Problem(m=m, epsilon=epsilon, delta=delta, variances=found.variances, names=names)
    return Instance(problem, -found.means, "inventory", "Koenig and Law 1985")
