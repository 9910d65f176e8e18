"""`shortlist run --server`: real workers, a real server, and what happens when one of them is killed."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.cli.remote import token_of
from shortlist.report.workload import workload
from shortlist.store import Leased, Suspended
from tests.cli.calling import Calls
from tests.questions import unknown
from tests.server.at_work import Server, serving
from tests.server.process import environment

pytestmark = pytest.mark.slow

QUESTION = """
[problem]
m = 2
epsilon = 1.6
delta = 0.1
scales = [1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5]

[measure]
kind = "function"
function = "score.py:measure"
reproducible = true
turns = 2
"""
SCORE = """
import os, pathlib, time

here = pathlib.Path(__file__).parent

def measure(arm, count, rng):
    time.sleep(0.002)
    with (here / "pulls").open("a") as file:
        file.write("x" * count)
    EXTRA
    return rng.normal(0.05 * arm, [1.0, 0.5][arm % 2], count)
"""


TOKENS = {"read": "r" * 24, "write": "w" * 24}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of tokens, as a server has it."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text("".join(f"{kind} {token}\n" for kind, token in TOKENS.items()), encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def server(tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, "--token-file", str(tokens), token=TOKENS["write"]) as found:
        yield found


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The command line, in a folder with a question."""
    monkeypatch.setenv("SHORTLIST_TOKEN", TOKENS["write"])
    found = Calls(tmp_path, capsys, monkeypatch)
    written(found)
    return found


def written(call: Calls, extra: str = "pass", epsilon: float = 1.6) -> None:
    call.write("score.py", SCORE.replace("EXTRA", extra))
    call.write("trial.toml", QUESTION.replace("epsilon = 1.6", f"epsilon = {epsilon}"))


def alone(call: Calls, *options: str) -> Any:
    """Return what a run comes to that nobody else sees."""
    done = call("run", "trial.toml", "--store", ":memory:", "--json", *options)
    assert done.status == 0, done.err
    return done.data


class Work:
    """`shortlist run` in a process of its own, with short leases."""

    def __init__(self, server: Server, folder: Path, *options: str, lease: float = 60.0) -> None:
        words = ["run", "trial.toml", "--server", server.url, "--json", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.server.at_work", str(lease), *words],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self, status: int = 0) -> Any:
        """Return what it printed, once it has ended as it should."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == status, err
        return json.loads(out) if status in {0, 3} else err


TOGETHER = """
    (here / f"started-{os.getpid()}").touch()
    while not (here / "go").exists():
        time.sleep(0.01)
"""


def start_together(call: Calls, n: int) -> None:
    """Wait until so many workers have begun to measure, and let them."""
    wait_until(lambda: len([*call.folder.glob("started-*")]) == n)
    (call.folder / "go").touch()


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def n_pulls(server: Server, name: str) -> int:
    with server.client() as client:
        try:
            return int(client.run(name).round()["n_made"])
        except sl.errors.NoSuchRun:
            return 0


def told(server: Server, name: str) -> Counter[str]:
    """Return how many pulls each worker has told; make sure that no ticket was told twice."""
    with sl.Session.resume(server.store, name) as session:
        assert not session.conflicts
        tickets = Counter((one.round, arm) for one in session.events for arm in one.arms.tolist())
        assert max(tickets.values()) == 1
        found = {row.worker: row.n_pulls for row in workload(session.history, session.records)}
        assert all(worker.startswith("http@") for worker in found)
        return Counter(found)


# --- the same answer --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [[], ["--workers", "2"], ["--dask", "local"]], ids=["one", "two", "dask"])
def test_the_answer_is_that_of_a_run_here(call: Calls, server: Server, how: list[str]) -> None:
    name = f"same{len(how)}{''.join(how)}"
    there = call("run", "trial.toml", "--server", server.url, "--json", "--name", name, "--seed", "3", *how)
    assert there.status == 0, there.err
    assert there.data == alone(call, "--seed", "3")
    assert len(told(server, name)) == 1
    assert not (call.folder / "shortlist.db").exists()


def test_three_workers_share_a_run(call: Calls, server: Server) -> None:
    written(call, TOGETHER)
    workers = [Work(server, call.folder, "--name", "shared") for _ in range(3)]
    start_together(call, 3)
    results = [worker.ended() for worker in workers]
    counts = told(server, "shared")
    assert len(counts) == 3
    assert len((call.folder / "pulls").read_text()) == counts.total(), "something was measured twice"
    assert results == [alone(call)] * 3


def test_one_that_is_killed_is_stood_in_for(call: Calls, server: Server) -> None:
    written(call, "(here / 'started').touch(); (here / 'hang').exists() and time.sleep(60)")
    (call.folder / "hang").touch()
    doomed = Work(server, call.folder, "--name", "killed", lease=2.0)
    wait_until((call.folder / "started").exists)
    doomed.process.kill()
    doomed.process.communicate(timeout=30)
    with sl.Session.resume(server.store, "killed") as session:
        held = {one.event.worker for one in session.records if isinstance(one.event, Leased)}
    (call.folder / "hang").unlink()
    result = Work(server, call.folder, "--name", "killed", lease=2.0).ended()
    assert result == alone(call)
    assert len(held) == 1
    assert not held & told(server, "killed").keys()


def test_a_server_may_be_killed_and_started_again(call: Calls, tmp_path: Path) -> None:
    written(call, TOGETHER + "    (here / 'quick').exists() or time.sleep(0.05)", epsilon=0.8)  # longer
    with serving(tmp_path) as server:
        workers = [Work(server, call.folder, "--name", "restarted") for _ in range(2)]
        start_together(call, 2)
        wait_until(lambda: n_pulls(server, "restarted"))
        server.stop(signal.SIGKILL)
        assert all(worker.process.poll() is None for worker in workers)
        server.start()
        with server.client() as client:
            assert not client.run("restarted").round()["is_done"]
        (call.folder / "quick").touch()
        results = [worker.ended() for worker in workers]
    assert results == [alone(call)] * 2
    assert len(told(server, "restarted")) == 2


def test_leases_are_kept_while_it_measures(call: Calls, server: Server) -> None:
    written(call, "(here / 'started').touch(); time.sleep(3.5 if arm == 0 else 0)")
    slow = Work(server, call.folder, "--strategy", "single-stage", "--name", "held", lease=1.5)
    wait_until((call.folder / "started").exists)
    time.sleep(2.5)
    with server.client() as client:
        assert 0 not in client.run("held").ask(worker="ann", lease=1).arms.tolist()
        client.run("held").release("ann")
    slow.process.kill()
    slow.process.communicate(timeout=30)


# --- in Python --------------------------------------------------------------------------------------


def test_failures_that_are_scored_are_told_as_such(server: Server) -> None:
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0, 1.0])

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if rng.random() < 0.3:
            raise RuntimeError("the meter is broken")
        return rng.normal(arm / 4, 1.0, count)

    here = sl.Session(problem, seed=2)
    how: dict[str, Any] = {"on_failure": -1.0, "retries": 0}
    sl.drive(here, measure, **how)
    with server.client() as client:
        run = client.begin(problem, "scored", seed=2)
        seen: list[int] = []
        result = sl.drive(run.session(), measure, progress=lambda now: seen.append(now.n_pulls), **how)
        assert result.to_dict() == here.result.to_dict()
        assert result.n_scored == here.result.n_scored > 0
        assert seen[-1] == result.n_pulls
        (first, *_) = client.run("scored").status()["scored"]
        assert "the meter is broken" in first["reason"]


def test_a_pilot_is_told_with_its_variances(server: Server) -> None:
    question = unknown(m=1, epsilon=1.0, delta=0.1, n=4)

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        return rng.normal(2 * arm, 1 + arm, count)

    with server.client() as client:
        there = sl.drive(client.begin(question, "pilot", seed=5).session(), measure, pulls_per_call=7)
    here = sl.select(measure, question, seed=5, pulls_per_call=7)
    assert there.to_dict() == here.to_dict()
    assert there.arms.means.tobytes() == here.arms.means.tobytes()


def test_rewards_that_cannot_be_told_apart_stop_it_as_they_do_here(server: Server) -> None:
    problem = sl.Problem(m=1, epsilon=1e-3, delta=0.1, variances=[1e-6, 1e-6])

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        return np.full(count, 1e15 * arm)

    with pytest.raises(sl.MeasurementFailed) as here:
        sl.select(measure, problem)
    with server.client() as client, pytest.raises(sl.MeasurementFailed) as there:
        sl.drive(client.begin(problem, "huge").session(), measure)
    assert str(here.value) == str(there.value)


# --- how it ends ------------------------------------------------------------------------------------


def test_it_says_where_the_run_is_and_writes_the_report(call: Calls, server: Server) -> None:
    command = ["run", "trial.toml", "--server", server.url, "--name", "plain", "--report", "r.html"]
    first = call(*command)
    assert first.status == 0
    assert f"Run plain is saved in {server.url}.\n" in first.out
    assert "2 of 8 arms selected" in first.out
    assert (call.folder / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    again = call(*command)
    assert f"; result read from {server.url}.\n" in again.out
    assert again.out.splitlines()[3:] == first.out.splitlines()[3:]
    refused = call(*command[:-1], "r.json")
    assert (refused.status, "with --server a report is always HTML" in refused.err) == (2, True)


def test_a_budget_that_ends_is_status_3_and_it_goes_on(call: Calls, server: Server) -> None:
    command = ["run", "trial.toml", "--server", server.url, "--name", "short", "--json"]
    short = call(*command, "--budget", "20")
    assert short.status == 3
    assert short.data["stop"] == "budget"
    assert short.data["n_pulls"] <= 20
    advice = short.err.splitlines()[-1].split()
    assert shlex.split(" ".join(advice))[-len(command) :] == command
    assert call(*command).status == 0


def test_a_failure_is_status_4_and_is_noted(call: Calls, server: Server) -> None:
    written(call, "1 / (arm != 5)")
    failed = call("run", "trial.toml", "--server", server.url, "--name", "failing", "--retries", "0")
    assert failed.status == 4
    assert "measuring arm-5" in failed.err
    assert "ZeroDivisionError" in failed.err
    assert f" To resume:\n  shortlist run trial.toml --server {server.url}" in failed.err
    with sl.Session.resume(server.store, "failing") as session:
        (noted,) = [one.event for one in session.records if isinstance(one.event, Suspended)]
        assert "ZeroDivisionError" in noted.reason
        assert noted.worker.startswith("http@")
        assert not any(
            (session.history.round.leases.until(np.arange(8)) > 0) & ~session.history.round.is_told
        )


def test_ctrl_c_is_status_130_and_gives_back_what_it_holds(call: Calls, server: Server) -> None:
    written(call, "(here / 'started').touch(); time.sleep(0.3)")
    work = Work(server, call.folder, "--name", "stopped")
    wait_until((call.folder / "started").exists)
    work.process.send_signal(signal.SIGINT)
    err = work.ended(130)
    assert "Stopping after the running measurements" in err
    assert f"--server {server.url} --json --name stopped\n" in err.partition(" To resume:\n")[2]
    with server.client() as client:
        status = client.run("stopped").status()
    assert status["n_pulls"] > 0
    assert status["holders"] == []


def test_what_is_wrong_is_status_2(call: Calls, server: Server) -> None:
    there = ["--server", server.url, "--name", "wrong"]
    assert call("run", "trial.toml", *there).status == 0
    changed = call("run", "trial.toml", *there, "--seed", "9")
    assert changed.status == 2
    assert "seed was 0, is 9" in changed.err
    assert changed.err.count("To start another run:\n") == 1
    assert "--name wrong-2" in changed.err
    written(call, "pass")
    call.write("trial.toml", QUESTION.replace('measure"\n', 'measure"\n', 1))
    other = call("run", "trial.toml", *there, "--pulls-per-call", "3")
    assert (other.status, "pulls_per_call was not given, is 3" in other.err) == (2, True)
    both = call("run", "trial.toml", *there, "--store", "x.db")
    assert (both.status, "--store has no effect with --server" in both.err) == (2, True)
    nowhere = call("run", "trial.toml", "--server", "localhost")
    assert (nowhere.status, "give its address" in nowhere.err) == (2, True)


def test_a_server_that_is_not_there_is_status_4(call: Calls, tmp_path: Path) -> None:
    url = Server(tmp_path).url
    done = call("run", "trial.toml", "--server", url)
    assert done.status == 4
    assert f"the server at {url} could not be reached" in done.err
    assert "Warning: the server" in done.err


def test_a_token_comes_from_a_file_or_the_environment(
    call: Calls, server: Server, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", "trial.toml", "--server", server.url, "--name", "token", "--json"]
    assert call(*command).status == 0
    monkeypatch.setenv("SHORTLIST_TOKEN", TOKENS["read"])
    denied = call(*command)
    assert (denied.status, "is read-only; use the write token" in denied.err) == (2, True)
    assert call(*command, "--token-file", str(tokens)).status == 0
    monkeypatch.delenv("SHORTLIST_TOKEN")
    refused = call(*command)
    assert (refused.status, "SHORTLIST_TOKEN" in refused.err) == (2, True)
    assert not set(TOKENS.values()) & set((denied.err + refused.err).split())


def test_files_of_tokens_are_read_with_care(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for text, token in [("abc\n", "abc"), ("write a\nread b\n", "a"), ("read b", "b")]:
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        assert token_of(file) == token
    for text in ("", "a b c", "a\nb", "write a\nhello"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(sl.InvalidProblem, match="must contain a token and nothing else"):
            token_of(file)
    file.chmod(0o644)
    with pytest.raises(sl.InvalidProblem, match="chmod 600"):
        token_of(file)
    with pytest.raises(sl.InvalidProblem, match="cannot be read: No such file"):
        token_of(tmp_path / "gone")
