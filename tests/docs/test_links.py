"""Relative links of Markdown files lead to a file, and to a heading in it if they name one."""

import os
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages

_FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCED.sub("", path.read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", prose(path), flags=re.MULTILINE)}


def links(path: Path) -> list[str]:
    """Return the targets of a page's links that stay in the repository."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)) if ":" not in target]


def broken(path: Path) -> list[str]:
    found = []
    for target in links(path):
        file, _, fragment = target.partition("#")
        place = Path(os.path.normpath(path.parent / file)) if file else path
        is_there = place.is_relative_to(ROOT) and place.exists()
        if not is_there or (fragment and fragment not in anchors(place)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", all_pages())
def test_links_lead_somewhere(page: str) -> None:
    assert broken(ROOT / page) == []


def test_pages_have_links() -> None:
    assert sum(len(links(ROOT / page)) for page in ("README.md", "CONTRIBUTING.md")) >= 15


def test_a_broken_link_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.test_links.ROOT", tmp_path)
    (tmp_path / "b.md").write_text("# One, two: `three`\n\n```text\n# Four\n[x](gone.md)\n```\n")
    page = tmp_path / "a.md"
    page.write_text("[x](b.md#one-two-three) [x](b.md#four) [x](c.md) [x](#here) [x](https://a.b) [x](../d)")
    assert broken(page) == ["b.md#four", "c.md", "#here", "../d"]
