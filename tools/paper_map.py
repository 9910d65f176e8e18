"""Write docs/paper-map.md: which symbol of the code implements which formula of which paper.

A line that implements a formula ends with its address: ``# [ZT22] Alg. 1, line 3``. What follows a
colon or a semicolon in such a comment is a remark and stays out of the map. `make docs-map` runs it.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TARGET = Path("docs") / "paper-map.md"
KEY = re.compile(r"\[([A-Z]+[0-9]{2})\]")
_COMMENT = re.compile(rf"# {KEY.pattern} (.+)")
_ENTRY = re.compile(r"@\w+\{(\w+),\s*(.*?)\n\}", re.DOTALL)
_TITLE = re.compile(r"title\s*=\s*\{(.*)\},?\n")
_HEAD = """# From the papers to the code

Each formula and the symbols that implement it. Written by `make docs-map` from the comments at the
ends of lines; do not edit. The keys are those of [references.bib](references.bib).
"""


class Place(NamedTuple):
    """A comment that names a formula: where the formula stands, and the symbol it stands in."""

    key: str
    address: str
    symbol: str
    file: Path


def places(root: Path) -> list[Place]:
    """Return every address in the sources under `root`, in the order of the files."""
    package = root / "src" / "shortlist"
    return [place for path in sorted(package.rglob("*.py")) for place in _places_in(path, root)]


def references(root: Path) -> dict[str, str]:
    """Return the title of each entry of docs/references.bib by its key."""
    text = (root / "docs" / "references.bib").read_text(encoding="utf-8")
    titles = {}
    for key, fields in _ENTRY.findall(text):
        title = _TITLE.search(fields + "\n")
        titles[key] = re.sub(r"[{}$]", "", title[1]) if title else ""
    return titles


def build(root: Path) -> str:
    """Return the text of docs/paper-map.md for the sources under `root`."""
    titles = references(root)
    rows: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for place in places(root):
        link = f"[`{place.symbol}`](../{place.file.as_posix()})"
        rows[place.key][place.address].add(link)
    parts = [_HEAD]
    for key in sorted(rows):
        parts.append(f"## {key}\n\n{titles.get(key, '')}\n\n| address | code |\n|---|---|")
        for address in sorted(rows[key], key=_natural):
            escaped = address.replace("|", r"\|")
            parts.append(f"| `{escaped}` | {', '.join(sorted(rows[key][address], key=_natural))} |")
        parts.append("")
    return "\n".join(parts)


def _places_in(path: Path, root: Path) -> Iterator[Place]:
    source = path.read_text(encoding="utf-8")
    module = _module(path, root)
    spans = list(_spans(ast.parse(source), module))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (found := _COMMENT.fullmatch(token.string)):
            line = token.start[0]
            symbol = next((name for name, first, last in spans if first <= line <= last), module)
            address = re.split("[:;] ", found[2])[0]
            yield Place(found[1], address, symbol, path.relative_to(root))


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root / "src").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _spans(node: ast.AST, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield each function and class below a node with its first and last line, the innermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{child.name}"
            yield from _spans(child, inner)
            yield inner, child.lineno, child.end_lineno or child.lineno
        else:
            yield from _spans(child, name)


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which "line 10" comes after "line 2"."""
    return [
        (int(part), "") if part.isdigit() else (-1, part.lower()) for part in re.split(r"(\d+)", text) if part
    ]


def main() -> None:
    """Write the file."""
    (ROOT / TARGET).write_text(build(ROOT), encoding="utf-8")


if __name__ == "__main__":
    main()
