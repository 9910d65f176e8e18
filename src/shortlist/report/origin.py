"""Where a run comes from, as its log has it, and how to go on with it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.session.state import RunState
from shortlist.session.transitions import NOTED
from shortlist.store.events import Ended, Record

_SOME_FILE = "FILE.toml"  # stands for the problem file where a log does not have its name


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a run comes from: what is kept of it beside the answers.

    Attributes
    ----------
    run, code
        Its name in the store, and the letters with which its tickets begin.
    asked_for
        The strategy as it was asked for; "auto" if it was chosen.
    version
        The version of Shortlist that began it.
    settings
        How rewards were measured, as plain data; None if nobody but people measured.
    began_at, changed_at, ended_at
        Moments, in seconds since 1970.
    n_events
        How many records its log has.
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
        """The problem file as it was called when the run began, or what stands for it."""
        return str((self.settings or {}).get(NOTED, _SOME_FILE))


def origin_of(run: str, history: RunState, records: Sequence[Record]) -> Origin:
    """Return where a run comes from."""
    began = history.began
    ended = next((record.at for record in records if isinstance(record.event, Ended)), None)
    return Origin(
        *(run, began.code, began.asked_for, began.version, history.settings),
        *(records[0].at, records[-1].at, ended, len(records)),
    )


def resuming(origin: Origin, seed: int, store: str = "") -> str:
    """Return the command that goes on with a run: to measure on, or to ask for tickets."""
    where = ["--store", store] if store else []
    if origin.settings is None or "measure" not in origin.settings:
        return shlex.join(["shortlist", "ask", origin.run, "--csv", *where])
    words = ["shortlist", "run", origin.file, "--name", origin.run]
    words += [] if origin.asked_for == "auto" else ["--strategy", origin.asked_for]
    words += [] if seed == 0 else ["--seed", str(seed)]
    return shlex.join([*words, *where])
