"""Async functions as measurements: their coroutines run in one event loop, so many at once.

Every running call has a thread, which only waits for its coroutine. So retries, timeouts, leases and the
order of calls are the same as for other functions.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from shortlist.checks import whole_number
from shortlist.errors import FinalFailure, InvalidProblem

CONCURRENCY = 16
"""The default number of calls at once of an async function."""
_MOST = 10_000


def is_async(measure: object) -> bool:
    """Return whether calls of a measurement return coroutines."""
    return inspect.iscoroutinefunction(measure) or inspect.iscoroutinefunction(
        getattr(measure, "__call__", None)  # noqa: B004 - it may be an async method
    )


@dataclass(eq=False)
class OnLoop:
    """An async function as a plain one: a call waits for the coroutine, which runs in an event loop."""

    function: Callable[..., Any]
    loop: asyncio.AbstractEventLoop
    is_cancelled: threading.Event = field(default_factory=threading.Event)

    def __call__(self, *given: Any) -> Any:
        """Return what the async function returns."""
        if self.is_cancelled.is_set():
            raise FinalFailure("the run was cancelled; call again to resume it.")
        return asyncio.run_coroutine_threadsafe(self.function(*given), self.loop).result()


@contextmanager
def calls_at_once(measure: Any, concurrency: int | None, executor: Any) -> Iterator[tuple[Any, Executor]]:
    """Yield a plain function for a measurement, and the threads that make so many calls at once."""
    if executor is not None:
        what = "`concurrency`" if concurrency is not None else "an async function"
        raise InvalidProblem(f"{what} needs no `executor`: calls run in this process. Omit one of them.")
    n = CONCURRENCY if concurrency is None else whole_number(concurrency, "concurrency", 1, _MOST)
    if not is_async(measure):
        with ThreadPoolExecutor(n) as pool:
            yield measure, pool
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="shortlist-calls", daemon=True)
    thread.start()
    try:
        with ThreadPoolExecutor(n) as pool:
            yield OnLoop(measure, loop), pool
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
