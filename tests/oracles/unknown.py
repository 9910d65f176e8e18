"""Strategies for unknown variances, written down a second time.

These oracles yield ``{arm: pulls}`` as well. To the first batch, the pilot, they are sent
``{arm: (mean, sample variance)}``, and later ``{arm: mean}``. Constants that come from integrals, and the
size of the pilot, are taken from the package.
"""

import math
from collections.abc import Callable, Generator
from typing import Any

from scipy.stats import chi2

from shortlist import Problem
from shortlist.strategies import dudewicz_dalal as dd
from shortlist.strategies import pilot
from shortlist.strategies import rinott as two_stage

from .wnelim import best

Asks = Generator[dict[int, int], Any, set[int]]


def rinott(question: Problem) -> Asks:
    n0 = pilot.size(question)
    h = two_stage.constant(question.n, n0, question.delta)
    first = yield dict.fromkeys(range(question.n), n0)
    means = {i: first[i][0] for i in first}
    more = {i: math.ceil(first[i][1] * (h / question.epsilon) ** 2) - n0 for i in first}
    more = {i: count for i, count in more.items() if count > 0}
    if more:
        second = yield more
        for i, count in more.items():
            means[i] = (n0 * means[i] + count * second[i]) / (n0 + count)
    return best(means, 1)


def dudewicz_dalal(question: Problem) -> Asks:
    n0, eps = pilot.size(question), question.epsilon
    h = dd.constant(question.n, question.m, n0, question.delta)
    first = yield dict.fromkeys(range(question.n), n0)
    if h == 0:  # a guess is right often enough
        return best({i: first[i][0] for i in first}, question.m)
    total = {i: max(n0 + 1, math.ceil(first[i][1] * (h / eps) ** 2)) for i in first}
    second = yield {i: total[i] - n0 for i in first}
    scores = {}
    for i, (mean, variance) in first.items():
        ratio = total[i] / n0
        # Dudewicz and Dalal's own form of the weight
        inside = 1 - ratio * (1 - (total[i] - n0) * (eps / h) ** 2 / variance)
        weight = 1 / ratio * (1 + math.sqrt(max(0.0, inside)))
        scores[i] = weight * mean + (1 - weight) * second[i]
    return best(scores, question.m)


def kim_nelson(question: Problem) -> Asks:
    n, eps, r = question.n, question.epsilon, pilot.size(question)
    beta = 1 - (1 - question.delta) ** (1 / (n - 1))
    eta = max(0.0, ((2 * beta) ** (-2 / (r - 1)) - 1) / 2)
    h2 = 2 * eta * (r - 1)
    first = yield dict.fromkeys(range(n), r)
    total, variance = {i: r * first[i][0] for i in first}, {i: first[i][1] for i in first}
    alive = list(range(n))
    while True:
        mean = {i: total[i] / r for i in alive}

        def beats(other: int, i: int, mean: dict[int, float] = mean, r: int = r) -> bool:
            width = eps / (2 * r) * (h2 * (variance[i] + variance[other]) / eps**2 - r)
            return mean[other] - mean[i] >= max(width, 0.0) and (mean[other] > mean[i] or other < i)

        alive = [i for i in alive if not any(beats(other, i) for other in alive if other != i)]
        if len(alive) == 1:
            return set(alive)
        fresh = max(1, r // 128)
        rewards = yield dict.fromkeys(alive, fresh)
        r += fresh
        for i in alive:
            total[i] += fresh * rewards[i]


def t_race(question: Problem) -> Asks:
    n, m, eps, n0 = question.n, question.m, question.epsilon, pilot.size(question)
    lines = []
    for c, share in ((0.5, 0.6), (1.0, 0.1), (2.0, 0.1), (4.0, 0.1), (8.0, 0.1)):
        each = share * question.delta / (m * (n - m))
        lines.append((c, (n0 - 1) / 2 * ((each / 2) ** (-2 / (n0 - 1)) - 1)))
    first = yield dict.fromkeys(range(n), n0)
    var = {i: first[i][1] for i in first}
    q = min(8, n0)
    rate = {i: max(1, math.ceil(q * (math.sqrt(var[i]) / math.sqrt(max(var.values()))))) for i in first}
    rounds = [n0 // q]
    score = {i: [first[i][0]] for i in first}  # by level
    n_unsettled: dict[tuple[int, int], int] = {}  # by pair: the first levels, at which it was not settled

    def is_settled(i: int, j: int) -> bool:
        first_new = n_unsettled.get((i, j), 0)  # scores of a level stay, so what was not settled is not
        n_levels = n_unsettled[i, j] = min(len(score[i]), len(score[j]))
        for level in range(first_new, n_levels):
            r = rounds[level]
            moved = r * (score[j][level] - score[i][level] + eps)
            spread = var[i] / rate[i] + var[j] / rate[j]
            if any(moved >= a * spread / (2 * c * eps) + c * eps * r for c, a in lines):
                n_unsettled[i, j] = level  # it remains settled here
                return True
        return False

    while True:
        chosen = best({i: score[i][-1] for i in range(n)}, m)
        pairs = [(i, j) for i in range(n) if i not in chosen for j in chosen if not is_settled(i, j)]
        if not pairs:
            return chosen
        moving = {i for i, j in pairs if len(score[i]) <= len(score[j])}
        moving |= {j for i, j in pairs if len(score[j]) <= len(score[i])}
        if max(len(score[i]) for i in moving) == len(rounds):
            rounds.append(rounds[-1] + max(1, rounds[-1] // 16))
        fresh = {i: rounds[len(score[i])] - rounds[len(score[i]) - 1] for i in sorted(moving)}
        rewards = yield {i: fresh[i] * rate[i] for i in fresh}
        for i, more in fresh.items():
            before = rounds[len(score[i]) - 1]
            score[i].append((before * score[i][-1] + more * rewards[i]) / (before + more))


def piloted(question: Problem, oracle: Callable[[Problem], Asks]) -> Asks:
    n0, share = pilot.size(question), 0.3 * question.delta
    first = yield dict.fromkeys(range(question.n), n0)
    quantile = chi2.ppf(1 - (1 - share) ** (1 / question.n), n0 - 1)
    bounds = [first[i][1] * (n0 - 1) / quantile for i in range(question.n)]
    problem = Problem(question.m, question.epsilon, question.delta - share, bounds)
    return (yield from oracle(problem))


UNKNOWN = {
    "rinott": rinott,
    "dudewicz-dalal": dudewicz_dalal,
    "kim-nelson": kim_nelson,
    "t-race": t_race,
}
