"""One interface to all workers: this thread, an executor of threads or processes, or a Dask cluster."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.execution.dask_clients import ClusterLike, dask_client, is_dask
from shortlist.execution.interrupts import deaf_to_interrupts
from shortlist.execution.tasks import Outcome, Packed, Record, Task, end_with_the_driver, get_ready, perform
from shortlist.measure import Source

_IN_FLIGHT = 3  # tasks per worker: one that runs, and others so that it need not wait
_MOST_PROCESSES = 1000
_LARGE = 1 << 20  # bytes; larger sources are sent to a Dask cluster once. Smaller ones are sent with every
# task, because a worker that fetches data from a dead worker waits for half a minute.


@dataclass(eq=False)
class Workers:
    """An executor and its properties.

    Attributes
    ----------
    executor
        The executor that runs the tasks.
    source
        The source of rewards, ready to be sent.
    n
        The number of concurrent tasks; a guess if the executor does not tell.
    is_own
        Whether the executor was created here, and may be shut down here.
    again
        Creates a new executor of the same kind, if possible.
    """

    executor: Executor
    source: Any
    n: int
    is_own: bool = False
    again: Callable[[], Executor] | None = None
    _is_warm: bool = False

    def submit(self, task: Task, record: Record | None = None) -> "Future[Outcome]":
        """Submit a task to the executor; in this thread, answers are recorded as soon as they are known."""
        if isinstance(self.executor, InThisThread):
            return self.executor.submit(perform, self.source, task, record)
        with self._starting_quietly():
            return self.executor.submit(perform, self.source, task)

    def warm_up(self) -> None:
        """Wait until workers have started, so that this time is not counted as time of calls."""
        if not self._is_warm:
            with self._starting_quietly():
                started = [self.executor.submit(get_ready, self.source, number) for number in range(self.n)]
            wait(started)
            self._is_warm = True

    def _starting_quietly(self) -> AbstractContextManager[None]:
        """Return a context in which processes may start: our own pools start them with the first tasks."""
        return deaf_to_interrupts() if self.is_own else nullcontext()

    def room(self, *, is_timed: bool, is_one_by_one: bool = False) -> int:
        """Return the maximum number of running tasks.

        With a timeout, no task should wait for another. If every answer is to be recorded at once
        (`is_one_by_one`), a thread gets no call before its last answer is recorded.
        """
        is_here = isinstance(self.executor, InThisThread)
        is_recorded_first = is_one_by_one and isinstance(self.executor, ThreadPoolExecutor)
        return self.n if is_timed or is_here or is_recorded_first else self.n * _IN_FLIGHT

    def replace(self) -> bool:
        """Replace a broken executor by a new one; return whether that was possible."""
        if self.again is None:
            return False
        self.close(is_hurried=True)
        self.executor, self.is_own, self._is_warm = self.again(), True, False
        return True

    def close(self, *, is_hurried: bool) -> None:
        """Shut down an executor that was created here; immediately, with its running tasks, if in a hurry."""
        if not self.is_own:
            return
        if _is_loky(self.executor):
            self.executor.shutdown(wait=not is_hurried, kill_workers=is_hurried)  # type: ignore[call-arg]
            return
        processes = list((getattr(self.executor, "_processes", None) or {}).values())
        # Cancelled tasks are forgotten first: the thread of a pool that is killed prints errors about them.
        self.executor.shutdown(wait=not is_hurried, cancel_futures=is_hurried)
        for process in processes if is_hurried else []:
            process.kill()


class InThisThread(Executor):
    """An executor that runs every task in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return a finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Processes:
    """A request for so many dedicated worker processes, which start and end with the run."""

    n: int

    def __post_init__(self) -> None:
        whole_number(self.n, "workers", 1, _MOST_PROCESSES)

    def start(self) -> Executor:
        """Return a pool of the processes."""
        import multiprocessing  # noqa: PLC0415

        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.n, mp_context=context, initializer=end_with_the_driver)


@contextmanager
def workers_for(
    executor: "Executor | Processes | ClusterLike | str | None", source: Source
) -> Iterator[Workers]:
    """Yield the workers for an `executor` argument; executors created for it end on exit."""
    if is_dask(executor):
        with dask_client(executor) as client:
            sent: Any = _packed(source)
            if len(sent.content) > _LARGE:
                sent = client.submit(Packed, sent.content, pure=False)
            yield Workers(client.get_executor(pure=False), sent, sum(client.ncores().values()) or _cores())
        return
    workers = _local(executor, source)
    is_hurried = True
    try:
        yield workers
        is_hurried = False
    finally:
        workers.close(is_hurried=is_hurried)


def _local(executor: Any, source: Source) -> Workers:
    if executor is None:
        return Workers(InThisThread(), source, 1)
    if isinstance(executor, Processes):
        return Workers(executor.start(), _packed(source), executor.n, is_own=True, again=executor.start)
    if not isinstance(executor, Executor):
        raise InvalidProblem(
            f"`executor` is {executor!r}; it must be a concurrent.futures.Executor, a Dask client, the "
            f"address of a Dask scheduler such as 'tcp://host:8786', or None for this thread."
        )
    n = getattr(executor, "_max_workers", None) or _cores()
    if isinstance(executor, ThreadPoolExecutor):
        return Workers(executor, source, n)
    again = _again(executor)
    return Workers(executor, source if again is None else _packed(source), n, again=again)


def _again(executor: Executor) -> Callable[[], Executor] | None:
    """Return a function that creates another pool like this one; None for an unknown type of pool."""
    kept: dict[str, Any] = {
        name: getattr(executor, f"_{name}", None)
        for name in ("max_workers", "mp_context", "context", "initializer", "initargs", "max_tasks_per_child")
    }
    kept = {name: value for name, value in kept.items() if value is not None}
    if isinstance(executor, ProcessPoolExecutor):
        return lambda: ProcessPoolExecutor(**kept)
    if _is_loky(executor):
        from loky import ProcessPoolExecutor as LokyPool  # noqa: PLC0415

        return lambda: LokyPool(**kept)
    return None


def _is_loky(executor: Executor) -> bool:
    return type(executor).__module__.startswith("loky.")


def _packed(source: Source) -> Packed:
    try:
        return Packed.of(source)
    except Exception as error:
        raise InvalidProblem(
            f"the measurement cannot be sent to other processes ({type(error).__name__}: {error}). Define "
            f"the function at the top level of a module, without open files and connections, or use threads."
        ) from error


def _cores() -> int:
    return os.cpu_count() or 1
