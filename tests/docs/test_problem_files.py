"""Every example of the page on problem files is read, and measures."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import shortlist as sl
from shortlist.files.measure_section import KINDS
from shortlist.files.problem_file import PROBLEM_KEYS, read_problem, read_problem_file
from shortlist.measure import Call, summary_of

PAGE = (Path(__file__).parents[2] / "docs" / "problem-files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
TOML = [text for language, _, text in BLOCKS if language == "toml"]
FILES = {name: text for _, name, text in BLOCKS if name}
PROBLEM = '[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.05\narms = "sites.csv"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the page shows."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    np.save(tmp_path / "scores.npy", np.eye(3))
    return tmp_path


def test_there_are_examples() -> None:
    assert len(TOML) == 17
    assert set(FILES) == {
        "sites.csv",
        "score.py",
        "simulate.sh",
        "blocks.sh",
        "scores.csv",
        "log.csv",
        "judge.py",
        "teas.csv",
    }


@pytest.mark.parametrize("text", TOML)
def test_every_example_is_read_and_measures(folder: Path, text: str) -> None:
    (folder / "question.toml").write_text(text if "[problem]" in text else PROBLEM + text, encoding="utf-8")
    if "[measure]" not in text:
        assert read_problem(folder / "question.toml").n in {3, 50}
        return
    found = read_problem_file(folder / "question.toml")
    for arm in range(found.problem.n):
        (answer,) = found.source.answers([Call(7, arm, 1, 0)])
        assert summary_of(answer, 1, "it").count == 1
    if not found.problem.knows_variances:
        assert sl.select(found.source, found.problem).selected in {("arm-2",), ("0.02",)}


def test_the_program_can_be_run_to_the_end(folder: Path) -> None:
    (text,) = (text for text in TOML if "simulate.sh" in text)
    (folder / "question.toml").write_text(PROBLEM + text)
    found = read_problem_file(folder / "question.toml")
    assert sl.select(found.source, found.problem).selected == ("south",)  # the least deep


def test_the_program_that_reads_seeds_draws_other_numbers_for_each(folder: Path) -> None:
    done = subprocess.run(
        ["./blocks.sh", "30"], cwd=folder, input="1\n2\n3\n", text=True, capture_output=True, check=True
    )
    assert len(set(done.stdout.split())) == 3


def test_every_entry_is_described_and_no_other() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    described = {section.splitlines()[0]: _entries(section) for section in sections}
    assert described["[problem]: the question"] == PROBLEM_KEYS
    for kind, (_, keys) in KINDS.items():
        (title,) = (title for title in described if f'kind = "{kind}"' in title)
        assert described[title] == set(keys), title


def _entries(section: str) -> set[str]:
    """The words in the first column of the tables of a section, and those that rows introduce elsewhere."""
    rows = re.findall(r"^\| (`[^|]*?) \| (.*) \|$", section, flags=re.MULTILINE)
    first = {word for row, _ in rows for word in re.findall(r"`(\w+)(?: = [^`]*)?`", row)}
    return first | {word for _, row in rows for word in re.findall(r"`(at_\w+)`", row)}
