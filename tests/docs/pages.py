"""What pages show, and how to carry it out.

- A `python` block is a program, and the `text` block after it is what the program prints.
- A block with a name, such as ```` ```toml question.toml ````, is a file of that name.
- A `console` block has commands, each after a `$`, and what they print, where that is shown at all; `...`
  stands for lines left out. The blocks of a page are carried out in order, in one folder with the examples.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from shortlist import cli

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "docs/problem-files.md": "tests/docs/test_problem_files.py",
    "docs/durable-runs.md": "tests/docs/test_durable_runs.py",
    "docs/by-hand.md": "tests/docs/test_durable_runs.py",
    "docs/server.md": "tests/docs/test_server_page.py",
    "CONTRIBUTING.md": "tests/docs/test_contributing.py",
    "examples/README.md": "tests/docs/test_examples.py",
    "docs/recorded-timings.md": "tests/hosts/test_timings.py",
    "docs/inspect.md": "tests/hosts/test_recipes.py",
    "docs/lm-evaluation-harness.md": "tests/hosts/test_recipes.py",
    "docs/promptfoo.md": "tests/hosts/test_recipes.py",
    "docs/scikit-learn.md": "tests/hosts/test_search_pages.py",
    "docs/optuna.md": "tests/hosts/test_search_pages.py",
}
"""Pages with blocks that other tests carry out."""

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d|\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d|\d{1,2} [A-Z][a-z]+ \d{4}|\b\d\d:\d\d\b"
)
_PORT = "8786"
_SEVERAL = re.compile(r"workers|dask|Executor|Processes|__main__", flags=re.IGNORECASE)
"""What uses several processes has one of its own; everything else runs in that of the tests, much sooner."""


class Block(NamedTuple):
    """A block of code on a page: its language, the name of the file it is, and its text."""

    language: str
    name: str
    text: str


class Step(NamedTuple):
    """A command of a console block, and what it is shown to print."""

    command: str
    shown: str

    @property
    def fails(self) -> bool:
        """Whether the command is shown to fail."""
        return re.search(r"^error", self.shown, flags=re.MULTILINE | re.IGNORECASE) is not None


def all_pages() -> list[str]:
    """Return the paths of all pages, from the root of the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "examples/README.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return [path.relative_to(ROOT).as_posix() for path in found if "_build" not in path.parts]


def text_of(page: str) -> str:
    """Return what a page consists of."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    return [Block(*found) for found in _BLOCK.findall(text_of(page))]


def programs(page: str) -> list[tuple[str, str]]:
    """Return each program of a page, with what it is shown to print."""
    found, all_blocks = [], blocks(page)
    for place, block in enumerate(all_blocks):
        if block.language == "python" and not block.name:
            assert place + 1 < len(all_blocks), f"{page}: a program is followed by what it prints"
            assert all_blocks[place + 1].language == "text", (
                f"{page}: a program is followed by what it prints"
            )
            found.append((block.text, all_blocks[place + 1].text))
    return found


def steps(block: Block) -> list[Step]:
    """Return the commands of a console block."""
    if block.language != "console":
        return []
    assert block.text.startswith("$ ")
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [Step(*_first_line(part)) for part in parts]


def _first_line(text: str) -> tuple[str, str]:
    command, _, shown = text.partition("\n")
    return command, shown


class RunCache:
    """A folder in which the blocks of a page are carried out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._behind: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        (folder / "examples").symlink_to(ROOT / "examples")
        self._environment = os.environ | {
            "COLUMNS": "80",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._environment.pop("SHORTLIST_STORE", None)

    def __enter__(self) -> "RunCache":
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._behind):
            process.terminate()
        for process in reversed(self._behind):
            process.wait(timeout=60)

    def outcomes(self, page: str) -> Iterator[tuple[Step, int, str]]:
        """Carry out a page; yield each step with its exit status and what a terminal would show."""
        for block in blocks(page):
            if block.name:
                (self.folder / block.name).write_text(block.text, encoding="utf-8")
            for step in steps(block):
                yield step, *self._done(step.command.replace(_PORT, self._port))

    def _done(self, command: str) -> tuple[int, str]:
        words, _, target = command.removesuffix(" &").partition(" > ")
        started = _arguments(words)
        if not started:
            return 0, ""
        if words.startswith("shortlist ") and not _SEVERAL.search(words):
            with mock.patch.dict(os.environ, self._environment, clear=True):
                status, out, err = in_process(self.folder, shlex.split(words), cli.main)
            return self._kept(target, status, out, err)
        if command.endswith(" &"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self._behind.append(
                subprocess.Popen(started, cwd=self.folder, env=self._environment, **quiet)  # type: ignore[call-overload]
            )
            return 0, ""
        run = subprocess.run(
            started,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return self._kept(target, run.returncode, run.stdout, run.stderr)

    def _kept(self, target: str, status: int, out: str, err: str) -> tuple[int, str]:
        if target:
            (self.folder / target).write_text(out, encoding="utf-8")
        said = ("" if target else out) + (err if status else "")  # else only progress
        return status, said.replace(self._port, _PORT)


def outcome_of(program: str, folder: Path) -> tuple[int, str, str]:
    """Run a program in a folder; return its exit status and what it prints."""
    file = folder / "mine.py"
    file.write_text(program, encoding="utf-8")
    if not _SEVERAL.search(program):
        return in_process(folder, [str(file)], lambda: runpy.run_path(str(file), run_name="__main__"))
    run = subprocess.run([sys.executable, str(file)], cwd=folder, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr


def in_process(folder: Path, arguments: list[str], main: Callable[[], object]) -> tuple[int, str, str]:
    """Call a program without the wait for a new process; return its exit status and what it prints."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    status: object = 0
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", arguments),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
    return int(status or 0), said, complained  # type: ignore[call-overload]


def _arguments(words: str) -> list[str]:
    """Return what to start for a command; nothing for a target of make, which must exist."""
    program, *rest = shlex.split(words)
    if program == "make":
        (target,) = rest
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), f"there is no target {target}"
        return []
    start = {
        "shortlist": [sys.executable, "-m", "shortlist"],
        "python": [sys.executable],
        "dask": [sys.executable, "-m", "dask"],
        "cat": ["cat"],
        "promptfoo": ["promptfoo"],
        "pytest": [sys.executable, "-m", "pytest"],
        "hyperfine": ["hyperfine"],
    }
    return [*start[program], *rest]


def shows(shown: str, printed: str) -> bool:
    """Return whether an output is what a page shows, apart from times and what `...` leaves out."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(_plain(line)) + r"\n" for line in shown.splitlines()
    )
    return re.fullmatch(pattern, "".join(_plain(line) + "\n" for line in printed.splitlines())) is not None


def _plain(line: str) -> str:
    return " ".join(_MOMENT.sub("MOMENT", line).split())
