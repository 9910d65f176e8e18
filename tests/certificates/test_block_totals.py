"""Evidence from blocks: a supermartingale for rates that change from block to block, whoever stops when."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from shortlist import Bernoulli, Bounded, Problem, certify
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import block_totals as module
from shortlist.certificates.block_totals import BlockEvidence, BlockTotals, certificate_of_blocks
from shortlist.errors import InvalidProblem


def blocks_of(counts: object, sums: object) -> BlockTotals:
    sizes = np.array(counts, dtype=np.int64)
    return BlockTotals(tuple(map(str, range(len(sizes)))), sizes, np.array(sums, dtype=np.float64))


def log_of(evidence: BlockEvidence, found: BlockTotals, epsilon: float) -> float:
    """Return the evidence that outsider 1 is not ahead of incumbent 0."""
    return float(evidence.logs(found, np.array([1]), np.array([0]), np.array([epsilon]))[0])


def outcomes(n: int, rates: FloatArray) -> list[tuple[float, float]]:
    """Return the number of successes of n coins with these rates, and its probability."""
    chances = np.ones(1)
    for rate in rates:
        chances = np.convolve(chances, [1 - rate, rate])
    return [(float(hits), float(chance)) for hits, chance in enumerate(chances)]


def question(n: int = 3, m: int = 1, delta: float = 0.05, epsilon: float = 0.1) -> Problem:
    return Problem(m=m, epsilon=epsilon, delta=delta, n=n, rewards=Bernoulli())


# --- expectations, by enumeration of all outcomes ---------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2, 0.7])
def test_two_blocks_of_different_rates_have_expectation_1_at_most(scale: float, epsilon: float) -> None:
    """The numbers of the second block depend on the results of the first one."""
    evidence = BlockEvidence.of(2, 1, 0.05, scale)
    most = 0.0
    for low, other in itertools.product((0.0, 0.1, 0.5, 1.0), repeat=2):
        first, second = low * (1 - epsilon), other * (1 - epsilon)  # of the incumbent; the outsider is ahead
        expected = 0.0
        for (s_a, p_a), (s_b, p_b) in itertools.product(
            outcomes(3, np.full(3, first)), outcomes(2, np.full(2, first + epsilon))
        ):
            sizes = (4, 1) if s_a > s_b else (1, 3)
            for (t_a, q_a), (t_b, q_b) in itertools.product(
                outcomes(sizes[0], np.full(sizes[0], second)),
                outcomes(sizes[1], np.full(sizes[1], second + epsilon)),
            ):
                log = log_of(evidence, blocks_of([(3, 2), sizes], [(s_a, s_b), (t_a, t_b)]), epsilon)
                expected += p_a * p_b * q_a * q_b * math.exp(log)
        assert expected <= 1 + 1e-9
        most = max(most, expected)
    assert most > 0.5  # not by being nothing


def test_some_pair_of_tilts_has_expectation_1_at_its_reference() -> None:
    """So nothing is given away there: the bound is attained."""
    evidence = BlockEvidence.of(2, 1, 0.05, 0.1)
    for reference in module.REFERENCES:
        place = int(np.argmax(evidence.references == reference))
        alone = BlockEvidence(0.1, evidence.needed, evidence.references[[place]], evidence.tilts[[place]])
        rate = reference * 0.9
        expected = sum(
            p_a * p_b * math.exp(log_of(alone, blocks_of([(5, 3)], [(s_a, s_b)]), 0.1))
            for (s_a, p_a), (s_b, p_b) in itertools.product(
                outcomes(5, np.full(5, rate)), outcomes(3, np.full(3, rate + 0.1))
            )
        )
        assert expected == pytest.approx(1.0, rel=1e-9)


def test_rates_may_change_within_a_block_as_well() -> None:
    """Only the means over the block matter."""
    evidence = BlockEvidence.of(2, 1, 0.05, 0.2)
    for rates in (np.array([0.0, 0.1, 0.8]), np.array([0.3, 0.3, 0.3]), np.array([0.9, 0.0, 0.0])):
        others = np.array([0.7, rates.mean() * 2 + 0.4 - 0.7])
        assert others.mean() == pytest.approx(rates.mean() + 0.2)
        expected = sum(
            p_a * p_b * math.exp(log_of(evidence, blocks_of([(3, 2)], [(s_a, s_b)]), 0.2))
            for (s_a, p_a), (s_b, p_b) in itertools.product(outcomes(3, rates), outcomes(2, others))
        )
        assert expected <= 1 + 1e-12


def test_graded_rewards_have_expectation_1_at_most() -> None:
    evidence, values = BlockEvidence.of(2, 1, 0.05, 0.2), np.array([0.0, 0.5, 1.0])
    chances_a, chances_b = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    ahead = float(values @ (chances_b - chances_a))
    expected = 0.0
    for a, b in itertools.product(itertools.product(range(3), repeat=2), repeat=2):
        found = blocks_of([(2, 2)], [(values[list(a)].sum(), values[list(b)].sum())])
        chance = chances_a[list(a)].prod() * chances_b[list(b)].prod()
        expected += chance * math.exp(log_of(evidence, found, ahead))
    assert 0.3 < expected <= 1.0


# --- the parts of the proof -------------------------------------------------------------------------


def test_the_least_product_over_all_rates_counts() -> None:
    rng = np.random.default_rng(3)
    evidence = BlockEvidence.of(2, 1, 0.05, 0.1)
    for _ in range(50):
        n_a, n_b = rng.integers(1, 50, 2)
        s_a, s_b, epsilon = rng.integers(0, n_a + 1), rng.integers(0, n_b + 1), rng.uniform(0, 0.9)
        up, down = evidence._steps(np.array(float(n_a)), np.array(float(n_b)))
        rates = np.linspace(0, 1 - epsilon, 4001)[:, None]
        logs = s_a * np.log1p(up) - n_a * np.log1p(rates * up)
        logs = logs + s_b * np.log1p(-down) - n_b * np.log1p(-(rates + epsilon) * down)
        least = np.log(np.exp(logs.min(axis=0)).mean())
        found = log_of(evidence, blocks_of([(n_a, n_b)], [(s_a, s_b)]), epsilon)
        assert found == pytest.approx(least, rel=1e-4, abs=1e-4)
        assert found <= least + 1e-12


def test_evidence_rises_with_epsilon_and_with_the_lead() -> None:
    evidence = BlockEvidence.of(4, 2, 0.05, 0.03)
    days = blocks_of([(900, 700), (100, 300)], [(300, 210), (80, 240)])
    logs = [log_of(evidence, days, epsilon) for epsilon in np.linspace(0, 0.999, 50)]
    assert (np.diff(logs) > 0).all()
    assert log_of(evidence, days, 1.0) == math.inf
    better = blocks_of(days.counts, days.sums + np.array([[5, 0], [0, -5]]))
    assert log_of(evidence, better, 0.1) > log_of(evidence, days, 0.1)


def test_what_settles_a_pair_grows_with_the_number_of_pairs() -> None:
    for n, m, delta in ((2, 1, 0.3), (7, 3, 0.05)):
        assert BlockEvidence.of(n, m, delta, 0.1).needed == pytest.approx(math.log(m * (n - m) / delta))


def test_blocks_without_one_of_the_arms_do_not_count_for_the_pair() -> None:
    evidence = BlockEvidence.of(2, 1, 0.05, 0.1)
    both = blocks_of([(50, 60)], [(30, 20)])
    more = blocks_of([(50, 60), (500, 0), (0, 400)], [(30, 20), (500, 0), (0, 0)])
    assert log_of(evidence, more, 0.1) == pytest.approx(log_of(evidence, both, 0.1))


def test_the_smallest_epsilon_is_where_pairs_become_settled() -> None:
    evidence = BlockEvidence.of(3, 1, 0.05, 0.05)
    days = blocks_of([(900, 700, 800), (1000, 300, 900)], [(300, 210, 280), (500, 140, 445)])
    (found,) = evidence.smallest_epsilons(days, np.array([0]))
    assert 0.01 < found < 0.2
    assert evidence.are_settled(days, np.array([0]), found).all()
    assert not evidence.are_settled(days, np.array([0]), found - 1e-6).all()
    assert np.isinf(evidence.smallest_epsilons(blocks_of([(1, 1, 1)], [(0, 1, 1)]), np.array([0]))).all()


# --- who stops when ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n_a", "n_b"), [(40, 40), (60, 20)])
@pytest.mark.parametrize("delta", [0.2, 0.45])
def test_an_adversary_who_waits_for_false_evidence_rarely_finds_it(n_a: int, n_b: int, delta: float) -> None:
    """The outsider is ahead by 0.1 on every day; rates and numbers of visitors change from day to day."""
    rng, runs, ahead = np.random.default_rng(n_b), 2000, 0.1
    evidence = BlockEvidence.of(2, 1, delta, ahead)
    outsiders, incumbents = np.arange(runs), runs + np.arange(runs)
    counts, sums = np.zeros((0, 2 * runs), dtype=np.int64), np.zeros((0, 2 * runs))
    is_false = np.zeros(runs, dtype=np.bool_)
    last = np.zeros(runs)
    for _ in range(25):
        rates = rng.choice([0.35, 0.45, 0.55], runs)
        size_b = np.where(last > 0, n_b, 2 * n_b)  # more visitors if the last day looked bad
        hits_b, hits_a = rng.binomial(size_b, rates + ahead), rng.binomial(n_a, rates)
        counts = np.vstack([counts, np.concatenate([size_b, np.full(runs, n_a)])])
        sums = np.vstack([sums, np.concatenate([hits_b, hits_a])])
        last = hits_a / n_a - hits_b / size_b + ahead
        days = BlockTotals(("",) * len(counts), counts, sums)
        logs = evidence.logs(days, outsiders, incumbents, np.full(runs, ahead))
        is_false |= logs >= evidence.needed
    assert is_false.sum() <= binom.ppf(1 - 1e-6, runs, delta)
    assert is_false.mean() > delta / 20  # the test can see something


def wrong(problem: Problem, days: BlockTotals, ahead: FloatArray) -> bool:
    """Return whether a certificate is false; `ahead[b, a]` is the least lead of b over a on any day."""
    found = certificate_of_blocks(problem, days)
    for arm, epsilon in zip(found.indices.tolist(), found.epsilons.tolist(), strict=True):
        if (ahead[:, arm] > epsilon + 1e-9).sum() >= problem.m:
            return True
    kept = [arm for arm, status in enumerate(found.statuses) if status != "out"]
    good = [arm for arm in kept if (ahead[:, arm] > problem.epsilon + 1e-9).sum() < problem.m]
    return len(good) < problem.m


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 2)])
def test_certificates_of_changing_rates_are_rarely_false_at_any_moment(n: int, m: int) -> None:
    rng, runs, delta = np.random.default_rng(n), 120, 0.4
    problem = question(n, m, delta, 0.1)
    n_wrong = 0
    for _ in range(runs):
        order, days = rng.permutation(n), BlockTotals.none(n)
        tops, truth = [], np.where(order < m, 0.11, 0.0)
        is_wrong = False
        for day in range(8):
            level = rng.uniform(0, 0.8, 1) + rng.uniform(0, 0.05, n)  # arms of one kind change places
            tops.append(truth + level)
            sizes = rng.integers(10, 60, n)
            hits = rng.binomial(sizes, tops[-1])
            days = days.added((f"{day}",) * n, problem.arms, sizes, hits.astype(float))
            rates = np.array(tops)
            ahead = (rates[:, :, None] - rates[:, None, :]).min(axis=0)
            np.fill_diagonal(ahead, -1.0)
            is_wrong = is_wrong or wrong(problem, days, ahead)
        n_wrong += is_wrong
    assert n_wrong <= binom.ppf(1 - 1e-6, runs, delta)


# --- certificates -----------------------------------------------------------------------------------


def test_a_split_that_follows_the_level_deceives_totals_but_not_blocks() -> None:
    """Arm a is behind by 2 points on both days, but most of its visitors came on the good day."""
    problem = question(2, 1, 0.05, 0.01)
    counts, rates = np.array([[20_000, 2_000], [2_000, 20_000]]), np.array([[0.10, 0.12], [0.02, 0.04]])
    hits = np.round(counts * rates).astype(int)
    pooled = certify(problem, counts.sum(axis=0), successes=hits.sum(axis=0))
    within = certify(problem, counts, successes=hits)
    assert pooled.selected == ("arm-0",)
    assert pooled.is_answer
    assert within.selected == ("arm-1",)
    assert within.is_answer


def test_a_certificate_says_what_is_certified_and_which_blocks_lack_arms() -> None:
    problem = Problem(m=1, epsilon=0.05, delta=0.05, names=["A", "B", "C"], rewards=Bernoulli())
    found = certify(problem, [[900, 900, 900], [900, 0, 900]], successes=[[90, 100, 270], [500, 0, 700]])
    assert found.sentence == (
        "With probability at least 95 %, every other arm has at least one block in which it is not better "
        "than the selected arm. On average over all blocks, another arm may be better."
    )
    assert found.statuses == ("out", "out", "in")
    assert found.notes == ()  # B is out: nobody needs it
    assert found.guarantee is not None
    assert "decided before its results were seen" in found.guarantee.assumption
    assert "constant-means" not in found.guarantee.assumptions
    few = certify(problem, [[90, 90, 90], [90, 0, 90]], successes=[[9, 10, 17], [50, 0, 60]])
    assert few.notes == ("Block 2 lacks B, and is not used to compare them with others.",)
    assert few.sentence.endswith(
        f"in which it is at most {few.epsilon:g} better than the selected arm (asked: 0.05). On average "
        f"over all blocks, another arm may be better."
    )
    assert few.to_dict()["notes"] == list(few.notes)
    assert few.notes[0] in str(few)
    nothing = certify(problem, [[9, 9, 0]], successes=[[1, 1, 0]])
    assert nothing.why_nothing == "Nothing is certified yet."
    assert nothing.notes == ("Block 1 lacks C, and is not used to compare them with others.",)
    two = certify(question(3, 2), [[9000, 9000, 9000]], successes=[[3000, 1000, 2500]])
    assert (
        "for each of the 2 selected arms, every other arm, with at most 1 exception, has at least one block "
        "in which it is not better than the selected arm. On average" in str(two)
    )


def test_bounds_goals_and_all_arms() -> None:
    counts, means = [[400, 400], [500, 300]], np.array([[0.3, 0.5], [0.1, 0.35]])
    small = certify(question(2, epsilon=0.1), counts, means)
    wide = Problem(m=1, epsilon=1.0, delta=0.05, n=2, rewards=Bounded(-5, 5))
    large = certify(wide, counts, 10 * means - 5)
    assert large.selected == small.selected
    assert large.epsilon == pytest.approx(10 * small.epsilon, rel=1e-3)
    least = certify(wide.changed(goal="minimise"), counts, 5 - 10 * means)
    assert (least.selected, least.epsilon) == (large.selected, large.epsilon)
    every = certify(question(2, 2), counts, means)
    assert (every.epsilon, every.statuses) == (0.0, ("in", "in"))


def test_what_cannot_be_compared_within_blocks_is_refused() -> None:
    known = Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0, 1.0])
    with pytest.raises(InvalidProblem, match="rewards of 0 or 1"):
        certify(known, [[5, 5]], [[0.1, 0.2]])
    for counts, hits in (([[5, 5, 5]], [[1, 1, 1]]), ([[5, 5]], [1, 1]), ([[5, 5]], [[1, 1], [1, 1]])):
        with pytest.raises(InvalidProblem, match="in each block"):
            certify(question(2), counts, successes=hits)


def test_rewards_that_are_taken_back_leave_nothing_behind() -> None:
    arms: IntArray = np.array([0, 1])
    one = BlockTotals.none(2).added(("x", "x"), arms, np.array([3, 4]), np.array([1.0, 2.0]))
    two = one.added(("y",), arms[:1], np.array([5]), np.array([0.1]))
    back = two.added(("y",), arms[:1], np.array([-5]), np.array([-0.1]))
    assert (back.names, back.counts.tolist(), back.sums.tolist()) == (("x",), [[3, 4]], [[1.0, 2.0]])


def test_an_arm_is_out_only_if_it_is_settled_with_all_selected_arms() -> None:
    found = certify(question(3, 2, epsilon=0.05), [[900, 900, 900]], successes=[[600, 300, 295]])
    assert found.selected == ("arm-0", "arm-1")
    assert found.epsilons[0] < 0.05 < found.epsilons[1]
    assert found.statuses == ("in", "open", "open")
