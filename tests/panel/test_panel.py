"""Outcomes on fixed instances do not change unnoticed."""

import json

import pytest
from tools.panel import RECORDED, panel


@pytest.mark.slow
def test_outcomes_are_as_recorded() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    now = panel()
    assert now.keys() == recorded.keys(), "record new strategies with `python -m tools.panel --write`"
    changed = [title for title in now if now[title] != recorded[title]]
    assert not changed, 'outcomes changed: explain it in CHANGELOG.md under "Statistical changes"'
