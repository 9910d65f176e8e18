"""Evidence from paired differences: that of its definition, at most; it crosses as rarely as it should."""

import math

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.paired_t import GAINS, fewest_blocks, log_evidence, sufficient_ratios
from tests.oracles.paired_t import one_sided


def ratio(values: FloatArray) -> float:
    return float(len(values) * values.mean() ** 2 / ((values - values.mean()) ** 2).sum())


@pytest.mark.parametrize("seed", range(8))
def test_evidence_is_a_close_lower_bound_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 30))
    values = rng.normal(rng.choice([0.1, 0.6, 1.5]), 1, k)
    values = values if values.mean() > 0 else -values
    exact = np.mean([one_sided(values.tolist(), gain) for gain in GAINS])
    found = float(np.exp(log_evidence(np.array([k]), np.array([ratio(values)])))[0])
    assert found <= exact * (1 + 1e-6)
    assert found >= exact - 1  # what the bound gives away is at most the evidence at 0


def test_without_an_effect_there_is_no_evidence() -> None:
    sizes = np.arange(2, 200)
    assert (log_evidence(sizes, np.zeros(len(sizes))) < 0).all()


def test_equal_differences_are_finite_evidence() -> None:
    for k in (2, 5, 30):
        limit = np.mean([2 * (1 + k * g) ** ((k - 1) / 2) - (1 + k * g) ** -0.5 for g in GAINS])
        assert float(np.exp(log_evidence(np.array([k]), np.array([np.inf])))[0]) == pytest.approx(limit)


@pytest.mark.parametrize("threshold", [3.0, 8.0, 20.0])
def test_a_sufficient_ratio_is_just_enough(threshold: float) -> None:
    sizes = np.arange(1, 500)
    ratios = sufficient_ratios(sizes, threshold)
    is_possible = np.isfinite(ratios)
    assert int(sizes[is_possible].min()) == fewest_blocks(threshold)
    assert (np.diff(is_possible.astype(int)) >= 0).all()
    enough, sizes = ratios[is_possible], sizes[is_possible]
    assert (log_evidence(sizes, enough) >= threshold).all()
    assert (log_evidence(sizes, enough * (1 - 1e-6)) < threshold).all()


@pytest.mark.parametrize(("alpha", "most"), [(0.05, 0.05), (0.2, 0.2), (0.45, 0.45)])
def test_evidence_is_rarely_false_whenever_one_looks(alpha: float, most: float) -> None:
    """At mean 0 it reaches 1/alpha at any of 400 blocks in a share of at most alpha; hardly less at .45."""
    rng = np.random.default_rng(5)
    values = rng.standard_normal((4000, 400))
    sizes = np.arange(2, 401)
    means = (values.cumsum(axis=1) / np.arange(1, 401))[:, 1:]
    deviations = (values**2).cumsum(axis=1)[:, 1:] - sizes * means**2
    logs = np.where(means > 0, log_evidence(sizes, sizes * means**2 / deviations), -np.inf)
    share = float((logs.max(axis=1) >= -math.log(alpha)).mean())
    assert share <= most + 3 * math.sqrt(most * (1 - most) / 4000)
    assert share >= 0.3 * most  # the test can tell
