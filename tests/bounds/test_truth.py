"""No bound may exceed what a valid algorithm needs: each here is valid by a proof of a few lines.

A bound that is too large is the worst fault it can have, and agreeing with its own formula does not
show it. Here each is held against algorithms whose probability of error is an integral.
"""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.bounds.exact import exact_dual
from shortlist.strategies import strategy_named
from tests.bounds.brute import kl, random_variances
from tests.questions import bound_of

pytestmark = pytest.mark.slow

DELTAS = [1e-6, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.55, 0.7, 0.85]
EPSILON = 1e-5  # so small that pulls need not be rounded up to whole ones
POINTS = np.linspace(-12, 12, 1201)
DENSITY = norm.pdf(POINTS) * (POINTS[1] - POINTS[0])


def least_pulls(variances: FloatArray, m: int, delta: float) -> float:
    """Return the bound, times epsilon^2."""
    bound = bound_of(sl.Problem(m=m, epsilon=EPSILON, delta=delta, variances=variances))
    return bound.pulls * EPSILON**2


# --- fixed designs --------------------------------------------------------------------------------


def success(h: float, n: int, m: int) -> float:
    """Return how probably the m best of n arms, h standard errors above the others, all come out above.

    If they do, the m largest sample means are those of arms within epsilon of the m-th best: m arms lie
    above any that is worse by epsilon or more. Fewer such arms, or larger gaps, make it more probable.
    """
    below, above = norm.cdf(POINTS + h), norm.sf(POINTS)
    return float((m * below ** (n - m) * above ** (m - 1) * DENSITY).sum())


@cache
def standard_errors(n: int, m: int, delta: float) -> float:
    """Return the least h that makes the fixed design valid; 0 if guessing is."""
    if success(0.0, n, m) >= 1 - delta:
        return 0.0
    return float(brentq(lambda h: success(h, n, m) - (1 - delta), 0.0, 40.0, xtol=1e-12))


def fixed_design(variances: FloatArray, m: int, delta: float) -> float:
    """Return the pulls, times epsilon^2, that make the standard error of each mean epsilon / h."""
    h = standard_errors(len(variances), m, delta)
    return h * h * float(variances.sum())


def fixed_design_or_guess(variances: FloatArray, m: int, delta: float) -> float:
    """Return the least cost of a fixed design that is sometimes replaced by a random guess."""
    guess = 1 - 1 / math.comb(len(variances), m)
    if delta >= guess:
        return 0.0
    costs = []
    for part in range(1, 13):
        smaller = delta * part / 12
        share = (delta - smaller) / (guess - smaller)
        costs.append((1 - share) * fixed_design(variances, m, smaller))
    return min(costs)


@pytest.mark.parametrize(
    ("n", "m", "h"),
    [(2, 1, 2.326), (10, 1, 3.418), (10, 3, 3.854), (100, 1, 4.306), (100, 10, 5.277), (1000, 50, 6.507)],
)
def test_the_fixed_design_is_bechhofers(n: int, m: int, h: float) -> None:
    assert standard_errors(n, m, 0.05) == pytest.approx(h, abs=6e-4)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (5, 2), (6, 6), (9, 8)])
def test_without_a_difference_the_fixed_design_guesses(n: int, m: int) -> None:
    assert success(0.0, n, m) == pytest.approx(1 / math.comb(n, m), rel=1e-10)


SIZES = [(n, m) for n in range(2, 6) for m in range(1, n)] + [
    (6, 3),
    (10, 5),
    (20, 3),
    (40, 20),
    (60, 1),
    (60, 57),
]


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_no_bound_exceeds_a_fixed_design(n: int, m: int) -> None:
    rng = np.random.default_rng(100 * n + m)
    for place, delta in enumerate(DELTAS):
        variances = random_variances(rng, n) if place % 2 else np.full(n, 2.0)
        assert least_pulls(variances, m, delta) <= fixed_design(variances, m, delta) * (1 + 1e-6)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 1), (4, 2), (5, 4), (8, 4)])
def test_no_bound_exceeds_a_fixed_design_that_sometimes_guesses(n: int, m: int) -> None:
    rng = np.random.default_rng(100 * n + m)
    for delta in (0.05, 0.4, 0.55, 0.7, 0.85):
        for variances in (np.full(n, 2.0), random_variances(rng, n)):
            cost = fixed_design_or_guess(variances, m, delta)
            assert least_pulls(variances, m, delta) <= cost * (1 + 1e-6)


def error_of_allocation(scales: FloatArray, pulls: FloatArray) -> float:
    """Return the largest probability that the best arm, ahead by epsilon = 1, is not on top."""
    errors = scales / np.sqrt(pulls)
    chances = []
    for best, error in enumerate(errors):
        others = np.delete(errors, best)
        above = norm.cdf((1 + error * POINTS[:, None]) / others)
        chances.append(float((above.prod(axis=1) * DENSITY).sum()))
    return 1 - min(chances)


def allocation(variances: FloatArray, delta: float, power: float) -> float:
    """Return the pulls that select one arm when they are in proportion to a power of the variance."""
    scales, shares = np.sqrt(variances), variances**power

    def excess(log_scale: float) -> float:
        return error_of_allocation(scales, math.exp(log_scale) * shares) - delta

    unit = math.log(variances.max() / shares.max())
    return math.exp(brentq(excess, unit - 25, unit + 9)) * float(shares.sum())


@pytest.mark.parametrize(
    "variances",
    [
        [1.0, 1.0],
        [1.0, 25.0],
        [1.0, 1.0, 1e-9],
        [1.0, 16.0, 1e-6, 1e-6],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1.0, 1.0, 1.0, 100.0],
        [1.0, 30.0, 30.0, 30.0],
    ],
    ids=str,
)
def test_no_bound_exceeds_the_best_of_several_allocations(variances: list[float]) -> None:
    values = np.array(variances)
    for delta in (0.001, 0.05, 0.2, 0.4):
        cost = min(allocation(values, delta, power) for power in (0.5, 0.75, 1.0))
        assert least_pulls(values, 1, delta) <= cost * (1 + 1e-6)
        assert least_pulls(values, len(values) - 1, delta) <= cost * (1 + 1e-6)  # the worst arm, mirrored


# --- two arms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-9, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.499])
@pytest.mark.parametrize("other", [1.0, 1.7, 9.0, 1e4])
def test_two_arms_need_no_more_than_the_sequential_test(delta: float, other: float) -> None:
    """Pulls in proportion to the scales, until the likelihood ratio of the two orders is (1 - delta)/delta.

    In the limit of small epsilon the difference of the sample means is a Brownian motion. If the means
    differ by `gap` epsilon, the test errs with probability 1 / (1 + exp(gap L)) and takes
    L / (2 gap) tanh(gap L / 2) units of pulls, which is largest without any gap.
    """
    logit = math.log((1 - delta) / delta)
    unit = (1.0 + math.sqrt(other)) ** 2
    times = [logit / (2 * gap) * math.tanh(gap * logit / 2) for gap in (1e-3, 0.1, 0.5, 1.0, 3.0)]
    assert max(times) <= logit**2 / 4
    found = least_pulls(np.array([1.0, other]), 1, delta)
    assert found <= unit * logit**2 / 4
    z = float(norm.isf(delta))
    assert found <= unit * z**2 * (1 + 1e-9)  # the fixed design, at its best allocation
    if delta >= 0.3:
        assert found >= 0.9 * unit * logit**2 / 4  # nothing is lost when little is promised


@pytest.mark.parametrize("delta", [1e-9, 0.001, 0.01, 0.05, 0.2, 0.4])
def test_two_arms_that_differ_need_no_more_than_their_own_sequential_test(delta: float) -> None:
    """The swap asks which of two arms is better by epsilon, the dual whether one is at epsilon or minus it.

    Where only such instances can occur, the sequential test is valid, and takes kl(1 - delta, delta)
    over the divergence of a pull. Both bounds come close: they lose delta ln(1 - delta) and no more.
    """
    for one, other in ((1.0, 1.0), (2.0, 7.0)):
        asked = sl.Problem(m=1, epsilon=EPSILON, delta=delta, variances=[one, other])
        found = bound_of(asked).candidates
        information = kl(1 - delta, delta)
        swap = found["swaps"] * EPSILON**2
        assert swap <= (math.sqrt(one) + math.sqrt(other)) ** 2 / 2 * information
        assert swap >= 2 * min(one, other) * (information - delta) * (1 - 1e-9)
        dual = found["dual-exact"] * EPSILON**2
        assert dual <= max(one, other) / 2 * information
        assert dual >= max(one, other) / 2 * (information - 2 * delta) * (1 - 1e-9)


def test_two_arms_need_nothing_to_be_right_half_the_time() -> None:
    for delta in (0.5, 0.6, 0.99):
        assert bound_of(sl.Problem(m=1, epsilon=0.1, delta=delta, variances=[1.0, 4.0])) == 0.0


# --- whole pulls ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 1), (3, 2), (4, 2), (7, 1), (7, 3), (50, 49)])
def test_without_noise_one_pull_of_each_arm_is_enough(n: int, m: int) -> None:
    """Guess as often as delta allows; else pull each arm once."""
    for delta in DELTAS:
        share = min(1.0, delta / (1 - 1 / math.comb(n, m)))
        bound = bound_of(sl.Problem(m=m, epsilon=1.0, delta=delta, variances=[1e-20] * n))
        assert bound <= n * (1 - share) + 1e-12
        assert bound >= n * (1 - share) - 2


# --- the strategies here --------------------------------------------------------------------------


def any_problem(seed: int) -> sl.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    return sl.Problem(
        m=int(rng.integers(1, n)),
        epsilon=float(rng.uniform(0.05, 3.0)),
        delta=float(rng.choice([1e-4, 0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.9])),
        variances=random_variances(rng, n),
    )


def certified(problem: sl.Problem) -> dict[str, int]:
    """Return the most pulls of each strategy that promises the m best with finitely many."""
    found = {}
    for name in sl.strategies.names():
        strategy = strategy_named(name)
        guarantee, pulls = strategy.guarantee(problem), strategy.worst_case_pulls(problem)
        if guarantee is not None and guarantee.scope is sl.certificates.Scope.TOP_M and pulls is not None:
            found[name] = pulls
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 60, 20)], ids=str)
def test_no_bound_exceeds_a_certified_worst_case(seeds: range) -> None:
    for seed in seeds:
        problem = any_problem(seed)
        costs = certified(problem)
        assert set(costs) >= {"wnelim", "vmedelim", "medelim-max", "adapted-medelim"}
        bound = bound_of(problem)
        assert bound <= min(costs.values()), f"seed {seed}"
        assert exact_dual(problem).value <= min(costs.values()), f"seed {seed}"
        assert max(bound.terms.v1, bound.terms.v2, bound.terms.v3) <= bound.pulls * (1 + 1e-9), f"seed {seed}"
