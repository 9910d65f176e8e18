"""Links between pages and the rest of the repository.

Pages link to files as they lie in the repository, so that the links also work where Markdown is read without
the site. Here a link to a file that is a page, or that some page includes, becomes a link to that page; and a
link to any other file becomes one to a page that shows it, at a line if its text ends with "line 5". A
notebook is shown with its outputs. A block that is a file has its name above it. In the chapters of the
theory, the number of a section is a link to it.
"""

import html
import json
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from markdown_it import MarkdownIt
from pygments.lexers.special import TextLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge
from sphinx.transforms import SphinxTransform
from sphinx.util.osutil import relative_uri

from tools import paper_map
from tools.theory import linked

INCLUDE = re.compile(r"^```\{include\} (\S+)$", flags=re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_FENCED = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^```(\w+) (\S+\.\w+)$", flags=re.MULTILINE)
_FOLDERS = {"benchmarks/results": "benchmarks/index.md"}
_PAGE = re.compile(r"\]\(\.\./docs/([\w/-]+)\.md(#[\w-]+)?\)")
_LINE = re.compile(r"\bline (\d+)$")
_LONG = 100
_LANGUAGES = {".py": "python", ".toml": "toml", ".awk": "awk", ".bib": "bibtex", ".cff": "yaml"}


def pages_of_files(docs: Path) -> dict[Path, Path]:
    """Return the page that stands for each file that pages include, and for folders that have one."""
    found = {docs.parent / folder: docs / page for folder, page in _FOLDERS.items()}
    for page in docs.rglob("*.md"):
        for target in INCLUDE.findall(page.read_text(encoding="utf-8")):
            found[Path(os.path.normpath(page.parent / target))] = page
    return found


def relinked(text: str, folder: Path, page: Path, pages: dict[Path, Path]) -> str:
    """Return a text that lies in `folder` with its links as they must be on `page`."""

    def moved(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        path = Path(os.path.normpath(folder / target))
        if ":" in target or not path.exists():
            return match[0]
        return before + os.path.relpath(pages.get(path, path), page.parent) + after

    parts = _FENCED.split(text)
    return "".join(part if place % 2 else _LINK.sub(moved, part) for place, part in enumerate(parts))


def captioned(text: str) -> str:
    """Return a text in which blocks that are files, as in ```toml mine.toml, have their names as captions."""
    return _NAMED.sub(r"```{code-block} \1\n:caption: \2\n", text)


def _on_source_read(app: Sphinx, docname: str, content: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if docname == "paper-map":
        content[0] = paper_map.build(Path(app.srcdir).parent, with_lines=True)
    if docname.startswith("theory/"):
        content[0] = linked(content[0], Path(app.srcdir))
    content[0] = captioned(relinked(content[0], page.parent, page, pages_of_files(Path(app.srcdir))))


def _on_include_read(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:  # noqa: ARG001
    file = Path(os.path.normpath(Path(app.srcdir) / path))
    page = Path(app.env.doc2path(app.env.current_document.docname))
    content[0] = captioned(relinked(content[0], file.parent, page, pages_of_files(Path(app.srcdir))))


class ShowFiles(SphinxTransform):
    """Let links to files that are no pages lead to pages that show them."""

    default_priority = 400

    def apply(self, **_options: Any) -> None:
        """Replace what would be downloads."""
        root = Path(self.app.srcdir).parent
        for node in list(self.document.findall(addnodes.download_reference)):
            _, path = self.env.relfn2path(node["reftarget"], self.env.docname)
            name = Path(os.path.normpath(path)).relative_to(root).as_posix()
            shown = posixpath.join("source", name)
            _shown_files(self.env).setdefault(self.env.docname, set()).add(name)
            line = _LINE.search(node.astext())
            place = f"#L-{line[1]}" if line else ""
            link = nodes.reference("", "", internal=True, refuri=self._uri(shown) + place)
            link += node.children
            node.replace_self(link)

    def _uri(self, shown: str) -> str:
        builder = self.app.builder
        return relative_uri(builder.get_target_uri(self.env.docname), builder.get_target_uri(shown))


class WrapSentences(SphinxTransform):
    """Mark blocks of text with lines so long that they must be sentences, to be wrapped."""

    default_priority = 400

    def apply(self, **_options: Any) -> None:
        """Give such blocks a class, which the style sheet knows."""
        for node in self.document.findall(nodes.literal_block):
            if node.get("language") == "text" and max(map(len, node.astext().splitlines())) > _LONG:
                node["classes"].append("long-lines")


def _shown_files(env: Any) -> dict[str, set[str]]:
    """Return which files are shown because of which page."""
    if not hasattr(env, "shortlist_shown_files"):
        env.shortlist_shown_files = {}
    found: dict[str, set[str]] = env.shortlist_shown_files
    return found


def _forget(_: Sphinx, env: Any, docname: str) -> None:
    _shown_files(env).pop(docname, None)


def _merge(_: Sphinx, env: Any, __: Any, other: Any) -> None:
    _shown_files(env).update(_shown_files(other))


def _source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    root, bridge = Path(app.srcdir).parent, PygmentsBridge("html", app.config.pygments_style)
    for name in sorted(set().union(*_shown_files(app.env).values())):
        text = (root / name).read_text(encoding="utf-8")
        if name.endswith(".ipynb"):
            body = "".join(_cells(json.loads(text), bridge, "../" * (name.count("/") + 1)))
        else:
            language = _LANGUAGES.get(Path(name).suffix, "text")
            code = bridge.highlight_block(text, language, linenos="inline", lineanchors="L")
            body = f'<h1 class="source-file">{name}</h1>\n{code}'
        yield posixpath.join("source", name), {"title": name, "body": body}, "page.html"


def _cells(notebook: dict[str, Any], bridge: PygmentsBridge, top: str) -> Iterator[str]:
    """Yield the cells of a notebook with their outputs, as HTML; `top` leads to the root of the site."""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield MarkdownIt().render(_PAGE.sub(rf"]({top}\1.html\2)", text))
            continue
        yield bridge.highlight_block(text, "ipython")
        for output in cell["outputs"]:
            data = {kind: "".join(part) for kind, part in output.get("data", {}).items()}
            if "text/html" in data:
                yield data["text/html"]
            elif "image/png" in data:
                yield f'<img alt="" src="data:image/png;base64,{data["image/png"]}">'
            else:
                plain = "".join(output.get("text", data.get("text/plain", "")))
                yield f'<div class="highlight long-lines"><pre>{html.escape(plain)}</pre></div>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all this."""
    app.connect("source-read", _on_source_read)
    app.connect("include-read", _on_include_read)
    app.connect("env-get-outdated", lambda *_: ["paper-map"])  # lines move, though its file stays the same
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("html-collect-pages", _source_pages)
    app.add_transform(ShowFiles)
    app.add_transform(WrapSentences)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
