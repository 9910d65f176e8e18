"""`list`, `status`, `export` and `replay`: they look at runs and change nothing."""

import csv
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.report.text_format import day, in_table, iso, moment
from shortlist.report.worker_text import worker_words
from shortlist.session.worker_names import own_name
from shortlist.store import Asked, Began, Ended, Event, Scored, Suspended, Told
from tests.cli.calling import QUESTION, SIMULATED, Calls

LOOKING = [["list"], ["status", "done"], ["export", "done"], ["replay", "done"], ["report", "done"]]


@pytest.fixture
def runs(call: Calls) -> Calls:
    """The command line, where a run `done` has ended and `trial` is open."""
    call.write("done.toml", SIMULATED)
    assert call("run", "done.toml").status == 0
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    return call


def append(run: str, *events: Event) -> None:
    """Write events to a log, whatever they are."""
    with closing(sl.open_store("shortlist.db")) as store:
        number = sum(1 for _ in store.read(run))
        store.append(run, number, lambda *_: events)


@pytest.mark.parametrize("command", LOOKING, ids=lambda command: command[0])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_looking_changes_nothing(runs: Calls, command: list[str], form: list[str]) -> None:
    with closing(sqlite3.connect("shortlist.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # whoever may write would turn that back
    before = (runs.folder / "shortlist.db").read_bytes()
    done = runs(*command, *form)
    assert (done.status, done.err) == (0, "")
    assert (runs.folder / "shortlist.db").read_bytes() == before
    prose = [line for line in done.out.splitlines() if not line.startswith("To reproduce: shortlist ")]
    assert max(len(line.rstrip()) for line in prose) <= 80 or command[0] == "export" or form


def test_looking_does_not_wait_for_those_who_write(runs: Calls) -> None:
    with closing(sqlite3.connect("shortlist.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert [runs(*command).status for command in LOOKING] == [0] * len(LOOKING)


@pytest.mark.parametrize("command", LOOKING, ids=lambda command: command[0])
def test_a_store_that_is_not_there_is_not_made(call: Calls, command: list[str]) -> None:
    done = call(*command)
    assert (done.status, done.out) == (2, "")
    assert "there is no store shortlist.db. `shortlist run FILE`" in done.err
    assert list(call.folder.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "export", "replay", "report"])
def test_a_run_that_is_not_there_is_said_to_be_missing(runs: Calls, command: str) -> None:
    done = runs(command, "other")
    assert (done.status, done.out) == (2, "")
    assert "there is no run 'other' in the store. Existing runs: done, trial." in done.err
    assert "`shortlist begin done.toml` creates a run" in runs(command, "done.toml").err


# --- list -----------------------------------------------------------------------------------------


def test_list_shows_all_runs(runs: Calls) -> None:
    append("trial", Suspended("the sensor is offline"))
    runs("run", "done.toml", "--strategy", "medelim")
    runs("run", "done.toml", "--strategy", "adapted-medelim-published")
    runs("begin", "trial.toml", "--name", "fresh")
    listed = runs("list", "--json").data
    assert {one["run"]: one["state"] for one in listed} == {
        "done": "certified",
        "trial": "suspended",
        "done-medelim": "screened",
        "done-adapted-medelim-published": "unproved",
        "fresh": "open",
    }
    lines = runs("list").out.splitlines()
    assert lines[0].split() == ["run", "question", "strategy", "pulls", "state", "last", "change"]
    first = " ".join(lines[1].split())
    assert first.startswith("done the best arm")
    assert f"{listed[0]['n_pulls']} certified 20" in first
    assert listed[0]["question"]["epsilon"] == 0.5


def test_list_shows_damaged_runs_beside_the_others(runs: Calls) -> None:
    append("trial", Ended(np.array([0])))
    listed = {one["run"]: one for one in runs("list", "--json").data}
    assert listed["done"]["state"] == "certified"
    assert listed["trial"]["state"] == "damaged"
    assert "the run ended with other arms" in listed["trial"]["trouble"]
    done = runs("list")
    assert done.status == 0
    assert "damaged" in done.out


def test_an_empty_store_has_no_runs(runs: Calls) -> None:
    runs("prune", "done", "trial", "--yes")
    assert runs("list").out == "There are no runs in shortlist.db.\n"
    assert runs("list", "--json").data == []


# --- status ---------------------------------------------------------------------------------------


def test_status_of_an_open_run(runs: Calls) -> None:
    rows = runs.sheet("--worker", "ann", "--max", "2", "--lease", "7d")
    runs.tell([rows[0] | {"mean": 0.5}], "--worker", "ann")
    words = runs("status", "trial").words
    assert words.startswith("trial: the best arm of 3 arms to within 0.3 ")
    assert "level-race, seed 0; started on " in words, "chosen for few rounds"
    assert f"ticket prefix {rows[0]['ticket'].partition('-')[0]}" in words
    assert "4 pulls made, of at most " in words
    assert "lower bound" not in words, "none is proved for rewards within bounds"
    assert "Round 0: 2 of 3 tickets open, 1 of them leased. ann (1 ticket until " in words
    data = runs("status", "trial", "--json").data
    assert (data["n_pulls"], data["n_open"], data["n_tickets"], data["round"]) == (4, 2, 3, 0)
    (held,) = data["holders"]
    assert (held["worker"], held["n_tickets"]) == ("ann", 1)
    until = datetime.fromisoformat(held["until"]).timestamp()
    assert until - time.time() == pytest.approx(7 * 86400, abs=60)
    assert data["result"] is None
    assert data["settings"] is None


def test_status_of_a_run_that_has_ended(runs: Calls) -> None:
    words = runs("status", "done").words
    assert "Ended on " in words
    assert "1 of 3 arms selected" in words
    assert "With probability at least 90 %" in words
    assert "tickets open" not in words
    data = runs("status", "done", "--json").data
    assert data["result"] == runs("run", "done.toml", "--json").data
    assert data["settings"]["measure"]["kind"] == "simulated"


def test_status_shows_what_was_scored_and_conflicts_in_part(runs: Calls) -> None:
    rows = runs.sheet()
    ticket = sl.session.Ticket(0, int(rows[0]["arm"]), rows[0]["name"], 1, 0)
    append("trial", *(Scored(ticket, 0.0, "too dark") for _ in range(7)))
    runs.tell([rows[0] | {"mean": 0.5}])
    for value in range(7):
        runs.tell([rows[0] | {"mean": value / 10}], "--yes")
    words = runs("status", "trial").words
    assert words.count("Scored: a pull of") == 5
    assert "failed and counts as 0: too dark" in words
    assert "and 2 more scored failures" in words
    assert "and 1 conflict more" in words
    data = runs("status", "trial", "--json").data
    assert (len(data["scored"]), len(data["conflicts"])) == (7, 6)


# --- export ---------------------------------------------------------------------------------------


def test_export_has_every_answer(runs: Calls) -> None:
    data = runs("export", "done", "--json").data
    rows = list(csv.DictReader(runs("export", "done").out.splitlines()))
    assert [row["ticket"] for row in rows] == [one["ticket"] for one in data["answers"]]
    assert [float(row["mean"]) for row in rows] == [one["mean"] for one in data["answers"]]
    assert sum(one["pulls"] for one in data["answers"]) == data["n_pulls"] == data["result"]["n_pulls"]
    for arm in range(3):
        own = [one for one in data["answers"] if one["arm"] == arm]
        assert [one["first_pull"] for one in own] == np.cumsum([0, *(one["pulls"] for one in own)])[
            :-1
        ].tolist()
        mean = sum(one["pulls"] * one["mean"] for one in own) / sum(one["pulls"] for one in own)
        assert mean == pytest.approx(data["result"]["arms"][arm]["mean"])
    assert all(row["variance"] == "" and row["time"].endswith("+00:00") for row in rows)
    assert data["question"]["m"] == 1
    assert (data["strategy"], data["seed"], data["conflicts"], data["scored"]) == ("level-race", 0, [], [])
    assert abs(datetime.fromisoformat(rows[0]["time"]).timestamp() - time.time()) < 60


def test_export_writes_files(runs: Calls) -> None:
    assert runs("export", "done", "--output", "done.csv").out == "Written to done.csv.\n"
    assert (runs.folder / "done.csv").read_text() == runs("export", "done", "--csv").out
    runs("export", "done", "--output", "done.json")
    assert json.loads((runs.folder / "done.json").read_text())["run"] == "done"
    assert runs("export", "done", "--csv", "--json").status == 2
    lost = runs("export", "done", "--output", "nowhere/done.csv")
    assert lost.status == 4
    assert "nowhere/done.csv could not be written: No such file" in lost.err
    before = (runs.folder / "done.csv").read_text()
    append("done", Ended(np.array([0])))
    assert runs("export", "done", "--output", "done.csv").status == 4
    assert (runs.folder / "done.csv").read_text() == before


# --- replay ---------------------------------------------------------------------------------------


def test_replay_makes_every_decision_again(runs: Calls) -> None:
    data = runs("replay", "done", "--json").data
    with closing(sl.open_store("shortlist.db")) as store:
        assert data["n_events"] == sum(1 for _ in store.read("done"))
    expected = runs("status", "done", "--json").data["result"]
    assert (data["n_pulls"], data["n_rounds"], data["selected"]) == (
        expected["n_pulls"],
        expected["n_rounds"],
        expected["selected"],
    )
    words = runs("replay", "done").words
    assert f"done: {data['n_events']} events, {data['n_rounds']} whole round" in words
    assert "Every decision is the same, and so is the selection." in words
    assert "Every decision is the same, up to the current state of the run." in runs("replay", "trial").words


def forged(spoil: Callable[[Event], Event | None]) -> None:
    """Write the log of `done` as `bad`, with changes."""
    with closing(sl.open_store("shortlist.db")) as store:
        events = [spoil(record.event) for record in store.read("done")]
        store.append("bad", 0, lambda *_: [event for event in events if event is not None])


def other_counts(event: Event) -> Event:
    return Asked(event.round, event.arms, event.counts + 1) if isinstance(event, Asked) else event


def other_arms(event: Event) -> Event:
    return Ended((event.selected + 1) % 3) if isinstance(event, Ended) else event


def other_answers(event: Event) -> Event:
    return Told(event.round, event.arms, -event.means) if isinstance(event, Told) else event


def no_question(event: Event) -> Event | None:
    return None if isinstance(event, Began) else event


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (other_counts, "round 0 asked for other pulls than this version of Shortlist computes"),
        (other_arms, "the run ended with other arms"),
        (other_answers, "other"),
        (no_question, "does not start with its question"),
    ],
)
def test_replay_finds_what_does_not_follow(
    runs: Calls, spoil: Callable[[Event], Event | None], said: str
) -> None:
    forged(spoil)
    done = runs("replay", "bad")
    assert (done.status, done.out) == (4, "")
    assert said in done.err
    assert runs("replay", "bad", "--json").status == 4


# --- words ----------------------------------------------------------------------------------------


def test_moments_are_said_as_people_say_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    at = datetime(2026, 11, 15, 13, 5, 9, 250_000, tzinfo=UTC).timestamp()
    assert day(at) == "15 November 2026"
    assert moment(at, at + 60) == "14:05"
    assert moment(at, at + 12 * 3600) == "15 November, 14:05"
    assert moment(at, at + 365 * 86400) == "15 November 2026, 14:05"
    assert in_table(at) == "2026-11-15 14:05"
    assert iso(at) == "2026-11-15T13:05:09.250000+00:00"
    monkeypatch.undo()
    time.tzset()


def test_workers_are_named() -> None:
    _, pid, _ = own_name().rsplit(":", 2)
    assert worker_words(own_name()).startswith(f"process {pid} on ")
    assert (worker_words("ann"), worker_words("")) == ("ann", "an unknown worker")


def test_scores_are_counted_alike_wherever_a_run_on_items_is_shown(call: Calls) -> None:
    problem = sl.Problem(1, 0.01, 0.1, n=3, rewards=sl.Bernoulli(), items=60, costs=[1, 2, 4])

    def scores(arm: int, items: list[int]) -> list[int]:
        if len(made) >= 60:
            raise KeyboardInterrupt
        made.extend(items)
        return [int((item * 7) % 10 < 3 + arm) for item in items]

    made: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        sl.select(scores, problem, store="shortlist.db", name="half", pulls_per_call=1)
    with (
        closing(sl.open_store("shortlist.db")) as store,
        sl.Session(problem, store=store, name="half") as run,
    ):
        result, asked = run.result, run.asked
        assert 0 < run.history.n_partial < asked.counts.sum()  # some tickets are answered in part
    assert result.n_pulls == len(made) == sum(result.arms.pulls) == 60
    assert [one["n_pulls"] for one in call("list", "--json").data] == [60]
    assert call("status", "half", "--json").data["n_pulls"] == 60
    words = call("status", "half").words
    assert f"60 of 180 scores measured (33 %) at a cost of {result.cost:g}" in words
    assert "60 of 180 scores (33.3%)" in call("report", "half").words


def test_answers_to_parts_of_tickets_are_counted(call: Calls) -> None:
    def interrupted(_arm: int, count: int, rng: np.random.Generator) -> Any:
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append(count)
        return rng.normal(size=count)

    made: list[int] = []
    problem = sl.Problem(1, 0.1, 0.05, variances=[1.0] * 2)
    with pytest.raises(KeyboardInterrupt):
        sl.select(interrupted, problem, "wnelim", store="shortlist.db", name="parts", pulls_per_call=10)
    assert (
        "50 pulls made (50 of them in tickets that are not complete), of at" in call("status", "parts").words
    )


def test_what_is_saved_on_shared_items(call: Calls) -> None:
    problem = sl.Problem(1, 0.0, 0.1, n=3, rewards=sl.Bernoulli(), items=200)
    result = sl.select(
        lambda arm, items: [int((item * 7) % 10 < 2 + 3 * arm) for item in items],
        problem,
        store="shortlist.db",
        name="whole",
    )
    assert result.n_saved == 600 - result.n_pulls > 0
    saved = f"{result.n_saved:,} scores saved"
    for command in ("status", "report"):
        assert saved in call(command, "whole").words
    assert call("report", "whole", "--json").data["result"]["n_saved"] == result.n_saved
    known = problem.changed(known={0: [0.0] * 200})
    assert sl.Session(known).result.n_saved == 0
    part = replace(result, stop=sl.Stop.BUDGET, arms=replace(result.arms, statuses=("out", "open", "open")))
    assert part.n_saved == 200 - result.arms.pulls[0]
