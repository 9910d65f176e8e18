"""What the README shows is what happens."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def programs() -> list[tuple[str, str]]:
    """Each Python block with the text block that shows its output."""
    found = []
    for place, (language, block) in enumerate(BLOCKS):
        if language == "python":
            following = BLOCKS[place + 1]
            assert following[0] == "text", "a program is followed by what it prints"
            found.append((block, following[1]))
    return found


def sessions() -> list[list[str]]:
    """The commands of each console block."""
    blocks = [block.splitlines() for language, block in BLOCKS if language == "console"]
    return [[line.removeprefix("$ ") for line in block if line.startswith("$ ")] for block in blocks]


@pytest.mark.parametrize(("program", "printed"), programs())
def test_programs_print_what_is_shown(program: str, printed: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(program, encoding="utf-8")
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == printed


def test_there_are_programs_and_commands() -> None:
    assert len(programs()) == 6
    assert sum(map(len, sessions())) == 14


@pytest.mark.parametrize("commands", sessions(), ids=lambda commands: commands[0])
def test_commands_work(commands: list[str]) -> None:
    for command in commands:
        assert_works(command)


def assert_works(command: str) -> None:
    first, *arguments = shlex.split(command)
    if first == "make":
        (target,) = arguments
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        return
    assert first == "shortlist"
    run = subprocess.run(
        [sys.executable, "-m", "shortlist", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert run.returncode == 0, run.stderr
    assert max(map(len, run.stdout.splitlines())) <= 80


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_strategies_are_all_listed() -> None:
    import shortlist as sl

    for name in sl.strategies("unknown"):
        assert f"`{name}`" in README
