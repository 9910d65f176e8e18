import math
from collections.abc import Generator

from shortlist import Problem
from shortlist.strategies import gaussian_single_stage as gaussian
from shortlist.strategies.single_stage import allocation
from shortlist.strategies.uniform import level

from .wnelim import best


def single_stage(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, variance = problem.n, problem.m, problem.variances.tolist()
    if m == n:
        return set(range(n))
    spread = allocation(problem)
    pulls = {}
    for i in range(n):
        information = spread.level * (1 + spread.slope * math.log(max(variance) / variance[i]))
        pulls[i] = math.ceil(2 * variance[i] * information / problem.epsilon / problem.epsilon)
    means = yield pulls
    return best(means, m)


def gaussian_single_stage(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, variance = problem.n, problem.m, problem.variances.tolist()
    if m == n:
        return set(range(n))
    spread = gaussian.allocation(problem)
    pulls = {}
    for i in range(n):
        information = spread.level * (max(variance) / variance[i]) ** spread.power
        pulls[i] = max(1, math.ceil(2 * variance[i] * information / problem.epsilon / problem.epsilon))
    means = yield pulls
    return best(means, m)


def uniform(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, variance = problem.n, problem.m, problem.variances.tolist()
    if m == n:
        return set(range(n))
    each = math.ceil(2 * max(variance) * level(problem) / problem.epsilon / problem.epsilon)
    means = yield dict.fromkeys(range(n), each)
    return best(means, m)
