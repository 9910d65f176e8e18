"""The command line, called in a folder of its own, with a store there."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shortlist import cli

QUESTION = """
[problem]
m = 1
epsilon = 0.3
delta = 0.1
names = ["north", "south", "east, far"]
bounds = [0.0, 1.0]
"""
AWK = "BEGIN { srand({seed} % 1000003); for (i = 0; i < {count}; i++) print (rand() < 0.2 + 0.3 * {arm}) }"
BY_AWK = f"""
[measure]
kind = "command"
command = ["awk", "{AWK}"]
"""
SIMULATED = """
[problem]
m = 1
epsilon = 0.5
delta = 0.1
scales = [1.0, 1.0, 1.0]

[measure]
kind = "simulated"
means = [0.0, 1.0, 2.0]
"""
PILOT = """
[problem]
m = 1
epsilon = 0.5
delta = 0.1
noise = "gaussian-unknown"
pilot = 10
n = 2
"""


class Outcome(NamedTuple):
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it printed, on one line."""
        return " ".join(self.out.split())

    @property
    def data(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


class Calls:
    """Calls the command line as `shortlist` does, without the wait for a new process."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder, self.capsys, self.monkeypatch = folder, capsys, monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.delenv("SHORTLIST_STORE")

    def __call__(self, *arguments: str) -> Outcome:
        """Return how a command ended."""
        self.monkeypatch.setattr(sys, "argv", ["shortlist", *arguments])
        status: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            status = end.code
        return Outcome(status or 0, *self.capsys.readouterr())

    def write(self, name: str, text: str) -> str:
        """Write a file, and return its name."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def sheet(self, *options: str) -> list[dict[str, str]]:
        """Ask for tickets of the run `trial`, and return the lines of the sheet."""
        done = self("ask", "trial", "--csv", *options)
        assert done.status in {0, 3}, done.err
        return list(csv.DictReader(done.out.splitlines()))

    def tell(self, rows: list[dict[str, Any]], *options: str) -> Outcome:
        """Tell the run `trial` the lines of a sheet."""
        with (self.folder / "answers.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return self("tell", "trial", "answers.csv", *options)


def measured(row: dict[str, str]) -> list[str]:
    """Return what the program above prints for a ticket of a sheet."""
    program = AWK
    for word, column in (("seed", "seed"), ("count", "pulls"), ("arm", "arm")):
        program = program.replace(f"{{{word}}}", row[column])
    return subprocess.run(["awk", program], capture_output=True, check=True, text=True).stdout.split()
