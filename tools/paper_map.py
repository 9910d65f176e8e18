"""Write docs/paper-map.md: which symbol of the code implements which formula of which paper.

The table of the theorems that guarantees cite follows from the guarantees of the strategies.

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

from tools.theory import sections

ROOT = Path(__file__).parent.parent
TARGET = Path("docs") / "paper-map.md"
KEY = re.compile(r"\[([A-Z]+[0-9]{2})\]")
_COMMENT = re.compile(rf"# {KEY.pattern} (.+)")
_ENTRY = re.compile(r"@\w+\{(\w+),\s*(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^\s*(author|title|year)\s*=\s*\{(.*)\},?$", re.MULTILINE)
_FIRST = "ZT22"
_THEOREM = re.compile(r"\[ZT22\] ((?:Theorem|Lemma) [A-Z0-9.]*[A-Z0-9])")
_SECTIONS = re.compile(r"docs/theory\.md, sections? (\d+)(?: and (\d+))?")
_PROMISED = {  # sections about a theorem, besides those that a guarantee names itself
    "Lemma 5.1": ("2", "16"),
    "Lemma 5.2": ("2", "4"),
    "Theorem 5.3": ("2", "4"),
    "Lemma C.1": ("2",),
}
_HEAD = """# From the papers to the code

Each formula and the symbols of the package `shortlist` that implement it: first the paper that all began
with, then others by their keys, which are those of [references.bib](references.bib). Corrections to the
papers are in [Theory](theory.md). Written by `make docs-map` from the comments at the ends of lines; do
not edit.
"""


class Place(NamedTuple):
    """A comment that names a formula: where the formula stands, and the symbol it stands in."""

    key: str
    address: str
    symbol: str
    file: Path
    line: int


def places(root: Path) -> list[Place]:
    """Return every address in the sources under `root`, in the order of the files."""
    package = root / "src" / "shortlist"
    return [place for path in sorted(package.rglob("*.py")) for place in _places_in(path, root)]


def references(root: Path) -> dict[str, str]:
    """Return authors, year and title of each entry of docs/references.bib by its key."""
    text = (root / "docs" / "references.bib").read_text(encoding="utf-8")
    return {key: _reference(dict(_FIELD.findall(fields))) for key, fields in _ENTRY.findall(text)}


def _reference(fields: dict[str, str]) -> str:
    names = [name.split(",")[0] for name in fields["author"].split(" and ")]
    authors = ", ".join(names[:-1]) + " and " + names[-1] if names[1:] else names[0]
    return re.sub(r"[{}$]|\\var(?=epsilon)", "", f"{authors} ({fields['year']}): {fields['title']}")


def build(root: Path, *, with_lines: bool = False) -> str:
    """Return the text of docs/paper-map.md for the sources under `root`.

    The file has no numbers of lines, which every change would move. The site has them.
    """
    known = references(root)
    rows: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for place in places(root):
        name, file = place.symbol.removeprefix("shortlist."), f"../{place.file.as_posix()}"
        link = f"[`{name}`, line {place.line}]({file})" if with_lines else f"[`{name}`]({file})"
        rows[place.key][place.address].add(link)
    parts = [_HEAD, *_theorems(root)]
    for key in sorted(rows, key=lambda key: (key != _FIRST, key)):
        parts.append(f"## {key}\n\n{known.get(key, '')}\n\n| address | code |\n|---|---|")
        for address in sorted(rows[key], key=_natural):
            escaped = address.replace("|", r"\|")
            parts.append(f"| `{escaped}` | {', '.join(sorted(rows[key][address], key=_natural))} |")
        parts.append("")
    return "\n".join(parts)


def cited(root: Path) -> dict[str, list[tuple[str, Path, list[str]]]]:
    """Return the theorems that guarantees cite: the strategy, its file, and sections of the theory."""
    found: dict[str, list[tuple[str, Path, list[str]]]] = defaultdict(list)
    for path in sorted((root / "src" / "shortlist" / "strategies").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Guarantee.of":
                source = next(
                    (ast.literal_eval(one) for one in node.args[1:2] if isinstance(one, ast.Constant)), ""
                )
                sections = [number for groups in _SECTIONS.findall(source) for number in groups if number]
                for theorem in _THEOREM.findall(source):
                    found[theorem].append((path.stem.replace("_", "-"), path.relative_to(root), sections))
    return found


def _theorems(root: Path) -> list[str]:
    """Return the table of the theorems that guarantees cite."""
    if not (rows := cited(root)):
        return []
    links = sections(root / "docs")
    parts = [
        "## Theorems that guarantees cite\n\n| theorem | strategy | sections of the theory |\n|---|---|---|"
    ]
    for theorem in sorted(rows, key=_natural):
        for strategy, file, own in rows[theorem]:
            numbers = sorted({*own, *_PROMISED.get(theorem, ())}, key=int)
            where = ", ".join(f"[{number}]({links[number]})" for number in numbers)
            parts.append(f"| {theorem} | [`{strategy}`](../{file.as_posix()}) | {where} |")
    return [*parts, ""]


def _places_in(path: Path, root: Path) -> Iterator[Place]:
    source = path.read_text(encoding="utf-8")
    module = _module(path, root)
    spans = list(_spans(ast.parse(source), module))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (found := _COMMENT.fullmatch(token.string)):
            line = token.start[0]
            symbol = next((name for name, first, last in spans if first <= line <= last), module)
            address = re.split("[:;] ", found[2])[0]
            yield Place(found[1], address, symbol, path.relative_to(root), line)


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
