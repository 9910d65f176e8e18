"""What several processes do to a run, as a program: ``python -m tests.durable.processes NAME ...``.

It forks, which a process with threads of its own (such as that of the tests) had better not.
"""

import json
import os
import random
import signal
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.measure import Call
from shortlist.session.answers import Answers
from shortlist.store import Answered, Leased, Record, Told
from tests.store.processes import LOADED, fork, together

N = 16
MEANS = np.linspace(0.0, 1.5, N)
ANSWER = struct.Struct("<qqqd")  # round, arm, first pull, mean
TURNS = 2

assert LOADED


def question(**changes: object) -> sl.Problem:
    return sl.Problem(m=3, epsilon=0.3, delta=0.05, variances=np.linspace(0.5, 2.0, N)).changed(**changes)


class Slowly:
    """Rewards that depend on the seed alone, and take a moment."""

    together = 1
    is_reproducible = True

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def answers(self, calls: Sequence[Call]) -> Sequence[sl.Summary]:
        time.sleep(self.seconds)
        return [sl.Summary(c.count, mean(c.entropy, c.arm, c.first_pull, c.count)) for c in calls]


def mean(entropy: int, arm: int, first_pull: int, count: int) -> float:
    """Return the mean of so many rewards."""
    rng = np.random.default_rng((entropy, arm, first_pull))
    return float(MEANS[arm] + rng.normal() / np.sqrt(count))


def digest(session: sl.Session) -> str:
    """Return all that a run has come to, in one line: equal only if every bit is.

    What is assumed may differ: only drivers know whether rewards follow from seeds.
    """
    result = session.result.to_dict()
    for promise in (result["guarantee"], result["certificate"]):
        for words in ("assumption", "assumptions") if promise else ():
            del promise[words]
    told = {
        (event.round, arm): value
        for event in session.events
        for arm, value in zip(event.arms.tolist(), event.means.tolist(), strict=True)
    }
    return json.dumps([result, sorted((*key, value.hex()) for key, value in told.items())])


# --- kill -9 ------------------------------------------------------------------------------------------


def kills(address: str, n: str) -> None:
    """Kill drivers of runs n times, wherever they are; each time another goes on. All must end alike."""
    random.seed(3)
    undisturbed = sl.Session(question(), "race", seed=5)
    sl.drive(undisturbed, Slowly(0.0), turns=TURNS)
    n_killed = n_runs = n_acknowledged = 0
    while n_killed < int(n):
        name, acknowledged = f"run-{n_runs}", dict[tuple[int, int, int], float]()
        while True:
            was_killed, some = _killed(address, name, random.randint(-8, 30), random.uniform(0.0, 0.02))
            acknowledged |= some
            if not was_killed:
                break
            n_killed += 1
        session = sl.Session.resume(address, name)
        assert session.is_done
        assert digest(session) == digest(undisturbed)
        _assert_once(session.records, acknowledged)
        n_acknowledged += len(acknowledged)
        n_runs += 1
    print(f"{n_killed} kills in {n_runs} runs; {n_acknowledged} answers acknowledged, none lost")


def _killed(
    address: str, name: str, n_answers: int, seconds: float
) -> tuple[bool, dict[tuple[int, int, int], float]]:
    """Kill a driver a while after so many answers; return whether that ended it, and what it had told."""
    news, telling = os.pipe()

    def work() -> None:
        session = sl.Session(question(), "race", seed=5, store=address, name=name)
        answer = session.answer

        def noted(answers: Answers, **more: Any) -> None:
            answer(answers, **more)
            rows = zip(answers.tickets, answers.means.tolist(), strict=True)
            packed = b"".join(ANSWER.pack(c.round, c.arm, c.first_pull, value) for c, value in rows)
            os.write(telling, packed)

        session.answer = noted  # type: ignore[method-assign]
        sl.drive(session, Slowly(0.001), turns=TURNS)

    child = fork(work)
    os.close(telling)
    written = b""
    with os.fdopen(news, "rb", buffering=0) as pipe:
        while len(written) < n_answers * ANSWER.size and (some := pipe.read(4096)):
            written += some
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        written += pipe.readall()
    whole = len(written) // ANSWER.size * ANSWER.size
    return status != 0, {tuple(call): value for *call, value in ANSWER.iter_unpack(written[:whole])}


def _assert_once(records: list[Record], acknowledged: dict[tuple[int, int, int], float]) -> None:
    """Make sure that no ticket and no call counts twice, and that everything acknowledged is there."""
    told = [
        ((record.event.round, arm), value)
        for record in records
        if isinstance(record.event, Told)
        for arm, value in zip(record.event.arms.tolist(), record.event.means.tolist(), strict=True)
    ]
    assert max(Counter(ticket for ticket, _ in told).values()) == 1
    parts = [
        ((event.round, arm, first_pull), value)
        for event in (record.event for record in records)
        if isinstance(event, Answered)
        for arm, first_pull, value in zip(
            event.arms.tolist(), event.first_pulls.tolist(), event.means.tolist(), strict=True
        )
    ]
    assert len(parts) == len(dict(parts)), "a call counts twice"
    missing = acknowledged.items() - dict(parts).items()  # those with which a ticket was told
    assert {call[:2] for call, _ in missing} <= dict(told).keys()
    assert not {call for call, _ in missing} & dict(parts).keys()


# --- many at one run ----------------------------------------------------------------------------------


def askers(address: str, n: str, limit: str) -> None:
    """Ask and tell in n processes that start at the same time, the store still to be made, until the end."""
    warnings.simplefilter("error")  # a contradiction would be one

    def work(k: int) -> None:
        session = sl.Session(question(), "wnelim", seed=5, store=address)
        while not session.is_done:
            tickets = session.ask(int(limit), worker=f"w{k}")
            if not tickets:
                time.sleep(0.005)
            answers = [
                mean(session.entropy, ticket.arm, ticket.first_pull, ticket.count) for ticket in tickets
            ]
            if tickets:
                session.tell(tickets, means=answers, worker=f"w{k}")

    together(int(n), work)
    session = sl.Session.resume(address)
    alone = sl.Session(question(), "wnelim", seed=5)
    sl.drive(alone, Slowly(0.0), turns=1)
    assert digest(session) == digest(alone)
    leases = [record.event for record in session.records if isinstance(record.event, Leased)]
    given = Counter((lease.round, arm) for lease in leases for arm in lease.arms.tolist())
    assert max(given.values()) == 1, "a ticket was given to two workers"
    _assert_once(session.records, {})
    told_by = Counter(event.worker for event in session.events for _ in event.arms)
    print(f"{sum(told_by.values())} tickets, each answered once, by {len(told_by)} workers")


def drivers(address: str, n: str) -> None:
    """Drive one run by n processes at once."""

    def work(_: int) -> None:
        session = sl.Session(question(), "wnelim", seed=5, store=address)
        sl.drive(session, Slowly(0.02))

    together(int(n), work)
    session = sl.Session.resume(address)
    alone = sl.Session(question(), "wnelim", seed=5)
    sl.drive(alone, Slowly(0.0))
    assert digest(session) == digest(alone)
    _assert_once(session.records, {})
    answers = (r.event for r in session.records if isinstance(r.event, Answered | Told))
    told_by = Counter(event.worker for event in answers for _ in event.arms)
    print(f"{sum(told_by.values())} calls by {len(told_by)} drivers: {sorted(told_by.values())}")


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    {program.__name__: program for program in (kills, askers, drivers)}[name](*arguments)
