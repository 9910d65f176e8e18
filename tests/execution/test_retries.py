"""Failed calls are tried again after pauses that grow; nothing else waits for them, and nothing is lost."""

import itertools
import logging
import os
import pickle
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.errors import FinalFailure, NotRewards
from shortlist.execution import scheduler as rounds
from shortlist.execution.retries import Retries, Wait
from shortlist.files.problem_file import read_problem_file
from shortlist.measure import CommandSource
from shortlist.report.run_text import status_dict
from shortlist.report.run_warnings import findings_of
from shortlist.session.call_plan import TURNS
from shortlist.store import MemoryStore, Record, Suspended
from shortlist.store.protocol import After, Decide
from tests.cli.calling import Calls
from tests.execution.measures import N, Once, exact, noisy, problem

QUICK = Retries(first=0.02, longest=0.05)
IDS = [f"q{number:02}" for number in range(20)]
ON_ITEMS = sl.Problem(
    1, 0.1, 0.1, names=["a", "b"], rewards=sl.Bernoulli(), items=dict.fromkeys(IDS, "a question")
)
FIRST = [IDS[place] for place in ON_ITEMS.order().tolist()]


@pytest.fixture(autouse=True)
def no_pauses() -> None:
    """Here pauses are as they are."""


# --- how long ---------------------------------------------------------------------------------------


def test_pauses_double_up_to_the_longest_and_are_never_quite_the_same() -> None:
    usual = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    for number, seconds in enumerate(usual, 1):
        drawn = [Retries().pause(number) for _ in range(200)]
        assert min(drawn) >= 0.75 * seconds
        assert max(drawn) <= seconds
        assert max(drawn) - min(drawn) > 0.1 * seconds
    assert Retries().times == len(usual)
    assert 0.75 * sum(usual) > 60, "an outage of a minute does not end a run"
    assert Retries(first=0.0).pause(5000) == 0.0


@pytest.mark.parametrize(
    ("error", "n_failures", "put_off", "expected"),
    [
        (OSError(), 8, [], True),
        (OSError(), 9, [], None),
        (FinalFailure(), 1, [], None),
        (NotRewards(), 3, [], Wait(0.0)),
        (NotRewards(), 4, [], None),
        (TypeError(), 3, [], Wait(0.0)),
        (NameError(), 4, [], None),
        (ZeroDivisionError(), 1, [], Wait(0.0)),
        (AssertionError(), 4, [], None),
        (KeyError("choices"), 4, [], True),
        (sl.RetryLater(7), 9, [], Wait(7, is_failure=False)),
        (sl.RetryLater(7), 1, [3590.0], Wait(7, is_failure=False)),
        (sl.RetryLater(7), 9, [3594.0], None),
        (sl.RetryLater(7), 1, [3594.0], True),
    ],
)
def test_what_is_tried_again_and_when(
    error: Exception, n_failures: int, put_off: list[float], expected: Any
) -> None:
    found = Retries().after([error], n_failures, put_off)
    if expected is True:
        assert found is not None
        assert found.is_failure
        assert 0 < found.seconds <= 30
    else:
        assert found == expected


def test_later_without_a_time_is_after_pauses_that_grow() -> None:
    waits = [Retries().after([sl.RetryLater()], 1, [0.0] * n) for n in range(6)]
    assert all(wait is not None and not wait.is_failure for wait in waits)
    assert [round(wait.seconds) for wait in waits if wait][-1] > 10


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "5", True])
def test_a_time_must_be_one(seconds: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`seconds` of RetryLater is"):
        sl.RetryLater(seconds)
    with pytest.raises(sl.InvalidProblem, match="`first` of the retries is"):
        Retries(first=seconds)


def test_it_survives_the_way_from_another_process() -> None:
    back = pickle.loads(pickle.dumps(sl.RetryLater(3, "busy", all_calls=True)))
    assert (back.seconds, back.reason, back.all_calls, str(back)) == (3, "busy", True, "busy")


# --- in a run -----------------------------------------------------------------------------------------


def test_other_calls_go_on_while_one_waits_and_each_try_has_the_same_seed() -> None:
    calls: list[tuple[int, float]] = []

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append((arm, rng.random()))
        if arm == 0 and sum(a == 0 for a, _ in calls) < 3:
            raise OSError("offline")
        return [0.0] * count

    found = sl.select(measure, problem(), "wnelim", retries=QUICK, turns=1)
    assert [arm for arm, _ in calls] == [*range(N), 0, 0]
    assert len({draw for arm, draw in calls if arm == 0}) == 1
    assert found.n_reissued == 1


def test_an_outage_shorter_than_the_pauses_does_not_end_a_run(tmp_path: Path) -> None:
    measure = Once(tmp_path, "raises", times=8)
    found = sl.select(measure, problem(), "race", retries=Retries(first=0.001, longest=0.002))
    assert exact(found) == exact(sl.select(noisy, problem(), "race"))
    assert measure.n_done == 8


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor])
def test_later_holds_back_that_call_alone_or_all(executor: Any) -> None:
    for all_calls in (False, True):
        begun: list[tuple[int, float]] = []

        def measure(arm: int, count: int, _: Any, all_calls: bool = all_calls, begun: Any = begun) -> Any:
            begun.append((arm, time.monotonic()))
            if len(begun) == 1:
                raise sl.RetryLater(0.2, "quota", all_calls=all_calls)
            return [float(arm)] * count

        pool = None if executor is None else executor(1)
        found = sl.select(measure, problem(), "wnelim", executor=pool, retries=0)
        start = begun[0][1]
        assert begun.count(begun[0]) == 1
        late = [at - start >= 0.2 for _, at in begun[1:]]
        if all_calls and executor is None:
            assert all(late)
        else:
            assert late[-1], "the call itself"
            assert all_calls or not any(late[:-1])
        assert found.n_reissued == 0, "nothing was measured before"
        if pool is not None:
            pool.shutdown()


def test_a_call_put_off_for_too_long_in_all_has_failed() -> None:
    n = 0

    def measure(arm: int, count: int, _: Any) -> Any:
        nonlocal n
        n += 1
        raise sl.RetryLater(0.01, "the licence server is full")

    with pytest.raises(sl.MeasurementFailed, match="the licence server is full"):
        sl.select(measure, problem(), "wnelim", retries=Retries(1, first=0.0, patience=0.025))
    per_call = 2 + 2  # put off twice, then one retry
    assert n >= per_call


def test_the_reason_is_said_at_once_and_not_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    said: list[int] = []

    def measure(arm: int, count: int, _: Any) -> Any:
        said.append(len(caplog.records))
        raise OSError("the sensor is offline")

    about: Any = {"retries": Retries(2, first=0.01), "turns": 1}
    with caplog.at_level(logging.WARNING, "shortlist"), pytest.raises(sl.MeasurementFailed):
        sl.select(measure, problem(m=1, variances=[1.0, 1.0]), "wnelim", **about)
    (record,) = caplog.records
    assert said[1] == 1, "before anything else is tried"
    assert record.message.startswith("Measuring arm-0 (arm 0, round 0, pulls 0 to ")
    assert "failed: OSError: the sensor is offline. Trying again in 0.0 s (retry 1 of 2)." in record.message


def test_a_long_wait_is_in_the_log_and_status_says_so_until_something_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "_LONG", 0.01)
    seen: list[Any] = []
    session = sl.Session(problem(), "wnelim", store=MemoryStore())

    def measure(arm: int, count: int, _: Any) -> Any:
        if len(seen) < 2:
            seen.append(status_dict(session.log))
            seen.append([one.words for one in findings_of(session.result, session.history)])
            raise OSError("offline")
        seen.append(status_dict(session.log)["waiting"])
        return [0.0] * count

    sl.drive(session, measure, retries=Retries(3, first=0.05))
    assert seen[0]["waiting"] is None
    assert "OSError: offline. Trying again in 0.0 s" in seen[2]
    assert seen[-1] is None
    (event,) = [one.event for one in session.records if isinstance(one.event, Suspended)]
    assert event.until is not None
    assert session.history.suspended is None


def test_ctrl_c_ends_a_pause_at_once_and_the_run_goes_on_later() -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 3:
            raise OSError("offline")
        return noisy(arm, count, rng)

    session = sl.Session(problem(), "wnelim")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sl.drive(session, measure, retries=Retries(first=60.0, longest=60.0))
    assert time.monotonic() - start < 10
    assert session.ask().arms.tolist() == [3]
    assert sl.drive(session, noisy).guarantee is not None


def test_failures_that_are_scored_are_tried_three_times_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retries, "pause", lambda *_: 0.0)
    n = 0

    def measure(arm: int, count: int, _: Any) -> Any:
        nonlocal n
        n += 1
        raise OSError("offline")

    asked = problem(m=1, variances=[0.01, 0.01])
    found = sl.select(measure, asked, "wnelim", on_failure=0.0)
    assert n == 4 * found.n_pulls


def test_a_program_may_ask_to_be_tried_later(tmp_path: Path) -> None:
    script = f"test -e {tmp_path}/done || {{ touch {tmp_path}/done; echo busy >&2; exit 75; }}; echo 0.5"
    asked = problem(m=1, variances=[1.0, 1.0])
    source = CommandSource(asked, ("sh", "-c", script))
    found = sl.select(source, asked, "wnelim", retries=Retries(0, first=0.01))
    assert found.guarantee is not None
    assert found.n_reissued == 0


# --- as files and commands say it ----------------------------------------------------------------------


QUESTION = """
[problem]
m = 1
epsilon = 0.5
delta = 0.1
scales = [1.0, 1.0]

[measure]
kind = "command"
command = ["sh", "-c", "exit 3"]
"""


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("", None),
        ("retries = 3", Retries(3)),
        ("retries = { times = 20, first = 2, longest = 60.0 }", Retries(20, 2, 60.0)),
        ("retries = { often = 20 }", "`retries` has the unknown entry 'often'"),
        ("retries = -1", "`retries` is -1"),
        ("retries = { first = -1 }", "`first` of the retries is -1"),
    ],
)
def test_a_problem_file_says_when(entry: str, expected: Any, tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(f"{QUESTION}{entry}\n", encoding="utf-8")
    if isinstance(expected, str):
        with pytest.raises(sl.InvalidProblem, match=expected):
            read_problem_file(path)
    else:
        assert read_problem_file(path).retries == expected


def test_options_come_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[tuple[Retries, int]] = []

    def noted(retries: Retries, number: int) -> float:
        pauses.append((retries, number))
        return 0.0

    monkeypatch.setattr(Retries, "pause", noted)
    call = Calls(tmp_path, capsys, monkeypatch)
    call.write("trial.toml", f"{QUESTION}retries = {{ times = 20, longest = 5 }}\n")
    failed = call("run", "trial.toml", "--retries", "2", "--retry-pause", "1min")
    assert failed.status == 4
    assert "failed 3 times, each time with the same seed" in failed.err
    assert {how for how, _ in pauses} == {Retries(2, 60.0, 5)}
    assert {number for _, number in pauses} == {1, 2}


# --- trouble of the store that passes --------------------------------------------------------------------


class Flaky(MemoryStore):
    """A store that cannot be written for a while, once it has some events."""

    def __init__(self, times: int, *, is_passing: bool = True) -> None:
        super().__init__()
        self.left, self.is_passing = times, is_passing

    def append(self, run: str, after: After, decide: Decide) -> list[Record]:
        if self.left and len(self.read(run)) > 6:
            self.left -= 1
            error = sl.errors.StoreTrouble("the disk is full.")
            error.is_passing = self.is_passing
            raise error
        return super().append(run, after, decide)


def measured(calls: list[tuple[int, int]]) -> Any:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        calls.append((arm, hash(str(rng.bit_generator.state))))  # the seed tells the call
        return noisy(arm, count, rng)

    return measure


def test_a_store_in_trouble_that_passes_is_waited_for_and_nothing_is_measured_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Retries, "pause", lambda *_: 0.01)
    calls: list[tuple[int, int]] = []
    store = Flaky(5)
    session = sl.Session(problem(), "wnelim", store=store)
    found = sl.drive(session, measured(calls), reproducible=True)
    assert store.left == 0
    assert sorted({arm for arm, _ in calls}) == list(range(N))
    assert len(calls) == len(set(calls)) == N * TURNS
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))


@pytest.mark.parametrize(("is_passing", "patience"), [(False, 120.0), (True, 0.05)])
def test_a_store_in_lasting_trouble_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, is_passing: bool, patience: float
) -> None:
    monkeypatch.setattr(rounds, "_STORE_PATIENCE", patience)
    monkeypatch.setattr(Retries, "pause", lambda *_: 0.02)
    session = sl.Session(problem(), "wnelim", store=Flaky(10_000, is_passing=is_passing))
    with pytest.raises(sl.errors.StoreTrouble, match="the disk is full"):
        sl.drive(session, noisy)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_deadline_ends_the_wait_for_a_store_on_a_full_disk(
    concurrency: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retries, "pause", lambda *_: 60.0)
    start = time.monotonic()
    session = sl.Session(problem(), "wnelim", store=Flaky(10_000))
    found = sl.drive(session, noisy, deadline=0.5, concurrency=concurrency)
    assert 0.5 <= time.monotonic() - start < 5
    assert found.stop is sl.Stop.DEADLINE
    assert "the disk is full. The deadline passed before it could be written again." in caplog.text


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_deadline_ends_the_wait_for_a_store_that_another_process_has_locked(
    concurrency: int, tmp_path: Path
) -> None:
    """SQLite waits for half a minute by itself, for every answer and for every lease that is released."""
    path = tmp_path / "runs.db"
    with (
        sl.Session(problem(), "wnelim", store=path) as session,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        calls = itertools.count()

        def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
            if next(calls) == 5:
                other.execute("BEGIN IMMEDIATE")
            return noisy(arm, count, rng)

        start = time.monotonic()
        found = sl.drive(session, measure, deadline=1.0, concurrency=concurrency)
        assert 1.0 <= time.monotonic() - start < 8
        assert found.stop is sl.Stop.DEADLINE
        unlocking = threading.Timer(1.5, other.execute, ("ROLLBACK",))
        unlocking.start()
        session.suspend("what comes later waits for other processes again")
        unlocking.join()
        finished = sl.drive(session, measure)
    assert finished.stop is sl.Stop.CERTIFIED


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("all_calls", [False, True])
def test_a_deadline_ends_pauses_before_retries(concurrency: int, all_calls: bool) -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        if arm == 0:
            raise sl.RetryLater(60.0, all_calls=all_calls)
        return noisy(arm, count, rng)

    start = time.monotonic()
    found = sl.select(measure, problem(), "wnelim", deadline=0.5, concurrency=concurrency)
    assert 0.5 <= time.monotonic() - start < 5
    assert found.stop is sl.Stop.DEADLINE


def test_a_program_that_prints_the_same_nonsense_twice_is_not_waited_for() -> None:
    waits = Retries(first=60.0)
    once = CommandSource(ON_ITEMS, ("echo", "nonsense"))
    staying = CommandSource(ON_ITEMS, ("sed", "-u", "s/.*/nonsense/"), persistent=True)
    for source in (once, staying):
        with pytest.raises(sl.MeasurementFailed, match="failed 2 times"):
            sl.select(source, ON_ITEMS, retries=waits, pulls_per_call=1)


def test_wrong_output_that_differs_and_wrong_answers_of_functions_are_tried_four_times() -> None:
    clock = CommandSource(ON_ITEMS, ("date", "+nonsense %N"))
    for source in (clock, lambda *_: "nonsense"):
        with pytest.raises(sl.MeasurementFailed, match="failed 4 times"):
            sl.select(source, ON_ITEMS, pulls_per_call=1)


def test_failures_name_the_items() -> None:
    expected = rf"measuring a \(arm 0, round 0\) on items {FIRST[0]}, {FIRST[1]} failed"
    with pytest.raises(sl.MeasurementFailed, match=expected):
        sl.select(lambda *_: None, ON_ITEMS, pulls_per_call=2, turns=1)
    with pytest.raises(sl.MeasurementFailed, match=f"the score 7 of a on item {FIRST[1]} is refused"):
        sl.select(lambda *_: [1, 7], ON_ITEMS, pulls_per_call=2, turns=1)
    with pytest.raises(sl.MeasurementFailed, match=f"measuring a on item {FIRST[0]} failed: .*'nonsense'"):
        sl.select(CommandSource(ON_ITEMS, ("echo", "nonsense")), ON_ITEMS, pulls_per_call=1, turns=1)
    with pytest.raises(sl.MeasurementFailed, match=f"on items {', '.join(FIRST[:5])} and 3 more failed"):
        sl.select(lambda *_: None, ON_ITEMS, turns=1)
    blocks = sl.Problem(1, 0.1, 0.1, n=2, rewards=sl.Bounded(0, 1), items=sl.Blocks())
    with pytest.raises(sl.MeasurementFailed, match=r"\(arm 0, round 0\) on block 0 failed"):
        sl.select(lambda *_: None, blocks, pulls_per_call=1, turns=1)
