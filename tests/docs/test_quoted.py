"""Figures that pages quote from benchmarks are those that the benchmarks wrote."""

import re

import pytest

from tests.docs.pages import text_of

PAGES = {"README.md": 7, "docs/index.md": 6, "docs/how-we-know.md": 9}
"""Pages with tables of figures, and how many rows at least name their source."""

_NUMBER = re.compile(r"\d*[\d,.]*\d")
_SOURCE = re.compile(r"\(benchmarks/(?:results/)?([\w-]+)\.md\)")


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, without leading zeros, so that 0.05 and .05 are the same."""
    return {number.replace(",", "").lstrip("0") or "0" for number in _NUMBER.findall(text)}


def has(line: str, figure: str) -> bool:
    """Return whether a line has a figure, such as "16.9 %" or "50 of 50", and not as a part of another."""
    whole = rf"(?<![\d.,]){re.escape(figure.replace(' %', '%'))}(?!\d|[.,]\d)"
    return re.search(whole, line.replace(" %", "%")) is not None


@pytest.mark.parametrize("page", PAGES)
def test_figures_are_those_of_the_benchmarks(page: str) -> None:
    """The figures in bold of a row stand in one line of its source, and all others somewhere in it."""
    rows = [row for row in text_of(page).splitlines() if row.startswith("|") and _SOURCE.search(row)]
    assert len(rows) >= PAGES[page]
    for row in rows:
        (source,) = _SOURCE.findall(row)
        found = text_of(f"benchmarks/results/{source}.md")
        plain = _SOURCE.sub("", row)
        assert numbers(plain) <= numbers(found), row
        bold = re.findall(r"\*\*(.*?)\*\*", plain)
        assert bold, row
        assert any(all(has(line, figure) for figure in bold) for line in found.splitlines()), row


def test_all_planted_faults_were_caught() -> None:
    (least,) = re.findall(r"more than (\d+) deliberate errors", text_of("docs/how-we-know.md"))
    ((caught, planted, unseen),) = re.findall(
        r"^(\d+) of (\d+) planted faults caught, (\d+) unseen",
        text_of("benchmarks/results/mutants.md"),
        flags=re.MULTILINE,
    )
    assert caught == planted
    assert int(planted) > int(least)
    assert unseen == "0"


def test_a_changed_figure_would_be_seen() -> None:
    assert numbers("16.9 % of 1,000, .05 and 0") == {"16.9", "1000", ".05", "0"}
    assert numbers("from 0.05") <= numbers("to .05.")
    assert not numbers("17.9 %") <= numbers("16.9% ± 0.6%")
    assert has("| 16.9% ± 0.6% |", "16.9 %")
    assert not has("| 16.9% ± 0.6% |", "6.9 %")
    assert not has("| 44 of 50 | 82 |", "50 of 50")
