"""What the README must have; `test_pages` carries out what it shows."""

import re

from PIL import Image

from tests.docs.pages import ROOT, blocks, programs, steps, text_of
from tests.docs.test_quoted import numbers

README = text_of("README.md")


def test_it_is_short() -> None:
    assert len(README.split()) <= 900


def test_it_has_one_program_and_both_commands() -> None:
    ((program, printed),) = programs("README.md")
    assert "sl.select(" in program
    assert "With probability at least" in printed
    commands = [step.command for block in blocks("README.md") for step in steps(block)]
    assert commands == ["make demo", "make test"]


def test_the_picture_is_small_and_described_by_what_the_program_prints() -> None:
    ((described, file),) = re.findall(r"!\[(.*?)\]\((.*?)\)", README)
    ((_, printed),) = programs("README.md")
    assert numbers(described) <= numbers(printed)
    with Image.open(ROOT / file) as picture:
        assert picture.width >= 1600
    assert (ROOT / file).stat().st_size < 150_000
