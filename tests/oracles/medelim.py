import math
from collections.abc import Generator

from shortlist import Problem

from .wnelim import best


def screen(
    arms: set[int], m: int, epsilon: float, delta: float, variance: list[float]
) -> Generator[dict[int, int], dict[int, float], set[int]]:
    level = 1
    while len(arms) > 2 * m:
        epsilon_l = (epsilon / 3) * 3**level / 4**level
        delta_l = (delta / 4) / 2**level
        pulls = {}
        for i in arms:
            pulls[i] = math.ceil(2 * variance[i] / (epsilon_l / 2) ** 2 * math.log(m / delta_l))
        means = yield pulls
        arms = best(means, max(len(arms) // 2, 2 * m))
        level += 1
    return arms


def medelim(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    every = set(range(problem.n))
    return (yield from screen(every, problem.m, problem.epsilon, problem.delta, problem.variances.tolist()))


def medelim_max(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    arms, m = set(range(problem.n)), problem.m
    noisiest = max(problem.variances.tolist())
    epsilon_l, delta_l = problem.epsilon / 4, problem.delta / 2
    while len(arms) > m:
        pulls = math.ceil(8 * noisiest / epsilon_l**2 * math.log(3 * m / delta_l))
        means = yield dict.fromkeys(arms, pulls)
        arms = best(means, max(math.ceil(len(arms) / 2), m))
        epsilon_l *= 3 / 4
        delta_l /= 2
    return arms
