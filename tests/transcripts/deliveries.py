"""Transcripts of deliveries: answers in parts, late, twice, fed, over HTTP, after a crash."""

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.ahead import VirtualWorkers
from click.testing import CliRunner

import shortlist as sl
from shortlist import cli
from shortlist.server.app import create_app
from tests.server.calling import Caller
from tests.transcripts.transcript import (
    BLOCKS,
    BOUNDED,
    ITEMS,
    KNOWN,
    NAMES,
    TRANSCRIPTS,
    UNKNOWN,
    exact,
    question,
    result_of,
    rewards,
    scores,
)

COINS = BOUNDED["coins"]
RACE = KNOWN["equal variances"]
COSTS = question(variances=[1.0] * 6, costs=[0.1, 0.3, 0.7, 1.1, 0.1, 1.3])


def delivery(run: Callable[[], Any]) -> Callable[[], Any]:
    """Add a transcript under the name of its function."""
    TRANSCRIPTS[f"delivery: {run.__name__.replace('_', ' ')}"] = run
    return run


def answers(session: sl.Session, tickets: Any) -> list[list[float]]:
    """Return the rewards of tickets."""
    if session.problem.items is not None:
        return [scores(session.problem, one.arm, session.items_of(one)) for one in tickets]
    return [rewards(session.problem, one.arm, one.first_pull, one.count).tolist() for one in tickets]


def finish(session: sl.Session) -> Any:
    """Answer all that is asked, and return the result."""
    while tickets := session.ask():
        session.tell(tickets, answers(session, tickets))
    return result_of(session.result)


def function(problem: sl.Problem) -> Any:
    """Return the function that measures a problem; streams count their own pulls, arm by arm."""
    if problem.items is not None:
        return lambda arm, items: scores(problem, arm, items)
    return lambda arm, count, rng: rng.normal(0.2 * NAMES.index(problem.name(arm)), 1.0, count)


def coins(problem: sl.Problem) -> Any:
    """Return a function of 0/1 rewards that follow from the seeds of calls."""
    return lambda arm, count, rng: (rng.random(count) < 0.1 + 0.1 * NAMES.index(problem.name(arm))).astype(
        float
    )


# --- tickets ------------------------------------------------------------------------------------------


@delivery
def one_ticket_at_a_time() -> Any:
    session = sl.Session(RACE, "race", seed=1)
    while tickets := session.ask():
        for ticket in tickets:
            session.tell(ticket, answers(session, [ticket])[0])
    return result_of(session.result)


@delivery
def in_random_order() -> Any:
    session, rng = sl.Session(RACE, "race", seed=1), np.random.default_rng(1)
    while tickets := session.ask():
        some = [tickets[place] for place in rng.permutation(len(tickets))[: 1 + rng.integers(len(tickets))]]
        session.tell(some, answers(session, some))
    return result_of(session.result)


@delivery
def means_and_variances() -> Any:
    session = sl.Session(UNKNOWN["few"], "t-cut-race", seed=1)
    while tickets := session.ask():
        given = [np.array(one) for one in answers(session, tickets)]
        spreads = [float(one.var(ddof=1)) if len(one) > 1 else 0.0 for one in given]
        session.tell(tickets, means=[float(one.mean()) for one in given], sample_variances=spreads)
    return result_of(session.result)


@delivery
def summaries() -> Any:
    session = sl.Session(RACE, "wnelim", seed=1)
    while tickets := session.ask():
        given = answers(session, tickets)
        session.tell(tickets, [sl.Summary(len(one), float(np.mean(one))) for one in given])
    return result_of(session.result)


@delivery
def three_workers_with_leases() -> Any:
    session, shares = sl.Session(ITEMS["coins"], seed=1), []
    while not session.is_done:
        for worker in ("ann", "bob", "cat"):
            tickets = session.ask(4, worker=worker)
            shares.append([worker, [ticket.name for ticket in tickets]])
            if tickets:
                session.tell(tickets, answers(session, tickets), worker=worker)
    return [shares[:30], result_of(session.result)]


@delivery
def an_expired_lease() -> Any:
    session = sl.Session(RACE, "wnelim", seed=1)
    late = session.ask(3, worker="ann", lease=0.01)
    time.sleep(0.05)
    again = session.ask(worker="bob")
    session.tell(again, answers(session, again), worker="bob")
    session.tell(late, answers(session, late), worker="ann")
    return [[one.name for one in late], [one.name for one in again], finish(session)]


@delivery
def the_same_answer_twice() -> Any:
    session = sl.Session(COINS, "race", seed=1)
    tickets = session.ask()
    for _ in range(2):
        session.tell(tickets[:2], answers(session, tickets[:2]))
    return finish(session)


@delivery
def another_answer_to_the_same_ticket() -> Any:
    session = sl.Session(RACE, "wnelim", seed=1)
    ticket = session.ask()[0]
    given = answers(session, [ticket])[0]
    session.tell(ticket, given, worker="ann")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        session.tell(ticket, [one + 1 for one in given], worker="bob")
    return [[str(one.message) for one in said], finish(session)]


@delivery
def an_answer_withdrawn() -> Any:
    session = sl.Session(RACE, "race", seed=1)
    ticket = session.ask()[1]
    session.tell(ticket, [9.0] * ticket.count)
    session.withdraw(ticket.round, ticket.arm, "the wrong bottle", by="ann")
    return finish(session)


@delivery
def wrong_answers() -> Any:
    session, found = sl.Session(COINS, "race", seed=1), []
    ticket = session.ask()[0]
    for wrong in ([], [2.0] * ticket.count, [float("nan")] * ticket.count, ["1"] * ticket.count, None, [0.5]):
        try:
            session.tell(ticket, wrong)
        except sl.ShortlistError as error:
            found.append([type(error).__name__, str(error)])
    return [found, finish(session)]


@delivery
def without_reissue() -> Any:
    session = sl.Session(RACE, "wnelim", seed=1, reissue=False)
    held = session.ask(2, worker="ann", lease=0.01)
    time.sleep(0.05)
    others = session.ask(worker="bob")
    session.tell(others, answers(session, others), worker="bob")
    session.tell(held, answers(session, held), worker="ann")
    return [[one.name for one in others], finish(session)]


# --- fed results --------------------------------------------------------------------------------------


def fed(session: sl.Session, day: int) -> None:
    rows = [(arm, 400 + 10 * day, round((400 + 10 * day) * (0.1 + 0.05 * arm)) + day) for arm in range(6)]
    arms, counts, successes = map(list, zip(*rows, strict=True))
    session.feed(arms, counts, successes=successes, label=f"day {day}")


@delivery
def days_that_are_fed() -> Any:
    session, found = sl.Session(COINS.changed(epsilon=0.02), "race", seed=1), []
    for day in range(12):
        fed(session, day)
        fed(session, day)
        found.append(exact(session.certified.to_dict()))
    return [found, result_of(session.result)]


@delivery
def fed_results_corrected_and_taken_back() -> Any:
    session = sl.Session(COINS.changed(epsilon=0.02), "race", seed=1)
    for day in range(4):
        fed(session, day)
    session.feed(["ash"], [410], successes=[77], label="day 1")
    session.withdraw_rows("day 2", "a broken counter", by="ann")
    return [exact(session.certified.to_dict()), result_of(session.result)]


@delivery
def fed_while_tickets_are_out() -> Any:
    session = sl.Session(COINS, "race", seed=1)
    tickets = session.ask()
    session.tell(tickets[:3], answers(session, tickets[:3]))
    fed(session, 3)
    before = exact(session.certified.to_dict())
    return [before, finish(session)]


@delivery
def blocks_that_are_fed() -> Any:
    session = sl.Session(COINS.changed(epsilon=0.05), "block-race", seed=1)
    found = []
    for day in range(6):
        rates = 0.1 + 0.05 * np.arange(6) + 0.2 * (day % 2)
        hits = np.round(rates * 900).astype(int).tolist()
        session.feed([*range(6)], [900] * 6, successes=hits, block=f"day {day}", label=f"day {day}")
        found.append(exact(session.certified.to_dict()))
    return found


@delivery
def results_that_are_certified() -> Any:
    rng = np.random.default_rng(4)
    streams = sl.certify(COINS, counts=[900] * 6, successes=[90, 120, 200, 310, 300, 330])
    gaussian = sl.certify(RACE, counts=[100] * 6, means=[0.1, 0.2, 0.3, 0.6, 0.7, 1.4])
    graded = sl.certify(BOUNDED["graded"], [300] * 6, [0.0, 0.2, 0.4, 1.6, 1.7, 1.8], [0.1] * 6)
    table = np.full((10, 300), np.nan)
    table[:, ITEMS["coins"].order(7)[:120]] = rng.random((10, 120)) < np.linspace(0.2, 0.9, 10)[:, None]
    items = sl.certify(ITEMS["coins"], scores=table, seed=7)
    blocks = sl.certify(BLOCKS["gaussian"], scores=rng.normal(size=(6, 60)) * 0.3 + np.arange(6)[:, None] / 3)
    return [exact(one.to_dict()) for one in (streams, gaussian, graded, items, blocks)]


# --- drivers ------------------------------------------------------------------------------------------

WAYS: dict[str, dict[str, Any]] = {
    "alone": {},
    "one call per ticket": {"turns": 1},
    "small calls": {"pulls_per_call": 3},
    "four at once": {"concurrency": 4, "pulls_per_call": 2},
}


def _add_ways() -> None:
    problems = {
        "known": RACE,
        "unknown": UNKNOWN["few"],
        "items": ITEMS["coins"],
        "blocks": BLOCKS["gaussian"],
    }
    problems |= {"lockstep": BLOCKS["lockstep"]}
    for title, problem in problems.items():
        for way, how in WAYS.items():

            def run(problem: sl.Problem = problem, how: dict[str, Any] = how) -> Any:
                found = result_of(sl.select(function(problem), problem, seed=3, **how))
                if "concurrency" in how and problem.items is not None:  # what is measured ahead varies
                    return [found["selected"], found["certified_epsilon"], found["certificate"]]
                return found

            TRANSCRIPTS[f"delivery: select: {title}: {way}"] = run


_add_ways()


@delivery
def vectorised() -> Any:
    def means(arms: Any, counts: Any, rng: Any) -> Any:
        return 0.2 * arms + rng.normal(size=len(arms)) / np.sqrt(counts)

    def table(arms: Any, items: Any) -> Any:
        return np.array([scores(ITEMS["coins"], int(arm), items) for arm in arms])

    many = sl.Problem(m=3, epsilon=0.5, delta=0.1, n=300, rewards=sl.SubGaussian(np.full(300, 1.0)))
    found = [sl.select(sl.vectorised(means, block=block), many, "race", seed=3) for block in (None, 64)]
    return [result_of(one) for one in (*found, sl.select(sl.vectorised(table), ITEMS["coins"], seed=3))]  # type: ignore[arg-type]


@delivery
def measured_ahead_on_a_virtual_clock() -> Any:
    rng, workers = np.random.default_rng(0), None
    workers = VirtualWorkers(8, lambda *_: float(rng.lognormal(0, 1)))
    problem = ITEMS["coins"]
    found = sl.select(function(problem), problem, seed=3, executor=workers, pulls_per_call=1, turns=1)
    workers.shutdown()
    return [found.selected, exact(found.certified_epsilon), found.n_pulls - found.n_ahead]


@delivery
def simulated_arms() -> Any:
    found = []
    for problem, means in (
        (RACE, np.arange(6) / 5),
        (COINS, np.arange(6) / 10),
        (UNKNOWN["few"], np.arange(6) / 5),
    ):
        truth = problem if problem.knows_variances else problem.with_variances([1.0] * 6)
        measure = sl.simulated_measure(truth, means, tells_spread=not problem.knows_variances)
        found.append(result_of(sl.select(measure, problem, seed=3)))
    return found


@delivery
def failures_that_are_scored() -> Any:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        drawn = coins(COINS)(arm, count, rng)
        if rng.random() < 0.1:
            raise ValueError("no answer")
        return drawn

    how = {"on_failure": 0.0, "pulls_per_call": 1, "retries": 0}
    return result_of(sl.select(measure, COINS, "race", seed=3, **how))  # type: ignore[arg-type]


@delivery
def a_smaller_epsilon_later() -> Any:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in (0.5, 0.25, 0.1):
            for problem in (
                RACE,
                ITEMS["coins"].changed(epsilon=0.2),
                BLOCKS["gaussian"].changed(epsilon=0.3),
            ):
                asked = problem.changed(epsilon=min(problem.epsilon, epsilon * 2 * problem.epsilon))
                name = f"{problem.items!r}".replace(" ", "")
                how: dict[str, Any] = {"strategy": "race"} if problem.items is None else {}
                store = Path(folder) / "runs.db"
                found.append(
                    result_of(sl.select(function(problem), asked, seed=3, store=store, name=name, **how))
                )
    return found


def in_portions(problem: sl.Problem, budgets: list[float], **how: Any) -> Any:
    """Return the results of a stored run that is stopped by each budget in turn, and then ends."""
    measure = function(problem) if not problem.is_binary or problem.items is not None else coins(problem)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for budget in [*budgets, None]:
            one = sl.select(measure, problem, seed=3, store=Path(folder) / "runs.db", budget=budget, **how)
            found.append(result_of(one))
    return found


@delivery
def budgets_and_costs() -> Any:
    return in_portions(COSTS, [3.3, 17.7, 40.1], strategy="race", pulls_per_call=2)


@delivery
def budgets_on_items() -> Any:
    return in_portions(ITEMS["coins"], [100, 333, 700])


@delivery
def budgets_in_blocks() -> Any:
    return in_portions(BLOCKS["lockstep"], [25, 61])


@delivery
def budgets_of_coins() -> Any:
    return in_portions(COINS, [50, 200], strategy="race")


class Killed(BaseException):
    """Stands for the end of a process: nothing catches it."""


@delivery
def killed_at_ten_points() -> Any:
    found = []
    for problem in (RACE, ITEMS["coins"].changed(epsilon=0.2)):
        for last in (1, 2, 5, 9, 14, 20, 27, 40, 60, 90):
            n_calls, whole = 0, function(problem)

            def measure(*call: Any, last: int = last, whole: Any = whole) -> Any:
                nonlocal n_calls
                n_calls += 1
                if n_calls == last:
                    raise Killed
                return whole(*call)

            with tempfile.TemporaryDirectory() as folder:
                store = Path(folder) / "runs.db"
                with suppress(Killed):
                    sl.select(measure, problem, seed=3, store=store, turns=1)
                found.append(result_of(sl.select(whole, problem, seed=3, store=store)))
    assert all(one == found[0] for one in found[:10])
    assert all(one == found[10] for one in found[10:])
    return [found[0], found[10]]


@delivery
def two_processes_at_one_store() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        one, other = (sl.Session(RACE, "race", seed=1, store=store) for _ in range(2))
        while not one.is_done:
            for session, worker in ((one, "ann"), (other, "bob")):
                tickets = session.ask(2, worker=worker)
                if tickets:
                    session.tell(tickets, answers(session, tickets), worker=worker)
            one.refresh()
        other.refresh()
        found = [result_of(one.result), result_of(other.result)]
        one.close()
        other.close()
    assert found[0] == found[1]
    return found[0]


@delivery
def threads_that_tell_at_once() -> Any:
    session = sl.Session(RACE, "race", seed=1)
    with ThreadPoolExecutor(4) as threads:
        while tickets := session.ask():
            given = answers(session, tickets)
            list(threads.map(session.tell, tickets, given))
    return result_of(session.result)


# --- other doors --------------------------------------------------------------------------------------


@delivery
def over_http() -> Any:
    found: list[Any] = []
    asked = {"m": 1, "epsilon": 0.5, "delta": 0.1, "names": NAMES[:6], "variances": [1.0] * 6}
    with Caller(create_app(sl.open_store(":memory:"))) as client:
        client.post(
            "/runs", json={"name": "r", "question": asked, "seed": 3, "strategy": "race"}
        ).raise_for_status()
        while True:
            tickets = client.post("/runs/r/ask", json={"worker": "ann", "limit": 4}).json()["tickets"]
            if not tickets:
                break
            found.append([[one["name"], one["pulls"], one["seed"]] for one in tickets])
            given = [
                {
                    "ticket": one["ticket"],
                    "mean": float(np.random.default_rng(one["seed"]).normal(one["arm"] / 5)),
                }
                for one in tickets
            ]
            client.post("/runs/r/tell", json={"worker": "ann", "answers": given}).raise_for_status()
        result = client.get("/runs/r/result.json").json()
    return [found, exact(result)]


@delivery
def plans_and_bounds() -> Any:
    problems = (*KNOWN.values(), *BOUNDED.values(), *UNKNOWN.values(), *ITEMS.values(), *BLOCKS.values())
    bounds = [sl.lower_bound(problem) for problem in (*KNOWN.values(), *UNKNOWN.values())]
    return [exact([sl.plan(problem).to_dict() for problem in problems]), exact(bounds)]


@delivery
def simulations() -> Any:
    found = []
    for problem in (RACE, COINS, UNKNOWN["few"]):
        how: dict[str, Any] = {} if problem.knows_variances else {"variances": [1.0] * 6}
        one = sl.simulate(problem, np.arange(6) / 10, replications=20, seed=3, **how)
        found.append([one.pulls, one.selected, one.errors])
    table = np.array([scores(ITEMS["coins"], arm, [*range(300)]) for arm in range(10)])
    one = sl.simulate(ITEMS["coins"], table, replications=5, seed=3)
    return exact([*found, [one.pulls, one.selected, one.errors]])


@delivery
def on_the_command_line() -> Any:
    examples = Path(__file__).parents[2] / "examples"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for file in ("drilling", "ab-test", "best-model", "policies"):
            words = ["run", str(examples / f"{file}.toml"), "--store", f"{folder}/runs.db", "--json"]
            done = CliRunner().invoke(cli.shortlist, words)
            data = json.loads(done.stdout)
            found.append(
                [done.exit_code, {key: data[key] for key in ("selected", "certificate", "arms", "n_pulls")}]
            )
    return exact(found)
