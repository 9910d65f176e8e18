"""Settings for the whole suite."""

import gc
import itertools
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Several tests run at once, and each starts programs: more threads would only get in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Derandomised: a failure is the same for everyone, and a pass does not depend on luck.
settings.register_profile("shortlist", derandomize=True, deadline=None)
settings.load_profile("shortlist")

# Thousands of tests are found, and stay: to look through them for garbage again and again is in vain.
gc.set_threshold(20_000, 20, 20)

_IN_MEMORY = Path("/dev/shm")
_NUMBERS = itertools.count()
ALL_SLOW = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", flags=re.MULTILINE)


def _is_roomy(folder: Path) -> bool:
    """Return whether a folder has room for all that tests write, and programs there may be run."""
    try:
        return shutil.disk_usage(folder).free > 4 * 2**30 and not os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError:
        return False


# Stores wait for the disk at every answer, which takes longer than all the rest. Files in memory outlive
# whatever tests do to processes just as well.
if "TMPDIR" not in os.environ and _is_roomy(_IN_MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(_IN_MEMORY)


@pytest.fixture(scope="session", autouse=True)
def _stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for the stores of runs; also for fixtures that several tests share."""
    folder = tmp_path_factory.mktemp("stores")
    before = os.environ.get("SHORTLIST_STORE")
    os.environ["SHORTLIST_STORE"] = str(folder / "shared.db")
    yield folder
    os.environ.pop("SHORTLIST_STORE")
    if before is not None:
        os.environ["SHORTLIST_STORE"] = before


@pytest.fixture(autouse=True)
def _own_store(_stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a store of its own, so that none sees the runs of another."""
    monkeypatch.setenv("SHORTLIST_STORE", str(_stores / f"{next(_NUMBERS)}.db"))


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> Iterator[None]:
    """Let Ctrl-C mean what it usually does: shells let programs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try failed measurements again at once; tests of the pauses themselves have a fixture of this name."""
    monkeypatch.setattr("shortlist.execution.retries.Retries.pause", lambda *_: 0.0)


@pytest.fixture(autouse=True)
def usual_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate what a question usually costs only once: hundreds of tests begin runs about the same ones.

    Tests of the usual cost itself have a fixture of this name.
    """
    from tests.usual_once import simulated

    monkeypatch.setattr("shortlist.usual_cost._simulated", simulated)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make check` leave out slow tests."""
    parser.addoption("--quick", action="store_true", help="leave out tests that are marked as slow")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark of slow tests known."""
    config.addinivalue_line("markers", "slow: left out by `make check`")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out whole files by their text: some take longer to import than others to run."""
    if config.getoption("--quick") and collection_path.suffix == ".py":
        return ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) is not None or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out single slow tests."""
    if config.getoption("--quick"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the tests that were found."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Where everything is required (continuous integration), a skipped test is a failed one."""
    report = yield
    if report.skipped and os.environ.get("SHORTLIST_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but SHORTLIST_REQUIRE_ALL=1 forbids that"
    return report
