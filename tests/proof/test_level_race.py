"""The race, judged by what it pulled and was told: nothing it says about itself is believed.

Scores, spreads and evidence are recomputed here from the batches alone; only the levels are taken as planned.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import strategy_named
from shortlist.strategies.level_course import course
from shortlist.strategies.protocol import Moments
from tests.oracles.level_race import charge, fullest, log_evidence
from tests.questions import known

pytestmark = pytest.mark.slow

ROUNDING = 1e-9
Told = Callable[["Log", dict[int, int]], dict[int, float]]


@dataclass
class Log:
    """What was pulled and told so far."""

    problem: sl.Problem
    batches: list[dict[int, int]] = field(default_factory=list)
    fronts: list[int] = field(default_factory=list)  # the front before each batch
    counts: list[dict[int, int]] = field(default_factory=list)  # by level
    scores: list[dict[int, float]] = field(default_factory=list)
    spreads: list[dict[int, float]] = field(default_factory=list)
    reached: dict[int, int] = field(default_factory=dict)
    selected: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.levels: list[float] = course(self.problem).levels.tolist()
        self.weights: list[float] = np.diff(self.levels, prepend=0.0).tolist()
        self.reached = self.reached or dict.fromkeys(range(self.problem.n), -1)

    @property
    def front(self) -> int:
        return len(self.scores) - 1

    def unit(self, arm: int) -> float:
        return float(2 * self.problem.variances[arm] / self.problem.epsilon**2)

    def spread(self, arm: int, level: int, count: int) -> float:
        before = self.spreads[level - 1][arm] if level else 0.0
        return before + self.weights[level] ** 2 * self.unit(arm) / count

    def enter(self, batch: dict[int, int], means: dict[int, float]) -> None:
        self.batches.append(batch)
        self.fronts.append(self.front)
        for arm, count in batch.items():
            k = self.reached[arm] = self.reached[arm] + 1
            assert k < len(self.levels)
            if k == len(self.scores):
                self.scores.append({})
                self.spreads.append({})
                self.counts.append({})
            before = self.scores[k - 1][arm] if k else 0.0
            self.scores[k][arm] = before + 2 * self.weights[k] * means[arm] / self.problem.epsilon
            self.spreads[k][arm] = self.spread(arm, k, count)
            self.counts[k][arm] = count

    def log_evidence(self, i: int, j: int) -> float:
        """That i does not beat j by epsilon, at the last level that both have reached."""
        k = min(self.reached[i], self.reached[j])
        lead = self.scores[k][j] - self.scores[k][i]
        return log_evidence(lead, self.levels[k], self.spreads[k][i] + self.spreads[k][j])

    def pairs(self, inside: set[int]) -> Iterator[tuple[int, int]]:
        return ((i, j) for i in range(self.problem.n) if i not in inside for j in inside)


def log_price(problem: sl.Problem, share: float = 1.0) -> float:
    return math.log(problem.m * (problem.n - problem.m) / (share * problem.delta))


def raced(
    problem: sl.Problem, told: Told, look: Callable[[Any, Log], None] = lambda _state, _log: None
) -> Log:
    strategy = strategy_named("level-race")
    state: Any = strategy.init(problem, ())
    log = Log(problem)
    while not strategy.verdict(state).is_final:
        look(state, log)
        asked = strategy.ask(state)
        batch = dict(zip(asked.arms.tolist(), asked.counts.tolist(), strict=True))
        means = told(log, batch)
        log.enter(batch, means)
        state = strategy.tell(state, Moments(np.array([means[arm] for arm in asked.arms.tolist()])))
    log.selected = set(strategy.verdict(state).selected.tolist())
    return log


def jumping(problem: sl.Problem, seed: int, rate: float, size: float, noise: float, fixed: int = 48) -> Told:
    """Rewards that depend on arm and level only, with means that jump. Those up to level `fixed` depend on
    nothing but the seed's first draws."""
    means: list[FloatArray] = [np.zeros(problem.n)]
    for k in range(48):
        rng = np.random.default_rng((seed, k, fixed if k > fixed else 48))
        jump = size * problem.epsilon * rng.standard_normal(problem.n)
        means.append(np.where(rng.random(problem.n) < rate, jump, means[-1]))
    errors = [
        np.random.default_rng((seed, 99, k, fixed if k > fixed else 48)).standard_normal(problem.n)
        for k in range(48)
    ]

    def told(log: Log, batch: dict[int, int]) -> dict[int, float]:
        found = {}
        for arm, count in batch.items():
            k = log.reached[arm] + 1
            error = noise * math.sqrt(problem.variances[arm] / count) * errors[k][arm]
            found[arm] = float(means[k + 1][arm] + error)
        return found

    return told


@st.composite
def races(draw: st.DrawFn, noises: tuple[str, ...] = ("sub-gaussian",)) -> tuple[sl.Problem, Told]:
    n = draw(st.integers(2, 20))
    m = draw(st.integers(1, min(n - 1, 6)))
    variances = [1.7] * n
    if draw(st.booleans()) and noises == ("sub-gaussian",):
        variances = [s * 2 ** draw(st.floats(-3, 3)) for s in variances]
    problem = known(
        m=m,
        epsilon=draw(st.sampled_from([0.1, 0.3, 1.0])),
        delta=draw(st.sampled_from([1e-5, 0.05, 0.3, 0.9])),
        variances=variances,
        noise=draw(st.sampled_from(noises)),
    )
    rate, size = draw(st.sampled_from([(0.0, 1.0), (1.0, 0.4), (0.2, 1.0), (0.1, 5.0), (1.0, 5.0)]))
    return problem, jumping(problem, draw(st.integers(0, 10**6)), rate, size, draw(st.sampled_from([0.3, 1])))


@given(race=races())
@settings(max_examples=60, deadline=None)
def test_every_pair_of_the_answer_is_settled_by_its_evidence(race: tuple[sl.Problem, Told]) -> None:
    problem, told = race
    log = raced(problem, told)
    assert len(log.selected) == problem.m
    for i, j in log.pairs(log.selected):
        assert log.log_evidence(i, j) >= log_price(problem) - ROUNDING


@given(race=races(("sub-gaussian", "gaussian")))
@settings(max_examples=60, deadline=None)
def test_batches_are_as_laid_out(race: tuple[sl.Problem, Told]) -> None:
    """Usual or, where the front moves, twice as large for the best; within the cap, level by level."""
    problem, told = race
    log = raced(problem, told)
    plan, strategy = course(problem), strategy_named("level-race")
    usual = [
        {
            i: max(1, math.ceil(log.unit(i) * float(plan.rate[i]) * weight * (1 - 1e-15)))
            for i in range(problem.n)
        }
        for weight in log.weights
    ]
    seen = dict.fromkeys(range(problem.n), -1)
    for batch, front in zip(log.batches, log.fronts, strict=True):
        for arm, count in batch.items():
            seen[arm] += 1
            moves = seen[arm] > front
            assert count in (usual[seen[arm]][arm], (1 + moves) * usual[seen[arm]][arm])
            assert count >= log.unit(arm) * log.weights[seen[arm]] * (1 - 1e-12)
        assert len({seen[arm] > front for arm in batch}) == 1  # either the front moves or arms catch up
    present = _present(log)
    for k, counts in enumerate(log.counts):
        total = sum(usual[k].values())
        excess = sum(count - usual[k][arm] for arm, count in counts.items())
        assert excess <= (0 if plan.is_swapping else 0.07 * total)
        doubled = {arm for arm, count in counts.items() if count > usual[k][arm]}
        for arm in doubled:
            assert all(
                other in doubled for other in present[k] if log.scores[k - 1][other] > log.scores[k - 1][arm]
            )
        if plan.is_swapping:
            assert len(set(counts.values())) == 1
    most, rounds = strategy.worst_case_pulls(problem), strategy.n_rounds(problem)
    assert most is not None
    assert rounds is not None
    assert sum(sum(batch.values()) for batch in log.batches) <= most
    assert len(log.batches) <= rounds


@pytest.mark.parametrize("seed", range(12))
def test_no_batch_depends_on_what_is_told_at_its_level_or_later(seed: int) -> None:
    """Runs that are told the same up to a level have the same batches up to the next, whoever comes when."""
    n = 18 + seed
    variances = np.exp(np.random.default_rng(seed).uniform(0.0, 2.0, n)) if seed % 2 else np.ones(n)
    problem = sl.Problem(m=1 + seed % 4, epsilon=0.2, delta=0.1, variances=variances)
    n_doubled = 0
    one = raced(problem, jumping(problem, seed, 0.3, 1.0, 1.0))
    for k in (0, 2, 5, 9, 14, 20):
        other = raced(problem, jumping(problem, seed, 0.3, 1.0, 1.0, fixed=k))
        for level in range(min(k + 2, len(one.counts), len(other.counts))):
            shared = one.counts[level].keys() & other.counts[level].keys()
            assert all(one.counts[level][arm] == other.counts[level][arm] for arm in shared)
            n_doubled += sum(2 * min(one.counts[level].values()) <= one.counts[level][arm] for arm in shared)
    assert n_doubled > 0


@pytest.mark.parametrize("noise", ["sub-gaussian", "gaussian"])
@pytest.mark.parametrize(
    ("n", "m", "spread"), [(2, 1, 1.0), (10, 3, 1.0), (10, 3, 2.0), (65, 4, 1.0), (64, 63, 1.0)]
)
def test_the_ledger_is_what_settlements_may_cost(n: int, m: int, spread: float, noise: str) -> None:
    problem = known(m=m, epsilon=0.1, delta=0.08, variances=np.linspace(1.0, spread, n), noise=noise)
    guarantee, plan = strategy_named("level-race").guarantee(problem), course(problem)
    assert guarantee is not None
    shares = [share.delta for share in guarantee.ledger.shares]
    assert math.fsum(shares) == pytest.approx(0.08, rel=1e-14)
    is_swapping = noise == "gaussian" and spread == 1.0 and n <= 64
    assert shares == pytest.approx([0.3 * 0.08, 0.7 * 0.08] if is_swapping else [0.08], rel=1e-14)
    assert ("gaussian-equal" in guarantee.assumptions) == is_swapping
    price = m * (n - m) / shares[0]
    lead = float(plan.leads[3, 0, 0])
    assert log_evidence(lead, float(plan.levels[3]), 2 * float(plan.levels[3])) == pytest.approx(
        math.log(price), abs=1e-9
    )


# The swap certificate


@given(race=races(("gaussian",)))
@settings(max_examples=60, deadline=None)
def test_pairs_not_settled_by_evidence_are_paid_for_at_equal_information(
    race: tuple[sl.Problem, Told],
) -> None:
    """Each such pair stood together at the front; what is owed for all of them stays within the share."""
    assert_paid(raced(*race))


def assert_paid(log: Log) -> None:
    problem, n, m = log.problem, log.problem.n, log.problem.m
    share = 0.7 * problem.delta
    rest_lead = math.log(n * m / (1.5 * share))
    present = _present(log)
    owed = dict.fromkeys(range(n), 0.0)
    for i, j in log.pairs(log.selected):
        if log.log_evidence(i, j) >= log_price(problem, 0.3) - ROUNDING:
            continue
        k = log.reached[i]
        assert log.counts[k].get(i) == log.counts[k].get(j)
        lead = log.scores[k][j] - log.scores[k][i]
        is_rest = {i, j} <= present[k] and lead >= rest_lead * (1 - ROUNDING)
        assert is_rest or k == log.reached[j] == log.front
        owed[j] += charge(lead, 0.0)
    assert fullest(owed, m) <= share * (1 + ROUNDING)


def _present(log: Log) -> list[set[int]]:
    """By level, the arms of the batch that moved the front there."""
    found: list[set[int]] = []
    seen = dict.fromkeys(range(log.problem.n), -1)
    for batch in log.batches:
        for arm in batch:
            seen[arm] += 1
        if max(seen[arm] for arm in batch) == len(found):
            found.append(set(batch))
    return found


@given(race=races(("gaussian",)))
@settings(max_examples=60, deadline=None)
def test_accounts_hold_a_charge_for_every_rest_and_never_too_much(race: tuple[sl.Problem, Told]) -> None:
    problem, told = race
    n, m, share = problem.n, problem.m, 0.7 * problem.delta
    rest_lead = math.log(n * m / (1.5 * share))
    owed = dict.fromkeys(range(n), 0.0)
    rested: set[tuple[int, int]] = set()

    def look(state: Any, log: Log) -> None:
        present = _present(log)
        for i in np.flatnonzero(state.is_resting).tolist():
            k = log.reached[i]
            if (i, k) in rested:
                continue
            rested.add((i, k))
            assert i in present[k]
            assert k == log.front  # arms go to rest at the front only
            for j in present[k]:
                if log.scores[k][j] - log.scores[k][i] >= rest_lead * (1 + ROUNDING):
                    owed[j] += charge(log.scores[k][j], log.scores[k][i])
        assert fullest(owed, m) <= share * (1 + ROUNDING)
        assert all(state.accounts[j] >= owed[j] * (1 - 1e-6) for j in range(n))
        assert state.course.delta_swaps == pytest.approx(share)
        for k, counts in enumerate(log.counts):
            assert len(set(counts.values())) == 1, k

    raced(problem, told, look)


def test_an_arm_that_came_later_has_paid_for_nobody_at_rest() -> None:
    """Arm 2 rests; arm 3, which was not there then, becomes the incumbent and passes by with a clear lead."""
    problem = known(m=1, epsilon=0.1, delta=0.1, variances=[1.0] * 4, noise="gaussian")
    plan = course(problem)
    rest = int(np.searchsorted(plan.levels, 1.0))
    clear = (float(plan.leads[rest, 0, 0]) + math.log(4 / (1.5 * 0.07))) / 2  # enough to rest, no evidence
    fall, far = rest + 3, -float(plan.leads[0, 0, 0]) - 0.5

    def score(arm: int, k: int) -> float:
        if k == 0:
            return far if arm == 3 else -0.5 * arm
        common = 2 * float(plan.levels[k]) * (far / (2 * float(plan.levels[0])) + 1)  # all means sink
        if arm < 2:
            return common - (0.5 * arm if k < fall else 500.0)
        if arm == 2:
            return common - (clear if k == rest else 0.7)
        return common - (k not in (rest, fall))

    def told(log: Log, batch: dict[int, int]) -> dict[int, float]:
        shown = {}
        for arm in batch:
            k = log.reached[arm] + 1
            gained = score(arm, k) - (score(arm, k - 1) if k else 0.0)
            shown[arm] = gained / log.weights[k] / 2 * problem.epsilon
        return shown

    rested, met = False, False

    def look(state: Any, log: Log) -> None:
        nonlocal rested, met
        rested = rested or bool(state.is_resting[2])
        met = met or (state.incumbents.tolist() == [3] and log.reached[2] == rest < log.reached[3])

    log = raced(problem, told, look)
    assert rested
    assert met
    assert log.reached[2] > rest
    assert_paid(log)


@pytest.mark.parametrize("seed", range(8))
def test_arms_are_treated_alike(seed: int) -> None:
    """Swap the rewards of two arms, all of them: the run is the same with the two arms swapped."""
    n, m = 4 + seed, 1 + seed % 3
    problem = known(m=m, epsilon=0.3, delta=0.1, variances=[2.0] * n, noise="gaussian")
    size, noise = (3.0, 0.3) if seed % 2 else (1.0, 1.0)
    told = jumping(problem, seed, 0.2, size, noise)
    log = raced(problem, told)
    for one in range(1, n):
        names = {arm: arm for arm in range(n)} | {0: one, one: 0}

        def swapped(log: Log, batch: dict[int, int], names: dict[int, int] = names) -> dict[int, float]:
            seen = Log(log.problem, reached={names[arm]: log.reached[arm] for arm in names})
            means = told(seen, {names[arm]: count for arm, count in batch.items()})
            return {arm: means[names[arm]] for arm in batch}

        other = raced(problem, swapped)
        assert [{names[arm]: count for arm, count in batch.items()} for batch in other.batches] == log.batches
        assert {names[arm] for arm in other.selected} == log.selected


# Which arms are pulled


def is_settled(log: Log, i: int, j: int, price: float, n_classes: int) -> bool:
    """By the evidence of spreads rounded up to 21/20 to a power."""
    k = min(log.reached[i], log.reached[j])
    rounded = 0.0
    for arm in (i, j):
        power = math.floor(math.log(log.levels[k] / log.spreads[k][arm]) / math.log(1.05) - 1e-9)
        rounded += log.levels[k] * 1.05 ** -min(max(power, 0), n_classes - 1)
    lead = log.scores[k][j] - log.scores[k][i]
    return log_evidence(lead, log.levels[k], rounded) >= price


@given(race=races(("sub-gaussian", "gaussian")))
@settings(max_examples=50, deadline=None)
def test_the_front_moves_with_exactly_the_arms_of_open_pairs(race: tuple[sl.Problem, Told]) -> None:
    problem, told = race
    plan = course(problem)
    price = log_price(problem, 0.3 if plan.is_swapping else 1.0)

    def look(state: Any, log: Log) -> None:
        asked = set(state.arms.tolist())
        if not log.batches:
            assert asked == set(range(problem.n))
            return
        inside = set(state.incumbents.tolist())
        assert len(inside) == problem.m
        open_pairs = [
            (i, j) for i, j in log.pairs(inside) if not is_settled(log, i, j, price, plan.leads.shape[-1])
        ]
        assert open_pairs
        moves = any(log.reached[arm] == log.front for arm in asked)
        if moves and not plan.is_swapping:
            assert asked == {arm for pair in open_pairs for arm in pair}
        if moves:
            assert asked == {
                arm for i, j in open_pairs if not state.is_resting[i] or i in asked for arm in (i, j)
            }
        assert asked - inside <= {i for i, _ in open_pairs} or state.returns > 1
        assert len({log.reached[arm] == log.front for arm in asked}) == 1

    raced(problem, told, look)


# Decisions: on the good event the answer is right


@pytest.mark.parametrize("wave", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("n_unkind", [1, 3, 99])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "m", "spread"), [(5, 1, 1.0), (12, 3, 9.0), (12, 11, 1.0), (20, 4, 9.0)])
def test_the_answer_is_right_if_no_bad_arm_is_ever_settled_ahead_of_a_best_one(
    n: int, m: int, spread: float, seed: int, n_unkind: int, wave: float
) -> None:
    """Some bad arms lead every best arm by just too little, at every level; all others do as they like."""
    rng = np.random.default_rng(seed)
    problem = sl.Problem(m=m, epsilon=0.5, delta=0.1, variances=spread ** rng.uniform(0.0, 1.0, n))
    arms = rng.permutation(n).tolist()
    best, bad = set(arms[:m]), set(arms[m + (n - m) // 3 :])  # the rest are good enough
    unkind = set(rng.permutation(sorted(bad))[:n_unkind].tolist())
    price = log_price(problem)
    plan = course(problem)
    paths = wave * rng.standard_normal((plan.n_levels, n))

    def told(log: Log, batch: dict[int, int]) -> dict[int, float]:
        shown = {}
        for arm, count in batch.items():
            k = log.reached[arm] + 1
            if arm in best:
                score = paths[k][0]
            elif arm in unkind:
                spreads = [
                    log.spreads[k][i] if log.reached[i] >= k else _spread_there(log, i, k, batch)
                    for i in best
                ]
                score = paths[k][0] + _lead(log.levels[k], log.spread(arm, k, count) + min(spreads), price)
            else:
                score = paths[k][0] - 3 * log.levels[k] + (paths[k][arm] if arm not in bad else 0.0)
            before = log.scores[k - 1][arm] if k else 0.0
            shown[arm] = (score - before) / log.weights[k] / 2 * problem.epsilon
        return shown

    log = raced(problem, told)
    assert not log.selected & bad


def _lead(level: float, spread: float, price: float) -> float:
    """A lead just too small to settle a pair."""
    low, high = -3 * level, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_evidence(middle, level, spread) >= price else (middle, high)
    return low - 1e-6


def _spread_there(log: Log, arm: int, level: int, batch: dict[int, int]) -> float:
    """What an arm that is not yet at a level will have there: by the batch awaited, or by usual batches."""
    found = log.spreads[log.reached[arm]][arm] if log.reached[arm] >= 0 else 0.0
    plan = course(log.problem)
    for k in range(log.reached[arm] + 1, level + 1):
        awaited = batch.get(arm) if k == log.reached[arm] + 1 else None
        count = awaited or int(plan.usual_batch(k, np.array([arm]))[0])
        found += log.weights[k] ** 2 * log.unit(arm) / count
    return found
