"""Where the sections of the theory stand: docs/theory.md lists them by number, with links to chapters."""

import re
from pathlib import Path

_LISTED = re.compile(r"^\[(\d+)\]\(([^)]+)\)", flags=re.MULTILINE)
_NAMED = re.compile(r"(?<!\] )\b[Ss]ections? \d+(?:(?:, | and | or | to )\d+)*\b(?!\.\d)")


def sections(docs: Path) -> dict[str, str]:
    """Return the link to each section, from the folder of the pages, by the section's number."""
    return dict(_LISTED.findall((docs / "theory.md").read_text(encoding="utf-8")))


def linked(text: str, docs: Path) -> str:
    """Return a chapter with a link at every number of a section that it names.

    Sections of papers are left alone: they follow a key, as in "[ZT22] Section 3", or have a point.
    """
    links = sections(docs)

    def link(number: re.Match[str]) -> str:
        return f"[{number[0]}](../{links[number[0]]})"

    return _NAMED.sub(lambda found: re.sub(r"\d+", link, found[0]), text)
