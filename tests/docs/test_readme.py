"""What the README must have; `test_pages` carries out what it shows."""

import re

from PIL import Image

from tests.docs.pages import ROOT, blocks, programs, steps, text_of

README = text_of("README.md")
_NUMBER = re.compile(r"\d*[\d,.]*\d")
_FIGURES = re.findall(r"^\| (?!question).*\(benchmarks/results/.*\|$", README, flags=re.MULTILINE)


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, without leading zeros, so that 0.05 and .05 are the same."""
    return {number.replace(",", "").lstrip("0") or "0" for number in _NUMBER.findall(text)}


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


def test_figures_are_those_of_the_benchmarks() -> None:
    """The figures in bold of a row stand in one line of its source, and all others somewhere in it."""
    assert len(_FIGURES) >= 6
    for row in _FIGURES:
        (source,) = re.findall(r"\((benchmarks/results/\w+\.md)\)", row)
        found = text_of(source)
        plain = row.replace(f"({source})", "")
        assert numbers(plain) <= numbers(found), row
        bold = numbers(" ".join(re.findall(r"\*\*(.*?)\*\*", plain)))
        assert any(bold <= numbers(line) for line in found.splitlines()), row


def test_a_changed_figure_would_be_seen() -> None:
    assert numbers("16.9 % of 1,000, .05 and 0") == {"16.9", "1000", ".05", "0"}
    assert numbers("from 0.05") <= numbers("to .05.")
    assert not numbers("17.9 %") <= numbers("16.9% ± 0.6%")
