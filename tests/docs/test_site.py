"""The site is built without a warning, has every page, and loads nothing from the network."""

import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from tools import cli_page, strategies_page
from tools.paper_map import places
from tools.site_links import INCLUDE, captioned, pages_of_files, relinked

import shortlist as sl
from shortlist.cli import shortlist
from tests.docs.pages import ROOT, text_of

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-b", "html", "-n", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    return folder / "html"


class Loaded(HTMLParser):
    """Gathers the addresses of what a page loads, and of what it links to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found.get("id", "")}
        if tag == "a":
            self.leads += [found["href"]] if "href" in found else []
        else:
            self.loads += [
                found[name] for name in ("src", "href", "srcset", "data", "poster") if name in found
            ]


@cache
def pages(site: Path) -> dict[Path, Loaded]:
    return {page: Loaded(page) for page in sorted(site.rglob("*.html")) if "_static" not in page.parts}


def test_every_source_has_its_page(site: Path) -> None:
    sources = [path for path in DOCS.rglob("*.md") if "_build" not in path.parts]
    assert len(sources) > 20
    for source in sources:
        assert (site / source.relative_to(DOCS)).with_suffix(".html").is_file()


def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    remote = re.compile(r"^(\w+:)?//")
    for page, found in pages(site).items():
        assert not [address for address in found.loads if remote.match(address)], page
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", text), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), (
            style
        )
    for script in (site / "_static").rglob("*.js"):
        assert not re.search(
            r"(fetch|import|src\s*=)\s*\(?['\"](https?:)?//", script.read_text(encoding="utf-8")
        )


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    found = pages(site)
    for page, links in found.items():
        for address in links.leads + links.loads:
            target, _, fragment = address.partition("#")
            if re.match(r"^(\w+:)?//|^\w+:", address):
                continue
            place = (page.parent / target.partition("?")[0]).resolve() if target else page
            assert place.is_file(), f"{page}: {address}"
            if fragment and place in found:
                assert fragment in found[place].ids, f"{page}: {address}"


def test_dark_mode_is_there(site: Path) -> None:
    assert "theme-toggle" in (site / "index.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in (site / "_static" / "styles" / "furo.css").read_text(
        encoding="utf-8"
    ).replace("prefers-color-scheme:dark", "prefers-color-scheme: dark")


def test_every_public_name_has_an_entry(site: Path) -> None:
    ids = Loaded(site / "api.html").ids
    names = set(sl.__all__) - {"__version__", "errors", "instances", "plot", "strategies"}
    assert not {name for name in names if f"shortlist.{name}" not in ids}, "put these into docs/api.md"
    assert "shortlist.instances.slippage" in ids
    assert not {name for name in sl.plot.__all__ if f"shortlist.plot.{name}" not in ids}


def test_entries_lead_to_their_sources(site: Path) -> None:
    found = Loaded(site / "api.html").leads
    assert "_modules/shortlist/problem.html#Problem" in found
    assert "_modules/shortlist/execution/drive.html#select" in found


def test_blocks_that_are_files_show_their_names(site: Path) -> None:
    for page, name in (
        ("start", "prompts.toml"),
        ("by-hand", "wheat.toml"),
        ("measurements", "score.py"),
    ):
        caption = f'<div class="code-block-caption"><span class="caption-text">{name}</span>'
        assert caption in (site / f"{page}.html").read_text(encoding="utf-8")


def test_no_docstring_is_taken_apart(site: Path) -> None:
    """A property whose first sentence has a colon would be shown as if it named a type."""
    assert ">Type<" not in (site / "api.html").read_text(encoding="utf-8")


def test_formulas_lead_to_the_lines_that_implement_them(site: Path) -> None:
    links = Loaded(site / "paper-map.html").leads
    for place in places(ROOT):
        assert f"source/{place.file.as_posix()}.html#L-{place.line}" in links
        assert (
            f"[{place.key}] {place.address}" in (ROOT / place.file).read_text().splitlines()[place.line - 1]
        )
    shown = (site / "source/src/shortlist/strategies/wnelim.py.html").read_text(encoding="utf-8")
    assert "WNELIM" in shown


def test_the_notebook_is_shown_with_what_it_shows(site: Path) -> None:
    page = site / "source/examples/story.ipynb.html"
    shown = page.read_text(encoding="utf-8")
    assert "<h1>Which of 50 classifiers is the best?</h1>" in shown
    assert "10,085 of 40,000 scores were paid for" in shown
    assert shown.count('src="data:image/png;base64,') == 2
    assert "../../shared-items.html" in Loaded(page).leads


# --- generated pages --------------------------------------------------------------------------------


def test_the_command_line_page_is_up_to_date() -> None:
    assert text_of("docs/cli.md") == cli_page.build(), "run `make docs-reference`"


def test_the_command_line_page_is_the_same_once_commands_have_been_called() -> None:
    for name in shortlist.commands:
        CliRunner().invoke(shortlist, [name, "--help"])
    assert text_of("docs/cli.md") == cli_page.build()


def test_the_page_of_strategies_is_up_to_date() -> None:
    assert text_of("docs/strategies.md") == strategies_page.build(), "run `make docs-reference`"


def test_every_command_is_documented_and_every_documented_one_exists() -> None:
    described = re.findall(r"^## shortlist (\S+)$", text_of("docs/cli.md"), flags=re.MULTILINE)
    assert described == sorted(shortlist.commands)
    for name, command in shortlist.commands.items():
        assert command.help, f"{name} says nothing of itself"
        (section,) = re.findall(
            rf"^## shortlist {name}\n(.*?)(?=^## |\Z)", text_of("docs/cli.md"), flags=re.MULTILINE | re.DOTALL
        )
        for option in command.params:
            assert all(part in section for part in option.opts if part.startswith("--"))


def test_commands_named_on_pages_exist() -> None:
    for path in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        if "_build" in path.parts:
            continue
        for name in re.findall(r"`shortlist ([a-z]+)\b", path.read_text(encoding="utf-8")):
            assert name in shortlist.commands, f"{path}: shortlist {name}"


def test_every_strategy_is_listed() -> None:
    for name in {*sl.strategies.names(), *sl.strategies.names("unknown")}:
        assert f"`{name}`" in text_of("docs/strategies.md")


def test_every_result_of_a_benchmark_is_included() -> None:
    included = set(pages_of_files(DOCS))
    results = set((ROOT / "benchmarks" / "results").glob("*.md"))
    assert results
    assert results <= included, "add a page with an include to docs/benchmarks"
    for page in (DOCS / "benchmarks").glob("*.md"):
        assert page.name == "index.md" or INCLUDE.search(page.read_text(encoding="utf-8"))
        assert page.name == "index.md" or f"]({page.name})" in text_of("docs/benchmarks/index.md")


# --- links between pages and the repository ---------------------------------------------------------


def test_links_are_moved_with_the_text(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "TOP.md").write_text("x")
    (tmp_path / "code.py").write_text("x")
    (docs / "top.md").write_text("```{include} ../TOP.md\n```\n")
    (docs / "own.md").write_text("x")
    pages = pages_of_files(docs)
    text = "[a](TOP.md#b) [c](code.py) [d](docs/own.md) [e](https://x.y/TOP.md) [f](#g) [h](gone.md)\n"
    fenced = "```text\n[a](TOP.md)\n```\n"
    assert relinked(text + fenced, tmp_path, docs / "top.md", pages) == (
        "[a](top.md#b) [c](../code.py) [d](own.md) [e](https://x.y/TOP.md) [f](#g) [h](gone.md)\n" + fenced
    )


def test_names_of_files_become_captions() -> None:
    plain = "```toml\nm = 1\n```\n```{include} a.md\n```\n```console\n$ shortlist run b.toml\n```\n"
    assert captioned(plain) == plain
    assert (
        captioned("```toml a-b.toml\nm = 1\n```\n")
        == "```{code-block} toml\n:caption: a-b.toml\n\nm = 1\n```\n"
    )
