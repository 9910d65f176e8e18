"""The strategies for unknown variances that have no pilot, in plain Python.

Each is a generator that yields how often to pull which arm, is sent the mean and the sample variance of each,
and returns the answer.
"""

import math
import struct
from collections.abc import Generator
from typing import TypeAlias

from scipy.special import ndtri

from shortlist import Problem

from .wnelim import best

Plan: TypeAlias = Generator[dict[int, int], dict[int, tuple[float, float]], set[int]]


def log_evidence(k: int, ratio: float) -> float:
    total = 0.0
    for gain in (0.1, 1.0):
        shrunk = 1 + k * gain
        odds = shrunk if math.isinf(ratio) else (1 + ratio) / (1 + ratio / shrunk)
        if k / 2 * math.log(odds) > 700:  # too large for a number
            return math.inf
        total += (2 * odds ** (k / 2) - 1) / math.sqrt(shrunk) / 2
    return math.log(total)


def sufficient_ratio(k: int, threshold: float) -> float:
    if log_evidence(k, math.exp(27)) < threshold:
        return math.inf
    low, high = -27.0, 27.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if log_evidence(k, math.exp(middle)) >= threshold else (middle, high)
    return math.exp(high)


def fewest(threshold: float) -> int:
    k = 2
    while log_evidence(k, math.inf) < threshold:
        k += 1
    return k


def needed(threshold: float, variance: float, gap: float) -> float:
    growth = max(math.log1p(max(gap, 0.0) ** 2 / variance), 1e-12)
    found = 2 * (threshold + 1) / growth
    for _ in range(2):
        found = (2 * (threshold + 1) + math.log1p(0.1 * found)) / growth
    return min(found, 1e7)


def t_cut_race(problem: Problem) -> Plan:
    n, m, epsilon = problem.n, problem.m, problem.epsilon
    upper = math.log(m / (0.7 * problem.delta))
    lower = math.log((n - m) / (0.3 * problem.delta))
    pulls, means, deviations = [0] * n, [0.0] * n, [0.0] * n
    high, low = [math.inf] * n, [-math.inf] * n
    counts = dict.fromkeys(range(n), max(6, fewest(upper)))
    turn = 0
    while True:
        turn += 1
        for arm, (mean, variance) in (yield counts).items():
            fresh, total = counts[arm], pulls[arm] + counts[arm]
            deviations[arm] += variance * (fresh - 1) + (mean - means[arm]) ** 2 * (
                pulls[arm] * fresh / total
            )
            means[arm] += (mean - means[arm]) * (fresh / total)
            pulls[arm] = total
            spread = deviations[arm] / total
            high[arm] = min(high[arm], means[arm] + math.sqrt(sufficient_ratio(total, upper) * spread))
            low[arm] = max(low[arm], means[arm] - math.sqrt(sufficient_ratio(total, lower) * spread))
        border = sorted(means, reverse=True)[m - 1]
        rivals = sum(mean > border - epsilon for mean in means) - m
        caution = min(max(turn / 40 - 1, 0), 1) * math.sqrt(2 * math.log(max(rivals / m, 1)))
        errors = [math.sqrt(deviations[arm] / (pulls[arm] - 1) / pulls[arm]) for arm in range(n)]
        inside = best({arm: means[arm] - caution * errors[arm] for arm in range(n)}, m)
        outside = set(range(n)) - inside
        if max(high[arm] for arm in outside) <= min(low[arm] for arm in inside) + epsilon:
            return inside
        floor = min(means[arm] for arm in inside)
        ceiling = min(floor, max(means[arm] for arm in outside))
        cheapest = math.inf
        for share in (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99):
            cut = ceiling + share * (floor + epsilon - ceiling)
            ends = {}
            for arm in range(n):
                variance = deviations[arm] / (pulls[arm] - 1)
                if arm in outside and high[arm] > cut:
                    gap = cut - min(means[arm], floor)
                    ends[arm] = max(needed(upper, variance, gap), 1.03 * pulls[arm])
                if arm in inside and low[arm] < cut - epsilon:
                    ends[arm] = max(needed(lower, variance, means[arm] - cut + epsilon), 1.03 * pulls[arm])
            cost = sum(end - pulls[arm] for arm, end in ends.items())
            if cost < cheapest:
                cheapest, chosen = cost, ends
        counts = {}
        for arm, end in chosen.items():
            target = max(min(0.7 * end, 1.5 * pulls[arm]), 1.06 * pulls[arm])
            counts[arm] = max(math.ceil(target) - pulls[arm], 2)


def mixed(key: int) -> int:
    mask = 2**64 - 1
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 & mask
    key = (key ^ key >> 27) * 0x94D049BB133111EB & mask
    return key ^ key >> 31


def normals(arm: int, first: int, mean: float, variance: float, count: int) -> list[float]:
    key = mixed((arm << 40) + first)
    for one in (mean, variance):
        key = mixed(key ^ struct.unpack("<Q", struct.pack("<d", math.frexp(one)[0]))[0])
    drawn = (mixed((key + (place + 1) * 0x9E3779B97F4A7C15) % 2**64) for place in range(count))
    return [float(ndtri(((one >> 11) + 0.5) / 2**53)) for one in drawn]


def paired_race(problem: Problem) -> Plan:
    n, m, epsilon = problem.n, problem.m, problem.epsilon
    threshold = math.log(m * (n - m) / problem.delta)
    marks = [8]
    while marks[-1] < 10**6:
        marks.append(math.ceil(marks[-1] * 1.06))
    rewards: list[list[float]] = [[] for _ in range(n)]
    counts = dict.fromkeys(range(n), next(mark for mark in marks if mark >= fewest(threshold)))
    while True:
        for arm, (mean, variance) in (yield counts).items():
            noise = normals(arm, len(rewards[arm]), mean, variance, counts[arm])
            centre = math.fsum(noise) / len(noise)
            length = math.sqrt(math.fsum((one - centre) ** 2 for one in noise))
            scale = math.sqrt(variance * (len(noise) - 1)) / length
            rewards[arm] += [mean + scale * (one - centre) for one in noise]
        means = [math.fsum(own) / len(own) for own in rewards]
        inside = best(dict(enumerate(means)), m)
        ends: dict[int, float] = {}
        moving = set()
        for one in inside:
            for other in set(range(n)) - inside:
                pair = [a - b for a, b in zip(rewards[one], rewards[other], strict=False)]
                if is_settled(pair, threshold, epsilon):
                    continue
                centre = math.fsum(pair) / len(pair)
                variance = math.fsum((x - centre) ** 2 for x in pair) / (len(pair) - 1)
                end = needed(threshold, variance, means[one] - means[other] + epsilon)
                for arm, rival in ((one, other), (other, one)):
                    ends[arm] = max(ends.get(arm, 0.0), end)
                    if len(rewards[arm]) <= len(rewards[rival]):
                        moving.add(arm)
        if not moving:
            return inside
        counts = {}
        for arm in sorted(moving):
            seen = len(rewards[arm])
            target = max(min(0.7 * ends[arm], 1.5 * seen), seen + 2)
            counts[arm] = next(mark for mark in marks if mark >= target) - seen


def is_settled(differences: list[float], threshold: float, epsilon: float) -> bool:
    """Return whether evidence for a positive mean, raised by epsilon, was ever enough."""
    for k in range(2, len(differences) + 1):
        raised = [one + epsilon for one in differences[:k]]
        mean = math.fsum(raised) / k
        spread = math.fsum((one - mean) ** 2 for one in raised)
        if mean > 0 and log_evidence(k, k * mean**2 / spread) >= threshold:
            return True
    return False
