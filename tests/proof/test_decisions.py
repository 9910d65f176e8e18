"""On the good events of the proofs, the answer is right: this breaks when a decision rule is wrong."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import strategy_named
from shortlist.strategies.confidence import Open, Start
from shortlist.strategies.protocol import Moments
from shortlist.variance_groups import variance_groups
from tests.oracles.adapted_medelim import h
from tests.proof.adversary import EDGE, kth_best, level_means

SEEDS = range(8)


def instance(seed: int, n: int, m: int, *, spread: float) -> tuple[sl.Problem, FloatArray]:
    """Means packed around the cut, so that every allowance of a proof matters."""
    rng = np.random.default_rng(seed)
    variances = np.exp(rng.uniform(0, math.log(spread), n)) if spread > 1 else np.ones(n)
    problem = sl.Problem(m=m, epsilon=1.0, delta=0.1, variances=variances)
    return problem, rng.choice([0.0, -0.2, -0.5, -0.9, -1.1, -1.3, -2.0], n) + 1e-3 * rng.standard_normal(n)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "m"), [(5, 1), (12, 3), (12, 11), (40, 7)])
def test_wnelim_is_right_when_no_mean_errs_by_half_of_epsilon(seed: int, n: int, m: int) -> None:
    problem, means = instance(seed, n, m, spread=9.0)
    best = set(np.argsort(-means, kind="stable")[:m].tolist())
    shown = [means[arm] + EDGE * (-0.5 if arm in best else 0.5) for arm in range(n)]
    selected = _played("wnelim", problem, lambda _level, arms: np.array(shown)[arms])
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "m"), [(5, 1), (12, 3), (12, 11), (40, 7)])
@pytest.mark.parametrize("name", ["single-stage", "gaussian-single-stage"])
def test_a_single_stage_is_right_when_no_two_errors_add_up_to_epsilon(
    name: str, seed: int, n: int, m: int, share: float
) -> None:
    problem, means = instance(seed, n, m, spread=9.0)
    best = set(np.argsort(-means, kind="stable")[:m].tolist())
    shown = [means[arm] + EDGE * (-share if arm in best else 1 - share) for arm in range(n)]
    selected = _played(name, problem, lambda _level, arms: np.array(shown)[arms])
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "m"), [(9, 1), (33, 2), (50, 4), (64, 3)])
def test_medelim_keeps_contenders_for_every_rank(seed: int, n: int, m: int) -> None:
    problem, means = instance(seed, n, m, spread=1.0)
    for rank in range(1, m + 1):

        def shown(level: int, arms: list[int], rank: int = rank) -> FloatArray:
            kept = max(len(arms) // 2, 2 * m)
            return level_means(arms, means, rank, kept, (1 / 3) * 0.75**level, seed=seed)

        selected = _played("medelim", problem, shown)
        assert len(selected) == 2 * m
        assert kth_best(selected, means, rank) >= kth_best(set(range(n)), means, rank) - 1.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "m"), [(8, 1), (33, 2), (50, 4), (13, 6)])
def test_medelim_max_is_right(seed: int, n: int, m: int) -> None:
    problem, means = instance(seed, n, m, spread=9.0)

    def shown(level: int, arms: list[int]) -> FloatArray:
        kept = max(math.ceil(len(arms) / 2), m)
        return level_means(arms, means, m, kept, 0.25 * 0.75 ** (level - 1), seed=seed)

    selected = _played("medelim-max", problem, shown)
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0


@pytest.mark.parametrize("name", ["adapted-medelim", "adapted-medelim-published"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "m"), [(8, 1), (33, 2), (50, 4), (13, 6)])
def test_adapted_medelim_is_right(name: str, seed: int, n: int, m: int) -> None:
    problem, means = instance(seed, n, m, spread=9.0)

    def shown(level: int, arms: list[int]) -> FloatArray:
        kept = h(problem.variances.tolist(), m, level + 1)
        return level_means(arms, means, m, kept, (1 / 3) * 0.75**level, seed=seed)

    selected = _played(name, problem, shown)
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "m", "spread"), [(30, 2, 3.9), (60, 3, 7.0), (12, 3, 100.0), (9, 5, 2.5)])
def test_vmedelim_is_right(seed: int, n: int, m: int, spread: float) -> None:
    problem, means = instance(seed, n, m, spread=spread)
    top = set(np.argsort(-means, kind="stable")[:m].tolist())
    groups = [set(group.tolist()) for group in variance_groups(problem.variances)]
    screened = max(len(group) for group in groups) > 2 * m
    n_levels = 0

    def shown(level: int, arms: list[int]) -> FloatArray:
        nonlocal n_levels
        n_levels = level
        sample = dict.fromkeys(arms, 0.0)
        present = [[arm for arm in arms if arm in group] for group in groups]
        if any(len(members) > 2 * m for members in present):
            for members, group in zip(present, groups, strict=True):
                if len(members) > 2 * m:
                    rank = max(1, len(group & top))
                    kept = max(len(members) // 2, 2 * m)
                    low = level_means(members, means, rank, kept, (0.5 / 3) * 0.75**level, seed=seed)
                    sample |= dict(zip(members, low.tolist(), strict=True))
        else:
            best = set(sorted(arms, key=lambda arm: (-means[arm], arm))[:m])
            sample = {arm: means[arm] + EDGE * (-0.25 if arm in best else 0.25) for arm in arms}
        return np.array([sample[arm] for arm in arms])

    selected = _played("vmedelim", problem, shown)
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0
    assert (n_levels > 1) == screened


@pytest.mark.parametrize("name", ["lucb", "ugape"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "m"), [(4, 1), (10, 3), (10, 8), (90, 3)])
def test_intervals_that_hold_give_a_right_answer(name: str, seed: int, n: int, m: int) -> None:
    """Every mean sits at the end of its interval that favours the wrong answer."""
    problem, means = instance(seed, n, m, spread=4.0)
    problem = sl.Problem(m=m, epsilon=1.0, delta=0.5, variances=problem.variances / 50)
    best = set(np.argsort(-means, kind="stable")[:m].tolist())
    rate: Callable[[float], float] = {
        "lucb": lambda t: math.log(5 * n * t**4 / (4 * 0.5)),
        "ugape": lambda t: math.log(4 * n * t**3 / 0.5),
    }[name]
    strategy = strategy_named(name)
    state: Any = strategy.init(problem, ())
    counts, observed = np.zeros(n), np.zeros(n)
    for _ in range(20_000):
        if strategy.verdict(state).is_final:
            break
        assert isinstance(state, Start | Open)
        batch = strategy.ask(state)
        counts[batch.arms] += 1
        t = counts.sum()
        rewards = []
        for arm in batch.arms.tolist():
            half = math.sqrt(2 * problem.variances[arm] * rate(t) / counts[arm])
            target = means[arm] + (-1 if arm in best else 1) * 0.999 * half
            rewards.append(target * counts[arm] - observed[arm] * (counts[arm] - 1))
            observed[arm] = target
        state = strategy.tell(state, Moments(np.array(rewards)))
    assert strategy.verdict(state).is_final
    selected = set(strategy.verdict(state).selected.tolist())
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0


def half_width(count: float, variance: float, alpha: float) -> float:
    """The mixture's half-width at epsilon = 1, where the weight is worth as many pulls as the variance."""
    log = math.log(math.sqrt((count + variance) / variance) / (2 * alpha) + 0.5)
    return math.sqrt(2 * variance * (count + variance) * log) / count


def _adverse(
    name: str, problem: sl.Problem, error: Callable[[int, float], float], means: FloatArray
) -> set[int]:
    """Play with sample means that are always off by ``error(arm, count)``."""
    strategy = strategy_named(name)
    state: Any = strategy.init(problem, ())
    counts, sums = np.zeros(problem.n), np.zeros(problem.n)
    for _ in range(20_000):
        if strategy.verdict(state).is_final:
            break
        batch = strategy.ask(state)
        counts[batch.arms] += batch.counts
        targets = [counts[arm] * (means[arm] + error(arm, counts[arm])) for arm in batch.arms.tolist()]
        rewards = (np.array(targets) - sums[batch.arms]) / batch.counts
        sums[batch.arms] = targets
        state = strategy.tell(state, Moments(rewards))
    assert strategy.verdict(state).is_final
    return set(strategy.verdict(state).selected.tolist())


@pytest.mark.parametrize("name", ["racing", "lucb-mixture"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 1), (10, 3), (10, 8), (60, 3)])
@pytest.mark.parametrize("beyond", ["nothing", "good arms shown low", "leaders shown high"])
def test_mixtures_that_hold_give_a_right_answer(name: str, seed: int, n: int, m: int, beyond: str) -> None:
    """Upper bounds of the best arms and lower bounds of the others only just hold, at all times.

    The other bounds may fail: good arms that are not among the m best may show anything low, and those that
    are anything high.
    """
    problem, means = instance(seed, n, m, spread=9.0)
    problem = sl.Problem(m=m, epsilon=1.0, delta=0.5, variances=problem.variances * 3)
    *leaders, last = np.argsort(-means, kind="stable")[:m].tolist()

    def error(arm: int, count: float) -> float:
        above = half_width(count, problem.variances[arm], 0.5 / (2 * m))
        below = half_width(count, problem.variances[arm], 0.5 / (2 * (n - m)))
        if arm in leaders and beyond == "leaders shown high":
            return below + 0.7 * above
        if arm == last or arm in leaders:
            return -0.999 * above
        is_good = means[arm] >= means[last] - 1.0
        return -1e3 if is_good and beyond == "good arms shown low" else 0.999 * below

    selected = _adverse(name, problem, error, means)
    assert kth_best(selected, means, m) >= kth_best(set(range(n)), means, m) - 1.0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_top_two_is_right_while_the_mixture_over_both_means_stays_below_its_bar(
    seed: int, n: int, share: float
) -> None:
    """The best arm uses up a share of what its pair with any other may, and every other arm the rest."""
    problem, means = instance(seed, n, 1, spread=9.0)
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.5, variances=problem.variances * 3)
    best = int(np.argmax(means))

    def error(arm: int, count: float) -> float:
        variance = problem.variances[arm]
        part = (share if arm == best else 1 - share) * math.log((n - 1) / 0.5)
        allowed = part + math.log1p(count / variance) / 2
        size = math.sqrt(2 * allowed * variance * (count + variance)) / count
        return (-0.999 if arm == best else 0.999) * size

    (selected,) = _adverse("top-two", problem, error, means)
    assert means[selected] >= means[best] - 1.0


def _played(name: str, problem: sl.Problem, shown: Callable[[int, list[int]], FloatArray]) -> set[int]:
    strategy = strategy_named(name)
    state, level = strategy.init(problem, ()), 1
    while not strategy.verdict(state).is_final:
        state = strategy.tell(state, Moments(shown(level, strategy.ask(state).arms.tolist())))
        level += 1
    return set(strategy.verdict(state).selected.tolist())
