"""Plant faults one at a time and show which part of the test suite catches each.

`make mutants` runs it; the table goes to benchmarks/results/mutants.md. It exits with 1 if any fault
goes unseen. Faults are planted in a copy, never in the working tree. With names of source files or folders,
as in `python -m tools.mutants bounds plan.py`, only the faults in those are planted, and their rows renewed.
With `--first` the suites are tried one by one, and the first that catches a fault is enough.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.faults import FAULTS, Fault

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mutants.md"
SUITES = {
    "contract": ["tests/contract"],
    "decisions": ["tests/proof/test_decisions.py"],
    "ledger": ["tests/proof/test_ledger.py"],
    "unknown": ["tests/proof/test_unknown.py"],
    "race": ["tests/proof/test_race.py", "tests/proof/test_level_race.py"],
    "oracles": ["tests/test_oracles.py", "tests/test_unknown_oracles.py"],
    "paper": ["tests/paper"],
    "units": [
        "tests/test_arrays.py",
        "tests/test_bechhofer.py",
        "tests/test_convolution.py",
        "tests/test_cut.py",
        "tests/test_heterogeneity.py",
        "tests/test_mixture.py",
        "tests/test_pairwise.py",
        "tests/test_plan.py",
        "tests/test_level_course.py",
        "tests/test_race_course.py",
        "tests/test_ranking.py",
        "tests/test_simulate.py",
        "tests/test_swap.py",
        "tests/test_unknown.py",
    ],
    "bounds": ["tests/bounds"],
    "sessions": [
        "tests/run/test_session.py",
        "tests/run/test_printable.py",
        "tests/durable/test_sessions.py",
    ],
    "stores": ["tests/store"],
    "processes": ["tests/durable/test_processes.py"],
    "machine": ["tests/durable/test_machine.py"],
    "server": [
        "tests/server/test_safety.py",
        "tests/server/test_api.py",
        "tests/server/test_endurance.py",
        "tests/server/test_schema.py",
    ],
    "statistical": ["tests/statistical"],
    "panel": ["tests/panel"],
}
_QUICKEST = (  # in this order where the first that catches a fault is enough
    "units",
    "ledger",
    "unknown",
    "decisions",
    "race",
    "oracles",
    "bounds",
    "sessions",
    "stores",
    "processes",
    "machine",
    "server",
    "contract",
    "paper",
    "panel",
    "statistical",
)
_ABOUT_RUNS = ("sessions", "stores", "processes", "machine")
_ABOUT_THE_SERVER = ("server",)
TIME_LIMIT = 300  # a fault may make a strategy run for ever; that counts as caught


def plant(fault: Fault, root: Path) -> None:
    """Make one replacement in the copy at `root`; the text to replace must occur exactly once."""
    path = root / "src" / "shortlist" / fault.file
    source = path.read_text(encoding="utf-8")
    if source.count(fault.old) != 1:
        raise ValueError(
            f"{fault.what}: {fault.old!r} occurs {source.count(fault.old)} times in {fault.file}"
        )
    path.write_text(source.replace(fault.old, fault.new), encoding="utf-8")


def snapshot(root: Path) -> None:
    """Copy what the tests need, so that work may go on in the tree meanwhile."""
    for part in ("src", "tests", "tools", "docs", "examples"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)


def caught_by(fault: Fault | None, sound: Path, *, is_first_enough: bool = False) -> list[str]:
    """Return the suites, or the first suite, that fail with this fault (or none) planted in a copy."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "copy"
        shutil.copytree(sound, root)
        if fault is not None:
            plant(fault, root)
        failing = (suite for suite in _likeliest_first(fault) if _fails(SUITES[suite], root))
        return [suite for suite in [next(failing, "")] if suite] if is_first_enough else list(failing)


def _likeliest_first(fault: Fault | None) -> list[str]:
    """Return all suites; those about runs, or about the server, come first for faults there."""
    file = "" if fault is None else fault.file
    about: tuple[str, ...] = _ABOUT_RUNS if file.startswith(("run/", "store/")) else ()
    about = _ABOUT_THE_SERVER if file.startswith("server/") else about
    return sorted(_QUICKEST, key=lambda suite: suite not in about)


def _fails(paths: list[str], root: Path) -> bool:
    environment = os.environ | {
        "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:xdist", *paths]
    try:
        run = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    if run.returncode not in (0, 1):
        raise RuntimeError(
            f"{' '.join(paths)}: pytest ended with {run.returncode}\n{run.stdout.decode()[-2000:]}"
        )
    return run.returncode == 1


def main() -> None:
    """Plant the faults of the files named on the command line, or all; print and write the table."""
    is_first_enough = "--first" in sys.argv
    parts = [given for given in sys.argv[1:] if given != "--first"]
    faults = [fault for fault in FAULTS if not parts or any(part in fault.file for part in parts)]
    with tempfile.TemporaryDirectory() as folder:
        snapshot(Path(folder))
        _study(faults, Path(folder), is_first_enough)


def _study(faults: list[Fault], sound: Path, is_first_enough: bool) -> None:
    if failing := caught_by(None, sound):
        sys.exit(f"without any fault these suites fail: {', '.join(failing)}; mend them first")
    rows = _rows_so_far()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda fault: caught_by(fault, sound, is_first_enough=is_first_enough), faults)
        for fault, caught in zip(faults, found, strict=True):
            rows[fault.what] = caught
            print(f"{'caught' if caught else 'UNSEEN'}  {fault.what}: {', '.join(caught)}", flush=True)
    known = {fault.what: rows[fault.what] for fault in FAULTS if fault.what in rows}
    tally = ", ".join(f"{suite} {sum(suite in caught for caught in known.values())}" for suite in SUITES)
    n_caught = sum(map(bool, known.values()))
    summary = f"{n_caught} of {len(FAULTS)} planted faults caught. By suite: {tally}."
    lines = [f"| fault | {' | '.join(SUITES)} |", "|---" * (len(SUITES) + 1) + "|"]
    for what, caught in known.items():
        lines.append(f"| {what} | {' | '.join('x' if suite in caught else '' for suite in SUITES)} |")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(["# Planted faults", "", summary, "", *lines, ""]), encoding="utf-8")
    print(summary)
    sys.exit(any(not rows[fault.what] for fault in faults))


def _rows_so_far() -> dict[str, list[str]]:
    """Return the table as last written: per fault the suites that caught it."""
    if not RESULTS.exists():
        return {}
    cells = [
        line.split("|")[1:-1] for line in RESULTS.read_text(encoding="utf-8").splitlines() if "|" in line
    ]
    suites = [cell.strip() for cell in cells[0][1:]]
    return {
        what.strip(): [suite for suite, mark in zip(suites, marks, strict=True) if mark.strip() == "x"]
        for what, *marks in cells[2:]
    }


if __name__ == "__main__":
    main()
