import math
from collections.abc import Generator

from shortlist import Problem


def best(means: dict[int, float], k: int) -> set[int]:
    """The k arms with the largest means; of equal ones, those with the lower number."""
    return set(sorted(means, key=lambda arm: (-means[arm], arm))[:k])


def naive(
    arms: set[int], m: int, epsilon: float, delta: float, variance: list[float]
) -> Generator[dict[int, int], dict[int, float], set[int]]:
    if len(arms) <= m:
        return arms
    total = sum(variance[i] for i in sorted(arms))
    pulls = {}
    for i in arms:
        omega = delta * variance[i] / total
        pulls[i] = math.ceil(2 * variance[i] / (epsilon / 2) ** 2 * math.log(1 / omega))
    means = yield pulls
    return best(means, m)


def wnelim(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    every = set(range(problem.n))
    return (yield from naive(every, problem.m, problem.epsilon, problem.delta, problem.variances.tolist()))
