"""`shortlist report`, and `run --report`: what a run came to, for others to read."""

import json
import os
import re
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.files.problem_file import read_problem_file
from shortlist.store import Arranged, Record
from tests.cli.calling import QUESTION, SIMULATED, Calls
from tests.report.reading import Strict

BROKEN = """
[measure]
kind = "command"
command = ["sh", "-c", "{}"]
"""


@pytest.fixture
def done(call: Calls) -> Calls:
    """Return the command line, where a run `done` has ended."""
    call.write("done.toml", SIMULATED)
    assert call("run", "done.toml").status == 0
    return call


def test_a_report_has_the_verdict_first(done: Calls) -> None:
    printed = done("report", "done")
    assert printed.status == 0
    lines = printed.out.splitlines()
    assert lines[0] == "done: certified. 1 of 3 arms selected."
    assert lines[1].startswith("Selected: arm-2 (")
    assert "With probability at least 90 %" in printed.words
    assert lines[-2] == (
        "To reproduce: shortlist run done.toml --strategy level-race --seed 0 --store again.db"
    ), "a command is on one line, however narrow the terminal is"


def test_a_problem_file_may_be_called_otherwise_when_a_run_goes_on(call: Calls) -> None:
    call.write("done.toml", SIMULATED)
    assert call("run", "done.toml", "--budget", "3", "--name", "trial").status == 3
    (call.folder / "done.toml").rename(call.folder / "my file.toml")
    assert call("run", "my file.toml", "--budget", "9", "--name", "trial").status == 3
    assert "To resume: shortlist run done.toml --name trial" in call("report", "trial").words
    called = [one.event.settings["file"] for one in _log(call) if isinstance(one.event, Arranged)]
    assert called == ["done.toml"]


def test_a_run_begun_without_a_file_learns_its_name(call: Calls) -> None:
    call.write("trial.toml", SIMULATED)
    asked = read_problem_file(call.folder / "trial.toml")
    with closing(sl.open_store(call.folder / "shortlist.db")) as store:
        session = sl.Session(asked.problem, store=store, name="trial", seed=0)
        sl.drive(session, asked.source, budget=3, about={"measure": asked.about})
    assert "To resume: shortlist run FILE.toml --name trial" in call("report", "trial").words
    assert call("run", "trial.toml", "--budget", "9").status == 3
    assert "To resume: shortlist run trial.toml --name trial" in call("report", "trial").words
    assert len([one for one in _log(call) if isinstance(one.event, Arranged)]) == 2


def _log(call: Calls) -> list[Record]:
    with closing(sl.open_store(call.folder / "shortlist.db")) as store:
        return list(store.read("trial"))


def test_what_people_measured_is_replayed_from_where_it_is_kept(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml", "--store", "other.db")
    data = call("report", "trial", "--store", "other.db", "--json").data
    assert data["reproduce"] == "shortlist replay trial --store other.db"


def test_json_has_the_same_and_the_result(done: Calls) -> None:
    data = done("report", "done", "--json").data
    assert (data["run"], data["state"]) == ("done", "certified")
    assert data["headline"] == "1 of 3 arms selected"
    assert data["result"] == done("status", "done", "--json").data["result"]
    assert sum(work["n_pulls"] for work in data["workers"]) == data["result"]["n_pulls"]
    done("report", "done", "-o", "done.json")
    written = json.loads((done.folder / "done.json").read_text(encoding="utf-8"))
    assert {**written, "made": ""} == {**data, "made": ""}


def test_a_page_is_written_whole_and_replaces_another(done: Calls) -> None:
    file = done.folder / "done.html"
    file.write_text("before", encoding="utf-8")
    assert done("report", "done", "-o", "done.html").out == "Written to done.html.\n"
    text = file.read_text(encoding="utf-8")
    assert "1 of 3 arms selected: arm-2" in Strict(text).words("h1", "bdi")
    assert [path.name for path in done.folder.glob("*.part")] == []
    assert [path.name for path in done.folder.glob(".*")] == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~_umask()
    (done.folder / "link.html").symlink_to(file)
    done("report", "done", "-o", "link.html")
    assert (done.folder / "link.html").is_symlink()
    lost = done("report", "done", "-o", "nowhere/done.html")
    assert lost.status == 4
    assert lost.err == "Error: nowhere/done.html could not be written: No such file or directory.\n"


def _umask() -> int:
    before = os.umask(0)
    os.umask(before)
    return before


def test_a_page_may_go_to_a_pipe(done: Calls) -> None:
    done("report", "done", "-o", "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_an_open_run_says_how_to_go_on(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml", "--store", "other.db")
    words = call("report", "trial", "--store", "other.db").words
    assert words.startswith("trial: not finished. 0 pulls made, and nothing is certified yet.")
    assert "To resume: shortlist ask trial -o tickets.csv --store other.db" in words


def test_a_run_measured_by_a_program_is_resumed_by_it(call: Calls) -> None:
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * 3)
    sl.select(
        lambda _arm, count, rng: rng.normal(size=count), problem, store="runs.db", name="mine", budget=9
    )
    words = call("report", "mine", "--store", "runs.db").words
    assert "To resume: sl.select(measure, problem, store='runs.db', name='mine')" in words


def test_run_writes_a_report_when_it_ends(call: Calls) -> None:
    call.write("done.toml", SIMULATED)
    done = call("run", "done.toml", "--report", "r.html")
    assert done.status == 0
    assert done.out.endswith("Report written to r.html.\n")
    assert "1 of 3 arms selected" in Strict((call.folder / "r.html").read_text(encoding="utf-8")).words("h1")
    quiet = call("run", "done.toml", "--report", "r.html", "--json")
    assert quiet.data["selected"] == ["arm-2"]


def test_run_writes_a_report_when_its_budget_ends(call: Calls) -> None:
    call.write("done.toml", SIMULATED)
    assert call("run", "done.toml", "--budget", "3", "--report", "r.html").status == 3
    words = Strict((call.folder / "r.html").read_text(encoding="utf-8")).words()
    assert "Stopped early" in words
    (command,) = re.findall(r"To resume:(\S*shortlist run .*?r\.html)", words)
    assert "--budget" not in command


def test_run_writes_a_report_when_it_fails(call: Calls) -> None:
    call.write("bad.toml", QUESTION + BROKEN.format("echo broken"))
    failed = call("run", "bad.toml", "--report", "r.html", "--retries", "0")
    assert failed.status == 4
    assert "could not be written" not in failed.err
    words = Strict((call.folder / "r.html").read_text(encoding="utf-8")).words()
    assert "! Suspended" in words
    assert "Why it stopped:" in words
    assert "broken" in words
    assert "run bad.toml --report r.html --retries 0" in words
    again = call("report", "bad").words
    assert again.startswith("bad: suspended. ")
    assert "To resume: shortlist run bad.toml --name bad" in again


@pytest.mark.slow
def test_run_writes_a_report_when_it_is_interrupted(call: Calls) -> None:
    program = "kill -INT $PPID; for i in $(seq {{count}}); do echo 0.5; done"
    call.write("slow.toml", QUESTION + BROKEN.format(program).replace("{{", "{").replace("}}", "}"))
    words = ["run", "slow.toml", "--report", "r.html"]
    done = subprocess.run([sys.executable, "-m", "shortlist", *words], capture_output=True, check=False)
    assert done.returncode == 130, done.stderr
    words_read = Strict((call.folder / "r.html").read_text(encoding="utf-8")).words()
    assert "! Not finished" in words_read
    assert "shortlist run slow.toml --report r.html" in words_read


def test_a_report_that_cannot_be_written_is_refused_before_a_run(call: Calls) -> None:
    call.write("done.toml", SIMULATED)
    for place in ("nowhere/r.html", "."):
        refused = call("run", "done.toml", "--report", place)
        assert refused.status == 2
        assert f"--report is {place}; give the name of a file" in refused.err
    assert not (call.folder / "shortlist.db").exists()


def test_what_failed_first_is_what_is_said(call: Calls) -> None:
    call.write("bad.toml", QUESTION + BROKEN.format("rmdir r; echo broken"))
    (call.folder / "r").mkdir()
    failed = call("run", "bad.toml", "--report", "r/r.html", "--retries", "0")
    assert failed.status == 4
    assert "The report could not be written: " in failed.err
    assert "broken" in failed.err


def test_runs_that_are_not_kept_have_reports_too(call: Calls) -> None:
    call.write("done.toml", SIMULATED)
    assert call("run", "done.toml", "--store", ":memory:", "--report", "r.html").status == 0
    assert "Certified" in Strict((call.folder / "r.html").read_text(encoding="utf-8")).words()
