"""What `status`, `list`, `report` and `export` say about runs that stopped early or are not complete."""

import io
import itertools
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.ahead import made_up
from rich.console import Console, RenderableType

import shortlist as sl
from shortlist.client.questions import result_from
from shortlist.measure import Summaries
from shortlist.report.model import report_of_run
from shortlist.report.page import page
from shortlist.report.progress import Account
from shortlist.report.result_text import result_text
from shortlist.report.verdict import standing
from shortlist.report.worker_text import why_stopped
from shortlist.server.snapshot import _pace, next_step
from shortlist.session.answers import Answers
from shortlist.session.run_progress import progress_of_log, read_progress
from shortlist.store import Suspended
from shortlist.strategies import strategy_for
from tests.cli.calling import QUESTION, SIMULATED, Calls

CLOSE = SIMULATED.replace("means = [0.0, 1.0, 2.0]", "means = [1.4, 1.5, 2.0]").replace("0.5", "0.2", 1)
PROBLEM = sl.Problem(m=1, epsilon=0.3, delta=0.05, variances=[1.0] * 8)


def noisy(arm: int, count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(arm / 10, 1.0, count)


def resumed(name: str = "main", store: str = "shortlist.db") -> sl.Session:
    return sl.Session.resume(store, name)


def test_a_budget_that_ended_a_run_is_shown_until_somebody_goes_on(call: Calls) -> None:
    why, limited = "its budget of 40 pays for no further pulls", ("run", "lab.toml", "--budget", "40")
    call.write("lab.toml", CLOSE)
    assert call(*limited).status == 3
    n_events = call("status", "lab", "--json").data["n_events"]
    assert call(*limited).status == 3
    assert call("status", "lab", "--json").data["n_events"] == n_events  # it is known already
    assert f"Stopped: {why} To resume: shortlist run lab.toml --name lab" in call("status", "lab").words
    assert (
        call("list", "--json").data[0]["state"] == call("status", "lab", "--json").data["state"] == "stopped"
    )
    report = call("report", "lab")
    assert report.out.startswith("lab: stopped early. ")
    assert f"Why it stopped: {why}" in report.words
    assert "is not complete: 1 of its 3 tickets has no answer yet" in report.words
    assert "Warnings: none." in report.words
    with resumed("lab") as session:
        assert next_step(session.history, 0.0) == why  # it follows "Stopped early"
        session.ask(1, worker="ann")
        assert session.history.suspended is None
        session.release("ann")
    assert call("list", "--json").data[0]["state"] == "open"
    assert "Stopped" not in call("status", "lab").words
    assert call("run", "lab.toml").status == 0
    assert "stopped" not in call("report", "lab").words


def test_a_deadline_that_passed_is_recorded(tmp_path: Path) -> None:
    with sl.Session(PROBLEM, store=str(tmp_path / "a.db")) as session:
        assert sl.drive(session, noisy, deadline=0, progress=False).stop is sl.Stop.DEADLINE
        assert why_stopped(session.history) == "its deadline of 0 s passed"
        sl.drive(session, noisy, progress=False)
        assert why_stopped(session.history) == ""


def test_the_end_of_one_budget_is_no_end_while_others_measure(tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    with sl.Session(PROBLEM, store=store) as session:
        session.ask(2, worker="ann")
        found = sl.drive(session, noisy, budget=0, progress=False)
        assert found.stop is sl.Stop.BUDGET
        assert not any(isinstance(record.event, Suspended) for record in session.records)
        session.release("ann")
        assert sl.drive(session, noisy, budget=0, progress=False).indices.tolist() == []
        assert session.history.is_stopped
        session.suspend("the rig is broken")
        session.ask(2, worker="ann")
        assert session.history.suspended is not None  # a failure is shown until an answer arrives
        assert progress_of_log(session.log).is_suspended


def test_lists_agree_with_decisions_about_stops_and_partial_answers(tmp_path: Path) -> None:
    with closing(sl.open_store(tmp_path / "a.db")) as store:
        for name, budget in (("some", 16), ("none", None)):
            calls = itertools.count()

            def failing(
                arm: int, count: int, rng: np.random.Generator, calls: Iterator[int] = calls
            ) -> object:
                if next(calls) == 14:
                    raise KeyboardInterrupt
                return noisy(arm, count, rng)

            with sl.Session(PROBLEM, store=store, name=name) as session:
                with suppress(KeyboardInterrupt):
                    sl.drive(session, failing, turns=2, retries=0, budget=budget, progress=False)
                fast, slow = read_progress(store, name), progress_of_log(session.log)
            assert fast is not None
            kept = {key: value for key, value in vars(fast).items() if key != "began"}
            assert kept == {key: value for key, value in vars(slow).items() if key != "began"}
            assert fast.is_stopped is (budget is not None)


def test_why_somebody_stopped_a_run_is_shown(call: Calls) -> None:
    call.write("lab.toml", CLOSE)
    call("run", "lab.toml", "--budget", "40")
    with resumed("lab") as session:
        measured = itertools.count()

        def ordered(arm: int, count: int, rng: np.random.Generator) -> np.ndarray:
            if next(measured) == 1:
                with resumed("lab") as other:
                    other.stop("rain", by="ann")
            return noisy(arm, count, rng)

        about = {key: value for key, value in (session.settings or {}).items() if key in {"measure", "file"}}
        assert sl.drive(session, ordered, turns=1, about=about, reproducible=True, progress=False).stop in {
            sl.Stop.PERSON
        }
    assert "Stopped: ann asked all drivers to stop, because: rain" in call("status", "lab").words
    assert call("status", "lab", "--json").data["stopped"] == {"by": "ann", "why": "rain"}
    call("report", "lab", "-o", "lab.html")
    assert "ann asked all drivers to stop, because: rain" in Path("lab.html").read_text()
    assert call("run", "lab.toml").status == 0
    assert "rain" not in call("status", "lab").words


def test_why_somebody_stopped_a_run_by_hand_is_shown(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    call("stop", "trial", "--why", "rain")
    assert "asked all drivers to stop, because: rain" in call("status", "trial").words
    assert "asked all drivers to stop, because: rain" in call("report", "trial").words
    assert call("list", "--json").data[0]["state"] == "open"


def test_reports_and_status_count_rounds_as_tickets_do(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml", "--strategy", "race", "--name", "trial")
    with resumed("trial") as session:
        for label in ("monday", "tuesday"):  # each replaces a round that nobody has begun
            session.feed([0, 1, 2], [10, 10, 10], [0.4, 0.5, 0.6], label=label)
        tickets = session.ask()
        session.tell(tickets[0], means=0.5)
        number, history = session.asked.round, session.history
        assert number > session.result.n_rounds
        report = report_of_run("trial", history, session.records)
    assert standing(report).startswith(f"Round {number} is in progress: ")
    assert f"Round {number}: " in call("status", "trial").words
    assert f"Round {number} is not complete." in page(report)


def test_pulls_of_tickets_that_are_not_complete_are_counted_or_named(call: Calls) -> None:
    calls = itertools.count()

    def failing(arm: int, count: int, rng: np.random.Generator) -> np.ndarray:
        if next(calls) == 14:
            raise ValueError("no")
        return noisy(arm, count, rng)

    with resumed_new() as session, pytest.raises(sl.MeasurementFailed):
        sl.drive(session, failing, turns=2, retries=0, progress=False)
    with resumed() as session:
        history = session.history
        made, partial = history.n_made, history.n_partial
    assert partial
    assert (
        f"{made} pulls made ({partial} of them in tickets that are not complete)"
        in call("status", "main").words
    )
    assert f" {made} " in call("list").out
    (entry,) = call("list", "--json").data
    assert entry["n_pulls"] + entry["n_partial"] == made
    said = f"{partial} pulls of them are recorded, and not counted above"
    assert said in call("report", "main").words
    export = call("export", "main")
    assert f"Left out: {partial} pulls ({partial} of tickets that are not complete)." in export.err
    data = call("export", "main", "--json").data
    assert sum(row["pulls"] for row in data["unused"]) == partial
    assert sum(row["pulls"] for row in data["answers"]) == made - partial


def resumed_new() -> sl.Session:
    return sl.Session(PROBLEM, store="shortlist.db")


def test_tell_says_what_is_certified_so_far(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml", "--strategy", "race", "--name", "trial")
    with resumed("trial") as session:
        for _ in range(2):
            tickets = session.ask()
            session.tell(tickets, means=[0.1, 0.5, 0.9])
        code, tickets = session.code, session.asked
        assert session.certified.guarantee is not None
        assert not session.is_done
    rows = [f"{code}-r{one.round}-a{one.arm},{0.2 + 0.3 * one.arm}" for one in tickets]
    call.write("some.csv", "\n".join(["ticket,mean", rows[0]]))
    assert (
        "Best certified so far: east, far. With probability at least 90 %"
        in call("tell", "trial", "some.csv").words
    )


def test_advice_to_declare_is_given_once() -> None:
    problem = sl.Problem(1, 0.1, 0.1, n=2, rewards=sl.Bernoulli(), items=40)
    session = sl.Session(problem, store=sl.open_store(":memory:"))
    session.ask(worker="ann", lease=1e-9)
    tickets = session.ask(worker="bob")
    session.tell(tickets, [[1.0] * ticket.count for ticket in tickets])
    report = report_of_run("main", session.history, session.records)
    said = " ".join(one.words for one in report.findings)
    assert said.count("declare") == 1


def test_the_time_left_is_from_the_pulls_of_this_process_and_the_usual_cost() -> None:
    session, now = sl.Session(PROBLEM, "level-race"), 0.0
    cap = session.worst_case_pulls or 0
    for _ in range(4):  # earlier, which took no time here
        tickets = session.ask()
        session.tell(tickets, means=[arm / 100 for arm in tickets.arms.tolist()])
    before = session.n_made
    account = Account(session, lambda: now)
    tickets = session.ask()
    session.tell(tickets, means=[arm / 100 for arm in tickets.arms.tolist()])
    assert " left" not in account.frame(session, 200)[1]  # after no time
    now = 10.0
    said = account.frame(session, 200)[1]
    made = session.n_made - before
    usual = strategy_for(session.strategy, PROBLEM).usual_share * cap
    assert session.n_made < usual
    seconds = float(said.split("about ")[1].split(" ")[0]) * (60 if " min left" in said else 1)
    assert seconds <= 1.2 * 10 * (usual - session.n_made) / made + 60


def test_no_time_left_is_said_where_people_measure(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    with resumed("trial") as session:
        session.tell(session.ask()[0], means=0.5)
        assert _pace(session.log)["seconds_left_at_most"] is None


def test_columns_say_of_how_many_scores_a_mean_is(tmp_path: Path, call: Calls) -> None:
    problem = sl.Problem(2, 0.05, 0.1, n=8, rewards=sl.Bernoulli(), items=120)
    table = made_up(8, 120, seed=1)
    store = str(tmp_path / "a.db")
    with sl.Session(problem, store=store) as session:
        session.arrange({"pulls_per_call": 1, "together": 1, "on_failure": "suspend"})
        calls, _ = session.ahead("me")
        order = problem.order(session.seed)
        scores = [table[one.arm, order[one.first_pull : one.first_pull + 1]] for one in calls]
        means = np.array([one[0] for one in scores])
        given = Summaries(calls.counts, means, np.full(len(calls), np.nan), scores=scores)
        session.answer(Answers.of_calls(problem, calls, given))
        arms = session.result.arms
        assert arms.left_out is not None
        assert int(arms.left_out.sum()) == len(calls)
        assert np.isnan(arms.means[arms.in_mean == 0]).all()
        data = session.result.to_dict()
        assert [arm["in_mean"] for arm in data["arms"]] == arms.in_mean.tolist()
    n = len(calls)
    unused = call("export", "main", "--store", store, "--json").data["unused"]
    assert sum(row["pulls"] for row in unused) == n
    assert [row["rewards"] for row in unused] == [[mean] for mean in means.tolist()]
    export = call("export", "main", "--store", store)
    assert export.err == f"Left out: {n} scores ({n} measured ahead). --json has all.\n"
    assert export.out.count("\n") == 1
    found = sl.select(lambda arm, items: [float(table[arm, item]) for item in items], problem)
    assert "in mean" not in printed(result_text(found))
    left_out = np.array([0, 5, 0, 0, 0, 0, 0, 0])
    arms = replace(found.arms, left_out=left_out)
    assert printed(result_text(replace(found, arms=arms))).split("\n")[1].endswith("  pulls  in mean")
    sent = result_from(problem, replace(found, arms=arms).to_dict())
    assert sent.arms.in_mean.tolist() == arms.in_mean.tolist()


def printed(what: RenderableType) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(what)
    return stream.getvalue()


def test_the_time_left_on_shared_items_is_from_the_scores_that_will_probably_be_needed() -> None:
    table = (np.random.default_rng(1).random((6, 400)) < np.linspace(0.2, 0.9, 6)[:, None]).astype(float)
    problem = sl.Problem(1, 0.05, 0.1, n=6, rewards=sl.Bernoulli(), items=400)
    now, seen = 0.0, []
    session = sl.Session(problem)
    account = Account(session, lambda: now)

    def look(one: sl.Session) -> None:
        nonlocal now
        now = float(one.n_made)  # a second for each score
        share, words = account.frame(one, 200)
        seen.append((one.n_made, share, words))

    result = sl.drive(session, lambda arm, items: table[arm, items].tolist(), progress=look, turns=1)
    assert result.n_pulls < problem.n_cells / 2
    for made, share, words in seen:
        if made > result.n_pulls / 2 and " left" in words:
            number, unit = words.split("about ")[1].split(" ")[:2]
            assert float(number) * (60 if unit == "min" else 1) < 2 * (result.n_pulls - made) + 60
            assert (share or 0) > 0.4  # not the share of the table
    session = sl.Session(problem)
    assert "left" not in Account(session).frame(session)[1]
