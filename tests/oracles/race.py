import math
from collections.abc import Generator

from shortlist import Problem
from shortlist.strategies.race_course import course

from .wnelim import best

TILTS = {0.5: 0.4, 0.75: 0.25, 1.2: 0.2, 2.0: 0.15}


def log_evidence(lead: float, level: float, spread: float) -> float:
    """The logarithm of the sum over tilts c of weight * exp(c G - c^2 H)."""
    G, H = lead + 2 * level, spread
    logs = [math.log(weight) + c * G - c**2 * H for c, weight in TILTS.items()]
    return max(logs) + math.log(sum(math.exp(one - max(logs)) for one in logs))


def charge(ahead: float, behind: float) -> float:
    return math.exp(behind - ahead) if behind - ahead < 700 else math.inf


def fullest(accounts: dict[int, float], m: int) -> float:
    return sum(sorted(accounts.values(), reverse=True)[:m])


def race(  # noqa: PLR0915  (one rule, to be read from top to bottom)
    problem: Problem,
) -> Generator[dict[int, int], dict[int, float], set[int]]:
    """All pairs are looked at one by one, each time. Only levels, rates and classes are taken as planned."""
    n, m, epsilon, delta = problem.n, problem.m, problem.epsilon, problem.delta
    if m == n:
        return set(range(n))
    plan = course(problem)
    level, rate, n_classes = plan.levels.tolist(), plan.rate.tolist(), plan.leads.shape[-1]
    weight = [level[0]] + [level[k] - level[k - 1] for k in range(1, len(level))]
    unit = [2 * s / epsilon**2 for s in problem.variances.tolist()]
    swapping = problem.noise == "gaussian" and len(set(unit)) == 1 and n <= 64
    delta_pairs = 0.3 * delta if swapping else delta
    delta_swaps = delta - delta_pairs
    log_price = math.log(m * (n - m) / delta_pairs)
    rest_lead = math.log(n * m / (1.5 * delta_swaps)) if swapping else math.inf

    reached = dict.fromkeys(range(n), -1)
    score, spread = dict.fromkeys(range(n), 0.0), dict.fromkeys(range(n), 0.0)
    scores: list[dict[int, float]] = []  # by level, of the arms that have reached it
    spreads: list[dict[int, float]] = []  # the same, rounded up
    present: list[set[int]] = []  # by level, who stood there when it was the front
    incumbents: set[int] = set()
    resting: set[int] = set()
    accounts = dict.fromkeys(range(n), 0.0)
    known: dict[tuple[int, int, int], bool] = {}
    climbs = returns = 0

    def usual(i: int, k: int) -> int:
        return max(1, math.ceil(float(unit[i] * rate[i] * weight[k])))

    def rounded(k: int, exact: float) -> float:
        kind = 0
        while kind + 1 < n_classes and exact <= level[k] * 1.05 ** -(kind + 1) * (1 - 1e-11):
            kind += 1
        return float(level[k]) * 1.05**-kind

    def is_settled(i: int, j: int) -> bool:
        k = min(reached[i], reached[j])
        if (i, j, k) not in known:
            lead = scores[k][j] - scores[k][i]
            known[i, j, k] = log_evidence(lead, level[k], spreads[k][i] + spreads[k][j]) >= log_price
        return known[i, j, k]

    def is_at_rest(i: int) -> bool:
        k = reached[i]
        return i in resting and all(
            j in present[k] and scores[k][i] <= scores[k][j] - rest_lead for j in incumbents
        )

    def open_outsiders() -> set[int]:
        return {
            i
            for i in range(n)
            if i not in incumbents and not is_at_rest(i)
            if any(reached[j] >= reached[i] and not is_settled(i, j) for j in incumbents)
        }

    def chosen() -> set[int]:
        loyalty = 0.3 * (1 - level[len(scores) - 1] / level[-1])
        mean = {i: score[i] / (2 * level[reached[i]]) + loyalty * (i in incumbents) for i in range(n)}
        return best(mean, m)

    def behind(opened: set[int]) -> set[int]:
        front = len(scores) - 1
        if returns > 1:
            return {i for i in range(n) if reached[i] < front}
        late = {j for j in incumbents if reached[j] < front}
        wanted = {
            j
            for j in late
            if any(i not in incumbents and reached[i] > reached[j] and not is_settled(i, j) for i in range(n))
        }
        if climbs == 0:
            late = wanted
        if climbs == 1:
            late = late if wanted else set()
        return late or {i for i in opened if reached[i] < front}

    asked = {i: usual(i, 0) for i in range(n)}
    while True:
        means = yield asked
        n_before = len(scores)
        for i, count in asked.items():
            reached[i] += 1
            k = reached[i]
            score[i] += 2 * weight[k] * (means[i] / epsilon)
            spread[i] += weight[k] ** 2 * unit[i] / count
            resting.discard(i)
            if k == len(scores):
                scores.append({})
                spreads.append({})
                present.append(set())
            if k == n_before:
                present[k].add(i)
            scores[k][i], spreads[k][i] = score[i], rounded(k, spread[i])
        front = len(scores) - 1
        if len(scores) > n_before:
            climbs = 0
            incumbents = chosen()
            if swapping and incumbents <= present[front]:
                least = min(score[j] for j in incumbents)
                far = {i for i in open_outsiders() & present[front] if score[i] <= least - rest_lead}
                trial = dict(accounts)
                for j in present[front]:
                    for i in far:
                        if score[i] <= score[j] - rest_lead:
                            trial[j] += charge(score[j], score[i])
                if fullest(trial, m) <= delta_swaps:
                    accounts, resting = trial, resting | far
        while True:
            opened = open_outsiders()
            late = behind(opened)
            if late:
                if min(late) not in incumbents:
                    climbs = max(climbs, 1)
                elif climbs:
                    climbs = 2
                asked = {i: usual(i, reached[i] + 1) for i in late}
                break
            trial = dict(accounts)
            for j in incumbents:
                if reached[j] == front:
                    trial[j] += sum(charge(score[j], score[i]) for i in opened)
            if not opened or (swapping and fullest(trial, m) <= delta_swaps):
                return incumbents
            if front + 1 < len(level):
                doubtful = {
                    j for j in incumbents if reached[j] == front and any(not is_settled(i, j) for i in opened)
                }
                asked = {i: usual(i, front + 1) for i in opened | doubtful}
                left = 0 if swapping else int(0.07 * sum(usual(i, front + 1) for i in range(n)))
                for i in sorted(asked, key=lambda i: (-score[i], i)):
                    left -= asked[i]
                    if left < 0:
                        break
                    asked[i] *= 2
                break
            climbs, returns = 0, returns + 1
            incumbents = chosen()
