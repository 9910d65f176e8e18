"""Reading HTML as strictly as we write it."""

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"meta", "br", "img", "hr", "input", "link"}
EMPTY_IN_SVG = {"line", "rect", "circle", "path"}


class Element(NamedTuple):
    """An element: its name, attributes, and where it is."""

    tag: str
    attributes: dict[str, str]
    within: tuple[str, ...]


class Strict(HTMLParser):
    """Elements and text of a page in which every element is closed, in order, and has each attribute once."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.texts: list[tuple[str, str]] = []  # where, and what
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        found = {name: value or "" for name, value in attrs}
        self.elements.append(Element(tag, found, tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self._open, f"<{tag}/> is no HTML"
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data!r}")

    def words(self, *tags: str) -> str:
        """Return all text within some kinds of elements, or all of it but the style."""
        kept = [text for where, text in self.texts if (where in tags if tags else where != "style")]
        return " ".join("".join(kept).split())
