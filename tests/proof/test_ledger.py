"""The pulls that are really asked for keep each failure within its share of delta.

The bounds are recomputed here from the batches alone, by the inequalities of the proofs
(`docs/theory.md`), not from anything the strategies say about themselves.
"""

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import lucb, mixture, strategy_named, top_two, ugape
from shortlist.strategies.protocol import Moments
from shortlist.variance_groups import variance_groups
from tests.playing import gaussian_rewards, play

ROUNDING = 1 + 1e-9


def tails(batch: dict[int, int], arms: Iterable[int], variances: FloatArray, error: float) -> list[float]:
    """The probability bound that each arm's mean errs by `error` or more to one side, largest first."""
    found = [math.exp(-(error**2) * batch[arm] / (2 * variances[arm])) for arm in arms]
    return sorted(found, reverse=True)


def level_failure(errors: list[float], rank: int, n_kept: int) -> float:
    """The bound on losing more than the level's allowance at this rank.

    One of `rank` arms is underrated, or (by Markov) more than ``n_kept - rank`` of the others overrated.
    """
    others = sum(errors[: len(errors) - rank])
    return sum(errors[:rank]) + others / (n_kept - rank + 1)


def levels_failure(
    batches: list[dict[int, int]], kept: list[int], losses: list[float], variances: FloatArray, rank: int
) -> float:
    total = 0.0
    for batch, n_kept, loss in zip(batches, kept, losses, strict=True):
        total += level_failure(tails(batch, batch, variances, loss / 2), rank, n_kept)
    return total


@st.composite
def problems(draw: st.DrawFn) -> sl.Problem:
    n = draw(st.integers(2, 60))
    m = draw(st.integers(1, min(n - 1, 12)))
    equal = draw(st.booleans())
    variances = [1.7] * n if equal else draw(st.lists(st.floats(1e-2, 1e2), min_size=n, max_size=n))
    delta = draw(st.sampled_from([1e-5, 0.01, 0.05, 0.3, 0.9]))
    return sl.Problem(m=m, epsilon=draw(st.floats(0.01, 1.0)), delta=delta, variances=variances)


def played_batches(name: str, problem: sl.Problem) -> tuple[list[dict[int, int]], list[int]]:
    """The batches of a run, and how many arms each was cut down to."""
    means = np.random.default_rng(problem.n).standard_normal(problem.n) * problem.epsilon
    played = play(name, problem, gaussian_rewards(means, problem.variances, seed=1))
    sizes = [len(batch) for batch in played.batches[1:]] + [len(played.selected)]
    return played.batches, sizes


@given(problem=problems())
@settings(max_examples=80, deadline=None)
def test_wnelim(problem: sl.Problem) -> None:
    (batch,), _ = played_batches("wnelim", problem)
    spent = sum(tails(batch, batch, problem.variances, problem.epsilon / 2))
    assert spent <= problem.delta * ROUNDING


def convolution(best: list[float], others: list[float]) -> float:
    """How probably the largest error of the best and that of the others add up to more than 1.

    Given is the information of each arm. A sum over many small steps of the former.
    """
    u = np.linspace(0.0, 1.0, 20_001)
    tail_best = 1 - np.prod([1 - np.exp(-x * u**2) for x in best], axis=0)
    tail_others = 1 - np.prod([1 - np.exp(-x * (1 - u) ** 2) for x in others], axis=0)
    between = (tail_others[1:] + tail_others[:-1]) / 2
    return float(tail_best[-1] + ((tail_best[:-1] - tail_best[1:]) * between).sum())


@given(
    variances=st.lists(st.floats(1e-2, 1e2), min_size=2, max_size=7),
    data=st.data(),
    delta=st.sampled_from([1e-5, 0.01, 0.05, 0.3, 0.9]),
)
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("name", ["single-stage", "uniform"])
def test_one_batch_whichever_arms_are_best(
    name: str, variances: list[float], data: st.DataObject, delta: float
) -> None:
    m = data.draw(st.integers(1, len(variances) - 1))
    problem = sl.Problem(m=m, epsilon=0.2, delta=delta, variances=variances)
    (batch,), _ = played_batches(name, problem)
    information = [problem.epsilon**2 * batch[arm] / (2 * variances[arm]) for arm in range(problem.n)]
    for best in combinations(range(problem.n), m):
        others = [information[arm] for arm in range(problem.n) if arm not in best]
        assert convolution([information[arm] for arm in best], others) <= delta * (1 + 1e-6)


def test_single_stage_spends_nearly_all_of_delta() -> None:
    for n, m in ((2, 1), (20, 3), (100, 1)):
        problem = sl.Problem(m=m, epsilon=0.01, delta=0.05, variances=[1.0] * n)
        (batch,), _ = played_batches("single-stage", problem)
        information = [problem.epsilon**2 * batch[0] / 2] * n
        assert convolution(information[:m], information[m:]) >= 0.049


def gaussian_convolution(best: list[float], others: list[float]) -> float:
    """The same for Gaussian errors: of the largest error on either side, or 0 if all are negative."""

    def at_most(information: list[float], error: FloatArray) -> FloatArray:
        found: FloatArray = np.prod([norm.cdf(error * math.sqrt(2 * x)) for x in information], axis=0)
        return found

    u = np.linspace(0.0, 1.0, 20_001)
    below, tail_others = at_most(best, u), 1 - at_most(others, 1 - u)
    between = (tail_others[1:] + tail_others[:-1]) / 2
    return float(1 - below[-1] + (np.diff(below) * between).sum() + below[0] * tail_others[0])


@given(
    variances=st.lists(st.floats(1e-2, 1e2), min_size=2, max_size=7),
    data=st.data(),
    delta=st.sampled_from([1e-5, 0.01, 0.05, 0.3, 0.6, 0.9]),
    quiet=st.floats(0.0, 1.0),
)
@settings(max_examples=40, deadline=None)
def test_one_batch_of_gaussian_rewards_whichever_arms_are_best(
    variances: list[float], data: st.DataObject, delta: float, quiet: float
) -> None:
    """Variances may be smaller than stated: the information of some arms is multiplied here."""
    m = data.draw(st.integers(1, len(variances) - 1))
    problem = sl.Problem(m=m, epsilon=0.2, delta=delta, variances=variances)
    (batch,), _ = played_batches("gaussian-single-stage", problem)
    information = [problem.epsilon**2 * batch[arm] / (2 * variances[arm]) for arm in range(problem.n)]
    information[data.draw(st.integers(0, problem.n - 1))] *= 1 + 100 * quiet
    for best in combinations(range(problem.n), m):
        others = [information[arm] for arm in range(problem.n) if arm not in best]
        spent = gaussian_convolution([information[arm] for arm in best], others)
        assert spent <= delta * (1 + 1e-5)


def test_a_single_stage_for_gaussian_rewards_spends_nearly_all_of_delta() -> None:
    for n, m in ((2, 1), (20, 3), (100, 1), (6, 5)):
        problem = sl.Problem(m=m, epsilon=0.01, delta=0.05, variances=[1.0] * n)
        (batch,), _ = played_batches("gaussian-single-stage", problem)
        information = [problem.epsilon**2 * batch[0] / 2] * n
        assert gaussian_convolution(information[:m], information[m:]) >= 0.0495


@given(problem=problems())
@settings(max_examples=80, deadline=None)
def test_medelim_at_every_rank(problem: sl.Problem) -> None:
    batches, kept = played_batches("medelim", problem)
    losses = [problem.epsilon / 3 * 0.75**level for level in range(1, len(batches) + 1)]
    assert sum(losses) <= problem.epsilon
    for rank in range(1, problem.m + 1):
        spent = levels_failure(batches, kept[: len(batches)], losses, problem.variances, rank)
        assert spent <= rank / problem.m * problem.delta * ROUNDING


@given(problem=problems())
@settings(max_examples=80, deadline=None)
def test_medelim_max(problem: sl.Problem) -> None:
    batches, kept = played_batches("medelim-max", problem)
    losses = [problem.epsilon / 4 * 0.75**level for level in range(len(batches))]
    assert sum(losses) <= problem.epsilon
    assert levels_failure(batches, kept, losses, problem.variances, problem.m) <= problem.delta * ROUNDING


@given(problem=problems())
@settings(max_examples=80, deadline=None)
def test_adapted_medelim(problem: sl.Problem) -> None:
    batches, kept = played_batches("adapted-medelim", problem)
    losses = [problem.epsilon / 3 * 0.75**level for level in range(1, len(batches) + 1)]
    for rank in range(1, problem.m + 1):
        spent = levels_failure(batches, kept, losses, problem.variances, rank)
        assert spent <= rank / problem.m * problem.delta * ROUNDING


def test_the_published_split_of_adapted_medelim_spends_more_than_delta() -> None:
    """Why it carries no guarantee: the bound that its proof leads to exceeds delta."""
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * 1024)
    batches, kept = played_batches("adapted-medelim-published", problem)
    losses = [problem.epsilon / 3 * 0.75**level for level in range(1, len(batches) + 1)]
    assert levels_failure(batches, kept, losses, problem.variances, 1) > 1.3 * problem.delta


@given(problem=problems())
@settings(max_examples=80, deadline=None)
def test_vmedelim(problem: sl.Problem) -> None:
    batches, _ = played_batches("vmedelim", problem)
    variances, half = problem.variances, problem.epsilon / 2
    *screening, final = batches
    if len(final) > problem.m:
        assert sum(tails(final, final, variances, half / 2)) <= problem.delta / 2 * ROUNDING
    for group in variance_groups(variances):
        members = [{arm: batch[arm] for arm in group.tolist() if arm in batch} for batch in screening]
        levels = [batch for batch in members if batch]
        kept = [len(batch) for batch in levels[1:]] + [len(set(final) & set(group.tolist()))]
        losses = [half / 3 * 0.75**level for level in range(1, len(levels) + 1)]
        for rank in range(1, min(problem.m, len(group)) + 1):
            spent = levels_failure(levels, kept[: len(levels)], losses, variances, rank)
            assert spent <= rank / problem.m * problem.delta / 2 * ROUNDING


@pytest.mark.parametrize("n", [2, 10, 1000])
@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.5])
def test_lucb_and_ugape_over_all_times(n: int, delta: float) -> None:
    """A union over arms, times and the counts an arm may have by then; two-sided for UGapE."""
    problem = sl.Problem(m=1, epsilon=0.1, delta=delta, variances=[1.0] * n)
    t = np.arange(1.0, 200_001.0)
    one_sided = float((n * t * np.exp(-lucb.rate(problem, t))).sum())
    two_sided = float((2 * n * t * np.exp(-ugape.rate(problem, t))).sum())
    for name, spent, beyond in (("lucb", one_sided, 1e-9), ("ugape", two_sided, 0.5 / 200_000)):
        guarantee = strategy_named(name).guarantee(problem)
        assert guarantee is not None
        assert spent <= guarantee.ledger.total <= delta
        assert (
            guarantee.ledger.total <= spent + 1.01 * beyond * delta
        )  # the ledger claims no more than it needs


@pytest.mark.parametrize("name", ["lucb", "ugape"])
def test_intervals_are_as_wide_as_their_rate_says(name: str) -> None:
    """Each interval fails with probability exp(-rate) at most: half-width^2 * count / (2 variance) = rate."""
    problem = sl.Problem(m=2, epsilon=0.5, delta=0.1, variances=[0.5, 1.0, 2.0, 4.0, 8.0])
    strategy = strategy_named(name)
    rng = np.random.default_rng(0)
    state = strategy.init(problem, ())
    for _ in range(200):
        batch = strategy.ask(state)
        state = strategy.tell(state, Moments(rng.standard_normal(len(batch.arms))))
    assert state.n_pulls == state.seen.counts.sum()
    np.testing.assert_allclose(state.seen.radii**2 * state.seen.counts / (2 * problem.variances), 1.0)


def log_mixture(total: float, intrinsic: float, rho: float, *, one_sided: bool) -> float:
    """The log of the mixture of exp(x S - x^2 V / 2) over x, normal of variance 1/rho, or over x > 0."""
    spread = 1 / math.sqrt(intrinsic + rho)
    middle = total * spread**2
    low = 0.0 if one_sided else middle - 12 * spread
    x = np.linspace(low, max(middle, 0.0) + 12 * spread, 40_001)
    exponents = x * total - x**2 * (intrinsic + rho) / 2
    heights = np.exp(exponents - exponents.max())
    area = float(((heights[1:] + heights[:-1]) / 2).sum() * (x[1] - x[0]))
    weight = math.sqrt(rho / (2 * math.pi)) * (2 if one_sided else 1)
    return float(exponents.max()) + math.log(area * weight)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (10, 3), (10, 8), (1000, 1)])
@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.9])
def test_bounds_of_mixtures_over_all_times(n: int, m: int, delta: float) -> None:
    """By Ville's inequality an arm's mean crosses its bound with probability 1 / mixture there, at most."""
    problem = sl.Problem(m=m, epsilon=0.3, delta=delta, variances=[2.5] * n)
    zero = np.zeros(1)
    for count in (1.0, 10.0, 333.0, 1e4, 1e7):
        lower, upper = mixture.bounds(problem, zero, np.array([count]), np.array([2.5]))
        totals = (-lower[0] * count, upper[0] * count)
        rho = 2.5 * 2.5 / 0.3**2
        too_high, too_low = (math.exp(-log_mixture(s, 2.5 * count, rho, one_sided=True)) for s in totals)
        spent = m * too_low + (n - m) * too_high
        assert spent <= delta * (1 + 1e-6)
        assert spent >= 0.6 * delta  # the bound on the normal tail is not wasteful
    for name in ("racing", "lucb-mixture"):
        guarantee = strategy_named(name).guarantee(problem)
        assert guarantee is not None
        assert guarantee.ledger.total == delta


@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize("counts", [(1.0, 1.0), (10.0, 500.0), (4000.0, 70.0)])
def test_the_bar_of_top_two_over_all_times(n: int, counts: tuple[float, float]) -> None:
    """Where the evidence just suffices, the mixture over both means is (n - 1)/delta or more."""
    variances = np.array([1.0, 3.0] + [1.0] * (n - 2))
    problem = sl.Problem(m=1, epsilon=0.2, delta=0.05, variances=variances)
    given = np.array([*counts] + [1.0] * (n - 2))
    low, high = 0.0, 1e4  # by how much the leader, arm 0, must lead arm 1
    for _ in range(200):
        middle = (low + high) / 2
        means = np.array([middle, 0.0] + [-1e6] * (n - 2))
        is_enough = top_two.evidence(problem, means, given, 0)[1] >= 0
        low, high = (low, middle) if is_enough else (middle, high)
    shift = high + problem.epsilon  # the errors of both add up to this at least, if arm 1 is epsilon better
    least = min(
        sum(
            log_mixture(part * shift * count, s * count, s**2 / 0.2**2, one_sided=False)
            for part, count, s in ((share, counts[0], 1.0), (1 - share, counts[1], 3.0))
        )
        for share in np.linspace(0.0, 1.0, 201)
    )
    assert math.log((n - 1) / 0.05) * (1 - 1e-6) <= least <= math.log((n - 1) / 0.05) + 0.05
