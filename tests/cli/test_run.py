"""`shortlist run` with a store: it goes on where it stopped, and refuses what has changed."""

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.cli import resuming
from shortlist.files.problem_file import read_problem_file
from shortlist.report.progress import Account
from shortlist.session.lease_rules import holdings
from shortlist.store import Arranged
from tests.cli.calling import BY_AWK, QUESTION, SIMULATED, Calls

BY_FUNCTION = """
[measure]
kind = "function"
function = "score.py:measure"
"""
SCORE = """
import pathlib, signal

calls = pathlib.Path(__file__).with_name("calls")

def measure(arm, count, rng):
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    EXTRA
    return (rng.random(count) < 0.2 + 0.3 * arm).astype(float)
"""


def scored(call: Calls, extra: str = "pass") -> str:
    call.write("score.py", SCORE.replace("EXTRA", extra))
    return call.write("trial.toml", QUESTION + BY_FUNCTION)


@pytest.mark.parametrize("where", ["local", "tcp://127.0.0.1:9"])
def test_a_run_that_dask_cannot_measure_is_not_saved(
    call: Calls, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = call("run", call.write("lab.toml", SIMULATED), "--dask", where)
    assert (done.status, done.out) == (2, "")
    assert "Dask is not installed. Use: pip install 'distributed" in " ".join(done.err.split())
    assert not (call.folder / "shortlist.db").exists()


def n_calls(call: Calls) -> int:
    return len((call.folder / "calls").read_text())


# --- going on -------------------------------------------------------------------------------------


def test_the_same_command_again_answers_from_the_store(call: Calls) -> None:
    file = scored(call)
    first = call("run", file)
    assert "Run trial is saved in shortlist.db.\n" in first.out
    made = n_calls(call)
    again = call("run", file)
    assert again.status == 0
    assert "Finished on " in again.out
    assert "; result read from shortlist.db.\n" in again.out
    assert again.out.splitlines()[3:] == first.out.splitlines()[3:]
    assert n_calls(call) == made
    assert call("run", file, "--budget", "1").status == 0  # it is there, so it costs nothing


def test_a_run_goes_on_after_its_budget(call: Calls) -> None:
    file = scored(call)
    whole = call("run", file, "--store", ":memory:", "--json").data
    (call.folder / "calls").unlink()
    short = call("run", file, "--budget", "11", "--store", "a b.db")
    assert short.status == 3
    assert short.err == (
        "To resume, without a budget or with a larger one:\n  shortlist run trial.toml --store 'a b.db'\n"
    )
    done = call(*shlex.split(short.err.splitlines()[-1])[1:])
    assert "Run trial resumes after 8 pulls; saved in a b.db." in done.out
    assert call("run", file, "--store", "a b.db", "--json").data == whole
    assert n_calls(call) == whole["n_pulls"]  # no ticket has more pulls than turns


def test_a_failed_measurement_suspends_the_run(call: Calls) -> None:
    file = scored(call, "if count == 4 and arm == 2: raise OSError('the sensor is offline')")
    done = call("run", file, "--retries", "0", "--turns", "1")
    assert done.status == 4
    assert "the sensor is offline" in done.err
    assert done.err.endswith(
        "The run had made 8 pulls. To resume:\n  shortlist run trial.toml --retries 0 --turns 1\n"
    )
    assert "Suspended: measuring east, far" in call("status", "trial").words
    assert call("list", "--json").data[0]["state"] == "suspended"
    for name in [name for name in sys.modules if "score" in name]:
        del sys.modules[name]
    scored(call)
    made = n_calls(call)
    assert call("run", file).status == 0
    assert call("status", "trial", "--json").data["suspended"] is None
    answers = call("export", "trial", "--json").data["answers"]
    assert n_calls(call) - made == len(answers) - 2  # two had been told


def test_an_interrupted_run_says_how_to_go_on(call: Calls) -> None:
    file = scored(call, "if not calls.read_text()[3:]: signal.raise_signal(signal.SIGINT)")
    done = call("run", file, "--seed", "4")
    assert done.status == 130
    assert "To resume:\n  shortlist run trial.toml --seed 4\n" in done.err
    assert call("list", "--json").data[0]["run"] == "trial-seed4"


def test_an_interrupted_run_without_a_cap_names_its_pulls_alone(call: Calls) -> None:
    file = scored(call, "if not calls.read_text()[3:]: signal.raise_signal(signal.SIGINT)")
    assert "of at most" in call("run", file, "--name", "capped").err
    (call.folder / "calls").write_text("")
    done = call("run", file, "--strategy", "lucb", "--name", "free")
    assert done.status == 130
    assert "any number" not in done.err
    assert re.search(r"The run had made \d+ pulls?\.", done.words + " ".join(done.err.split()))


@pytest.mark.slow
def test_the_command_is_given_as_it_was_typed(call: Calls) -> None:
    file = scored(call)
    command = [sys.executable, "-m", "shortlist", "run", file, "--budget=5"]
    done = subprocess.run(command, cwd=call.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    line = done.stderr.splitlines()[-1].strip()
    assert line == shlex.join([sys.executable, "-m", "shortlist", "run", file])
    again = subprocess.run(line, shell=True, cwd=call.folder, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "resumes after 0 pulls" not in again.stdout


def test_a_script_on_the_path_goes_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "shortlist"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "run", "my file.toml", "--budget", "5"])
    monkeypatch.setenv("PATH", os.defpath)
    assert resuming.this_command() == shlex.join([str(script), "run", "my file.toml", "--budget", "5"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resuming.this_command("--budget") == "shortlist run 'my file.toml'"


def test_passwords_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://me:secret@host/lab?password=hidden&x=1"
    monkeypatch.setattr(sys, "argv", ["shortlist", "run", "x.toml", "--store", address])
    assert resuming.this_command() == 'shortlist run x.toml --store "$SHORTLIST_STORE"'
    monkeypatch.setattr(sys, "argv", ["shortlist", "run", "x.toml", f"--store={address}"])
    assert resuming.this_command() == 'shortlist run x.toml --store="$SHORTLIST_STORE"'


# --- names and stores -----------------------------------------------------------------------------


def test_other_seeds_and_strategies_are_other_runs(call: Calls) -> None:
    call.write("trial.toml", SIMULATED)
    for options in ([], ["--seed", "7"], ["--strategy", "wnelim"], ["--strategy", "wnelim", "--seed", "7"]):
        assert call("run", "trial.toml", *options).status == 0
    call("run", "trial.toml", "--name", "my own", "--strategy", "auto", "--seed", "0")
    names = [one["run"] for one in call("list", "--json").data]
    assert names == ["trial", "trial-seed7", "trial-wnelim", "trial-wnelim-seed7", "my own"]


def test_the_store_may_come_from_the_environment(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    call.write("trial.toml", SIMULATED)
    monkeypatch.setenv("SHORTLIST_STORE", "elsewhere.db")
    assert "saved in elsewhere.db" in call("run", "trial.toml").out
    assert call("status", "trial").status == 0
    assert call("status", "trial", "--store", "shortlist.db").status == 2
    assert not (call.folder / "shortlist.db").exists()


def test_nothing_is_kept_in_memory(call: Calls) -> None:
    call.write("trial.toml", SIMULATED)
    done = call("run", "trial.toml", "--store", ":memory:")
    assert done.status == 0
    assert "This run is not saved." in done.out
    short = call("run", "trial.toml", "--store", ":memory:", "--budget", "3")
    assert (short.status, short.err) == (3, "")
    assert [path.name for path in call.folder.iterdir()] == ["trial.toml"]


@pytest.mark.parametrize(
    ("where", "status", "said"),
    [
        (".", 4, "is a folder"),
        ("nowhere/x.db", 4, "there is no folder"),
        ("trial.toml", 4, "is not a store of Shortlist"),
        ("mysql://host/x", 4, "not supported"),
        ("other.db", 4, "database of another program"),
    ],
)
def test_a_store_that_cannot_be_used_is_status_4(call: Calls, where: str, status: int, said: str) -> None:
    call.write("trial.toml", SIMULATED + "# " + 600 * "x")
    with closing(sqlite3.connect(call.folder / "other.db")) as other:
        other.execute("CREATE TABLE mine (x)")
    done = call("run", "trial.toml", "--store", where)
    assert (done.status, "selected" in done.out) == (status, False)
    assert said in done.err


def test_trouble_with_the_store_during_a_run_is_status_4(call: Calls) -> None:
    file = scored(call, "if calls.read_text()[5:]: pathlib.Path('gone').mkdir(); spoil()")
    text = (call.folder / "score.py").read_text()
    call.write(
        "score.py",
        text + "\ndef spoil():\n    import shortlist, contextlib\n"
        "    with contextlib.closing(shortlist.open_store('shortlist.db')) as store:\n"
        "        store.remove('trial')\n",
    )
    done = call("run", file, "--retries", "0")
    assert done.status == 4
    assert "the run was removed" in done.err
    assert done.err.endswith(" To resume:\n  shortlist run trial.toml --retries 0\n")


# --- changes --------------------------------------------------------------------------------------


def test_a_changed_question_is_refused_field_by_field(call: Calls) -> None:
    call.write("trial.toml", SIMULATED)
    call("run", "trial.toml")
    log = call("export", "trial").out
    call.write("trial.toml", SIMULATED.replace("0.5", "0.25").replace("[1.0, 1.0, 1.0]", "[1.0, 2.0, 1.0]"))
    done = call("run", "trial.toml")
    assert done.status == 2
    assert "epsilon was 0.5, is 0.25" in done.err
    assert "variance of arm-1 was 1.0, is 4.0" in done.err
    assert done.err.endswith("To start another run:\n  shortlist run trial.toml --name trial-2\n")
    assert call("export", "trial").out == log
    other = call("run", "trial.toml", "--name", "trial", "--seed", "3")
    assert other.status == 2
    assert "seed was 0, is 3" in other.err
    assert other.err.endswith("To start another run:\n  shortlist run trial.toml --seed 3 --name trial-2\n")


def test_a_larger_epsilon_suggests_no_other_run(call: Calls) -> None:
    call.write("trial.toml", SIMULATED)
    call("run", "trial.toml")
    call.write("trial.toml", SIMULATED.replace("0.5", "0.75"))
    done = call("run", "trial.toml")
    assert done.status == 2
    assert "no new run is needed. An epsilon of 0.75 is certified already, for " in done.err
    assert "--name" not in done.err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("means = [0.0, 1.0, 2.0]", "means = [0.0, 1.5, 2.0]", "measure: digests: means was"),
        (
            'kind = "simulated"',
            'kind = "simulated"\nrewards = "two-point"',
            "rewards was gaussian, is two-point",
        ),
    ],
)
def test_a_changed_simulation_is_refused(call: Calls, before: str, after: str, said: str) -> None:
    call.write("trial.toml", SIMULATED)
    call("run", "trial.toml", "--budget", "3")
    call.write("trial.toml", SIMULATED.replace(before, after))
    done = call("run", "trial.toml")
    assert done.status == 2
    assert said in done.err
    assert done.err.endswith("To start another run:\n  shortlist run trial.toml --name trial-2\n")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("timeout = 30", ""),
        ('env = { A = "1" }', ""),
        ('folder = "."', ""),
        ('output = "json"', "measure: output was lines, is json"),
    ],
)
def test_a_command_may_change_in_what_does_not_matter(call: Calls, more: str, said: str) -> None:
    command = (
        'kind = "command"\ncommand = ["awk", "BEGIN { for (i = 0; i < {count}; i++) print ({arm} == 2) }"]\n'
    )
    call.write("trial.toml", f"{QUESTION}\n[measure]\n{command}")
    assert call("run", "trial.toml", "--budget", "8").status == 3
    call.write("trial.toml", f"{QUESTION}\n[measure]\n{command}{more}\n")
    done = call("run", "trial.toml")
    assert done.status == (2 if said else 0), done.err
    assert said in done.err


COINS = """
[problem]
m = 1
epsilon = 0.5
delta = 0.1
n = 3
rewards = "bernoulli"

[measure]
kind = "simulated"
means = [0.2, 0.5, 0.8]
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            'n = 3\nrewards = "bernoulli"',
            "variances = [0.25, 0.25, 0.25]",
            "noise was bernoulli, is sub-gaussian; bounds was [0.0, 1.0], is not given",
        ),
        ('kind = "simulated"', 'kind = "simulated"\nrewards = "bernoulli"', ""),
        ('rewards = "bernoulli"', 'noise = "bernoulli"', ""),
        (
            'rewards = "bernoulli"',
            'bounds = [0.0, 1.0]\n[measure]\nrewards = "bernoulli"',
            "rewards was bernoulli, is not given",
        ),
    ],
)
def test_what_holds_is_compared_and_not_what_is_written(
    call: Calls, before: str, after: str, said: str
) -> None:
    call.write("trial.toml", COINS)
    assert call("run", "trial.toml", "--budget", "3").status == 3
    changed = COINS.replace(before, after, 1)
    head, *tails = changed.split("[measure]\n")
    call.write("trial.toml", f"{head}[measure]\n" + "".join(tails))
    done = call("run", "trial.toml")
    assert done.status == (2 if said else 0), done.err
    assert said in done.err


@pytest.mark.parametrize("command", ["run", "begin"])
def test_a_file_means_what_it_meant_when_its_run_began(call: Calls, command: str) -> None:
    call.write("trial.toml", COINS)
    before = sl.Problem(1, 0.5, 0.1, [0.25] * 3, rewards="bernoulli")  # what version 0.1.0 read there
    with sl.Session(before, store=str(call.folder / "shortlist.db"), name="trial") as session:
        most = session.worst_case_pulls
    done = call(command, "trial.toml")
    assert done.status == 0, done.err
    assert (f"at most {most:,} pulls" if command == "run" else "exists already") in done.out
    with sl.Session.resume(str(call.folder / "shortlist.db"), "trial") as session:
        assert session.problem == before
    assert call(command, "trial.toml", "--name", "new").status == 0
    with sl.Session.resume(str(call.folder / "shortlist.db"), "new") as session:
        assert session.problem.rewards == sl.Bernoulli()
    if command == "run":  # today's file does not reproduce the run
        assert "To reproduce: shortlist.select(measure, problem," in call("report", "trial").words
        assert "To reproduce: shortlist run trial.toml" in call("report", "new").words


def test_bounds_may_not_change_even_to_others_of_the_same_width(call: Calls) -> None:
    call.write("trial.toml", QUESTION + BY_AWK)
    assert call("run", "trial.toml", "--budget", "11").status == 3
    call.write("trial.toml", (QUESTION + BY_AWK).replace("[0.0, 1.0]", "[0.5, 1.5]"))
    done = call("run", "trial.toml")
    assert done.status == 2
    assert "another question: bounds was [0.0, 1.0], is [0.5, 1.5]" in done.err


def test_a_default_of_a_table_may_be_written_out(call: Calls) -> None:
    call.write("table.csv", "arm,reward\n" + "north,0\nsouth,1\neast far,1\n")
    question = QUESTION.replace("east, far", "east far")
    measured = '\n[measure]\nkind = "table"\nfile = "table.csv"\n'
    call.write("trial.toml", question + measured)
    assert call("run", "trial.toml").status == 4
    more = 'order = "next"\nlayout = "long"\narm = "arm"\nreward = "reward"\n'
    call.write("trial.toml", question + measured + more)
    assert call("run", "trial.toml").status == 4, "too few rows, as before"


def test_columns_that_a_command_uses_may_not_change(call: Calls) -> None:
    call.write("arms.csv", "name,variance,level,note\nnorth,0.25,0,a\nsouth,0.25,1,b\n")
    measured = '[measure]\nkind = "command"\ncommand = ["awk", "BEGIN { print {level} }"]\n'
    call.write("trial.toml", f'[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.1\narms = "arms.csv"\n{measured}')
    assert call("run", "trial.toml", "--budget", "2").status == 3
    call.write("arms.csv", "name,variance,level,note\nnorth,0.25,0,c\nsouth,0.25,1,d\n")
    assert call("run", "trial.toml", "--budget", "3").status == 3
    call.write("arms.csv", "name,variance,level,note\nnorth,0.25,0,c\nsouth,0.25,2,d\n")
    done = call("run", "trial.toml")
    assert done.status == 2
    assert "column level was" in done.err


def recorded(call: Calls, rows: int, *, spoil: int | None = None, order: str = "next") -> str:
    rng = np.random.default_rng(1)
    table = (rng.random((60, 3)) < [0.2, 0.5, 0.8]).astype(float)[:rows].T
    if spoil is not None:
        table[0, spoil] = 1 - table[0, spoil]
    np.savez(call.folder / "table.npz", **dict(zip(("north", "south", "east, far"), table, strict=True)))
    measured = f'\n[measure]\nkind = "table"\nfile = "table.npz"\norder = "{order}"\n'
    return call.write("trial.toml", QUESTION + measured)


def test_a_table_may_grow(call: Calls) -> None:
    assert call("run", recorded(call, 6)).status == 4
    assert "Record more rows" in call("status", "trial").words
    done = call("run", recorded(call, 60))
    assert done.status == 0, done.err
    shorter = call("run", recorded(call, 50))
    assert shorter.status == 2
    assert "table: rows was 60, is 50" in shorter.err


def test_rows_by_which_a_table_has_grown_may_not_change_either(call: Calls) -> None:
    assert call("run", recorded(call, 3)).status == 4
    assert call("run", recorded(call, 6)).status == 4
    assert call("run", recorded(call, 6)).status == 4
    rows = [one["settings"]["measure"]["table"]["rows"] for one in arranged(call)]
    assert rows == [3, 6]
    done = call("run", recorded(call, 60, spoil=5))
    assert done.status == 2
    assert "measure: table: digest was" in done.err
    assert call("run", recorded(call, 60)).status == 0


def arranged(call: Calls) -> list[dict[str, Any]]:
    with closing(sl.open_store(call.folder / "shortlist.db")) as store:
        events = [record.event for record in store.read("trial")]
    return [{"settings": event.settings} for event in events if isinstance(event, Arranged)]


@pytest.mark.parametrize("change", [{"spoil": 0}, {"order": "random"}])
def test_a_table_may_not_change(call: Calls, change: dict[str, Any]) -> None:
    order = str(change.get("order", "next"))
    assert call("run", recorded(call, 3, order=order)).status == 4
    done = call("run", recorded(call, 60, **change))
    assert done.status == 2
    assert "measure: table: digest was" in done.err
    assert call("run", recorded(call, 2, order=order)).status == 2


SHARED = '\n[measure]\nkind = "table"\nfile = "table.npy"\n'


def test_rows_that_arms_share_are_drawn_for_each_arm_by_itself(call: Calls) -> None:
    np.save(call.folder / "table.npy", np.repeat([[0.0, 1.0, 0.0, 1.0], [1.0] * 4], [2, 1], axis=0))
    call.write("trial.toml", QUESTION + SHARED)
    assert call("run", "trial.toml").status == 0
    assert arranged(call)[0]["settings"]["measure"]["order"] == "draw"
    for order in ("next", "random"):
        call.write("trial.toml", QUESTION + SHARED + f'order = "{order}"\n')
        for command in (("run", "trial.toml", "--name", order), ("doctor", "trial.toml")):
            done = call(*command)
            assert done.status == 2
            assert f'`order` is "{order}", but each row of the table has a reward for every arm' in done.err


@pytest.mark.parametrize("stated", ["", 'order = "next"\n'])
def test_a_run_that_has_read_shared_rows_in_turn_goes_on_so(call: Calls, stated: str) -> None:
    """As version 0.1.0 did."""
    table = np.random.default_rng(1).random((3, 60)) * [[0.3], [0.6], [1.0]]
    np.save(call.folder / "table.npy", table)
    path = Path(call.write("trial.toml", QUESTION + SHARED + stated))
    asked = read_problem_file(call.folder / path, to_go_on=True)
    old = replace(asked.source, order="next")  # type: ignore[type-var]
    about = {"measure": asked.about | {"order": "next"}}
    with sl.Session(asked.problem, store=str(call.folder / "shortlist.db"), name="trial") as session:
        sl.drive(session, old, about=about, budget=12)
        assert 0 < session.n_pulls <= 12
    done = call("run", "trial.toml")
    assert done.status == 0, done.err
    with sl.Session.resume(str(call.folder / "shortlist.db"), "trial") as session:
        assert session.result.to_dict() == sl.select(old, asked.problem).to_dict()
    call.write("trial.toml", QUESTION + SHARED + 'order = "draw"\n')
    assert "order was next, is draw" in call("run", "trial.toml").err


# --- in company -----------------------------------------------------------------------------------


def test_progress_says_for_whom_it_waits_only_when_it_does() -> None:
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0])
    session = sl.Session(problem, "wnelim", store=sl.open_store(":memory:"))
    account = Account(session)

    def words(now: sl.Session) -> str:
        return account.frame(now, 200)[1]

    session.ask(1, worker="ann")
    assert "waiting" not in words(session)  # the other one is free
    session.ask(1, worker="bob")
    assert "waiting for ann (1 ticket until" in words(session)
    assert "bob (1 ticket until" in words(session)
    session.release("ann")
    assert "waiting" not in words(session)
    session.ask(1, worker="carl", lease=1e-9)
    assert "waiting" not in words(session)  # his time is up
    assert [one.worker for one in holdings(session.history.round, time.time())] == ["bob"]
