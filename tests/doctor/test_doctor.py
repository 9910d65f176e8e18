"""The check-up: every fault is planted in a real measurement and must be found, and nothing else."""

import dataclasses
import functools
import io
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import shortlist as sl
from shortlist import cli
from shortlist.doctor import Diagnosis, examine
from shortlist.doctor.findings import durations
from shortlist.doctor.trials import ArmTrials, Trial
from shortlist.measure import Call, FunctionSource, ItemsSource, Summary, TableSource
from shortlist.report.doctor_text import diagnosis_text
from tests.questions import unknown

PROBLEM = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0, 4.0] * 10)
SCALES = np.sqrt(PROBLEM.variances)


def sound(arm: int, count: int, rng: np.random.Generator) -> Any:
    return rng.normal(arm / 10, SCALES[arm], count)


def diagnosed(measure: Callable[..., Any], problem: sl.Problem = PROBLEM, **more: Any) -> Diagnosis:
    return examine(FunctionSource(measure), problem, **more)


def bounded(measure: Callable[..., Any], **more: Any) -> Diagnosis:
    asked = PROBLEM.changed(rewards=sl.SubGaussian([0.25] * 20), bounds=(0, 1))
    return diagnosed(measure, asked, **more)


def severities(diagnosis: Diagnosis) -> dict[str, str]:
    return {finding.subject: finding.severity for finding in diagnosis.findings}


def seen(diagnosis: Diagnosis, subject: str) -> str:
    return " ".join(f"{one.seen} {one.advice}" for one in diagnosis.findings if one.subject == subject)


# --- sound measurements ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_said_against_a_sound_measurement(seed: int) -> None:
    found = diagnosed(sound, seed=seed)
    assert found.is_healthy
    assert {one.subject for one in found.findings if one.severity == "note"} <= {
        "time and reward"
    }  # by chance
    assert found.n_pulls == 150
    assert found.arms == ("arm-0", "arm-5", "arm-10", "arm-14", "arm-19")


@pytest.mark.parametrize("seed", range(10))
def test_summaries_are_as_good_as_rewards(seed: int) -> None:
    def with_spread(arm: int, count: int, rng: np.random.Generator) -> Summary:
        rewards = sound(arm, count, rng)
        return Summary(count, rewards.mean(), rewards.var(ddof=1))

    def without(arm: int, count: int, rng: np.random.Generator) -> tuple[int, float]:
        return count, sound(arm, count, rng).mean()

    for measure in (with_spread, without):
        assert "error" not in severities(diagnosed(measure, seed=seed)).values()


@pytest.mark.parametrize("p", [0.0, 0.003, 0.5, 1.0])
def test_coins_are_healthy_even_if_one_side_never_shows(p: float) -> None:
    def coin(arm: int, count: int, rng: np.random.Generator) -> Any:
        return (rng.random(count) < p) * 1.0

    found = bounded(coin)
    assert found.is_healthy
    assert severities(found)["bounds"] == "ok"
    if p in (0.0, 1.0):
        assert severities(found)["fresh rewards"] == "note"
        assert "Test with more --pulls" in seen(found, "fresh rewards")


def test_one_arm_is_enough() -> None:
    assert diagnosed(sound, PROBLEM.changed(m=1, variances=[1.0]), pulls=12).is_healthy


def test_few_pulls_are_not_a_problem() -> None:
    assert diagnosed(sound, pulls=2, arms=1).n_pulls == 2
    assert diagnosed(sound, pulls=7, arms=100).n_pulls == 140  # there are only 20 arms


# --- faults ---------------------------------------------------------------------------------------


def test_randomness_of_ones_own_is_only_a_note() -> None:
    own = np.random.default_rng(5)
    found = diagnosed(lambda arm, count, _rng: sound(arm, count, own))
    assert found.is_healthy
    assert severities(found)["same seed again"] == "note"
    assert "rng" in seen(found, "same seed again")


def test_a_cache_is_found() -> None:
    own = np.random.default_rng(5)

    @functools.cache
    def cached(arm: int, count: int) -> Any:
        return sound(arm, count, own)

    found = diagnosed(lambda arm, count, _rng: cached(arm, count))
    assert not found.is_healthy
    assert severities(found)["fresh rewards"] == "error"
    assert "arm-0, arm-5, arm-10, arm-14 and arm-19" in seen(found, "fresh rewards")
    assert "cache" in seen(found, "fresh rewards")


def test_a_seed_of_ones_own_is_found() -> None:
    found = diagnosed(lambda arm, count, _rng: sound(arm, count, np.random.default_rng(42)))
    assert severities(found)["fresh rewards"] == "error"
    summaries = diagnosed(lambda _arm, count, _rng: (count, float(np.random.default_rng(42).random())))
    assert severities(summaries)["fresh rewards"] == "error"


def test_a_cache_is_found_when_calls_differ_in_size() -> None:
    found = diagnosed(lambda arm, count, _rng: sound(arm, count, np.random.default_rng(42)), pulls=32)
    assert severities(found)["fresh rewards"] == "error"


def test_rewards_without_noise_are_found() -> None:
    found = diagnosed(lambda arm, count, _rng: [float(arm)] * count)
    assert severities(found)["fresh rewards"] == "error"
    assert "without noise" in seen(found, "fresh rewards")
    within = bounded(lambda _arm, count, _rng: [0.5] * count)
    assert severities(within)["fresh rewards"] == "error"


def test_rewards_out_of_bounds_are_found_one_by_one_and_in_summaries() -> None:
    for measure in (
        lambda _arm, count, rng: np.append(rng.random(count - 1), 1.0001),
        lambda _arm, count, rng: tuple(np.append(rng.random(count - 1), 1.0001)),
        lambda _arm, count, rng: Summary(count, 1.0001 + 0 * rng.random()),
    ):
        found = bounded(measure)
        assert severities(found)["bounds"] == "error"
        assert "1.0001 of " in seen(found, "bounds")
        assert "arm-0 is refused: rewards were declared to lie between 0 and 1" in seen(found, "bounds")


def test_more_noise_than_declared_is_an_error() -> None:
    found = diagnosed(lambda arm, count, rng: 2 * sound(arm, count, rng))
    assert severities(found)["variance"] == "error"
    assert "far above the declared 1" in seen(found, "variance")
    assert "upper bounds" in seen(found, "variance")


def test_the_variance_shown_is_that_of_all_pulls_of_the_arm() -> None:
    rewards: list[float] = []

    def recorded(arm: int, count: int, rng: np.random.Generator) -> Any:
        rewards.extend(3 * sound(arm, count, rng))
        return rewards[-count:]

    found = diagnosed(recorded, arms=1, pulls=31)
    variance = np.var(rewards[:31], ddof=1)
    assert f"arm-0 has a sample variance of {variance:.3g}, far" in seen(found, "variance")


@pytest.mark.slow
def test_the_usual_pulls_of_coins_follow_from_their_rates() -> None:
    asked = sl.Problem(1, 0.05, 0.05, n=4, rewards=sl.Bernoulli())
    fair, rare = (
        diagnosed(
            lambda _, count, rng, rate=rate: 1.0 * (rng.random(count) < rate), asked
        ).estimate.usual_pulls
        for rate in (0.5, 0.03)
    )
    assert fair is not None
    assert rare is not None
    assert 2 * rare < fair
    many = sl.Problem(1, 0.3, 0.05, n=1001, rewards=sl.Bernoulli())
    unclear = diagnosed(lambda _, count, rng: 1.0 * (rng.random(count) < 0.5), many)
    assert unclear.estimate.usual_pulls is None


@pytest.mark.slow
@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Bounded(0, 5)])
def test_variances_are_not_compared_where_none_are_declared(rewards: sl.Bounded) -> None:
    asked = sl.Problem(2, 0.5, 0.05, n=20, rewards=rewards)
    found = diagnosed(lambda _, count, rng: rewards.high * (rng.random(count) < 0.05), asked, pulls=200)
    assert found.is_healthy
    assert severities(found)["variance"] == ("ok" if asked.is_binary else "note")
    adapts = "times the largest possible; a run adapts to it."
    advice = "A run adapts to means near the bounds only."
    assert (adapts if asked.is_binary else advice) in seen(found, "variance")
    share = float(seen(found, "variance").split("about ")[1].split()[0])
    assert share == pytest.approx(4 * 0.05 * 0.95, abs=0.08)


def test_the_noise_of_one_arm_alone_may_be_too_large() -> None:
    found = diagnosed(lambda arm, count, rng: (1 + 2 * (arm == 10)) * sound(arm, count, rng))
    assert "arm-10 has a sample variance" in seen(found, "variance")
    assert "arm-5" not in seen(found, "variance")


def test_more_noise_is_found_in_summaries_too() -> None:
    found = diagnosed(lambda arm, count, rng: (count, 4 * sound(arm, count, rng).mean()))
    assert severities(found)["variance"] == "error"


@pytest.mark.slow
def test_false_alarms_about_noise_are_rare() -> None:
    alarms = [severities(diagnosed(sound, seed=seed))["variance"] == "error" for seed in range(300)]
    assert sum(alarms) <= 3  # 0.3 are expected; 4 or more in 4 cases of 10,000


@pytest.mark.parametrize("measure", [bounded, diagnosed])
def test_much_less_noise_is_a_note(measure: Callable[..., Diagnosis]) -> None:
    found = measure(lambda _arm, count, rng: 0.5 + rng.uniform(-0.1, 0.1, count))
    assert found.is_healthy
    assert severities(found)["variance"] == "note"
    assert "save pulls" in seen(found, "variance")


def timed(seconds: Callable[[float, int], float], seed: int = 0) -> list[ArmTrials]:
    """Trials of five arms of which the rewards are random and the times are given, not taken."""
    found = []
    for arm in range(5):
        means = np.random.default_rng((seed, arm)).normal(arm, 1.0, 6)
        trials = [
            Trial(Call(0, arm, 5, 5 * place), None, Summary(5, mean), seconds(mean - arm, place))
            for place, mean in enumerate(means)
        ]
        found.append(ArmTrials(arm, tuple(trials)))
    return found


@pytest.mark.parametrize("sign", [1, -1])
def test_rewards_that_take_longer_are_a_note(sign: int) -> None:
    (found,) = durations(timed(lambda mean, _: 1.0 + math.tanh(sign * mean)))
    assert found.severity == "note"
    assert ("large rewards" if sign == 1 else "small rewards") in found.seen
    assert "timeout" in found.advice


@pytest.mark.parametrize("seconds", [lambda _, place: 5.0 if place == 0 else 1.0, lambda *_: 1.0])
def test_times_that_have_nothing_to_do_with_rewards_are_fine(seconds: Callable[[float, int], float]) -> None:
    for seed in range(50):
        (found,) = durations(timed(seconds, seed))
        assert found.severity == "ok"


def test_slow_arms_are_not_slow_rewards() -> None:
    tried = timed(lambda *_: 1.0)
    slow = [
        dataclasses.replace(
            one, trials=tuple(dataclasses.replace(t, seconds=1.0 + one.arm) for t in one.trials)
        )
        for one in tried
    ]
    assert durations(slow)[0].severity == "ok"


def test_calls_are_timed() -> None:
    def slow(arm: int, count: int, rng: np.random.Generator) -> Any:
        time.sleep(0.01)
        return sound(arm, count, rng)

    found = diagnosed(slow, arms=2, pulls=12)
    assert found.seconds >= 12 * 0.01
    assert found.seconds_per_pull == found.seconds / 24
    assert "time and reward" in severities(found)


def test_what_cannot_travel_is_a_note() -> None:
    found = diagnosed(lambda *given: sound(*given) + 0.0)
    assert severities(found)["workers"] == "note"
    assert severities(diagnosed(sound))["workers"] == "ok"


def test_failures_are_errors_and_what_succeeded_counts() -> None:
    def failing(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 5:
            raise OSError("offline")
        return sound(arm, count + (arm == 14), rng)

    found = diagnosed(failing)
    assert not found.is_healthy
    said = seen(found, "measuring")
    assert "measuring arm-5 raised OSError: offline" in said
    assert "arm-14 was to be pulled 5 times" in said
    assert found.n_pulls == 90
    assert severities(found)["variance"] == "ok"


def test_a_measurement_that_always_fails_leaves_nothing_else_to_say() -> None:
    found = diagnosed(lambda _arm, _count, _rng: None)
    assert {one.severity for one in found.findings} == {"error", "note"}  # and a lambda does not travel
    assert found.seconds_per_pull is None
    assert len([one for one in found.findings if one.subject == "measuring"]) == 3
    assert "No pull succeeded" in printed(found)
    assert json.loads(json.dumps(found.to_dict()))["worst_case_seconds"] is None


def test_a_failure_late_in_an_arm_is_not_lost() -> None:
    def late(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append(arm)
        return sound(arm, count, rng) if len(calls) < 7 else [math.nan] * count

    calls: list[int] = []
    found = diagnosed(late, arms=1)
    assert "is nan" in seen(found, "measuring")
    assert found.n_pulls == 30


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 12])
def test_a_small_table_is_tried_as_far_as_it_goes(rows: int) -> None:
    rng = np.random.default_rng(3)
    table = TableSource.of(PROBLEM, [rng.normal(0.0, scale, rows) for scale in SCALES])
    found = examine(table, PROBLEM)
    assert found.n_pulls == 5 * min(30, rows)
    assert "measuring" not in severities(found)
    assert severities(found)["rows"] == "note"
    assert f"has {20 * rows} rows" in seen(found, "rows")


def test_a_table_that_is_large_enough_is_fine() -> None:
    rng = np.random.default_rng(3)
    problem = sl.Problem(m=1, epsilon=2.0, delta=0.1, variances=[1.0, 1.0], bounds=(-9, 9))
    table = TableSource.of(problem, [rng.normal(0.0, 1.0, 500) for _ in range(2)])
    assert severities(examine(table, problem))["rows"] == "ok"


@pytest.mark.parametrize("n_items", [1, 20])
def test_fewer_items_than_pulls_are_tried_as_far_as_they_go(n_items: int) -> None:
    problem = sl.Problem(1, 0.1, 0.05, n=4, rewards=sl.Bernoulli(), items=n_items)
    assert problem.items is not None
    found = examine(
        ItemsSource(lambda arm, items: [(arm + item) % 2 for item in items], problem.items), problem
    )
    assert found.n_pulls == 4 * n_items
    assert "measuring" not in severities(found)


# --- what is printed ------------------------------------------------------------------------------


def printed(diagnosis: Diagnosis) -> str:
    console = Console(width=80, highlight=False)
    with console.capture() as capture:
        console.print(diagnosis_text(diagnosis))
    return capture.get()


def test_the_cost_is_that_of_the_plan() -> None:
    found = diagnosed(sound)
    best = sl.plan(PROBLEM).best
    assert (found.strategy, found.worst_case_pulls) == (best.strategy, best.worst_case_pulls)
    assert found.estimate.usual_pulls is not None
    assert best.worst_case_pulls is not None
    assert 0 < found.estimate.usual_pulls <= best.worst_case_pulls
    data = found.to_dict()
    assert data["worst_case_seconds"] == pytest.approx(found.seconds / 150 * best.worst_case_pulls)
    assert f"at most {best.worst_case_pulls:,} pulls" in " ".join(printed(found).split())


def test_findings_fit_the_terminal() -> None:
    text = printed(diagnosed(lambda arm, count, _rng: [float(arm)] * count))
    assert max(map(len, text.splitlines())) <= 80
    assert "error  fresh rewards" in text
    assert "1 error: fix this first." in text
    assert "No problems found." in printed(diagnosed(sound))


QUESTION = """
[problem]
m = 1
epsilon = 1.0
delta = 0.05
bounds = [0, 10]
names = ["a", "b", "c"]

[measure]
kind = "command"
"""


def doctor(path: Path, *options: str) -> Any:
    return CliRunner().invoke(cli.shortlist, ["doctor", str(path), *options], env={"COLUMNS": "80"})


def test_a_sound_program_is_healthy(tmp_path: Path) -> None:
    program = "BEGIN { srand({seed} % 1000000); for (i = 0; i < {count}; i++) print 10 * (rand() < 0.5) }"
    (tmp_path / "q.toml").write_text(QUESTION + f'command = ["awk", "{program}"]\n')
    done = doctor(tmp_path / "q.toml", "--arms", "2", "--pulls", "12", "--json")
    assert done.exit_code == 0
    found = json.loads(done.output)
    assert found["is_healthy"]
    assert (found["arms"], found["n_pulls"]) == (["a", "c"], 24)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('["echo", "3"]', "All rewards of a, b and c are the same"),
        ('["sh", "-c", "echo 1{seed}"]', "rewards were declared to lie between 0 and 10"),
        ('["sh", "-c", "echo no sensor >&2; exit 3"]', "no sensor"),
    ],
)
def test_a_program_that_is_not_sound_ends_with_status_4(tmp_path: Path, command: str, said: str) -> None:
    (tmp_path / "q.toml").write_text(QUESTION + f"command = {command}\n")
    done = doctor(tmp_path / "q.toml", "--pulls", "6")
    assert done.exit_code == 4
    assert said in " ".join(done.output.split())
    assert max(map(len, done.output.splitlines()[1:])) <= 80


@pytest.mark.parametrize("option", [["--arms", "0"], ["--pulls", "1"], ["--seed", "-1"]])
def test_options_that_make_no_sense_are_refused(tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "q.toml").write_text(QUESTION + 'command = ["echo", "3"]\n')
    assert isinstance(doctor(tmp_path / "q.toml", *option).exception, sl.InvalidProblem)


def test_trial_calls_are_those_that_a_run_would_make() -> None:
    calls: list[Call] = []

    class Recorded(FunctionSource):
        def answers(self, given: Any) -> Any:
            calls.extend(given)
            return super().answers(given)

    examine(Recorded(sound), PROBLEM, arms=1, pulls=8, seed=4)
    *regular, again, reseeded = calls
    assert [call.first_pull for call in regular] == np.cumsum([0, *(c.count for c in regular)])[:-1].tolist()
    assert sum(call.count for call in regular) == 8
    assert again == regular[0]
    assert (reseeded.entropy, reseeded.count, reseeded.first_pull) == (5, again.count, 0)


# --- unknown variances ----------------------------------------------------------------------------

UNKNOWN = unknown(m=2, epsilon=0.5, delta=0.05, n=20, pilot=35)


def test_the_pilot_is_announced_where_variances_are_unknown() -> None:
    begun = examine(FunctionSource(sound), unknown(m=2, epsilon=0.5, delta=0.05, n=20))
    assert begun.is_healthy
    assert "starts with a first batch of 6 pulls per arm, 120 in total" in seen(begun, "first batch")
    assert (begun.strategy, begun.pilot_pulls) == ("t-cut-race", None)
    found = examine(FunctionSource(sound), UNKNOWN)
    assert found.is_healthy
    assert "variance" not in severities(found)
    assert "starts with a pilot of 35 pulls per arm, 700 in total" in seen(found, "pilot")
    assert (found.strategy, found.worst_case_pulls, found.pilot_pulls) == ("t-race", None, 700)
    assert found.to_dict()["pilot_pulls"] == 700
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(diagnosis_text(found))
    text = " ".join(console.export_text().split())
    assert "t-race starts with a pilot of 700 pulls" in text
    assert "The maximum number of further pulls is known after the pilot" in text
    assert "no limit" not in text


def test_a_pilot_of_the_users_own_is_announced() -> None:
    assert examine(FunctionSource(sound), UNKNOWN.changed(rewards=sl.Gaussian(pilot=9))).pilot_pulls == 180
    assert "pilot" not in severities(examine(FunctionSource(sound), UNKNOWN.changed(m=20)))


def test_means_alone_are_an_error_where_a_pilot_is_needed() -> None:
    def mean_only(arm: int, count: int, rng: np.random.Generator) -> tuple[int, float]:
        return count, float(rng.normal(size=count).mean())

    found = examine(FunctionSource(mean_only), UNKNOWN)
    assert not found.is_healthy
    assert "returns only means" in seen(found, "pilot")
    with pytest.raises(sl.MeasurementFailed):
        sl.select(mean_only, UNKNOWN)


def test_coins_are_not_gaussian() -> None:
    def coin(arm: int, count: int, rng: np.random.Generator) -> Any:
        return (rng.random(count) < 0.5) * 1.0

    found = examine(FunctionSource(coin), UNKNOWN)
    assert not found.is_healthy
    assert "only two values, so they are not Gaussian" in seen(found, "pilot")


@pytest.mark.parametrize(("rows", "severity"), [(34, "error"), (35, "ok")])
def test_a_table_too_short_for_the_pilot_is_an_error(rows: int, severity: str) -> None:
    rewards = [np.random.default_rng(arm).normal(size=rows + (arm != 7)) for arm in range(20)]
    found = examine(TableSource.of(UNKNOWN, rewards), UNKNOWN)
    assert severities(found)["pilot"] == severity
