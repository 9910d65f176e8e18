import math
from collections.abc import Generator

from shortlist import Problem
from shortlist.strategies.mixture import enough

from .wnelim import best


def width(pulls: int, variance: float, epsilon: float, alpha: float) -> float:
    """Half-normal mixture: sqrt(2 (V + rho) ln(sqrt((V + rho)/rho)/(2 alpha) + 1/2)) / t."""
    intrinsic, rho = variance * pulls, variance**2 / epsilon**2
    log = math.log(math.sqrt((intrinsic + rho) / rho) / (2 * alpha) + 0.5)
    return math.sqrt(2 * (intrinsic + rho) * log) / pulls


def interval(problem: Problem, arm: int, mean: float, pulls: int) -> tuple[float, float]:
    given = (pulls, float(problem.variances[arm]), problem.epsilon)
    lower = mean - width(*given, problem.delta / 2 / (problem.n - problem.m))
    return lower, mean + width(*given, problem.delta / 2 / problem.m)


def racing(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, eps, variance = problem.n, problem.m, problem.epsilon, problem.variances.tolist()
    if m == n:
        return set(range(n))
    last = [enough(problem) * v / eps**2 for v in variance]
    left = max(0, math.ceil(8 * math.log2(max(last))))
    race = set(range(n))
    chosen: set[int] = set()
    count, mean = dict.fromkeys(range(n), 0), dict.fromkeys(range(n), 0.0)
    while True:
        fresh = {i: math.ceil(last[i] * 2.0 ** (-left / 8)) - count[i] for i in sorted(race)}
        if any(fresh.values()):
            rewards = yield {i: pulls for i, pulls in fresh.items() if pulls}
            for i, reward in rewards.items():
                mean[i] = (mean[i] * count[i] + reward * fresh[i]) / (count[i] + fresh[i])
                count[i] += fresh[i]
        low, high = {}, {}
        for i in race:
            low[i], high[i] = interval(problem, i, mean[i], count[i])
        wanted = m - len(chosen)
        sure = {
            i for i in race if left == 0 or low[i] >= sorted(high[k] for k in race if k != i)[-wanted] - eps
        }
        sure = best({i: low[i] for i in sure}, min(wanted, len(sure)))
        chosen |= sure
        race -= sure
        wanted -= len(sure)
        if wanted == 0:
            return chosen
        race = {i for i in race if sum(low[k] > high[i] for k in race) < wanted}
        if len(race) == wanted:
            return chosen | race
        left -= 1


def lucb_mixture(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, m, eps, variance = problem.n, problem.m, problem.epsilon, problem.variances.tolist()
    if m == n:
        return set(range(n))
    size = [math.ceil(0.32 * v / eps**2) for v in variance]
    rewards = yield {i: size[i] for i in range(n)}
    mean, count = dict(rewards), dict(enumerate(size))
    while True:
        high = best(mean, m)
        bound = {i: interval(problem, i, mean[i], count[i]) for i in range(n)}
        h = min(high, key=lambda i: (bound[i][0], i))
        low = max(set(range(n)) - high, key=lambda i: (bound[i][1], -i))
        long = [i for i in (h, low) if count[i] < enough(problem) * variance[i] / eps**2]
        if bound[low][1] - bound[h][0] <= eps or not long:
            return high
        rewards = yield {i: size[i] for i in long}
        for i in long:
            mean[i] = (mean[i] * count[i] + rewards[i] * size[i]) / (count[i] + size[i])
            count[i] += size[i]


def top_two(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    n, eps, variance = problem.n, problem.epsilon, problem.variances.tolist()
    if problem.m == n:
        return set(range(n))
    mean = yield dict.fromkeys(range(n), 1)
    count = dict.fromkeys(range(n), 1)
    while True:
        (leader,) = best(mean, 1)
        lack = {}
        for i in set(range(n)) - {leader}:
            spread, bar = 0.0, math.log((n - 1) / problem.delta)
            for k in (i, leader):
                rho = variance[k] ** 2 / eps**2
                intrinsic = variance[k] * count[k]
                spread += (intrinsic + rho) / count[k] ** 2
                bar += 0.5 * math.log((intrinsic + rho) / rho)
            lack[i] = bar - (mean[leader] - mean[i] + eps) ** 2 / (2 * spread)
        rival = max(lack, key=lambda i: (lack[i], -i))
        if lack[rival] <= 0:
            return {leader}
        square = {i: count[i] ** 2 * (max(variance) / variance[i]) for i in range(n)}
        arm = leader if square[leader] < sum(square.values()) - square[leader] else rival
        fresh = 1 + count[arm] // 16
        rewards = yield {arm: fresh}
        mean[arm] = (mean[arm] * count[arm] + rewards[arm] * fresh) / (count[arm] + fresh)
        count[arm] += fresh
