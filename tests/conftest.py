"""Settings for the whole suite."""

import itertools
import os
import signal
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

_NUMBERS = itertools.count()


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


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark of slow tests known."""
    config.addinivalue_line("markers", "slow: left out by `make check`")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Where everything is required (continuous integration), a skipped test is a failed one."""
    report = yield
    if report.skipped and os.environ.get("SHORTLIST_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but SHORTLIST_REQUIRE_ALL=1 forbids that"
    return report
