"""Input that nobody should give: it is refused in a sentence, soon, and nothing is changed.

`test_mutated_input` mutates valid files and options at random, with a seed. A longer run:

    SHORTLIST_FUZZ=10000 .venv/bin/python -m pytest tests/cli/test_hostile_input.py -k mutated
"""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.noise import bernoulli, bounded
from shortlist.session.worker_names import checked_worker
from tests.cli.calling import SIMULATED, Calls
from tests.cli.fuzzing import Fuzzer
from tests.questions import unknown

HUGE = 10**5000  # more digits than Python prints
SMALL = ["-n", "6", "-m", "2", "--epsilon", "2.0"]
QUICK = ["--instance", "equal", *SMALL, "--strategy", "wnelim"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["plan", "--instance", "equal", "-n", "1000000000000"], "1 or more and at most 100,000,000"),
        (["plan", "--instance", "random", "-n", "1" + "0" * 30], "1 or more and at most 100,000,000"),
        (["plan", "--instance", "illustrative-" + "9" * 5000], "there is no instance"),
        (["plan", "--instance", "x" * 100_000], "use one of: equal, linear"),
        (["simulate", *QUICK, "--replications", "1" + "0" * 30], "1 or more and at most 100,000,000"),
        (["simulate", *QUICK, "--seed", "-1"], "`seed` is -1"),
        (["simulate", *QUICK, "--delta", "1e-320"], "`delta` is 1e-320; it must be 1e-50 or more"),
        (["simulate", *QUICK, "--delta", "nan"], "`delta` is nan"),
        (["bench", *QUICK, "--replications", "1" + "0" * 30], "1 or more and at most 100,000,000"),
        (["doctor", "sim.toml", "--pulls", "1" + "0" * 30], "2 or more and at most 10,000,000"),
        (["run", "sim.toml", "--workers", "1" + "0" * 30], "`workers`"),
        (["run", "sim.toml", "--timeout", "nan"], "`timeout` is nan"),
        (["run", "sim.toml", "--name", "x" * 1000], "has 1,000 letters; it must have at most 200"),
        (["plot", "scaling", "--json", "-m", "1" + "0" * 30], "1 or more and at most 100,000,000"),
        (["plot", "heterogeneity", "--json", "-n", "1" + "0" * 30], "2 or more and at most 100,000,000"),
        (["plot", "epsilon", "--json", "-n", "1" + "0" * 30], "1 or more and at most 100,000,000"),
        (["serve", "--port", "0", "--rate", "inf"], "--rate"),
        (["serve", "--port", "0", "--rate", "nan"], "--rate"),
        (["serve", "--port", "0", "--patience", "nan"], "--patience"),
        (["ask", "sim", "--worker", "a" * 100_000], "1 to 200 printable characters"),
        (["ask", "sim", "--worker", "a\nb"], "printable characters"),
        (["ask", "sim", "--worker", "\u202eann"], "printable characters"),
        (["tell", "sim", "sim.toml", "--worker", "\udcff"], "printable characters"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_absurd_options_are_refused(call: Calls, command: list[str], said: str) -> None:
    call.write("sim.toml", SIMULATED)
    done = call(*command)
    assert done.status == 2
    assert said in done.err
    assert len(done.err) < 5000


def test_a_store_whose_name_is_no_text_is_used_and_shown(call: Calls) -> None:
    call.write("sim.toml", SIMULATED)
    for command in (["run", "sim.toml"], ["list"], ["status", "sim"], ["begin", "sim.toml"]):
        done = call(*command, "--store", "\udcff.db")
        assert done.status == 0, done
    assert os.fsencode("\udcff.db") in os.listdir(b".")


def test_a_run_whose_name_is_no_text_is_found_nowhere_and_a_damaged_name_is_called_so(trial: Calls) -> None:
    for command in (["status"], ["ask"], ["report"], ["tell"]):
        sheet = ["trial.toml"] if command == ["tell"] else []
        done = trial(*command, "trial\udcff", *sheet)
        assert (done.status, done.out) == (2, "")
        assert "there is no run 'trial\\udcff'" in done.err
    with closing(sqlite3.connect(trial.folder / "shortlist.db")) as connection:
        connection.execute("UPDATE shortlist_runs SET name = CAST(x'747269ff' AS TEXT)")
        connection.commit()
    (found,) = trial("list", "--json").data
    assert found["state"] == "damaged"
    assert "is damaged" in trial("list").words
    assert trial("prune", "tri\udcff", "--yes").status == 0
    assert trial("list", "--json").data == []


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("m", {"m": HUGE}),
        ("m", {"m": -HUGE}),
        ("epsilon", {"epsilon": HUGE}),
        ("delta", {"delta": HUGE}),
        ("variances", {"variances": [1.0, HUGE]}),
        ("names", {"names": ["a", "x" * 10**6 + "\ud800"]}),
        ("names", {"names": 5}),
        ("noise", {"noise": HUGE}),
        ("goal", {"goal": "x" * 10**6}),
    ],
)
def test_absurd_questions_are_invalid_problems(what: str, arguments: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"m": 1, "epsilon": 0.5, "delta": 0.1, "variances": [1.0, 1.0]}
    with pytest.raises(sl.InvalidProblem, match=what) as caught:
        sl.Problem(**usual | arguments)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 10**12},
        {"n": HUGE},
        {"n": 2, "pilot": HUGE},
        {"n": 2.0},
        {"names": 5},
        {"names": ["a"], "n": HUGE},
    ],
)
def test_absurd_unknown_questions_are_invalid_problems(arguments: dict[str, Any]) -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        unknown(m=1, epsilon=0.5, delta=0.1, **arguments)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("limit", [HUGE, -HUGE, float("nan"), np.inf, "1"], ids=range(5))
def test_absurd_bounds_and_seeds_are_invalid_problems(limit: Any) -> None:
    for call in (
        lambda: bernoulli(2, at_least=limit),
        lambda: bounded(0, limit, 2),
        lambda: bounded(0, 1, limit),
        lambda: sl.Session(sl.Problem(1, 0.5, 0.1, [1.0, 1.0]), seed=limit),
        lambda: sl.Session(sl.Problem(1, 0.5, 0.1, [1.0, 1.0])).ask(limit),
        lambda: sl.Session(sl.Problem(1, 0.5, 0.1, [1.0, 1.0])).ask(lease=limit),
        lambda: sl.simulate(sl.Problem(1, 0.5, 0.1, [1.0, 1.0]), [0.0, 1.0], replications=limit),
        lambda: sl.Processes(limit),
    ):
        with pytest.raises(sl.InvalidProblem):
            call()


@pytest.mark.parametrize("worker", ["", "  ", "a\nb", "\x1b[2J", "\ud800", "\u200f", "a" * 201, 5, b"ann"])
def test_absurd_names_of_workers_are_refused_at_every_door(worker: Any) -> None:
    session = sl.Session(sl.Problem(1, 0.5, 0.1, [1.0, 1.0]), "wnelim")
    with pytest.raises(sl.InvalidProblem, match="`worker` is"):
        session.ask(worker=worker)
    if worker != "":  # in `tell` it stands for nobody in particular
        with pytest.raises(sl.InvalidProblem, match="`worker` is"):
            session.tell(session.ask(), means=[0.0, 0.0], worker=worker)
    assert session.n_pulls == 0
    assert checked_worker("Ann Müller, rig 2") == "Ann Müller, rig 2"


# --- surroundings ---------------------------------------------------------------------------------------


def in_shell(folder: Path, command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command line, in which `shortlist` stands for this one."""
    program = f'shortlist() {{ {sys.executable} -m shortlist "$@"; }}; {command}'
    unset = {"SHORTLIST_STORE", "PYTHONUNBUFFERED"}
    env = {key: value for key, value in os.environ.items() if key not in unset} | variables
    return subprocess.run(
        ["bash", "-c", program], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.slow
def test_output_that_nobody_takes_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "sim.toml").write_text(SIMULATED)
    done = in_shell(tmp_path, "shortlist run sim.toml | true; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == ("4\n", "")
    done = in_shell(tmp_path, "shortlist export sim > /dev/full; echo $?")
    assert done.stdout == "4\n"
    assert done.stderr == "Error: the output could not be written: No space left on device.\n"
    done = in_shell(tmp_path, "shortlist list >&- 2>&-; echo $?")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.slow
def test_a_poor_terminal_is_no_trouble(tmp_path: Path) -> None:
    name = '"M\\u00fcller \\u03a9"'
    (tmp_path / "sim.toml").write_text(SIMULATED.replace("scales", f'names = [{name}, "b", "c"]\nscales'))
    poor = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    command = "shortlist run sim.toml && shortlist status sim && shortlist export sim && shortlist list"
    done = in_shell(tmp_path, command, COLUMNS="1", HOME="/nowhere", **poor)
    assert done.returncode == 0, done.stderr
    assert "Müller Ω" in done.stdout


# --- mutations ------------------------------------------------------------------------------------------


def test_mutated_input(call: Calls) -> None:
    fuzzer = Fuzzer(call, seed=int(os.environ.get("SHORTLIST_FUZZ_SEED", "1")))
    for _ in range(int(os.environ.get("SHORTLIST_FUZZ", "60"))):
        fuzzer.try_one()
    assert not fuzzer.failures, "\n\n".join(fuzzer.failures[:40])
