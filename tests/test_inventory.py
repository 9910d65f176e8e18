"""The exact moments of the inventory instance: known figures, a slow second way, and simulation."""

import numpy as np
import pytest
from benchmarks.inventory import Systems, instance, moments, systems

KNOWN = {
    (20, 40): (114.1763, 14.926),
    (20, 80): (112.7424, 18.710),
    (40, 60): (130.5498, 17.959),
    (40, 100): (130.6992, 15.844),
    (60, 100): (147.3821, 8.459),
}


@pytest.fixture(scope="module")
def every() -> Systems:
    return systems()


def costs(reorder: int, level: int, replications: int) -> np.ndarray:
    """Return average costs as a plain simulation finds them."""
    rng = np.random.default_rng(1)
    stock, spent = np.full(replications, level), np.zeros(replications)
    for _ in range(30):
        is_low = stock < reorder
        spent += np.where(is_low, 32 + 3 * (level - stock), 0)
        stock = np.where(is_low, level, stock) - rng.poisson(25, replications)
        spent += np.where(stock >= 0, stock, -5 * stock)
    return np.asarray(spent / 30)


@pytest.mark.parametrize(("system", "figures"), KNOWN.items(), ids=str)
def test_known_means_and_variances(system: tuple[int, int], figures: tuple[float, float]) -> None:
    mean, variance = moments(np.array([system[0]]), np.array([system[1]]))
    assert mean[0] == pytest.approx(figures[0], abs=6e-5)
    assert variance[0] == pytest.approx(figures[1], abs=6e-4)


def test_the_best_systems_and_how_many_come_close(every: Systems) -> None:
    order = np.argsort(every.means)[:3]
    best = [(int(every.reorder[i]), int(every.level[i]), round(float(every.means[i]), 4)) for i in order]
    assert best == [(18, 53, 106.1684), (17, 53, 106.1750), (17, 52, 106.1966)]
    excess = every.means - every.means.min()
    assert [int((excess <= within).sum()) for within in (0.1, 0.5, 1.0)] == [6, 26, 58]
    assert round(float(every.variances.min()), 2) == 3.25
    assert round(float(every.variances.max()), 1) == 52.3


def test_many_at_once_are_as_one_by_one(every: Systems) -> None:
    for arm in (0, 39, 777, 1599):
        mean, variance = moments(every.reorder[arm : arm + 1], every.level[arm : arm + 1])
        assert mean[0] == pytest.approx(every.means[arm], rel=1e-12)
        assert variance[0] == pytest.approx(every.variances[arm], rel=1e-9)


@pytest.mark.parametrize("arm", [3, 700, 1590])
def test_a_simulation_agrees(every: Systems, arm: int) -> None:
    """Five standard errors, about; a false alarm would have a chance of 1e-6 each."""
    drawn = costs(int(every.reorder[arm]), int(every.level[arm]), 20_000)
    variance = float(every.variances[arm])
    assert drawn.mean() == pytest.approx(every.means[arm], abs=5 * (variance / 20_000) ** 0.5)
    assert drawn.var() == pytest.approx(variance, rel=0.08)


def test_the_instance_asks_for_the_cheapest(every: Systems) -> None:
    found = instance(m=2)
    assert found.problem.n == 1600
    assert found.problem.name(int(np.argmax(found.means))) == "(18,53)"
    assert (found.problem.variances == every.variances).all()
