"""Files of results that other tools write: recognised, checked and joined."""

from pathlib import Path

import numpy as np
import pytest

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
