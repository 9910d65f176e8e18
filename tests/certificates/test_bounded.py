"""Evidence about rewards between 0 and 1: it is a supermartingale, and settles pairs for every cut."""

import itertools
import math

import numpy as np
import pytest

from shortlist.certificates import bounded, settled_pairs
from shortlist.certificates.bounded import BoundedEvidence, Tilts
from shortlist.certificates.cut import ABOVE, BELOW, PAIRS
from shortlist.certificates.settled_pairs import open_outsiders

CASES = [
    (2, 1, 0.3, 0.3),
    (6, 1, 0.05, 0.005),
    (20, 3, 0.05, 0.03),
    (100, 5, 0.01, 0.1),
    (1000, 1, 0.05, 0.2),
]


@pytest.mark.parametrize("epsilon", [0.001, 0.02, 0.3, 1.0])
def test_the_weights_of_a_mixture_add_up_to_1(epsilon: float) -> None:
    for scale in (bounded.SCALE_BELOW, bounded.SCALE_ABOVE):
        mixture = Tilts.of(scale * epsilon)
        assert np.exp(mixture.logs).sum() == pytest.approx(1.0, abs=1e-12)
        assert (mixture.tilts > 0).all()
        assert len(mixture.tilts) >= 3


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mean", [0.0, 0.03, 0.5, 0.92, 1.0])
def test_the_evidence_of_coins_has_expectation_1_at_their_own_mean(sign: int, mean: float) -> None:
    """Exactly, by enumeration of all sequences; any rule that stops early has expectation 1, too."""
    mixture = Tilts.of(0.6)
    for n in (1, 4, 9):
        sums = np.arange(n + 1.0)
        logs = mixture.log_evidence(sums, np.full(n + 1, float(n)), np.array([mean]), sign)[:, 0]
        chances = [math.comb(n, k) * mean**k * (1 - mean) ** (n - k) for k in range(n + 1)]
        assert np.dot(chances, np.exp(logs)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_other_rewards_with_the_same_mean_have_less(sign: int) -> None:
    mixture, values, chances = Tilts.of(0.6), np.array([0.0, 0.2, 0.7, 1.0]), np.array([0.2, 0.3, 0.4, 0.1])
    mean = float(values @ chances)
    expected = 0.0
    for rewards in itertools.product(range(4), repeat=3):
        log = mixture.log_evidence(
            np.array([values[list(rewards)].sum()]), np.array([3.0]), np.array([mean]), sign
        )
        expected += chances[list(rewards)].prod() * math.exp(float(log[0, 0]))
    assert 0.5 < expected < 1.0


@pytest.mark.parametrize("sign", [1, -1])
def test_evidence_is_monotone_in_the_cut_and_at_least_that_of_the_worst_variance(sign: int) -> None:
    mixture, rng = Tilts.of(0.2), np.random.default_rng(2 + sign)
    counts = rng.integers(1, 500, 50).astype(float)
    sums = rng.binomial(counts.astype(int), rng.random(50)).astype(float)
    cuts = np.linspace(0, 1, 101)
    logs = mixture.log_evidence(sums, counts, cuts, sign)
    assert (sign * np.diff(logs, axis=1) <= 1e-9).all()
    for row, (total, count) in enumerate(zip(sums, counts, strict=True)):
        least = mixture.least_log_evidence(sign * (total / count - cuts), count)
        assert (logs[row] >= least - 1e-9).all()


def test_beyond_0_and_1_nothing_is_left_to_prove() -> None:
    mixture = Tilts.of(0.2)
    cuts = np.array([-0.01, 0.5, 1.01])
    above, below = (
        mixture.log_evidence(np.array([3.0]), np.array([10.0]), cuts, sign)[0] for sign in (1, -1)
    )
    assert above[0] == below[2] == np.inf
    assert np.isfinite([*above[1:], *below[:2]]).all()
    one = mixture.log_evidence(np.array([3.0]), np.array([10.0]), np.array([1.0]), -1)
    assert np.isfinite(one).all()


@pytest.mark.parametrize(("n", "m", "delta", "epsilon"), CASES)
def test_many_arms_are_computed_in_blocks(n: int, m: int, delta: float, epsilon: float) -> None:
    evidence, rng = BoundedEvidence.of(n, m, delta, epsilon), np.random.default_rng(5)
    counts = rng.integers(1, 300, 40)
    sums, cuts = rng.binomial(counts, 0.4).astype(float), np.linspace(0, 1, 9)
    arms, about = np.arange(40), evidence.about(sums, counts)
    for some in (cuts, cuts - rng.random((40, 1)) / 9):  # the same for all arms, and a row for each
        whole = about.log_below(arms, some)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bounded, "_AT_ONCE", 1)
            assert (about.log_below(arms, some) == whole).all()


# --- settled pairs -------------------------------------------------------------------------------------


def total(
    evidence: BoundedEvidence,
    case: tuple[int, int, float],
    out: tuple[float, int],
    inside: tuple[float, int],
    cut: float,
) -> float:
    """Return delta times the weighted sum of the certificate for a pair at a cut, from its definition.

    The arms are given by the sums and the numbers of their rewards.
    """
    n, m, delta = case

    def mixed(mixture: Tilts, sign: int, arm: tuple[float, int], at: float) -> float:
        terms = zip(sign * mixture.tilts, np.exp(mixture.logs), strict=True)
        logs = [h * arm[0] - arm[1] * math.log1p(at * math.expm1(h)) + math.log(w) for h, w in terms]
        return sum(math.exp(min(log, 300.0)) for log in logs)

    below, above = (
        mixed(evidence.below, -1, out, cut),
        mixed(evidence.above, 1, inside, cut - evidence.epsilon),
    )
    return delta * (BELOW / m * below + ABOVE / (n - m) * above + PAIRS / (m * (n - m)) * below * above)


@pytest.mark.parametrize("seed", range(30))
def test_arms_that_are_not_open_are_settled_for_every_cut_and_open_ones_nearly_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), 1
    m = int(rng.integers(1, n))
    delta, epsilon = float(rng.uniform(0.01, 0.4)), float(rng.uniform(0.02, 0.4))
    evidence = BoundedEvidence.of(n, m, delta, epsilon)
    counts = rng.integers(1, 1 + int(2 * evidence.enough()), n)
    sums = rng.binomial(counts, rng.random(n) * 0.3 + rng.random() * 0.7).astype(float)
    incumbents = np.argsort(-sums / counts, kind="stable")[:m]
    is_open = open_outsiders(evidence.about(sums, counts), np.sort(incumbents), epsilon)
    assert not is_open[incumbents].any()
    cuts = np.linspace(epsilon, 1.0, 201).tolist()
    arms = list(zip(sums.tolist(), counts.tolist(), strict=True))
    for outsider in set(range(n)) - set(incumbents.tolist()):
        pairs = [(arms[outsider], arms[one], cut) for one in incumbents.tolist() for cut in cuts]
        least = min(total(evidence, (n, m, delta), *pair) for pair in pairs)
        if not is_open[outsider]:
            assert least >= 1 - 1e-9
        elif least > 1:  # cells are checked at their worse ends: it was open by a little only
            assert least < 3


@pytest.mark.parametrize("seed", range(12))
def test_evidence_is_taken_at_the_worse_ends_of_cells(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one cell only, evidence at the other ends would settle pairs that are not."""
    monkeypatch.setattr(settled_pairs, "_N_CUTS", 2)
    rng = np.random.default_rng(seed)
    evidence = BoundedEvidence.of(2, 1, 0.3, 0.2)
    counts = rng.integers(evidence.enough() // 8, evidence.enough(), 2)
    sums = np.sort(rng.binomial(counts, 0.5) / counts) * counts
    is_settled = not open_outsiders(evidence.about(sums, counts), np.array([1]), 0.2).any()
    arms = list(zip(sums.tolist(), counts.tolist(), strict=True))
    cuts = np.linspace(0.2, 1.0, 801).tolist()
    least = min(total(evidence, (2, 1, 0.3), arms[0], arms[1], cut) for cut in cuts)
    assert least >= 1 - 1e-9 or not is_settled


@pytest.mark.parametrize(("n", "m", "delta", "epsilon"), CASES)
def test_with_enough_pulls_the_larger_mean_settles_a_pair(
    n: int, m: int, delta: float, epsilon: float
) -> None:
    evidence = BoundedEvidence.of(n, m, delta, epsilon)
    enough = evidence.enough()
    for mean in (0.0, 0.1, 0.5, 0.77, 1.0):
        for more in (1.0, 1.001, 1.5, 10.0):
            counts = np.array([enough, math.ceil(more * enough)])
            sums = mean * counts
            for incumbent in (0, 1):
                assert not open_outsiders(evidence.about(sums, counts), np.array([incumbent]), epsilon).any()


@pytest.mark.parametrize(("n", "m", "delta", "epsilon"), CASES)
def test_hardly_fewer_are_not_enough(n: int, m: int, delta: float, epsilon: float) -> None:
    evidence = BoundedEvidence.of(n, m, delta, epsilon)
    assert not evidence._is_enough(0.999 * (evidence.enough() - 1))


def test_enough_is_not_far_from_what_sub_gaussian_evidence_needs() -> None:
    evidence = BoundedEvidence.of(100, 5, 0.05, 0.05)
    assert (
        evidence.prices.enough() / 4 / 0.05**2
        < evidence.enough()
        < 1.2 * evidence.prices.enough() / 4 / 0.05**2
    )
