import math
from collections.abc import Generator
from fractions import Fraction

from shortlist import Problem

from .wnelim import best


def h(variances: list[Fraction], m: int, level: int) -> int:
    falling = sorted(variances, reverse=True)
    limit = sum(variances) / 2 ** (level - 1)
    fitting = [j for j in range(m, len(falling) + 1) if sum(falling[:j]) <= limit]
    return max(fitting, default=m)


def eliminate(problem: Problem, *, published: bool) -> Generator[dict[int, int], dict[int, float], set[int]]:
    exact = [Fraction(value) for value in problem.variances.tolist()]
    last = 1
    while h(exact, problem.m, last) != problem.m:
        last += 1
    sizes = [h(exact, problem.m, level) for level in range(1, last + 1)]
    arms = set(range(problem.n))
    if last == 1:
        return arms
    r = min(sizes[j + 1] / sizes[j] for j in range(last - 1))
    for level in range(1, last):
        epsilon_l = (problem.epsilon / 3) * 3**level / 4**level
        share = r * problem.delta if published else problem.delta / (1 + 1 / r)
        delta_l = share / 2**level
        pulls = {}
        for i in arms:
            needed = 2 * problem.variances[i] / (epsilon_l / 2) ** 2 * math.log(problem.m / delta_l)
            pulls[i] = math.ceil(needed)
        means = yield pulls
        arms = best(means, sizes[level])
    return arms


def adapted_medelim(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    return eliminate(problem, published=False)


def adapted_medelim_published(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    return eliminate(problem, published=True)
