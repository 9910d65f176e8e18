"""Runs to report on: small, large, interrupted, failed, and with names that mean harm."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.report.model import Report, report_of_run
from shortlist.session.answer_events import events_for_tickets
from shortlist.store import Conflict, MemoryStore, Scored, Suspended, Told

MANY = 100_000
HOSTILE = [
    "<script>alert('x')</script>",
    "\"><img src=x onerror=alert(1)> ' & &amp; &lt;",
    "a" * 10_000,
    "two\nlines\r\nand\ttabs",
    "nothing\0in between\x1b[31m",
    "\u202eright to left\u202e \u2066 never closed",
    "שלום עולם",
    "👩‍👩‍👧‍👦 🏳️‍🌈 emoji",
    "</style></svg></title>]]>--><!--",
    "x" * 39 + " " + "W" * 300,
    "{braces} %s $(rm) `tick` \\",
    "\ufffe\uffff nonsense",
]


def problem(n: int = 10, m: int = 3, names: list[str] | None = None, **parts: Any) -> sl.Problem:
    """Return a question about rewards in [0, 1]."""
    given: dict[str, Any] = {"epsilon": 0.1, "delta": 0.05, "variances": [0.25] * n} | parts
    return sl.Problem(m=m, names=names, **given)


def told(session: sl.Session, means: np.ndarray, rounds: int = 10**6, workers: int = 1) -> sl.Session:
    """Answer some rounds of a session with noisy means, by several workers."""
    rng = np.random.default_rng(1)
    spread = np.sqrt(session.problem.variances)
    while len(asked := session.asked) and asked.round < rounds:
        noise = rng.standard_normal(len(asked)) * spread[asked.arms] / np.sqrt(asked.counts)
        values = means[asked.arms] + noise
        for worker in range(workers):
            part = slice(worker, None, workers)
            if len(some := asked.take(part)):
                session.tell(some, means=values[part], worker=f"rig-{worker + 1}")
    return session


def report_of(session: sl.Session, **how: Any) -> Report:
    """Return the report of a session."""
    records = session.records
    return report_of_run(session.name, session.history, records, **how)


def fresh(question: Any, strategy: str = "auto", name: str = "trial", seed: int = 7) -> sl.Session:
    """Return a session with a store of its own."""
    return sl.Session(question, strategy, seed=seed, store=MemoryStore(), name=name)


def append(session: sl.Session, *events: Any) -> None:
    """Write events to the log of a session, whatever they are."""
    session._log.append(lambda *_: events)


@cache
def small() -> Report:
    """Return a run of ten arms that has ended."""
    names = [f"prompt {letter}" for letter in "ABCDEFGHIJ"]
    means = np.array([0.42, 0.55, 0.71, 0.38, 0.64, 0.50, 0.80, 0.47, 0.33, 0.58])
    session = fresh(problem(names=names), name="prompts")
    session.arrange({"pulls_per_call": None, "together": 1, "on_failure": "suspend"})
    return report_of(told(session, means, workers=3))


@cache
def large() -> Report:
    """Return a run of very many arms that has ended."""
    rng = np.random.default_rng(2)
    means = rng.normal(0.0, 1.0, MANY)
    means[:50] += 4
    question = sl.Problem(m=40, epsilon=1.0, delta=0.05, variances=rng.uniform(0.2, 4.0, MANY))
    return report_of(told(fresh(question, "short-race", "designs"), means, workers=2))


@cache
def interrupted() -> Report:
    """Return a run that was left in the middle of a round."""
    means = np.linspace(0.2, 0.8, 24)
    session = told(fresh(problem(24, 4), "level-race", "field trial"), means, rounds=2)
    tickets = session.ask()
    some = tickets[: len(tickets) // 2]
    session.tell(some, means=means[some.arms], worker="ann")
    return report_of(session)


@cache
def failed() -> Report:
    """Return a run that was suspended because a measurement failed, with all that can go wrong."""
    means = np.linspace(0.2, 0.8, 24)
    session = fresh(problem(24, 4), "level-race", "furnace")
    session.arrange({"pulls_per_call": 1, "together": 1, "on_failure": 0.0, "measure": {"kind": "command"}})
    scored = [
        Scored(sl.session.Ticket(0, arm, f"arm-{arm}", 1, 0), 0.0, "no reply\n<b>line 2</b>")
        for arm in range(7)
    ]
    append(session, *scored)
    told(session, means, rounds=3, workers=2)
    conflicts = [Conflict(1, arm, 0.5, 0.25, "rig-2") for arm in range(8)]
    reason = "arm-17 failed four times. The last time: `./measure.sh` ended with status 1:\n" + "trace " * 900
    append(session, *conflicts, Suspended(reason, "run@lab:77:abcdef"))
    return report_of(session)


def tell_as_before(session: sl.Session, place: int, mean: float, worker: str) -> None:
    """Answer a ticket as version 0.1.0 let workers of any name do."""
    asked = session.asked
    answer = Told(asked.round, asked.arms[place : place + 1], np.array([mean]), worker=worker)
    session.log.append(lambda history, _: events_for_tickets(history, history.round.answers(answer)))


@cache
def hostile() -> Report:
    """Return a run with names that mean harm, of arms and of workers; logs of 0.1.0 may have such workers."""
    names = [*HOSTILE, *(f"{name[:50]} {k}" for k, name in enumerate(HOSTILE))]
    means = np.linspace(0.9, 0.1, len(names))
    session = fresh(problem(len(names), 6, names), name="<i>run</i> 'quoted' " + "long " * 36)
    asked = session.asked
    for place in range(len(asked)):
        tell_as_before(session, place, float(means[place]), HOSTILE[place % len(HOSTILE)])
    return report_of(told(session, means, workers=2))


@cache
def nothing_to_do() -> Report:
    """Return a run in which all arms are to be selected."""
    return report_of(fresh(problem(4, 4)))


@cache
def begun() -> Report:
    """Return a run of which nothing has been told."""
    return report_of(fresh(problem()))


@cache
def unproved() -> Report:
    """Return a run by a strategy without a proof."""
    return report_of(told(fresh(problem(), "adapted-medelim-published"), np.linspace(0, 1, 10)))


@cache
def screened() -> Report:
    """Return a run that only screens."""
    return report_of(told(fresh(problem(), "medelim"), np.linspace(0, 1, 10)))


@cache
def unknown() -> Report:
    """Return a run for unknown variances."""
    names = ["old", "new", "newer", "newest"]
    question = sl.Problem(m=1, epsilon=1.0, delta=0.05, names=names, rewards=sl.Gaussian())
    session = fresh(question)
    sl.drive(session, lambda arm, count, rng: rng.normal(2 * arm, 1 + arm, count))
    return report_of(session)


@cache
def minimising() -> Report:
    """Return a run that looks for the smallest means, of more arms than are shown one by one."""
    means = np.linspace(10.0, 20.0, 90)
    question = problem(90, 70, epsilon=1.0, variances=np.linspace(0.01, 4.0, 90), goal="minimise")
    return report_of(told(fresh(question), means))


ALL: dict[str, Callable[[], Report]] = {
    one.__name__: one
    for one in (
        *(small, large, interrupted, failed, hostile, nothing_to_do),
        *(begun, unproved, screened, unknown, minimising),
    )
}
