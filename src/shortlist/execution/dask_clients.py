"""Dask clusters as executors. Dask is imported only when a cluster is used."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from shortlist.checks import install_command
from shortlist.errors import InvalidProblem


class ClusterLike(Protocol):
    """The part of the interface of `distributed.Client` that is used here."""

    def get_executor(self, **kwargs: Any) -> Any:
        """Return an executor that submits its calls to the cluster."""

    def submit(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Submit a call to the cluster."""

    def ncores(self) -> dict[str, int]:
        """Return the number of concurrent calls of each worker."""


def is_dask(executor: object) -> bool:
    """Return whether an `executor` argument is a Dask client, or the address of a Dask cluster."""
    return isinstance(executor, str) or (
        type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "get_executor")
    )


@contextmanager
def dask_client(executor: Any) -> Iterator[Any]:
    """Yield the given client, or a client for an address, which is closed on exit."""
    if not isinstance(executor, str):
        yield executor
        return
    distributed = _distributed()
    try:
        if not executor.startswith(
            "inproc:"
        ):  # a client without a reachable scheduler takes a minute to close
            distributed.comm.get_address_host_port(executor)
        client = distributed.Client(executor, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidProblem(
            f"no Dask scheduler answers at {executor!r} ({error}). Start one with `dask scheduler`, and "
            f"workers with `dask worker ADDRESS`; the scheduler prints its address, such as tcp://host:8786."
        ) from error
    with client:
        yield client


@contextmanager
def local_dask(n_workers: int) -> Iterator[Any]:
    """Yield a client of a local cluster with so many processes, which end on exit."""
    distributed = _distributed()
    import dask.config  # noqa: PLC0415

    # Failures of tasks come back as exceptions. What Dask would print is a heartbeat that was under way while
    # the cluster ended, with its traceback.
    quiet = {"distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical"}
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(quiet))
        cluster = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
        stack.enter_context(cluster)
        yield stack.enter_context(distributed.Client(cluster, set_as_default=False))


def _distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415
    except ImportError:
        raise InvalidProblem(f"Dask is not installed. Use: {install_command('dask')}") from None
    return distributed
