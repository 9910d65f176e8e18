"""TPMax: a flow line of three stations whose best design is known exactly, from a Markov chain.

Service rates s1 + s2 + s3 = R and buffers b2 + b3 = B, whole numbers of at least 1, with R = B. Service
times are exponential, jobs never run out before station 1, and a job that finds no place ahead blocks its
station; b2 and b3 include the place in service. An arm is a design, and a reward minus the average time
between departures, over jobs 2,001 to 2,050. So epsilon is in units of time per job.

The mean is minus one divided by the throughput in the long run, but for what is left of the start after
2,000 jobs. A reward, an average of 50 dependent times, is only roughly Gaussian: a little skewed.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray, IntArray

WARM_UP, COUNTED = 2000, 50
CHUNK = 4096  # replications held at once, so that all of it stays in the cache


class Lines(NamedTuple):
    """Designs: one row (s1, s2, s3, b2, b3) each."""

    rates: IntArray
    buffers: IntArray

    def name(self, arm: int) -> str:
        """Return a design as people write it."""
        return f"({','.join(map(str, [*self.rates[arm], *self.buffers[arm]]))})"


def lines(total: int = 20) -> Lines:
    """Return all designs with R = B = `total`: 3,249 for 20."""
    rates = [[*np.diff([0, *cuts, total])] for cuts in combinations(range(1, total), 2)]
    buffers = [[first, total - first] for first in range(1, total)]
    every = [(rate, buffer) for rate in rates for buffer in buffers]
    return Lines(np.array([rate for rate, _ in every]), np.array([buffer for _, buffer in every]))


def throughputs(designs: Lines) -> FloatArray:
    """Return the exact throughput of each design in the long run."""
    found = np.empty(len(designs.rates))
    for buffers in np.unique(designs.buffers, axis=0):
        is_same = (designs.buffers == buffers).all(axis=1)
        found[is_same] = _throughputs(designs.rates[is_same].astype(float), *buffers.tolist())
    return found


def _throughputs(rates: FloatArray, b2: int, b3: int) -> FloatArray:
    """Return throughputs for several rates: station 3's rate times the probability that it is busy.

    In state (i, j), i jobs have left station 1's service but not station 2's, and j that but not station
    3's. With i = b2 + 1 station 1 is blocked; with j = b3 + 1 station 2 is, and has one place fewer.
    """
    states = [(i, j) for j in range(b3 + 2) for i in range(b2 + 2) if (i, j) != (b2 + 1, b3 + 1)]
    places = {state: place for place, state in enumerate(states)}
    flow = np.zeros((len(rates), len(states), len(states)))
    for (i, j), place in places.items():
        if i + (j == b3 + 1) <= b2:
            flow[:, place, places[i + 1, j]] += rates[:, 0]
        if i >= 1 and j <= b3:
            flow[:, place, places[i - 1, j + 1]] += rates[:, 1]
        if j >= 1:
            flow[:, place, places[i, j - 1]] += rates[:, 2]
    diagonal = np.arange(len(states))
    flow[:, diagonal, diagonal] -= flow.sum(axis=2)
    return np.asarray(rates[:, 2] * (1 - _at_first_level(flow, b2 + 2)))


def _at_first_level(flow: FloatArray, width: int) -> FloatArray:
    """Return how probable the first `width` states are, if only neighbouring levels of so many communicate.

    Levels are taken out of the chain one by one, from the last on: small blocks in place of a large system.
    """
    levels = [slice(first, first + width) for first in range(0, flow.shape[1], width)]
    inner, onwards = flow[:, levels[-1], levels[-1]], []
    for level, above in reversed(list(pairwise(levels))):
        ratio = -np.linalg.solve(inner.transpose(0, 2, 1), flow[:, level, above].transpose(0, 2, 1))
        onwards.append(ratio)  # probabilities above are these times those of the level
        inner = flow[:, level, level] + ratio.transpose(0, 2, 1) @ flow[:, above, level]
    balance = inner.transpose(0, 2, 1).copy()
    balance[:, 0] = 1.0  # one equation follows from the others; the first level adds up to 1 in its place
    right = np.zeros((len(flow), width, 1))
    right[:, 0] = 1.0
    probabilities = np.linalg.solve(balance, right)
    total = np.ones(len(flow))
    for ratio in reversed(onwards):
        probabilities = ratio @ probabilities
        total += probabilities.sum(axis=(1, 2))
    return np.asarray(1 / total)


def rewards(designs: Lines, arms: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return one reward for each arm listed: minus the average time between departures."""
    found = np.empty(len(arms))
    for first, last in pairwise([*range(0, len(arms), CHUNK), len(arms)]):
        own = arms[first:last]
        width = _width(len(own))
        found[first:last] = -_departures(designs, own, lambda _: rng.standard_exponential((3, width)))  # noqa: B023
    return found / COUNTED


def rewards_in_blocks(designs: Lines, arms: IntArray, blocks: Sequence[int]) -> FloatArray:
    """Return the rewards of arms, in rows, in blocks given by their seeds.

    Job by job and station by station, all arms of a block have the same service times, but for their rates.
    """
    n_jobs = WARM_UP + COUNTED
    shared = [np.random.default_rng(seed).standard_exponential((n_jobs, 3)) for seed in blocks]
    times = np.stack(shared, axis=2)
    found = np.empty(len(arms) * len(blocks))
    every, columns = np.repeat(arms, len(blocks)), np.tile(np.arange(len(blocks)), len(arms))
    for first, last in pairwise([*range(0, len(every), CHUNK), len(every)]):
        own = np.resize(columns[first:last], _width(last - first))
        found[first:last] = -_departures(designs, every[first:last], lambda job: times[job][:, own])  # noqa: B023
    return found.reshape(len(arms), len(blocks)) / COUNTED


def _width(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _departures(designs: Lines, arms: IntArray, drawn: Callable[[int], FloatArray]) -> FloatArray:
    """Return how long the jobs counted take to depart, in one replication of each arm listed.

    `drawn` returns the service times of a job, three rows, as multiples of their means. Stations 2 and 3 each
    remember when the last 2^k jobs left, on a ring. As its width is a power of two as well, going back b jobs
    on it is a subtraction and a mask.
    """
    n, width = len(arms), _width(len(arms))
    arms = np.resize(arms, width)
    ring = width << int(designs.buffers.max()).bit_length()
    means = 1 / designs.rates[arms].T
    back_2, back_3 = np.arange(width) - width * designs.buffers[arms].T
    left_2, left_3 = np.zeros((2, ring))
    e1, e2, e3, start = np.zeros((4, width))
    for job in range(WARM_UP + COUNTED):
        if job == WARM_UP:
            start = e3
        times = drawn(job) * means
        here = job * width
        e1 = np.maximum(e1 + times[0], left_2.take((back_2 + here) & (ring - 1)))
        e2 = np.maximum(np.maximum(e2, e1) + times[1], left_3.take((back_3 + here) & (ring - 1)))
        e3 = np.maximum(e3, e2) + times[2]
        at = slice(here % ring, here % ring + width)
        left_2[at], left_3[at] = e2, e3
    return np.asarray(e3 - start)[:n]
