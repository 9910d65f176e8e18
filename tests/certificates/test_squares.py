"""Evidence from squares of graded rewards: a supermartingale, monotone, and never more than what was seen."""

import itertools
import math

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.certificates.bounded import SQUARES, BoundedEvidence, Tilts
from shortlist.certificates.certificate import certificate_of
from shortlist.problem import Problem
from shortlist.strategies import race
from shortlist.strategies.protocol import Done, Moments
from shortlist.strategies.race_course import course

GRADED = Tilts.of(0.3, is_graded=True)
SUPPORTS = [
    ([0.0, 0.2, 0.7, 1.0], [0.2, 0.3, 0.4, 0.1]),
    ([0.45, 0.5, 0.55], [0.25, 0.5, 0.25]),
    ([0.0, 0.9, 1.0], [0.02, 0.9, 0.08]),
    ([0.0, 1.0], [0.3, 0.7]),
    ([0.6], [1.0]),
]


def psi(share: float) -> float:
    return -share - math.log1p(-share)


def plain(rewards: FloatArray, cut: float) -> float:
    """The evidence from squares that the mean lies above a cut, by its definition, as a product."""
    total = 0.0
    for tilt, log in zip(GRADED.raw.tolist(), GRADED.raw_logs.tolist(), strict=True):
        if cut * tilt >= 1:
            continue
        price = tilt**2 / 2 if cut == 0 else psi(cut * tilt) / cut**2
        total += math.exp(log) * math.prod(
            math.exp(tilt * (x - cut) - price * (x - cut) ** 2) for x in rewards.tolist()
        )
    return total


def logs(rewards: FloatArray, cuts: FloatArray, sign: int, tilts: Tilts = GRADED) -> FloatArray:
    sums, counts = np.array([rewards.sum()]), np.array([float(len(rewards))])
    found: FloatArray = tilts.log_evidence(sums, counts, cuts, sign, np.array([(rewards**2).sum()]))[0]
    return found


@pytest.mark.parametrize("scale", [0.003, 0.06, 0.9, 6.0])
def test_both_kinds_of_evidence_have_all_the_weight_together(scale: float) -> None:
    tilts = Tilts.of(scale, is_graded=True)
    assert np.exp(tilts.logs).sum() + np.exp(tilts.raw_logs).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.exp(tilts.raw_logs).sum() == pytest.approx(SQUARES)
    assert len(tilts.raw) >= 3
    assert len(Tilts.of(scale).raw) == 0


@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_that_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.beta(4, 3, size=30) if seed else np.full(30, 0.25)
    cuts = np.array([0.0, 1e-9, 0.004, 0.2, 0.5, 0.77, 0.99, 1.0])
    for own, at, sign in ((rewards, cuts, 1), (1 - rewards, 1 - cuts, -1)):
        alone = GRADED.log_evidence(np.array([own.sum()]), np.array([30.0]), at, sign)[0]
        expected = np.log(np.exp(alone) + [plain(rewards, cut) for cut in cuts.tolist()])
        assert logs(own, at, sign) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("values", "chances"), SUPPORTS)
def test_at_the_true_mean_its_expectation_is_at_most_1(
    sign: int, values: list[float], chances: list[float]
) -> None:
    """By enumeration, also if only evidence from squares counts, and given any rewards before."""
    support, weights = np.array(values), np.array(chances)
    mean = float(support @ weights)
    squares_only = Tilts(np.empty(0), np.empty(0), GRADED.raw, GRADED.raw_logs - math.log(SQUARES))

    def evidence(drawn: tuple[int, ...], tilts: Tilts) -> float:
        x = support[list(drawn)]
        if not len(tilts.tilts):
            own, cut = (x, mean) if sign > 0 else (1 - x, 1 - mean)
            by = tilts._by_squares(
                np.array([own.sum()]), np.array([(own**2).sum()]), np.array([float(len(x))]), np.array([cut])
            )
            return math.exp(float(by[0, 0]))
        return math.exp(float(logs(x, np.array([mean]), sign, tilts)[0]))

    for tilts in (GRADED, squares_only):
        for length in (0, 1, 2):
            for before in itertools.product(range(len(values)), repeat=length):
                now = evidence(before, tilts) if length else 1.0
                after = sum(chance * evidence((*before, one), tilts) for one, chance in enumerate(chances))
                assert after <= now * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_evidence_falls_above_and_rises_below(seed: int) -> None:
    """Also for single tilts and single rewards, where nothing averages out."""
    rng, cuts = np.random.default_rng(seed), np.linspace(0.0, 1.0, 2001)
    for tilt in (0.05, 0.7, 0.99, 3.0, 25.0):
        single = Tilts(np.empty(0), np.empty(0), np.array([tilt]), np.zeros(1))
        for count in (1, 40):
            x = rng.choice([0.0, 0.1, 0.5, 0.97, 1.0], count)
            found = single._by_squares(
                np.array([x.sum()]), np.array([(x**2).sum()]), np.array([float(count)]), cuts
            )[0]
            is_kept = cuts * tilt < 1 - 1e-6
            assert (np.diff(found[is_kept]) <= 1e-9).all()
            assert (found[cuts * tilt > 1] == -np.inf).all()
    x = rng.beta(3, 2, 50)
    assert (np.diff(logs(x, cuts, 1)) <= 1e-9).all()
    assert (np.diff(logs(x, cuts, -1)) >= -1e-9).all()


def test_where_squares_are_unknown_they_are_as_large_as_they_can_be() -> None:
    evidence = BoundedEvidence.of(3, 1, 0.1, 0.05, is_graded=True)
    sums, counts, cuts = np.array([30.0, 30.0, 30.0]), np.array([50, 50, 50]), np.linspace(0.1, 0.9, 9)
    about = evidence.about(sums, counts, np.array([18.5, np.nan, 30.0]))
    for log in (about.log_below, about.log_above):
        found = log(np.arange(3), cuts)
        assert found[1] == pytest.approx(found[2])
        assert (found[0] >= found[1] - 1e-12).all()
    impossible = evidence.about(sums, counts, np.array([0.0, -5.0, 99.0]))  # no rewards have such squares
    assert impossible.squares is not None
    assert impossible.squares.tolist() == [18.0, 18.0, 30.0]


def test_squares_come_from_sample_variances() -> None:
    rng = np.random.default_rng(3)
    rewards = [rng.uniform(2, 6, size) for size in (1, 2, 7, 30)]
    counts, means = np.array([1, 2, 7, 30]), np.array([one.mean() for one in rewards])
    variances = np.array([np.nan, *(one.var(ddof=1) for one in rewards[1:])])
    for goal in ("maximise", "minimise"):

        def shares(x: FloatArray, goal: str = goal) -> FloatArray:
            return (x - 2) / 4 if goal == "maximise" else (6 - x) / 4

        problem = Problem(m=1, epsilon=0.1, delta=0.1, n=4, rewards=sl.Bounded(2, 6), goal=goal)
        exact = [float((shares(one) ** 2).mean()) for one in rewards]
        merits = problem.merits(means)
        assert problem.mean_squares(counts, merits, variances) == pytest.approx(exact)
        unknown = problem.mean_squares(counts, merits, None)
        assert unknown[1:] == pytest.approx(shares(means[1:]))
        assert unknown[0] == pytest.approx(exact[0])


def spent(problem: Problem, seed: int, *, tells: bool = True) -> int:
    """Pulls of a race on ten arms of mean .5 to .68 and standard deviation .1."""
    rng, n_pulls = np.random.default_rng(seed), 0
    state: race.Open | Done = race.init(course(problem))
    while not isinstance(state, Done):
        batch = race.ask(state)
        drawn = [
            0.5 + 0.02 * arm + rng.choice([-0.1, 0.1], count)
            for arm, count in zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)
        ]
        means = np.array([one.mean() for one in drawn])
        variances = np.array([one.var(ddof=1) if len(one) > 1 else np.nan for one in drawn])
        n_pulls += int(batch.counts.sum())
        state = race.tell(state, Moments(means, variances if tells else None))
    return n_pulls


@pytest.mark.slow
def test_graded_rewards_that_vary_little_take_a_fraction_of_the_pulls() -> None:
    graded, coins = (
        Problem(m=1, epsilon=0.05, delta=0.05, n=10, rewards=rewards)
        for rewards in (sl.Bounded(), sl.Bernoulli())
    )
    found = [spent(graded, seed) for seed in range(3)]
    assert 4 * sum(found) < sum(spent(coins, seed) for seed in range(3))
    assert 3.5 * sum(found) < sum(spent(graded, seed, tells=False) for seed in range(3))


def test_the_cap_is_hardly_larger_than_for_coins() -> None:
    for n, m, epsilon in ((2, 1, 0.05), (20, 3, 0.02), (1000, 5, 0.1)):
        caps = [
            course(Problem(m=m, epsilon=epsilon, delta=0.05, n=n, rewards=rewards)).worst_case_pulls
            for rewards in (sl.Bounded(), sl.Bernoulli())
        ]
        assert caps[1] <= caps[0] < 1.08 * caps[1]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("values", "chances"), SUPPORTS)
def test_false_evidence_ever_reaches_a_level_as_rarely_as_promised(
    sign: int, values: list[float], chances: list[float]
) -> None:
    """Whenever somebody looks: 2,000 sequences of 300 rewards, looked at after every tenth, and at first."""
    rng, n_runs = np.random.default_rng(7), 2000
    draws = rng.choice(values, (n_runs, 300), p=chances)
    mean = np.array([float(np.dot(values, chances))])
    highest = np.full(n_runs, -np.inf)
    for count in (1, 2, 3, 5, *range(10, 301, 10)):
        seen = draws[:, :count]
        totals = seen.sum(axis=1), np.full(n_runs, float(count))
        found = GRADED.log_evidence(*totals, mean, sign, (seen**2).sum(axis=1))[:, 0]
        highest = np.maximum(highest, found)
    for alpha in (0.45, 0.2, 0.05):
        assert np.mean(highest >= -math.log(alpha)) <= alpha


@pytest.mark.slow
@pytest.mark.parametrize("support", [[0.4, 0.6], [0.0, 0.9, 0.95]])
def test_whoever_stops_when_the_certificate_is_wrong_seldom_can(support: list[float]) -> None:
    """The second arm is just more than epsilon better; the certificate may select the first one rarely."""
    delta, n_runs, rng = 0.45, 30, np.random.default_rng(len(support))
    values = np.array(support)
    better = np.minimum(values + 0.12, 1.0)
    problem = Problem(m=1, epsilon=0.1, delta=delta, n=2, rewards=sl.Bounded())
    truth, n_wrong = float(better.mean() - values.mean()), 0
    for _ in range(n_runs):
        draws = np.stack([rng.choice(values, 200), rng.choice(better, 200)])
        for count in (2, 4, 8, 16, 40, 100, 200):
            seen = draws[:, :count]
            squares = (seen**2).mean(axis=1)
            found = certificate_of(problem, np.full(2, count), seen.mean(axis=1), squares=squares)
            if found.indices[:1].tolist() == [0] and found.epsilon < truth - 1e-9:
                n_wrong += 1
                break
    assert n_wrong <= delta * n_runs
