"""Who measures: this thread, an executor of threads or processes, or a Dask cluster, behind one interface."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.execution.dask import ClusterLike, dask_client, is_dask
from shortlist.execution.interrupts import deaf_to_interrupts
from shortlist.execution.worker import Outcome, Packed, Task, get_ready, perform
from shortlist.measure import Source

_IN_FLIGHT = 3  # tasks for each worker: one to work on, the others so that it need not wait
_MOST_PROCESSES = 1000
_LARGE = 1 << 20  # bytes; larger sources go to a Dask cluster once. Others go with every task, because a
# worker that looks for something on a dead one waits for half a minute.


@dataclass(eq=False)
class Workers:
    """An executor with what is known of it.

    Attributes
    ----------
    executor
        What takes the tasks.
    source
        What they are answered by, ready to be sent along.
    n
        How many tasks are worked on at once; a guess where the executor does not tell.
    is_own
        Whether the executor was made here, and may be ended here.
    again
        Makes a fresh executor of the same kind, where that can be done.
    """

    executor: Executor
    source: Any
    n: int
    is_own: bool = False
    again: Callable[[], Executor] | None = None
    _is_warm: bool = False

    def submit(self, task: Task) -> "Future[Outcome]":
        """Hand a task to the executor."""
        with self._starting_quietly():
            return self.executor.submit(perform, self.source, task)

    def warm_up(self) -> None:
        """Wait until workers have started, so that this does not count as time that calls take."""
        if not self._is_warm:
            with self._starting_quietly():
                started = [self.executor.submit(get_ready, self.source, number) for number in range(self.n)]
            wait(started)
            self._is_warm = True

    def _starting_quietly(self) -> AbstractContextManager[None]:
        """Return a context in which processes may start: a pool of our own does so as tasks are handed in."""
        return deaf_to_interrupts() if self.is_own else nullcontext()

    def room(self, *, is_timed: bool) -> int:
        """Return how many tasks may be under way; where they are timed, none should wait for another."""
        is_here = isinstance(self.executor, InThisThread)
        return self.n if is_timed or is_here else self.n * _IN_FLIGHT

    def replace(self) -> bool:
        """Put a fresh executor in the place of a broken one, and return whether that could be done."""
        if self.again is None:
            return False
        self.close(is_hurried=True)
        self.executor, self.is_own, self._is_warm = self.again(), True, False
        return True

    def close(self, *, is_hurried: bool) -> None:
        """End an executor that was made here; at once, with what it is doing, if in a hurry."""
        if not self.is_own:
            return
        if _is_loky(self.executor):
            self.executor.shutdown(wait=not is_hurried, kill_workers=is_hurried)  # type: ignore[call-arg]
            return
        processes = list((getattr(self.executor, "_processes", None) or {}).values())
        self.executor.shutdown(wait=not is_hurried)
        for process in processes if is_hurried else []:
            process.kill()


class InThisThread(Executor):
    """An executor that does everything at once, in the thread that asks."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return a future that is done already."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Processes:
    """A request for so many worker processes of the run's own, started afresh and ended with it."""

    n: int

    def __post_init__(self) -> None:
        whole_number(self.n, "workers", 1, _MOST_PROCESSES)

    def start(self) -> Executor:
        """Return a pool of the processes."""
        import multiprocessing  # noqa: PLC0415

        return ProcessPoolExecutor(self.n, mp_context=multiprocessing.get_context("spawn"))


@contextmanager
def workers_for(
    executor: "Executor | Processes | ClusterLike | str | None", source: Source
) -> Iterator[Workers]:
    """Yield the workers that an `executor` argument stands for; what is made for it ends with it."""
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
    """Return what makes another pool of processes like this one; None if it is no pool known to us."""
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
