"""Figures that pages quote from benchmarks are those that the benchmarks wrote."""

import re

import pytest

from tests.docs.pages import text_of

PAGES = {"README.md": 7, "docs/index.md": 7, "docs/how-we-know.md": 9}
"""Pages with tables of figures, and how many rows at least name their source."""

_NUMBER = re.compile(r"\d*[\d,.]*\d")
_SOURCE = re.compile(r"\(benchmarks/(?:results/)?([\w-]+)\.md\)")


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, without leading zeros, so that 0.05 and .05 are the same."""
    return {number.replace(",", "").lstrip("0") or "0" for number in _NUMBER.findall(text)}


def values(text: str) -> set[float]:
    """Return the same as values, so that 0.0650 and .065 are the same."""
    return {float(number) for number in numbers(text) if number.count(".") < 2}


def is_share(figure: str, text: str) -> bool:
    """Return whether a text has a figure such as "6.5 %" as a share, such as 0.065."""
    shown = re.fullmatch(r"([\d.]+) %", figure)
    return shown is not None and round(float(shown[1]) / 100, 9) in values(text)


def is_product(figure: str, line: str) -> bool:
    """Return whether a rounded figure is a count in a line times one of its ratios, to two digits."""
    known = values(line)
    products = {
        float(f"{count * ratio:.2g}") for count in known if count >= 1000 for ratio in known if ratio < 1
    }
    return re.fullmatch(r"[\d,]+", figure) is not None and float(figure.replace(",", "")) in products


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
        derived = {figure for figure in re.findall(r"[\d.]+ %", plain) if is_share(figure, found)}
        rounded = set(re.findall(r"about \*\*(.*?)\*\*", plain))  # products, which a line must have
        literal = plain
        for figure in derived | rounded:
            literal = literal.replace(figure, "")
        assert numbers(literal) <= numbers(found), row
        bold = re.findall(r"\*\*(.*?)\*\*", plain)
        assert bold, row
        assert any(
            all(
                is_product(figure, line)
                if figure in rounded
                else has(line, figure) or (figure in derived and is_share(figure, line))
                for figure in bold
            )
            for line in found.splitlines()
        ), row


def test_the_readme_and_the_site_say_the_same_of_what_is_saved() -> None:
    readme, index = (
        [
            _SOURCE.sub("", row)
            for row in text_of(page).splitlines()
            if row.startswith("|") and _SOURCE.search(row)
        ]
        for page in ("README.md", "docs/index.md")
    )
    assert readme == index


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
    assert is_share("6.5 %", "| 0.0100 | 0.0650 |")
    assert not is_share("6.5 %", "| 6.5 | 0.0651 |")
    assert is_product("19,000", "| 79,644 | 0.24 | 0.70 |")
    assert not is_product("20,000", "| 79,644 | 0.24 | 0.70 |")
