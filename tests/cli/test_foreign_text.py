"""Texts of strangers in files: which signs end a line, and which signs nobody may send to a terminal."""

import csv
import io
import json

import pytest

from shortlist.measure.printed import rewards_in_lines
from tests.cli.calling import QUESTION, Calls

LINE_ENDS = "a\u2028b\u2029c\x85d"
"""Signs at which Python ends lines; in files they are part of a text."""

ITEMS = """
[problem]
m = 1
epsilon = 0.3
delta = 0.1
names = ["A", "B"]
rewards = "bernoulli"

[items]
file = "items.jsonl"
id = "id"
"""


def json_lines(call: Calls, name: str, rows: list[dict[str, object]]) -> None:
    """Write JSON lines as JavaScript does, with all other characters as they are, and ended as on Windows."""
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\r\n" for row in rows)
    (call.folder / name).write_text(text, encoding="utf-8", newline="")


def test_only_line_feeds_end_lines_of_json(call: Calls) -> None:
    ids = [f"{number}{LINE_ENDS}" for number in range(4)]
    json_lines(call, "items.jsonl", [{"id": one} for one in ids])
    scores: list[dict[str, object]] = [
        {"arm": arm, "item": one, "score": int(arm == "A")} for arm in "AB" for one in ids
    ]
    json_lines(call, "scores.jsonl", scores)
    call.write("trial.toml", ITEMS)
    assert call("begin", "trial.toml").status == 0
    sheet = csv.DictReader(io.StringIO(call("ask", "trial", "--csv").out, newline=""))
    assert {row["item"] for row in sheet} == set(ids)
    certified = call("certify", "scores.jsonl", "--scores", "--epsilon", "0.9", "--json")
    assert certified.data["selected"] == ["A"], certified.err


def test_a_broken_line_of_json_has_the_number_that_editors_show(call: Calls) -> None:
    call.write("items.jsonl", f'{{"id": "{LINE_ENDS}"}}\n{{"id": 2\n')
    call.write("trial.toml", ITEMS)
    assert "items.jsonl, line 2 is not JSON" in call("begin", "trial.toml").err


@pytest.mark.parametrize("ended", ["\n", "\r\n"])
def test_a_sheet_is_separated_as_its_whole_first_line_says(call: Calls, ended: str) -> None:
    call.write("trial.toml", QUESTION)
    assert call("begin", "trial.toml").status == 0
    rows = csv.DictReader(call("ask", "trial", "--csv").out.splitlines())
    lines = [f"remark {LINE_ENDS}\x0b\x0c;ticket;mean", *(f"x\x0c;{row['ticket']};0,5" for row in rows)]
    (call.folder / "answers.csv").write_bytes(ended.join([*lines, ""]).encode())
    done = call("tell", "trial", "answers.csv")
    assert done.status == 0, done.err
    assert "3 answers added." in done.words


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_program_ends_its_lines_with_line_feeds(sign: str) -> None:
    with pytest.raises(ValueError, match="it printed one line, but 2 rewards were requested"):
        rewards_in_lines(f"1{sign}2\r\n", 2)
