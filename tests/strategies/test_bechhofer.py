"""Bechhofer's procedure: its constant, its promise, and when it is recommended."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, norm

import shortlist as sl
from shortlist.rewards import KINDS
from shortlist.strategies import strategy_named
from shortlist.strategies.bechhofer import (
    constant,
    failure_in_the_least_favourable_case,
    is_proved,
    pulls,
)
from tests.questions import known

PUBLISHED = {
    (2, 1): 2.326,
    (10, 1): 3.418,
    (10, 3): 3.854,
    (100, 1): 4.306,
    (100, 10): 5.277,
    (1000, 1): 4.993,
    (1000, 50): 6.507,
}


@pytest.mark.parametrize(("n", "m"), PUBLISHED)
def test_the_constant_is_the_published_one(n: int, m: int) -> None:
    assert constant(n, m, 0.05) == pytest.approx(PUBLISHED[n, m], abs=6e-4)


@pytest.mark.parametrize("delta", [1e-50, 1e-12, 0.05, 0.4])
def test_two_arms_have_a_closed_form(delta: float) -> None:
    assert constant(2, 1, delta) == pytest.approx(math.sqrt(2) * norm.isf(delta), rel=1e-9)


@pytest.mark.parametrize(("n", "m", "h"), [(3, 1, 2.0), (5, 2, 1.0), (12, 11, 3.0), (40, 7, 5.0)])
def test_the_integral_is_that_of_an_independent_quadrature(n: int, m: int, h: float) -> None:
    def right(z: float) -> float:
        return float(m * norm.cdf(z + h) ** (n - m) * norm.sf(z) ** (m - 1) * norm.pdf(z))

    exact = quad(right, -15.0, 15.0, epsabs=1e-12, limit=500)[0]
    assert failure_in_the_least_favourable_case(h, n, m) == pytest.approx(1 - exact, abs=1e-10)


def test_selecting_m_is_leaving_out_the_others() -> None:
    assert constant(10, 3, 0.1) == pytest.approx(constant(10, 7, 0.1), rel=1e-9)


def test_a_guess_may_do() -> None:
    assert constant(3, 1, 0.9) == 0.0
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.9, variances=[4.0] * 3)
    assert strategy_named("bechhofer").worst_case_pulls(problem) == 3  # still one pull each


def test_the_promise_is_kept_with_nothing_to_spare_in_the_least_favourable_case() -> None:
    problem = known(
        m=3,
        epsilon=0.1,
        delta=0.1,
        variances=np.linspace(1.0, 9.0, 12),
        noise="gaussian",
        guarantee="indifference",
    )
    means = np.where(np.arange(12) < 3, 0.1 * (1 + 1e-9), 0.0)
    outcome = sl.simulate(problem, means, "bechhofer", replications=20_000, seed=3)
    wrong = sum(set(chosen) != {0, 1, 2} for chosen in outcome.selected.tolist())
    assert binomtest(wrong, 20_000, 0.1).pvalue > 1e-6  # two-sided: the constant is exact
    assert binomtest(wrong, 20_000, 0.11).pvalue < 1e-3


def test_it_promises_only_what_is_proved() -> None:
    asked = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 20)
    assert strategy_named("bechhofer").guarantee(asked) is None
    promise = strategy_named("bechhofer").guarantee(asked.changed(rewards=sl.Gaussian))
    assert promise is not None
    assert promise.scope is sl.certificates.Scope.CORRECT
    assert "exceed those of all other arms by at least 0.5" in promise.sentence
    assert "Gaussian" in str(promise)


# --- unequal variances ----------------------------------------------------------------------------


def failure(h: float, inside: list[float], outside: list[float]) -> float:
    """How probably the raised means are not the largest, whose errors have these scales; by quadrature."""
    x = np.linspace(-9.0 - h, 9.0, 4001)
    log_all_below = sum(norm.logcdf((x + h) / scale) for scale in outside)
    log_least_above = sum(norm.logsf(x / scale) for scale in inside)
    below = np.exp(log_all_below)  # the others lie below x + h
    chances = -np.diff(np.exp(log_least_above))  # that of the least raised one
    return float(1 - (chances * (below[1:] + below[:-1]) / 2).sum())


@pytest.mark.parametrize(("n", "m"), [(3, 1), (4, 3), (6, 2), (7, 3), (12, 1)])
def test_what_it_promises_holds_whatever_the_scales(n: int, m: int) -> None:
    """Proof-shaped: the least favourable means, and scales of sample means at and below the largest."""
    rng = np.random.default_rng(n * 100 + m)
    patterns = [[*[0.02] * m, *[1.0] * (n - m)], [*[1.0] * m, *[0.02] * (n - m)]]
    patterns += [[*[0.6] * m, *[1.0] * (n - m)], [1.0] * n]
    patterns += [list(rng.choice([0.02, 0.3, 0.7, 1.0], n)) for _ in range(6)]
    proved = []
    for delta in (0.05, 0.3, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9):
        h = constant(n, m, delta)
        # variances of which every second one is far below what a single pull gives, so that shares differ
        uneven = np.where(np.arange(n) % 2, 1.0, 1e-6)
        asked = known(m, max(h, 0.1), delta, uneven, noise="gaussian", guarantee="indifference")
        proved.append(is_proved(asked))
        worst = max(failure(h, scales[:m], scales[m:]) for scales in patterns) if h else 1.0
        assert not proved[-1] or worst <= delta + 1e-4
        assert (strategy_named("bechhofer").guarantee(asked) is not None) == proved[-1]
        assert is_proved(asked.changed(variances=np.ones(n)))  # equal noise is what the constant is for
    assert proved[:3] == [True] * 3
    assert proved[-1] is False


def test_a_quiet_best_arm_would_be_overtaken() -> None:
    """With delta 0.6 and one quiet arm the constant would fail far more often than that: it is refused."""
    h = constant(10, 1, 0.6)
    variances = np.where(np.arange(10) == 0, 1e-4, 1.0)
    asked = known(1, h / 2, 0.6, variances, noise="gaussian", guarantee="indifference")
    scales = np.sqrt(variances / pulls(asked))
    drawn = np.random.default_rng(5).standard_normal((4000, 10)) * scales
    wrong = int((drawn[:, 1:].max(axis=1) > drawn[:, 0] + asked.epsilon).sum())
    assert binomtest(wrong, 4000, 0.6, alternative="greater").pvalue < 1e-6
    with pytest.raises(sl.InvalidProblem, match=r"its proof does not cover delta = 0\.6 .* or use race"):
        sl.Session(asked, "bechhofer")
    assert strategy_named("bechhofer").guarantee(asked) is None
    assert sl.plan(asked).best.strategy != "bechhofer"
    assert is_proved(known(1, 0.1, 0.9, [1e-4, 1.0], noise="gaussian"))  # two arms need no more
    assert sl.Session(asked.changed(delta=0.5), "bechhofer").strategy == "bechhofer"


def test_it_is_recommended_only_for_an_indifference_zone_and_gaussian_rewards() -> None:
    asked = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 10)
    best = {
        (noise, guarantee): sl.plan(asked.changed(rewards=KINDS[noise], guarantee=guarantee)).best.strategy
        for noise in ("sub-gaussian", "gaussian")
        for guarantee in ("pac", "indifference")
    }
    assert best == {
        ("sub-gaussian", "pac"): "race",
        ("sub-gaussian", "indifference"): "race",
        ("gaussian", "pac"): "race",
        ("gaussian", "indifference"): "bechhofer",
    }
    assert sl.plan(asked.changed(rewards=sl.Gaussian))["bechhofer"].note == "only with an indifference zone"


def test_a_result_names_its_guarantee() -> None:
    asked = known(
        m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 4, noise="gaussian", guarantee="indifference"
    )
    result = sl.select(sl.simulated_measure(asked, [0.0, 2.0, 2.0, 0.0]), asked)
    assert result.strategy == "bechhofer"
    assert result.is_answer
    assert result.to_dict()["guarantee"]["scope"] == "correct"
    other = sl.select(
        sl.simulated_measure(asked, [0.0, 2.0, 2.0, 0.0]), asked.changed(guarantee="pac"), "bechhofer"
    )
    assert not other.is_answer


def test_the_question_says_what_is_known_and_what_is_wanted() -> None:
    usual = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0, 2.0])
    assert (usual.noise, usual.guarantee) == ("sub-gaussian", "pac")
    others = [usual.changed(rewards=sl.Gaussian), usual.changed(guarantee="indifference")]
    assert len({usual.digest, *(other.digest for other in others)}) == 3
    assert others[0].changed(rewards=sl.SubGaussian) == usual
    with pytest.raises(sl.InvalidProblem, match="sub-gaussian, gaussian"):
        usual.changed(noise="normal")
    with pytest.raises(sl.InvalidProblem, match="pac, indifference"):
        usual.changed(guarantee=None)
