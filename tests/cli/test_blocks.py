"""Blocks on the command line: by hand, in status and report, and as simulations."""

import random
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from tests.cli.calling import Calls
from tests.files.test_blocks import QUESTION, SIMULATED


def reward(arm: int, seed: int, lead: float = 0.5) -> float:
    own = random.Random(10 * seed + arm).gauss(0, 1)
    return random.Random(seed).gauss(0, 100) + lead * arm + own


@pytest.fixture
def trial(call: Calls) -> Calls:
    call.write("trial.toml", QUESTION)
    assert call("begin", "trial.toml").status == 0
    return call


def test_by_hand_there_is_a_line_for_each_block(trial: Calls) -> None:
    rows = trial.sheet("--worker", "ann")
    assert list(rows[0]) == ["ticket", "arm", "name", "block", "seed", "reward"]
    first = [row for row in rows if row["arm"] == "0"]
    assert [row["block"] for row in first] == [str(place) for place in range(len(first))]
    seeds = [row["seed"] for row in rows]
    assert seeds == [row["seed"] for row in first] * 3
    for row in rows:
        row["reward"] = repr(reward(int(row["arm"]), int(row["seed"])))
    asked = trial("ask", "trial", "--worker", "ann", "--json").data["tickets"]
    assert [str(seed) for seed in asked[0]["seeds"]] == [row["seed"] for row in first]
    random.Random(1).shuffle(rows)
    assert trial.tell(rows).status == 0
    lines = trial("export", "trial").out.splitlines()
    assert lines[0] == "ticket,arm,name,block,seed,reward,worker,time"
    told = {tuple(line.split(",")[1:6:2]) for line in lines[1:]}
    assert told == {(row["arm"], row["block"], row["reward"]) for row in rows}


def test_answers_that_belong_to_other_blocks_are_refused(trial: Calls) -> None:
    rows = trial.sheet("--worker", "ann")
    for row in rows:
        row["reward"] = "1"
    rows[0]["block"] = "99"
    done = trial.tell(rows)
    assert done.status == 2
    assert "asks for the items 0, 1" in done.err


def test_status_forecasts_the_blocks_that_are_needed(trial: Calls) -> None:
    assert "0 pulls made in 0 blocks." in trial("status", "trial").words
    while (data := trial("status", "trial", "--json").data)["n_pulls"] < 60:
        rows = trial.sheet("--worker", "ann")
        for row in rows:
            row["reward"] = repr(reward(int(row["arm"]), int(row["seed"]), 0.1))
        trial.tell(rows)
    left = data["n_blocks_left"]
    with closing(sl.open_store("shortlist.db")) as store, sl.Session.resume(store, "trial") as session:
        history = session.history
        assert history.rules.likely_ends is not None
        assert left == np.ceil(history.rules.likely_ends(history.state).max() - data["n_blocks"])
    assert 1 < left < 300
    words = trial("status", "trial").words
    assert (
        f"{data['n_pulls']} pulls made in {data['n_blocks']} blocks; about {left} more blocks needed" in words
    )
    assert "scores" not in words
    report = trial("report", "trial").words
    assert "scores" not in report
    assert "in blocks that all arms share" in report


def test_means_are_those_of_the_same_blocks(call: Calls) -> None:
    def measure(arm: int, blocks: list[int]) -> list[float]:
        numbers = range(n_seen[arm], n_seen[arm] + len(blocks))
        n_seen[arm] += len(blocks)
        rng = np.random.default_rng([arm, n_seen[arm]])
        return [100.0 * number + level[arm] + rng.normal() for number in numbers]  # blocks get better

    n_seen, level = [0, 0, 0], [0.0, -0.1, -20.0]
    problem = sl.Problem(
        m=1, epsilon=0.4, delta=0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks(), goal="maximise"
    )
    for goal, sign in (("maximise", 1), ("minimise", -1)):
        n_seen[:] = [0, 0, 0]
        name = f"trial-{goal}"
        result = sl.select(
            lambda arm, blocks: [sign * one for one in measure(arm, blocks)],  # noqa: B023
            problem.changed(goal=goal),
            store="shortlist.db",
            name=name,
            turns=1,
        )
        assert result.arms.pulls[2] < result.arms.pulls[0]
        assert sign * (result.arms.means[0] - result.arms.means[2]) == pytest.approx(20, abs=1.5)
        assert f"arm-0 ({result.arms.means[0]:,.3f}" in call("report", name).words


def test_a_simulation_of_a_file_uses_its_correlation(call: Calls) -> None:
    pulls = {}
    for correlation in (0.0, 0.9):
        call.write("trial.toml", f"{QUESTION}\n[measure]\n{SIMULATED.replace('0.9', str(correlation))}")
        done = call("simulate", "trial.toml", "--replications", "10", "--json")
        assert done.status == 0, done.err
        assert [one["strategy"] for one in done.data] == ["paired-race"]
        pulls[correlation] = np.mean(done.data[0]["pulls"])
    assert pulls[0.9] < 0.6 * pulls[0.0]
    words = call("simulate", "trial.toml", "--replications", "2").words
    assert "gaussian rewards in blocks" in words
    assert "%)" not in words
    assert "paired-race" in call("plan", "trial.toml").words
    assert "arms independent of each other" in call("plan", "trial.toml").words
    assert "a correlation of 0.9 within blocks" in call("plan", "trial.toml", "--correlation", "0.9").words
    assert call("plot", "epsilon", "trial.toml", "--quick", "--replications", "2", "--json").status == 0


def table_of(n_blocks: int = 40, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    common = 100 * rng.standard_normal((n_blocks, 1))
    return np.asarray((common + rng.normal([0.0, 0.2, 1.5], 0.5, (n_blocks, 3))).T)


def test_certify_is_what_a_run_would_certify() -> None:
    problem = sl.Problem(m=1, epsilon=0.4, delta=0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks())
    table = table_of()
    whole = sl.certify(problem, scores=table)
    assert whole.selected == ("arm-2",)
    assert whole.is_answer
    assert "leaves none out" in str(whole)
    session = sl.Session(problem)
    (counts,) = {ticket.count for ticket in session.asked}
    session.tell(session.asked, [table[ticket.arm, :counts].tolist() for ticket in session.asked])
    part = np.where(np.arange(table.shape[1]) < session.result.arms.pulls[:, None], table, np.nan)
    found = sl.certify(problem, scores=part)
    assert found.epsilon == session.result.certified_epsilon
    assert found.statuses == session.result.arms.statuses
    part[0, 5:] = np.nan  # an arm that stopped early
    assert sl.certify(problem, scores=part).epsilon >= found.epsilon
    low = np.where(np.arange(40) < np.array([[8], [40], [40]]), table - 1000, np.nan)
    assert sl.certify(problem, scores=low).selected == ("arm-2",)
    part[0] = np.nan
    assert "arm-0 was not measured at all" in str(sl.certify(problem, scores=part))
    passing = problem.changed(items=sl.Blocks(lockstep=True))
    assert sl.certify(passing, scores=table).epsilon == whole.epsilon
    smallest = sl.certify(problem.changed(goal="minimise"), scores=-table)
    assert (smallest.selected, smallest.epsilon) == (whole.selected, whole.epsilon)
    coins = problem.changed(rewards=sl.Bernoulli())
    won = sl.certify(coins, scores=1.0 * (np.random.default_rng(1).random((3, 200)) < [[0.2], [0.3], [0.9]]))
    assert won.is_answer
    assert won.selected == ("arm-2",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table[:2], "one row for each of the 3 arms"),
        (lambda table: np.where(np.arange(40) == 3, np.nan, table), "but was measured in later blocks"),
        (lambda table: 1e20 * table, "rounding errors"),
    ],
)
def test_certify_refuses_blocks_that_prove_nothing(change: Any, said: str) -> None:
    problem = sl.Problem(m=1, epsilon=0.4, delta=0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks())
    with pytest.raises(sl.InvalidProblem, match=said):
        sl.certify(problem, scores=change(table_of()))
    with pytest.raises(sl.InvalidProblem, match="order of measuring"):
        sl.certify(problem, scores=table_of(), seed=3)


def test_certify_reads_a_table_of_blocks(call: Calls) -> None:
    lines = [",".join([f"day {place}", *map(repr, row.tolist())]) for place, row in enumerate(table_of().T)]
    lines[-1] = lines[-1].rpartition(",")[0].rpartition(",")[0] + ",,"
    call.write("days.csv", "\n".join(["day,a,b,c", *lines]))
    done = call("certify", "days.csv", "--scores", "--within-blocks", "--epsilon", "0.4")
    assert done.status == 0, done.err
    assert done.words.startswith("Best certified so far: c With probability at least 95 %")
    assert "differences of rewards within a block are Gaussian" in done.words
    bounded = call(
        "certify", "days.csv", "--scores", "--within-blocks", "--epsilon", "0.4", "--bounds", "-500", "500"
    )
    assert bounded.status == 3
    assert "between -500 and 500" in bounded.words


def test_a_table_in_which_the_best_arm_has_fewer_blocks_is_compared_within_them() -> None:
    problem = sl.Problem(m=1, epsilon=0.4, delta=0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks())
    table = 1000 + table_of()
    table[2, 25:] = np.nan
    found = sl.certify(problem, scores=table)
    assert found.is_answer
    assert found.selected == ("arm-2",)


def test_a_table_is_certified_for_the_goal() -> None:
    problem = sl.Problem(
        m=1, epsilon=0.4, delta=0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks(), goal="minimise"
    )
    found = sl.certify(problem, scores=-table_of())
    assert found.is_answer
    assert found.selected == ("arm-2",)


def test_equal_differences_are_not_certified_anywhere(call: Calls, caplog: pytest.LogCaptureFixture) -> None:
    """A program that ignores the seed: the run ends, and no command says that its answer is certified."""
    measured = '[measure]\nkind = "command"\ncommand = ["awk", "{ print {arm} }"]\n'
    call.write("equal.toml", f"{QUESTION}\n{measured}")
    done = call("run", "equal.toml", "--name", "equal")
    assert done.status == 3
    assert "Nothing is guaranteed:" in done.words
    assert "differ by exactly the same amount in all 50 blocks." in done.words
    assert "With probability" not in done.words
    assert "in all 10 blocks. Equal differences usually mean" in caplog.text
    again = call("run", "equal.toml", "--name", "equal")
    assert again.status == 3
    assert "result read from shortlist.db. If the program changed, use --name NEW" in again.words
    assert call("list", "--json").data[0]["state"] == "unproved"
    status = call("status", "equal", "--json").data
    assert status["state"] == "unproved"
    assert status["result"]["guarantee"] is None
    assert status["certificate"]["is_void"]
    report = call("report", "equal").words
    assert "equal: not proved. 1 of 3 arms selected, but without proof." in report
    assert "Nothing is guaranteed:" in report
    assert "provided that" not in report
