"""A pytest plugin for `tools.mutants`: it runs the chosen tests and logs when each starts and ends."""

import os
from pathlib import Path

import pytest

_SECONDS: dict[str, float] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests, if any were chosen."""
    chosen = set(Path(os.environ["MUTANTS_CHOSEN"]).read_text(encoding="utf-8").splitlines())
    if chosen:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Count a file that cannot be imported as a test that fails."""
    if report.failed:
        _log("failed", report.nodeid, 0.0)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Log that a test starts."""
    _log("started", nodeid, 0.0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Log how a test ended; its set-up and its tear-down are part of it."""
    _SECONDS[report.nodeid] = _SECONDS.get(report.nodeid, 0.0) + report.duration
    if report.failed:
        _log("failed", report.nodeid, _SECONDS[report.nodeid])
    if report.when == "teardown":
        _log("ended", report.nodeid, _SECONDS[report.nodeid])


def _log(what: str, test: str, seconds: float) -> None:
    with open(os.environ["MUTANTS_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{what}\t{test}\t{seconds}\n")
