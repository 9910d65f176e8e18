"""What the README must have; `test_pages` carries out what it shows."""

import shortlist as sl
from tests.docs.pages import blocks, programs, steps, text_of


def test_there_are_programs_and_commands() -> None:
    assert len(programs("README.md")) == 6
    assert sum(len(steps(block)) for block in blocks("README.md")) >= 14


def test_strategies_are_all_listed() -> None:
    for name in sl.strategies.names("unknown"):
        assert f"`{name}`" in text_of("README.md")
