"""Tables of scores in files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from shortlist.errors import InvalidProblem
from shortlist.measure import score_table
from shortlist.measure.score_table import read_table

WIDE = "item,A,B\n1,0.5,\n2,1,0\n"
LONG = "arm,item,score\nA,1,0.5\nA,2,1\nB,2,0\n"
JSON_LINES = '{"arm": "A", "item": 1, "score": 0.5}\n\n{"arm": "A", "item": 2, "score": 1}\n'


def written(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [WIDE, LONG, WIDE.replace("\n2", "\n\n\n2")])
def test_a_table_has_a_column_per_arm_or_a_line_per_score(tmp_path: Path, text: str) -> None:
    table = read_table(written(tmp_path, text))
    assert (table.arms, table.items) == (("A", "B"), ("1", "2"))
    np.testing.assert_array_equal(table.scores, [[0.5, 1], [np.nan, 0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,A\n1,1_5\n", "line 2: '1_5' is not a score"),
        ("item,A\n1,2\n\n\n2,x\n", "line 5: 'x' is not a score"),
        ("item,A\n1,inf\n", "line 2: 'inf' is not a score"),
        ("item,A\n\n1,2,3\n", "line 3: 3 fields where the header has 2"),
        ("item,A\n1,1\n1,2\n", "two lines for one item"),
        ("item,A,A\n1,1,1\n", "two columns of one name"),
        ("item\n1\n", "must have a column of ids and a column per arm"),
        ("", "must have a header line"),
        ("arm,item,score\n", "has no scores"),
        ("arm,item,score\n\nA,1,no\n", "line 3: 'no' is not a score"),
        ("arm,item,score\nA,1,0\nA,1,1\n", "has two scores of A on item 1; keep one"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        read_table(written(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"arm": "A", "item": 3, "score": true}', "line 4: True is not a score"),
        ('{"arm": "A", "item": 3, "score": "1_5"}', "line 4: '1_5' is not a score"),
        ('{"arm": "A", "score": 1}', "line 4: it must be like"),
    ],
)
def test_a_wrong_line_of_json_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        read_table(written(tmp_path, JSON_LINES + line, "scores.jsonl"))


def test_a_compressed_table_is_not_unpacked_if_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_table, "MOST_UNPACKED", 4 << 20)
    path = tmp_path / "scores.csv.gz"
    path.write_bytes(gzip.compress(WIDE.encode() + b"\n" * (4 << 20)))
    with pytest.raises(
        InvalidProblem, match=r"scores\.csv\.gz cannot be read: unpacked, it is larger than 4 MiB"
    ):
        read_table(path)
    path.write_bytes(gzip.compress(WIDE.encode() + b"\n" * (3 << 20)))
    assert read_table(path).items == ("1", "2")
    damaged = bytearray(gzip.compress(bytes(range(256)) * 1000))
    damaged[40:60] = bytes(20)
    path.write_bytes(damaged)
    with pytest.raises(InvalidProblem, match="it is damaged"):
        read_table(path)
