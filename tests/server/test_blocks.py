"""Blocks over HTTP and among several processes: the answer is that of one worker."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shortlist as sl
from shortlist.client import Client
from tests.server.at_work import Server, serving
from tests.server.process import environment
from tests.server.test_remote_run import wait_until

pytestmark = pytest.mark.slow

PROBLEM = sl.Problem(
    m=1, epsilon=0.5, delta=0.05, names=["a", "b", "c", "d"], rewards=sl.Gaussian(), items=sl.Blocks()
)
QUESTION = """
[problem]
m = 1
epsilon = 0.5
delta = 0.05
names = ["a", "b", "c", "d"]
noise = "gaussian-unknown"

[items]
blocks = true

[measure]
kind = "function"
function = "score.py:measure"
reproducible = true
turns = 1
"""
SCORE = """
import os, pathlib, random, time

here = pathlib.Path(__file__).parent

def measure(arm, blocks):
    (here / f"started-{os.getpid()}").touch()
    if (here / "hang").exists():
        time.sleep(60)
    time.sleep(0.004)
    return [
        random.Random(seed).gauss(0, 10) + 0.4 * arm + random.Random(10 * seed + arm).gauss(0, 1)
        for seed in blocks
    ]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trial.toml").write_text(QUESTION, encoding="utf-8")
    (tmp_path / "score.py").write_text(SCORE, encoding="utf-8")
    return tmp_path


def measure(arm: int, blocks: list[int]) -> list[float]:
    scope: dict[str, Any] = {"__file__": "/nowhere/score.py"}
    exec(SCORE.replace(".touch()", ".exists()"), scope)
    rewards: list[float] = scope["measure"](arm, blocks)
    return rewards


@pytest.fixture(scope="module")
def alone() -> sl.Result:
    return sl.select(measure, PROBLEM, seed=5)


def is_same(one: dict[str, Any], other: sl.Result) -> bool:
    """Return whether a result is that of one worker, however many rewards were measured ahead."""
    means = {row["name"]: row["mean"] for row in one["arms"]}
    return bool(
        one["selected"] == list(other.selected)
        and one["certificate"]["epsilon"] == other.certified_epsilon
        and one["n_pulls"] - one["n_ahead"] == other.n_pulls
        and list(means.values()) == other.arms.means.tolist()
    )


def worker(folder: Path, *options: str, lease: float = 60.0) -> "subprocess.Popen[str]":
    words = ["run", "trial.toml", "--json", "--seed", "5", "--name", "trial", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.server.at_work", str(lease), *words],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> Any:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


def test_a_question_about_blocks_survives_http(client: Client, alone: sl.Result) -> None:
    begun = client.begin(PROBLEM, "driven", seed=5)
    found = client.run("driven")
    assert found.problem == PROBLEM
    assert found.problem.has_blocks
    assert begun.strategy == "paired-race"
    result = sl.drive(found.session(), measure, turns=1)
    assert result.to_dict() == alone.to_dict()
    assert client.plan(PROBLEM)["words"] == PROBLEM.words
    passing = PROBLEM.changed(items=sl.Blocks(lockstep=True))
    client.begin(passing, "lockstep", seed=5)
    assert client.run("lockstep").problem == passing


def test_tickets_list_blocks_and_their_seeds(client: Client, alone: sl.Result) -> None:
    run = client.begin(PROBLEM, "by hand", seed=5)
    row = run._post("ask", {"worker": "ann", "limit": 1})["tickets"][0]
    assert row["items"] == [str(place) for place in range(row["pulls"])]
    assert row["seeds"] == sl.Blocks().values_at(PROBLEM.entropy(5), 0, row["pulls"])
    while tickets := run.ask(worker="ann"):
        run.tell(tickets, [measure(one.arm, run.items_of(one)) for one in tickets], worker="ann")
    assert run.result().to_dict() == alone.to_dict()
    assert run.export().splitlines()[0].startswith("ticket,arm,name,block,seed,reward")


def test_workers_over_http_get_the_answer_of_one(folder: Path, server: Server, alone: sl.Result) -> None:
    (folder / "hang").touch()
    doomed = worker(folder, "--server", server.url, lease=2.0)
    wait_until(lambda: [*folder.glob("started-*")])
    doomed.kill()
    doomed.communicate(timeout=30)
    (folder / "hang").unlink()
    others = [worker(folder, "--server", server.url, lease=2.0) for _ in range(2)]
    assert all(is_same(ended(one), alone) for one in others)
    assert len([*folder.glob("started-*")]) == 3


def test_processes_on_one_store_get_the_answer_of_one(folder: Path, alone: sl.Result) -> None:
    store = ("--store", "shared.db")
    (folder / "hang").touch()
    doomed = worker(folder, *store, lease=2.0)
    wait_until(lambda: [*folder.glob("started-*")])
    doomed.kill()
    doomed.communicate(timeout=30)
    (folder / "hang").unlink()
    others = [worker(folder, *store, lease=2.0) for _ in range(2)]
    assert all(is_same(ended(one), alone) for one in others)
    with sl.Session.resume(sl.open_store(str(folder / "shared.db")), "trial") as session:
        assert session.is_done
        assert not session.conflicts
