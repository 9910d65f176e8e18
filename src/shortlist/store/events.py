"""The events of a run's log. The state of a run, and its result, are functions of these alone.

A run's log begins with `Began`. Events hold plain numbers, words and arrays, nothing that could only be
read by the program that wrote it. Arms and rounds are numbered from 0.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from shortlist.arrays import FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.tickets import Ticket


@dataclass(frozen=True, eq=False)
class Began:
    """What is asked, who decides, and the seed: what must not change while a run lasts.

    Attributes
    ----------
    asked_for
        The strategy as it was asked for; "auto" where `strategy` was chosen.
    code
        A few letters by which tickets of this run are told from those of others.
    version
        The version of Shortlist that began the run.
    reissue
        Whether a ticket may go to another worker when its lease has run out.
    """

    problem: Problem
    strategy: str
    seed: int
    asked_for: str
    code: str
    version: str
    reissue: bool = True


@dataclass(frozen=True)
class Bounded:
    """Bounds of the rewards that were declared after the run began, as `Problem` has them.

    Runs begun by version 0.1.0 did not store the bounds of their problem file.
    """

    bounds: tuple[float, float]
    rewards: str | None = None


@dataclass(frozen=True, eq=False)
class Arranged:
    """How a driver measures, as far as rewards depend on it; plain data, fit for JSON."""

    settings: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Asked:
    """A round was opened: the arms to pull, in the order of its tickets, and how often."""

    round: int
    arms: IntArray
    counts: IntArray
    needs_variances: bool = False


@dataclass(frozen=True, eq=False)
class Leased:
    """Tickets of a round were handed to a worker, who has until then to answer them; seconds since 1970."""

    round: int
    arms: IntArray
    worker: str
    until: float


@dataclass(frozen=True, eq=False)
class Released:
    """A worker's tickets were given back without an answer.

    `by` is empty where the worker had not begun to measure them. Otherwise it says who ended the work on
    them: the worker itself, or a person who took them away and cannot know what the worker is doing.
    """

    round: int
    arms: IntArray
    worker: str
    by: str = ""


@dataclass(frozen=True, eq=False)
class Told:
    """The mean rewards of some arms of a round, as first told.

    Of a pilot, and only of it, the sample variances are kept as well. `again` names those arms for which the
    driver that tells this made some call more than once: it failed, or was given up as overdue.
    """

    round: int
    arms: IntArray
    means: FloatArray
    variances: FloatArray | None = None
    worker: str = ""
    again: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers to some of the calls into which tickets are split, kept until the whole ticket can be told.

    A call is given by its arm, the arm's number of earlier pulls and its own number of pulls. NaN is an
    unknown variance; where none is known there is no such array. `again` is as in `Told`.
    """

    round: int
    arms: IntArray
    first_pulls: IntArray
    counts: IntArray
    means: FloatArray
    variances: FloatArray | None = None
    worker: str = ""
    again: tuple[int, ...] = ()


@dataclass(frozen=True)
class Conflict:
    """A second, different answer to a ticket; the first stands."""

    round: int
    arm: int
    kept: float
    refused: float
    worker: str = ""


@dataclass(frozen=True)
class Scored:
    """Pulls that failed every time they were tried, and what each was counted as instead."""

    ticket: Ticket
    score: float
    reason: str


@dataclass(frozen=True)
class Suspended:
    """A driver stopped short, and why; or it waits, until then, to try something again."""

    reason: str
    worker: str = ""
    until: float | None = None


@dataclass(frozen=True, eq=False)
class Ended:
    """The strategy ended by its own rule, with this selection, by number."""

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
    | Ended
)


@dataclass(frozen=True, eq=False)
class Record:
    """An event in its place in a log: numbered from 1 without gaps, with the time when it was appended.

    By its `mark` a store knows a record again, should another stand in its place one day.
    """

    number: int
    at: float
    event: Event = field(repr=False)
    mark: bytes = field(default=b"", repr=False)
