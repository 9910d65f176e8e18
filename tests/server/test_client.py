"""The client against a real server: the same answers, to the last bit, and the same errors, word by word."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import numpy as np
import pytest

import shortlist as sl
from shortlist.certificates.assumptions import BOUNDED as BOUNDED_REWARDS
from shortlist.certificates.assumptions import FED
from shortlist.client import Client, RemoteRun
from shortlist.client.remote_run import Said, parsed, parts_of
from shortlist.client.transport import Trouble
from shortlist.measure.source import Call
from shortlist.report.worker_text import worker_words
from shortlist.session.answers import Answers
from shortlist.session.worker_names import OVER_HTTP, is_gone, own_name
from tests.questions import unknown
from tests.server.at_work import Server, serving

pytestmark = pytest.mark.slow

TOKENS = {"write": "w" * 20, "read": "r" * 20}
PROBLEM = sl.Problem(
    m=2, epsilon=0.4, delta=0.1, variances=[0.3, 1.1, 0.7, 0.1 + 0.2], names=["a", "b", "c/d", "é"]
)
UNKNOWN = unknown(m=1, epsilon=1.0, delta=0.1, names=["x", "y", "z"], pilot=7, goal="minimise")
QUESTIONS = [
    PROBLEM,
    PROBLEM.changed(rewards=sl.Gaussian, guarantee="indifference", goal="minimise", names=None),
    UNKNOWN,
]
BOUNDED = [PROBLEM.changed(bounds=(-9, 9.5)), PROBLEM.changed(rewards="bernoulli")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    file = folder / "tokens"
    file.write_text("".join(f"{kind} {token}\n" for kind, token in TOKENS.items()), encoding="utf-8")
    file.chmod(0o600)
    with serving(folder, "--token-file", str(file), token=TOKENS["write"]) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as found:
        yield found


def rewards(seed: int, ticket: sl.session.Ticket) -> list[float]:
    drawn = Call(seed, ticket.arm, ticket.count, ticket.first_pull).rng.normal(
        ticket.arm / 3, 1, ticket.count
    )
    return [float(one) for one in drawn]


def is_same(one: sl.Result, other: sl.Result) -> bool:
    """Return whether two results are the same in every bit."""
    return (
        one.to_dict() == other.to_dict()
        and one.arms.means.tobytes() == other.arms.means.tobytes()
        and str(one) == str(other)
        and one.guarantee == other.guarantee
    )


# --- asking and telling -----------------------------------------------------------------------------


@pytest.mark.parametrize("problem", QUESTIONS, ids=["names", "gaussian", "unknown"])
def test_a_run_over_http_is_the_same_as_a_session(client: Client, problem: Any, request: Any) -> None:
    here = sl.Session(problem, seed=7)
    there = client.begin(problem, request.node.name, seed=7)
    while tickets := here.ask():
        asked = there.ask(worker="ann")
        assert [*asked] == [*tickets]
        assert asked.needs_variances == tickets.needs_variances
        here.tell(tickets, [rewards(7, ticket) for ticket in tickets])
        for ticket in asked[:2]:  # by themselves, they do not say whether variances are wanted
            there.tell(ticket, rewards(7, ticket), worker="ann")
        if len(asked) > 2:
            there.tell(asked[2:], [rewards(7, ticket) for ticket in asked[2:]], worker="ann")
    assert here.is_done
    assert not there.ask(worker="ann")
    assert is_same(there.result(), here.result)
    assert there.result().is_answer


@pytest.mark.parametrize(
    "problem", [*QUESTIONS, *BOUNDED], ids=["names", "gaussian", "unknown", "bounds", "coins"]
)
def test_a_run_is_found_again_with_its_question(client: Client, problem: Any, request: Any) -> None:
    name = request.node.name + "/.json"
    begun = client.begin(problem, name, seed=3)
    found = client.run(name)
    assert found.problem.digest == problem.digest
    assert found.problem == problem
    assert (found.strategy, found.seed, found.code) == (begun.strategy, 3, begun.code)
    assert name in [one["run"] for one in client.runs()]
    assert client.plan(problem)["words"] == problem.words


ITEMS = sl.Problem(
    m=1,
    epsilon=0.1,
    delta=0.1,
    names=["a", "b", "c"],
    rewards=sl.Bounded(0, 5, step=1),
    items={f"question {place}": {"text": place} for place in range(40)},
    known={"b": [place % 3 for place in range(40)]},
    costs=[1.0, 2.0, 1.0],
)


def scores(arm: int, items: list[str]) -> list[float]:
    return [float((int(item.split()[-1]) * (arm + 1)) % 3 + arm) for item in items]


def test_shared_items_over_http_give_the_answer_that_they_give_here(client: Client) -> None:
    begun = client.begin(ITEMS, "items", seed=5)
    found = client.run("items")
    assert found.problem == ITEMS
    assert begun.strategy == "shared-items"
    result = sl.drive(found.session(), scores)
    here = sl.select(
        lambda arm, items: scores(arm, [f"question {item['text']}" for item in items]), ITEMS, seed=5
    )
    assert (result.selected, result.n_pulls, result.cost) == (here.selected, here.n_pulls, here.cost)
    assert result.guarantee == here.guarantee


def test_tickets_for_items_say_which_and_answers_may_come_by_id(client: Client) -> None:
    run = client.begin(ITEMS, "items by hand", seed=5)
    data = run._post("ask", {"worker": "ann"})
    row = data["tickets"][0]
    expected = [ITEMS.items.id(int(place)) for place in ITEMS.order(5)[: row["pulls"]]]  # type: ignore[union-attr]
    assert row["items"] == expected
    told = dict(zip(expected, scores(row["arm"], expected), strict=True))
    mixed = {
        "ticket": row["ticket"],
        "items": expected[::-1],
        "rewards": [told[one] for one in expected[::-1]],
    }
    assert run._post("tell", {"worker": "ann", "answers": [mixed]})["taken"] == 1
    right = {"ticket": row["ticket"], "rewards": [told[one] for one in expected]}
    assert run._post("tell", {"worker": "ann", "answers": [right]})["known"] == 1
    mean = {"ticket": data["tickets"][1]["ticket"], "mean": 1.0}
    with pytest.raises(sl.errors.InvalidAnswers, match="reward` of each item"):
        run._post("tell", {"worker": "ann", "answers": [mean]})
    lines = run.export().splitlines()
    assert lines[0].startswith("ticket,arm,name,item,reward")
    assert len(lines) == 1 + row["pulls"]


@pytest.mark.parametrize("problem", BOUNDED, ids=["bounds", "coins"])
def test_bounds_hold_for_those_who_measure_elsewhere(client: Client, problem: Any, request: Any) -> None:
    client.begin(problem, request.node.name, "wnelim")
    run = client.run(request.node.name)
    ticket = run.ask(worker="ann")[0]
    assert ticket.count > 2
    for told in ({"means": 240.0}, {"rewards": [0.0] * (ticket.count - 1) + [9.6]}):
        with pytest.raises(sl.MeasurementFailed, match="of a is refused: rewards were declared to"):
            run.tell(ticket, worker="ann", **told)
    run.release("ann")
    with pytest.raises(sl.MeasurementFailed, match="of a is refused: rewards were declared to"):
        sl.drive(run.session(), lambda _arm, count, _rng: [0.0] * (count - 1) + [9.6], turns=1)
    assert client.run(request.node.name).status()["n_pulls"] == 0


def test_a_budget_chooses_the_strategy_as_it_does_here(client: Client) -> None:
    problem = sl.Problem(m=3, epsilon=0.5, delta=0.05, variances=[1.0] * 10)
    budgets = [None, 1300]
    here = [sl.Session(problem, budget=budget).strategy for budget in budgets]
    there = [client.begin(problem, f"budget {b}", budget=b).strategy for b in budgets]
    assert here == there
    assert len(set(here)) == 2


def test_tickets_are_reserved_renewed_and_given_back(client: Client) -> None:
    run = client.begin(PROBLEM, "reserved", "single-stage")
    mine = run.ask(3, worker="ann", lease=60)
    assert [*run.ask(3, worker="ann")] == [*mine]
    rest = run.ask(worker="bob")
    assert sorted([*mine.arms.tolist(), *rest.arms.tolist()]) == [0, 1, 2, 3]
    before = {one["worker"]: one["until"] for one in run.status()["holders"]}
    run.renew("bob", 1e6)
    after = {one["worker"]: one["until"] for one in run.status()["holders"]}
    assert after["ann"] == before["ann"]
    assert after["bob"] > before["bob"]
    run.release("bob")
    assert [*run.ask(worker="ann").arms] == [0, 1, 2, 3]


def test_a_round_says_what_a_worker_may_have_and_no_more_than_is_needed(client: Client) -> None:
    run = client.begin(PROBLEM, "round", "single-stage")
    whole = run.round("ann")
    assert (whole["round"], whole["arms"], whole["free"]) == (0, [0, 1, 2, 3], [0, 1, 2, 3])
    run.ask(worker="bob", lease=60)
    known = run.round("ann", known=0)
    assert "arms" not in known
    assert (known["free"], known["n_open"]) == ([], 4)
    assert [(one["worker"], one["n_tickets"]) for one in known["waiting_for"]] == [("bob", 4)]
    assert run.round("bob", known=1)["arms"] == [0, 1, 2, 3]
    assert run.round("bob", known=0)["free"] == [0, 1, 2, 3]


def test_who_does_not_say_a_name_is_this_process(client: Client) -> None:
    run = client.begin(PROBLEM, "nameless", "single-stage")
    run.ask(1)
    (holder,) = run.status()["holders"]
    assert holder["worker"] == own_name(prefix=OVER_HTTP)
    assert holder["words"] == f"process {os.getpid()} on {os.uname().nodename}, over HTTP"
    run.suspend("the meter broke " * 5000)
    assert run.status()["state"] == "suspended"


def test_a_second_answer_is_a_contradiction(client: Client) -> None:
    run = client.begin(PROBLEM, "twice", "single-stage")
    (ticket,) = run.ask(1, worker="ann")
    said = run.tell(ticket, means=0.5, worker="ann")
    assert (said["taken"], said["known"], said["conflicting"]) == (1, 0, 0)
    assert run.tell(ticket, means=0.5, worker="ann")["known"] == 1
    with pytest.warns(
        sl.errors.Contradiction, match=r"already has the mean 0\.5, and the new answer is 0\.75; the first"
    ):
        assert run.tell(ticket, means=0.75, worker="ann")["conflicting"] == 1
    assert run.status()["n_conflicts"] == 1


def test_many_answers_are_told_in_parts(client: Client) -> None:
    n = 4500
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=np.linspace(0.001, 0.01, n))
    run = client.begin(problem, "many", "single-stage")
    tickets = run.ask(worker="ann")
    means = np.sin(np.arange(n))
    scored = [sl.session.Scored(tickets[4000], -0.25, "x" * 5000)]
    said = run.tell(tickets, means=means, worker="ann", scored=scored)
    assert (said["taken"], said["is_done"]) == (n, True)
    given = Answers.of(problem, tickets, None, means, scored=scored)
    sizes = [(len(one["answers"]), len(one["scored"])) for one in parts_of("k", given)]
    assert sizes == [(2000, 0), (2000, 0), (500, 1)]
    result = run.result()
    assert (result.arms.means == means * tickets.counts / tickets.counts).all()
    assert result.n_scored == tickets[4000].count
    assert run.export().count("\n") == n + 1


def test_a_ticket_with_many_failures_is_a_part_of_its_own() -> None:
    problem = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=[1.0, 1.0, 1.0])
    tickets = sl.Session(problem, "single-stage").ask()
    scored = [sl.session.Scored(ticket, 0.0, "no") for ticket in tickets for _ in range(1500)]
    given = Answers.of(problem, tickets, None, np.zeros(3), scored=scored)
    sizes = [(len(one["answers"]), len(one["scored"])) for one in parts_of("k", given)]
    assert sizes == [(1, 1500)] * 3


# --- errors -----------------------------------------------------------------------------------------


def begun_again(store: Any) -> None:
    sl.Session(PROBLEM, seed=1, store=store, name="changed")
    sl.Session(PROBLEM.changed(epsilon=0.5), seed=2, store=store, name="changed")


def test_errors_are_those_of_the_library(client: Client, tmp_path: Path) -> None:
    with pytest.raises(sl.errors.ChangedRun) as here:
        begun_again(tmp_path / "x.db")
    client.begin(PROBLEM, "changed", seed=1)
    with pytest.raises(sl.errors.ChangedRun) as there:
        client.begin(PROBLEM.changed(epsilon=0.5), "changed", seed=2)
    assert str(here.value) == str(there.value)
    with pytest.raises(sl.InvalidProblem) as here_too:
        sl.Session(PROBLEM, "guessing")
    with pytest.raises(sl.InvalidProblem) as there_too:
        client.begin(PROBLEM, "other", "guessing")
    assert str(here_too.value) == str(there_too.value)
    with pytest.raises(sl.errors.NoSuchRun, match="there is no run 'gone'"):
        client.run("gone")


def test_answers_that_cannot_be_taken_are_refused(client: Client) -> None:
    run = client.begin(PROBLEM, "refused", "single-stage")
    tickets = run.ask(worker="ann")
    with pytest.raises(sl.MeasurementFailed, match="NaN and infinity are not rewards"):
        run.tell(tickets[0], [float("nan")] * tickets[0].count)
    with pytest.raises(sl.errors.NotAsked, match="round 5 has not started"):
        run.claim(sl.session.Tickets(PROBLEM, 5, *np.zeros((3, 1), dtype=int)), "ann", 60)
    other = sl.session.Ticket(3, 0, "a", 1, 0)
    with pytest.raises(sl.errors.InvalidAnswers, match="never asked for ticket"):
        run.tell(other, [1.0])
    settings = {"pulls_per_call": None, "together": 1, "on_failure": "suspend"}
    run.arrange(settings)
    run.arrange(settings)
    with pytest.raises(sl.errors.ChangedRun, match="together was 1, is 2"):
        run.arrange(settings | {"together": 2})
    with pytest.raises(sl.InvalidProblem, match="plain data"):
        run.arrange(settings | {"together": object()})
    with pytest.raises(sl.InvalidProblem, match="the settings lack `pulls_per_call`"):
        run.arrange({"together": 1})
    assert run.result().n_pulls == 0


def test_a_token_is_needed_where_one_is(server: Server) -> None:
    with (
        Client(server.url) as nobody,
        pytest.raises(sl.InvalidProblem, match=r"a token is required.*SHORTLIST_TOKEN"),
    ):
        nobody.runs()
    with server.client("wrong" * 5) as wrong, pytest.raises(sl.InvalidProblem) as refused:
        wrong.runs()
    assert "not valid on this server" in str(refused.value)
    assert "wrongwrong" not in str(refused.value)
    with server.client(TOKENS["read"]) as reader:
        assert isinstance(reader.runs(), list)
        with pytest.raises(sl.InvalidProblem, match="is read-only; use the write token"):
            reader.begin(PROBLEM)
        assert TOKENS["read"] not in repr(reader)
    with server.client(f"{TOKENS['write']}\n") as writer:
        assert TOKENS["write"] not in repr(writer.begin(PROBLEM).session())


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8765", "ftp://x", "http://", "http://x:99999", "http://x/?a=b", "runs.db"]
)
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=r"give its address, such as http://127\.0\.0\.1:8765"):
        Client(url)


def test_secrets_do_not_belong_into_an_address() -> None:
    with pytest.raises(sl.InvalidProblem) as refused:
        Client("http://me:hush@host:8765")
    assert "hush" not in str(refused.value)
    for token in ("", "two words", "schlüssel", "a\x00b"):
        with pytest.raises(sl.InvalidProblem, match="the token is empty, or contains non-ASCII characters"):
            Client("http://host", token)


# --- servers that do not answer as they should ------------------------------------------------------


Answer: TypeAlias = tuple[int, dict[str, str], str]
"""A status, headers and what is said."""


@dataclass
class Script:
    """What a stand-in answers, one after the other, the last one for ever; and what it was asked."""

    answers: list[Answer]
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def answering(*answers: Answer) -> Iterator[Script]:
    """Yield a server that is none of ours."""
    script = Script(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script.asked.append(self.path)
            status, headers, body = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            self.send_response(status)
            for name, value in (headers | {"content-length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        script.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()


GOOD: Answer = (200, {}, '{"runs": []}')
BUSY: Answer = (503, {}, "<h1>Bad gateway</h1>")


def test_a_server_that_is_busy_is_asked_again() -> None:
    said: list[str] = []
    wait = (429, {"retry-after": "1"}, json.dumps({"error": {"kind": "TooManyRequests", "message": "wait."}}))
    start = time.monotonic()
    with (
        answering(BUSY, (502, {}, ""), wait, GOOD) as script,
        Client(script.url, on_wait=said.append) as client,
    ):
        assert client.runs() == []
    assert len(script.asked) == 4
    assert time.monotonic() - start > 1.0
    assert len(said) == 1
    assert said[0].endswith(" seconds.")


def test_a_server_may_give_the_time_as_a_date() -> None:
    later = formatdate(time.time() + 2, usegmt=True)  # of which the seconds are cut off
    start = time.monotonic()
    with answering((503, {"retry-after": later}, ""), GOOD) as script, Client(script.url) as client:
        assert client.runs() == []
    assert time.monotonic() - start > 0.9
    for wrong in (formatdate(0, usegmt=True), "soon", "-5", "²"):
        assert (
            Trouble(
                sl.errors.StoreTrouble(""), httpx.Response(503, headers=[(b"retry-after", wrong.encode())])
            ).after
            == 0
        )


def test_a_server_that_asks_for_time_is_given_it_even_if_it_never_answered_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shortlist.client.transport._FIRST_CONTACT", 0.1)
    with answering((503, {"retry-after": "1"}, ""), GOOD) as script, Client(script.url) as client:
        assert client.runs() == []
    strict = (503, {"retry-after": "600"}, "")
    with answering(strict) as script, Client(script.url) as client, pytest.raises(sl.errors.StoreTrouble):
        client.runs()
    assert len(script.asked) == 1, "it would have to wait beyond its patience"


def test_patience_comes_to_an_end() -> None:
    with answering(GOOD, BUSY) as script, Client(script.url, patience=0.5) as client:
        client.runs()
        with pytest.raises(
            sl.errors.StoreTrouble, match=r"failed: it answered with status 503\. Earlier results"
        ):
            client.runs()
    assert 3 <= len(script.asked) <= 8


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((500, {}, "oops"), sl.errors.StoreTrouble, "status 500"),
        ((200, {}, "<html>"), sl.InvalidProblem, "is not a Shortlist server"),
        ((301, {"location": "https://x.y/"}, ""), sl.InvalidProblem, "has moved to https://x.y/; give that"),
        ((404, {}, "<html>"), sl.InvalidProblem, "address of a Shortlist server"),
        ((413, {}, ""), sl.InvalidProblem, "--max-body"),
    ],
)
def test_other_answers_are_final(answer: Any, error: type[Exception], words: str) -> None:
    with answering(answer) as script, Client(script.url) as client, pytest.raises(error, match=words):
        client.runs()
    assert len(script.asked) == 1


def test_a_server_that_is_not_there_is_given_three_seconds() -> None:
    with answering(GOOD) as script:
        pass
    start = time.monotonic()
    with Client(script.url) as client, pytest.raises(sl.errors.StoreTrouble) as error:
        client.runs()
    assert 1.0 < time.monotonic() - start < 6.0
    assert f"the server at {script.url} could not be reached for " in str(error.value)
    assert "Check that it is running" in str(error.value)


def test_a_server_that_says_nothing_is_left() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(url, timeout=0.3, patience=0.0) as client,
            pytest.raises(sl.errors.StoreTrouble, match="timed out"),
        ):
            client.runs()


# --- news -------------------------------------------------------------------------------------------


def test_events_are_read_as_the_standard_has_them() -> None:
    lines = ["id: 3", "event: run", "data: {", "data:}", "", ": a comment", "", "id: 4", "data: cut off"]
    assert [*parsed(lines)] == [Said("3", "run", "{\n}")]


def test_news_come_until_the_run_has_ended_also_over_a_restart(server: Server, client: Client) -> None:
    run = client.begin(PROBLEM, "watched", "single-stage")
    seen = run.events()
    first = next(seen)
    assert (first["n_pulls"], first["is_done"]) == (0, False)
    tickets = run.ask(worker="ann")
    server.stop(signal.SIGKILL)
    server.start()
    run.tell(tickets, means=[0.0, 0.5, 1.0, 1.5])
    rest = [*seen]
    assert rest[-1]["is_done"]
    assert rest[-1]["selected"] == ["é", "c/d"]
    numbers = [first["n_events"], *(one["n_events"] for one in rest)]
    assert numbers == sorted(set(numbers)), "something came twice"


def test_what_was_seen_before_a_connection_broke_is_not_news() -> None:
    def sent(*numbers: int) -> Answer:
        texts = (json.dumps({"n_events": number, "is_done": number == 4}) for number in numbers)
        lines = (f"id: {n}\nevent: run\ndata: {text}\n\n" for n, text in zip(numbers, texts, strict=True))
        return 200, {"content-type": "text/event-stream"}, "".join(lines)

    with answering(sent(2, 3), sent(3), BUSY, sent(3, 4)) as script, Client(script.url) as client:
        run = RemoteRun(client._connection, "there", PROBLEM, "race", 0, "kqzfmb", 0)
        assert [one["n_events"] for one in run.events()] == [2, 3, 4]
    assert script.asked == ["/runs/there/events"] * 4


def test_news_of_what_is_not_there_are_refused(client: Client) -> None:
    gone = RemoteRun(client.begin(PROBLEM, "there")._connection, "gone", PROBLEM, "race", 0, "kqzfmb", 0)
    with pytest.raises(sl.errors.NoSuchRun):
        next(gone.events())


# --- how it is installed, and who is who -------------------------------------------------------------


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_it_is_loaded_only_where_it_is_used() -> None:
    look = "print({'httpx', 'shortlist.client'} & set(sys.modules))"
    assert python(f"import sys, shortlist, shortlist.cli; {look}") == "set()"


def test_what_is_missing_is_named() -> None:
    code = (
        "import sys; sys.modules['httpx'] = None\nimport shortlist\n"
        "try:\n    import shortlist.client\nexcept shortlist.InvalidProblem as error:\n    print(error)"
    )
    assert re.search(r"Use: pip install 'httpx>=[\d.]+'$", python(code))


def test_a_worker_elsewhere_is_never_taken_for_a_process_of_this_machine() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    for prefix, gone in (("run", True), ("http", False)):
        name = own_name(prefix=prefix).replace(f":{os.getpid()}:", f":{ended.pid}:")
        assert is_gone(name) == gone
    words: Callable[[str], str] = worker_words
    assert words("http@lab.example:12:0123ab~1") == "process 12 on lab.example, over HTTP"
    assert words("run@lab.example:12:0123ab~1") == "process 12 on lab.example"
    assert words("http@lab") == "http@lab"


def test_a_run_about_0_or_1_keeps_its_variances_over_http(client: Client) -> None:
    before = sl.Problem(m=1, epsilon=0.5, delta=0.2, variances=[0.25] * 3, rewards="bernoulli")
    client.begin(before, "coins of version 0.1.0")
    now = sl.Problem(m=1, epsilon=0.5, delta=0.2, n=3, rewards=sl.Bernoulli())
    assert client.begin(now, "coins of version 0.1.0").problem == before
    assert client.begin(now, "coins of today").problem == now


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Bounded(-1, 3)])
def test_runs_about_rewards_within_bounds_work_over_http(client: Client, rewards: sl.Bounded) -> None:
    problem = sl.Problem(m=1, epsilon=0.25 * (rewards.high - rewards.low), delta=0.2, n=3, rewards=rewards)
    run = client.begin(problem, f"within {rewards!r}", seed=4)
    assert client.run(run.name).problem == problem
    measure = sl.simulated_measure(problem, [rewards.low, rewards.low, rewards.high])
    here = sl.select(measure, problem, seed=4)
    there = sl.drive(run.session(), measure)
    assert there.selected == here.selected == ("arm-2",)
    assert there.n_pulls == here.n_pulls
    assert run.status()["lower_bound"] is None


def test_a_remote_run_is_fed_stopped_and_taken_back(client: Client, request: Any) -> None:
    problem = sl.Problem(m=1, epsilon=0.05, delta=0.1, names=["A", "B"], rewards=sl.Bernoulli())
    run = client.begin(problem, request.node.name, strategy="race")
    here = sl.Session(problem, "race")
    rows: list[dict[str, Any]] = [
        {"arm": "A", "pulls": 40, "successes": 30},
        {"arm": 1, "pulls": 60, "successes": 30},
    ]
    found = run.feed(rows)
    alone = here.feed(["A", "B"], [40, 60], successes=[30, 30])
    assert found["certificate"]["epsilon"] == alone.epsilon
    assert is_same(run.result(), here.result)
    tickets = run.ask(worker="ann")
    run.tell(tickets[0], means=0.0, worker="ann")
    run.withdraw(f"{run.code}-r{tickets.round}-a{tickets[0].arm}", "wrong", by="ann")
    assert run.round()["n_open"] == len(tickets)
    run.stop("enough", by="ann")
    assert run.round()["n_stops"] == 1


def test_fed_rows_that_were_corrected_are_named_over_http(client: Client, request: Any) -> None:
    problem = sl.Problem(m=1, epsilon=0.05, delta=0.1, names=["A", "B"], rewards=sl.Bernoulli())
    run = client.begin(problem, request.node.name, strategy="race")
    for hits in (3000, 2999):
        run.feed([{"arm": "A", "label": "monday", "pulls": 4000, "successes": hits}])
    run.feed([{"arm": "B", "pulls": 4000, "successes": 1000}])
    result = run.result()
    assert result.certificate is not None
    for promise in (result.guarantee, result.certificate.guarantee):
        assert promise is not None
        assert promise.assumptions == (*BOUNDED_REWARDS, *FED, "not-corrected")
        assert promise.assumption.endswith("no fed result was replaced or taken back because of its value")
        assert promise.to_dict()["assumptions"] == list(promise.assumptions)


def test_a_driver_on_another_machine_ends_when_the_run_is_stopped(client: Client, request: Any) -> None:
    problem = sl.Problem(m=1, epsilon=0.01, delta=0.1, variances=[1.0] * 3)
    run = client.begin(problem, request.node.name, strategy="race")
    calls: list[int] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append(arm)
        if len(calls) == 5:
            run.stop("enough")
        return rng.normal(0.0, 1.0, count)

    result = sl.drive(run.session(), measure, pulls_per_call=1000)
    assert result.stop is sl.Stop.PERSON
    assert 5 <= len(calls) < 1000
