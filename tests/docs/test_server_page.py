"""What the page on the server shows is what happens: with bash, curl and a real server."""

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, programs, shows, steps
from tests.server.process import environment

pytestmark = pytest.mark.slow

PAGE = "docs/server.md"
PORTS = ("8765", "8766", "8767")
START = f"""
shortlist() {{ "{sys.executable}" -m shortlist "$@"; }}
python() {{ "{sys.executable}" "$@"; }}
"""
BEGUN = re.compile(r'"code": "([a-z]{6})"')
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")


class Shell:
    """Bash in a folder with the examples. Free ports, and letters of tickets, stand in for those shown."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.letters = folder, "kqzfmb"
        self.ports = {port: free_port() for port in PORTS}
        self.behind: list[subprocess.Popen[bytes]] = []
        (folder / "examples").symlink_to(ROOT / "examples")

    def meant(self, text: str) -> str:
        """Return a text of the page as it holds here."""
        for port, here in self.ports.items():
            text = text.replace(port, here)
        return text.replace("kqzfmb", self.letters)

    def start(self, command: str) -> None:
        """Start a server, and wait until it answers."""
        words = command.removesuffix(" &").removeprefix("shortlist ").split()
        self.behind.append(
            subprocess.Popen(
                [sys.executable, "-m", "shortlist", *words],
                cwd=self.folder,
                env=plain_environment(),
                stdout=subprocess.DEVNULL,
            )
        )
        wait_for(int(words[words.index("--port") + 1]))

    def said(self, command: str) -> str:
        """Return what a command prints, as the page would show it."""
        done = subprocess.run(
            ["bash", "-c", START + command],
            cwd=self.folder,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if found := BEGUN.search(done.stdout):
            self.letters = found[1]
        said = done.stdout.replace(self.letters, "kqzfmb")
        for port, here in self.ports.items():
            said = said.replace(here, port)
        return said


def plain_environment() -> dict[str, str]:
    return {
        key: value
        for key, value in environment().items()
        if key not in {"SHORTLIST_STORE", "SHORTLIST_TOKEN"}
    }


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server did not start")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    if shutil.which("curl") is None or shutil.which("bash") is None:
        pytest.skip("curl or bash is not installed")
    found = Shell(tmp_path)
    yield found
    for process in found.behind:
        process.terminate()
    for process in found.behind:
        process.wait(timeout=60)


def test_commands_print_what_is_shown(shell: Shell) -> None:
    n_steps = 0
    for block in blocks(PAGE):
        if block.name:
            (shell.folder / block.name).write_text(shell.meant(block.text), encoding="utf-8")
        for step in steps(block):
            n_steps += 1
            if step.command.endswith(" &"):
                shell.start(shell.meant(step.command))
                continue
            said = shell.said(shell.meant(step.command))
            shown, printed = (MOMENT.sub("MOMENT", text) for text in (step.shown, said))
            if shown:
                assert shows(shown, printed), f"put what `{step.command}` prints into {PAGE}:\n{said}"
            else:
                assert not printed, f"`{step.command}` prints:\n{said}"
    assert n_steps == 17
    assert (shell.folder / "wheat.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert len((shell.folder / "wheat.csv").read_text(encoding="utf-8").splitlines()) == 5
    assert "drilling-short-race" in (shell.folder / "index.json").read_text(encoding="utf-8")


def test_the_program_prints_what_is_shown(tmp_path: Path) -> None:
    ((program, printed),) = programs(PAGE)
    port = free_port()
    (tmp_path / "mine.py").write_text(program.replace("8766", port), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "mine.py"],
        cwd=tmp_path,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
    assert done.stderr == ""


def test_limits_are_those_of_the_server() -> None:
    from shortlist.server.settings import Limits

    text, limits = (ROOT / PAGE).read_text(encoding="utf-8"), Limits()
    assert f"| one request | {limits.body // 2**20} MB, and {limits.patience:.0f} seconds" in text
    assert f"| {limits.rate:,.0f} per second; after a pause, a burst of up to twice as many |" in text
    assert limits.burst == 2 * limits.rate
    assert f"| {limits.wrong_tokens}, then one every ten seconds |" in text
    assert f"| {limits.streams:,} at a time |" in text
