"""Opening the store and the run that a command names."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shortlist.errors import InvalidProblem, NoSuchRun

if TYPE_CHECKING:
    from shortlist.session.log import RunLog
    from shortlist.store import Store

NOWHERE = ":memory:"


@contextmanager
def reading(where: str) -> "Iterator[Store]":
    """Yield a store, opened read-only."""
    from shortlist.store import open_store

    _refuse_missing(where)
    with closing(open_store(where, read_only=True, must_exist=True)) as store:
        yield store


@contextmanager
def writing(where: str, *, must_exist: bool = False) -> "Iterator[Store]":
    """Yield a store, opened for writing."""
    from shortlist.store import open_store

    if must_exist:
        _refuse_missing(where)
    with closing(open_store(where, must_exist=must_exist)) as store:
        yield store


def look_at(store: "Store", run: str) -> "RunLog":
    """Return the log of a run, without writing to it; raise NoSuchRun if there is none."""
    from shortlist.session.log import RunLog

    refuse_file(store, run)
    log = RunLog(store, run)
    log.catch_up()
    _ = log.history
    return log


def refuse_file(store: "Store", run: str) -> None:
    """Raise NoSuchRun with an explanation if a problem file was given instead of a run."""
    if run.endswith(".toml") and run not in store.runs():
        raise NoSuchRun(
            f"{run} is a problem file, but this command needs the name of a run. `shortlist begin {run}` "
            f"creates a run and prints its name; `shortlist list` shows all runs."
        )


def name_for(file: Path, name: str | None, strategy: str, seed: int) -> str:
    """Return the name of the run of a file, so that the same command resumes it and others do not."""
    parts = [file.stem if name is None else name]
    if parts[0].startswith("-"):
        raise InvalidProblem(
            f"the name of the run would be {parts[0]!r}, which looks like an option; give another name "
            f"with --name."
        )
    if name is not None:
        return name
    if strategy != "auto":
        parts.append(strategy)
    if seed != 0:
        parts.append(f"seed{seed}")
    return "-".join(parts)


def shown(where: str) -> str:
    """Return an address without its password."""
    from shortlist.store.address import shown

    return shown(where)


def who(worker: str | None) -> str:
    """Return the name of the worker; by default user@machine."""
    from shortlist.session.worker_names import checked_worker

    if worker is not None:
        return checked_worker(worker, "--worker")
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


def _refuse_missing(where: str) -> None:
    if where == NOWHERE:
        raise InvalidProblem(f"nothing is saved in {NOWHERE}; give the store of the run with --store.")
    if "://" not in where and where.strip() and not os.path.exists(os.path.expanduser(where)):
        raise NoSuchRun(
            f"there is no store {shown(where)}. `shortlist run FILE` and `shortlist begin FILE` create one. "
            f"If yours is elsewhere, give it with --store or SHORTLIST_STORE."
        )
