"""Leases go by the time of the store, whatever the clocks of the machines that use it say."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.report.run_text import status_dict
from shortlist.store import MemoryStore, Store, open_store
from shortlist.store.clock import Clock, boot, uptime
from shortlist.store.sqlite import SqliteStore
from tests.store.conftest import Place

HOUR = 3600.0
PROBLEM = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0, 1.0, 1.0])


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.wall, self.up, self.start = 1_000_000.0, 500.0, "first"

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds

    def restart(self, wall: float) -> None:
        self.wall, self.up, self.start = wall, 20.0, self.start + " again".replace(" ", "-")

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.up, lambda: self.start)


@pytest.fixture
def machine() -> Machine:
    return Machine()


# --- the clock -----------------------------------------------------------------------------------------


def test_without_steps_it_is_the_clock_of_the_machine(machine: Machine) -> None:
    mark = machine.clock.mark(machine.wall)
    for seconds in (0.0, 1 / 3, 100.0, 1e6):
        machine.pass_by(seconds)
        assert machine.clock.now(mark) == pytest.approx(machine.wall, abs=1e-6)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_step_counts_slowly_and_in_the_end(machine: Machine, step: float) -> None:
    mark, began = machine.clock.mark(machine.wall), machine.wall
    machine.wall += step
    assert machine.clock.now(mark) == began
    for _ in range(9):
        machine.pass_by(HOUR)
        before, now = float(mark.split()[2]), machine.clock.now(mark)
        assert abs(now - before - HOUR) == pytest.approx(HOUR / 10)
        assert abs(machine.wall - now) > 1
        mark = machine.clock.mark(now)
    machine.pass_by(2 * HOUR)
    assert machine.clock.now(mark) == pytest.approx(machine.wall)


@pytest.mark.parametrize(("wall", "now"), [(0.0, 1_000_000.0), (1_000_000.0 + HOUR, 1_000_000.0 + HOUR)])
def test_after_a_restart_time_goes_on_but_never_back(machine: Machine, wall: float, now: float) -> None:
    mark = machine.clock.mark(machine.wall)
    machine.restart(wall)
    assert machine.clock.now(mark) == now


def test_where_starts_are_unknown_the_clock_counts() -> None:
    clock = Clock(lambda: 7.0, lambda: 1.0, lambda: "")
    assert clock.mark(5.0) == ""
    assert clock.now("") == clock.now("no mark") == 7.0


def test_this_machine_knows_when_it_was_started() -> None:
    assert boot() == boot() != ""
    assert uptime() <= uptime()
    assert abs(Clock().now("") - time.time()) < 5


# --- leases --------------------------------------------------------------------------------------------


def leased(store: Store, worker: str) -> int:
    """Return how many tickets a worker is given, for ten minutes."""
    return len(sl.Session(PROBLEM, "wnelim", store=store).ask(worker=worker, lease=600.0))


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_leases_neither_last_nor_end_when_the_clock_is_set(
    tmp_path: Path, machine: Machine, step: float
) -> None:
    store = SqliteStore(tmp_path / "runs.db", clock=machine.clock)
    assert leased(store, "ann") == 4
    machine.wall += step
    looking = sl.Session.resume(store)
    for _ in range(5):
        machine.pass_by(100.0)
        assert leased(store, "bob") == 0
        assert not looking.still_open("bob")[1].any()
        assert [holding["worker"] for holding in status_dict(looking.log)["holders"]] == ["ann"]
    machine.pass_by(200.0)
    assert looking.still_open("bob")[1].all()
    assert status_dict(looking.log)["holders"] == []
    assert leased(store, "bob") == 4
    times = [record.at for record in store.read("main")]
    assert times == sorted(times)
    store.close()


def test_another_process_that_opens_the_file_after_a_step_agrees(tmp_path: Path, machine: Machine) -> None:
    for who, n_expected in (("ann", 4), ("bob", 0)):
        store = SqliteStore(tmp_path / "runs.db", clock=machine.clock)
        assert leased(store, who) == n_expected
        store.close()
        machine.wall -= HOUR
    machine.pass_by(700.0)
    store = SqliteStore(tmp_path / "runs.db", clock=machine.clock)
    assert leased(store, "bob") == 4
    store.close()


SHIFTED = """
import sys, time
real, shift = time.time, float(sys.argv[1])
time.time = lambda: real() + shift
import shortlist as sl
with sl.Session.resume(sys.argv[2]) as session:
    worker = f"worker {shift}"
    print(len(session.ask(1, worker=worker, lease=60.0)), int(session.still_open("carl")[1].sum()))
"""


@pytest.mark.slow
def test_processes_whose_clocks_differ_agree_who_holds_what(durable: Place) -> None:
    store = durable.open()
    session = sl.Session(PROBLEM, "wnelim", store=store)
    assert len(session.ask(2, worker="here", lease=60.0)) == 2
    for k, shift in enumerate((-HOUR, HOUR)):
        command = [sys.executable, "-c", SHIFTED, str(shift), durable.address]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.split() == ["1", str(1 - k)], done.stderr
    assert not session.still_open("carl")[1].any()
    times = [record.at for record in store.read("main")]
    assert times == sorted(times)
    assert times[-1] - times[0] < 60


@pytest.mark.parametrize("shift", [-HOUR, HOUR])
def test_the_clock_of_who_looks_does_not_matter(
    durable: Place, monkeypatch: pytest.MonkeyPatch, shift: float
) -> None:
    store = durable.open()
    session = sl.Session(PROBLEM, "wnelim", store=store)
    session.ask(worker="here", lease=60.0)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    assert not session.still_open("carl")[1].any()
    assert [holding.worker for holding in session.awaited()] == ["here"]
    assert [holding["worker"] for holding in status_dict(session.log)["holders"]] == ["here"]


def test_in_memory_time_goes_on_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    before = store.now("main")
    assert abs(before - time.time()) < HOUR / 2
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= store.now("main") - before < 60


def test_a_run_of_version_1_that_is_only_read_goes_by_the_clock(tmp_path: Path) -> None:
    from tests.compat.cases import SQLITE

    path = tmp_path / "runs.db"
    path.write_bytes(SQLITE.read_bytes())
    store = open_store(path, read_only=True)
    assert abs(store.now(store.runs()[0]) - time.time()) < 60
    store.close()
