"""What the check-up says a run will cost: usual pulls, time with and without workers, and whether it pays."""

import json
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist as sl
from shortlist import cli
from shortlist.doctor import estimate as estimates
from shortlist.doctor import examine
from shortlist.doctor.estimate import Estimate, estimated, span
from shortlist.doctor.trials import ArmTrials, Trial, tried
from shortlist.measure import Call, FunctionSource, ItemsSource, RecordedScores, TableSource, summary_of
from shortlist.measure.timing import TimingSource
from shortlist.planning import resolve
from shortlist.report.doctor_text import cost_lines
from tests.questions import unknown

KNOWN = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 10)
COINS = sl.Problem(m=1, epsilon=0.2, delta=0.05, n=4, rewards=sl.Bernoulli())
BLOCKS = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=5, rewards=sl.Gaussian(), items=sl.Blocks())
POOL = sl.Problem(m=1, epsilon=0.05, delta=0.05, n=10, rewards=sl.Bernoulli(), items=400)


def gaussian(_arm: int, count: int, rng: np.random.Generator) -> Any:
    return rng.normal(0.0, 1.0, count)


def coin(_arm: int, count: int, rng: np.random.Generator) -> Any:
    return (rng.random(count) < 0.5) * 1.0


def scored(arm: int, items: list[int]) -> list[float]:
    return [float(np.random.default_rng([arm, item]).integers(2)) for item in items]


def in_block(arm: int, blocks: list[int]) -> list[float]:
    return [float(np.random.default_rng([arm, block]).normal()) for block in blocks]


def timed(
    problem: sl.Problem, rewards: Callable[[int], Sequence[float]], seconds: float, load: float = 1.0
) -> list[ArmTrials]:
    """Trials of six arms, or all, of which each pull took so long, and kept so many processors busy."""
    found = []
    for arm in range(min(6, problem.n)):
        parts = np.array_split(np.asarray(rewards(arm)), 6)
        trials = [
            Trial(
                Call(0, arm, len(p), 0),
                p,
                summary_of(p, len(p), ""),
                len(p) * seconds,
                len(p) * seconds * load,
            )
            for p in parts
        ]
        found.append(ArmTrials(arm, tuple(trials)))
    return found


def noisy(arm: int) -> Any:
    return np.random.default_rng(arm).normal(size=30)


def flips(arm: int) -> Any:
    return np.random.default_rng(arm).integers(0, 2, 30).astype(float)


def of(problem: sl.Problem, seconds: float = 0.1, load: float = 1.0, **more: Any) -> Estimate:
    rewards = flips if problem.is_bounded else noisy
    measure: Any = scored if problem.is_bounded else in_block
    made = FunctionSource(gaussian) if problem.items is None else ItemsSource(measure, problem.items)
    source = more.pop("source", made)
    rewards = more.pop("rewards", rewards)
    trials = timed(problem, rewards, seconds, load)
    return estimated(problem, source, trials, resolve("auto", problem), **more)


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "processors", lambda: 4)


# --- the usual number of pulls --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "measure", "strategy"),
    [
        (KNOWN, gaussian, "race"),
        (COINS, coin, "race"),
        (COINS.changed(rewards=sl.Bounded(0, 2)), coin, "race"),
        (unknown(m=1, epsilon=0.5, delta=0.05, n=10), gaussian, "paired-race"),
        (unknown(m=1, epsilon=0.5, delta=0.05, n=10, pilot=12), gaussian, "t-race"),
        (POOL, scored, "shared-items"),
        (BLOCKS, in_block, "paired-race"),
        (COINS.changed(items=sl.Blocks()), scored, "shared-items"),
    ],
)
def test_the_usual_pulls_of_every_kind_of_question_are_told(
    problem: sl.Problem, measure: Any, strategy: str
) -> None:
    made = FunctionSource(measure) if problem.items is None else ItemsSource(measure, problem.items)
    found = examine(made, problem, arms=3, pulls=12)
    assert found.strategy == strategy
    usual = found.estimate.usual_pulls
    assert usual is not None
    assert problem.n <= usual <= (found.worst_case_pulls or math.inf)
    said = " ".join(cost_lines(found))
    assert f"{strategy} " in said
    assert "usually makes about" in said
    assert "with one worker" in said
    assert "simulated runs: " in said
    data = json.loads(json.dumps(found.to_dict()))
    assert data["usual_pulls"] == usual
    assert data["usual_seconds"] == pytest.approx(usual * found.seconds / found.n_pulls)
    assert data["usual_instance"]


def test_noise_is_that_of_the_test_pulls() -> None:
    asked = unknown(m=1, epsilon=0.5, delta=0.05, n=10)
    quiet, loud = (of(asked, rewards=lambda arm, by=by: by * noisy(arm)).usual_pulls for by in (1, 3))
    assert quiet is not None
    assert loud is not None
    assert 5 * quiet < loud < 16 * quiet


def test_in_blocks_only_differences_count() -> None:
    common = 100 * np.random.default_rng(99).normal(size=30)
    alone, shared = of(BLOCKS), of(BLOCKS, rewards=lambda arm: noisy(arm) + common)
    assert alone.usual_pulls == pytest.approx(shared.usual_pulls, rel=0.1)  # figures are rounded
    assert of(BLOCKS, rewards=lambda _: common).usual_pulls is None


@pytest.mark.parametrize("problem", [unknown(m=1, epsilon=0.5, delta=0.05, n=5), BLOCKS])
def test_hard_questions_are_estimated_from_easier_ones(problem: sl.Problem) -> None:
    easy, hard = of(problem.changed(epsilon=0.05)), of(problem.changed(epsilon=0.0005))
    assert easy.usual_pulls is not None
    assert hard.usual_pulls is not None
    assert 2500 * easy.usual_pulls < hard.usual_pulls < 40_000 * easy.usual_pulls


def test_rates_of_scores_are_shares_of_their_bounds() -> None:
    percent = POOL.changed(rewards=sl.Bounded(0, 100), epsilon=5)
    assert "about 51% of them 1" in of(percent, rewards=lambda arm: 100 * flips(arm)).instance
    assert "about 2% of them 1" in of(percent, rewards=lambda _: np.zeros(30)).instance
    assert "about 98% of them 1" in of(POOL, rewards=lambda _: np.ones(30)).instance


def test_nothing_is_said_that_would_take_too_long_to_find_out() -> None:
    many = sl.Problem(1, 0.05, 0.05, n=600, rewards=sl.Bernoulli(), items=1000)
    assert of(many).usual_pulls is None
    rough = of(sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 1001))
    assert rough.instance == ""
    assert rough.usual_pulls is not None


def test_if_all_arms_are_selected_nothing_is_measured() -> None:
    found = examine(FunctionSource(gaussian), KNOWN.changed(m=10), arms=2, pulls=2)
    assert cost_lines(found) == ["All arms are selected, so no measurement is needed."]
    assert found.estimate.advice == ()


def test_costs_of_pulls_are_counted() -> None:
    found = of(COINS.changed(costs=[1.0, 3.0] * 2))
    assert found.usual_pulls is not None
    assert found.usual_cost == 2 * found.usual_pulls
    assert of(COINS).usual_cost is None
    assert found.to_dict()["usual_cost"] == found.usual_cost


# --- workers --------------------------------------------------------------------------------------


def test_one_worker_per_processor_is_proposed_where_calls_compute() -> None:
    found = of(KNOWN, seconds=0.1)
    assert found.usual_seconds is not None
    assert found.workers is not None
    assert (found.workers.n, found.workers.waits) == (4, False)
    assert found.workers.options == "--workers 4 --pulls-per-call 1"
    assert found.usual_seconds / 4 < found.workers.seconds < found.usual_seconds / 2
    two = of(KNOWN, load=2.0).workers
    assert two is not None
    assert two.n == 2  # each call keeps two processors busy


def test_calls_of_a_twentieth_of_a_second_are_proposed_where_a_round_may_measure_one_arm_often() -> None:
    for seconds, size in ((0.1, 1), (0.01, 5), (0.002, 25)):
        found = of(KNOWN.changed(epsilon=0.05), seconds=seconds).workers
        assert found is not None
        assert found.pulls_per_call == size
    for problem in (POOL, BLOCKS):  # workers measure ahead there
        ahead = of(problem, seconds=1.0).workers
        assert ahead is not None
        assert ahead.options == "--workers 4"


def test_more_workers_than_processors_are_proposed_where_calls_wait() -> None:
    found = of(KNOWN.changed(epsilon=0.2), load=0.1).workers
    assert found is not None
    assert (found.n, found.waits) == (16, True)


def test_short_runs_need_no_workers() -> None:
    assert of(KNOWN, seconds=1e-3).workers is None
    asked = of(KNOWN, seconds=1e-3, workers=3).workers
    assert asked is not None  # but whoever asks is answered
    assert asked.n == 3
    assert of(KNOWN, workers=1).workers is None


def test_no_more_workers_are_proposed_than_a_round_has_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "processors", lambda: 500)
    found = of(KNOWN, seconds=10.0).workers
    assert found is not None
    assert 4 < found.n < 100


def test_a_strategy_of_few_rounds_is_proposed_where_workers_would_wait() -> None:
    alone, many = of(KNOWN, seconds=10.0).workers, of(KNOWN, seconds=10.0, workers=64).workers
    assert alone is not None
    assert many is not None
    assert alone.strategy is None
    assert many.strategy in {"short-race", "single-stage"}
    small = "" if many.strategy == "single-stage" else " --pulls-per-call 1"
    assert many.options == f"--workers 64{small} --strategy {many.strategy}"
    assert many.seconds < alone.seconds


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (TableSource.of(KNOWN, [np.zeros(9)] * 10), "recorded or simulated"),
        (FunctionSource(gaussian, together=8), "several arms"),
        (TimingSource([], []), "one after the other"),
    ],
)
def test_workers_are_proposed_only_where_they_can_help(source: Any, reason: str) -> None:
    found = of(KNOWN, seconds=10.0, source=source)
    assert found.workers is None
    assert reason in found.no_workers


def test_workers_are_not_proposed_in_lockstep_nor_for_what_cannot_be_sent() -> None:
    assert of(BLOCKS.changed(items=sl.Blocks(lockstep=True)), seconds=10.0).workers is None
    assert of(KNOWN, seconds=10.0, can_travel=False).workers is None
    found = examine(FunctionSource(lambda *given: 1.0 * gaussian(*given)), KNOWN, arms=2, pulls=12, workers=4)
    assert found.estimate.workers is None
    assert "More workers do not help: the measurement cannot be sent" in " ".join(cost_lines(found))


def test_calls_that_wait_are_told_from_those_that_compute() -> None:
    def waiting(arm: int, count: int, rng: np.random.Generator) -> Any:
        time.sleep(0.05)
        return gaussian(arm, count, rng)

    def computing(arm: int, count: int, rng: np.random.Generator) -> Any:
        stop = time.process_time() + 0.05
        while time.process_time() < stop:
            pass
        return gaussian(arm, count, rng)

    for measure, is_busy in ((waiting, False), (computing, True)):
        (made,) = tried(FunctionSource(measure), KNOWN, [0], 6, 0)
        assert all((trial.processor_seconds >= 0.05) == is_busy for trial in made.trials)


# --- what follows from the costs ------------------------------------------------------------------


def advice(problem: sl.Problem, seconds: float, **more: Any) -> str:
    return " ".join(of(problem, seconds, **more).advice)


def test_the_whole_table_is_proposed_if_a_run_needs_nearly_all_of_it() -> None:
    exact = POOL.changed(epsilon=0.001, n=4, items=100)
    said = advice(exact, 1.0)
    assert "Measuring the whole table is about as cheap (400 scores: 6.7 min with one worker)" in said
    share = int(said.split("usually needs ")[1].split("%")[0])
    assert 70 <= share <= 100
    assert "about as cheap" not in advice(POOL.changed(epsilon=0.2), 1.0)


def test_the_whole_table_is_proposed_if_it_takes_less_than_a_minute() -> None:
    said = advice(POOL, 0.01)
    assert "Measuring the whole table is cheap enough (4,000 scores: 40 s with one worker)" in said
    assert "A run is worthwhile only if scores cost something besides time" in said
    assert advice(POOL, 0.1) == ""
    assert advice(POOL.changed(target="population"), 0.01) == ""


def test_costs_of_scores_are_weighed() -> None:
    costly = POOL.changed(costs=[1.0, 2.0] * 5)
    found = of(costly, 0.01)
    assert found.advice == ()  # a minute is short, but scores cost something
    assert found.whole_table is not None
    assert (found.whole_table.pulls, found.whole_table.cost) == (4000, 6000.0)
    assert "at a cost of 600" in advice(
        costly.changed(epsilon=0.001, n=4, items=100, costs=[1, 2, 1, 2]), 1.0
    )


def test_scores_that_are_known_already_are_not_counted() -> None:
    known = POOL.changed(known={0: np.zeros(400), "arm-3": np.ones(400)})
    found = of(known).whole_table
    assert found is not None
    assert found.pulls == 3200


def test_if_everything_is_recorded_a_run_saves_nothing() -> None:
    scores = RecordedScores.of(POOL, np.zeros((10, 400)))
    assert "All 4,000 scores exist already: the averages of the whole table are the exact answer" in advice(
        POOL, 1e-6, source=scores
    )
    rows = [np.zeros(50)] * 4
    assert "`sl.certify` says" in advice(COINS, 1e-6, source=TableSource.of(COINS, rows))
    drawn = TableSource.of(COINS, rows, "draw")
    assert "All 200 rows exist already. The guarantee is about their averages" in advice(
        COINS, 1e-6, source=drawn
    )
    asked = unknown(m=1, epsilon=0.5, delta=0.05, n=4)
    assert advice(asked, 1e-6, source=TableSource.of(asked, rows)) == ""


def test_a_run_of_days_is_named_with_an_epsilon_that_ends_in_time() -> None:
    assert advice(COINS, 1.0) == ""
    said = advice(COINS, 4000.0)
    assert "a run usually takes" in said
    assert "days with --workers 4" in said
    epsilon, strategy = re.findall(r"an epsilon of (\S+) and --strategy (\S+) it never takes", said)[0]
    worst = sl.plan(COINS.changed(epsilon=float(epsilon)))[strategy].worst_case_pulls
    assert worst is not None
    assert 0.8 * 8 * 3600 <= worst * 4000 / 4 <= 8 * 3600
    assert "--deadline 8h" in said


def test_a_run_of_days_without_a_plan_gets_general_advice() -> None:
    said = advice(unknown(m=1, epsilon=0.5, delta=0.05, n=10), 1e5)
    assert "With twice the epsilon, it takes about a quarter of the pulls." in said
    assert "--deadline" not in said  # only the end of such a run is certified
    assert "--deadline" in advice(BLOCKS, 1e5)
    many = sl.Problem(1, 0.05, 0.05, n=600, rewards=sl.Bernoulli())
    assert "a run may take" in advice(many, 10.0)


def test_an_epsilon_beyond_the_bounds_is_no_advice() -> None:
    assert "an epsilon of" not in advice(COINS, 1e6)


# --- the command ----------------------------------------------------------------------------------

QUESTION = """
[problem]
m = 1
epsilon = 0.1
delta = 0.05
n = 4
rewards = "bernoulli"

[measure]
kind = "function"
function = "slow.py:measure"
"""
MEASURE = """
import time

def measure(arm, count, rng):
    time.sleep(0.1 * count)
    return (rng.random(count) < 0.5) * 1.0
"""


def doctor(folder: Path, *options: str) -> Any:
    (folder / "slow.py").write_text(MEASURE)
    (folder / "q.toml").write_text(QUESTION)
    run = CliRunner().invoke(
        cli.shortlist,
        ["doctor", str(folder / "q.toml"), "--arms", "1", "--pulls", "6", *options],
        env={"COLUMNS": "80"},
    )
    assert run.exit_code == 0, run.output
    return run


def test_the_command_proposes_workers(tmp_path: Path) -> None:
    said = " ".join(doctor(tmp_path).output.split())
    assert re.search(r"With --workers \d+ --pulls-per-call 1.* it usually takes about", said)
    assert "calls mostly wait" in said
    assert "race makes at most 3,644 pulls" in said
    said = " ".join(doctor(tmp_path, "--workers", "3").output.split())
    assert "With --workers 3 --pulls-per-call 1 " in said


def test_the_proposal_is_in_json(tmp_path: Path) -> None:
    found = json.loads(doctor(tmp_path, "--workers", "2", "--json").output)
    assert found["workers"]["options"] == "--workers 2 --pulls-per-call 1"
    assert found["usual_seconds"] > found["workers"]["seconds"]
    assert found["advice"] == []
    assert found["whole_table"] is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2.5e-6, "2.5 µs"),
        (4.2e-4, "420 µs"),
        (0.0123, "12 ms"),
        (0.5, "500 ms"),
        (1.0, "1 s"),
        (119.0, "119 s"),
        (150.0, "2.5 min"),
        (7199.0, "120 min"),
        (9000.0, "2.5 h"),
        (86400.0 * 40, "40 days"),
    ],
)
def test_times_are_told_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert span(seconds) == words
