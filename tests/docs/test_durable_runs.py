"""What the page on durable runs shows is what happens."""

import re
import secrets
import shlex
from itertools import chain, cycle
from pathlib import Path

import pytest

from shortlist import cli
from tests.cli.calling import Calls

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "durable-runs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
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


def test_the_page_shows_what_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Calls(tmp_path, capsys, monkeypatch)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    letters = chain("drillm", cycle("kqzfmb"))  # of the first run, and of the one that is shown
    monkeypatch.setattr(secrets, "choice", lambda _: next(letters))
    n_steps = 0
    for language, name, text in BLOCKS:
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
    assert n_steps == 13


def test_lines_of_the_page_fit_a_terminal() -> None:
    for language, _, text in BLOCKS:
        for _, shown in steps(text) if language == "console" else []:
            lines = [line for line in shown.splitlines() if not line.startswith(("Error:", "Warning:"))]
            assert max(map(len, lines), default=0) <= 80


def test_the_page_lists_all_commands_about_kept_runs() -> None:
    listed = set(re.findall(r"^\| `shortlist (\w+)", PAGE, flags=re.MULTILINE))
    others = {"plan", "doctor", "simulate", "bench", "strategies", "certify"}
    assert listed == set(cli.shortlist.commands) - others


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert (ROOT / "docs" / target.partition("#")[0]).exists(), target  # headings: test_links
