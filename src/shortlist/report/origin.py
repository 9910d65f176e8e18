"""The provenance of a run as recorded in its log, and the command that resumes it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.session.log import RunLog
from shortlist.session.settings import NOTED
from shortlist.session.state import RunState
from shortlist.store.events import Ended, Record

_SOME_FILE = "FILE.toml"  # placeholder if the log does not contain the name of the problem file


@dataclass(frozen=True, eq=False)
class Origin:
    """The provenance of a run: what is stored of it besides the answers.

    Attributes
    ----------
    run, code
        Its name in the store, and the prefix of its tickets.
    asked_for
        The strategy as requested; "auto" if Shortlist chose it.
    version
        The version of Shortlist that started the run.
    settings
        How rewards were measured, as plain data; None if all were measured by hand.
    began_at, changed_at, ended_at
        Times, in seconds since 1970 (Unix time).
    n_events
        The number of records in its log.
    """

    run: str
    code: str
    asked_for: str
    version: str
    settings: Mapping[str, Any] | None
    began_at: float
    changed_at: float
    ended_at: float | None
    n_events: int

    @property
    def file(self) -> str:
        """The name of the problem file when the run was started, or a placeholder."""
        return str((self.settings or {}).get(NOTED, _SOME_FILE))


def origin_of(run: str, history: RunState, records: Sequence[Record]) -> Origin:
    """Return the provenance of a run."""
    began = history.began
    ends = (record.at for record in records if isinstance(record.event, Ended))
    ended = next(ends, None) if history.is_final else None
    return Origin(
        *(run, began.code, began.asked_for, began.version, history.settings),
        *(records[0].at, records[-1].at, ended, len(records)),
    )


def origin_of_log(log: RunLog) -> Origin:
    """Return the provenance of a run whose log has been read."""
    began = log.history.began
    times = log.began_at or 0.0, log.changed_at or 0.0, log.ended_at
    settings = log.history.settings
    return Origin(log.run, began.code, began.asked_for, began.version, settings, *times, log.n_events)


def resuming(origin: Origin, seed: int, store: str = "", *, is_fed: bool = False) -> str:
    """Return what resumes a run: `shortlist run`, `ask` or `feed`, or the call that measured it."""
    where = ["--store", store] if store else []
    if is_fed and origin.settings is None:
        return shlex.join(["shortlist", "feed", origin.run, "results.csv", *where])
    if origin.settings is not None and "measure" not in origin.settings:
        given = f", store={store!r}" if store else ""
        return f"sl.select(measure, problem{given}, name={origin.run!r})  # and a budget, if it has one"
    if origin.settings is None:
        return shlex.join(["shortlist", "ask", origin.run, "-o", "tickets.csv", *where])
    words = ["shortlist", "run", origin.file, "--name", origin.run]
    words += [] if origin.asked_for == "auto" else ["--strategy", origin.asked_for]
    words += [] if seed == 0 else ["--seed", str(seed)]
    return shlex.join([*words, *where])
