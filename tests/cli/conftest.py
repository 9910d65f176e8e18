"""A folder of its own for every test, to call the command line in."""

from pathlib import Path

import pytest

from tests.cli.calling import QUESTION, Calls
from tests.store.conftest import postgres, server

__all__ = ["postgres", "server"]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return the command line, in an empty folder."""
    return Calls(tmp_path, capsys, monkeypatch)


@pytest.fixture
def trial(call: Calls) -> Calls:
    """Return the command line, where a run `trial` has begun."""
    call.write("trial.toml", QUESTION)
    assert call("begin", "trial.toml").status == 0
    return call
