import math
from collections.abc import Generator

from shortlist import Problem
from shortlist.strategies.level_course import course

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


def level_race(
    problem: Problem, most_levels: int = 48
) -> Generator[dict[int, int], dict[int, float], set[int]]:
    if problem.m == problem.n:
        return set(range(problem.n))
    run = Race(problem, most_levels)
    asked: dict[int, int] | None = {i: run.usual(i, 0) for i in range(problem.n)}
    while asked:
        run.enter(asked, (yield asked))
        asked = run.next_batch()
    return run.incumbents


class Race:
    """All pairs are looked at one by one, each time. Only levels, rates and classes are taken as planned."""

    def __init__(self, problem: Problem, most_levels: int) -> None:
        n, m, delta = problem.n, problem.m, problem.delta
        plan = course(problem, most_levels)
        level: list[float] = plan.levels.tolist()
        self.problem, self.n, self.m, self.level = problem, n, m, level
        self.rate: list[float] = plan.rate.tolist()
        self.n_classes = plan.leads.shape[-1]
        self.weight = [level[0]] + [level[k] - level[k - 1] for k in range(1, len(level))]
        self.unit: list[float] = [2 * s / problem.epsilon**2 for s in problem.variances.tolist()]
        self.swapping = problem.noise == "gaussian" and len(set(self.unit)) == 1 and n <= 64
        delta_pairs = 0.3 * delta if self.swapping else delta
        self.delta_swaps = delta - delta_pairs
        self.log_price = math.log(m * (n - m) / delta_pairs)
        self.rest_lead = math.log(n * m / (1.5 * self.delta_swaps)) if self.swapping else math.inf
        self.reached = dict.fromkeys(range(n), -1)
        self.score, self.spread = dict.fromkeys(range(n), 0.0), dict.fromkeys(range(n), 0.0)
        self.scores: list[dict[int, float]] = []  # by level, of the arms that have reached it
        self.spreads: list[dict[int, float]] = []  # the same, rounded up
        self.present: list[set[int]] = []  # by level, who stood there when it was the front
        self.incumbents: set[int] = set()
        self.resting: set[int] = set()
        self.accounts = dict.fromkeys(range(n), 0.0)
        self.known: dict[tuple[int, int, int], bool] = {}
        self.climbs = self.returns = 0

    @property
    def front(self) -> int:
        return len(self.scores) - 1

    def usual(self, i: int, k: int) -> int:
        return max(1, math.ceil(self.unit[i] * self.rate[i] * self.weight[k]))

    def rounded(self, k: int, exact: float) -> float:
        """A spread, rounded up to the level divided by a power of 1.05."""
        kind = 0
        while kind + 1 < self.n_classes and exact <= self.level[k] / 1.05 ** (kind + 1) * (1 - 1e-11):
            kind += 1
        return self.level[k] / float(1.05**kind)

    def is_settled(self, i: int, j: int) -> bool:
        """Whether it is a fact that i does not beat j by epsilon, where both have come last."""
        k = min(self.reached[i], self.reached[j])
        if (i, j, k) not in self.known:
            lead = self.scores[k][j] - self.scores[k][i]
            found = log_evidence(lead, self.level[k], self.spreads[k][i] + self.spreads[k][j])
            self.known[i, j, k] = found >= self.log_price
        return self.known[i, j, k]

    def is_at_rest(self, i: int) -> bool:
        k = self.reached[i]
        return i in self.resting and all(
            j in self.present[k] and self.scores[k][i] <= self.scores[k][j] - self.rest_lead
            for j in self.incumbents
        )

    def outsiders(self) -> list[int]:
        return [i for i in range(self.n) if i not in self.incumbents]

    def open_outsiders(self) -> set[int]:
        return {
            i
            for i in self.outsiders()
            if not self.is_at_rest(i)
            and any(self.reached[j] >= self.reached[i] and not self.is_settled(i, j) for j in self.incumbents)
        }

    def choose(self) -> None:
        loyalty = 0.3 * (1 - self.level[self.front] / self.level[-1])
        self.incumbents = best(
            {
                i: self.score[i] / (2 * self.level[self.reached[i]]) + loyalty * (i in self.incumbents)
                for i in range(self.n)
            },
            self.m,
        )

    def enter(self, asked: dict[int, int], means: dict[int, float]) -> None:
        n_before = len(self.scores)
        for i, count in asked.items():
            self.reached[i] += 1
            k = self.reached[i]
            self.score[i] += 2 * self.weight[k] * (means[i] / self.problem.epsilon)
            self.spread[i] += self.weight[k] ** 2 * self.unit[i] / count
            self.resting.discard(i)
            if k == len(self.scores):
                self.scores.append({})
                self.spreads.append({})
                self.present.append(set())
            if k == n_before:
                self.present[k].add(i)
            self.scores[k][i], self.spreads[k][i] = self.score[i], self.rounded(k, self.spread[i])
        if len(self.scores) > n_before:
            self.climbs = 0
            self.choose()
            if self.swapping and self.incumbents <= self.present[-1]:
                self.rest()

    def rest(self) -> None:
        """Let open outsiders far behind all incumbents rest; every arm far ahead of one is charged for it."""
        score, here = self.score, self.present[-1]
        least = min(score[j] for j in self.incumbents) - self.rest_lead
        far = {i for i in self.open_outsiders() & here if score[i] <= least}
        trial = dict(self.accounts)
        for j in here:
            for i in far:
                if score[i] <= score[j] - self.rest_lead:
                    trial[j] += charge(score[j], score[i])
        if fullest(trial, self.m) <= self.delta_swaps:
            self.accounts, self.resting = trial, self.resting | far

    def late(self, opened: set[int]) -> set[int]:
        """The arms that catch up now."""
        if self.returns > 1:
            return {i for i in range(self.n) if self.reached[i] < self.front}
        late = {j for j in self.incumbents if self.reached[j] < self.front}
        wanted = {
            j
            for j in late
            if any(self.reached[i] > self.reached[j] and not self.is_settled(i, j) for i in self.outsiders())
        }
        if self.climbs == 0:
            late = wanted
        if self.climbs == 1:
            late = late if wanted else set()
        return late or {i for i in opened if self.reached[i] < self.front}

    def is_swap_enough(self, opened: set[int]) -> bool:
        trial = dict(self.accounts)
        for j in self.incumbents:
            if self.reached[j] == self.front:
                trial[j] += sum(charge(self.score[j], self.score[i]) for i in opened)
        return self.swapping and fullest(trial, self.m) <= self.delta_swaps

    def next_batch(self) -> dict[int, int] | None:
        while True:
            opened = self.open_outsiders()
            if late := self.late(opened):
                if min(late) not in self.incumbents:
                    self.climbs = max(self.climbs, 1)
                elif self.climbs:
                    self.climbs = 2
                return {i: self.usual(i, self.reached[i] + 1) for i in late}
            if not opened or self.is_swap_enough(opened):
                return None
            if self.front + 1 < len(self.level):
                return self.advance(opened)
            self.climbs, self.returns = 0, self.returns + 1
            assert self.returns <= 3  # by then all arms stand at the last level, where scores decide
            self.choose()

    def advance(self, opened: set[int]) -> dict[int, int]:
        """All arms of open pairs go on; the best of them take twice as many pulls, as far as these go."""
        k = self.front + 1
        doubtful = {
            j
            for j in self.incumbents
            if self.reached[j] == self.front and any(not self.is_settled(i, j) for i in opened)
        }
        asked = {i: self.usual(i, k) for i in opened | doubtful}
        left = 0 if self.swapping else int(0.07 * sum(self.usual(i, k) for i in range(self.n)))
        for i in sorted(asked, key=lambda i: (-self.score[i], i)):
            left -= asked[i]
            if left < 0:
                break
            asked[i] *= 2
        return asked
