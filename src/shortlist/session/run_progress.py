"""The progress of a run for lists of many runs, without recomputing its decisions if the log says enough.

Every record is read and checked against its checksum, so damage is found. Records that a list does not need
are not decoded: in a finished round, every ticket was answered. Decisions are recomputed if the log leaves
something open, for runs that another version started, since that version may have decided differently, and
for ended runs whose rewards may void the guarantee.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.session.log import RunLog
from shortlist.session.state import is_limit
from shortlist.store import Answered, Asked, Began, Ended, Store, Suspended, Told
from shortlist.store.chain import Row, record
from shortlist.store.codec import decoded
from shortlist.store.events import own_version
from shortlist.store.sql import SqlStore
from shortlist.strategies import strategy_for

_FEW = 50  # records kept in memory while reading, to avoid reading them again
_UNPACKED = frozenset({"began", "asked", "suspended", "ended"})
_SILENT = frozenset({"released", "conflict", "scored", "arranged", "stopped"})
"""Kinds of events that a list does not need."""


@dataclass(frozen=True, eq=False)
class RunProgress:
    """The progress of a run.

    Attributes
    ----------
    n_pulls, n_rounds
        The number of pulls, as in `RunState`, and of complete rounds.
    n_partial
        The number of pulls that are recorded for tickets without an answer, beside `n_pulls`; on shared items
        `n_pulls` includes all.
    is_final, is_suspended, is_stopped
        Whether the run has ended by its own rule; whether a driver stopped early and no answer arrived
        since; and whether that was because of a limit, or because somebody asked it to stop.
    is_void
        Whether the run has ended, and its rewards contradict what the proof assumes.
    began_at, changed_at, ended_at
        As in `RunLog`.
    """

    run: str
    began: Began
    n_pulls: int
    n_partial: int
    n_rounds: int
    is_final: bool
    is_suspended: bool
    is_stopped: bool
    is_void: bool
    began_at: float | None
    changed_at: float | None
    ended_at: float | None


def read_progress(store: Store, run: str) -> RunProgress | None:
    """Return the progress of a run; None if there is no such run.

    Raises
    ------
    StoreTrouble
        If its log is damaged.
    """
    log, found, first = RunLog(store, run), None, list[Row]()
    if isinstance(store, SqlStore):
        with suppress(Exception):  # it is raised again below
            rows = store.rows(run)
            first = list(islice(rows, _FEW))
            found = _read(run, chain(first, rows))
    if found is None:
        is_all = 0 < len(first) < _FEW
        log.catch_up([record(row, run) for row in first] if is_all else None)
        found = progress_of_log(log) if log.has_begun else None
    return found


def progress_of_log(log: RunLog) -> RunProgress:
    """Return the progress of a run whose log has been read."""
    history = log.history
    return RunProgress(
        *(log.run, history.began, history.n_pulls + history.n_fed, history.n_made - history.n_pulls),
        *(history.n_rounds, history.is_final, history.suspended is not None, history.is_stopped),
        history.is_void,
        *(log.began_at, log.changed_at, log.ended_at),
    )


def _read(run: str, rows: Iterable[Row]) -> RunProgress | None:
    """Return the progress of a run; None if its decisions must be recomputed to know it."""
    began, asked, ended_at = None, None, None
    suspended: Suspended | None = None  # why a driver stopped
    began_at = changed_at = 0.0
    pulls = np.zeros(0, dtype=np.int64)  # of answered tickets, by arm
    answers: list[bytes] = []  # of the last round
    parts: list[bytes] = []  # answers to parts of tickets: of the last round or, on shared items, of all
    for number, kind, at, body, _ in rows:
        changed_at = at
        if kind == "told":
            answers.append(body)
            suspended = None
        elif kind == "answered":  # a part of a ticket, which counts when the ticket is complete, or a score
            suspended = None
            parts.append(body)
        elif kind == "leased":
            suspended = None if suspended is not None and is_limit(suspended) else suspended
        elif kind in _UNPACKED:
            event = decoded(kind, body)
            match event:
                case Began() if number == 1 and event.version == own_version():
                    began, began_at = event, at
                    pulls = np.zeros(began.problem.n, dtype=np.int64)
                case Asked() if began and event.round == (0 if asked is None else asked.round + 1):
                    if asked is not None:
                        pulls[asked.arms] += asked.counts
                    asked = event
                    answers.clear()
                    parts = parts if began.problem.items is not None else []
                case Suspended():
                    suspended = event if event.until is None else suspended
                case Ended():
                    ended_at = ended_at or at
                case _:
                    return None
        elif kind not in _SILENT:
            return None
    if began is None or asked is None:
        return None
    is_final = ended_at is not None
    anytime = strategy_for(began.strategy, began.problem).anytime
    if is_final and anytime is not None and anytime.may_be_void:
        return None
    is_told = np.ones(len(asked.arms), dtype=bool) if is_final else _told(asked, answers)
    if is_told is None or (is_told.all() and not is_final):
        return None  # a complete round may have been the last
    pulls[asked.arms[is_told]] += asked.counts[is_told]
    n_pulls, n_beyond = int(pulls.sum()), _n_beyond(pulls, parts)
    numbers = (n_pulls, n_beyond) if began.problem.items is None else (n_pulls + n_beyond, 0)
    n_rounds = asked.round + is_final
    is_stopped = suspended is not None and is_limit(suspended)
    state = is_final, suspended is not None, is_stopped, False
    return RunProgress(run, began, *numbers, n_rounds, *state, began_at, changed_at, ended_at)


def _n_beyond(pulls: IntArray, parts: Iterable[bytes]) -> int:
    """Return the number of pulls in answers to calls that are not among those of answered tickets."""
    found: dict[tuple[int, int], int] = {}
    for body in parts:
        if isinstance(one := decoded("answered", body), Answered):
            is_beyond = one.first_pulls >= pulls[one.arms]
            keys = zip(one.arms[is_beyond].tolist(), one.first_pulls[is_beyond].tolist(), strict=True)
            found |= zip(keys, one.counts[is_beyond].tolist(), strict=True)
    return sum(found.values())


def _told(asked: Asked, answers: Iterable[bytes]) -> BoolArray | None:
    """Return which tickets of a round have an answer; None unless each answer belongs to one ticket of it."""
    told = [one for body in answers if isinstance(one := decoded("told", body), Told)]
    if any(one.round != asked.round for one in told):
        return None
    arms = np.concatenate([one.arms for one in told]) if told else np.empty(0, dtype=np.int64)
    is_told = np.isin(asked.arms, arms)
    return is_told if is_told.sum() == len(arms) else None
