import math
from collections.abc import Generator

from shortlist import Problem
from shortlist.strategies.bechhofer import constant

from .wnelim import best


def bechhofer(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m = problem.n, problem.m
    if m == n:
        return set(range(n))
    h = constant(n, m, problem.delta)
    pulls = {i: max(1, math.ceil(problem.variances[i] * (h / problem.epsilon) ** 2)) for i in range(n)}
    means = yield pulls
    return best(means, m)
