"""Copying of logs from one store to another."""

import itertools

from shortlist.errors import NoSuchRun, StoreTrouble
from shortlist.store.codec import encoded
from shortlist.store.events import Record
from shortlist.store.protocol import Store


def copy_run(source: Store, target: Store, run: str) -> int:
    """Copy a run's log record by record, with its times; return the number of records written.

    If the target already contains the log, or its beginning, only the missing records are written.

    Raises
    ------
    NoSuchRun
        If the source has no run of that name.
    StoreTrouble
        If the target has another log under that name, or a longer one. It is left unchanged.
    """
    if run not in source.runs():
        raise NoSuchRun(f"There is no run {run!r} to copy. Existing runs: {_listed(source.runs())}.")
    if run not in target.runs():
        return target.restore(run, source.read(run))
    for number, (ours, theirs) in enumerate(itertools.zip_longest(source.read(run), target.read(run)), 1):
        if theirs is None:
            n_there = number - 1
            return target.restore(run, itertools.islice(source.read(run), n_there, None), n_there)
        if not _same(ours, theirs):
            how = f"continues after record {number - 1}"
            if ours is not None:
                how = f"differs from record {number} on"
            raise StoreTrouble(
                f"The target already has a run {run!r}, and its log {how}. "
                f"Nothing was written. Copy to another store, or remove the run there first."
            )
    return 0


def verify_copy(source: Store, target: Store, run: str) -> int:
    """Compare a copy with the original, which may have grown since; return its number of records.

    Raises
    ------
    StoreTrouble
        If they differ.
    """
    number = 0
    for number, (ours, theirs) in enumerate(zip(source.read(run), target.read(run), strict=False), 1):
        if not _same(ours, theirs):
            raise StoreTrouble(f"Record {number} of the copy of run {run!r} differs from the original.")
    return number


def _same(ours: Record | None, theirs: Record | None) -> bool:
    if ours is None or theirs is None:
        return False
    return (ours.number, ours.at, encoded(ours.event)) == (theirs.number, theirs.at, encoded(theirs.event))


def _listed(runs: list[str], most: int = 10) -> str:
    more = f" and {len(runs) - most} more" if len(runs) > most else ""
    return (", ".join(map(repr, runs[:most])) or "none") + more
