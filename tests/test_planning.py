"""Plans: every strategy's promise beside the lower bound, and the reverse question."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.strategies import strategy_named
from tests.questions import bound_of, known

pytestmark = pytest.mark.slow


def problem(m: int = 3, n: int = 12, **changes: Any) -> sl.Problem:
    asked: dict[str, Any] = {"epsilon": 0.3, "delta": 0.05, "variances": np.linspace(0.5, 4.0, n)}
    return sl.Problem(m=m, **(asked | changes))


# --- the plan ---------------------------------------------------------------------------------------


def test_a_plan_has_one_row_per_strategy_with_its_own_figures() -> None:
    planned = sl.plan(problem())
    assert sorted(row.strategy for row in planned.rows) == sorted(sl.strategies.names())
    for row in planned.rows:
        rules = strategy_named(row.strategy)
        assert planned[row.strategy] is row
        if reason := rules.unfit(problem()):
            assert (row.worst_case_pulls, row.rounds, row.guarantee, row.note) == (None, None, None, reason)
            continue
        assert row.worst_case_pulls == rules.worst_case_pulls(problem())
        assert row.rounds == rules.n_rounds(problem())
        promise = rules.guarantee(problem())
        assert (row.certificate, row.ledger) == (
            (None, None) if promise is None else (promise.source, promise.ledger)
        )


def usual_pulls(asked: sl.Problem, name: str) -> float:
    return strategy_named(name).usual_share * (strategy_named(name).worst_case_pulls(asked) or 0)


def test_the_best_should_need_least_among_those_that_promise_the_m_best() -> None:
    planned = sl.plan(problem())
    promised = {
        name: pulls
        for name in sl.strategies.names()
        if not strategy_named(name).unfit(problem())
        and (promise := strategy_named(name).guarantee(problem())) is not None
        and promise.scope is sl.certificates.Scope.TOP_M
        and (pulls := strategy_named(name).worst_case_pulls(problem())) is not None
    }
    assert {row.strategy for row in planned.rows if row.is_certified} == promised.keys()
    assert planned.best.strategy == min(promised, key=lambda name: usual_pulls(problem(), name)) == "race"
    assert planned.best is planned.rows[0]
    assert [row.worst_case_pulls for row in planned.rows[1 : len(promised)]] == sorted(
        pulls for name, pulls in promised.items() if name != "race"
    )
    assert planned.best.worst_case_pulls is not None
    assert planned.lower_bound == bound_of(problem())
    assert planned.gap == planned.best.worst_case_pulls / bound_of(problem())
    assert planned.gap == planned.gap_of(planned.best)
    assert sl.Session(problem()).strategy == planned.best.strategy


@given(
    variances=st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=40),
    data=st.data(),
    delta=st.floats(1e-9, 0.9),
    noise=st.sampled_from(["sub-gaussian", "gaussian"]),
)
@settings(max_examples=40)
def test_what_is_promised_never_exceeds_what_the_paper_promises(
    variances: list[float], data: st.DataObject, delta: float, noise: str
) -> None:
    m = data.draw(st.integers(1, len(variances) - 1))
    planned = sl.plan(known(m=m, epsilon=0.05, delta=delta, variances=variances, noise=noise))
    most = min(planned[name].worst_case_pulls or 10**18 for name in ("wnelim", "vmedelim"))
    assert planned.best.worst_case_pulls is not None
    assert planned.best.worst_case_pulls <= most
    assert planned.best.is_certified


def test_where_a_race_would_promise_too_much_one_batch_is_taken() -> None:
    few_noisy = sl.instances.illustrative(4).problem
    planned = sl.plan(few_noisy)
    assert (planned["race"].worst_case_pulls or 0) > (planned["wnelim"].worst_case_pulls or 0)
    assert planned.best.strategy == "single-stage"
    assert planned.why.startswith("single-stage has the smallest certified worst case")


def test_what_is_not_recommended_says_why() -> None:
    planned = sl.plan(problem())
    assert planned["lucb"].note == "no maximum number of pulls"
    assert planned["medelim"].note == "only screens: keeps 6 arms"
    assert planned["adapted-medelim-published"].note == "has no guarantee"
    assert all(
        planned.gap_of(planned[name]) is None for name in ("lucb", "medelim", "adapted-medelim-published")
    )
    assert all(row.note == "" for row in planned.rows if row.is_certified)


def test_strategies_beyond_counting_are_listed_without_a_figure() -> None:
    planned = sl.plan(sl.Problem(m=5, epsilon=1e-6, delta=0.05, variances=[1.0] * 50))
    assert planned.best.strategy == "race"
    assert planned["vmedelim"].worst_case_pulls is None
    assert planned["vmedelim"].note == "number of pulls too large to compute"


def test_a_race_beyond_counting_leaves_the_plan_to_others() -> None:
    asked = known(m=3, epsilon=1.04e-7, delta=0.05, variances=[0.25] * 12, noise="gaussian")
    planned = sl.plan(asked)
    assert planned.best.strategy == "gaussian-single-stage"
    assert planned["race"].note == "number of pulls too large to compute"
    assert sl.Session(asked).strategy == "gaussian-single-stage"


def test_one_batch_of_gaussian_rewards_is_taken_where_a_race_would_usually_take_far_more() -> None:
    best = {
        n: sl.plan(known(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * n, noise="gaussian")).best.strategy
        for n in (2, 10, 100)
    }
    assert best == {2: "gaussian-single-stage", 10: "race", 100: "race"}
    usual = sl.plan(sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0, 1.0]))
    assert usual.best.strategy == "level-race"
    assert usual["gaussian-single-stage"].note == "only for Gaussian rewards"


@pytest.mark.parametrize("vary", ["epsilon", "delta", "m"])
def test_a_budget_certifies_more_if_rewards_are_gaussian(vary: str) -> None:
    usual, asked = (
        known(m=3, epsilon=0.5, delta=0.05, variances=np.linspace(0.5, 2.0, 12), noise=noise)
        for noise in ("sub-gaussian", "gaussian")
    )
    found = sl.plan(asked, 900, vary=vary)
    assert found.best.strategy == "gaussian-single-stage"
    assert (found.best.worst_case_pulls or 0) <= 900
    if vary == "epsilon":
        assert found.problem.epsilon < 0.75 * sl.plan(usual, 900).problem.epsilon
    else:
        with pytest.raises(sl.errors.NoGuarantee):
            sl.plan(usual, 900, vary=vary)


@given(
    variances=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30),
    data=st.data(),
    delta=st.floats(1e-6, 0.9),
)
@settings(max_examples=40)
def test_one_batch_of_gaussian_rewards_promises_no_less_than_the_lower_bound(
    variances: list[float], data: st.DataObject, delta: float
) -> None:
    m = data.draw(st.integers(1, len(variances) - 1))
    planned = sl.plan(known(m=m, epsilon=0.5, delta=delta, variances=variances, noise="gaussian"))
    row = planned["gaussian-single-stage"]
    assert row.is_certified
    assert (planned.gap_of(row) or 0) >= 1
    assert (row.worst_case_pulls or 0) <= (planned["single-stage"].worst_case_pulls or 0)


def test_within_a_budget_auto_takes_what_the_budget_certifies() -> None:
    found = sl.plan(sl.Problem(m=3, epsilon=0.1, delta=0.05, variances=[0.25] * 10), 2000)
    assert found.best.strategy == "single-stage"
    assert (found["race"].worst_case_pulls or 0) > 2000
    result = sl.select(lambda _arm, count, _rng: [0.5] * count, found.problem, budget=2000)
    assert result.strategy == "single-stage"
    assert result.is_answer
    assert sl.Session(found.problem).strategy == "race"


def test_a_problem_that_no_strategy_can_answer_is_refused() -> None:
    with pytest.raises(sl.InvalidProblem, match=r"2\*\*53"):
        sl.plan(sl.Problem(m=1, epsilon=3e-7, delta=1e-40, variances=[1.0] * 50))
    with pytest.raises(sl.InvalidProblem, match=r"shortlist\.Problem"):
        sl.plan("p")  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        sl.plan(problem())["best"]


def test_selecting_all_arms_costs_nothing() -> None:
    planned = sl.plan(problem(m=12))
    assert planned.best.worst_case_pulls == planned.best.rounds == 0
    assert (planned.lower_bound, planned.gap) == (0.0, 1.0)
    assert "no measurement is needed" in planned.why


def test_the_words_give_the_figures() -> None:
    planned = sl.plan(problem())
    question, answer, usual, why = str(planned).split("\n")
    assert question == planned.problem.words
    assert answer.startswith("race: usually about ")
    assert usual.startswith("The usual number of pulls is an estimate")
    assert why == planned.why
    assert planned.why.startswith("race adapts")
    coins = str(sl.plan(sl.Problem(1, 0.1, 0.05, n=3, rewards=sl.Bernoulli()))).split("\n")[1]
    assert ") for means near 0.5, at most" in coins
    assert coins.endswith("For other means, such as 0.04: plan.usual_at(rate=0.04).")
    unknown = sl.Problem(1, 0.2, 0.05, n=3, rewards=sl.Gaussian())
    noisy = str(sl.plan(unknown)).split("\n")[1]
    assert ") if the standard deviation is 0.4 (2 epsilon), no limit known in advance." in noisy
    assert noisy.endswith("Set other values with plan.usual_at(scale=...).")
    blocks = str(sl.plan(unknown.changed(items=sl.Blocks()))).split("\n")[1]
    assert ") if the standard deviation is 0.4 (2 epsilon) and arms are independent, no limit" in blocks
    assert blocks.endswith("Set other values with plan.usual_at(scale=..., correlation=...).")
    high = str(sl.plan(sl.Problem(1, 0.1, 0.05, n=3, rewards=sl.Bounded(2, 3)))).split("\n")[1]
    assert ") for means near 2.5, at most" in high
    assert "0.04" not in high
    assert f"{planned.best.worst_case_pulls:,} pulls" in planned.why
    assert f"at least {bound_of(problem()).words} pulls on average" in planned.why


def test_where_only_bounds_are_known_the_words_say_what_the_race_saves() -> None:
    coins = sl.Problem(m=1, epsilon=0.05, delta=0.05, n=4, rewards=sl.Bernoulli())
    planned = sl.plan(coins)
    assert planned.why.endswith(
        f"usually far fewer, above all for means near 0 or 1. {planned.rows[1].strategy} would take at most "
        f"{planned.rows[1].worst_case_pulls:,} pulls, but assumes the largest variance."
    )
    within = sl.plan(coins, planned.rows[1].worst_case_pulls)
    assert within.best.strategy != "race" or "near 0 or 1" in within.why
    assert "near 0 or 1" not in sl.plan(coins.changed(rewards=sl.SubGaussian, bounds=None)).why


def test_a_plan_is_plain_data() -> None:
    planned = sl.plan(problem())
    data = json.loads(json.dumps(planned.to_dict(), allow_nan=False))
    assert data["best"] == planned.best.strategy
    assert data["lower_bound"]["pulls"] == bound_of(problem()).pulls
    assert data["lower_bound"]["candidates"] == bound_of(problem()).candidates
    assert data["lower_bound"]["terms"].keys() == {"v1", "v2", "v3"}
    assert [row["strategy"] for row in data["strategies"]] == [row.strategy for row in planned.rows]
    first = data["strategies"][0]
    assert first["gap"] == planned.gap
    assert sum(share["delta"] for share in first["guarantee"]["ledger"]) <= 0.05 * (1 + 1e-12)
    json.dumps(sl.plan(problem(delta=0.95, m=11)).to_dict(), allow_nan=False)


@given(
    variances=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30),
    data=st.data(),
    delta=st.floats(1e-6, 0.6),
)
@settings(max_examples=40)
def test_no_promise_is_below_the_lower_bound(
    variances: list[float], data: st.DataObject, delta: float
) -> None:
    m = data.draw(st.integers(1, len(variances) - 1))
    planned = sl.plan(sl.Problem(m=m, epsilon=0.5, delta=delta, variances=variances))
    gaps = [planned.gap_of(row) for row in planned.rows if row.is_certified]
    assert all(gap is not None and gap >= 1 for gap in gaps)
    assert planned.gap == gaps[0]


def test_a_result_knows_how_far_from_optimal_it_was() -> None:
    asked = problem()
    result = sl.select(sl.simulated_measure(asked, np.arange(12.0)), asked, "wnelim")
    bound = bound_of(asked)
    assert result.lower_bound == bound
    assert result.gap == result.n_pulls / bound.pulls
    assert result.to_dict()["lower_bound"] == bound.pulls
    assert result.to_dict()["gap"] == result.gap
    assert f"at least {bound.words} pulls on average" in str(result)


def test_a_result_without_the_promise_does_not_compare_itself() -> None:
    asked = problem()
    measure = sl.simulated_measure(asked, np.arange(12.0))
    assert "No algorithm" not in str(sl.select(measure, asked, "medelim"))
    assert "No algorithm" not in str(sl.select(measure, asked, budget=5))
    everything = problem(m=12)
    result = sl.select(measure, everything)
    assert (result.gap, result.optimality) == (1.0, "")


# --- the reverse question -----------------------------------------------------------------------------

BUDGETS = [12, 13, 40, 1_000, 54_321, 10**9]


def just_below(value: float) -> float:
    """The next smaller number of six digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 5)
    return value - unit * (1 if round(value / unit) > 10**5 else 0.1)


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_smallest_epsilon_is_certified_and_no_smaller_one_is(budget: int) -> None:
    found = sl.plan(problem(), budget)
    assert (found.problem.m, found.problem.delta) == (3, 0.05)
    assert (found.best.worst_case_pulls or 0) <= budget
    smaller = problem(epsilon=just_below(found.problem.epsilon))
    assert (sl.plan(smaller).best.worst_case_pulls or 0) > budget


@pytest.mark.parametrize("budget", [9_000, 20_000, 100_000])
def test_the_smallest_delta_is_certified_and_no_smaller_one_is(budget: int) -> None:
    found = sl.plan(problem(), budget, vary="delta")
    assert (found.problem.m, found.problem.epsilon) == (3, 0.3)
    assert (found.best.worst_case_pulls or 0) <= budget
    smaller = problem(delta=just_below(found.problem.delta))
    assert (sl.plan(smaller).best.worst_case_pulls or 0) > budget


def test_a_delta_above_one_half_may_be_asked_for() -> None:
    asked = sl.Problem(m=1, epsilon=0.1, delta=0.9, variances=[1.0, 2.0])
    budget = (sl.plan(asked).best.worst_case_pulls or 0) + 1
    assert 0.5 < sl.plan(asked, budget, vary="delta").problem.delta <= 0.9


def test_small_bounds_are_not_rounded_to_whole_pulls() -> None:
    asked = sl.Problem(m=1, epsilon=10.0, delta=0.05, variances=[1.0, 1.0])
    result = sl.select(sl.simulated_measure(asked, [0.0, 1.0]), asked)
    assert result.optimality == (
        "Lower bound: any algorithm with this guarantee needs at least 1.8 pulls on average on its "
        "worst-case instance. This run took 1.11 times the lower bound."
    )


def test_a_huge_budget_reaches_the_smallest_delta_there_is() -> None:
    assert sl.plan(problem(), 10**12, vary="delta").problem.delta == 1e-50


def test_the_largest_m_is_found_by_trying() -> None:
    asked = problem(variances=[1.0] * 12)
    plans = {m: sl.plan(problem(m=m, variances=[1.0] * 12)) for m in range(1, 12)}
    costs = {
        m: min(row.worst_case_pulls or 0 for row in planned.rows if row.is_certified)
        for m, planned in plans.items()
    }
    for budget in sorted(costs.values()):
        largest = max(m for m, cost in costs.items() if cost <= budget)
        found = sl.plan(asked, budget, vary="m")
        assert found.problem.m == largest
        assert (found.best.worst_case_pulls or 0) <= budget
    with pytest.raises(sl.errors.NoGuarantee, match="for any m"):
        sl.plan(asked, min(costs.values()) - 1, vary="m")


@pytest.mark.parametrize("largest", [1, 2, 37, 511, 700, 1023])
def test_the_largest_m_is_found_between_those_tried(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.planning.is_within", lambda asked, _: asked.m <= largest)
    asked = problem(n=1024, m=1)
    assert sl.plan(asked, 10**7, vary="m").problem.m == largest


def test_names_and_variances_are_kept() -> None:
    asked = problem(n=3, m=1, names=["a", "b", "c"])
    found = sl.plan(asked, 500).problem
    assert isinstance(found, sl.Problem)
    assert found.names == ("a", "b", "c")
    assert found.variances.tolist() == asked.variances.tolist()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"budget": 11}, sl.errors.NoGuarantee, "each of the 12 arms"),
        ({"budget": 100, "vary": "delta"}, sl.errors.NoGuarantee, "up to 0.5"),
        ({"budget": -1}, sl.InvalidProblem, "budget"),
        ({"budget": 1.5}, sl.InvalidProblem, "budget"),
        ({"budget": True}, sl.InvalidProblem, "budget"),
        ({"budget": 100, "vary": "n"}, sl.InvalidProblem, "epsilon, delta, m"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sl.plan(problem(), **arguments)


def test_all_arms_leave_nothing_to_vary() -> None:
    with pytest.raises(sl.InvalidProblem, match="no pulls"):
        sl.plan(problem(m=12), 100)
    with pytest.raises(sl.InvalidProblem, match=r"shortlist\.Problem"):
        sl.plan("p", 100)  # type: ignore[arg-type]


def test_a_strategy_that_is_misspelt_is_named() -> None:
    with pytest.raises(sl.InvalidProblem, match="there is no strategy 'WNElim'; did you mean 'wnelim'"):
        sl.simulate(problem(), np.zeros(12), "WNElim")


@pytest.mark.parametrize(("costs", "whole"), [(None, "400 scores"), ([1.0, 2.0, 3.0, 4.0], "1,000")])
def test_a_budget_below_the_whole_table_is_compared_with_its_cost(
    costs: list[float] | None, whole: str
) -> None:
    asked = sl.Problem(m=1, epsilon=0.05, delta=0.05, n=4, rewards=sl.Bounded(0, 1), items=100, costs=costs)
    with pytest.raises(sl.errors.NoGuarantee, match=rf"budget below {whole} \(the whole table\)"):
        sl.plan(asked, 100)
