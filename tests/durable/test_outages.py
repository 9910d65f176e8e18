"""A store that fails while many clients tell: nothing acknowledged is lost, and runs end as they should."""

import pytest
from benchmarks.outages import Verdict, can_mount, on_a_small_disk, on_postgres

from tests.store.server import programs

pytestmark = pytest.mark.slow


def assert_good(verdicts: list[Verdict]) -> None:
    assert [one for one in verdicts if not one.is_good] == []
    assert all(one.refused for one in verdicts), "no write failed"
    assert all(one.acknowledged for one in verdicts)


def test_on_a_disk_that_fills_and_empties() -> None:
    if not can_mount():
        pytest.skip("no disk can be mounted here")
    verdicts, counts = on_a_small_disk(1)
    assert counts["full_disk"] > 2
    assert_good(verdicts)


def test_on_a_database_whose_commits_fail() -> None:
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    verdicts, _ = on_postgres(1, found)
    assert_good(verdicts)
