import math
from collections.abc import Generator

from shortlist import Problem

from .wnelim import best


def lucb(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, variance = problem.n, problem.m, problem.variances.tolist()
    if m == n:
        return set(range(n))
    mean = yield dict.fromkeys(range(n), 1)
    count = dict.fromkeys(range(n), 1)
    t = n
    while True:
        rate = math.log(5 * n * float(t) ** 4 / (4 * problem.delta))
        half = {i: math.sqrt(2 * variance[i] / count[i]) * math.sqrt(rate) for i in range(n)}
        high = best(mean, m)
        h = min(high, key=lambda i: (mean[i] - half[i], i))
        low = max(set(range(n)) - high, key=lambda i: (mean[i] + half[i], -i))
        if (mean[low] + half[low]) - (mean[h] - half[h]) < problem.epsilon:
            return high
        rewards = yield {h: 1, low: 1}
        for i in (h, low):
            count[i] += 1
            mean[i] += (rewards[i] - mean[i]) / count[i]
        t += 2


def ugape(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, variance = problem.n, problem.m, problem.variances.tolist()
    if m == n:
        return set(range(n))
    mean = yield dict.fromkeys(range(n), 1)
    count = dict.fromkeys(range(n), 1)
    t = n
    while True:
        rate = math.log(4 * n * float(t) ** 3 / problem.delta)
        beta = {i: math.sqrt(2 * variance[i] / count[i]) * math.sqrt(rate) for i in range(n)}
        upper = {i: mean[i] + beta[i] for i in range(n)}
        lower = {i: mean[i] - beta[i] for i in range(n)}
        index = {}
        for k in range(n):
            others = sorted((upper[i] for i in range(n) if i != k), reverse=True)
            index[k] = others[m - 1] - lower[k]
        chosen = set(sorted(range(n), key=lambda k: (index[k], k))[:m])
        if max(index[k] for k in chosen) < problem.epsilon:
            return chosen
        u = max(set(range(n)) - chosen, key=lambda i: (upper[i], -i))
        low = min(chosen, key=lambda i: (lower[i], i))
        pulled = low if beta[low] >= beta[u] else u
        rewards = yield {pulled: 1}
        count[pulled] += 1
        mean[pulled] += (rewards[pulled] - mean[pulled]) / count[pulled]
        t += 1
