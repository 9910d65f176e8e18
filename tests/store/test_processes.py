"""Many processes at one store: nothing is lost, doubled or half written, whatever happens to them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.store.conftest import Place
from tests.store.test_contract import assert_complete

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
IN_A_NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]


def run(name: str, *arguments: str, within: tuple[str, ...] = ()) -> str:
    """Return what a program of `processes` prints, which must succeed."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*within, sys.executable, "-m", "tests.store.processes", name, *arguments],
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def can_mount() -> bool:
    command = [*IN_A_NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def test_a_store_is_created_by_many_at_once(durable: Place) -> None:
    n = 12 if "://" in durable.address else 32
    run("cold", durable.address, str(n))
    assert_complete(list(durable.open().read("shared")), n, 1)


def test_processes_lose_and_double_nothing(durable: Place) -> None:
    run("many", durable.address, "8", "10")
    assert_complete(list(durable.open().read("shared")), 8, 10)


def test_a_store_may_be_used_on_both_sides_of_a_fork(durable: Place) -> None:
    run("inherited", durable.address)
    found = list(durable.open().read("shared"))
    assert [record.number for record in found] == list(range(1, len(found) + 1))
    workers = [record.event.worker for record in found]  # type: ignore[union-attr]
    expected = {"parent": 6, "thread": 80, "parent again": 20} | {f"child{k}": 20 for k in range(6)}
    assert {worker: workers.count(worker) for worker in workers} == expected


def test_whatever_was_acknowledged_survives_a_kill(durable: Place) -> None:
    run("kills", durable.address, "21" if "://" in durable.address else "42")


def test_a_limit_to_the_size_of_files_is_reported_and_does_no_harm(tmp_path: Path) -> None:
    assert "full, over its quota" in run("limited", str(tmp_path / "runs.db"))


def test_a_full_disk_is_reported_and_does_no_harm(tmp_path: Path) -> None:
    if not can_mount():  # then the limit above must do
        return
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
    within = (*IN_A_NAMESPACE, "sh", "-c", script, str(tmp_path))
    assert "the disk is full" in run("full", str(tmp_path), within=within)


def test_where_only_reading_is_allowed_reading_works_and_writing_says_so() -> None:
    with tempfile.TemporaryDirectory(prefix="shortlist-", dir="/tmp") as name:
        folder = Path(name, "archive")
        folder.mkdir()
        Path(name).chmod(0o755)  # so that another user may enter
        assert "Allow writing" in run("forbidden", str(folder / "runs.db"))
