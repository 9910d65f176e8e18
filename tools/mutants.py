"""Plant faults one at a time and name a test that catches each.

`make mutants` runs it; the table goes to benchmarks/results/mutants.md. The exit status is 1 if a fault goes
unseen, or if a test fails without any fault. Faults are planted in copies, never in the working tree.

The test that the table names is tried first. If it no longer catches the fault, or none is named yet, others
are tried until one fails: those named for faults in the same file, those whose names share words with the
fault, those near that file; and when all faults have had their turn, all tests for those still unseen. A test
counts only if it passes without the fault and fails alone with it; one that does not end counts as failing,
and is marked.

With names of source files or folders, as in `python -m tools.mutants bounds planning.py`, only their faults
are planted. `--keep` resumes an interrupted study: it keeps the rows whose fault, source file and test file
are still the same.
"""

import argparse
import ast
import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, TypeAlias

from tools.faults import FAULTS, Fault

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mutants.md"
NEAR = {  # by folder of the sources: where to look for tests that catch a fault, likely and quick ones first
    "bounds": ("bounds/*", "paper/*"),
    "certificates": ("proof/test_ledger.py", "certificates/*", "strategies/*", "proof/*"),
    "strategies": (
        "proof/test_ledger.py",
        "strategies/*oracles.py",
        "strategies/test_ranking.py",
        "test_unknown.py",
        "proof/*",
        "contract/*",
        "strategies/*",
        "test_*.py",
        "paper/*",
        "panel/*",
        "statistical/*",
    ),
    "measure": ("measure/*", "execution/*"),
    "session": (
        "session/test_session.py",
        "session/*",
        "cli/*",
        "durable/test_sessions.py",
        "execution/*",
        "durable/*",
        "server/*",
    ),
    "execution": ("execution/test_retries.py", "session/*", "execution/*", "durable/*", "server/*"),
    "files": ("files/*", "cli/*", "docs/test_problem_files.py"),
    "store": ("store/test_[acdms]*.py", "durable/test_sessions.py", "store/*", "durable/*", "session/*"),
    "doctor": ("doctor/*", "cli/*"),
    "report": ("report/*", "cli/*"),
    "plot": ("plot/*",),
    "client": ("server/test_client.py", "server/*"),
    "server": ("server/test_safety.py", "server/test_serving.py", "server/test_[ac]*.py", "server/*"),
    "cli": ("cli/*", "test_*.py"),
}
ELSEWHERE = ("proof/test_ledger.py", "test_*.py", "bounds/*", "contract/*")
NO_WITNESSES = frozenset({"tests/docs/test_faults.py"})
"""Tests that look at the text of the sources: they would notice every fault, and prove nothing."""

N_ALIKE = 16  # tests that are tried because of their names
N_NEAR = 6  # files of tests that are tried because they are near, before other faults have their turn
TIME_LIMIT = 300.0
"""Seconds that one test may take in a search. Where its usual time is known: ten times that, and 30 more."""

UNSEEN = "UNSEEN"
HANGS = " (does not end)"
_ROW = re.compile(rf"^\| (.+) \| (?:`(.+)`({re.escape(HANGS)})?|{UNSEEN}) \| (\w+) \|$")


class Row(NamedTuple):
    """The test that fails with a fault planted, or does not end; and a checksum of what was tried.

    The test is None where the fault goes unseen.
    """

    test: str | None
    is_endless: bool
    checksum: str


class Outcome(NamedTuple):
    """What a run of pytest showed: seconds of the tests that passed, those that failed, the one that hung."""

    passed: dict[str, float]
    failed: list[str]
    hung: str | None

    @property
    def first(self) -> str | None:
        """Return the first test that failed or did not end."""
        return next(iter(self.failed), self.hung)


class Copy:
    """A copy of the tree, in which tests run with one fault planted or none."""

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "copy"
        self._log = folder / "log"
        self._chosen = folder / "chosen"
        ignored = shutil.ignore_patterns(".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "_build")
        shutil.copytree(ROOT, self._tree, ignore=ignored)
        # Checked by content: by time and size, a fault planted within a second would not be noticed.
        compiling = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src"]
        subprocess.run(compiling, cwd=self._tree, check=True)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Make one replacement, and undo it; the text to replace must occur exactly once."""
        path = self._tree / "src" / "shortlist" / fault.file
        source = path.read_text(encoding="utf-8")
        if source.count(fault.old) != 1:
            raise ValueError(
                f"{fault.what}: {fault.old!r} occurs {source.count(fault.old)} times in {fault.file}"
            )
        path.write_text(source.replace(fault.old, fault.new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")

    def run(self, paths: list[str], *options: str, only: Iterable[str] = (), limit: float) -> Outcome:
        """Run the tests under these paths, of them the chosen ones only if any are given.

        A test that takes longer than `limit` seconds ends the run.
        """
        self._log.write_text("", encoding="utf-8")
        self._chosen.write_text("\n".join(only), encoding="utf-8")
        environment = os.environ | {
            "PYTHONPATH": f"{self._tree / 'src'}{os.pathsep}{self._tree}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "MUTANTS_LOG": str(self._log),
            "MUTANTS_CHOSEN": str(self._chosen),
        }
        plugins = ["-p", "tools.mutants_log", "-p", "no:xdist"]
        if not any("server" in path for path in paths):  # only its tests use it, and it takes long to load
            plugins += ["-p", "no:schemathesis"]
        command = [sys.executable, "-m", "pytest", "-q", *plugins, *options, *paths]
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command, cwd=self._tree, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            is_ended = self._wait(process, limit)
            with suppress(ProcessLookupError):  # it, or what tests started and left behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.seek(0)
            said = output.read().decode(errors="replace")
        entries = [line.split("\t") for line in self._log.read_text(encoding="utf-8").splitlines()]
        failed = [test for what, test, _ in entries if what == "failed"]
        passed = {
            test: float(seconds) for what, test, seconds in entries if what == "ended" and test not in failed
        }
        started = [test for what, test, _ in entries if what == "started"]
        is_missing = process.returncode == 4 and "not found: " in said
        if is_ended and not failed and process.returncode not in (0, 5) and not is_missing:
            raise RuntimeError(f"pytest ended with {process.returncode}\n{said[-2000:]}")
        return Outcome(passed, failed, None if is_ended else (started or ["the collection"])[-1])

    def _wait(self, process: subprocess.Popen[bytes], limit: float) -> bool:
        """Return whether the process ended before one test took too long."""
        size, since = 0, time.monotonic()
        while time.monotonic() < since + limit:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
                return True
            if (now := self._log.stat().st_size) != size:
                size, since = now, time.monotonic()
        return False


ToTry: TypeAlias = Callable[[Fault], Iterator[tuple[list[str], float]]]


class Study:
    """Which test catches which fault, with as many at once as there are copies."""

    def __init__(self, copies: list[Copy], known: dict[str, str]) -> None:
        self.broken: set[str] = set()  # tests that fail without a fault
        self._known = known  # by fault, the test that catches it
        self._seconds: dict[str, float] = {}  # of tests that pass without a fault
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        self._n_copies = len(copies)
        for copy in copies:
            self._copies.put(copy)

    def rows(self, faults: list[Fault]) -> Iterator[tuple[Fault, Row, float]]:
        """Plant these faults; yield each as it is decided, with its row and the seconds it took."""
        self._try_without_fault({test for fault in faults for test in self._known_in(fault.file)})
        unseen: list[Fault] = []
        for found in self._decided_at_once(self._likely, faults):
            if found[1].test is None:
                unseen.append(found[0])
            else:
                yield found
        yield from self._decided_at_once(self._left, unseen)

    def _decided_at_once(self, to_try: ToTry, faults: list[Fault]) -> Iterator[tuple[Fault, Row, float]]:
        with ThreadPoolExecutor(self._n_copies) as pool:
            try:
                for task in as_completed([pool.submit(self._decided, fault, to_try) for fault in faults]):
                    yield task.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _known_in(self, file: str) -> list[str]:
        return [
            self._known[fault.what] for fault in FAULTS if fault.file == file and fault.what in self._known
        ]

    def _try_without_fault(self, tests: set[str]) -> None:
        """Run these tests on the sound sources, in all copies at once; skip those that no longer exist."""
        files = sorted({_file_of(test) for test in tests if (ROOT / _file_of(test)).exists()})

        def run(share: list[str]) -> Outcome:
            with self._copy() as copy:
                return copy.run(share, only=tests, limit=TIME_LIMIT)

        shares = [share for i in range(self._n_copies) if (share := files[i :: self._n_copies])]
        with ThreadPoolExecutor(self._n_copies) as pool:
            for outcome in pool.map(run, shares):
                self._note(outcome)

    def _note(self, outcome: Outcome) -> None:
        self._seconds |= outcome.passed
        self.broken |= {*outcome.failed, *([outcome.hung] if outcome.hung else [])}

    def _decided(self, fault: Fault, to_try: ToTry) -> tuple[Fault, Row, float]:
        began = time.monotonic()
        with self._copy() as copy:
            row = self._row(fault, copy, to_try)
        return fault, row, time.monotonic() - began

    def _row(self, fault: Fault, copy: Copy, to_try: ToTry) -> Row:
        by_chance: set[str] = set()
        for tests, limit in to_try(fault):
            while tests:
                left_out = [f"--deselect={test}" for test in self.broken | by_chance]
                with copy.planted(fault):
                    outcome = copy.run(tests, "-x", *left_out, limit=limit)
                if outcome.first is None:
                    break
                is_sure = tests == [outcome.first] and outcome.first in self._seconds
                if is_sure or self._is_cause(fault, outcome.first, copy):
                    self._known[fault.what] = outcome.first  # the next fault in this file tries it, too
                    return Row(outcome.first, outcome.hung is not None, checksum(fault, outcome.first))
                by_chance.add(outcome.first)
        return Row(None, False, checksum(fault, None))

    def _is_cause(self, fault: Fault, test: str, copy: Copy) -> bool:
        """Return whether a test passes alone without the fault, and fails alone with it."""
        if test not in self._seconds:
            self._note(copy.run([test], limit=TIME_LIMIT))
        if test in self.broken:
            return False
        with copy.planted(fault):
            return copy.run([test], limit=self._limit([test])).first is not None

    def _likely(self, fault: Fault) -> Iterator[tuple[list[str], float]]:
        """Yield tests, and the seconds that one of them may take: the likeliest and quickest first."""
        known = [self._known[fault.what]] if fault.what in self._known else []
        others = [test for test in dict.fromkeys(self._known_in(fault.file)) if test not in known]
        for tests in (known, others):
            sound = [test for test in tests if test in self._seconds]
            yield sound, self._limit(sound)
        yield alike(fault), 60.0
        yield _near(fault.file)[:N_NEAR], TIME_LIMIT

    def _left(self, fault: Fault) -> Iterator[tuple[list[str], float]]:
        """Yield all other tests: those near the file, then the rest, with likely files first."""
        yield _near(fault.file)[N_NEAR:], TIME_LIMIT
        near, likely = _near(fault.file), [_file_of(test) for test in alike(fault, len(_index()))]
        rest = [*likely, *_tests("**/*")]
        yield [path for path in dict.fromkeys(rest) if path not in near], TIME_LIMIT

    def _limit(self, tests: list[str]) -> float:
        return 30 + 10 * max((self._seconds.get(test, 0.0) for test in tests), default=0.0)

    @contextmanager
    def _copy(self) -> Iterator[Copy]:
        copy = self._copies.get()
        try:
            yield copy
        finally:
            self._copies.put(copy)


def alike(fault: Fault, most: int = N_ALIKE) -> list[str]:
    """Return the tests that say most nearly what a fault says: by the words of names and docstrings.

    A word counts the more, the fewer tests have it; tests in the folder of the fault's file count more.
    """
    index, asked = _index(), _words(f"{fault.what} {fault.file}")
    frequency = Counter(word for words in index.values() for word in words)
    folder = Path(fault.file).parts[0]

    def likeness(test: str) -> float:
        shared = index[test] & asked
        score = sum(math.log(len(index) / frequency[word]) ** 2 for word in shared)
        return score * (1.6 if Path(_file_of(test)).parts[1] == folder else 1.0)

    return sorted((test for test in index if likeness(test) > 0), key=likeness, reverse=True)[:most]


@cache
def _index() -> dict[str, frozenset[str]]:
    """Return the words of all tests: of their names, of their docstrings and of the names of their files.

    Those of the pages are left out: they take long, and notice only that something is different.
    """
    found = {}
    for path in _tests("**/*"):
        if path.startswith("tests/docs/"):
            continue
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                said = f"{node.name} {ast.get_docstring(node) or ''} {Path(path).stem}"
                found[f"{path}::{node.name}"] = _words(said)
    return found


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without their endings; very short ones say nothing."""
    words = re.sub(r"[^a-z0-9]", " ", text.lower()).split()
    return frozenset(re.sub(r"(ing|ed|es|s)$", "", word) for word in words if len(word) > 3)


def _near(file: str) -> list[str]:
    """Return the test files near a source file; those that share a word of its name come first."""
    source = Path(file)
    words = set(source.stem.split("_"))
    near = [path for pattern in NEAR.get(source.parts[0], ELSEWHERE) for path in _tests(pattern)]
    return sorted(dict.fromkeys(near), key=lambda path: not words & set(Path(path).stem.split("_")))


def _tests(pattern: str) -> list[str]:
    files = [
        path
        for path in (ROOT / "tests").glob(pattern)
        if re.fullmatch(r"test_\w+\.py", path.name) and path.parent.name != "hosts"  # of other environments
    ]
    return sorted({str(path.relative_to(ROOT)) for path in files} - NO_WITNESSES)


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def checksum(fault: Fault, test: str | None) -> str:
    """Return a checksum of the fault, its source file and the test's file."""
    paths = [ROOT / "src" / "shortlist" / fault.file, *([ROOT / _file_of(test)] if test else [])]
    texts = [*fault, *(path.read_text(encoding="utf-8") for path in paths if path.exists())]
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=5).hexdigest()


def read() -> dict[str, Row]:
    """Return the rows of the table as last written, by fault."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [match.groups() for match in map(_ROW.match, lines) if match]
    return {
        what: Row(test and test.replace(r"\|", "|"), bool(hangs), checksum)
        for what, test, hangs, checksum in found
        if not test or _file_of(test) not in NO_WITNESSES
    }


def write(rows: dict[str, Row]) -> str:
    """Write the table, in the order of the faults, and return its summary."""
    known = {fault.what: rows[fault.what] for fault in FAULTS if fault.what in rows}
    n_unseen = sum(row.test is None for row in known.values())
    n_left = len(FAULTS) - len(known)
    summary = f"{len(known) - n_unseen} of {len(FAULTS)} planted faults caught, {n_unseen} unseen"
    summary += f", {n_left} not tried yet." if n_left else "."
    lines = ["# Planted faults", "", summary, "", "| fault | caught by | checksum |", "|---|---|---|"]
    for what, (test, is_endless, digest) in known.items():
        named = "`" + test.replace("|", r"\|") + "`" + HANGS * is_endless if test else UNSEEN
        lines.append(f"| {what} | {named} | {digest} |")
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return summary


def main() -> None:
    """Plant the faults of the files named on the command line, or all; print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("parts", nargs="*", help="source files or folders; all if none is named")
    parser.add_argument("--keep", action="store_true", help="keep rows that no change concerns")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="how many faults at once")
    given = parser.parse_args()
    rows = read()
    faults = [fault for fault in FAULTS if not given.parts or any(part in fault.file for part in given.parts)]
    if given.keep:
        faults = [fault for fault in faults if not _is_current(fault, rows.get(fault.what))]
    faults.sort(key=lambda fault: fault.what in rows)  # new ones first
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(given.at_once)]
        study = Study(copies, {what: row.test for what, row in rows.items() if row.test})
        for number, (fault, row, seconds) in enumerate(study.rows(faults), start=1):
            rows[fault.what] = row
            mark = UNSEEN if row.test is None else "hangs " if row.is_endless else "caught"
            print(f"[{number}/{len(faults)}] {mark} {seconds:4.0f} s  {fault.what}: {row.test}", flush=True)
            write(rows)
    print(write(rows))
    if study.broken:
        print("These tests fail without any fault; fix them:", *sorted(study.broken), sep="\n  ")
    sys.exit(bool(study.broken) or any(rows[fault.what].test is None for fault in faults))


def _is_current(fault: Fault, row: Row | None) -> bool:
    return row is not None and row.test is not None and row.checksum == checksum(fault, row.test)


if __name__ == "__main__":
    main()
