"""The race: every pair is looked at by itself, at every cut, with evidence in plain mathematics.

How far arms should climb (`aims`), the rungs and the tables of deviations are the package's.
"""

import math
from collections.abc import Generator, Iterator
from itertools import pairwise

import numpy as np

from shortlist import Problem
from shortlist.strategies.race_aims import Arms, aims, climbing
from shortlist.strategies.race_course import course

PRIORS = {"below": 1.0, "above": 4.0}


def log_evidence(side: str, deviation: float, information: float) -> float:
    """That an arm lies below a cut, or above it; the deviation of its mean in that direction."""
    prior = PRIORS[side]
    if deviation < 1 / math.sqrt(information):
        return -math.inf
    z = information * deviation / math.sqrt(information + prior)
    normal = math.erfc(-z / math.sqrt(2)) / 2
    return math.log(2 * normal) - math.log1p(information / prior) / 2 + z**2 / 2


def log_prices(problem: Problem) -> tuple[float, float, float]:
    """What is enough below, above, and what both may lack together."""
    n, m, delta = problem.n, problem.m, problem.delta
    return (
        math.log(m / (0.45 * delta)),
        math.log((n - m) / (0.05 * delta)),
        math.log(0.5 / (0.45 * 0.05 * delta)),
    )


def race(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    runner = Race(problem)
    asked = {i: runner.whole(i, 0) for i in range(problem.n)}
    while asked:
        runner.enter(asked, (yield asked))
        asked = runner.next_batch()
    return runner.incumbents


class Race:
    def __init__(self, problem: Problem) -> None:
        self.problem, self.n, self.m = problem, problem.n, problem.m
        plan = course(problem)
        self.ladder, self.excess = plan.rungs, plan.excess
        self.information: list[float] = plan.rungs.information.tolist()
        self.targets: list[float] = plan.rungs.targets.tolist()
        self.top = plan.rungs.top
        self.unit = [float(s) / problem.epsilon**2 for s in problem.variances]
        self.pulls = [0] * self.n
        self.means = [0.0] * self.n
        self.rounds = 0
        self.incumbents: set[int] = set()
        self.gap: list[float] = []
        self.rung: list[int] = []

    def whole(self, i: int, rung: int) -> int:
        return max(1, math.ceil(self.information[rung] * self.unit[i]))

    def enter(self, asked: dict[int, int], means: dict[int, float]) -> None:
        self.rounds += 1
        for i, count in asked.items():
            self.pulls[i] += count
            self.means[i] += (means[i] - self.means[i]) * (count / self.pulls[i])

    def reached(self, i: int) -> int:
        rung = 0
        while rung + 1 < len(self.information) and self.information[rung + 1] <= self.pulls[i] / self.unit[
            i
        ] * (1 + 1e-12):
            rung += 1
        return rung

    def next_batch(self) -> dict[int, int]:
        for caution in (math.sqrt(2 * math.log(self.n)), 0.0):
            self.choose(caution)
            opened = self.open_outsiders()
            if not opened:
                return {}
            if asked := self.climb(opened):
                return asked
        return {}

    def choose(self, caution: float) -> None:
        def careful(i: int) -> float:
            return self.means[i] - caution * math.sqrt(self.problem.variances[i] / self.pulls[i])

        self.incumbents = set(sorted(range(self.n), key=lambda i: (-careful(i), i))[: self.m])
        least = min(self.means[j] for j in self.incumbents)
        self.gap = [min((mean - least) / self.problem.epsilon, 1e6) for mean in self.means]
        self.rung = [self.reached(i) for i in range(self.n)]

    def open_outsiders(self) -> list[int]:
        outsiders = [i for i in range(self.n) if i not in self.incumbents]
        cells = list(self.cells(outsiders))
        return [i for i in outsiders if not all(self.is_settled(i, j, cells) for j in self.incumbents)]

    def cells(self, outsiders: list[int]) -> Iterator[tuple[float, float]]:
        """Between cuts where one side is enough alone for all pairs."""
        reaches, clearances = self.ladder.reaches, self.ladder.clearances
        low = min(self.gap[j] - float(clearances[self.rung[j], 0]) for j in self.incumbents) + 1
        high = max(self.gap[i] + float(reaches[self.rung[i], -2]) for i in outsiders)
        if high > low:
            cuts = np.linspace(low, high, 33).tolist()
            yield from pairwise(cuts)

    def is_settled(self, i: int, j: int, cells: list[tuple[float, float]]) -> bool:
        """Whether, between all these cuts, i is below or j above, or both to some degree."""
        below, above, discount = log_prices(self.problem)
        for low, high in cells:
            q = log_evidence("above", self.gap[j] - (high - 1), self.information[self.rung[j]]) - above
            if q >= 0:
                continue
            needed = math.log1p(-math.exp(q)) - math.log1p(math.exp(discount + q))
            target = next(target for target in self.targets if target >= needed)
            if log_evidence("below", low - self.gap[i], self.information[self.rung[i]]) < below + target:
                return False
        return True

    def climb(self, opened: list[int]) -> dict[int, int]:
        """Towards the rungs wanted, two at a time or more; beyond if that is too little for a batch."""
        inside = sorted(self.incumbents)
        incumbents, patience = self.seen(inside), min(1.0, max(0.0, 2.0 - self.rounds / 40))
        expected = np.maximum(incumbents.gaps, patience * sorted(self.gap)[-self.m])
        outsiders = self.seen(opened)
        own, thresholds = aims(self.ladder, incumbents._replace(gaps=expected), outsiders)
        wanted = dict(zip(inside, own.tolist(), strict=True)) | dict(
            zip(opened, outsiders.rungs.tolist(), strict=True)
        )
        for place, rung in zip(*climbing(outsiders.gaps, outsiders.rungs, thresholds), strict=True):
            wanted[opened[place]] = int(rung)
        order = sorted(inside + opened, key=lambda i: -self.gap[i])  # incumbents first where gaps are equal
        asked = self.towards(wanted)
        least = max(1.0, 2e-4 * 1.01 ** min(self.rounds, 4000) * sum(self.pulls))
        step = 0
        while sum(asked.values()) < least:
            if all(self.rung[i] + step >= self.top for i in order):
                asked = {i: self.missing(i, self.top) for i in order}
                break
            step += 2
            for i in order:  # the best first, as long as it is too little
                if sum(asked.values()) < least:
                    asked[i] = max(asked[i], self.missing(i, min(self.rung[i] + step, self.top)))
        return {i: asked[i] for i in sorted(order) if asked[i]}

    def towards(self, wanted: dict[int, int]) -> dict[int, int]:
        """All by two rungs, or four, and so on, until it is a fiftieth of what was pulled before."""
        step = 0
        while True:
            step += 2
            asked = {i: self.missing(i, min(rung, self.rung[i] + step)) for i, rung in wanted.items()}
            if self.beyond(asked) > self.excess:
                wanted = {i: min(rung, max(self.top, self.rung[i])) for i, rung in wanted.items()}
                asked = {i: self.missing(i, min(rung, self.rung[i] + step)) for i, rung in wanted.items()}
            is_all = all(self.rung[i] + step >= rung for i, rung in wanted.items())
            if is_all or sum(asked.values()) >= 0.02 * sum(self.pulls):
                return asked

    def seen(self, arms: list[int]) -> Arms:
        return Arms(
            np.array([self.gap[i] for i in arms]),
            np.array([self.rung[i] for i in arms]),
            np.array([self.unit[i] for i in arms]),
        )

    def missing(self, i: int, rung: int) -> int:
        return max(0, self.whole(i, rung) - self.pulls[i]) if rung > self.rung[i] else 0

    def beyond(self, asked: dict[int, int]) -> int:
        return sum(max(0, self.pulls[i] + asked.get(i, 0) - self.whole(i, self.top)) for i in range(self.n))
