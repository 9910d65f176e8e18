"""``shortlist time`` and problem files about times; the times themselves are simulated."""

import json
import math
import signal
from itertools import count
from typing import Any

import numpy as np
import pytest

from shortlist.files.problem_file import read_problem_file
from shortlist.measure.timing import CommandTimer, TimingSource
from tests.cli.calling import Calls

FILE = """
[problem]
m = 1
within = 0.05
delta = 0.05
names = ["0.1", "0.12", "0.3"]

[measure]
kind = "timing"
command = ["sleep", "{name}"]
"""


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Programs take as many seconds as their last word says, or 1, give or take some noise."""
    made: list[tuple[str, ...]] = []
    rng = np.random.default_rng(1)

    def seconds(timer: CommandTimer) -> float:
        made.append(timer.argv)
        word = timer.argv[-1]
        takes = float(word) if word.replace(".", "").isdigit() else 1.0
        return takes * math.exp(rng.normal(0, 0.02))

    monkeypatch.setattr(CommandTimer, "__call__", seconds)
    return made


def test_the_fastest_command_is_named(call: Calls, timed: list[tuple[str, ...]]) -> None:
    done = call("time", "sleep 0.11", "sleep 0.1", "sleep 0.3")
    assert done.status == 0
    assert "With probability at least 95 %, sleep 0.1 is" in done.words
    assert "after 1 warm-up run of each, seed 0" in done.words
    lines = done.out.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["0.1", "0.11", "0.3"]
    assert "descriptive" in lines[0]
    assert timed[:3] == [("sleep", "0.11"), ("sleep", "0.1"), ("sleep", "0.3")]
    assert not [*call.folder.iterdir()]  # nothing is saved unless that is asked for


def test_options_reach_the_question(call: Calls, timed: list[tuple[str, ...]]) -> None:
    options = ["-m", "2", "--within", "10%", "--delta", "0.2", "--warmup", "3", "--seed", "4", "--json"]
    data = call("time", "sleep 0.11", "sleep 0.1", "sleep 0.3", *options).data
    assert set(data["fastest"]) == {"sleep 0.1", "sleep 0.11"}
    assert data["asked_within"] == pytest.approx(0.1)
    assert (data["delta"], data["warmup"], data["run"]["seed"]) == (0.2, 3, 4)
    assert len(timed) == data["run"]["n_pulls"] + 9


def test_names_and_shell(call: Calls, timed: list[tuple[str, ...]]) -> None:
    done = call("time", "sleep 0.1", "sleep 0.2 | cat", "--shell", "-n", "plain", "--command-name", "piped")
    assert "plain" in done.words
    assert "sleep" not in done.words
    assert timed[1] == ("/bin/sh", "-c", "sleep 0.2 | cat")


def test_the_result_is_written_to_a_file(call: Calls, timed: list[tuple[str, ...]]) -> None:
    done = call("time", "sleep 0.1", "sleep 0.2", "--export-json", "found.json")
    data = json.loads((call.folder / "found.json").read_text())
    assert data["fastest"] == ["sleep 0.1"]
    assert len(data["results"][0]["times"]) == data["results"][0]["n_runs"]
    assert done.out.startswith(" ")
    assert timed


def test_a_budget_ends_a_run_which_goes_on_later(call: Calls, timed: list[tuple[str, ...]]) -> None:
    words = ["time", "sleep 1", "sleep 1.0", "--within", "0.001", "--store", "runs.db"]
    done = call(*words, "--budget", "30")
    assert done.status == 3
    assert "Asked: 0.1 %, but the budget was used up." in done.words
    assert "To resume, without a budget" in done.err
    before = len(timed)
    done = call(*words, "--budget", "50")
    assert "50 timings in 25 blocks" in done.words
    assert len(timed) == before + 20 + 2  # it is warmed up again
    done = call("time", "sleep 1", "sleep 2", "--within", "0.001", "--store", "runs.db")
    assert done.status == 2
    assert "--name timing-2" in done.err


def test_ctrl_c_prints_what_is_certified(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, rng = count(), np.random.default_rng(2)

    def seconds(_: Any) -> float:
        if next(numbers) == 51:
            signal.raise_signal(signal.SIGINT)
        return math.exp(rng.normal(0, 0.02))

    monkeypatch.setattr(CommandTimer, "__call__", seconds)
    done = call("time", "true", "sleep 1", "--within", "0.0001", "--store", "runs.db")
    assert done.status == 130
    assert "slower than the fastest. Asked: 0.01 %, but the run was interrupted." in done.words
    assert "50 timings in 25 blocks" in done.words
    assert "To resume:\n" in done.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["true"], 2, "two or more"),
        (["true", "true"], 2, "--command-name"),
        (["true", "sleep 1", "-n", "one"], 2, "2 commands but 1 name ("),
        (["true", "no-such-program"], 2, "no-such-program"),
        (["true", "no-such-program | cat"], 2, "--shell"),
        (["true", "sleep 1", "--within", "0"], 2, "within"),
        (["true", "sleep 1", "--within", "two%"], 2, "'--within'"),
        (["true", "sleep 1", "--within", "nan%"], 2, "'--within'"),
        (["true", "false"], 4, "warm-up run of false failed"),
    ],
)
def test_mistakes_are_explained(call: Calls, words: list[str], status: int, said: str) -> None:
    done = call("time", *words)
    assert done.status == status
    assert said in done.err


def drifting(monkeypatch: pytest.MonkeyPatch, change: float) -> None:
    """The second of two programs becomes slower, by this share in each block."""
    rng, n_timed = np.random.default_rng(3), count()

    def seconds(timer: CommandTimer) -> float:
        made = next(n_timed) // 2
        slower = 1.005 * (1 + change) ** made if timer.argv[-1] == "2" else 1.0
        return slower * math.exp(rng.normal(0, 0.001))

    monkeypatch.setattr(CommandTimer, "__call__", seconds)


def test_an_answer_that_the_times_contradict_is_not_certified(
    call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["time", "sleep 1", "sleep 2", "--store", "runs.db"]
    drifting(monkeypatch, 0.004)
    done = call(*words, "--export-json", "found.json")
    assert "The notes contradict the assumptions. If the assumptions held, with probability" in done.words
    assert "So the answer is not certified." in done.words
    assert "the ratio of sleep 2 and sleep 1 changes" in done.words
    assert done.status == 3
    assert "another name with --name" in done.err
    data = json.loads((call.folder / "found.json").read_text())
    assert (data["is_certified"], data["contradictions"]) == (False, ["trend", "correlation"])
    call.write("sleeps.toml", FILE.replace('names = ["0.1", "0.12", "0.3"]', 'names = ["1", "2"]'))
    drifting(monkeypatch, 0.01)
    done = call("run", "sleeps.toml", "--json")
    assert done.status == 3
    assert "trend" in done.data["timing"]["contradictions"]
    assert not done.data["timing"]["is_certified"]


def test_failures_can_be_ignored(call: Calls) -> None:
    done = call("time", "true", "false", "--ignore-failure", "--budget", "16")
    assert done.status in {0, 3}
    assert "16 timings in 8 blocks" in done.words


# --- problem files ------------------------------------------------------------------------------------------


def test_a_problem_file_about_times(call: Calls, timed: list[tuple[str, ...]]) -> None:
    call.write("sleeps.toml", FILE)
    done = call("run", "sleeps.toml")
    assert done.status == 0
    assert "With probability at least 95 %, 0.1 is" in done.words
    assert "warm-up" in done.words
    assert timed[:3] == [("sleep", "0.1"), ("sleep", "0.12"), ("sleep", "0.3")]
    assert "result read from" in call("run", "sleeps.toml").words
    assert call("run", "sleeps.toml", "--json").data["problem"]["goal"] == "minimise"
    done = call("run", "sleeps.toml", "--workers", "2", "--name", "other")
    assert done.status == 2
    assert "one thread" in done.err


def test_a_file_takes_columns_and_options(call: Calls) -> None:
    call.write("arms.csv", "name,program,level\nfast,true,1\nslow,sleep,9\n")
    text = FILE.replace('names = ["0.1", "0.12", "0.3"]', 'arms = "arms.csv"')
    more = 'warmup = 2\nignore_failure = true\nenv = { PLACE = "x" }\n'
    call.write("arms.toml", text.replace('["sleep", "{name}"]', '["{program}", "-{level}"]') + more)
    found = read_problem_file(call.folder / "arms.toml")
    assert isinstance(found.source, TimingSource)
    assert found.source.warmup == 2
    timers: Any = found.source.timers
    assert [timer.argv for timer in timers] == [("true", "-1"), ("sleep", "-9")]
    assert all(timer.ignore_failure and timer.env == {"PLACE": "x"} for timer in timers)
    assert found.problem.is_lockstep
    assert found.problem.epsilon == pytest.approx(math.log(1.05))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("within = 0.05", "within = 0", "within"),
        ("within = 0.05", "", "either `within`"),
        ("within = 0.05", "within = 0.05\nepsilon = 0.1", "either `within`"),
        ("within = 0.05", 'within = 0.05\nnoise = "gaussian"', "omit `noise`"),
        ("within = 0.05", 'within = 0.05\ngoal = "maximise"', "omit `goal`"),
        ("[measure]", "[items]\nn = 5\n[measure]", "omit [items]"),
        ('command = ["sleep", "{name}"]', "", "`command`"),
        ('"{name}"]', '"{seed}"]', "{seed}"),
        ('"{name}"]', '"{name}"]\nturns = 2', "turns"),
        ('"{name}"]', '"{name}"]\nwarmup = -1', "warmup"),
        ('"sleep"', '"no-such-program"', "no-such-program"),
        ('kind = "timing"', 'kind = "command"', "`within` is for times"),
    ],
)
def test_wrong_files_about_times_are_explained(call: Calls, old: str, new: str, said: str) -> None:
    call.write("wrong.toml", FILE.replace(old, new))
    done = call("run", "wrong.toml")
    assert done.status == 2
    assert said in done.err


def test_epsilon_may_be_given_as_a_difference_of_logarithms(call: Calls) -> None:
    call.write("sleeps.toml", FILE.replace("within = 0.05", "epsilon = 0.1"))
    assert read_problem_file(call.folder / "sleeps.toml").problem.epsilon == 0.1
