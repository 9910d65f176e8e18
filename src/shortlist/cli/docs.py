"""``shortlist docs``: show a page of the documentation, which is installed with the package."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show
from shortlist.errors import InvalidProblem

_REFERENCE = re.compile(r"(?:docs/)?([\w/-]+?)(?:\.md)?,?(?:\s+(?:sections?\s+)?(.+))?", flags=re.ASCII)
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```\n?", flags=re.MULTILINE)
_TOCTREE = re.compile(r"^```\{toctree\}\n.*?^```\n?", flags=re.MULTILINE | re.DOTALL)
_WIDEST = 100  # longer lines are hard to read


@click.command("docs")
@click.argument("reference", nargs=-1, metavar="[PAGE [SECTION]]")
@json_option("the page, or the list of pages,")
def command(reference: tuple[str, ...], as_json: bool) -> None:
    """Show PAGE of the documentation, or one SECTION of it; without PAGE, list the pages.

    SECTION is the number of a section, or words of its heading. You can also paste a reference as it is
    printed, such as "docs/theory.md, section 32". In a terminal, the page is formatted. Elsewhere, the output
    is Markdown.

    \b
      shortlist docs
      shortlist docs problem-files
      shortlist docs theory 32
      shortlist docs server tokens
    """
    if not reference:
        _list(as_json)
        return
    name, section = _parsed(" ".join(reference))
    found = page(name)
    if found is None:
        raise InvalidProblem(f"there is no page {name!r}; `shortlist docs` lists all pages.")
    text = found if section is None else "\n".join(_section(name, one) for one in _each(section))
    if as_json:
        print_json({"page": name, "section": section, "text": text})
    elif sys.stdout.isatty():
        _show(text)
    else:
        click.echo(text, nl=not text.endswith("\n"))


def shipped() -> Path:
    """Return the folder that has `docs` and `examples`: in an installed package, or the source tree."""
    package = Path(__file__).parents[1]
    installed = package / "share"
    return installed if installed.is_dir() else package.parents[1]


def page(name: str) -> str | None:
    """Return the Markdown text of a page, or None if there is no such page."""
    full = {name, f"{name}/index"}.intersection(_names())
    if not full:
        return None
    path = shipped() / "docs" / f"{full.pop()}.md"
    text = path.read_text("utf-8")
    text = _INCLUDE.sub(lambda found: (path.parent / found[1]).read_text("utf-8"), text)
    return _TOCTREE.sub("", text).rstrip() + "\n"


def _parsed(reference: str) -> tuple[str, str | None]:
    """Return the page and the section that a reference names."""
    found = _REFERENCE.fullmatch(reference.strip().rstrip("."))
    return (reference, None) if found is None else (found[1], found[2])


def _each(sections: str) -> Iterable[str]:
    """Return the sections that are meant by "17", "17 and 19", "17 to 19" or words of a heading."""
    if ends := re.fullmatch(r"(\d{1,4}) to (\d{1,4})", sections, flags=re.ASCII):
        return map(str, range(int(ends[1]), int(ends[2]) + 1))
    is_list = re.fullmatch(r"\d+(?:(?:,| and) \d+)+", sections, flags=re.ASCII)
    return re.findall(r"\d+", sections) if is_list else [sections]


def _names() -> list[str]:
    """Return the names of all pages."""
    folder = shipped() / "docs"
    paths = (path.relative_to(folder) for path in folder.rglob("*.md"))
    return sorted(path.with_suffix("").as_posix() for path in paths if path.parts[0] != "_build")


def _list(as_json: bool) -> None:
    from rich.table import Table

    titles = {name: next((title for _, title, _ in _headings(page(name) or "")), name) for name in _names()}
    if as_json:
        print_json([{"page": name, "title": title} for name, title in titles.items()])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("page", no_wrap=True)
    table.add_column("title")
    for name, title in titles.items():
        if name.count("/") == name.endswith("/index"):  # other pages in folders are named there
            table.add_row(name.removesuffix("/index"), title.replace("[", r"\["))
    show(table)


def _headings(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the level, the title and the place of each heading that is not within a block of code."""
    is_code, place = False, 0
    for line in text.splitlines(keepends=True):
        is_code ^= line.startswith("```")
        if not is_code and (found := re.match(r"(#+) (.+)", line)):
            yield len(found[1]), found[2].replace("`", ""), place
        place += len(line)


def _section(name: str, wanted: str) -> str:
    """Return a section of a page, or of the pages in the folder of the same name."""
    for part in [name, *(other for other in _names() if other.startswith(f"{name}/"))]:
        text = page(part) or ""
        headings = list(_headings(text))
        for number, (level, title, start) in enumerate(headings):
            if title.startswith(f"{wanted}.") or (not wanted.isdigit() and wanted.lower() in title.lower()):
                ends = (place for depth, _, place in headings[number + 1 :] if depth <= level)
                return text[start : next(ends, len(text))].rstrip() + "\n"
    raise InvalidProblem(
        f"the page {name!r} has no section {wanted!r}; `shortlist docs {name}` shows the whole page."
    )


def _show(text: str) -> None:
    """Print Markdown formatted, in a pager if it is longer than the terminal and there is a keyboard."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(Markdown(text, hyperlinks=False), width=min(console.width, _WIDEST))
    formatted = captured.get()
    if formatted.count("\n") < console.height or not sys.stdin.isatty():
        click.echo(formatted, nl=False)
    else:
        click.echo_via_pager(formatted)
