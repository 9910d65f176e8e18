"""The usual cost of strategies: an estimate from simulated runs, on an instance that is named."""

import json
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist import usual_cost
from shortlist.instances import slippage
from shortlist.report.result_text import usual_words

pytestmark = pytest.mark.slow

KNOWN = sl.Problem(2, 0.3, 0.05, [1.0, 0.25, 2.0, 1.0, 0.5])
COINS = sl.Problem(1, 0.2, 0.05, n=5, rewards=sl.Bernoulli())


@pytest.fixture(autouse=True)
def usual_once() -> None:
    """Simulate every time."""


def test_the_usual_pulls_are_quantiles_of_simulated_runs() -> None:
    found = sl.plan(KNOWN).usual
    runs = sl.simulate(KNOWN, slippage(KNOWN).means, "race", replications=found.replications).pulls
    low, median, high = (sorted(runs)[place] for place in (1, 5, 10))
    assert (found.replications, len(runs)) == (12, 12)
    rounds = found.pulls["race"].rounds
    assert found.pulls["race"] == sl.planning.UsualPulls(int(low), int(median), int(high), rounds)
    assert (
        found.instance
        == "the 2 best arms lie just over epsilon ahead of the other arms, which are all equal "
        "(nearly tied arms take more pulls); Gaussian rewards"
    )


@pytest.mark.parametrize("problem", [KNOWN, COINS, COINS.changed(goal="minimise", m=3)])
def test_every_certified_strategy_has_usual_pulls_within_its_worst_case(problem: sl.Problem) -> None:
    planned = sl.plan(problem)
    certified = {row.strategy: row.worst_case_pulls or 0 for row in planned.rows if row.is_certified}
    assert planned.usual.pulls.keys() == certified.keys()
    assert planned.usual is planned.usual
    for name, usual in planned.usual.pulls.items():
        assert 0 < usual.low <= usual.median <= usual.high <= certified[name]
        if planned[name].rounds == 1:
            assert usual.low == usual.high == certified[name]


def test_nothing_to_measure_costs_nothing() -> None:
    found = sl.plan(COINS.changed(m=5)).usual
    assert {(one.low, one.high) for one in found.pulls.values()} == {(0, 0)}


@pytest.mark.parametrize(
    ("rewards", "goal", "epsilon", "rate", "best", "others"),
    [
        (sl.Bernoulli(), "maximise", 0.2, None, 0.6, 0.4),
        (sl.Bernoulli(), "minimise", 0.2, None, 0.4, 0.6),
        (sl.Bernoulli(), "maximise", 0.02, 0.05, 0.06, 0.04),
        (sl.Bernoulli(), "maximise", 0.2, 0.0, 0.2, 0.0),
        (sl.Bernoulli(), "minimise", 0.2, 1.0, 0.8, 1.0),
        (sl.Bernoulli(), "maximise", 3.0, None, 1.0, 0.0),
        (sl.Bounded(-1, 3), "maximise", 0.5, None, 1.25, 0.75),
        (sl.Bounded(-1, 3), "minimise", 0.5, 0.0, -0.25, 0.25),
    ],
)
def test_the_reference_lies_within_the_bounds_and_just_over_epsilon_apart(
    rewards: sl.Bounded, goal: str, epsilon: float, rate: float | None, best: float, others: float
) -> None:
    problem = sl.Problem(1, epsilon, 0.05, n=3, rewards=rewards, goal=goal)
    means, _ = usual_cost._reference(problem, rate, None)
    assert means == pytest.approx([best, others, others], abs=1e-3 * epsilon)
    assert ((means >= rewards.low) & (means <= rewards.high)).all()
    apart = abs(means[0] - means[1])
    assert apart > epsilon or apart == rewards.high - rewards.low


def test_rare_successes_usually_take_fewer_pulls() -> None:
    planned = sl.plan(sl.Problem(1, 0.02, 0.05, n=4, rewards=sl.Bernoulli()))
    rare = planned.usual_at(0.05)
    assert rare.instance.endswith("rewards of 0 or 1, around 0.05")
    assert rare.pulls["race"].median < planned.usual.pulls["race"].median / 2


def test_for_unknown_variances_a_standard_deviation_is_assumed() -> None:
    planned = sl.plan(sl.Problem(1, 0.5, 0.05, n=4, rewards=sl.Gaussian()))
    assert planned.usual.instance.endswith("Gaussian rewards, standard deviation 1")
    assert "t-race" in planned.usual.pulls
    assert "wnelim" not in planned.usual.pulls, "it would need a pilot"
    assert (planned.usual.scale, planned.usual.assumed) == (1.0, ("scale",))
    assert planned.usual.condition == "if the standard deviation is 1 (2 epsilon)"
    own = planned.usual_at(scale=3.0)
    assert (own.condition, own.assumed) == ("if the standard deviation is 3", ())
    assert planned.usual_at(scale=4.0).pulls["t-race"].low > planned.usual.pulls["t-race"].high


@pytest.mark.parametrize(
    ("problem", "given", "said"),
    [
        (KNOWN, {"rate": 0.5}, "`rate` is for rewards of 0 or 1"),
        (KNOWN, {"scale": 1.0}, "`scale` is only for unknown variances"),
        (COINS, {"rate": 1.5}, "must lie between 0 and 1"),
        (COINS, {"rate": "a"}, "must be a real number"),
        (COINS.changed(rewards=sl.Gaussian(), bounds=None), {"scale": -1.0}, "must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(problem: sl.Problem, given: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=said):
        sl.plan(problem).usual_at(**given)


def test_many_arms_are_not_simulated_and_that_is_said() -> None:
    found = sl.plan(sl.Problem(1, 0.3, 0.05, np.ones(1001))).usual
    assert (found.replications, found.skipped) == (0, "more than 1,000 arms would take too long to simulate")
    assert found.pulls.keys() == {"single-stage", "uniform", "wnelim"}
    coins = sl.plan(sl.Problem(1, 0.3, 0.05, n=501, rewards=sl.Bernoulli())).usual
    assert coins.skipped == "more than 500 arms would take too long to simulate"


def test_a_strategy_that_takes_long_to_simulate_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usual_cost, "_MOST_EFFORT", 50 * 12 * 30)
    found = sl.plan(KNOWN).usual
    assert "short-race" in found.pulls
    assert "lucb-mixture" not in found.pulls
    assert "lucb-mixture" in found.left_out
    assert found.left_out == tuple(found.to_dict()["left_out"])
    assert not found.skipped
    assert f"Not simulated, as it would take too long: {', '.join(found.left_out)}." in usual_words(found)


def test_estimates_are_plain_data() -> None:
    found = sl.plan(COINS).usual
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (data["is_estimate"], data["skipped"], data["replications"]) == (True, None, 12)
    assert data["pulls"]["race"] == vars(found.pulls["race"])


def test_the_usual_rounds_are_those_of_the_longest_run() -> None:
    plan = sl.plan(KNOWN)
    for row in plan.rows:
        if row.strategy in plan.usual.pulls and row.rounds is not None:
            assert 0 < (plan.usual.pulls[row.strategy].rounds or 0) <= row.rounds
    for name in ("single-stage", "medelim-max"):  # always the same
        assert plan.usual.pulls[name].rounds == plan[name].rounds
    means = slippage(KNOWN).means
    for seed in range(5):
        run = sl.select(sl.simulated_measure(KNOWN, means), KNOWN, "short-race", seed=seed)
        assert abs(run.n_rounds - (plan.usual.pulls["short-race"].rounds or 0)) <= 4
    unknown = sl.Problem(2, 0.3, 0.05, n=5, rewards=sl.Gaussian())
    assert sl.plan(unknown).usual.pulls["dudewicz-dalal"].rounds == 2  # the pilot, and a batch
    blocks = sl.Problem(1, 0.5, 0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks())
    assert sl.plan(blocks).usual.pulls["paired-race"].rounds is None


@pytest.mark.parametrize("rewards", [sl.Gaussian(), sl.Bernoulli()])
def test_arms_that_share_conditions_usually_take_fewer_pulls(rewards: sl.Gaussian | sl.Bernoulli) -> None:
    blocks = sl.Problem(1, 0.3, 0.05, n=3, rewards=rewards, items=sl.Blocks())
    plan, name = sl.plan(blocks), sl.plan(blocks).best.strategy
    alone, shared = plan.usual_at(), plan.usual_at(correlation=0.8)
    assert alone.instance.endswith("; arms independent of each other")
    assert shared.instance.endswith("; a correlation of 0.8 within blocks")
    assert alone.condition.endswith("arms are independent")
    assert shared.condition.endswith("arms have a correlation of 0.8")
    kind = "rate" if plan.problem.is_bounded else "scale"
    assert (alone.assumed, shared.assumed) == ((kind, "correlation"), (kind,))
    assert plan.usual_at(correlation=0).pulls == alone.pulls
    if isinstance(rewards, sl.Gaussian):  # differences vary a fifth as much
        assert shared.pulls[name].median < 0.5 * alone.pulls[name].median
    else:
        assert shared.pulls[name].median < alone.pulls[name].median
    with pytest.raises(sl.InvalidProblem, match="must lie between 0 and 1"):
        plan.usual_at(correlation=1.1)
    with pytest.raises(sl.InvalidProblem, match="is only for blocks"):
        sl.plan(KNOWN).usual_at(correlation=0.5)


def test_choices_trade_pulls_for_rounds() -> None:
    usual = sl.planning.UsualPulls
    pulls = {
        "one": usual(9, 9, 9, 1),
        "many": usual(1, 2, 3, 40),
        "worse": usual(4, 5, 6, 41),
        "few": usual(3, 4, 5, 4),
        "same": usual(3, 4, 5, 5),
        "unknown": usual(1, 1, 1),
    }
    found = sl.planning.UsualCost("", 1, pulls)
    assert list(found.choices) == ["many", "few", "one"]
    assert [found.in_rounds(most) for most in (0, 1, 3, 4, 39, 40)] == [
        None,
        "one",
        "one",
        "few",
        "few",
        "many",
    ]


def test_less_effort_means_fewer_runs_and_stops_sooner() -> None:
    row = sl.plan(KNOWN).best
    whole, part = (usual_cost.usual_cost(KNOWN, [row], effort=effort).replications for effort in (1.0, 0.25))
    assert (whole, part) == (12, 3)
    assert usual_cost.usual_cost(KNOWN, [row], effort=1e-4).left_out == (row.strategy,)
    pool = sl.Problem(1, 0.05, 0.05, n=60, rewards=sl.Bernoulli(), items=1000)
    row = sl.plan(pool).best
    assert usual_cost.usual_cost(pool, [row], effort=0.05).skipped.startswith("more than 50,000 scores")
    assert usual_cost.usual_cost(pool, [row], effort=0.25).pulls


@pytest.mark.parametrize("items", [None, sl.Blocks()])
def test_runs_that_draw_every_reward_end_when_they_take_too_long(items: sl.Blocks | None) -> None:
    hard = sl.Problem(1, 1e-4, 0.05, n=4, rewards=sl.Gaussian(), items=items)
    found = usual_cost.usual_cost(hard, [sl.planning.row_of("paired-race", hard)], scale=1.0, effort=0.05)
    assert found.left_out == ("paired-race",)
