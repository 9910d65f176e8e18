"""Settings for the whole suite."""

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# Derandomised: a failure is the same for everyone, and a pass does not depend on luck.
settings.register_profile("shortlist", derandomize=True, deadline=None)
settings.load_profile("shortlist")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Where everything is required (continuous integration), a skipped test is a failed one."""
    report = yield
    if report.skipped and os.environ.get("SHORTLIST_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but SHORTLIST_REQUIRE_ALL=1 forbids that"
    return report
