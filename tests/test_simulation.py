"""Many runs at once: reproducible lane by lane, with errors counted as the guarantee defines them."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist as sl
from shortlist import simulation as module
from shortlist.arrays import FloatArray, IntArray
from shortlist.measure import REWARDS
from shortlist.measure.simulated import Distribution
from shortlist.planning import best_strategy
from shortlist.simulation import Simulation, is_bad
from shortlist.strategies import strategy_named
from tests.playing import fitting

pytestmark = pytest.mark.slow

CAPPED = [name for name in sl.strategies.names() if strategy_named(name).take_lanes is None]


def problem(**changes: Any) -> sl.Problem:
    question: dict[str, Any] = {"m": 2, "epsilon": 1.0, "delta": 0.1, "variances": [0.3, 1.0, 0.25, 2.0, 0.5]}
    return sl.Problem(**(question | changes))


MEANS = [0.9, 0.1, 0.4, 0.6, 0.0]


def rows(simulation: Simulation, r: slice) -> tuple[list[Any], ...]:
    return tuple(
        field[r].tolist()
        for field in (simulation.pulls, simulation.selected, simulation.is_final, simulation.is_error)
    )


@pytest.fixture
def upside_down(monkeypatch: pytest.MonkeyPatch) -> str:
    """Rewards without noise that make the worst arms look best, so that every strategy must err."""

    def draw(out: FloatArray, _: Any, means: FloatArray, __: FloatArray, ___: IntArray) -> None:
        out[:] = -means

    monkeypatch.setitem(REWARDS, "upside-down", Distribution(draw, "minus the mean"))
    return "upside-down"


# --- reproducible ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
@pytest.mark.parametrize("rewards", REWARDS)
def test_a_replication_does_not_depend_on_how_many_there_are(strategy: str, rewards: str) -> None:
    asked = fitting(strategy, problem())
    many = sl.simulate(asked, MEANS, strategy, replications=9, seed=4, rewards=rewards)
    for few in (1, 2, 5):
        some = sl.simulate(asked, MEANS, strategy, replications=few, seed=4, rewards=rewards)
        assert rows(some, slice(few)) == rows(many, slice(few))


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_more_replications_than_lanes(strategy: str) -> None:
    asked = problem(m=1, epsilon=2.0)
    many = sl.simulate(asked, MEANS, strategy, replications=300, seed=4)
    some = sl.simulate(asked, MEANS, strategy, replications=130, seed=4)
    assert rows(some, slice(130)) == rows(many, slice(130))


@pytest.mark.parametrize("strategy", sl.strategies.names())
@pytest.mark.parametrize("most_lanes", [1, 3, 7])
def test_a_replication_does_not_depend_on_the_chunks(
    strategy: str, most_lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fitting(strategy, problem())
    whole = sl.simulate(asked, MEANS, strategy, replications=10, seed=4)
    monkeypatch.setattr(module, "_MOST_LANES", most_lanes)
    few = sl.simulate(asked, MEANS, strategy, replications=10, seed=4)
    assert rows(few, slice(10)) == rows(whole, slice(10))


@pytest.mark.parametrize("strategy", ["wnelim", "vmedelim", "medelim-max", "adapted-medelim"])
@pytest.mark.parametrize("rewards", ["gaussian", "two-point"])
def test_many_arms_in_many_lanes_are_still_the_single_run(strategy: str, rewards: str) -> None:
    found = sl.instances.random(700, 5, epsilon=3.0, spread=20.0)
    many = sl.simulate(found.problem, found.means, strategy, replications=60, rewards=rewards)
    alone = sl.simulate(found.problem, found.means, strategy, replications=1, rewards=rewards)
    assert rows(many, slice(1)) == rows(alone, slice(1))


def test_long_uniform_batches_do_not_depend_on_the_number_of_replications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if few uniform rewards fitted into memory; only some of the arms then need several parts."""
    monkeypatch.setattr("shortlist.measure.simulated._DRAWS", 20)
    variances = np.where(np.arange(400) % 3 == 0, 1.0, 0.01)
    asked = sl.Problem(m=150, epsilon=1.0, delta=0.9, variances=variances)
    means = np.linspace(0, 0.2, 400)
    many = sl.simulate(asked, means, "wnelim", replications=64, rewards="uniform")
    alone = sl.simulate(asked, means, "wnelim", replications=1, rewards="uniform")
    assert rows(many, slice(1)) == rows(alone, slice(1))


def test_the_seed_makes_the_difference() -> None:
    one, again, other = (
        sl.simulate(problem(), MEANS, "lucb", replications=20, seed=seed) for seed in (1, 1, 2)
    )
    assert rows(one, slice(20)) == rows(again, slice(20))
    assert one.pulls.tolist() != other.pulls.tolist()


def test_replications_differ_from_each_other() -> None:
    assert len(set(sl.simulate(problem(), MEANS, "lucb", replications=20).pulls.tolist())) > 10


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_without_noise_no_strategy_errs(strategy: str) -> None:
    asked = problem(m=1, variances=[1.0] * 7)
    means = [0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0]
    found = sl.simulate(asked, means, strategy, replications=6, rewards="noiseless")
    assert found.errors == 0
    assert found.is_final.all()
    assert (found.selected == 3).any(axis=1).all()


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_rewards_that_lie_make_every_strategy_err(strategy: str, upside_down: str) -> None:
    asked = problem(m=1, variances=[1.0] * 7)
    means = [0.0, 0.1, 0.2, 5.0, 0.3, 0.4, 0.5]  # all different: some strategies never end on a tie
    found = sl.simulate(asked, means, strategy, replications=6, rewards=upside_down)
    assert found.errors == 6
    assert found.is_error.all()


@pytest.mark.parametrize(
    ("means", "epsilon"),
    [([0.8, 0.7], 0.1), ([0.3, 0.2], 0.1), ([1.1, 1.0], 0.1), ([0.1, -0.2], 0.3), ([1e6 + 0.1, 1e6], 0.1)],
)
def test_a_gap_of_exactly_epsilon_is_no_error(means: list[float], epsilon: float, upside_down: str) -> None:
    asked = sl.Problem(m=1, epsilon=epsilon, delta=0.1, variances=[1.0, 1.0])
    found = sl.simulate(asked, means, "wnelim", replications=3, rewards=upside_down)
    assert found.selected.tolist() == [[1], [1], [1]]  # the lower one
    assert found.errors == 0


@pytest.mark.parametrize("means", [[0.8, 0.7 - 1e-9], [0.8, 0.69], [1e6 + 0.1001, 1e6]])
def test_a_gap_just_above_epsilon_is_an_error(means: list[float], upside_down: str) -> None:
    asked = sl.Problem(m=1, epsilon=0.1, delta=0.1, variances=[1.0, 1.0])
    assert sl.simulate(asked, means, "wnelim", replications=3, rewards=upside_down).errors == 3


def test_errors_are_those_of_the_definition() -> None:
    """Noise is large and delta too, so that some replications err; count them from the definition."""
    asked = sl.Problem(m=2, epsilon=0.5, delta=0.99, variances=[1.0, 2.0, 1.0, 4.0])
    means = np.array([1.0, 0.9, 0.395, 0.2])  # 0.395 lies 0.505 below the second best, and so is bad
    found = sl.simulate(asked, means, "wnelim", replications=3000, seed=1)
    is_error = [min(means[row]) < 0.9 - 0.5 for row in found.selected]
    assert found.is_error.tolist() == is_error
    assert 0 < found.errors == sum(is_error) < 0.99 * 3000


def test_a_screen_errs_when_too_few_good_arms_are_left(upside_down: str) -> None:
    """Of 2m selected arms it is enough that m are good."""
    asked = sl.Problem(m=1, epsilon=0.1, delta=0.1, variances=[1.0] * 4)
    rest: dict[str, Any] = {"strategy": "medelim", "replications": 2, "rewards": upside_down}
    assert sl.simulate(asked, [1.0, 0.95, 0.0, 0.5], **rest).errors == 2  # keeps 0.0 and 0.5
    assert sl.simulate(asked, [1.0, 2.0, 0.0, 1.95], **rest).errors == 2  # keeps 0.0 and 1.0
    assert sl.simulate(asked, [1.0, 0.95, 0.95, 1.0], **rest).errors == 0  # keeps 0.95 twice


def test_is_bad_is_more_than_epsilon_below_the_mth_best() -> None:
    asked = sl.Problem(m=2, epsilon=0.1, delta=0.1, variances=[1.0] * 5)
    bad = is_bad(asked, np.array([0.9, 0.8, 0.7, 0.7 - 1e-9, 0.0]))
    assert bad.tolist() == [False, False, False, True, True]


# --- what it reports ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_a_simulation_describes_itself(strategy: str) -> None:
    rules = strategy_named(strategy)
    found = sl.simulate(problem(m=1), MEANS, strategy, replications=4, seed=8)
    assert (found.strategy, found.rewards, found.seed) == (strategy, "gaussian", 8)
    assert found.problem == problem(m=1)
    assert found.guarantee == rules.guarantee(problem(m=1))
    assert found.pulls.shape == found.is_final.shape == found.is_error.shape == (4,)
    assert found.selected.shape == (4, rules.n_selected(problem(m=1)))
    worst = rules.worst_case_pulls(problem(m=1))
    assert worst is None or (found.pulls <= worst).all()


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_selecting_every_arm_takes_no_pulls(strategy: str) -> None:
    found = sl.simulate(problem(m=5), MEANS, strategy, replications=3)
    assert found.pulls.tolist() == [0, 0, 0]
    assert found.selected.tolist() == [list(range(5))] * 3
    assert (found.errors, found.unfinished) == (0, 0)


def test_progress_ends_with_all_replications() -> None:
    seen: list[tuple[int, int]] = []
    found = sl.simulate(
        problem(), MEANS, "lucb", replications=150, progress=lambda ended, pulls: seen.append((ended, pulls))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (150, found.pulls.sum())


def test_a_budget_that_only_some_lanes_of_an_elimination_can_keep() -> None:
    """Survivors, and so pulls, differ from lane to lane; each lane is held to the budget on its own."""
    varied = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=np.linspace(1.0, 1.9, 30))
    free = sl.simulate(varied, np.zeros(30), "medelim", replications=50)
    budget = int(np.median(free.pulls))
    held = sl.simulate(varied, np.zeros(30), "medelim", replications=50, budget=budget)
    assert 0 < held.unfinished < 50
    assert held.is_final.tolist() == (free.pulls <= budget).tolist()
    assert held.pulls.max() <= budget
    assert (held.selected[held.is_final] == free.selected[held.is_final]).all()


def simulation(n_errors: int, n_right: int, n_unfinished: int = 0) -> Simulation:
    n = n_errors + n_right + n_unfinished
    return Simulation(
        problem=problem(),
        strategy="wnelim",
        rewards="gaussian",
        seed=0,
        guarantee=None,
        pulls=np.zeros(n, dtype=np.int64),
        selected=np.zeros((n, 2), dtype=np.int64),
        is_final=np.arange(n) < n_errors + n_right,
        is_error=np.arange(n) < n_errors,
    )


@pytest.mark.parametrize("n", [1, 2, 10, 100, 5000])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_error_rate_limit_is_the_exact_binomial_one(n: int, confidence: float) -> None:
    for errors in {0, 1, n // 10, n // 2, n - 1, n}:
        exact = binomtest(errors, n, alternative="less").proportion_ci(confidence, method="exact").high
        found = simulation(errors, n - errors, n_unfinished=3).error_rate_limit(confidence)
        assert found == pytest.approx(exact, rel=1e-9)


def test_the_error_rate_limit_without_errors_is_the_rule_of_three() -> None:
    assert simulation(0, 1000).error_rate_limit() == pytest.approx(1 - 0.05 ** (1 / 1000), rel=1e-12)
    assert simulation(0, 1000).error_rate_limit() == pytest.approx(3 / 1000, rel=0.01)


def test_nothing_is_known_if_nothing_ended() -> None:
    assert simulation(0, 0, n_unfinished=5).error_rate_limit() == 1.0


# --- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["lucb", "ugape"])
def test_a_budget_leaves_the_longest_runs_unfinished(strategy: str) -> None:
    free = sl.simulate(problem(), MEANS, strategy, replications=200, seed=2)
    budget = int(np.median(free.pulls))
    held = sl.simulate(problem(), MEANS, strategy, replications=200, seed=2, budget=budget)
    assert held.pulls.max() <= budget
    assert held.is_final.tolist() == (free.pulls <= budget).tolist()
    assert held.unfinished == int((free.pulls > budget).sum()) > 0
    assert held.pulls[held.is_final].tolist() == free.pulls[held.is_final].tolist()
    assert held.selected[held.is_final].tolist() == free.selected[held.is_final].tolist()
    assert (held.selected[~held.is_final] == -1).all()
    assert not held.is_error[~held.is_final].any()


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_a_budget_too_small_for_anything(strategy: str) -> None:
    found = sl.simulate(problem(m=1), MEANS, strategy, replications=5, budget=4)
    assert (found.unfinished, found.errors) == (5, 0)
    assert found.pulls.tolist() == [0] * 5
    assert found.error_rate_limit() == 1.0


@pytest.mark.parametrize("strategy", CAPPED)
def test_the_worst_case_is_always_budget_enough(strategy: str) -> None:
    worst = strategy_named(strategy).worst_case_pulls(problem(m=1))
    assert sl.simulate(problem(m=1), MEANS, strategy, replications=5, budget=worst).unfinished == 0


# --- the default strategy -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "m", "spread"),
    [(2, 1, 1.0), (5, 2, 10.0), (40, 1, 1.0), (40, 12, 100.0), (3, 3, 2.0), (2000, 1, 50.0)],
)
def test_auto_is_what_should_need_least_and_promises_no_more_than_the_paper(
    n: int, m: int, spread: float
) -> None:
    asked = sl.instances.random(n, m, spread=spread, epsilon=1.0).problem
    caps: dict[str, int] = {}
    for name in sl.strategies.names():
        rules = strategy_named(name)
        promise, worst = rules.guarantee(asked), rules.worst_case_pulls(asked)
        if promise is not None and promise.scope is sl.certificates.Scope.TOP_M and worst is not None:
            caps[name] = worst
    chosen = sl.simulate(asked, np.zeros(n), replications=1).strategy
    assert chosen == best_strategy(asked) == sl.Session(asked).strategy
    paper = min(caps["wnelim"], caps["vmedelim"])
    usual = {name: strategy_named(name).usual_share * cap for name, cap in caps.items() if cap <= paper}
    assert usual[chosen] == min(usual.values())


def test_auto_never_picks_a_screen_or_something_unproved() -> None:
    promise = strategy_named(best_strategy(problem())).guarantee(problem())
    assert promise is not None
    assert promise.scope is sl.certificates.Scope.TOP_M


# --- nonsense -------------------------------------------------------------------------------------


@pytest.mark.parametrize("replications", [0, -1, 2.5, 10.0, "10", True, None])
def test_replications_must_be_a_whole_number(replications: Any) -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        sl.simulate(problem(), MEANS, replications=replications)
    assert f"`replications` is {replications!r}" in str(caught.value)
    assert "1 or more" in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, None])
def test_the_seed_must_be_a_whole_number(seed: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="seed"):
        sl.simulate(problem(), MEANS, replications=1, seed=seed)


def test_an_unknown_strategy_is_refused_with_those_that_exist() -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        sl.simulate(problem(), MEANS, "thompson")
    assert "'thompson'" in str(caught.value)
    assert all(name in str(caught.value) for name in sl.strategies.names())


def test_unknown_rewards_are_refused_with_those_that_exist() -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        sl.simulate(problem(), MEANS, rewards="cauchy")
    assert "'cauchy'" in str(caught.value)
    assert all(name in str(caught.value) for name in REWARDS)


@pytest.mark.parametrize("means", [[0.0], [0.0] * 6, [math.nan] * 5, "means"])
def test_means_that_do_not_fit_are_refused(means: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`means`"):
        sl.simulate(problem(), means)
