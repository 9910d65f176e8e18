import math
from collections.abc import Generator

from shortlist import Problem


def kn(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, eps, variance = problem.n, problem.epsilon, problem.variances.tolist()
    if problem.m == n:
        return set(range(n))
    beta = 1 - (1 - problem.delta) ** (1 / (n - 1))
    a = max(0.0, math.log(1 / (2 * beta)) / eps)
    alive, total, r = list(range(n)), dict.fromkeys(range(n), 0.0), 0
    while len(alive) > 1:
        fresh = max(1, r // 128)
        rewards = yield dict.fromkeys(alive, fresh)
        r += fresh
        for i in alive:
            total[i] += fresh * rewards[i]
        mean = {i: total[i] / r for i in alive}

        def beats(other: int, i: int, mean: dict[int, float] = mean, r: int = r) -> bool:
            width = a * (variance[i] / r + variance[other] / r) - eps / 2
            return mean[other] - mean[i] >= max(width, 0.0) and (mean[other] > mean[i] or other < i)

        alive = [i for i in alive if not any(beats(other, i) for other in alive if other != i)]
    return set(alive)
