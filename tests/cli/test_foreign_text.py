"""Texts of strangers in files: which signs end a line, and which signs nobody may send to a terminal."""

import csv
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.files.problem_file import question_of
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


HALF = "x\ud83dy"
"""A text with a lone surrogate, as a program that cuts an emoji in two writes it."""


def test_halves_of_characters_are_refused_with_their_place(call: Calls) -> None:
    call.write("trial.toml", ITEMS)
    json_lines_in_ascii(call, "items.jsonl", [{"id": "a"}, {"id": HALF}])
    done = call("begin", "trial.toml")
    assert done.status == 2
    assert r"the id of item number 1 is 'x\ud83dy', with a lone surrogate" in done.err
    for key, place in (("arm", "the arm"), ("item", "the item")):
        row = {"arm": "A", "item": "1", "score": 1}
        json_lines_in_ascii(call, "scores.jsonl", [row, row | {"item": "2", key: HALF}])
        done = call("certify", "scores.jsonl", "--scores", "--epsilon", "0.1")
        assert done.status == 2
        assert rf"scores.jsonl, line 2: {place} is 'x\ud83dy'" in done.err


def test_halves_of_characters_in_results_of_a_tool_are_refused(call: Calls) -> None:
    usual: dict[str, object] = {"doc_hash": "h", "filter": "none", "metrics": ["acc"], "acc": 1.0}
    (call.folder / "xy").mkdir()
    name = "xy/samples_task_2026-01-01T00-00-00.0.jsonl"
    json_lines_in_ascii(call, name, [usual | {"doc_id": 0}])
    beside = {"model_name": HALF}
    call.write("xy/results_2026-01-01T00-00-00.0.json", json.dumps(beside))
    done = call("certify", name, "--scores", "--epsilon", "0.1")
    assert done.status == 2
    assert r"the name of an arm is 'x\ud83dy', with a lone surrogate" in done.err


def test_halves_of_characters_are_refused_in_python() -> None:
    usual: dict[str, Any] = {"m": 1, "epsilon": 0.1, "delta": 0.1, "rewards": sl.Bernoulli()}
    with pytest.raises(sl.InvalidProblem, match=r"`names\[1\]` is 'x\\ud83dy'"):
        sl.Problem(**usual, names=["a", HALF])
    with pytest.raises(sl.InvalidProblem, match="the id of item number 0 is"):
        sl.Problem(**usual, n=2, items={HALF: 1, "b": 2})
    with pytest.raises(sl.InvalidProblem, match=r"`item_ids\[1\]` is"):
        question_of(
            {"m": 1, "epsilon": 0.1, "delta": 0.1, "n": 2, "rewards": "bernoulli"} | two_ids("a", HALF)
        )


def two_ids(*ids: str) -> dict[str, Any]:
    return {"n_items": 2, "item_ids": list(ids)}


def test_the_reason_of_a_failure_can_be_recorded_and_sent_whatever_its_letters(tmp_path: Path) -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        if arm == 1:
            raise ValueError(HALF)
        return rng.normal(3.0, 1.0, count)

    problem = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=[1.0, 1.0])
    with sl.Session(problem, store=str(tmp_path / "runs.db")) as session:
        sl.drive(session, measure, on_failure=0.0, retries=0)
        assert {one.reason for one in session.scored} == {"ValueError: x?y."}


def json_lines_in_ascii(call: Calls, name: str, rows: list[dict[str, object]]) -> None:
    call.write(name, "".join(f"{json.dumps(row)}\n" for row in rows))


CONTROLS = "\x07\x1b[2J\x7f\x9b"
TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SIGNS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{TURNING}]")


def test_no_name_and_no_id_controls_the_terminal_or_begins_a_line(call: Calls) -> None:
    """A run whose arms and items have hostile names, and whose program prints more of them."""
    hostile = f"n{CONTROLS}{TURNING}\nError: all is lost"
    json_lines(call, "items.jsonl", [{"id": f"{number}{hostile}"} for number in range(4)])
    names = json.dumps([f"{name}{hostile}" for name in "AB"]).replace("\x7f", r"\u007f")
    program = json.dumps(["sh", "-c", r"printf '\033[2J\n\342\200\256' >&2; exit 3"])
    call.write(
        "trial.toml",
        f"{ITEMS.replace(json.dumps(['A', 'B']), names)}\n[measure]\nkind = 'command'\nretries = 0\n"
        f"command = {program}\n",
    )
    done = [call("run", "trial.toml", "--name", "measured"), call("doctor", "trial.toml")]
    assert [one.status for one in done] == [4, 4]
    assert call("begin", "trial.toml").status == 0
    sheet = call("ask", "trial", "--csv").out
    rows = list(csv.DictReader(io.StringIO(sheet, newline="")))
    assert {row["item"] for row in rows} <= {f"{number}{hostile}" for number in range(4)}, (
        "data are unchanged"
    )
    said = [*done, call("ask", "trial"), call("status", "measured")]
    said.append(call.tell([row | {"reward": 0.5} for row in rows]))
    said.append(call.tell([row | {"item": "other", "reward": 1} for row in rows]))
    said.append(call.tell([row | {"reward": int(row["arm"] == "0")} for row in rows]))
    said += [call(*words) for words in (["status", "trial"], ["report", "trial"], ["list"])]
    for one in said:
        assert SIGNS.findall(one.out + one.err) == []
    for one in (done[0], *said[2:4], *said[6:]):
        assert "\nError: all is lost" not in one.out
    assert "Selected 1 of 2 arms: An??[2J???" in said[6].out
    call("report", "trial", "-o", "trial.html")
    html = (call.folder / "trial.html").read_text(encoding="utf-8")
    assert "all is lost" in html
    assert SIGNS.findall(html) == []


def test_warnings_while_measuring_do_not_control_the_terminal(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[int] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        attempts.append(arm)
        if len(attempts) == 1:
            raise sl.RetryLater(0.01, f"busy{CONTROLS}{TURNING}")
        return rng.normal(arm, 1.0, count)

    names = [f"{name}{CONTROLS}{TURNING}" for name in "AB"]
    sl.select(measure, sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=[1.0, 1.0], names=names))
    (said,) = [record.getMessage() for record in caplog.records]
    assert "will be retried in 0.01 s: busy??[2J" in said
    assert SIGNS.findall(said) == []


TOWER = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("line", [TOWER, f'{{"id": "1", "question": {TOWER}}}'])
def test_towers_of_brackets_in_items_are_refused_with_their_line(call: Calls, line: str) -> None:
    call.write("trial.toml", ITEMS)
    call.write("items.jsonl", f'{{"id": "0"}}\n{line}\n')
    done = call("begin", "trial.toml")
    assert (done.status, done.out) == (2, "")
    assert "items.jsonl, line 2: its brackets are too deep" in done.err


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("scores.jsonl", ["--scores"]),
        ("promptfoo.json", ["--scores"]),
        ("samples_task_2026-01-01T00-00-00.0.jsonl", ["--scores"]),
    ],
)
def test_towers_of_brackets_in_results_are_refused(call: Calls, name: str, options: list[str]) -> None:
    call.write(name, f'{{"evalId": {TOWER}}}\n')
    done = call("certify", name, "--epsilon", "0.1", *options)
    assert (done.status, done.out) == (2, "")
    assert name in done.err
    assert len(done.err) < 1000


def test_towers_of_brackets_in_python_are_refused() -> None:
    tower: list[Any] = []
    for _ in range(100_000):
        tower = [tower]
    usual: dict[str, Any] = {"m": 1, "epsilon": 0.1, "delta": 0.1, "n": 2, "rewards": sl.Bernoulli()}
    with pytest.raises(sl.InvalidProblem, match="item number 1 cannot be written as JSON"):
        sl.Problem(**usual, items=["a", tower])
    with pytest.raises(sl.InvalidProblem, match="`about` must be plain data"):
        sl.drive(sl.Session(sl.Problem(**usual)), lambda *_: 0.0, about={"tower": tower})


def test_towers_of_brackets_in_answers_are_refused(trial: Calls) -> None:
    trial.write("answers.json", TOWER)
    done = trial("tell", "trial", "answers.json")
    assert (done.status, done.out) == (2, "")
    assert "it is not valid JSON" in done.err


def test_a_repeated_id_among_many_is_found_at_once(call: Calls) -> None:
    n = 40_000
    call.write("trial.toml", ITEMS)
    json_lines(call, "items.jsonl", [{"id": str(min(number, n - 2))} for number in range(n)])
    start = time.perf_counter()
    assert "two items have the id '39998'" in call("begin", "trial.toml").err
    assert time.perf_counter() - start < 5, "comparing each with all others takes a minute"
