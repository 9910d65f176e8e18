"""What becomes of a store in which one bit is wrong: ``python -m benchmarks.damage``, some minutes.

Bits are flipped, one at a time, in an SQLite file with three runs, and in the log of writes (-wal) that a
crash leaves beside it. Then all runs are read and resumed. Each flip must be *harmless* (every log reads as
it was), or *named* (an error, or a warning, says what is damaged). None may shorten a log, lose a run, or
begin it anew in silence. Figures go to benchmarks/results/damage.md.
"""

import argparse
import platform
import random
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

import shortlist as sl
from shortlist.errors import LostWrite, StoreTrouble
from shortlist.store import MemoryStore, Record, Store, Suspended, copy_run, open_store, sqlite
from shortlist.store.codec import encoded

RESULTS = Path(__file__).parent / "results" / "damage.md"
RUNS = {"short": 20, "long": 700, "last": 40}
"""How many arms each run has; each is asked for and told by itself, so there are twice as many records."""

PAGE = 4096  # bytes
_OTHER_PAGES = "SELECT rootpage FROM sqlite_master WHERE tbl_name <> 'shortlist_events'"

Log: TypeAlias = list[tuple[int, float, str, bytes]]


@dataclass(frozen=True)
class Files:
    """A store as a crash has left it: the file, and the log of writes that is not in it yet."""

    main: bytes
    wal: bytes | None

    def put(self, path: Path) -> None:
        """Write the files, with nothing else beside them."""
        for suffix, data in {"": self.main, "-wal": self.wal, "-shm": None}.items():
            file = Path(f"{path}{suffix}")
            file.unlink(missing_ok=True)
            if data is not None:
                file.write_bytes(data)

    def flipped(self, bit: int) -> "Files":
        """Return the files with one bit changed: in the log of writes if there is one, else in the file."""
        data = bytearray(self.main if self.wal is None else self.wal)
        data[bit // 8] ^= 1 << bit % 8
        return Files(bytes(data), None) if self.wal is None else Files(self.main, bytes(data))

    @property
    def n_bits(self) -> int:
        """How many bits may be flipped."""
        return 8 * len(self.main if self.wal is None else self.wal)


def filled(target: Store, runs: dict[str, int]) -> None:
    """Measure runs, and copy them to a store."""
    memory = MemoryStore()
    for name, n in runs.items():
        problem = sl.Problem(m=1, epsilon=1.0, delta=0.05, variances=np.ones(n))
        session = sl.Session(problem, "wnelim", store=memory, name=name)
        for k in range(n - 1):
            tickets = session.ask(1, worker=f"worker-{k % 3}")
            session.tell(tickets, means=[k / 7], worker=f"worker-{k % 3}")
        copy_run(memory, target, name)


def whole(path: Path, runs: dict[str, int]) -> Files:
    """Return a store that was closed properly."""
    with closing(open_store(path)) as store:
        filled(store, runs)
    return Files(path.read_bytes(), None)


def crashed(path: Path, runs: dict[str, int], n_writes: int = 40) -> Files:
    """Return a store whose process was killed: its last writes are in the log of writes only."""
    with closing(open_store(path)) as store:
        filled(store, runs)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for run in runs:
            for k in range(n_writes):
                store.append(run, len(list(store.read(run))), lambda _news, _now, k=k: [Suspended(f"{k}")])  # type: ignore[misc]
        return Files(path.read_bytes(), Path(f"{path}-wal").read_bytes())


def plain(records: Iterator[Record]) -> Log:
    """Return records so that they can be compared."""
    return [(record.number, record.at, *encoded(record.event)) for record in records]


def logs(path: Path, files: Files) -> dict[str, Log]:
    """Return all logs of an undamaged store."""
    files.put(path)
    with closing(open_store(path, read_only=True)) as store:
        return {run: plain(iter(store.read(run))) for run in store.runs()}


# --- what a flip does -----------------------------------------------------------------------------------


def outcome(path: Path, files: Files, expected: dict[str, Log]) -> str:
    """Return what becomes of damaged files: "harmless", "named", or what was wrong without a word."""
    outcomes = {_outcome(path, files, expected, attempt) for attempt in (_looked_at, _gone_on_with)}
    worst = [found for found in outcomes if found not in {"harmless", "named"}]
    return worst[0] if worst else "named" if "named" in outcomes else "harmless"


def _outcome(
    path: Path, files: Files, expected: dict[str, Log], attempt: Callable[[Path, dict[str, Log]], str]
) -> str:
    files.put(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LostWrite)
        try:
            found = attempt(path, expected)
        except StoreTrouble:
            found = "named"
    return "named" if any(one.category is LostWrite for one in caught) else found


def _looked_at(path: Path, expected: dict[str, Log]) -> str:
    """Read all runs, and those that the list of runs has."""
    is_named = False
    with closing(open_store(path, read_only=True, must_exist=True)) as store:
        for run in [*expected, *store.runs()]:
            try:
                found = plain(iter(store.read(run)))
            except StoreTrouble:
                is_named = True
                continue
            if found != expected.get(run):
                return f"{run!r} reads as {len(found)} records"
    return "named" if is_named else "harmless"


def _gone_on_with(path: Path, expected: dict[str, Log]) -> str:
    """Add to all runs, as one does who goes on with them; then they must be there, and what was added."""
    is_named = False
    with closing(open_store(path)) as store:
        for run, log in expected.items():
            try:
                store.append(run, 0, lambda _news, _now: [Suspended("gone on with")])
            except StoreTrouble:
                is_named = True
                continue
            with suppress(StoreTrouble):
                found = plain(iter(store.read(run)))
                if found[:-1] != log:
                    return f"{run!r} was gone on with after {len(found) - 1} records"
    return "named" if is_named else "harmless"


def shortens_a_chain(path: Path, files: Files, expected: dict[str, Log]) -> bool:
    """Return whether a log would read as a shorter one without a word if nobody counted its records."""
    files.put(path)
    with suppress(StoreTrouble), closing(open_store(path, read_only=True)) as store:
        store._is_counted = False  # type: ignore[attr-defined]
        for run, log in expected.items():
            with suppress(StoreTrouble):
                if len(list(store.read(run))) < len(log):
                    return True
    return False


def commands(path: Path, files: Files, expected: dict[str, Log]) -> None:
    """Make sure that commands name the damage of a store, and serve the runs that have none."""
    good = _good_runs(path, files, expected)
    copy = path.with_name("copy.db")
    for words in (["list"], ["copy"], *([word, run] for word in ("status", "export") for run in expected)):
        files.put(path)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
        where = [str(path), str(copy)] if words == ["copy"] else ["--store", str(path)]
        command = [sys.executable, "-m", "shortlist", *words, *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        if words[-1] in expected:
            assert (done.returncode == 0) == (words[-1] in good), (words, done)
        elif len(good) < len(expected):
            assert "damaged" in said or "missing" in said, (words, done)
            assert done.returncode == (4 if words == ["copy"] else 0), (words, done)


def _good_runs(path: Path, files: Files, expected: dict[str, Log]) -> set[str]:
    """Return the runs that can be read as they were."""
    files.put(path)
    good = set()
    with closing(open_store(path, read_only=True)) as store:
        for run, log in expected.items():
            with suppress(StoreTrouble):
                good |= {run} if plain(iter(store.read(run))) == log else set()
    return good


# --- the study --------------------------------------------------------------------------------------------


def study(path: Path, files: Files, bits: Iterable[int]) -> tuple[Counter[str], list[Files]]:
    """Return how many flips had which outcome, and those that would shorten a log if nobody counted."""
    expected = logs(path, files)
    found, shortening = Counter[str](), []
    for bit in bits:
        flipped = files.flipped(bit)
        found[outcome(path, flipped, expected)] += 1
        if files.wal is None and shortens_a_chain(path, flipped, expected):
            shortening.append(flipped)
    return found, shortening


def some_bits(files: Files, n: int, pages: Sequence[int] = ()) -> list[int]:
    """Return bits drawn at random, of all that there are or of some pages of the file, numbered from 1."""
    draw = random.Random(0)
    if not pages:
        return draw.sample(range(files.n_bits), n)
    return [8 * PAGE * (draw.choice(pages) - 1) + draw.randrange(8 * PAGE) for _ in range(n)]


def pages_without_records(path: Path, files: Files) -> list[int]:
    """Return the pages of the schema, and the first page of each table and index but that of records."""
    files.put(path)
    with closing(sqlite3.connect(path)) as connection:
        return [1, *(page for (page,) in connection.execute(_OTHER_PAGES))]


def main() -> None:
    """Flip bits, print and write the figures."""
    parser = argparse.ArgumentParser(description="Flip bits in stores, and see whether that is noticed.")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    lines = [
        "# Damaged stores",
        "",
        f"One bit is flipped at random, {given.flips:,} times. Harmless: every log reads as it was. Named: "
        "an error or a warning says what is damaged. "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}.",
        "",
        "| where | bytes | harmless | named | a log shorter, or a run lost, in silence |",
        "|---|---|---|---|---|",
    ]
    small = sqlite._SMALL
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runs.db")
        closed, hot = whole(path, RUNS), crashed(Path(folder, "crashed.db"), RUNS)
        others = pages_without_records(path, closed)
        shortening = []
        for where, files, most, pages in (
            ("a file", closed, small, ()),
            ("a file that is not checked when it is opened, as large ones are not", closed, 0, ()),
            ("the same, in the pages of the schema and of the list of runs", closed, 0, others),
            ("the -wal file that a crash leaves", hot, small, ()),
        ):
            sqlite._SMALL = most
            found, shorter = study(path, files, some_bits(files, given.flips, pages))
            shortening += shorter
            silent = found.total() - found["harmless"] - found["named"]
            size = PAGE * len(pages) or files.n_bits // 8
            lines.append(f"| {where} | {size:,} | {found['harmless']:,} | {found['named']:,} | {silent:,} |")
            print(lines[-1], {*found} - {"harmless", "named"} or "", flush=True)
        sqlite._SMALL = small
        expected, unlike = logs(path, closed), {flipped.main: flipped for flipped in shortening}.values()
        for flipped in unlike:
            commands(path, flipped, expected)
    lines += [
        "",
        f"{len(unlike)} of these flips would shorten a log in silence if nobody counted its records. With "
        "each, `list` and `copy` name the damage, and `status` and `export` fail for that run only.",
    ]
    print(lines[-1])
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
