"""What the pages on durable runs and on measuring by hand show is what happens."""

import re
import secrets
import shlex
from itertools import cycle
from pathlib import Path

import pytest

from shortlist import cli
from tests.cli.calling import Calls
from tests.docs.pages import blocks, text_of

ROOT = Path(__file__).parents[2]
PAGE = text_of("docs/durable-runs.md")
PAGES = {"docs/durable-runs.md": 3, "docs/by-hand.md": 11}
"""The pages, and how many commands each shows."""

MOMENTS = re.compile(r"(\d{1,2}\s[A-Z][a-z]+(\s\d{4})?,?\s?)?\b\d\d:\d\d\b|\d{1,2}\s[A-Z][a-z]+\s\d{4}")


def steps(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with what it prints."""
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in text.split("$ ")[1:]]


def said(text: str) -> list[str]:
    """Return the words of an output, whatever the width and the time."""
    return MOMENTS.sub("MOMENT", " ".join(text.split())).split()


def carried_out(call: Calls, command: str) -> str:
    """Run a command of the page, and return what a terminal shows."""
    words, _, target = command.partition(" > ")
    program, *arguments = shlex.split(words)
    if program == "cat":
        return (call.folder / arguments[0]).read_text(encoding="utf-8")
    assert program == "shortlist"
    done = call(*arguments)
    if target:
        call.write(target, done.out)
    return done.err if target else done.out + done.err


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_happens(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Calls(tmp_path, capsys, monkeypatch)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    letters = cycle("kqzfmb")  # of the run that is shown
    monkeypatch.setattr(secrets, "choice", lambda _: next(letters))
    n_steps = 0
    for language, name, text in blocks(page):
        if name:
            call.write(name, text)
        for command, shown in steps(text) if language == "console" else []:
            printed = carried_out(call, command)
            n_steps += 1
            rest = said(printed)
            for part in shown.split("...\n") if shown else []:
                wanted = said(part)
                places = [k for k in range(len(rest) + 1) if rest[k : k + len(wanted)] == wanted]
                assert places, f"put what `{command}` prints into the page:\n{printed}"
                rest = rest[places[0] + len(wanted) :]
            assert not shown or not rest, f"`{command}` prints more:\n{printed}"
    assert n_steps == PAGES[page]


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_the_page_fit_a_terminal(page: str) -> None:
    for language, _, text in blocks(page):
        for _, shown in steps(text) if language == "console" else []:
            lines = [line for line in shown.splitlines() if not line.startswith(("Error:", "Warning:"))]
            assert max(map(len, lines), default=0) <= 80


def test_the_page_lists_all_commands_about_kept_runs() -> None:
    listed = set(re.findall(r"^\| `shortlist (\w+)", PAGE, flags=re.MULTILINE))
    others = {"plan", "doctor", "simulate", "bench", "strategies", "certify", "docs", "examples"}
    assert listed == set(cli.shortlist.commands) - others
