import math
from collections.abc import Generator

from shortlist import Problem


def biz(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, eps, variance = problem.n, problem.epsilon, problem.variances.tolist()
    if problem.m == n:
        return set(range(n))
    c, p = 1 - (1 - problem.delta) ** (1 / (n - 1)), 1 - problem.delta
    alive, count, mean = list(range(n)), dict.fromkeys(range(n), 0), dict.fromkeys(range(n), 0.0)
    time = 1
    while True:
        due = {i: math.ceil(time * (variance[i] / max(variance))) - count[i] for i in alive}
        if any(due.values()):
            rewards = yield {i: pulls for i, pulls in due.items() if pulls}
            for i, reward in rewards.items():
                mean[i] = (mean[i] * count[i] + reward * due[i]) / (count[i] + due[i])
                count[i] += due[i]
            while True:
                top = max(mean[i] for i in alive)
                weight = {i: math.exp(eps * (time / max(variance)) * (mean[i] - top)) for i in alive}
                q = {i: weight[i] / sum(weight.values()) for i in alive}
                winner, loser = max(alive, key=lambda i: q[i]), min(alive, key=lambda i: q[i])
                if q[winner] >= p:
                    return {winner}
                if q[loser] > c:
                    break
                alive.remove(loser)
                p /= 1 - q[loser]
        time += max(1, time // 64)
