"""Worker processes that are ended in a hurry, as by a second Ctrl-C, leave no traceback behind."""

import threading
import time
from typing import Any

import pytest

from shortlist.execution.worker_pool import Processes, Workers


def test_processes_that_are_killed_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    before = set(threading.enumerate())
    pool = Processes(1)
    workers = Workers(pool.start(), None, 1, is_own=True, again=pool.start)
    workers.executor.submit(time.sleep, 0).result()
    threads = set(threading.enumerate()) - before
    futures = [workers.executor.submit(time.sleep, 60) for _ in range(6)]
    while sum(future.running() for future in futures) < 3:  # until the queue of the worker is full
        time.sleep(0.01)
        futures.append(workers.executor.submit(time.sleep, 60))
    assert sum(future.cancel() for future in futures) > 1, "the scheduler does so when it stops"
    workers.close(is_hurried=True)
    for thread in threads:
        thread.join(10)
    assert all(future.done() for future in futures)
    assert not said
