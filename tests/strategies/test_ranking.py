"""The sequential procedures of ranking and selection, `kn` and `biz`: constants, totals, promises."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist as sl
from shortlist.strategies import biz, kn, strategy_named
from tests.playing import play
from tests.questions import known

pytestmark = pytest.mark.slow


def asked(variances: object, **changes: object) -> sl.Problem:
    given = {"m": 1, "epsilon": 0.1, "delta": 0.05, "noise": "gaussian", "guarantee": "indifference"}
    return known(**(given | changes), variances=variances)  # type: ignore[arg-type]


def slippage_totals(name: str, replications: int) -> tuple[float, float, int]:
    """Mean pulls on 100 arms with variances from 0.1 to 10, its standard error, and wrong selections.

    Which variances the inferior arms have in which order cannot matter. So instead of dealing variances at
    random, every second one is given to the best arm in turn, which leaves less to chance.
    """
    pulls, wrong = [], 0
    for rank in range(0, 100, 2):
        problem = asked(np.roll(np.geomspace(0.1, 10.0, 100), -rank))
        means = sl.instances.slippage(problem, 0.1 * (1 + 1e-9)).means
        outcome = sl.simulate(problem, means, name, replications=replications, seed=rank)
        pulls.append(outcome.pulls)
        wrong += int((outcome.selected[:, 0] != 0).sum())
    within = np.var(pulls, axis=1, ddof=1).mean()
    return float(np.mean(pulls)), math.sqrt(within / (len(pulls) * replications)), wrong


@pytest.mark.parametrize(("name", "published"), [("kn", 153_318), ("biz", 121_928)])
def test_totals_are_those_measured_elsewhere(name: str, published: int) -> None:
    mean, error, wrong = slippage_totals(name, replications=2)
    assert error < 0.02 * published  # 100 runs tell a difference of 3 %, give or take twice this
    assert mean == pytest.approx(published, rel=0.03)
    assert binomtest(wrong, 100, 0.05, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(("n", "share"), [(2, 0.05), (100, 0.000517982), (1000, 5.13433e-5)])
def test_each_other_arm_has_its_share_of_delta(n: int, share: float) -> None:
    problem = asked(np.ones(n))
    assert biz.smallest_odds(problem) == pytest.approx(share, rel=1e-5)
    assert math.exp(-kn.slope(problem) * 0.1) / 2 == pytest.approx(share, rel=1e-5)
    assert 1 - (1 - share) ** (n - 1) == pytest.approx(0.05, rel=1e-4)


def test_a_pair_errs_as_often_as_its_triangle_says() -> None:
    """With many small steps two arms are a Brownian motion, and kn errs with probability delta, nearly."""
    problem = asked([1.0, 3.0], epsilon=0.3, delta=0.1)
    outcome = sl.simulate(problem, [0.3 * (1 + 1e-9), 0.0], "kn", replications=1000, seed=4)
    wrong = int((outcome.selected[:, 0] != 0).sum())
    assert binomtest(wrong, 1000, 0.1, alternative="greater").pvalue > 1e-6
    assert binomtest(wrong, 1000, 0.07, alternative="less").pvalue > 1e-6  # nor much less often


def test_biz_spends_all_of_delta_in_the_least_favourable_case() -> None:
    problem = asked(np.ones(8), epsilon=0.4, delta=0.2)
    means = sl.instances.slippage(problem, 0.4 * (1 + 1e-9)).means
    outcome = sl.simulate(problem, means, "biz", replications=1000, seed=4)
    wrong = int((outcome.selected[:, 0] != 0).sum())
    assert binomtest(wrong, 1000, 0.2, alternative="greater").pvalue > 1e-6
    assert binomtest(wrong, 1000, 0.15, alternative="less").pvalue > 1e-6


def test_the_cap_of_kn_is_attained_when_nothing_tells_arms_apart() -> None:
    problem = asked([5.0, 0.5, 2.0, 1.0, 3.0, 0.1], epsilon=0.5)
    played = play("kn", problem, lambda _arm, _number, _count: 1.0)
    assert played.selected == {0}
    assert played.n_pulls <= kn.worst_case_pulls(problem)
    adverse = play("kn", problem, lambda arm, _number, _count: 1e-9 * problem.variances[arm])
    assert adverse.n_pulls == kn.worst_case_pulls(problem)
    assert len(adverse.batches) == kn.n_rounds(problem)
    pulls = {arm: sum(counts) for arm, counts in adverse.pulls.items()}
    a = math.log(1 / (2 * (1 - 0.95 ** (1 / 5)))) / 0.5
    for arm, next_noisier in ((5, 1), (1, 3), (3, 2), (2, 4), (4, 0)):
        enough = 2 * a * (problem.variances[arm] + problem.variances[next_noisier]) / 0.5
        assert enough <= pulls[arm] < enough * (1 + 1 / 128) + 1
    assert pulls[0] == pulls[4]


def test_a_guess_may_do() -> None:
    problem = asked([1.0, 1.0], delta=0.6)
    assert kn.slope(problem) == 0.0
    assert kn.worst_case_pulls(problem) == 2


def test_the_screen_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(2, 30))
        problem, spreads = asked(np.ones(n), epsilon=0.3), rng.exponential(0.02, n)
        means = rng.normal(0.0, 0.3, n)
        a = kn.slope(problem)
        beaten = [
            any(
                means[l] - means[i] > max(0.0, a * (spreads[i] + spreads[l]) - 0.15)
                for l in range(n)  # noqa: E741
            )
            for i in range(n)
        ]
        assert kn.is_beaten(means, spreads, problem).tolist() == beaten


def test_dropping_at_once_is_dropping_one_by_one() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        weights = np.exp(rng.normal(0.0, 3.0, int(rng.integers(2, 12))))
        kept, hurdle = biz.screened(weights, 0.9, 0.05)
        left, expected = dict(enumerate(weights.tolist())), 0.9
        while (least := min(left.values())) <= 0.05 * sum(left.values()):
            expected /= 1 - least / sum(left.values())
            left = {arm: weight for arm, weight in left.items() if weight > least}
        assert kept.tolist() == list(left)
        assert hurdle == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["kn", "biz"])
def test_they_promise_only_what_is_proved(name: str) -> None:
    strategy = strategy_named(name)
    assert strategy.guarantee(asked(np.ones(5), noise="sub-gaussian")) is None
    promise = strategy.guarantee(asked(np.ones(5)))
    assert promise is not None
    assert promise.scope is sl.certificates.Scope.CORRECT
    assert promise.ledger.total == 0.05
    assert "Gaussian" in promise.assumption
    unequal = strategy.guarantee(asked([1.0, 1.0, 1.0 + 1e-12]))
    assert (unequal is None) == (name == "biz")
    assert strategy.unfit(asked(np.ones(5), m=3)) == "it selects one arm only, and m is 3"
    with pytest.raises(sl.InvalidProblem, match="selects one arm only"):
        sl.Session(asked(np.ones(5), m=3), name)


@pytest.mark.parametrize("name", ["kn", "biz"])
def test_many_arms_take_little_memory_and_time(name: str) -> None:
    problem = asked(np.linspace(1.0, 2.0, 100_000), epsilon=1.0)
    means = np.where(problem.arms == 7, 4.0, 0.0)
    outcome = sl.simulate(problem, means, name, replications=1, seed=1)
    assert outcome.selected.tolist() == [[7]]
