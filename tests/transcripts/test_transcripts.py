"""Runs are what they were, to the last bit."""

import json

import pytest

from tests.transcripts import deliveries  # noqa: F401  (it adds its own)
from tests.transcripts.transcript import RECORDED, TRANSCRIPTS, compare

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_run_is_what_was_recorded(name: str) -> None:
    assert compare([name]) == {}


def test_nothing_else_is_recorded() -> None:
    assert json.loads(RECORDED.read_text(encoding="utf-8")).keys() == TRANSCRIPTS.keys()
