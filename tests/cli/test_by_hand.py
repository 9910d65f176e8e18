"""`begin`, `ask` and `tell`: runs that people measure for, with sheets."""

import csv
import io
import json
import re
import threading
import time
from contextlib import closing
from typing import Any

import pytest

import shortlist as sl
from shortlist.files.problem_file import read_problem
from shortlist.report import progress
from tests.cli.calling import BY_AWK, PILOT, QUESTION, SIMULATED, Calls, measured


def with_means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"mean": sum(map(float, measured(row))) / int(row["pulls"])} for row in rows]


def with_rewards(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"reward": reward} for row in rows for reward in measured(row)]


# --- from beginning to end ------------------------------------------------------------------------


def test_two_people_with_sheets_come_to_what_run_does(call: Calls) -> None:
    call.write("whole.toml", QUESTION + BY_AWK)
    expected = call("run", "whole.toml", "--turns", "1", "--json").data
    assert expected["n_rounds"] > 5
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    told = None
    for _ in range(200):
        ann, bob = call.sheet("--worker", "ann", "--max", "1"), call.sheet("--worker", "bob")
        if not ann:
            break
        assert not {row["ticket"] for row in ann} & {row["ticket"] for row in bob}
        if bob:
            assert call.tell(with_rewards(bob), "--worker", "bob").status == 0
        told = call.tell(with_means(ann), "--worker", "ann")
        assert told.status == 0, told.err
    assert told is not None
    assert "Run trial has ended. Selected 1 of 3 arms: east, far" in told.words
    assert call("status", "trial", "--json").data["result"] == expected
    over = call("ask", "trial", "--worker", "ann")
    assert over.status == 0
    assert "has ended; there is nothing left to measure. Selected 1 of 3 arms: east, far" in over.words
    assert call.sheet("--worker", "ann") == []
    assert call("ask", "trial", "--json").data["result"] == expected


def test_a_person_and_a_process_share_a_run(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    call.write("trial.toml", QUESTION + BY_AWK)
    expected = call("run", "trial.toml", "--turns", "1", "--store", ":memory:", "--json").data
    call("begin", "trial.toml")
    (mine,) = call.sheet("--worker", "ann", "--max", "1")
    (answer,) = with_means([mine])
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.1)
    thread = threading.Thread(target=_tell_last, args=(int(answer["arm"]), float(answer["mean"])))
    thread.start()
    done = call("run", "trial.toml", "--turns", "1")
    thread.join()
    assert done.status == 0
    assert re.search(r"waiting for ann \(1 ticket until .*\d\d:\d\d\)", done.err), done.err
    found = call("status", "trial", "--json").data["result"]
    assert found == expected
    told = call("export", "trial", "--json").data["answers"]
    assert {one["worker"].split("@")[0] for one in told} == {"run", "ann"}


def _tell_last(arm: int, mean: float) -> None:
    """Tell a mean when the others of its round have been told for a while."""
    with closing(sl.open_store("shortlist.db")) as store:
        session = sl.Session.resume(store, "trial")
        deadline = time.monotonic() + 30
        while session.history.round.n_missing > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
            session.refresh()
        time.sleep(1)
        (ticket,) = (ticket for ticket in session.asked if ticket.arm == arm)
        session.tell(ticket, means=mean, worker="ann")


def test_what_is_begun_can_be_run(call: Calls) -> None:
    call.write("trial.toml", SIMULATED)
    call("begin", "trial.toml", "--seed", "3", "--name", "x")
    done = call("run", "trial.toml", "--seed", "3", "--name", "x")
    assert done.status == 0
    assert "Run x is saved in shortlist.db." in done.out


# --- begin ----------------------------------------------------------------------------------------


def test_begin_says_the_name_and_how_to_ask(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    done = call("begin", "trial.toml", "--seed", "7", "--strategy", "wnelim", "--store", "my runs.db")
    assert done.status == 0
    assert "Run trial-wnelim-seed7 created, strategy wnelim; round 0 asks for 3 tickets." in done.words
    assert done.out.splitlines()[-1] == (
        "  shortlist ask trial-wnelim-seed7 -o tickets.csv --store 'my runs.db'"
    )
    again = call("begin", "trial.toml", "--seed", "7", "--strategy", "wnelim", "--store", "my runs.db")
    assert again.status == 0
    assert "exists already, with 0 pulls" in again.words


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--name", "-x"], 2, "the name of the run would be '-x', which looks like an option"),
        (["--store", "~nosuchuser/x.db"], 4, "there is no folder"),
        (["--store", "x" * 300], 4, "cannot be opened: File name too long"),
    ],
)
def test_what_cannot_be_begun(call: Calls, options: list[str], status: int, said: str) -> None:
    call.write("trial.toml", QUESTION)
    done = call("begin", "trial.toml", *options)
    assert (done.status, done.out) == (status, "")
    assert said in done.err
    assert call("status", "trial", *options).status == 2


def test_begin_changes_no_run(trial: Calls) -> None:
    trial.write("trial.toml", QUESTION.replace("0.3", "0.4"))
    done = trial("begin", "trial.toml")
    assert done.status == 2
    assert "epsilon was 0.3, is 0.4" in done.err
    assert trial("begin", "trial.toml", "--store", ":memory:").status == 2


# --- ask ------------------------------------------------------------------------------------------


def test_ask_shows_a_table_or_a_sheet(trial: Calls) -> None:
    shown = trial("ask", "trial", "--worker", "ann", "--max", "2")
    assert shown.out.splitlines()[0].split() == ["ticket", "arm", "pulls"]
    assert "2 tickets of round 0, 8 pulls, leased to ann until" in shown.words
    assert shown.out.splitlines()[-1] == "  shortlist tell trial ANSWERS.csv"
    sheet = trial("ask", "trial", "--worker", "ann", "--max", "2", "--csv")
    assert sheet.out.splitlines()[0] == "ticket,arm,name,pulls,seed,mean"
    assert len(sheet.out.splitlines()) == 3
    assert "leased to ann" in sheet.err
    data = trial("ask", "trial", "--worker", "ann", "--max", "2", "--json").data
    assert [row["ticket"] for row in data["tickets"]] == [
        line.split(",")[0] for line in sheet.out.splitlines()[1:]
    ]
    assert re.fullmatch(r"[a-z]{6}-r0-a0", data["tickets"][0]["ticket"])


def test_ask_says_who_has_all_tickets(trial: Calls) -> None:
    trial("ask", "trial", "--worker", "ann", "--max", "2")
    trial("ask", "trial", "--worker", "bob", "--lease", "90s")
    done = trial("ask", "trial", "--worker", "carl")
    assert done.status == 3
    assert "No ticket of round 0 is available; waiting for ann (2 tickets until" in done.words
    assert "bob (1 ticket until" in done.words
    data = trial("ask", "trial", "--worker", "carl", "--json").data
    assert [one["worker"] for one in data["waiting_for"]] == ["ann", "bob"]
    assert (data["tickets"], data["is_done"]) == ([], False)


def test_a_lease_that_has_ended_frees_tickets_and_late_answers_count(trial: Calls) -> None:
    late = trial.sheet("--worker", "ann", "--lease", "0.01s")
    time.sleep(0.02)
    assert len(trial.sheet("--worker", "bob")) == 3
    done = trial.tell(with_means(late), "--worker", "ann")
    assert "3 answers added." in done.words


def test_many_tickets_are_shown_in_part(call: Calls) -> None:
    call.write(
        "trial.toml", "[problem]\nm = 1\nepsilon = 1.0\ndelta = 0.1\nvariances = [" + "1.0, " * 30 + "]\n"
    )
    call("begin", "trial.toml")
    shown = call("ask", "trial")
    assert "and 10 more; --csv prints all" in shown.out
    assert len(call.sheet()) == 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["trial.toml"], "`shortlist begin trial.toml` creates a run"),
        (["other"], "there is no run 'other' in the store. Existing runs: trial."),
        (["trial", "--store", "none.db"], "there is no store none.db"),
        (["trial", "--store", ":memory:"], "nothing is saved in :memory:"),
        (["trial", "--lease", "soon"], "use the form 90s, 15min, 24h or 30d"),
        (["trial", "--lease", "0s"], "not a duration"),
        (["trial", "--max", "0"], "--max"),
        (["trial", "--worker", " "], "--worker"),
        (["trial", "--csv", "--json"], "either --csv or --json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_when_asking(trial: Calls, options: list[str], said: str) -> None:
    done = trial("ask", *options)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert not (trial.folder / "none.db").exists()


# --- tell -----------------------------------------------------------------------------------------


def test_tell_reports_what_it_took(trial: Calls) -> None:
    rows = with_means(trial.sheet())
    first = trial.tell([rows[0], rows[1] | {"mean": ""}, rows[2] | {"mean": ""}])
    assert (
        first.words
        == "1 answer added; 2 without an answer in the file. 2 of 3 tickets of round 0 are still open."
    )
    again = trial.tell(rows[:2])
    assert again.words == "1 answer added; 1 already known. 1 of 3 tickets of round 0 is still open."
    done = trial.tell(rows)
    assert "1 answer added; 2 already known. Round 1 asks for" in done.words
    assert done.out.splitlines()[-1] == "  shortlist ask trial -o tickets.csv"
    assert done.err == ""
    assert trial("status", "trial", "--json").data["n_pulls"] == 12


def test_a_contradiction_is_reported_and_the_first_answer_stands(trial: Calls) -> None:
    rows = trial.sheet()
    trial.tell([rows[0] | {"mean": 0.25}])
    done = trial.tell([rows[0] | {"mean": 0.75}], "--yes")
    assert done.status == 0
    assert "0 answers added; 1 in conflict with earlier ones, which are kept." in done.words
    ticket = rows[0]["ticket"]
    assert done.err == (
        f"Warning: {ticket} (north) already has the mean 0.25, and the file says 0.75; the first is kept.\n"
    )
    data = trial.tell([rows[0] | {"mean": 1.0}], "--json", "--yes", "--worker", "bob").data
    assert data["conflicts"] == [{"ticket": ticket, "kept": 0.25, "refused": 1.0}]
    assert (data["taken"], data["known"], data["conflicting"]) == (0, 0, 1)
    status = trial("status", "trial")
    assert f"Conflict: {ticket} keeps mean 0.25; bob sent 1 later." in status.words


def test_a_sheet_in_conflict_is_refused_while_the_first_answer_can_be_withdrawn(trial: Calls) -> None:
    rows = with_means(trial.sheet())
    trial.tell([rows[0] | {"mean": 0.25}])
    corrected = [rows[0] | {"mean": 0.75}, *rows[1:]]
    refused = trial.tell(corrected)
    command = f'shortlist withdraw trial {rows[0]["ticket"]} --why "..."'
    assert refused.status == 2
    assert refused.err == (
        f"Error: answers.csv: line 2: north has 0.25, the file says 0.75. To correct it: `{command}`, then "
        "tell this file again. To keep 0.25, repeat the command with --yes. Nothing was added.\n"
    )
    assert trial("status", "trial", "--json").data["n_open"] == 3 - 1
    assert trial("withdraw", "trial", rows[0]["ticket"], "--why", "typed wrong").status == 0
    assert "3 answers added." in trial.tell(corrected).words
    late = trial.tell([rows[0] | {"mean": 0.25}])
    assert late.status == 0
    assert "the first is kept, since its round was decided." in late.err
    assert "To correct a first answer, see Conflicts in `shortlist docs by-hand`." in late.err


def test_a_conflict_with_an_answer_that_was_withdrawn_is_none(trial: Calls) -> None:
    row = trial.sheet()[0]
    trial.tell([row | {"mean": 0.25}])
    trial.tell([row | {"mean": 0.75}], "--yes")
    assert "Conflict: " in trial("status", "trial").words
    trial("withdraw", "trial", row["ticket"], "--why", "wrong bag")
    trial.tell([row | {"mean": 0.75}], "--worker", "bob")
    status = trial("status", "trial")
    assert "Conflict" not in status.words
    assert f"Withdrawn: the mean 0.25 of {row['ticket']} (north), by " in status.words
    assert ", because: wrong bag" in status.words
    data = trial("status", "trial", "--json").data
    assert (data["conflicts"], [one["mean"] for one in data["withdrawn"]]) == ([], [0.25])
    assert trial("replay", "trial").status == 0
    trial.tell([row | {"mean": 0.25}], "--yes")
    assert "keeps mean 0.75" in trial("status", "trial").words


def test_a_file_may_have_answers_of_several_rounds(trial: Calls) -> None:
    first = with_means(trial.sheet())
    trial.tell(first)
    second = with_means(trial.sheet())
    done = trial.tell([*second, *first])
    assert f"{len(second)} answers added; 3 already known." in done.words


def test_json_is_taken_from_a_file_or_a_pipe(trial: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    given = trial("ask", "trial", "--json").data
    north, south, east = (row["ticket"] for row in given["tickets"])
    answers: list[dict[str, Any]] = [{"ticket": north, "rewards": [1, 0, 1, 1]}]
    answers.append({"ticket": south, "mean": 0.5, "count": 4, "note": "ok"})
    trial.write("answers.json", json.dumps([*answers, {"ticket": east}]))
    done = trial("tell", "trial", "answers.json", "--json").data
    assert (done["taken"], done["left_open"], done["n_open"], done["n_tickets"]) == (2, 1, 1, 3)
    given["tickets"][2]["mean"] = 1.0  # what `ask` printed, filled in
    piped(monkeypatch, json.dumps(given).encode())
    assert (
        "1 answer added; 2 without an answer in the file. Round 1 asks for"
        in trial("tell", "trial", "-").words
    )


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    "sheet",
    [
        "ticket,mean\n{0},0.5\n{1},1e0\n",
        "\ufeffticket;name;mean\r\n{0};north;0.5\r\n{1};south;1.\r\n",
        'Ticket , REWARD\n"{0}"," 0.5 "\n{1},1\n\n' + 3 * "{1},1\n{0},0.5\n" + ",\n",
        "sep=;\nmean;ticket\n0.5;{0}\n+1;{1}\n",
        "ticket\tmean\tvariance\tcount\n{0}\t.5\t\t4\n{1}\t1\t0\t\n",
        'note,ticket,mean\n"a, b\nc",{0},0.5\n"say ""d""",{1},1\n',
        "ticket,mean\n{2},0.5\n{1},1\n",
        "ticket,mean,rewards\n{0},,0.5 1;0 0.5\n{1},1,\n",
        "ticket,mean,reward\n{0},0.5,\n{1},1,\n",
    ],
    ids=["plain", "Excel", "quoted", "sep", "tabs", "notes", "capitals", "one cell", "an empty column"],
)
def test_sheets_of_all_kinds_are_understood(trial: Calls, sheet: str) -> None:
    tickets = [row["ticket"] for row in trial.sheet()]
    text = sheet.format(*tickets[:2], tickets[0].upper())
    (trial.folder / "answers.csv").write_text(text, encoding="utf-8", newline="")
    assert trial("tell", "trial", "answers.csv").status == 0
    (trial.folder / "odd.csv").write_bytes(text.removeprefix("\ufeff").encode("utf-16"))
    assert "2 already known" in trial("tell", "trial", "odd.csv").out
    told = trial("export", "trial", "--json").data["answers"]
    assert {one["ticket"]: one["mean"] for one in told} == {tickets[0]: 0.5, tickets[1]: 1.0}


REFUSED = {
    "nothing": ("", "it is empty"),
    "no ticket column": ("name,mean\nnorth,1\n", "no column `ticket` among 'name', 'mean'"),
    "no answers": ("ticket,name\n{0},north\n", "neither `reward` nor `mean`"),
    "two kinds": ("ticket,mean,reward\n{0},1,1\n", "answers in both columns `reward` and `mean`"),
    "two columns": ("ticket,mean,mean\n{0},1,1\n", "`mean` occurs 2 times"),
    "not a number": (
        "ticket,mean\n{0},1\n{1},good\n",
        "line 3: the mean is 'good'; it must be a finite number",
    ),
    "NaN": ("ticket,mean\n{0},nan\n", "line 2: the mean is 'nan'"),
    "infinity": ("ticket,mean\n{0},1e999\n", "line 2: the mean is '1e999'"),
    "digits of Python": ("ticket,mean\n{0},1_0\n", "line 2: the mean is '1_0'"),
    "decimal comma among commas": (
        'ticket,mean\n{0},"0,5"\n',
        "line 2: the mean is '0,5'; write it with a decimal point",
    ),
    "thousands or decimals": (
        "ticket;mean\n{0};1,234\n",
        "line 2: the mean is '1,234'; write 1.234 or 1234.",
    ),
    "commas that mean two things": (
        "ticket;rewards\n{0};26,8,25,0\n",
        "line 2: '26,8,25,0' can be read as 4 rewards (26, 8, 25, 0) or 2 rewards (26.8, 25.0). Write "
        "decimals with a point",
    ),
    "decimal comma as a cell": ("ticket,mean\n{0},0,5\n", "line 2 has 3 cells, but the header has 2"),
    "no ticket": ("ticket,mean\n,1\n", "line 2 has no ticket"),
    "not a ticket": (
        "ticket,mean\nnorth,1\n",
        "line 2: 'north' is not a ticket; tickets of this run look like",
    ),
    "another run": ("ticket,mean\nzzzzz-r0-a0,1\n", "belongs to another run; tickets of this run start with"),
    "no such round": ("ticket,mean\n{code}-r9-a0,1\n", "line 2: the run never asked for ticket"),
    "no such arm": ("ticket,mean\n{code}-r0-a3,1\n", "line 2: the run never asked for ticket"),
    "twice": ("ticket,mean\n{0},1\n{0},1\n", "line 3: ticket {0} already has an answer at line 2"),
    "too many rewards": (
        "ticket,reward\n{0},1\n{0},0\n{0},1\n{0},0\n{0},1\n",
        "line 2: ticket {0} asks for 4 pulls of north, but",
    ),
    "too few rewards in JSON": ('[{{"ticket": "{0}", "rewards": [1]}}]', "asks for 4 pulls of north, but"),
    "too many in a cell": ("ticket,rewards\n{0},1 0 1 1 0\n", "asks for 4 pulls of north, but there are 5"),
    "a cell and a mean": (
        "ticket,mean,rewards\n{0},1,1 1 1 1\n",
        "line 2: there are both `rewards` and a summary",
    ),
    "text in a cell": ("ticket,rewards\n{0},1 x 1 1\n", "line 2: the reward is 'x'"),
    "wrong count": (
        "ticket,mean,count\n{0},1,2\n",
        "line 2: ticket {0} asks for 4 pulls of north, but the count",
    ),
    "another arm": ("ticket,arm,mean\n{1},1,1\n{0},1,1\n", "line 3: the arm is '1', but ticket {0} has '0'"),
    "another name": (
        "name,ticket,mean\nnorth,{1},1\n",
        "line 2: the name is 'north', but ticket {1} has 'south'",
    ),
    "another name, no answer yet": ("name,ticket,mean\nnorth,{1},\n", "line 2: the name is 'north'"),
    "other pulls": ("ticket,pulls,mean\n{0},40,1\n", "line 2: the pulls is '40', but ticket {0} has '4'"),
    "another arm at one reward": (
        "ticket,arm,reward\n{0},0,1\n{0},0,1\n{0},1,1\n{0},0,1\n",
        "line 4: the arm is '1', but ticket {0} has '0'",
    ),
    "another arm in JSON": ('[{{"ticket": "{0}", "arm": 1, "mean": 1}}]', "entry 1: the arm is '1', but"),
    "two names": ("ticket,name,name,mean\n{0},north,x,1\n", "the column `name` occurs 2 times"),
    "too large a number": ("ticket,mean\n{0},1e400\n", "the mean is '1e400'; it must be a finite number"),
    "JSON with thousands of digits": ('[{{"ticket": "{0}", "mean": 1%s}}]' % ("0" * 5000), "not valid JSON"),
    "no mean": ("ticket,mean,variance\n{0},,1\n", "line 2: there is no mean"),
    "negative variance": (
        "ticket,mean,variance\n{0},1,-1\n",
        "line 2: north returned a summary with the variance",
    ),
    "too large": ("ticket,mean\n{0},1e30\n", "line 2: a mean of 1e+30 is too large compared with epsilon"),
    "broken quotes": ('ticket,mean\n"{0},1\n', "is not valid CSV"),
    "not JSON": ("[{{", "it is not valid JSON"),
    "JSON of another kind": ('{{"a": 1}}', "it must be a list of objects"),
    "JSON without a ticket": ('[{{"mean": 1}}]', 'entry 1 has no "ticket"'),
    "JSON with NaN": ('[{{"ticket": "{0}", "mean": NaN}}]', "it contains NaN"),
    "JSON with text": ('[{{"ticket": "{0}", "mean": "1"}}]', "entry 1: the mean is '1'; it must be a number"),
    "JSON with a boolean": ('[{{"ticket": "{0}", "rewards": [true]}}]', "entry 1: the reward 1 is True"),
    "JSON with a gap": ('[{{"ticket": "{0}", "rewards": [null]}}]', "entry 1: reward 1 is null"),
    "JSON with both": (
        '[{{"ticket": "{0}", "rewards": [1], "mean": 1}}]',
        'entry 1 has both "rewards" and a summary',
    ),
    "JSON with one number": ('[{{"ticket": "{0}", "rewards": 1}}]', '"rewards" must be a list'),
    "JSON with a giant": ('[{{"ticket": "{0}", "mean": 1%s}}]' % ("0" * 400), "it must be a finite number"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_one_bad_line_refuses_the_whole_file(trial: Calls, mistake: str) -> None:
    text, said = REFUSED[mistake]
    tickets = [row["ticket"] for row in trial.sheet()]
    words: dict[str, Any] = {"code": tickets[0].partition("-")[0]}
    good = f"{tickets[2]},1\n" if text.startswith("ticket,mean\n") else ""
    trial.write("answers", text.format(*tickets, **words) + good)
    done = trial("tell", "trial", "answers")
    assert (done.status, done.out) == (2, "")
    assert said.format(*tickets) in done.err
    assert done.err.startswith("Error: answers: ")
    assert done.err.endswith("Nothing was added.\n")
    assert done.err.count("\n") == 1
    assert trial("status", "trial", "--json").data["n_pulls"] == 0


@pytest.mark.parametrize(
    ("sheet", "where"),
    [
        ("ticket,reward\n{0},1\n{0},\n{1},1\n{1},1\n{1},0\n{1},0\n", "line 3"),
        ("ticket,pulls,rewards\n{0},4,1 0 1\n{1},4,1 1 0 0\n{2},4,\n", "line 2"),
        ("ticket,rewards\n{0},1 0 1\n{1},1 1 0 0\n{2},\n", "line 2"),
        ("ticket;rewards\n{1};1 1 0 0\n{0};0,5 1,0\n", "line 3"),
        ("ticket,reward\n{0},1\n{1},1\n{1},1\n{1},0\n{1},0\n", "line 2"),
    ],
)
def test_complete_tickets_are_taken_and_unfinished_ones_named(trial: Calls, sheet: str, where: str) -> None:
    tickets = [row["ticket"] for row in trial.sheet()]
    trial.write("answers.csv", sheet.format(*tickets))
    done = trial("tell", "trial", "answers.csv")
    assert done.status == 0
    assert "1 answer added" in done.words
    assert f"Left open, since rewards are missing: {tickets[0]} ({where})." in done.words
    (told,) = trial("export", "trial", "--json").data["answers"]
    assert (told["ticket"], told["mean"]) == (tickets[1], 0.5)
    assert "has 1 answer that the run was not told" in trial("ask", "trial", "-o", "answers.csv").err


def test_a_sheet_in_a_file_is_not_overwritten_before_its_answers_are_told(trial: Calls) -> None:
    done = trial("ask", "trial", "-o", "tickets.csv")
    assert "Written to tickets.csv: fill in the column `mean`." in done.words
    assert done.out.splitlines()[-1] == "  shortlist tell trial tickets.csv"
    lines = (trial.folder / "tickets.csv").read_text().splitlines()
    assert [line[-1] for line in lines[1:]] == [","] * 3, "the mean is to be filled in"
    assert trial("ask", "trial", "-o", "tickets.csv").status == 0, "nothing is filled in"
    filled = "\n".join([lines[0], lines[1] + "1", *lines[2:]])
    trial.write("tickets.csv", filled)
    refused = trial("ask", "trial", "-o", "tickets.csv")
    assert refused.status == 2
    assert "tickets.csv has 1 answer that the run was not told." in refused.err
    assert (trial.folder / "tickets.csv").read_text() == filled
    assert trial("tell", "trial", "tickets.csv").status == 0
    assert trial("ask", "trial", "-o", "tickets.csv").status == 0
    assert len((trial.folder / "tickets.csv").read_text().splitlines()) == 3, "two tickets are left"
    trial.write("tickets.csv", "\n".join([lines[0], lines[1] + "0.5"]))  # a correction of what was told
    assert "has 1 answer that the run was not told" in trial("ask", "trial", "-o", "tickets.csv").err
    assert "in conflict" in trial("tell", "trial", "tickets.csv", "--yes").out
    assert trial("ask", "trial", "-o", "tickets.csv").status == 0, "the conflict is recorded"
    trial.write("letter.csv", "Dear Ann")
    other = trial("ask", "trial", "-o", "letter.csv")
    assert other.status == 2
    assert "because it is not a sheet of tickets" in other.err


FORMULA = "=cmd|'/C calc'!A0"
STRANGE = [FORMULA, "+1", "-x", "@sum", "a\x1b[2Jb", "M\u00fcller", "1.50"]


@pytest.fixture
def strange(call: Calls) -> Calls:
    """The command line, where a run `trial` has begun whose arms have names that do harm."""
    names = json.dumps(STRANGE)
    call.write(
        "trial.toml",
        f"[problem]\nm = 1\nepsilon = 0.3\ndelta = 0.1\nbounds = [0.0, 1.0]\nnames = {names}\n",
    )
    assert call("begin", "trial.toml").status == 0
    return call


def test_no_name_in_a_sheet_is_a_formula(strange: Calls) -> None:
    rows = strange.sheet("--worker", "=1+1")
    assert [row["name"] for row in rows] == [
        *(f"'{name}" for name in STRANGE[:4]),
        *STRANGE[4:],
    ]
    told = strange.tell([row | {"mean": 0.5} for row in rows], "--worker", "=1+1")
    assert told.status == 0, told.err
    written = list(csv.DictReader(strange("export", "trial").out.splitlines()))
    assert [row["name"] for row in written] == [row["name"] for row in rows]
    assert {row["worker"] for row in written} == {"'=1+1"}
    assert strange("export", "trial", "--json").data["answers"][0]["name"] == FORMULA


def test_names_that_a_spreadsheet_rewrote_are_still_known(strange: Calls) -> None:
    rows = strange.sheet()
    names = [FORMULA, "+1", "-x", "@sum", "a\x1b[2Jb", "M?ller", "1.5"]
    lines = [f'{row["ticket"]},"{name}",0.5' for row, name in zip(rows, names, strict=True)]
    text = "\n".join(["ticket,name,mean", *lines, ""])
    (strange.folder / "answers.csv").write_bytes(text.encode().replace(b"M?ller", b"M\xfcller"))
    done = strange("tell", "trial", "answers.csv")
    assert done.status == 0, done.err
    assert f"{len(STRANGE)} answers added." in done.words


def test_no_name_controls_the_terminal(strange: Calls) -> None:
    rows = strange.sheet()
    assert "a?[2Jb" in strange("ask", "trial").out
    strange.tell([row | {"mean": float("[2J" in row["name"])} for row in rows])
    row = next(row for row in rows if "[2J" in row["name"])
    warned = strange.tell([row | {"mean": 0.5}], "--yes")
    assert "(a?[2Jb) already has" in warned.err
    wrong = strange.tell([row | {"mean": 0.5, "pulls": 1}])
    said = [warned, wrong, *(strange(*words) for words in (["ask", "trial"], ["status", "trial"], ["list"]))]
    said += [strange("report", "trial"), strange("replay", "trial")]
    for done in said:
        assert "\x1b" not in done.out + done.err


def test_on_a_terminal_a_sheet_has_no_control_signs(strange: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "a?[2Jb" in strange("ask", "trial", "--csv").out


def test_what_was_exported_can_be_corrected_and_told_to_another_run(call: Calls) -> None:
    call.write("trial.toml", QUESTION + BY_AWK)
    expected = call("run", "trial.toml", "--turns", "1", "--json").data
    assert expected["n_rounds"] > 2
    sheet = call("export", "trial").out
    assert call("export", "trial", "-o", "answers.csv").status == 0
    assert (call.folder / "answers.csv").read_text() == sheet
    call("begin", "trial.toml", "--name", "again")
    code, own = (call("status", run, "--json").data["code"] for run in ("trial", "again"))
    lines = sheet.replace(f"{code}-r", f"{own}-r").splitlines()
    call.write("wrong.csv", "\n".join([lines[0], *lines[2:]]) + "\n")
    refused = call("tell", "again", "wrong.csv")
    assert refused.status == 2
    assert "the run never asked for ticket" in refused.err
    assert refused.err.endswith("Nothing was added.\n")
    assert call("status", "again", "--json").data["n_pulls"] == 0
    call.write("right.csv", "\n".join(lines) + "\n")
    data = call("tell", "again", "right.csv", "--json").data
    assert (data["taken"], data["known"], data["is_done"]) == (len(lines) - 1, 0, True)
    assert data["result"] == expected


def test_what_others_told_meanwhile_is_not_counted_as_taken(
    trial: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = with_means(trial.sheet())[:2]
    record = sl.Session.record

    def late(session: sl.Session, answers: Any) -> Any:
        monkeypatch.setattr(sl.Session, "record", record)
        with closing(sl.open_store("shortlist.db")) as store, sl.Session.resume(store, "trial") as other:
            first, second = other.asked[:2]
            other.tell(first, means=float(rows[0]["mean"]), worker="ann")
            other.tell(second, means=0.125, worker="ann")
        return record(session, answers)

    monkeypatch.setattr(sl.Session, "record", late)
    data = trial.tell(rows, "--json", "--worker", "ann").data
    assert (data["taken"], data["known"], data["conflicting"]) == (0, 1, 1)


def test_a_ticket_of_another_run_is_said_to_be(trial: Calls) -> None:
    trial("begin", "trial.toml", "--name", "second")
    rows = trial.sheet()
    trial.write("answers.csv", f"ticket,mean\n{rows[0]['ticket']},1\n")
    done = trial("tell", "second", "answers.csv")
    assert done.status == 2
    assert f"ticket {rows[0]['ticket']} belongs to run 'trial'" in done.err


def test_a_ticket_that_may_be_of_two_other_runs_is_said_to_be_of_neither(trial: Calls) -> None:
    with closing(sl.open_store("shortlist.db")) as store:
        store.restore("copy", store.read("trial"))  # with the same letters
    trial("begin", "trial.toml", "--name", "second")
    rows = trial.sheet()
    trial.write("answers.csv", f"ticket,mean\n{rows[0]['ticket']},1\n")
    done = trial("tell", "second", "answers.csv")
    assert done.status == 2
    assert f"ticket {rows[0]['ticket']} belongs to another run" in done.err


def test_a_file_that_is_not_there_is_refused(trial: Calls) -> None:
    done = trial("tell", "trial", "nowhere.csv")
    assert done.status == 2
    assert "nowhere.csv cannot be read: No such file" in done.err
    assert trial("tell", "trial", ".").status == 2
    assert trial("tell", "other", "trial.toml").status == 2
    assert trial("tell", "trial", "trial.toml", "--format", "json").status == 2


def test_the_same_answer_rounded_by_a_spreadsheet_is_no_contradiction(trial: Calls) -> None:
    row = trial.sheet()[0]
    rewards = [0.1, 0.2, 0.3, 0.7]
    trial.tell([row | {"reward": reward} for reward in rewards])
    for other in ([0.7, 0.3, 0.2, 0.1], [0.3, 0.7, 0.1, 0.2], [0.2, 0.7, 0.3, 0.1]):
        done = trial.tell([row | {"reward": reward} for reward in other])
        assert "0 answers added; 1 already known." in done.words
    (told,) = trial("export", "trial", "--json").data["answers"]
    assert "1 already known" in trial.tell([row | {"mean": f"{told['mean']:.15g}"}]).words
    assert "1 in conflict" in trial.tell([row | {"mean": f"{told['mean']:.11g}1"}], "--yes").words


# --- pilots ---------------------------------------------------------------------------------------


@pytest.fixture
def pilot(call: Calls) -> Calls:
    call.write("trial.toml", PILOT)
    call("begin", "trial.toml")
    return call


def test_the_sheet_of_a_pilot_says_which_columns_to_fill_in(pilot: Calls) -> None:
    done = pilot("ask", "trial", "-o", "tickets.csv")
    assert "Written to tickets.csv: fill in either `rewards`, or `mean` and `variance`." in done.words


def test_a_pilot_takes_rewards_or_means_with_variances(pilot: Calls) -> None:
    first, second = pilot.sheet()
    rewards = [str(value / 10) for value in range(10)]
    assert pilot.tell([first | {"reward": reward} for reward in rewards]).status == 0
    assert pilot.tell([second | {"mean": 3.0, "variance": 0.5, "count": 10}]).status == 0
    told = pilot("export", "trial", "--json").data["answers"]
    assert [(one["mean"], round(one["variance"], 12)) for one in told] == [(0.45, 0.091666666667), (3.0, 0.5)]
    again = [first | {"reward": reward} for reward in rewards[::-1]]
    assert "1 already known" in pilot.tell(again).words
    assert "1 in conflict" in pilot.tell([second | {"mean": 3.0, "variance": 0.6}]).words
    assert pilot("export", "trial").out.splitlines()[1].split(",")[7] == str(told[0]["variance"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"mean": 1.0}, "line 2: variances are unknown, and this round is the pilot"),
        ({"mean": 1.0, "variance": 0.0}, "line 2: all 10 rewards of arm-0 are equal"),
    ],
)
def test_a_pilot_needs_variances(pilot: Calls, answer: dict[str, float], said: str) -> None:
    done = pilot.tell([pilot.sheet()[0] | answer])
    assert done.status == 2
    assert said in done.err


def test_with_unknown_variances_a_slip_is_doubted_once_and_taken_when_confirmed(
    call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    call.write("lab.toml", PILOT.replace("pilot = 10\nn = 2", "n = 4"))
    begun = call("begin", "lab.toml", "--strategy", "paired-race", "--name", "trial")
    assert begun.status == 0
    assert "feed" not in begun.out, "with unknown variances, nothing can be fed"
    rows = call.sheet()
    done = call.tell([rows[0] | {"mean": 1.0}])
    assert "line 2: variances are unknown. Give all" in done.err, "there is no pilot"
    means = [row | {"mean": 57 + int(row["arm"]), "variance": 6.0} for row in rows]
    slip = [*means[:-1], means[-1] | {"mean": 6000}]
    refused = call.tell(slip)
    assert refused.status == 2
    assert "line 5: arm-3: the mean 6000 is far from those of other arms, whose median is 58.5" in refused.err
    assert "Is this a data-entry error? If it is right, repeat the command with --yes." in refused.err
    assert call("export", "trial", "--json").data["answers"] == []
    assert "4 answers added" in call.tell(slip, "--yes").words
    call("begin", "lab.toml", "--strategy", "paired-race", "--name", "piped")
    answers = [
        {"ticket": row["ticket"], "mean": 1.0 + 6e3 * (row["arm"] == 3), "variance": 6.0}
        for row in call("ask", "piped", "--json").data["tickets"]
    ]
    piped(monkeypatch, json.dumps(answers).encode())
    assert "4 answers added" in call("tell", "piped", "-").words, "programs are not doubted"
    assert call("export", "trial", "--json").data["answers"][-1]["mean"] == 6000
    late = call("withdraw", "trial", rows[-1]["ticket"], "--why", "typed wrong")
    assert late.status == 2
    assert "begin another run with the same file and strategy" in late.err


def lab(call: Calls) -> list[dict[str, Any]]:
    """Return the tickets of a run of six arms with unknown variances."""
    call.write("lab.toml", PILOT.replace("pilot = 10\nn = 2", "n = 6"))
    call("begin", "lab.toml", "--strategy", "paired-race", "--name", "trial")
    return [*call.sheet()]


def test_a_slip_in_the_first_answers_is_doubted_when_others_arrive(call: Calls) -> None:
    """It cannot be doubted alone; later it is compared with the others, before its round is decided."""
    rows = lab(call)
    answers = [row | {"mean": 43 + 0.25 * int(row["arm"]), "variance": 6.0} for row in rows]
    slip = answers[2] | {"mean": 422.25}
    assert "1 answer added" in call.tell([slip]).words
    others = [row for row in answers if row["arm"] != "2"]
    refused = call.tell(others)
    command = f'shortlist withdraw trial {slip["ticket"]} --why "..."'
    assert refused.status == 2
    assert refused.err == (
        "Error: answers.csv: arm-2 has the mean 422.25, far from those of 5 other arms (median 43.875). Is "
        f"this a data-entry error? If it is wrong: `{command}`; if it is right, repeat the command with "
        "--yes. Nothing was added.\n"
    )
    assert call("status", "trial", "--json").data["n_open"] == 5
    assert call("withdraw", "trial", slip["ticket"], "--why", "lost commas").status == 0
    assert "6 answers added" in call.tell(answers).words


def test_an_earlier_answer_is_doubted_once_and_again_before_its_round_is_decided(call: Calls) -> None:
    rows = lab(call)
    answers = [row | {"mean": 43 + 0.25 * int(row["arm"]), "variance": 6.0} for row in rows]
    call.tell([answers[0] | {"mean": 422.25}])
    for row in answers[1:3]:
        assert call.tell([row]).status == 0, "three arms are too few to compare"
    assert "arm-0 has the mean 422.25" in call.tell([answers[3]]).err
    assert call.tell([answers[3]], "--yes").status == 0
    assert call.tell([answers[4]]).status == 0, "it was confirmed"
    assert "arm-0 has the mean 422.25" in call.tell([answers[5]]).err, "nothing can be withdrawn later"
    assert call.tell([answers[5]], "--yes").status == 0
    warned = call("report", "trial").words
    assert "arm-0 has the mean 422.25, far from those of 5 other arms" in warned


def test_an_earlier_variance_far_above_all_others_is_doubted_when_they_arrive(call: Calls) -> None:
    rows = lab(call)
    answers = [row | {"mean": 43 + 0.25 * int(row["arm"]), "variance": 6.0} for row in rows]
    assert call.tell([answers[0] | {"variance": 1e7}]).status == 0
    assert "arm-0 has the sample variance 1e+07, far above those of other arms" in call.tell(answers[1:]).err


# --- without reissue ------------------------------------------------------------------------------


def test_tickets_stay_with_their_worker_until_they_are_released(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml", "--no-reissue")
    held = call.sheet("--worker", "ann", "--lease", "0.001s")
    asked = call("ask", "trial", "--worker", "bob")
    assert asked.status == 3
    assert f"waiting for ann ({len(held)} tickets overdue since " in asked.words
    assert "shortlist release trial --worker NAME" in asked.words
    done = call("release", "trial", "--worker", "ann")
    assert done.words == f"{len(held)} tickets of ann released."
    assert call.sheet("--worker", "bob") == held
    call.tell(with_means(held[:1]), "--worker", "bob")
    assert call("status", "trial", "--json").data["n_reissued"] == 1
    assert "1 ticket may have been measured more than once, because" in call("status", "trial").words


@pytest.mark.parametrize("how", [["--worker", "ann", "--unmeasured"], []])
def test_tickets_that_were_not_measured_are_given_back_without_a_word(call: Calls, how: list[str]) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    held = call.sheet(*how[:2])
    released = call("release", "trial", *how, "--json").data
    assert (released["n_tickets"], released["by"]) == (len(held), None)
    call.tell(with_means(call.sheet("--worker", "bob")), "--worker", "bob")
    assert call("status", "trial", "--json").data["n_reissued"] == 0


def test_a_problem_file_may_say_it_and_a_run_goes_on_as_it_began(call: Calls) -> None:
    call.write("trial.toml", QUESTION + "\n[measure]\nreissue = false\n")
    call("begin", "trial.toml", "--reproducible")
    status = call("status", "trial", "--json").data
    assert (status["reissue"], status["settings"]) == (False, {"reproducible": True})
    call.write("trial.toml", QUESTION + BY_AWK + "reissue = false\nreproducible = true\n")
    assert call("run", "trial.toml", "--budget", "10").status == 3
    call.write("trial.toml", QUESTION + BY_AWK + "reissue = true\n")
    refused = call("run", "trial.toml", "--budget", "10")
    assert refused.status == 2
    assert "reissue was False, is True" in refused.err


@pytest.mark.slow
def test_people_who_measure_get_few_rounds(call: Calls) -> None:
    question = "[problem]\nm = 2\nepsilon = 0.3\ndelta = 0.1\nvariances = [1.0, 1.0, 2.0, 0.5, 1.0]\n"
    call.write("field.toml", question)
    usual = sl.plan(read_problem(call.folder / "field.toml")).usual
    done = call("begin", "field.toml")
    assert call("status", "field", "--json").data["strategy"] == usual.in_rounds(10) != "race"
    for name, found in usual.choices.items():
        how = "this run" if name == usual.in_rounds(10) else f"--strategy {name}"
        assert f"{name} {found.median:,} pulls in {found.rounds} round" in done.words
        assert how in done.words
    assert "exists already" in call("begin", "field.toml").words
    single = call("begin", "field.toml", "--rounds", "1", "--json").data
    assert (single["run"], single["strategy"]) == ("field-single-stage", "single-stage")
    assert "not both" in call("begin", "field.toml", "--rounds", "1", "--strategy", "race").err
    assert "--scale is only for unknown variances" in call("begin", "field.toml", "--scale", "2").err
    call.write(
        "coins.toml", question.replace("variances = [1.0, 1.0, 2.0, 0.5, 1.0]", 'n = 5\nnoise = "bernoulli"')
    )
    assert call("begin", "coins.toml", "--json").data["strategy"] == "race"  # results may be fed


@pytest.mark.slow
def test_what_few_rounds_cost_depends_on_the_standard_deviation(call: Calls) -> None:
    """With less noise a strategy that certifies at any time needs few rounds; the others are marked."""
    question = "[problem]\nm = 3\nepsilon = 0.5\ndelta = 0.05\nn = 12\n"
    call.write("field.toml", f'{question}noise = "gaussian-unknown"\n')
    noisy, quiet = call("begin", "field.toml"), call("begin", "field.toml", "--scale", "0.5", "--name", "b")
    assert "strategy dudewicz-dalal" in noisy.words
    assert "this run * Medians of" in noisy.words
    assert "dudewicz-dalal certifies nothing before its end. To be able to stop at any time, begin with" in (
        noisy.words
    )
    assert "begin with --strategy paired-race, which usually takes about " in noisy.words
    assert (
        "Usual cost if the standard deviation is 1 (2 epsilon); set another value with --scale:"
        in noisy.words
    )
    assert "Usual cost if the standard deviation is 0.5:" in quiet.words
    assert "To look and stop" not in quiet.words
    assert "strategy paired-race" in quiet.words
    assert "standard deviation 0.5." in quiet.words
    assert "(*) Certifies nothing before its end." in quiet.words
    assert max(map(len, noisy.out.splitlines())) <= 80
