"""`shortlist run` with workers: the same answer, and the right exit status when it stops short."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.execution.interrupts import ask_to_stop, hang_up, noting_interrupts
from tests.cli.calling import Calls

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DRILLING = "examples/drilling.toml"


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "shortlist", "run", *options]


def call(*options: str) -> tuple[int, str, str]:
    done = subprocess.run(
        command(*options), cwd=ROOT, capture_output=True, check=False, timeout=120, text=True
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def alone() -> str:
    return call(DRILLING, "--json")[1]


@pytest.mark.parametrize(
    "options", [["--workers", "2"], ["--dask", "local", "--workers", "2"], ["--timeout", "60"]], ids=" ".join
)
def test_the_answer_is_the_same_with_workers(alone: str, options: list[str]) -> None:
    status, out, err = call(DRILLING, "--json", *options)
    assert (status, err) == (0, "")
    assert out == alone


def test_calls_may_be_split() -> None:
    status, out, _ = call(DRILLING, "--json", "--pulls-per-call", "1000", "--strategy", "wnelim")
    assert status == 0
    assert json.loads(out)["n_pulls"] > 200_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workers", "0"], "--workers"),
        (["--retries", "-1"], "--retries"),
        (["--timeout", "0"], "`timeout` is 0"),
        (["--pulls-per-call", "0"], "--pulls-per-call"),
        (["--dask", "tcp://host:1", "--workers", "2"], "--workers has no effect"),
    ],
)
def test_options_that_make_no_sense_are_status_2(
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = Calls(tmp_path, capsys, monkeypatch)("run", str(ROOT / DRILLING), *options)
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err


ENDLESS = """
import os, time

def slow(arm, count, rng):
    open(os.environ["READY"], "w").close()
    time.sleep(0.01)
    return rng.normal(0.0, 1.0, count)
"""
QUESTION = """
[problem]
m = 1
epsilon = 0.05
delta = 0.05
variances = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]

[measure]
kind = "function"
function = "endless.py:slow"
"""


@pytest.fixture
def heeded() -> Iterator[None]:
    """Let programs heed SIGHUP that are started here, even if `nohup` started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_ends_the_run_in_good_order(tmp_path: Path, number: signal.Signals, workers: int) -> None:
    assert_ended_in_good_order(tmp_path, number, workers)


def test_a_run_in_the_background_of_a_script_can_be_ended(tmp_path: Path) -> None:
    assert_ended_in_good_order(
        tmp_path, signal.SIGTERM, 1, within=["sh", "-c", "trap '' INT; exec \"$@\"", "-"]
    )


def assert_ended_in_good_order(
    tmp_path: Path, number: signal.Signals, workers: int, within: Sequence[str] = ()
) -> None:
    question, ready = tmp_path / "question.toml", tmp_path / "ready"
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    question.write_text(QUESTION, encoding="utf-8")
    options = ["--workers", str(workers), "--pulls-per-call", "1"]
    with subprocess.Popen(
        [*within, sys.executable, "-m", "shortlist", "run", str(question), *options],
        cwd=ROOT,
        env=os.environ | {"READY": str(ready)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while not ready.exists() and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, number) if number is signal.SIGINT else process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Stopping after the running measurements" in err
    assert "The run had made " in err
    assert "Interrupted." in err
    assert "Traceback" not in err


def test_nohup_lets_a_run_go_on_when_the_terminal_is_closed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    (tmp_path / "question.toml").write_text(QUESTION, encoding="utf-8")
    ready = tmp_path / "ready"
    with subprocess.Popen(
        ["sh", "-c", "trap '' HUP; exec \"$@\"", "-", *command("question.toml")],
        cwd=tmp_path,
        env=os.environ | {"READY": str(ready)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not ready.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_is_closed_ends_the_run_in_good_order(tmp_path: Path, workers: str) -> None:
    (tmp_path / "slowly.py").write_text(SLOWLY, encoding="utf-8")
    (tmp_path / "slowly.toml").write_text(FILE, encoding="utf-8")
    calls = tmp_path / "calls.txt"
    process, terminal = pty.fork()
    if not process:
        os.chdir(tmp_path)
        run = command("slowly.toml", "--pulls-per-call", "1", "--workers", workers, "--store", "runs.db")
        os.execv(sys.executable, run)
    shown = b""
    while b"pull" not in shown.partition(b"saved in")[2]:  # the bar is drawn after the first call
        shown += os.read(terminal, 10_000)
    begun = len(calls.read_text(encoding="utf-8").split())
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130
    n_calls = len(calls.read_text(encoding="utf-8").split())
    assert begun <= n_calls <= begun + 3 * int(workers)
    with closing(sl.open_store(tmp_path / "runs.db")) as store, sl.Session.resume(store, "slowly") as found:
        assert found.n_made == n_calls, "calls were broken off"


def test_a_terminal_may_hang_up_more_than_once() -> None:
    with noting_interrupts() as interrupt:
        hang_up(signal.SIGHUP, None)
        hang_up(signal.SIGHUP, None)
        assert interrupt.is_pressed
        with pytest.raises(KeyboardInterrupt):
            ask_to_stop(signal.SIGTERM, None)


SLOWLY = """
import os, time
from pathlib import Path

def measure(arm, count, rng):
    with Path("calls.txt").open("a") as calls:
        calls.write(f"{os.getpid()} ")
    time.sleep(0.5)
    return rng.normal(arm, 1.0, count)
"""
FILE = """
[problem]
m = 1
epsilon = 0.1
delta = 0.05
variances = [1, 1, 1, 1]

[measure]
kind = "function"
function = "slowly.py:measure"
"""


def test_workers_end_when_the_main_process_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slowly.py").write_text(SLOWLY, encoding="utf-8")
    (tmp_path / "slowly.toml").write_text(FILE, encoding="utf-8")
    calls = tmp_path / "calls.txt"
    with subprocess.Popen(
        command("slowly.toml", "--workers", "2", "--pulls-per-call", "2"), cwd=tmp_path
    ) as run:
        while not calls.exists() or len(set(calls.read_text(encoding="utf-8").split())) < 2:
            assert run.poll() is None
            time.sleep(0.05)
        run.kill()
    before = calls.read_text(encoding="utf-8").split()
    deadline = time.monotonic() + 20
    while left := [process for process in set(before) if is_alive(process)]:
        if time.monotonic() > deadline:
            for process in left:
                os.kill(int(process), signal.SIGKILL)
            pytest.fail("workers outlive the process that started them")
        time.sleep(0.05)
    n_begun = len(calls.read_text(encoding="utf-8").split()) - len(before)
    assert n_begun <= 2, "each finishes what it does, and may have begun that while it was looked at"


def is_alive(process: str) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
