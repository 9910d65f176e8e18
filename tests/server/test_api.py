"""Runs over HTTP: whoever asks and tells, however many they are, every answer counts once."""

import contextlib
import csv
import io
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.run_urls import part_of, path_of, run_of
from shortlist.server.app import create_app
from shortlist.store import Leased, MemoryStore, Told, open_store
from tests.server.calling import Caller
from tests.server.serving import MANY, QUESTION, Served, client_at, served, trouble_of

pytestmark = pytest.mark.slow

SLOW = 60.0
CSV = {"content-type": "text/csv"}
CROWD = MANY | {"variances": [1.0] * 100}


class Place(NamedTuple):
    """A store, and a server of it."""

    path: Path
    server: Served


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server that several tests share; each has runs of its own."""
    path = tmp_path_factory.mktemp("api") / "runs.db"
    with served(path) as server:
        yield Place(path, server)


def mean_of(ticket: dict[str, Any]) -> float:
    """Return what is measured for a ticket: always the same."""
    noise = random.Random(ticket["seed"]).gauss(0.0, 1.0) / ticket["pulls"] ** 0.5
    return float(ticket["arm"] / 20 + noise)


def answers_of(tickets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"ticket": one["ticket"], "mean": mean_of(one)} for one in tickets]


def told_in(path: Path, run: str = "trial") -> dict[str, float]:
    """Return the answers that are in a store, after making sure that none counts twice."""
    session = sl.Session.resume(path, run)
    found: dict[str, float] = {}
    for event in session.events:
        for arm, mean in zip(event.arms.tolist(), event.means.tolist(), strict=True):
            ticket = f"{session.code}-r{event.round}-a{arm}"
            assert ticket not in found, "an answer counts twice"
            found[ticket] = mean
    session.close()
    return found


def worked(client: httpx.Client, worker: str, limit: int, acknowledged: dict[str, float]) -> bool:
    """Ask for tickets and tell their answers once; return whether the run has ended."""
    asked = client.post("/runs/trial/ask", json={"worker": worker, "limit": limit}).raise_for_status().json()
    if not asked["tickets"]:
        time.sleep(0.1)
        return bool(asked["is_done"])
    answers = answers_of(asked["tickets"])
    told = client.post("/runs/trial/tell", json={"worker": worker, "answers": answers}).raise_for_status()
    acknowledged |= {one["ticket"]: one["mean"] for one in answers}
    assert told.json()["conflicting"] == 0
    return bool(told.json()["is_done"])


# --- bounds -------------------------------------------------------------------------------------------


def test_bounds_hold_over_http() -> None:
    question = {"m": 1, "epsilon": 0.3, "delta": 0.1, "n": 2, "bounds": [0, 1]}
    with Caller(create_app(MemoryStore())) as client:
        begun = client.post("/runs", json={"name": "trial", "question": question}).json()
        assert begun["problem"]["bounds"] == [0.0, 1.0]
        asked = client.post("/runs/trial/ask", json={"worker": "w"}).json()["tickets"]
        ticket, pulls = asked[0]["ticket"], asked[0]["pulls"]
        wrong: list[dict[str, Any]] = [
            {"mean": 240},
            {"rewards": [0.5] * (pulls - 1) + [1.1]},
            {"mean": 0.5, "variance": 2.0},
        ]
        for one in wrong:
            answers = [{"ticket": asked[1]["ticket"], "mean": 0.5}, {"ticket": ticket, **one}]
            told = client.post("/runs/trial/tell", json={"worker": "w", "answers": answers})
            assert "entry 2: the " in trouble_of(told, 422)["message"]
            assert "of arm-0 is" in trouble_of(told, 422)["message"]
        sheet = client.post("/runs/trial/sheet", content=f"ticket,mean\n{ticket},240\n", headers=CSV)
        assert "line 2: the mean 240 of" in trouble_of(sheet, 422)["message"]
        failed = {"ticket": ticket, "first_pull": 0, "pulls": 1, "score": -5.0, "reason": "no signal"}
        answers = [{"ticket": ticket, "mean": 0.5}]
        told = client.post("/runs/trial/tell", json={"worker": "w", "answers": answers, "scored": [failed]})
        assert "a failed pull of arm-0 was scored as -5" in trouble_of(told, 422)["message"]
        status = client.get("/runs/trial.json").json()
        assert status["n_pulls"] == 0
        assert status["problem"]["bounds"] == [0.0, 1.0]
        assert client.get("/runs/trial/export.json").json()["question"]["bounds"] == [0.0, 1.0]
        assert "declared to lie between 0 and 1" in client.get("/runs/trial/report.html").text


# --- how rewards are measured -------------------------------------------------------------------------


def test_settings_over_http_mean_something() -> None:
    sound = {"pulls_per_call": 1, "together": 1, "on_failure": 0.0}
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "trial", "question": QUESTION | {"bounds": [0, 1]}})
        changes: list[dict[str, Any]] = [{"on_failure": "x"}, {"on_failure": 7.5}, {"file": {}}]
        for wrong in ({}, {"how": 1}, *(sound | change for change in changes)):
            trouble_of(client.post("/runs/trial/arrange", json={"settings": wrong}), 422)
        assert client.get("/runs/trial/round.json").json()["settings"] is None
        assert client.post("/runs/trial/arrange", json={"settings": sound}).status_code == 200
        assert client.get("/runs/trial").status_code == 200


def test_failures_over_http_are_held_against_their_tickets() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "trial", "question": QUESTION})
        one, other, _ = client.post("/runs/trial/ask", json={"worker": "a"}).json()["tickets"]
        answers = [{"ticket": one["ticket"], "mean": 0.5}]

        def told(*failed: dict[str, Any], answers: list[dict[str, Any]] = answers) -> httpx.Response:
            scored = [
                {"ticket": one["ticket"], "first_pull": 0, "pulls": 1, "score": 0.0, "reason": "x"} | part
                for part in failed
            ]
            return client.post("/runs/trial/tell", json={"worker": "a", "answers": answers, "scored": scored})

        for part in ({"ticket": other["ticket"]}, {"first_pull": one["pulls"]}, {"pulls": one["pulls"] + 1}):
            assert trouble_of(told(part), 409)["kind"] == "NotAsked"
        trouble_of(told({}, {}), 409)
        later = one["ticket"].replace("-r0-", "-r1-")
        assert "failed pulls of round 1" in trouble_of(told({"ticket": later}), 422)["message"]
        blank = [{"ticket": one["ticket"]}]
        assert "failed pulls of round 0" in trouble_of(told({}, answers=blank), 422)["message"]
        trouble_of(told({"ticket": one["ticket"].replace("a0", "a99")}), 409)
        assert client.get("/runs/trial.json").json()["n_pulls"] == 0
        assert told({}, {"first_pull": 1}).json()["taken"] == 1
        assert client.get("/runs/trial.json").json()["n_scored"] == 2


# --- one by one ---------------------------------------------------------------------------------------


def test_a_run_from_its_question_to_its_answer() -> None:
    with Caller(create_app(MemoryStore())) as client:
        begun = client.post("/runs", json={"name": "a trial/1", "question": QUESTION, "seed": 5})
        assert begun.status_code == 201
        path = begun.json()["path"]
        assert begun.headers["location"] == path == "/runs/a%20trial~11"
        assert (
            client.post("/runs", json={"name": "a trial/1", "question": QUESTION, "seed": 5}).status_code
            == 200
        )
        changed = client.post("/runs", json={"name": "a trial/1", "question": QUESTION, "seed": 6})
        assert "exists with another question" in trouble_of(changed, 409)["message"]
        for k in range(100):
            asked = client.post(f"{path}/ask", json={"worker": "w"}).json()
            if asked["is_done"]:
                break
            rewards = [
                {"ticket": one["ticket"], "rewards": [float(one["arm"])] * one["pulls"]}
                for one in asked["tickets"]
            ]
            told = client.post(f"{path}/tell", json={"worker": "w", "answers": rewards})
            assert told.json()["taken"] == len(rewards), k
            again = client.post(f"{path}/tell", json={"worker": "w", "answers": rewards})
            assert (again.json()["taken"], again.json()["known"]) == (0, len(rewards))
        assert client.get(f"{path}/result.json").json()["selected"] == ["arm-2"]
        assert client.get(f"{path}.json").json()["is_done"]
        kept = client.get(f"{path}/export.csv")
        assert kept.headers["content-disposition"] == 'attachment; filename="a-trial-11.csv"'
        rows = list(csv.DictReader(io.StringIO(kept.text)))
        assert len(rows) == len(client.get(f"{path}/export.json").json()["answers"])


def test_tickets_are_reserved_renewed_and_given_back() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "trial", "question": QUESTION})

        def ask(worker: str, **more: Any) -> dict[str, Any]:
            found: dict[str, Any] = client.post("/runs/trial/ask", json={"worker": worker} | more).json()
            return found

        first = ask("a", limit=2)
        assert [one["arm"] for one in first["tickets"]] == [0, 1]
        assert ask("a", limit=2)["tickets"] == first["tickets"]
        assert [one["arm"] for one in ask("b")["tickets"]] == [2]
        waiting = ask("c")
        assert waiting["tickets"] == []
        assert {one["worker"] for one in waiting["waiting_for"]} == {"a", "b"}
        assert ask("c", round=0, arms=[0, 2])["tickets"] == []
        renewed = client.post("/runs/trial/renew", json={"worker": "a", "lease": 1e6})
        assert renewed.json() == {"run": "trial", "is_done": False}
        assert client.post("/runs/trial/release", json={"worker": "b"}).status_code == 200
        assert [one["arm"] for one in ask("c", round=0, arms=[0, 2])["tickets"]] == [2]
        assert client.get("/runs/trial/round.json", params={"worker": "a"}).json()["free"] == [0, 1]
        client.post("/runs/trial/suspend", json={"worker": "a", "reason": "out of paper"})
        assert client.get("/runs/trial.json").json()["suspended"] == "out of paper"


PAGE = {"m": 1, "epsilon": 0.01, "delta": 0.05, "names": ["A", "B"], "noise": "bernoulli"}


def test_results_are_fed_corrected_and_certified() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "page", "question": PAGE, "strategy": "race"})
        rows: list[dict[str, Any]] = [
            {"arm": "A", "pulls": 5000, "successes": 100},
            {"arm": 1, "pulls": 5000, "successes": 300},
        ]
        wish = {"rows": rows, "label": "monday", "worker": "ann"}
        first = client.post("/runs/page/feed", json=wish).json()
        assert first["rows"] == {"new": 2, "known": 0, "corrected": 0}
        assert first["certificate"]["selected"] == ["B"]
        assert first["arms"] == {"A": "out", "B": "in"}
        assert client.post("/runs/page/feed", json=wish).json()["rows"]["known"] == 2
        sheet = "variant,visitors,conversions\nA,5000,110\nB,5000,300\n"
        again = client.post("/runs/page/feed", json={"sheet": sheet, "label": "monday"}).json()
        assert again["rows"] == {"new": 0, "known": 1, "corrected": 1}
        assert again["n_fed"] == 10_000
        day = sheet.replace("5000,110", "5003,110")
        assert client.post("/runs/page/feed", json={"sheet": day, "label": "may 1"}).status_code == 200
        fixed: dict[str, Any] = {"sheet": day.replace("110", "120").replace("300", "310"), "label": "may 2"}
        said = trouble_of(client.post("/runs/page/feed", json=fixed), 422)["message"]
        assert (
            "If these rows correct the rows labelled 'may 1', use that label. Insist only if they are for "
            "another day." in said
        )
        empty: list[dict[str, Any]] = [{"arm": arm, "pulls": 0, "successes": 0} for arm in "AB"]
        assert (
            client.post("/runs/page/feed", json={"rows": empty, "label": "may 1"}).json()["n_fed"] == 10_000
        )
        slip: dict[str, Any] = {"sheet": sheet.replace("5000,110", "5000,1100"), "label": "tuesday"}
        refused = client.post("/runs/page/feed", json=slip)
        assert "data-entry error" in trouble_of(refused, 422)["message"]
        assert client.post("/runs/page/feed", json=slip | {"insist": True}).json()["rows"]["new"] == 2
        both = {"rows": [rows[0] | {"mean": 0.02}]}
        for wrong in ({}, {"rows": rows, "sheet": sheet}, both, {"sheet": "x"}):
            assert client.post("/runs/page/feed", json=wrong).status_code == 422
        seen = client.get("/runs/page.json").json()
        assert seen["certificate"].startswith("With probability at least 95 %")
        assert client.get("/runs/page/result.json").json()["n_fed"] == 20_000


def test_a_careful_request_does_not_replace_earlier_rows_unless_it_insists() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "page", "question": PAGE, "strategy": "race"})
        header = "variant,visitors,conversions\n"
        wish: dict[str, Any] = {
            "sheet": f"{header}A,5000,100\nB,5010,300\n",
            "label": "monday",
            "careful": True,
        }
        assert client.post("/runs/page/feed", json=wish).json()["rows"]["new"] == 2
        assert client.post("/runs/page/feed", json=wish).json()["rows"]["known"] == 2
        tuesday = wish | {"sheet": f"{header}A,5100,110\nB,5020,310\n"}
        rows = [{"arm": "A", "pulls": 5100, "successes": 110}, {"arm": "B", "pulls": 5020, "successes": 310}]
        for later in (tuesday, {"rows": rows, "label": "monday", "careful": True}):
            said = trouble_of(client.post("/runs/page/feed", json=later), 422)["message"]
            assert (
                "2 of 2 rows would replace earlier ones, with other numbers, under the label monday" in said
            )
            assert "A, 100 of 5,000 before, 110 of 5,100 now" in said
            assert "data-entry error" in said, "so that the form shows its box"
            assert "If these rows are for another day, use another label." in said
        assert client.get("/runs/page/result.json").json()["n_fed"] == 10_010
        assert (
            client.post("/runs/page/feed", json=tuesday | {"insist": True}).json()["rows"]["corrected"] == 2
        )
        dated = wish | {"sheet": "date,variant,visitors,conversions\nwed,A,5000,101\nwed,B,5010,303\n"}
        said = trouble_of(client.post("/runs/page/feed", json=dated), 422)["message"]
        assert "it has labels of its own (column `date`), so the label has no effect. Omit it." in said
        assert client.post("/runs/page/feed", json=dated | {"label": ""}).json()["rows"]["new"] == 2


def test_results_are_fed_block_by_block() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "page", "question": PAGE, "strategy": "block-race"})
        rows = [
            {"arm": arm, "pulls": 5000, "successes": hits, "block": block, "label": block}
            for block, some in (("mon", (100, 150)), ("sun", (600, 680)))
            for arm, hits in zip("AB", some, strict=True)
        ]
        found = client.post("/runs/page/feed", json={"rows": rows[:2]}).json()
        assert found["drift"] == ""
        found = client.post("/runs/page/feed", json={"rows": rows[2:]}).json()
        assert "This does no harm" in found["drift"]
        assert found["drift"] in found["lines"]
        problem = sl.Problem(m=1, epsilon=0.01, delta=0.05, names=["A", "B"], rewards=sl.Bernoulli())
        alone = sl.certify(problem, [[5000, 5000]] * 2, successes=[[100, 150], [600, 680]])
        assert found["certificate"]["epsilon"] == alone.epsilon
        sheet = "block,variant,visitors,conversions\nmon,A,5000,100\ntue,A,40,2\ntue,B,50,3\n"
        again = client.post("/runs/page/feed", json={"sheet": sheet}).json()
        assert again["rows"] == {"new": 2, "known": 1, "corrected": 0}
        part = {"rows": [rows[0] | {"label": "rest"}]}
        assert "evaluated as a whole" in trouble_of(client.post("/runs/page/feed", json=part), 422)["message"]


def test_an_answer_is_withdrawn_a_slip_refused_and_drivers_are_stopped() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "trial", "question": QUESTION, "strategy": "race"})
        tickets = client.post("/runs/trial/ask", json={"worker": "a"}).json()["tickets"]
        told = [{"ticket": one["ticket"], "mean": 0.5} for one in tickets]
        client.post("/runs/trial/tell", json={"worker": "a", "answers": told[:1]})
        wish = {"ticket": told[0]["ticket"], "why": "wrong scale", "by": "a"}
        assert client.post("/runs/trial/withdraw", json=wish).status_code == 200
        assert client.post("/runs/trial/withdraw", json=wish).status_code == 409
        assert client.post("/runs/trial/tell", json={"worker": "a", "answers": told}).json()["taken"] == 3
        (one, *_) = client.post("/runs/trial/ask", json={"worker": "a"}).json()["tickets"]
        far = {"worker": "a", "answers": [{"ticket": one["ticket"], "mean": 1e4}]}
        assert client.post("/runs/trial/tell", json=far | {"careful": True}).status_code == 422
        assert client.post("/runs/trial/tell", json=far).json()["taken"] == 1
        assert client.get("/runs/trial/round.json").json()["n_stops"] == 0
        assert client.post("/runs/trial/stop", json={"why": "enough"}).status_code == 200
        assert client.get("/runs/trial/round.json").json()["n_stops"] == 1


def test_tickets_issued_or_tried_again_are_named_and_may_be_kept_from_it() -> None:
    with Caller(create_app(MemoryStore())) as client:
        for name, more in (("trial", {}), ("kept", {"reissue": False}), ("sure", {"reproducible": True})):
            client.post("/runs", json={"name": name, "question": QUESTION} | more)
            path = f"/runs/{name}"
            (held,) = client.post(f"{path}/ask", json={"worker": "a", "limit": 1, "lease": 0.001}).json()[
                "tickets"
            ]
            time.sleep(0.01)
            got = client.post(f"{path}/ask", json={"worker": "b", "limit": 1}).json()["tickets"]
            assert (got == [held]) == (name != "kept")
            client.post(f"{path}/release", json={"worker": "a", "by": "eve"})
            rest = client.post(f"{path}/ask", json={"worker": "b"}).json()["tickets"]
            tried = [one["ticket"] for one in rest if one != held][:1]
            wish = {"worker": "b", "answers": answers_of(rest), "again": tried}
            assert client.post(f"{path}/tell", json=wish).json()["taken"] == len(rest)
            seen = client.get(f"{path}.json").json()
            assert seen["n_reissued"] == client.get(f"{path}/result.json").json()["n_reissued"]
            assert seen["n_reissued"] == (0 if name == "sure" else 2)
            said = "2 tickets may have been measured more than once, because"
            assert any(said in one["words"] for one in seen["warnings"]) == (name != "sure")
            assert (said in client.get(path, headers={"accept": "text/html"}).text) == (name != "sure")
        wrong = client.post("/runs/trial/arrange", json={"settings": {"reproducible": "yes"}})
        assert "must be true or false" in trouble_of(wrong, 422)["message"]


def test_the_page_of_a_run_that_was_only_fed_counts_no_pulls_as_measured() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "page", "question": PAGE, "strategy": "race"})
        rows = [{"arm": arm, "pulls": 40_000, "successes": n} for arm, n in (("A", 8000), ("B", 4000))]
        assert client.post("/runs/page/feed", json={"rows": rows, "label": "monday"}).status_code == 200
        facts = client.get("/runs/page.json").json()
        assert facts["progress"] == "80,000 pulls fed, none measured"
        assert client.get("/index.json").json()["runs"][0]["n_pulls"] == 80_000
        assert facts["gauge"]["cap_words"] == "", "there is nothing to compare with a maximum"
        words = client.get("/runs/page").text
        assert "The result is better than asked: no other arm has a larger true mean." in words
        assert "means vary as those of independent rewards do" in words
        assert "stated variances" not in words


def test_a_sheet_is_taken_whole_or_not_at_all() -> None:
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "trial", "question": QUESTION})
        tickets = client.post("/runs/trial/ask", json={"worker": "a"}).json()["tickets"]
        lines = [f"{one['ticket']},{one['arm']}" for one in tickets]

        def tell(*rows: str) -> httpx.Response:
            sheet = "\n".join(["ticket,mean", *rows])
            kind = {"content-type": "text/csv"}
            return client.post("/runs/trial/sheet", params={"worker": "a"}, content=sheet, headers=kind)

        wrong = trouble_of(tell(lines[0], f"{tickets[1]['ticket']},x"), 422)
        assert wrong["message"].startswith("line 3: the mean is 'x'")
        assert client.get("/runs/trial.json").json()["n_pulls"] == 0
        assert tell(*lines).json()["taken"] == 3


def test_data_entry_errors_in_a_sheet_are_refused_on_request() -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 5}
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "lab", "question": question})
        tickets = client.post("/runs/lab/ask", json={"worker": "a"}).json()["tickets"]
        means = [57, 58, 5800, 59, 56]
        rows = [f"{one['ticket']},{mean},4" for one, mean in zip(tickets, means, strict=True)]
        sheet = "\n".join(["ticket,mean,variance", *rows])

        def tell(**how: Any) -> httpx.Response:
            kind = {"content-type": "text/csv"}
            return client.post("/runs/lab/sheet", params={"worker": "a", **how}, content=sheet, headers=kind)

        assert "data-entry error" in trouble_of(tell(careful=True), 422)["message"]
        assert client.get("/runs/lab.json").json()["n_pulls"] == 0
        assert tell().json()["taken"] == 5, "programs are never doubted"


# --- names as parts of addresses ----------------------------------------------------------------------

NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)
ODD = st.text("./~%012ajson\\?#&;:+ é\u4e2d", min_size=1, max_size=8)


@settings(max_examples=300)
@given(NAMES | ODD)
@example("a.json")
@example("..")
@example(".")
@example("a/b")
@example("~1")
@example("~01")
@example("%2F")
@example("events")
@example("a.json.json")
@example("....json")
@example("answer.json")
@example("a/events")
@example("/")
@example("\u202e")
def test_a_name_comes_back_from_its_address(name: str) -> None:
    part = part_of(name)
    assert part.isascii()
    assert not set(part) & set("/?#\\ ")
    assert part not in {".", ".."}
    assert run_of(unquote(part)) == name
    assert not unquote(part).endswith(".json"), "it would be taken for the plain data of another run"
    assert str(httpx.URL(f"http://x{path_of(name, 'ask')}").raw_path, "ascii") == path_of(name, "ask")


@settings(max_examples=200)
@given(NAMES | ODD, NAMES | ODD)
def test_no_name_is_mistaken_for_another(one: str, other: str) -> None:
    parts = [unquote(part_of(name)) for name in (one, other)]
    assert (parts[0] == parts[1]) == (one == other)
    assert (path_of(one, "events") == path_of(other)) is False


def test_every_name_leads_to_its_own_run() -> None:
    names = [
        *(
            "a.json",
            "a",
            "..",
            ".",
            "a/b",
            "~1",
            "~",
            "/",
            "events",
            "a/events",
            "a/events.json",
            "index.json",
        ),
        *(
            "%2F",
            "a%2Fb",
            "a b",
            "ä",
            "中",
            "a?b=c",
            "a#b",
            "a+b",
            "a;b",
            "a&b",
            "<script>",
            "a\\b",
            "...",
            "a.",
        ),
        *(
            "report.html",
            "a.html",
            "export.csv",
            "a~1b",
            "a~b",
            "login",
            "static",
            "A.JSON",
            '"',
            "'",
            "=1+1",
        ),
    ]
    with Caller(create_app(MemoryStore())) as client:
        for name in names:
            reply = client.post("/runs", json={"name": name, "question": QUESTION})
            assert reply.status_code == 201, name
            assert reply.json()["path"] == reply.headers["location"] == path_of(name)
        for name in names:
            path = path_of(name)
            assert client.get(f"{path}.json").json()["run"] == name
            assert client.get(f"{path}/round.json").json()["run"] == name
            assert client.get(path).headers["content-type"].startswith("text/html"), name
            assert client.post(f"{path}/ask", json={"worker": "a"}).json()["run"] == name
            kept = client.get(f"{path}/export.json").headers["content-disposition"]
            assert set(kept) <= set('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.;="  ')
        assert {one["run"] for one in client.get("/index.json").json()["runs"]} <= set(names)


# --- many at once -------------------------------------------------------------------------------------


def test_fifty_threads_ask_and_tell(place: Place) -> None:
    acknowledged: list[dict[str, float]] = [{} for _ in range(50)]
    path, server = place
    server.begin("trial", CROWD, "short-race")
    end = time.monotonic() + SLOW

    def work(k: int) -> None:
        while not worked(client, f"w{k}", 1 + k % 3, acknowledged[k]) and time.monotonic() < end:
            pass

    with ThreadPoolExecutor(50) as pool, client_at(server.url, 50) as client:
        list(pool.map(work, range(50)))
    assert server.client.get("/runs/trial.json").json()["is_done"]
    alone = sl.Session(sl.Problem(**CROWD), "short-race")
    while tickets := alone.ask():
        rows = sl_rows(alone, tickets)
        alone.tell(tickets, means=[mean_of(row) for row in rows])
    told = told_in(path)
    everything = {ticket: mean for part in acknowledged for ticket, mean in part.items()}
    assert sum(map(len, acknowledged)) == len(everything) == len(told), "no ticket was answered by two"
    assert everything == told
    session = sl.Session.resume(path, "trial")
    assert session.result.selected == alone.result.selected
    leases = [record.event for record in session.records if isinstance(record.event, Leased)]
    given_out = Counter((lease.round, arm) for lease in leases for arm in lease.arms.tolist())
    assert max(given_out.values()) == 1, "a ticket was given to two workers"
    assert len({lease.worker for lease in leases}) > 10
    session.close()


def sl_rows(session: sl.Session, tickets: sl.session.Tickets) -> list[dict[str, Any]]:
    from shortlist.session.sheet_format import ticket_rows

    return list(ticket_rows(tickets, session.code, session.entropy))


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    acknowledged: list[dict[str, float]] = [{} for _ in range(4)]
    server = Served(path)
    server.begin("trial", CROWD, "short-race")
    port, is_over = server.port, threading.Event()

    def work(k: int) -> None:
        with client_at(f"http://127.0.0.1:{port}") as client:
            while not is_over.is_set():
                with contextlib.suppress(httpx.TransportError):
                    if worked(client, f"w{k}", 2, acknowledged[k]):
                        return
                time.sleep(0.002)

    def wait_for(n: int) -> None:
        end = time.monotonic() + SLOW
        while sum(map(len, acknowledged)) < n:
            assert time.monotonic() < end
            time.sleep(0.005)

    def known() -> dict[str, float]:
        return {ticket: mean for part in acknowledged for ticket, mean in part.items()}

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, k) for k in range(4)]
        try:
            wait_for(25)
            server.kill()
            n_before = len(known())
            assert known().items() <= told_in(path).items(), "an acknowledged answer was lost"
            server = Served(path, port=port)
            wait_for(n_before + 25)
        finally:
            is_over.set()
            server.stop()
    for one in working:
        one.result()
    assert known().items() <= told_in(path).items()


def test_two_servers_and_the_command_line_share_a_store(place: Place, tmp_path: Path) -> None:
    path, one = place
    file = tmp_path / "question.toml"
    file.write_text(
        "[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.1\nscales = [1.0, 1.0, 1.0]\n[measure]\n"
        'kind = "simulated"\nmeans = [0.0, 1.0, 2.0]\n',
        encoding="utf-8",
    )

    def shortlist(*words: str, given: str = "") -> str:
        command = [sys.executable, "-m", "shortlist", *words, "--store", str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, input=given, check=False, env=os.environ
        )
        assert done.returncode in {0, 3}, done.stderr
        return done.stdout

    with served(path) as other:
        one.begin("shared", MANY)
        tickets = one.client.post("/runs/shared/ask", json={"worker": "a", "limit": 4}).json()["tickets"]
        beside = other.client.post("/runs/shared/ask", json={"worker": "b", "limit": 4}).json()["tickets"]
        assert not {t["arm"] for t in tickets} & {t["arm"] for t in beside}
        told = {"worker": "a", "answers": answers_of(tickets)}
        assert other.client.post("/runs/shared/tell", json=told).json()["taken"] == 4
        assert one.client.post("/runs/shared/tell", json=told).json()["known"] == 4
        sheet = "ticket,mean\n" + "".join(f"{t['ticket']},{mean_of(t)!r}\n" for t in beside)
        (tmp_path / "answers.csv").write_text(sheet, encoding="utf-8")
        shortlist("tell", "shared", str(tmp_path / "answers.csv"))
        for server in (one, other):
            facts = server.client.get("/runs/shared.json").json()
            assert facts["n_tickets"] - facts["n_open"] == 8
        shortlist("run", str(file), "--name", "simulated")
        for server in (one, other):
            facts = server.client.get("/runs/simulated.json").json()
            assert facts["is_done"]
            assert facts["selected"] == ["arm-2"]
    assert len(told_in(path, "shared")) == 8


def test_who_looks_does_not_wait_long_for_who_adds(place: Place) -> None:
    path, server = place
    server.begin("slow", MANY)
    server.begin("other")
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as lock,
        ThreadPoolExecutor(1) as pool,
    ):
        lock.execute("BEGIN IMMEDIATE")
        waiting = pool.submit(server.client.post, "/runs/slow/ask", json={"worker": "a", "limit": 1})
        time.sleep(0.5)
        with client_at(server.url) as client:
            began = time.monotonic()
            assert client.get("/plan.json").status_code == 200
            assert client.get("/runs/other.json").status_code == 200
            assert time.monotonic() - began < 1.5
            assert trouble_of(client.get("/runs/slow.json"), 503)["kind"] == "Busy"
            assert time.monotonic() - began < 6.0
        assert not waiting.done()
        lock.execute("ROLLBACK")
        assert waiting.result(timeout=SLOW).status_code == 200
    assert server.client.get("/runs/slow.json").status_code == 200


def test_told_events_say_who_told_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Caller(create_app(open_store(path))) as client:
        client.post("/runs", json={"name": "trial", "question": QUESTION})
        tickets = client.post("/runs/trial/ask", json={"worker": "a"}).json()["tickets"]
        client.post("/runs/trial/tell", json={"worker": "ann", "answers": answers_of(tickets)})
    records = [record.event for record in open_store(path).read("trial")]
    assert [event.worker for event in records if isinstance(event, Told)] == ["ann"]


def test_a_slip_that_was_recorded_is_doubted_when_others_arrive_unless_it_is_confirmed() -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 6}
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "lab", "question": question})
        tickets = client.post("/runs/lab/ask", json={"worker": "a"}).json()["tickets"]
        answers = [
            {"ticket": one["ticket"], "mean": mean, "variance": 4.0}
            for one, mean in zip(tickets, [483.1, 40, 48, 44, 43, 45], strict=True)
        ]

        def tell(some: list[Any], **how: Any) -> httpx.Response:
            return client.post("/runs/lab/tell", json={"worker": "a", "answers": some, "careful": True} | how)

        assert tell(answers[:1]).status_code == 200
        said = trouble_of(tell(answers[1:]), 422)["message"]
        assert said.startswith("arm-0 has the mean 483.1, far from those of 5 other arms (median 44.5).")
        slip = answers[0]["ticket"]
        assert f"withdraw ticket {slip}; if it is right, list the ticket in `confirmed`." in said
        assert "--yes" not in said
        assert client.get("/runs/lab.json").json()["n_open"] == 5
        other = trouble_of(tell([answers[0] | {"mean": 48.31}]), 422)["message"]
        assert (
            f"entry 1: arm-0 has 483.1, and this answer is 48.31. To correct it, withdraw ticket {slip},"
            in other
        )
        wrong = [answers[1] | {"mean": 4000}, *answers[2:]]
        assert "--yes" not in trouble_of(tell(wrong, confirmed=[slip]), 422)["message"], "others are checked"
        assert tell(answers[1:], confirmed=[slip]).json()["taken"] == 5
