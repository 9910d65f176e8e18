"""Scores on shared items that are measured before they are asked for."""

import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from benchmarks.ahead import VirtualWorkers, made_up

import shortlist as sl
from shortlist.measure import Summaries
from shortlist.session.answer_input import Answers
from shortlist.tickets import Tickets

TABLE = made_up(8, 120, seed=1)
PROBLEM = sl.Problem(2, 0.05, 0.1, n=8, rewards=sl.Bernoulli(), items=120)


def look_up(arm: int, items: list[int]) -> list[float]:
    return [float(TABLE[arm, item]) for item in items]


def test_workers_on_a_virtual_clock_measure_ahead_little_for_nothing_and_with_the_same_answer() -> None:
    table, problem, rng = made_up(8, 120, seed=3), PROBLEM.changed(m=1), np.random.default_rng(0)

    def scores(arm: int, items: list[int]) -> list[float]:
        return [float(table[arm, item]) for item in items]

    workers = VirtualWorkers(8, lambda: float(rng.lognormal(0, 1)))
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
    order = PROBLEM.items.order(session.seed)  # type: ignore[union-attr]
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
    with ThreadPoolExecutor(4) as threads:
        result = sl.select(look_up, PROBLEM, budget=300, executor=threads)
    assert result.n_pulls <= 300
    assert result.n_ahead == 0


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
