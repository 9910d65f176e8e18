"""A Dask cluster as the workers: the same run, also when workers are killed."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import shortlist as sl
from shortlist.execution.dask_clients import local_dask
from tests.execution.measures import Once, exact, noisy, noisy_block, problem, summed_up

pytestmark = pytest.mark.slow


@contextmanager
def local_cluster() -> Iterator[Any]:
    how: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(processes=True, **how) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with local_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def shared(cluster: Any) -> Iterator[Any]:
    with Client(cluster, set_as_default=False) as made:
        yield made


@pytest.fixture
def client(shared: Any) -> Any:
    """A client of two workers, also after a test that killed them."""
    shared.wait_for_workers(2, timeout=180)
    return shared


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (noisy, {}),
        (noisy, {"pulls_per_call": 3}),
        (sl.vectorised(noisy_block, block=4), {"pulls_per_call": 5}),
    ],
)
def test_the_answer_is_the_same_as_without_dask(client: Any, measure: Any, options: dict[str, Any]) -> None:
    found = sl.select(measure, problem(), "race", seed=5, executor=client, **options)
    assert exact(found) == exact(sl.select(measure, problem(), "race", seed=5, **options))


def test_a_large_source_is_sent_once(client: Any) -> None:
    asked = problem()
    means = np.zeros(300_000)
    wide = sl.Problem(m=1, epsilon=5.0, delta=0.1, variances=np.ones(len(means)))
    measure = sl.simulated_measure(wide, means)
    found = sl.select(
        lambda a, c, rng: noisy(a, c, rng) + measure(a, 1, rng).mean, asked, "race", executor=client
    )
    alone = sl.select(lambda a, c, rng: noisy(a, c, rng) + measure(a, 1, rng).mean, asked, "race")
    assert exact(found) == exact(alone)


def test_an_address_is_as_good_as_a_client(client: Any, cluster: Any) -> None:
    found = sl.select(noisy, problem(), "wnelim", executor=cluster.scheduler_address)
    assert exact(found) == exact(sl.select(noisy, problem(), "wnelim"))


@pytest.mark.parametrize("pure", [None, True])
def test_an_executor_that_remembers_equal_calls_never_meets_one(client: Any, pure: bool | None) -> None:
    executor = client.get_executor() if pure is None else client.get_executor(pure=pure)
    remembered = {executor.submit(np.random.random).result() for _ in range(5)}
    assert len(remembered) == 1, "Dask remembers; otherwise this test would show nothing"
    found = sl.select(noisy, problem(), "race", executor=executor)
    assert exact(found) == exact(sl.select(noisy, problem(), "race"))


def test_a_worker_killed_in_mid_run_changes_nothing(client: Any) -> None:
    pids = list(client.run(os.getpid).values())
    assert len(set(pids)) == 2
    told: list[int] = []

    def progress(session: sl.Session) -> None:
        told.append(session.n_pulls)
        if len(told) == 5:
            os.kill(pids[0], signal.SIGKILL)

    found = sl.select(noisy, problem(), "race", executor=client, progress=progress, pulls_per_call=3)
    assert len(told) > 20
    assert exact(found) == exact(sl.select(noisy, problem(), "race", pulls_per_call=3))
    client.wait_for_workers(2, timeout=180)
    assert set(client.run(os.getpid).values()) != set(pids)


def test_many_arms_with_a_worker_killed_and_few_tasks_at_a_time(client: Any, cluster: Any) -> None:
    """A task is a block of arms, and the scheduler holds no more than workers need."""
    wide = sl.Problem(m=1, epsilon=1.0, delta=0.05, n=20_000, rewards=sl.Gaussian())
    source, pids = sl.vectorised(summed_up, block=250), list(client.run(os.getpid).values())
    n_tasks: list[int] = []

    def progress(_: sl.Session) -> None:
        n_tasks.append(len(cluster.scheduler.tasks))
        if len(n_tasks) == 5:
            os.kill(pids[0], signal.SIGKILL)

    found = sl.select(source, wide, seed=3, executor=client, progress=progress, turns=1)
    assert len(n_tasks) > 5
    assert max(n_tasks) <= 2 * 2 * 3  # of 80: three for each worker, and some that have just ended
    assert exact(found) == exact(sl.select(source, wide, seed=3, turns=1))
    assert found.guarantee is not None
    client.wait_for_workers(2, timeout=180)


def test_a_call_that_kills_its_worker_once_is_done_again(client: Any, tmp_path: Path) -> None:
    measure = Once(tmp_path, "dies")
    found = sl.select(measure, problem(), "race", executor=client)
    assert measure.n_done == 1
    assert exact(found) == exact(sl.select(noisy, problem(), "race"))


def test_a_call_that_kills_every_worker_is_named_and_the_run_can_go_on(client: Any, tmp_path: Path) -> None:
    session = sl.Session(problem(), "race")
    # If its workers die too often, a cluster gives up starting them anew, and calls wait for ever. So a call
    # that has killed two workers is given up before that.
    settings = {"allowed-failures": 1, "no-workers-timeout": "120s"}
    with (
        dask.config.set({f"distributed.scheduler.{name}": value for name, value in settings.items()}),
        local_cluster() as doomed,
        Client(doomed, set_as_default=False) as other,
        pytest.raises(sl.errors.WorkersLost, match=r"KilledWorker.*arm-3 \(arm 3, round 0") as caught,
    ):
        sl.drive(session, Once(tmp_path, "dies", times=1000), executor=other, retries=0, turns=1)
    assert "recorded results are kept" in str(caught.value)
    expected = sl.select(noisy, problem(), "race", turns=1)
    assert exact(sl.drive(session, noisy, executor=client)) == exact(expected)


@pytest.mark.parametrize("deed", ["raises", "is_nan"])
def test_a_lasting_fault_is_named_and_the_run_can_go_on(client: Any, deed: str, tmp_path: Path) -> None:
    session = sl.Session(problem(), "race")
    measure = Once(tmp_path, deed, times=2)
    with pytest.raises(sl.MeasurementFailed, match=r"measuring arm-3 \(arm 3, round 0, pulls 0 to"):
        sl.drive(session, measure, executor=client, retries=1, turns=1)
    expected = sl.select(noisy, problem(), "race", turns=1)
    assert exact(sl.drive(session, measure, executor=client)) == exact(expected)


def test_what_is_no_address_is_refused_at_once_and_in_one_line() -> None:
    code = """
import shortlist as sl
try:
    sl.select(print, sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=[1.0, 1.0]), executor="nowhere")
except sl.InvalidProblem as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert "no Dask scheduler answers at 'nowhere'" in done.stdout
    assert done.stderr == ""  # a client half made would leave a traceback when the program ends


def test_an_address_where_nobody_answers_is_explained() -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}),
        pytest.raises(sl.InvalidProblem, match=r"tcp://127\.0\.0\.1:9.*dask scheduler"),
    ):
        sl.select(noisy, problem(), executor="tcp://127.0.0.1:9")


def _log_level(logger: str) -> int:
    return logging.getLogger(logger).getEffectiveLevel()


def test_workers_of_a_local_cluster_print_nothing_of_their_own(capfd: pytest.CaptureFixture[str]) -> None:
    with local_dask(1) as client:
        assert client.submit(_log_level, "distributed.worker").result(timeout=180) == logging.CRITICAL
    assert capfd.readouterr() == ("", "")
