"""Files of results that other tools write: recognised, checked and joined."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from shortlist.cli import shortlist
from shortlist.errors import InvalidProblem
from shortlist.measure.result_files import read_scores


def written(folder: Path, **tables: str) -> Path:
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_the_files_of_a_folder_are_one_table(tmp_path: Path) -> None:
    folder = written(tmp_path, one="id,A\n1,0\n2,1\n", two="id,B\n2,0\n3,1\n", three="id,A\n3,0.5\n")
    table = read_scores(folder)
    assert (table.arms, table.items) == (("A", "B"), ("1", "2", "3"))  # of one.csv, three.csv, two.csv
    assert np.array_equal(table.scores, [[0, 1, 0.5], [np.nan, 0, 1]], equal_nan=True)


def test_two_scores_of_one_arm_on_one_item_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, one="id,A\n1,0\n2,1\n", two="id,A\n2,1\n")
    with pytest.raises(InvalidProblem, match="two scores of A on item 2; remove the file"):
        read_scores(folder)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="there are no files in the folder"):
        read_scores(tmp_path)


def test_files_without_scores_are_ignored_in_a_folder(tmp_path: Path) -> None:
    folder = written(tmp_path, one="id,A\n1,0\n2,1\n")
    (folder / "summary.json").write_text('{"mean": 0.5}')
    (folder / "README.md").write_text("# Scores\n")
    assert read_scores(folder).arms == ("A",)
    (folder / "one.csv").unlink()
    with pytest.raises(InvalidProblem, match=r"no scores in the folder .* has README\.md, summary\.json"):
        read_scores(folder)
    with pytest.raises(
        InvalidProblem, match=r"summary\.json is not a file of results that Shortlist can read"
    ):
        read_scores(folder / "summary.json")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"on_failure": "zero"}, "`on_failure` is 'zero'; it must be a number"),
        ({"on_failure": True}, "`on_failure` is True; it must be a number"),
        ({"on_failure": float("nan")}, "`on_failure` is nan; it must be a number"),
        ({"metric": 1}, "`metric` is 1; it must be the name of a score"),
    ],
)
def test_what_is_decided_about_files_is_checked(choice: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match=words):
        read_scores(written(tmp_path, one="id,A\n1,0\n"), **choice)


def test_a_log_of_inspect_needs_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    log = tmp_path / "log.eval"
    log.write_bytes(b"PK")
    with pytest.raises(InvalidProblem, match=r"is a log of Inspect.* pip install inspect-ai"):
        read_scores(tmp_path)


@pytest.mark.parametrize(
    "command", [["simulate", "--instance", "linear"], ["certify", "x.csv", "--epsilon", "1"]]
)
@pytest.mark.parametrize("option", [["--metric", "acc"], ["--on-failure", "0"]])
def test_options_about_files_of_results_need_a_table(command: list[str], option: list[str]) -> None:
    with pytest.raises(InvalidProblem, match=f"{option[0]} is for a table of --scores; omit it"):
        CliRunner().invoke(shortlist, [*command, *option], catch_exceptions=False)
