"""The events of a run's log. The state of a run, and its result, are functions of these alone.

A run's log starts with `Began`. Events contain only numbers, strings and arrays, so that other programs can
read them. Arms and rounds are numbered from 0.
"""

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

from shortlist.arrays import FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.tickets import Ticket


@cache
def own_version() -> str:
    """Return the version of Shortlist that is installed; "unknown" if its sources are used without that."""
    try:
        return version("shortlist")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, eq=False)
class Began:
    """The question, the strategy and the seed, which must not change during a run.

    Attributes
    ----------
    asked_for
        The strategy as requested; "auto" if Shortlist chose `strategy`.
    code
        The prefix of this run's tickets, which distinguishes them from those of other runs.
    version
        The version of Shortlist that created the run.
    reissue
        Whether a ticket may go to another worker when its lease expires.
    entropy
        What all random numbers of the run derive from: the question as it was first asked, and the seed. None
        in runs of earlier versions, where it was the seed alone.
    """

    problem: Problem
    strategy: str
    seed: int
    asked_for: str
    code: str
    version: str
    reissue: bool = True
    entropy: int | None = None


@dataclass(frozen=True)
class Bounded:
    """Bounds of the rewards that were declared after the run was created, as in `Problem`.

    Version 0.1.0 did not store the bounds of the problem file.
    """

    bounds: tuple[float, float]
    rewards: str | None = None


@dataclass(frozen=True, eq=False)
class Arranged:
    """The measurement settings of a driver that affect rewards; plain data for JSON."""

    settings: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Asked:
    """The start of a round: the arms to pull, in the order of its tickets, and how often."""

    round: int
    arms: IntArray
    counts: IntArray
    needs_variances: bool = False


@dataclass(frozen=True, eq=False)
class Leased:
    """Tickets of a round, leased to a worker until `until` (Unix time).

    A later `Leased` to the same worker extends the lease (`session/lease_rules.py`).
    """

    round: int
    arms: IntArray
    worker: str
    until: float


@dataclass(frozen=True, eq=False)
class Released:
    """A worker's tickets, released without an answer.

    `by` is empty if the worker had not started to measure them. Otherwise it names who ended the work on
    them: the worker itself, or a person who cannot know whether the worker is still measuring.
    """

    round: int
    arms: IntArray
    worker: str
    by: str = ""


@dataclass(frozen=True, eq=False)
class Told:
    """The mean rewards of some arms of a round: the first answers, which count.

    For a pilot, and only for a pilot, the sample variances are stored as well. `again` lists the arms for
    which the driver made some call more than once because it failed, or was given up as overdue. With shared
    items, `scores` has the score of each item, arm after arm, in the order in which arms take the items.
    """

    round: int
    arms: IntArray
    means: FloatArray
    variances: FloatArray | None = None
    worker: str = ""
    again: tuple[int, ...] = ()
    scores: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers to some of the calls into which tickets are split, stored until the ticket is complete.

    A call is given by its arm, the arm's number of earlier pulls and its own number of pulls. NaN is an
    unknown variance; if none is known, the array is None. `again` and `scores` are as in `Told`.
    """

    round: int
    arms: IntArray
    first_pulls: IntArray
    counts: IntArray
    means: FloatArray
    variances: FloatArray | None = None
    worker: str = ""
    again: tuple[int, ...] = ()
    scores: FloatArray | None = None


@dataclass(frozen=True)
class Conflict:
    """A second, different answer to a ticket; the first one counts."""

    round: int
    arm: int
    kept: float
    refused: float
    worker: str = ""


@dataclass(frozen=True)
class Scored:
    """Pulls that failed at every attempt, and the value that each counts as."""

    ticket: Ticket
    score: float
    reason: str


@dataclass(frozen=True)
class Suspended:
    """Why a driver stopped early; or why it waits, and until when, before a retry."""

    reason: str
    worker: str = ""
    until: float | None = None


@dataclass(frozen=True)
class Stopped:
    """A person asked all drivers of the run to stop; those that start later do not."""

    by: str = ""
    why: str = ""


@dataclass(frozen=True)
class Narrowed:
    """The run goes on with a smaller epsilon."""

    epsilon: float


@dataclass(frozen=True)
class Limited:
    """What was left of a budget did not pay for a round: a smaller one takes its place."""

    left: float


@dataclass(frozen=True, eq=False)
class Fed:
    """Results that were not asked for: the numbers of rewards of some arms, and their means.

    A row with a label replaces an earlier row of the same arm with the same label; one without rewards
    removes it, and `why` may say why. Unlabelled rows, whose labels are empty, always add to the others.
    `block` names what the rows have in common, such as a day; or `blocks` has the block of each row, and rows
    of one block follow each other. The run decides once, after all rows.
    """

    arms: IntArray
    counts: IntArray
    means: FloatArray
    variances: FloatArray | None = None
    labels: tuple[str, ...] = ()
    block: str = ""
    worker: str = ""
    why: str = ""
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Withdrawn:
    """The answer to a ticket that was taken back before its round was decided, and why."""

    round: int
    arm: int
    mean: float
    why: str
    by: str = ""


@dataclass(frozen=True, eq=False)
class Ended:
    """The end of the strategy by its own rule, with the numbers of the selected arms."""

    selected: IntArray


Event: TypeAlias = (
    Began
    | Bounded
    | Arranged
    | Asked
    | Leased
    | Released
    | Answered
    | Told
    | Conflict
    | Scored
    | Suspended
    | Stopped
    | Narrowed
    | Limited
    | Fed
    | Withdrawn
    | Ended
)


@dataclass(frozen=True, eq=False)
class Record:
    """An event in a log, with its number, from 1 without gaps, and the time when it was appended.

    The `mark` lets a store detect that a record was replaced by another one.
    """

    number: int
    at: float
    event: Event = field(repr=False)
    mark: bytes = field(default=b"", repr=False)
