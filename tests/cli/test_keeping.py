"""`copy` and `prune`: logs moved to other stores, and removed."""

import csv
import os
import pty
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

import shortlist as sl
from shortlist.store import Suspended
from tests.cli.calling import QUESTION, SIMULATED, Calls
from tests.store.test_damage import lose_from_index

pytestmark = pytest.mark.slow


@pytest.fixture
def runs(call: Calls) -> Calls:
    """The command line, where the runs `done` and `trial` are kept, of which the first has ended."""
    call.write("done.toml", SIMULATED)
    call("run", "done.toml")
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    return call


def names(call: Calls, store: str = "shortlist.db") -> list[str]:
    return [one["run"] for one in call("list", "--json", "--store", store).data]


# --- copy -----------------------------------------------------------------------------------------


def test_all_runs_are_copied_and_go_on(runs: Calls) -> None:
    done = runs("copy", "shortlist.db", "other.db")
    assert done.status == 0
    assert "done: " in done.out
    assert "events copied and compared" in done.out
    assert names(runs, "other.db") == ["done", "trial"]
    assert runs("export", "done", "--store", "other.db").out == runs("export", "done").out
    assert runs("ask", "trial", "--store", "other.db").status == 0
    again = runs("copy", "shortlist.db", "other.db", "done")
    assert again.out == "done: exists already, identical\n"


def test_a_backup_is_brought_up_to_date(runs: Calls) -> None:
    runs("copy", "shortlist.db", "backup.db")
    runs("ask", "trial", "--worker", "ann")
    done = runs("copy", "shortlist.db", "backup.db")
    assert (done.status, done.err) == (0, "")
    assert done.out == "done: exists already, identical\ntrial: 2 events added, all 3 compared\n"
    assert runs("replay", "trial", "--store", "backup.db").status == 0

    assert runs("copy", "shortlist.db", "backup.db", "--json").data == {
        "copied": {"done": 0, "trial": 0},
        "errors": {},
    }


def test_runs_go_on_in_postgresql_and_back(runs: Calls, postgres: str) -> None:
    assert runs("copy", "shortlist.db", postgres).status == 0
    assert names(runs, postgres) == ["done", "trial"]
    assert runs("export", "done", "--store", postgres).out == runs("export", "done").out
    assert "Finished on" in runs("run", "done.toml", "--store", postgres).out
    assert runs("run", "done.toml", "--store", postgres, "--seed", "1").status == 0
    rows = list(csv.DictReader(runs("ask", "trial", "--csv", "--store", postgres).out.splitlines()))
    runs.write("answers.csv", f"ticket,mean\n{rows[0]['ticket']},0.5\n")
    assert runs("tell", "trial", "answers.csv", "--store", postgres).status == 0
    assert runs("replay", "done-seed1", "--store", postgres).status == 0
    assert runs("copy", postgres, "back.db").status == 0
    assert runs("status", "trial", "--json", "--store", "back.db").data["n_pulls"] == 4
    assert runs("prune", "trial", "--yes", "--store", postgres).status == 0
    assert names(runs, postgres) == ["done", "done-seed1"]


def test_some_runs_are_copied(runs: Calls) -> None:
    data = runs("copy", "shortlist.db", "other.db", "trial", "trial", "--json").data
    assert data == {"copied": {"trial": 1}, "errors": {}}
    assert names(runs, "other.db") == ["trial"]


def test_another_run_of_that_name_is_left_alone(runs: Calls) -> None:
    runs("begin", "trial.toml", "--store", "other.db")
    before = runs("status", "trial", "--json", "--store", "other.db").data
    done = runs("copy", "shortlist.db", "other.db")
    assert done.status == 4
    assert "Error: trial: The target already has a run 'trial'" in done.err
    assert names(runs, "other.db") == ["trial", "done"]  # the other one was copied
    assert runs("status", "trial", "--json", "--store", "other.db").data == before
    assert runs("copy", "shortlist.db", "other.db", "--json").data["errors"].keys() == {"trial"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.db", "other.db"], "there is no store none.db"),
        (
            ["shortlist.db", "other.db", "third"],
            "there is no run 'third' in shortlist.db; nothing was copied",
        ),
        (["shortlist.db", ":memory:"], "would be lost when this command ends"),
        ([":memory:", "other.db"], "nothing is saved in :memory:"),
    ],
)
def test_mistakes_when_copying(runs: Calls, words: list[str], said: str) -> None:
    done = runs("copy", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert not (runs.folder / "other.db").exists()


def test_a_copy_is_held_against_the_original(runs: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(source: sl.store.Store, target: sl.store.Store, run: str) -> int:
        target.append(run, 0, lambda *_: [Suspended("not what was there")])
        return 1

    monkeypatch.setattr("shortlist.store.copy_run", spoilt)
    done = runs("copy", "shortlist.db", "other.db", "trial")
    assert done.status == 4
    assert "Record 1 of the copy of run 'trial' differs from the original" in done.err


def test_a_damaged_store_is_named_and_what_can_be_read_is_copied(runs: Calls) -> None:
    runs("begin", "trial.toml", "--name", "third")
    path = runs.folder / "shortlist.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM shortlist_events WHERE run = 1 AND number > 2")
    lose_from_index(path, "trial")
    done = runs("copy", "shortlist.db", "other.db")
    assert done.status == 4
    assert "shortlist.db is damaged (" in done.err
    assert "Error: done: The last records of run 'done' are missing" in done.err
    assert "Error: trial: Run 'trial' is in the list of runs, but cannot be found" in done.err
    assert done.out == "third: 1 event copied and compared\n"
    assert "is damaged (" in runs("copy", "shortlist.db", "other.db", "--json").data["damage"]
    for words in (["status", "done"], ["export", "done"]):
        done = runs(*words)
        assert (done.status, done.out) == (4, "")
        assert "record 3 does not exist" in " ".join(done.err.split())
    assert [one["state"] for one in runs("list", "--json").data] == ["damaged", "damaged", "open"]


# --- prune ----------------------------------------------------------------------------------------


def test_named_runs_are_removed(runs: Calls) -> None:
    done = runs("prune", "done", "--yes")
    assert done.status == 0
    assert done.out.splitlines()[-1] == "1 run removed from shortlist.db."
    assert names(runs) == ["trial"]


def test_a_dry_run_removes_nothing(runs: Calls) -> None:
    done = runs("prune", "--finished", "--dry-run", "--yes")
    assert "done" in done.out
    assert "trial" not in done.out
    assert done.out.endswith("Nothing was removed.\n")
    data = runs("prune", "--finished", "--dry-run", "--json").data
    assert data == {"removed": [], "chosen": ["done"]}
    assert names(runs) == ["done", "trial"]


def test_old_and_finished_runs_are_removed(runs: Calls) -> None:
    at = time.time() - 40 * 86400
    with closing(sl.open_store("shortlist.db", clock=lambda: at)) as store:
        problem = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0])
        sl.Session(problem, store=store, name="old")
        sl.select(
            lambda arm, count, rng: rng.normal(arm, 1.0, count), problem, store=store, name="old and done"
        )
    assert (
        runs("prune", "--older-than", "41d", "--yes").out
        == "No run in shortlist.db matches; nothing was removed.\n"
    )
    both = runs("prune", "--older-than", "30d", "--finished", "--yes", "--json").data
    assert both["removed"] == ["old and done"]
    assert runs("prune", "trial", "done", "--finished", "--yes", "--json").data["removed"] == ["done"]
    assert runs("prune", "--older-than", "30d", "--yes", "--json").data["removed"] == ["old"]
    assert names(runs) == ["trial"]


def test_a_damaged_run_can_be_removed_by_name(runs: Calls) -> None:
    at = time.time() - 40 * 86400
    with closing(sl.open_store("shortlist.db", clock=lambda: at)) as store:
        store.append("bad", 0, lambda *_: [Suspended("no question")])
    assert runs("prune", "--finished", "--older-than", "30d", "--yes", "--json").data["chosen"] == []
    assert runs("prune", "bad", "--yes").status == 0
    assert names(runs) == ["done", "trial"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no runs were chosen"),
        (["third", "done", "--yes"], "there is no run 'third' in the store. Existing runs: done, trial."),
        (["--older-than", "long", "--yes"], "use the form 90s, 15min, 24h or 30d"),
        (["done", "--yes", "--store", "none.db"], "there is no store none.db"),
    ],
)
def test_mistakes_when_pruning(runs: Calls, words: list[str], said: str) -> None:
    done = runs("prune", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert names(runs) == ["done", "trial"]
    assert not (runs.folder / "none.db").exists()


def test_nothing_is_removed_where_nobody_can_confirm(runs: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        done = runs("prune", "done")
    assert done.status == 2
    assert "Give --yes" in done.err
    assert names(runs) == ["done", "trial"]


@pytest.mark.parametrize(("answer", "left"), [("n\n", ["done", "trial"]), ("y\n", ["trial"])])
def test_on_a_terminal_one_is_asked(runs: Calls, answer: str, left: list[str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "shortlist", "prune", "done"]
    with subprocess.Popen(
        command, cwd=runs.folder, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        os.write(ours, answer.encode())
        out, err = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, err
    assert "Remove this run permanently? [y/N]" in err
    assert ("Nothing was removed." in out) == (left[0] == "done")
    assert names(runs) == left
