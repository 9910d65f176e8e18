"""Every section of the theory has its place, and whatever names a section leads to one."""

import re
from pathlib import Path

import pytest
from tools.theory import linked, sections

from shortlist import strategies
from tests.docs.pages import ROOT, text_of

DOCS = ROOT / "docs"
CHAPTERS = sorted((DOCS / "theory").glob("*.md"))
_NAMED = re.compile(r"docs/theory\.md`?,\s+(?:#\s+)?sections?\s+([\d, andorto]+)")
HEADINGS = {
    heading: chapter
    for chapter in CHAPTERS
    for heading in re.findall(r"^## (.+)$", chapter.read_text(), re.M)
}


def test_sections_are_numbered_without_a_gap_and_each_stands_once() -> None:
    numbers = [int(heading.split(".")[0]) for heading in HEADINGS]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 44
    assert sum(chapter.read_text().count("\n## ") for chapter in CHAPTERS) == len(numbers)


def test_the_index_has_every_section_by_number_and_by_title() -> None:
    links, index = sections(DOCS), text_of("docs/theory.md")
    assert list(map(int, links)) == list(range(1, len(HEADINGS) + 1))
    for heading, chapter in HEADINGS.items():
        link = links[heading.split(".")[0]]
        assert link.startswith(f"theory/{chapter.name}#{heading.split('.')[0]}-")
        assert f"- [{heading}]({link})" in index
    assert index.count("](theory/") == 2 * len(HEADINGS) + len(CHAPTERS)


@pytest.mark.parametrize("folder", ["src", "tests", "tools", "benchmarks", "examples"])
def test_sections_named_in_sources_exist(folder: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*.py")]
    numbers = {n for text in texts for found in _NAMED.findall(text) for n in re.findall(r"\d+", found)}
    assert numbers <= sections(DOCS).keys()
    assert len(numbers) >= (15 if folder == "src" else 0)


def test_the_sections_that_strategies_print_exist() -> None:
    sources = [strategies.strategy_named(name).source for name in strategies.names()]
    named = [source for source in sources if "docs/theory.md" in source]
    assert len(named) >= 5
    for source in named:
        assert set(re.findall(r"\d+", source.partition("docs/theory.md")[2])) <= sections(DOCS).keys()


def test_numbers_of_sections_become_links(tmp_path: Path) -> None:
    (tmp_path / "theory.md").write_text("[1](theory/a.md#1-one),\n[2](theory/b.md#2-two)\n")
    assert linked("By section 2, [ZT22] Section 1 and Section 1.2.", tmp_path) == (
        "By section [2](../theory/b.md#2-two), [ZT22] Section 1 and Section 1.2."
    )
    assert (
        linked("Sections 1 and 2", tmp_path)
        == "Sections [1](../theory/a.md#1-one) and [2](../theory/b.md#2-two)"
    )
    with pytest.raises(KeyError):
        linked("section 3", tmp_path)
