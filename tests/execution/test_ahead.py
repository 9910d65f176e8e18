"""Scores on shared items that are measured before they are asked for."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.ahead import VirtualWorkers, made_up
from click.testing import CliRunner

import shortlist as sl
from shortlist.cli.copy import command as copy
from shortlist.cli.run_summaries import run_summaries
from shortlist.client.questions import question_dict
from shortlist.measure import Summaries
from shortlist.report.model import report_of_run
from shortlist.report.page import page
from shortlist.report.workload import workload
from shortlist.server.app import create_app
from shortlist.session.answers import Answers
from shortlist.session.call_plan import calls_between
from shortlist.store import Answered, MemoryStore, Narrowed, open_store
from shortlist.tickets import Tickets
from tests.server.calling import Caller

pytestmark = pytest.mark.slow

TABLE = made_up(8, 120, seed=1)
PROBLEM = sl.Problem(2, 0.05, 0.1, n=8, rewards=sl.Bernoulli(), items=120)


def look_up(arm: int, items: list[int]) -> list[float]:
    return [float(TABLE[arm, item]) for item in items]


def test_workers_on_a_virtual_clock_measure_ahead_little_for_nothing_and_with_the_same_answer() -> None:
    table, problem, rng = made_up(8, 120, seed=3), PROBLEM.changed(m=1), np.random.default_rng(0)

    def scores(arm: int, items: list[int]) -> list[float]:
        return [float(table[arm, item]) for item in items]

    workers = VirtualWorkers(8, lambda *_: float(rng.lognormal(0, 1)))
    found = sl.select(scores, problem, executor=workers, pulls_per_call=1, turns=1)
    workers.shutdown()
    alone = sl.select(scores, problem, pulls_per_call=1, turns=1)
    assert found.selected == alone.selected
    assert found.n_pulls - found.n_ahead == alone.n_pulls
    assert found.n_ahead <= 0.06 * found.n_pulls + 8
    assert found.n_rounds == alone.n_rounds
    assert workers.busy / (8 * workers.now) > 0.6


def ahead_calls(session: sl.Session) -> Tickets:
    session.arrange({"pulls_per_call": 1, "together": 1, "on_failure": "suspend"})
    calls, shares = session.ahead("me")
    assert (np.diff(shares) >= 0).all()
    return calls


def answers_to(calls: Tickets, session: sl.Session) -> Answers:
    order = PROBLEM.order(session.seed)
    scores = [TABLE[call.arm, order[call.first_pull : call.first_pull + call.count]] for call in calls]
    means = np.array([one.mean() for one in scores])
    given = Summaries(calls.counts, means, np.full(len(calls), np.nan), scores=scores)
    return Answers.of_calls(session.problem, calls, given)


def test_scores_ahead_are_kept_counted_and_used_when_they_are_needed(tmp_path: Path) -> None:
    with sl.Session(PROBLEM, store=tmp_path / "a.db") as session:
        calls = ahead_calls(session)
        assert (calls.first_pulls >= 8).all()  # the first round asks for the first eight items of each arm
        session.answer(answers_to(calls, session))
        assert session.n_ahead == session.n_made == len(calls)
        session.answer(answers_to(calls, session))  # again: nothing changes
        assert session.n_ahead == len(calls)
        assert not len(session.ahead("me")[0]) or not {*session.ahead("me")[0]} & {*calls}
    result = sl.select(look_up, PROBLEM, store=tmp_path / "a.db", pulls_per_call=1, turns=1)
    alone = sl.select(look_up, PROBLEM, pulls_per_call=1, turns=1)
    assert result.selected == alone.selected
    assert result.n_pulls - result.n_ahead == alone.n_pulls
    assert result.cost == result.n_pulls
    assert result.n_ahead < len(calls) / 4  # the others were needed


def test_a_smaller_epsilon_after_scores_were_measured_ahead_is_named(tmp_path: Path) -> None:
    wide = PROBLEM.changed(epsilon=0.1)
    for calls, is_named in ((0, False), (3, True)):
        path = tmp_path / f"{calls}.db"
        with sl.Session(wide, store=path) as session:
            session.answer(answers_to(ahead_calls(session)[:calls], session))
        with sl.Session(PROBLEM, store=path) as session:
            assert session.history.is_narrowed_late == is_named
            history = session.history.copy()
            history.ahead.clear()
            history.take([Narrowed(0.04)])
            assert history.is_narrowed_late == is_named


def test_a_round_that_was_measured_ahead_is_decided_at_once() -> None:
    session, asked = sl.Session(PROBLEM), []
    calls = ahead_calls(session)
    session.answer(answers_to(calls, session))
    while len(tickets := session.ask()):
        asked.append(tickets.round)
        session.tell(tickets, [look_up(ticket.arm, session.items_of(ticket)) for ticket in tickets])
    assert session.is_done
    assert session.result.selected == sl.select(look_up, PROBLEM).selected


def test_nothing_is_measured_ahead_while_others_work_or_with_a_budget(tmp_path: Path) -> None:
    with sl.Session(PROBLEM, store=tmp_path / "a.db") as session:
        ahead_calls(session)
        session.ask(1, worker="ann")
        assert not len(session.ahead("me")[0])
        assert len(session.ahead("ann")[0])
    scores, _ = counting()
    result = sl.select(scores, PROBLEM, budget=300, concurrency=8, pulls_per_call=1, turns=1)
    assert result.n_pulls <= 300
    assert result.n_ahead == 0


def counting(fails: Callable[[int, int], BaseException | None] = lambda *_: None) -> tuple[Any, list[Any]]:
    """A measurement that notes its calls, some of which fail at first."""
    made: list[Any] = []
    lock = threading.Lock()

    def scores(arm: int, items: list[int]) -> list[float]:
        with lock:
            made.extend((arm, item) for item in items)
            n_tries = made.count((arm, items[0]))
        time.sleep(0.001 * (1 + (arm * items[0]) % 5))
        if (error := fails(n_tries, items[0])) is not None:
            raise error
        return look_up(arm, items)

    return scores, made


def test_every_call_is_counted_also_those_that_run_when_the_run_ends() -> None:
    scores, made = counting()
    result = sl.select(scores, PROBLEM, concurrency=8, pulls_per_call=1, turns=1)
    assert result.n_pulls == len(made) == len(set(made))
    assert result.cost == len(made)


def test_reports_and_workers_of_a_run_with_scores_measured_ahead(tmp_path: Path) -> None:
    scores, made = counting()
    sl.select(scores, PROBLEM, store=tmp_path / "a.db", concurrency=8, pulls_per_call=1, turns=1)
    with sl.Session.resume(tmp_path / "a.db") as session:
        (work,) = workload(session.history, session.records)
        assert work.n_pulls == len(made)
        assert "<html" in page(report_of_run("main", session.history, session.records))


def test_another_score_for_a_cell_that_was_measured_ahead_is_a_conflict() -> None:
    session = sl.Session(PROBLEM)
    calls = ahead_calls(session)[:1]
    session.answer(answers_to(calls, session))
    other = answers_to(calls, session)
    assert other.scores is not None
    with pytest.warns(sl.errors.Contradiction):
        session.answer(replace(other, scores=[1 - other.scores[0]], means=1 - other.means))
    assert len(session.conflicts) == 1
    assert session.n_ahead == len(calls)


def test_calls_that_failed_ahead_count_as_tried_again() -> None:
    def fails(n_tries: int, item: int) -> BaseException | None:
        return ValueError("no") if n_tries == 1 and item % 7 == 0 else None

    how: dict[str, Any] = {"pulls_per_call": 1, "turns": 1, "retries": sl.Retries(3, first=0.001)}
    found = sl.select(counting(fails)[0], PROBLEM, concurrency=8, **how)
    alone = sl.select(counting(fails)[0], PROBLEM, **how)
    assert found.selected == alone.selected
    assert found.n_reissued == alone.n_reissued > 0


def test_a_call_ahead_that_asks_all_to_wait_is_obeyed() -> None:
    session = sl.Session(PROBLEM)
    refused: list[float] = []
    early: list[float] = []
    positions = {int(item): place for place, item in enumerate(PROBLEM.order())}

    def scores(arm: int, items: list[int]) -> list[float]:
        now = time.monotonic()
        if refused and now < refused[0] + 0.4:
            early.append(now - refused[0])
        if not refused and positions[items[0]] >= session.history.reached[arm]:
            refused.append(now)
            raise sl.RetryLater(0.5, all_calls=True)
        time.sleep(0.002)
        return look_up(arm, items)

    sl.drive(session, scores, concurrency=8, pulls_per_call=1, turns=1)
    assert refused
    assert len(early) <= 24  # those that had been submitted
    assert session.is_done


KILLED = """
import sys, time, random
import numpy as np
import shortlist as sl
from benchmarks.ahead import made_up

table, paid = made_up(8, 120, seed=1), open(sys.argv[2], "a", buffering=1)
problem = sl.Problem(2, 0.05, 0.1, n=8, rewards=sl.Bernoulli(), items=120)

def measure(arm, items):
    paid.write("".join(f"{arm}/{item} " for item in items))
    paid.flush()
    time.sleep(0.02 * random.lognormvariate(0, 1))
    return [float(table[arm, item]) for item in items]

print(sl.select(measure, problem, store=sys.argv[1], concurrency=4, pulls_per_call=1, turns=1).selected)
"""


def test_after_kills_no_score_is_paid_twice_but_those_being_measured(tmp_path: Path) -> None:
    program, store, paid = tmp_path / "run.py", tmp_path / "a.db", tmp_path / "paid.txt"
    program.write_text(KILLED, encoding="utf-8")
    n_kills, out = 0, ""
    while not out:
        process = subprocess.Popen(
            [sys.executable, str(program), str(store), str(paid)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        try:
            out, _ = process.communicate(timeout=2.0 if n_kills < 3 else 120)
            assert process.returncode == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            n_kills += 1
    assert out.strip() == str(sl.select(look_up, PROBLEM, pulls_per_call=1, turns=1).selected)
    cells = Counter(paid.read_text(encoding="utf-8").split())
    assert sum(cells.values()) - len(cells) <= 2 * 4 * n_kills


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_threads_give_the_answer_of_one(goal: str) -> None:
    problem = PROBLEM.changed(goal=goal)
    with ThreadPoolExecutor(4) as threads:
        found = sl.select(look_up, problem, executor=threads)
    alone = sl.select(look_up, problem)
    assert found.selected == alone.selected
    assert found.n_pulls - found.n_ahead == alone.n_pulls


def test_rows_that_are_known_are_never_measured() -> None:
    known = {arm: TABLE[arm].tolist() for arm in (int(TABLE.mean(axis=1).argmax()), 0)}
    problem, called = PROBLEM.changed(known=known), set()

    def measure(arm: int, items: list[int]) -> list[float]:
        called.add(arm)
        time.sleep(0.0005)
        return look_up(arm, items)

    found = sl.select(measure, problem, concurrency=8, pulls_per_call=1)
    assert found.selected == sl.select(look_up, problem).selected
    assert not called & known.keys()
    assert found.n_pulls + found.n_saved == problem.n_cells


WRONG = [  # first pulls and counts of scores that no run asks for; its calls are [8, 9), [9, 10) and so on
    ([8], [0]),
    ([8, 9], [2, 1]),
    ([8, 9], [1, 3]),
    ([9], [3]),
    ([118], [8]),
    ([120], [1]),
    ([2**62], [1]),
    ([-1], [1]),
    ([8, 8], [1, 1]),
]


def wrong_answers(session: sl.Session, firsts: list[int], counts: list[int]) -> Answers:
    calls = Tickets(
        session.problem, 0, np.zeros(len(firsts), dtype=np.int64), np.array(counts), np.array(firsts)
    )
    scores = [np.ones(count) for count in counts]
    given = Summaries(calls.counts, np.ones(len(firsts)), np.full(len(firsts), np.nan), scores=scores)
    return Answers.of_calls(session.problem, calls, given)


@pytest.mark.parametrize(("firsts", "counts"), WRONG)
def test_scores_ahead_must_answer_whole_calls_that_a_later_round_may_make(
    firsts: list[int], counts: list[int]
) -> None:
    session = sl.Session(PROBLEM)
    ahead_calls(session)
    with pytest.raises((sl.errors.NotAsked, sl.MeasurementFailed)):
        session.answer(wrong_answers(session, firsts, counts))
    assert session.n_made == 0
    assert session.records[-1].event.__class__.__name__ == "Arranged"


@pytest.mark.parametrize(
    ("firsts", "counts"), [one for one in WRONG if min(one[0]) >= 0 and max(one[0]) < 2**53]
)
def test_scores_ahead_over_http_must_answer_whole_calls(firsts: list[int], counts: list[int]) -> None:
    given = {"worker": "ann", "round": 0, "arms": [0] * len(firsts), "first_pulls": firsts, "pulls": counts}
    given |= {"means": [1.0] * len(firsts), "variances": [None] * len(firsts)}
    with Caller(create_app(MemoryStore())) as client:
        client.post("/runs", json={"name": "r", "question": question_dict(PROBLEM)}).raise_for_status()
        settings = {"pulls_per_call": 1, "together": 1, "on_failure": "suspend"}
        client.post("/runs/r/arrange", json={"settings": settings}).raise_for_status()
        reply = client.post("/runs/r/answer", json=given | {"scores": [[1.0] * count for count in counts]})
        assert 400 <= reply.status_code < 500
        assert client.get("/runs/r.json").json()["n_pulls"] == 0


def test_scores_ahead_are_refused_before_anybody_has_said_how_tickets_are_split() -> None:
    session = sl.Session(PROBLEM)
    with pytest.raises(sl.errors.NotAsked, match="never makes a call"):
        session.answer(wrong_answers(session, [8], [1]))


@pytest.mark.parametrize("is_stale", [False, True])
def test_scores_of_a_round_and_scores_ahead_of_it_are_answered_separately(is_stale: bool) -> None:
    """Else the first ones may close the round, and the others would belong to no round."""
    session = sl.Session(PROBLEM)
    ahead_calls(session)
    if is_stale:
        tickets = session.ask()
        session.tell(tickets, [look_up(ticket.arm, session.items_of(ticket)) for ticket in tickets])
    asked, settings = session.asked, {"pulls_per_call": 1, "turns": 1}
    ends = asked.first_pulls + asked.counts + 1
    calls = calls_between(PROBLEM, asked.arms, asked.first_pulls, ends, settings)
    before = len(session.records)
    with pytest.raises(sl.errors.NotAsked, match="Answer them separately"):
        session.answer(answers_to(calls, session))
    assert len(session.records) == before


def test_scores_ahead_of_an_arm_whose_row_is_known_are_refused() -> None:
    session = sl.Session(PROBLEM.changed(known={0: TABLE[0].tolist()}))
    ahead_calls(session)
    with pytest.raises(sl.errors.NotAsked, match="never makes a call"):
        session.answer(wrong_answers(session, [8], [1]))


def test_the_mean_of_an_answer_with_scores_is_that_of_its_scores() -> None:
    session = sl.Session(PROBLEM)
    calls = ahead_calls(session).take(slice(0, 4))
    right = answers_to(calls, session)
    given = Summaries(calls.counts, 1 - right.means, np.full(len(calls), np.nan), scores=right.scores)
    assert Answers.of_calls(PROBLEM, calls, given).means.tolist() == right.means.tolist()


def test_blocks_that_pass_are_not_measured_ahead() -> None:
    problem = sl.Problem(1, 0.1, 0.1, n=3, rewards=sl.Gaussian(), items=sl.Blocks(lockstep=True))
    session = sl.Session(problem)
    session.arrange({"pulls_per_call": None, "together": 3, "turns": 8, "on_failure": "suspend"})
    assert not len(session.ahead("me")[0])
    with pytest.raises(sl.errors.NotAsked):
        session.answer(wrong_answers(session, [int(session.asked.counts[0])], [1]))


def test_a_run_whose_events_contradict_each_other_hides_no_other_run(tmp_path: Path) -> None:
    """Its events are copied all the same, and the copy is said to be unreadable."""
    store = open_store(tmp_path / "runs.db")
    for name in ("bad", "good"):
        ahead_calls(sl.Session(PROBLEM, store=store, name=name))
    last = len(list(store.read("bad")))
    of_no_arm = Answered(0, np.array([99]), np.array([9]), np.array([1]), np.ones(1), scores=np.ones(1))
    store.append("bad", last, lambda *_: [of_no_arm])
    with pytest.raises(sl.errors.CorruptLog, match="does not fit those before it"):
        sl.Session.resume(store, "bad")
    found = {one.name: one.trouble for one in run_summaries(store)}
    assert "does not fit" in found["bad"]
    assert found["good"] == ""
    with Caller(create_app(store)) as client:
        listed = {
            one["run"]: one["state"] for one in client.get("/index.json").raise_for_status().json()["runs"]
        }
    assert listed == {"bad": "damaged", "good": "open"}
    store.close()
    done = CliRunner().invoke(copy, [str(tmp_path / "runs.db"), str(tmp_path / "copy.db")])
    assert done.exit_code == 4
    assert "bad: 3 events copied and compared" in done.output
    assert "Error: bad is there, but: the log of run 'bad' has an event" in done.output
    assert "good: 2 events copied and compared" in done.output
