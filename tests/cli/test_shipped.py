"""`shortlist docs` and `shortlist examples`: what is installed beside the code."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from shortlist.cli import docs, examples
from shortlist.files.problem_file import read_problem_file
from tests.cli.calling import Calls
from tests.docs.pages import ROOT, all_pages, text_of

SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
PAGES = sorted(
    Path(page).relative_to("docs").with_suffix("").as_posix() for page in all_pages() if page[0] == "d"
)


# --- docs -----------------------------------------------------------------------------------------


def test_pages_are_listed_with_their_titles(call: Calls) -> None:
    titles = [" ".join(line.split()) for line in call("docs").out.splitlines()]
    assert {"server A server", "benchmarks Benchmarks", "examples Examples"} <= set(
        titles
    )  # it includes a file
    assert not any(title.startswith("benchmarks/") for title in titles)
    listed = {one["page"]: one["title"] for one in call("docs", "--json").data}
    assert sorted(listed) == PAGES
    assert text_of("benchmarks/results/unknown.md").startswith(f"# {listed['benchmarks/unknown']}\n")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_can_be_shown(call: Calls, page: str) -> None:
    done = call("docs", page)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("# ")
    assert "{toctree}" not in done.out
    assert "{include}" not in done.out


def test_a_page_outside_a_terminal_is_its_markdown(call: Calls) -> None:
    assert call("docs", "guarantee").out == text_of("docs/guarantee.md")
    assert call("docs", "guarantee", "--json").data == {
        "page": "guarantee",
        "section": None,
        "text": text_of("docs/guarantee.md"),
    }


@pytest.mark.parametrize(
    "reference",
    [
        "theory 25",
        "docs/theory.md, section 25",
        "docs/theory.md, section 25.",
        "theory Top-two",
        "theory TOP-TWO",
    ],
)
def test_a_section_is_shown_alone(call: Calls, reference: str) -> None:
    out = call("docs", *reference.split()).out
    assert out.startswith("## 25. Top-two\n")
    assert out.count("\n## ") == 0
    assert "**Ledger.** One event" in out


def test_several_sections_are_shown_in_their_order(call: Calls) -> None:
    for reference, numbers in (("17 and 19", ["17", "19"]), ("17 to 19", ["17", "18", "19"])):
        out = call("docs", "docs/theory.md,", "sections", *reference.split()).out
        assert re.findall(r"^## (\d+)\. ", out, flags=re.MULTILINE) == numbers


def test_a_section_ends_at_the_next_one_and_comments_in_programs_are_no_headings(
    call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "# Title\n\n## One\n\n```sh\n# Two\n```\n\n### Inner\n\ntext\n\n## Two, at last\n\nend\n"
    monkeypatch.setattr(docs, "shipped", lambda: call.folder)
    (call.folder / "docs" / "page").mkdir(parents=True)
    call.write("docs/page.md", page)
    call.write("docs/page/chapter.md", "# Chapter\n\n## 7. Seven\n\nSeven of 7.\n")
    assert call("docs", "page", "one").out == page[9 : page.index("## Two")].rstrip() + "\n"
    assert call("docs", "page", "two").out == "## Two, at last\n\nend\n"
    assert call("docs", "page", "7").out == "## 7. Seven\n\nSeven of 7.\n"  # a page in chapters
    assert call("docs", "page/chapter", "7").out == "## 7. Seven\n\nSeven of 7.\n"
    assert "chapter" not in call("docs").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no page 'nowhere'; `shortlist docs` lists all pages."),
        (["../README"], "there is no page '../README'"),
        (
            ["theory", "99"],
            "the page 'theory' has no section '99'; `shortlist docs theory` shows the whole page.",
        ),
        (["theory", "2"], ""),
        (["server", "7"], "has no section '7'"),
    ],
)
def test_what_is_not_there_is_named(call: Calls, words: list[str], said: str) -> None:
    done = call("docs", *words)
    assert done.status == (2 if said else 0)
    assert said in done.err
    assert done.out.startswith("" if said else "## 2. The objects")


def in_terminal(rows: int, *words: str, has_keys: bool = True) -> str:
    """Return what a command prints in a terminal of 80 columns, where `cat` is the pager."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    environment = os.environ | {"PAGER": "cat -A", "TERM": "xterm"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "shortlist", *words]
    with subprocess.Popen(
        command, stdin=other if has_keys else subprocess.DEVNULL, stdout=other, env=environment
    ) as process:
        os.close(other)
        said = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # its other end is closed
                break
            said += part
        assert process.wait(timeout=60) == 0
    os.close(main)
    return said.decode()


@pytest.mark.slow
def test_a_terminal_gets_formatted_text_in_a_pager_if_it_is_long() -> None:
    short = in_terminal(200, "docs", "theory", "25")
    assert "**Theorem.**" not in short
    assert "\x1b[1mTheorem.\x1b[0m" in short
    assert "$\r\n" not in short
    long = in_terminal(20, "docs", "theory", "25")
    assert "$\r\n" in long  # from `cat -A`
    assert "**Theorem.**" not in long
    assert "$\r\n" not in in_terminal(20, "docs", "theory", "25", has_keys=False)


# --- what the package refers to -------------------------------------------------------------------


def references() -> set[str]:
    """Return all that docstrings, messages and guarantees name of the documentation."""
    text = " ".join(" ".join(SOURCES.values()).split())
    numbers = r"\d+(?:(?:,| and| to) \d+)*"
    found = set(re.findall(rf"docs/[\w/-]+\.md(?:, sections? {numbers})?", text))
    return found | {
        f"{page} {section}".strip() for page, section in re.findall(r"`shortlist docs ([\w-]+) ?(\d*)`", text)
    }


def test_messages_refer_to_pages_and_sections() -> None:
    found = references()
    assert {"problem-files", "server", "timing", "docs/theory.md, section 33"} <= found
    assert len(found) > 25


@pytest.mark.parametrize("reference", sorted(references()))
def test_what_the_package_refers_to_can_be_shown(call: Calls, reference: str) -> None:
    done = call("docs", *reference.split())
    assert (done.status, done.err) == (0, "")


def test_nothing_is_installed_by_the_name_of_the_package() -> None:
    """Shortlist is on no package index: a package of that name there would be someone else's."""
    texts = {str(path): text for path, text in SOURCES.items()} | {
        page: text_of(page) for page in all_pages()
    }
    by_name = re.compile(r"pip3? install [^\n`]*?(?<![\w/.])shortlist\b")
    assert [where for where, text in texts.items() if by_name.search(text)] == []
    assert by_name.search("pip install -U 'shortlist[plot]'")
    assert not by_name.search("pip install ./shortlist")


# --- examples -------------------------------------------------------------------------------------

NAMES = sorted({path.stem for path in (ROOT / "examples").glob("*.*") if path.suffix in {".py", ".toml"}})


def test_examples_are_listed_with_their_question(call: Calls) -> None:
    lines = call("examples").out.splitlines()
    assert any(line.split() == ["drilling", "Where", "to", "drill?"] for line in lines)
    listed = {one["example"]: one for one in call("examples", "--json").data}
    assert sorted(listed) == NAMES
    assert listed["training"] == {
        "example": "training",
        "about": "Which settings to train with?",
        "file": "training.toml",
    }
    assert all(len(one["about"]) < 120 for one in listed.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_example_comes_with_all_that_it_reads(call: Calls, name: str) -> None:
    done = call("examples", name, "--to", "tryout")
    assert (done.status, done.err) == (0, "")
    (command,) = (line.strip() for line in done.out.splitlines() if line.startswith("  "))
    program, path = command.rsplit(" ", 1)
    assert program == ("python" if path.endswith(".py") else "shortlist run")
    text = (call.folder / path).read_text(encoding="utf-8")
    assert "examples/" not in text  # what its comments say to run is found here
    named = set(re.findall(r'"([\w-]+\.(?:csv\.gz|csv|awk|py))', text))
    assert named <= {one.name for one in (call.folder / "tryout").iterdir()}
    if path.endswith(".toml"):
        asked = read_problem_file(call.folder / path)
        assert asked.problem == read_problem_file(ROOT / "examples" / Path(path).name).problem


def test_an_example_is_written_here_and_runs(call: Calls) -> None:
    assert call("examples", "drilling").words == (
        "Wrote drilling.toml, drilling-sites.csv. To run it: shortlist run drilling.toml"
    )
    assert "5 of 200 arms selected" in call("run", "drilling.toml").out
    again = call("examples", "drilling.toml", "--json")
    assert again.data == {
        "files": ["drilling.toml", "drilling-sites.csv"],
        "command": "shortlist run drilling.toml",
    }


def test_a_file_of_the_user_is_not_replaced_unasked(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    call.write("drilling-sites.csv", "mine")
    done = call("examples", "drilling")
    assert (done.status, done.out) == (2, "")
    assert "drilling-sites.csv exists already, with other content. Nothing was written." in done.err
    assert [path.name for path in call.folder.iterdir()] == ["drilling-sites.csv"]
    for answer, is_replaced in (("n\n", False), ("y\n", True)):
        typed = io.StringIO(answer)
        monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(sys, "stdin", typed)
        done = call("examples", "drilling")
        assert done.status == 0
        assert "Replace? [y/N]" in done.err
        assert ("Nothing was written." in done.out) is not is_replaced
        assert ((call.folder / "drilling-sites.csv").read_text() == "mine") is not is_replaced
        assert (call.folder / "drilling.toml").exists() is is_replaced


def test_an_unknown_example_is_answered_with_those_there_are(call: Calls) -> None:
    done = call("examples", "diving")
    assert done.status == 2
    assert f"there is no example 'diving'; choose one of: {', '.join(NAMES)}." in done.err
    assert examples._examples().keys() == set(NAMES)
