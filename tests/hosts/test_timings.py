"""Files of pytest-benchmark and hyperfine, as these tools write them now."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.errors import InvalidProblem
from shortlist.measure.result_files.timings import read_timings, timings_in
from tests.docs.pages import RunCache, shows

PAGE = "docs/recorded-timings.md"


def test_the_page_finds_the_fastest_of_each_kind(tmp_path: Path) -> None:
    assert shutil.which("hyperfine"), "install hyperfine; .ci/run does"
    selected = []
    with RunCache(tmp_path) as desk:
        for step, status, printed in desk.outcomes(PAGE):
            assert status == 0, printed
            assert shows(step.shown, printed), printed
            if "shortlist run" in step.command:
                lines = printed.splitlines()
                place = next(place for place, line in enumerate(lines) if "1 of 3 arms" in line)
                selected.append(lines[place + 2].split("  ")[0])
    assert selected == ["test_builtin", "sleep 0.01"]
    (loop,) = read_timings(
        tmp_path / "sums.json",
        sl.Problem(m=1, epsilon=1, delta=0.1, variances=[1.0] * 2, names=["test_loop", "test_builtin"]),
    )[:1]
    assert len(loop) >= 5
    assert (loop > 1e-5).all()


def test_statistics_without_timings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(benchmark):\n    benchmark(sum, range(100))\n")
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-max-time=0.05"]
    storage = [f"--benchmark-storage=file://{tmp_path}/kept", "--benchmark-save=one"]
    subprocess.run([*run, *storage, "test_one.py"], cwd=tmp_path, check=True, capture_output=True)
    (file,) = (tmp_path / "kept").rglob("*.json")
    with pytest.raises(InvalidProblem, match="not the timings themselves"):
        timings_in(file)
    subprocess.run(
        [*run, *storage, "--benchmark-save-data", "test_one.py"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    (file,) = set((tmp_path / "kept").rglob("*.json")) - {file}
    assert list(timings_in(file)) == ["test_one"]


def test_commands_that_failed_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "failed.json"
    command = ["hyperfine", "--shell=none", "--ignore-failure", "--runs=3", f"--export-json={file}", "false"]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(InvalidProblem, match="'false' failed in some runs"):
        timings_in(file)
    text = file.read_text()
    file.write_text(text[: len(text) // 2])
    with pytest.raises(InvalidProblem, match=r"is not JSON .* was it written completely"):
        timings_in(file)
    file.write_text(json.dumps(json.loads(text)["results"]))
    with pytest.raises(InvalidProblem, match="neither the `results` of hyperfine nor"):
        timings_in(file)
