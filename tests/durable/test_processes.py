"""Many processes at one run, and processes killed at any moment: the run ends as if nothing had happened."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.conftest import Place

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def run(name: str, *arguments: str) -> str:
    """Return what a program of `processes` prints, which must succeed."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.durable.processes", name, *arguments],
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_runs_end_bit_for_bit_alike_however_often_their_drivers_are_killed(durable: Place) -> None:
    said = run("kills", durable.address, "12" if "://" in durable.address else "25")
    assert said.endswith("none lost\n"), said


def test_many_workers_answer_every_ticket_exactly_once_from_a_cold_start(durable: Place) -> None:
    n = "8" if "://" in durable.address else "32"
    assert "each answered once" in run("askers", durable.address, n, "1")


def test_drivers_share_a_run(durable: Place) -> None:
    assert "by 3 drivers" in run("drivers", durable.address, "3")
