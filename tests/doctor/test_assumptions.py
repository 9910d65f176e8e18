"""What the check-up says of drift, skewness and dependent arms: each is found, and false alarms are rare."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist as sl
from shortlist import cli
from shortlist.arrays import FloatArray
from shortlist.doctor import Finding, examine
from shortlist.doctor.assumptions import dependence, drift, skewness
from shortlist.doctor.findings import freshness
from shortlist.doctor.trials import ArmTrials, Trial, tried
from shortlist.measure import Call, FunctionSource, Source, Summary, TableSource, summary_of
from shortlist.measure.table import ORDERS
from shortlist.strategies import strategy_for
from tests.questions import unknown

pytestmark = pytest.mark.slow

KNOWN = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 5)
UNKNOWN = unknown(m=1, epsilon=0.5, delta=0.05, n=5)
NO_TABLE = FunctionSource(lambda *_: None)
Check = Callable[[FloatArray], list[Finding]]


def measured(table: FloatArray) -> list[ArmTrials]:
    """Trials of which these are the rewards: a column for each arm, in six calls."""
    found = []
    for arm, rewards in enumerate(table.T):
        parts = np.array_split(rewards, 6)
        trials = [Trial(Call(0, arm, len(p), 0), p, summary_of(p, len(p), ""), 0.0) for p in parts]
        found.append(ArmTrials(arm, tuple(trials)))
    return found


def in_order(table: FloatArray, problem: sl.Problem = KNOWN) -> list[Finding]:
    return drift(problem, NO_TABLE, measured(table))


def shape(table: FloatArray, problem: sl.Problem = UNKNOWN, strategy: str = "t-race") -> list[Finding]:
    promise = strategy_for(strategy, problem).guarantee(problem)
    return skewness(problem, NO_TABLE, measured(table), strategy, promise)


def together(table: FloatArray) -> list[Finding]:
    return dependence(KNOWN, NO_TABLE, measured(table), 0)


def gaussian(rng: np.random.Generator, rows: int = 30) -> FloatArray:
    return rng.normal(np.arange(5.0), np.arange(1.0, 6.0), (rows, 5))


def alike(rng: np.random.Generator, rows: int, rho: float) -> FloatArray:
    """Rewards of five arms of which every two have this correlation."""
    common = rng.normal(size=(rows, 1))
    rewards: FloatArray = rho**0.5 * common + (1 - rho) ** 0.5 * rng.normal(size=(rows, 5))
    return rewards


def severities(check: Check, make: Callable[[np.random.Generator], FloatArray], n: int) -> Counter[str]:
    return Counter(
        finding.severity for seed in range(n) for finding in check(make(np.random.default_rng(seed)))
    )


# --- false alarms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (in_order, gaussian),
        (in_order, lambda rng: rng.exponential(size=(30, 5))),
        (in_order, lambda rng: (rng.random((30, 5)) < 0.1) * 1.0),
        (shape, gaussian),
        (together, gaussian),
        (together, lambda rng: (rng.random((30, 5)) < 0.03) * 1.0),  # chi-square would often be wrong here
    ],
)
def test_false_alarms_are_as_rare_as_stated(
    check: Check, make: Callable[[np.random.Generator], FloatArray]
) -> None:
    """Of 400 sound measurements 4 raise an alarm on average, 11 or more in 3 cases of 1,000."""
    found = severities(check, make, 400)
    assert found["ok"] >= 350  # there is nothing to compare where all coins of four arms fall alike
    assert found["note"] + found["error"] <= 10
    assert found["error"] <= 3  # 0.4 are expected; 4 or more in 8 cases of 10,000


# --- drift ----------------------------------------------------------------------------------------


def slowing(rng: np.random.Generator, noise: float = 0.5, by: float = 0.1) -> FloatArray:
    """Times of about 10 that grow by a tenth from the first pull to the last."""
    pace = np.linspace(1.0, 1.0 + by, 30)[:, None] * (10 + np.arange(5.0))
    return pace + noise * rng.normal(size=(30, 5))


@pytest.mark.parametrize("by", [0.1, -0.1])
def test_a_machine_that_slows_down_by_a_tenth_is_found(by: float) -> None:
    assert severities(in_order, lambda rng: slowing(rng, by=by), 100)["error"] >= 98
    (found,) = in_order(slowing(np.random.default_rng(1), by=by))
    assert "Rewards of arm-0, arm-1, arm-2, arm-3 and arm-4 change with the order" in found.seen
    assert f"by about {'1.' if by > 0 else '-1.'}" in found.seen
    assert "(epsilon is 0.5)" in found.seen
    assert "interleaved" in found.advice


def test_the_drift_of_one_arm_alone_is_found_and_named() -> None:
    rewards = gaussian(np.random.default_rng(2))
    rewards[15:, 3] += 10.0  # a service that was updated
    (found,) = in_order(rewards)
    assert found.severity == "error"
    assert found.seen.startswith("Rewards of arm-3 change")


def test_drifts_in_opposite_directions_do_not_cancel() -> None:
    rewards = np.random.default_rng(2).normal(size=(30, 5))
    rewards[:, :2] += 4 * np.linspace([-1.0, 1.0], [1.0, -1.0], 30)
    (found,) = in_order(rewards)
    assert found.severity == "error"
    assert found.seen.startswith("Rewards of arm-0 and arm-1 change")
    assert re.search(r"by about -?[789]", found.seen)  # and not what is left of 8 and -8


def test_differences_between_arms_are_no_drift() -> None:
    assert in_order(gaussian(np.random.default_rng(3)) + 1e6 * np.arange(5))[0].severity == "ok"


def test_arms_are_tried_in_turn_so_that_each_spans_the_whole_time() -> None:
    calls: list[Call] = []

    class Recorded(FunctionSource):
        def answers(self, given: Sequence[Call]) -> Any:
            calls.extend(given)
            return super().answers(given)

    tried(Recorded(lambda _arm, count, rng: rng.normal(size=count)), KNOWN, [0, 2, 4], 12, 0)
    assert [call.arm for call in calls] == [0, 2, 4] * 8
    assert [call.first_pull for call in calls[::3]] == [0, 2, 4, 6, 8, 10, 0, 0]


def test_a_measurement_that_slows_down_makes_the_check_up_fail() -> None:
    clock = [0]

    def slow(arm: int, count: int, rng: np.random.Generator) -> Any:
        clock[0] += count
        return 10 + arm / 10 + clock[0] / 150 + 0.3 * rng.normal(size=count)

    found = examine(FunctionSource(slow), KNOWN)
    assert not found.is_healthy
    assert {one.subject for one in found.findings if one.severity == "error"} == {"drift"}
    assert "independent arms" not in {one.subject for one in found.findings}  # drift explains that


def test_means_of_calls_show_drift_too() -> None:
    def mean_only(arm: int, count: int, rng: np.random.Generator) -> Summary:
        clock[0] += count
        return Summary(count, clock[0] / 10 + float(rng.normal(size=count).mean()))

    clock = [0]
    subjects = {one.subject: one.severity for one in examine(FunctionSource(mean_only), KNOWN).findings}
    assert subjects["drift"] == "error"


# --- skewness -------------------------------------------------------------------------------------


def test_exponential_rewards_are_skewed() -> None:
    assert severities(shape, lambda rng: rng.exponential(size=(30, 5)), 100)["error"] >= 98
    (found,) = shape(np.random.default_rng(1).exponential(size=(30, 5)))
    assert "arm-3 and arm-4 have a skewness of about 2.1; that of Gaussian rewards is 0." in found.seen
    assert "The guarantee of t-race holds for Gaussian rewards only. Use logarithms" in found.advice


def test_logarithms_are_advised_only_where_there_are_any() -> None:
    (found,) = shape(np.random.default_rng(1).exponential(size=(30, 5)) - 0.1)
    assert "logarithms" not in found.advice
    assert "only. Use averages of many rewards" in found.advice
    (found,) = shape(10 - np.random.default_rng(1).exponential(size=(30, 5)))
    assert found.severity == "error"
    assert "logarithms" not in found.advice  # they would be more skewed to the left


def test_one_skewed_arm_is_named() -> None:
    rewards = gaussian(np.random.default_rng(2))
    rewards[:, 1] = np.random.default_rng(2).exponential(size=30) ** 2
    assert shape(rewards)[0].seen.startswith("Rewards of arm-1 have a skewness")


def test_a_little_skewness_does_no_harm_however_surely_it_is_seen() -> None:
    rewards = np.random.default_rng(2).gamma(100.0, size=(2000, 5))  # skewness 0.2
    assert shape(rewards)[0].severity == "ok"
    assert shape(np.random.default_rng(2).gamma(10.0, size=(2000, 5)))[0].severity == "error"  # 0.63


def test_skewness_is_reported_only_where_it_matters() -> None:
    rewards = np.random.default_rng(1).exponential(size=(30, 5))
    assert shape(rewards, KNOWN, "race") == []
    declared = KNOWN.changed(rewards=sl.Gaussian)
    (found,) = shape(rewards, declared, "race")
    assert found.severity == "note"
    assert "race does not need Gaussian rewards" in found.advice
    indifferent = declared.changed(guarantee="indifference")
    (found,) = shape(rewards, indifferent, "bechhofer")
    assert found.severity == "error"
    assert "bechhofer holds for Gaussian rewards only" in found.advice


def test_summaries_coins_and_huge_rewards_are_no_trouble() -> None:
    def summed(_arm: int, count: int, rng: np.random.Generator) -> Summary:
        rewards = rng.exponential(size=count)
        return Summary(count, rewards.mean(), rewards.var(ddof=1))

    assert "skewness" not in {one.subject for one in examine(FunctionSource(summed), UNKNOWN).findings}
    coins = np.random.default_rng(1).integers(2, size=(30, 5)).astype(np.float64)
    assert shape(coins) == []  # another finding says so
    huge: FloatArray = gaussian(np.random.default_rng(1)) * 1e300
    assert shape(huge)[0].severity == in_order(huge)[0].severity == together(huge)[0].severity == "ok"
    assert [check(np.ones((30, 5))) for check in (in_order, shape, together)] == [[], [], []]
    assert [check(gaussian(np.random.default_rng(1), 6)[:, :0]) for check in (in_order, shape)] == [[], []]


# --- dependent arms -------------------------------------------------------------------------------


def test_correlated_arms_are_found() -> None:
    assert severities(together, lambda rng: alike(rng, 100, 0.3), 20)["error"] == 20
    found = severities(together, lambda rng: alike(rng, 30, 0.3), 40)
    assert found["error"] + found["note"] >= 28  # about 35 are expected


def test_one_pair_is_enough_and_may_be_opposed() -> None:
    rewards = np.random.default_rng(5).normal(size=(60, 5))
    rewards[:, 3] = 1 - rewards[:, 1]
    (found,) = together(rewards)
    assert found.severity == "error"
    assert "rank correlation -1 for arm-1 and arm-3" in found.seen
    assert "over 10 pairs" in found.seen
    assert "{seed}" in found.advice


def test_a_counter_that_deals_out_the_same_items_to_all_arms_is_found() -> None:
    items = np.random.default_rng(1).normal(size=1000)
    places = Counter[int]()

    def counted(arm: int, count: int, rng: np.random.Generator) -> Any:
        start = places[arm]
        places[arm] += count
        return items[start : start + count] + arm + 0.5 * rng.normal(size=count)

    found = examine(FunctionSource(counted), KNOWN.changed(variances=[2.0] * 5))
    assert {one.subject for one in found.findings if one.severity == "error"} == {"independent arms"}


def recorded(order: str, rewards: FloatArray) -> dict[str, Finding]:
    table: Source = TableSource.of(KNOWN, list(rewards.T), order)
    return {one.subject: one for one in examine(table, KNOWN).findings}


@pytest.mark.parametrize("order", ORDERS)
def test_shared_rows_matter_unless_they_are_drawn_for_each_arm(order: str) -> None:
    found = recorded(order, alike(np.random.default_rng(1), 200, 0.3))["independent arms"]
    assert "rank correlation 0." in found.seen
    if order == "draw":
        assert found.severity == "ok"
        assert "Rows are drawn separately for each arm, so arms are independent although" in found.seen
    else:
        assert found.severity == "error"
        assert 'set `order = "draw"`' in found.advice
    found = recorded(order, np.random.default_rng(4).normal(size=(200, 5)))["independent arms"]
    assert found.severity == "ok"


@pytest.mark.parametrize("order", ORDERS)
def test_rows_that_drift_matter_only_where_they_are_taken_as_they_stand(order: str) -> None:
    rewards = np.random.default_rng(1).normal(size=(300, 5))
    rewards[150:] += 1.0  # beyond the 30 rows that are tried
    found = recorded(order, rewards)["drift"]
    assert found.severity == ("error" if order == "next" else "ok")
    if order == "next":
        assert "from the first row to the last" in found.seen
        assert 'set `order = "random"`' in found.advice


def test_arms_with_few_rows_are_compared_as_far_as_they_go() -> None:
    rewards = alike(np.random.default_rng(1), 3000, 0.9).T
    table = TableSource.of(KNOWN, [*rewards[:4], rewards[4][:50]], "next")
    (found,) = dependence(KNOWN, table, tried(table, KNOWN, range(5), 30, 0), 0)
    assert found.severity == "error"


# --- what is printed ------------------------------------------------------------------------------

SCORES = """
[problem]
m = 1
epsilon = 0.2
delta = 0.05
bounds = [-9, 9]
n = 5

[measure]
kind = "table"
file = "scores.npz"
"""


def test_the_command_fails_with_shared_rows_and_says_what_to_do(tmp_path: Path) -> None:
    rewards = alike(np.random.default_rng(1), 200, 0.5)
    columns: dict[str, Any] = {f"arm-{arm}": rewards[:, arm] for arm in range(5)}
    np.savez(tmp_path / "scores.npz", **columns)
    (tmp_path / "q.toml").write_text(SCORES)
    run = CliRunner()
    done = run.invoke(cli.shortlist, ["doctor", str(tmp_path / "q.toml")], env={"COLUMNS": "80"})
    assert done.exit_code == 4
    assert "Rows with the same number have correlated rewards" in " ".join(done.output.split())
    (tmp_path / "q.toml").write_text(f'{SCORES}order = "draw"\n')
    done = run.invoke(cli.shortlist, ["doctor", str(tmp_path / "q.toml"), "--json"])
    assert done.exit_code == 0
    (found,) = [one for one in json.loads(done.output)["findings"] if one["subject"] == "independent arms"]
    assert found["severity"] == "ok"


def test_a_note_says_that_it_may_be_chance() -> None:
    for seed in range(1000):
        (found,) = in_order(gaussian(np.random.default_rng(seed)))
        if found.severity == "note":
            break
    assert found.severity == "note"
    assert found.advice.endswith(
        "This may be chance: it happens in 1 check of 100. Test again with more pulls."
    )
    (found,) = in_order(slowing(np.random.default_rng(1), noise=0.1))
    assert "Chance" not in found.advice


def test_arms_on_shared_items_may_depend_on_each_other_and_are_measured_once() -> None:
    problem = sl.Problem(1, 0.1, 0.05, n=5, rewards=sl.Bernoulli(), items=50)
    alike_scores = np.repeat(np.random.default_rng(0).integers(0, 2, (30, 1)), 5, axis=1).astype(float)
    (found,) = dependence(problem, NO_TABLE, measured(alike_scores), 0)
    assert (found.severity, found.subject) == ("ok", "shared items")
    assert freshness(problem, measured(np.ones((30, 5)))) == []
