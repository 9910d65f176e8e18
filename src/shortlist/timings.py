"""Which of some functions or programs is the fastest: timed in blocks, until that is certified.

All arms are timed one after the other, in random order, and then again: a block after a block. Only ratios of
times within a block are compared, so a machine that slows down during the run does no harm. The certificate
is that of blocks (docs/theory.md, section 41), about logarithms of times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from shortlist import checks
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee
from shortlist.certificates.assumptions import PAIRED, listed
from shortlist.doctor.timing_notes import Contradiction, contradictions, level_notes
from shortlist.errors import InvalidProblem
from shortlist.execution.drive import drive
from shortlist.items import Blocks
from shortlist.measure.timing import CommandTimer, FunctionTimer, Timer, TimingSource, epsilon_of
from shortlist.problem import Problem
from shortlist.result import Result, Stop
from shortlist.rewards import Gaussian
from shortlist.session import Session
from shortlist.store import Where
from shortlist.store.events import Answered, Told

Timed: TypeAlias = Callable[[], object] | str | Sequence[str]
"""What is timed: a function without arguments, or a command, as text or as a list of words."""

_CONFIDENCE = 0.95  # of the intervals, which are descriptive


def time(
    arms: Mapping[str, Timed] | Sequence[str],
    within: float = 0.02,
    *,
    m: int = 1,
    delta: float = 0.05,
    warmup: int = 1,
    budget: int | None = None,
    deadline: float | None = None,
    seed: int = 0,
    store: Where | None = None,
    name: str = "timing",
    shell: bool = False,
    ignore_failure: bool = False,
    progress: Callable[[Session], None] | bool | None = None,
) -> Timings:
    """Return which of some functions or commands is the fastest, to within 2 %.

    Functions are called without arguments, quick ones repeatedly: one timing takes 5 ms or more. A command is
    timed from the start of its process to its end; its output is discarded.

    Parameters
    ----------
    arms
        Functions or commands by name; or a list of commands, which are their own names. A command is text, or
        a list of words.
    within
        By which share the selected arms may be slower than the m-th fastest.
    m
        How many to select.
    delta
        The accepted failure probability.
    warmup
        How often each arm is run before the first timing that counts.
    budget, deadline
        The maximum number of timings, and of seconds. If they are used up, the result says what is certified
        by then.
    seed
        Determines the order of the arms within the blocks.
    store, name
        Where the run is stored, and its name there; see `Session`. Call again to resume it.
    shell
        Whether commands are run by ``/bin/sh``, whose start is then part of the times.
    ignore_failure
        Whether to time commands that end with a status other than 0; otherwise they are errors.
    progress
        Whether to show a bar, or a function that is called with the session after every block; see `select`.

    Guarantee
    ---------
    With probability at least 1 - delta, each selected arm is at most `within` slower than the m-th fastest,
    in the geometric mean of its times. It is assumed that the logarithms of ratios of times within a block
    are Gaussian, with one mean and variance for each pair of arms, and that blocks are independent. If the
    times contradict that, the sentence of the result says so, and its notes say how; if ratios change during
    the run or depend on earlier blocks, nothing is certified.

    Examples
    --------
    >>> import shortlist as sl
    >>> numbers = list(range(3000))
    >>> found = sl.time({"sum": lambda: sum(numbers), "sorted": lambda: sorted(numbers, key=str)}, within=0.1)
    >>> found.fastest
    ('sum',)
    """
    how = {"shell": shell, "ignore_failure": ignore_failure}
    run = TimingRun.of(arms, within, m=m, delta=delta, warmup=warmup, **how)
    with run.session(seed=seed, store=store, name=name) as session:
        return run.driven(session, budget=budget, deadline=deadline, progress=progress)


@dataclass(frozen=True, eq=False)
class TimingRun:
    """What is asked about times, and how they are measured."""

    problem: Problem
    source: TimingSource

    @classmethod
    def of(cls, arms: Any, within: float, *, m: int, delta: float, warmup: int, **how: bool) -> TimingRun:
        """Return the run of some functions or commands; see `time`."""
        given = _by_name(arms)
        problem = timing_problem(list(given), within, m=m, delta=delta)
        timers = [_timer(what, **how) for what in given.values()]
        said = {one: what if isinstance(what, str) else _words(what) for one, what in given.items()}
        about = {"timing": {"arms": said, **how}}
        warmup = checks.whole_number(warmup, "warmup", 0)
        return cls(problem, TimingSource(timers, list(given), warmup, about))

    @contextmanager
    def session(self, seed: int = 0, store: Where | None = None, name: str = "timing") -> Iterator[Session]:
        """Yield the session of a run, new or stored."""
        with Session(self.problem, seed=seed, store=store, name=name) as session:
            yield session

    def driven(self, session: Session, **limits: Any) -> Timings:
        """Time until the answer is certified, or a limit is reached."""
        if not session.is_done:
            self.source.warm_up()
        result = drive(session, self.source, turns=1, retries=0, **limits)
        return self.so_far(session, result)

    def so_far(self, session: Session, result: Result | None = None) -> Timings:
        """Return what is known by now."""
        return Timings(result or session.result, log_times(session), self.source.warmup)


def timing_problem(names: Sequence[str], within: float, *, m: int = 1, delta: float = 0.05) -> Problem:
    """Return the question which arms are the fastest, to within a share of their times."""
    if len(names) < 2:
        raise InvalidProblem("there is nothing to compare; give two or more functions or commands.")
    found = Problem(
        m=m,
        epsilon=epsilon_of(within),
        delta=delta,
        names=list(names),
        n=len(names),
        rewards=Gaussian(),
        goal="minimise",
        items=Blocks(lockstep=True),
    )
    if found.m == found.n:
        raise InvalidProblem(f"`m` is {m}, so that all would be selected; give more, or a smaller `m`.")
    return found


def log_times(session: Session) -> FloatArray:
    """Return the logarithms of all times, by arm and block; NaN where an arm was not timed."""
    n_told = np.zeros(session.problem.n, dtype=np.int64)
    cells: dict[tuple[int, int], float] = {}
    for event in (record.event for record in session.records):
        if not isinstance(event, Told | Answered) or event.scores is None:
            continue
        counts = event.counts if isinstance(event, Answered) else _equal_counts(event)
        firsts = event.first_pulls if isinstance(event, Answered) else n_told[event.arms]
        rows = np.repeat(event.arms, counts).tolist()
        ends = np.cumsum(counts)
        columns = np.arange(len(event.scores)) + np.repeat(firsts - (ends - counts), counts)
        cells |= zip(zip(rows, columns.tolist(), strict=True), event.scores.tolist(), strict=True)
        if isinstance(event, Told):
            n_told[event.arms] += counts
    width = max((column + 1 for _, column in cells), default=0)
    found = np.full((session.problem.n, width), np.nan)
    for place, value in cells.items():
        found[place] = value
    return found


def _equal_counts(told: Told) -> IntArray:
    """Return the numbers of blocks of the arms of an answer, which in lockstep are the same."""
    return np.full(len(told.arms), 0 if told.scores is None else len(told.scores) // len(told.arms))


def _by_name(arms: Any) -> dict[str, Any]:
    if isinstance(arms, Mapping):
        return {str(name): what for name, what in arms.items()}
    if (
        isinstance(arms, str)
        or not isinstance(arms, Sequence)
        or not all(isinstance(one, str) for one in arms)
    ):
        raise InvalidProblem(
            "the first argument must be a dictionary from names to functions or commands, or a list of "
            "commands."
        )
    if len(set(arms)) < len(arms):
        raise InvalidProblem("a command is given twice; give each a name of its own.")
    return {one: one for one in arms}


def _timer(what: Any, *, shell: bool, ignore_failure: bool) -> Timer:
    if callable(what):
        return FunctionTimer(what)
    if not isinstance(what, str | Sequence):
        raise InvalidProblem(
            f"{what!r} cannot be timed; give a function, or a command as text or a list of words."
        )
    return CommandTimer.of(what, shell=shell, ignore_failure=ignore_failure)


def _words(what: Any) -> list[str] | None:
    """Return what is recorded of an arm: the words of a command; of a function only its name is known."""
    return None if callable(what) else list(what)


# --- the result -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Timing:
    """The times of one arm.

    Attributes
    ----------
    name
        Its name.
    n_runs
        The number of its timings.
    median
        Their median, in seconds.
    ratio
        The time as a multiple of that of the fastest arm, by the geometric mean of the ratios within blocks.
    interval
        A 95 % interval of the ratio by Student's t. It is descriptive: it is not part of the guarantee, and
        does not take into account that the run stopped when the answer was clear. None for the fastest arm.
    """

    name: str
    n_runs: int
    median: float
    ratio: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Timings:
    """Which arms are the fastest, what is certified about that, and all times.

    Attributes
    ----------
    result
        The result of the run; its rewards are logarithms of seconds.
    log_times
        The logarithms of all times in seconds, by arm and block; NaN where an arm was not timed.
    warmup
        How often each arm was run before, without being counted.
    """

    result: Result
    log_times: FloatArray
    warmup: int = 0

    @property
    def fastest(self) -> tuple[str, ...]:
        """The names of the selected arms; none if nothing is certified."""
        return self.result.selected

    @property
    def within(self) -> float:
        """By which share the selected arms may be slower than the m-th fastest; infinite if unknown."""
        epsilon = self.result.certified_epsilon
        return math.expm1(epsilon) if epsilon < 700 else math.inf

    @property
    def is_certified(self) -> bool:
        """Whether what was asked for is certified.

        It is not if the ratios change during the run, or are correlated from block to block: the failure
        probability may then be many times as large as stated.
        """
        return self.result.is_answer and not any(one.is_grave for one in self.contradictions)

    @property
    def sentence(self) -> str:
        """What is certified, in words; if the times contradict the assumptions, it begins with that."""
        problem, certificate = self.result.problem, self.result.certificate
        if certificate is not None and certificate.is_void:
            return certificate.why_nothing
        if certificate is None or certificate.guarantee is None or math.isinf(self.within):
            return "Nothing is certified yet."
        sure = f"With probability at least {100 * (1 - problem.delta):.10g} %,"
        if self.contradictions:
            sure = f"The notes contradict the assumptions. If the assumptions held, w{sure[1:]}"
        names = self.fastest if problem.m == 1 else (f"each of {_listed(self.fastest)}",)
        rank = "fastest" if problem.m == 1 else f"{_ordinal(problem.m)} fastest"
        if not self.within:
            what = (
                f"{names[0]} is the fastest" if problem.m == 1 else f"{_listed(self.fastest)} are the fastest"
            )
            return f"{sure} {what}."
        return f"{sure} {names[0]} is at most {_percent_up(self.within)} slower than the {rank}."

    @property
    def rows(self) -> list[Timing]:
        """All arms, the fastest first."""
        return sorted(map(self._row, range(self.result.problem.n)), key=lambda row: row.ratio)

    @property
    def _reference(self) -> int:
        """The arm with which others are compared: the first one selected, else the one that looks fastest."""
        if len(self.result.indices):
            return int(self.result.indices[0])
        if not self.log_times.size:
            return 0
        whole = self.log_times[:, ~np.isnan(self.log_times).any(axis=0)]
        return int(np.argmin(whole.mean(axis=1))) if whole.size else 0

    def differences(self, arm: int) -> FloatArray:
        """Return the logarithms of the ratios of an arm's times to those of the fastest, block by block."""
        both: FloatArray = self.log_times[arm] - self.log_times[self._reference]
        found: FloatArray = both[~np.isnan(both)]
        return found

    def _row(self, arm: int) -> Timing:
        own = self.log_times[arm][~np.isnan(self.log_times[arm])]
        name = self.result.problem.name(arm)
        if not len(own):
            return Timing(name, 0, math.nan, math.inf, None)
        ratios, median = self.differences(arm), math.exp(np.median(own))
        if arm == self._reference or not len(ratios):
            return Timing(name, len(own), median, 1.0 if len(ratios) else math.inf, None)
        mean = float(ratios.mean())
        interval = None
        if len(ratios) > 1:
            from scipy.special import stdtrit  # noqa: PLC0415  (scipy is slow to import)

            quantile = float(stdtrit(len(ratios) - 1, (1 + _CONFIDENCE) / 2))
            half = quantile * float(ratios.std(ddof=1)) / math.sqrt(len(ratios))
            interval = (math.exp(mean - half), math.exp(mean + half))
        return Timing(name, len(own), median, math.exp(mean), interval)

    @cached_property
    def contradictions(self) -> list[Contradiction]:
        """What in the times contradicts the assumptions of the guarantee."""
        problem, reference = self.result.problem, self._reference
        pairs = {
            problem.name(arm): self.differences(arm)
            for arm in range(problem.n)
            if arm != reference and len(self.log_times[0])
        }
        return contradictions(pairs, problem.name(reference))

    @property
    def notes(self) -> list[str]:
        """What in the times contradicts the assumptions of the guarantee, or is good to know."""
        level = self.log_times[self._reference]
        return [*(one.words for one in self.contradictions), *level_notes(level[~np.isnan(level)])]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; `results` can be read like those of hyperfine."""
        rows = {row.name: row for row in self.rows}
        return {
            "fastest": list(self.fastest),
            **self.to_checks(),
            "within": None if math.isinf(self.within) else self.within,
            "asked_within": math.expm1(self.result.problem.epsilon),
            "delta": self.result.problem.delta,
            "warmup": self.warmup,
            "results": [self._entry(arm, rows[self.result.problem.name(arm)]) for arm in range(len(rows))],
            "run": self.result.to_dict(),
        }

    def to_checks(self) -> dict[str, Any]:
        """Return what is certified, and what contradicts that, as plain data for JSON."""
        return {
            "is_certified": self.is_certified,
            "sentence": self.sentence,
            "contradictions": [one.kind for one in self.contradictions],
            "notes": self.notes,
        }

    def _entry(self, arm: int, row: Timing) -> dict[str, Any]:
        times = np.exp(self.log_times[arm][~np.isnan(self.log_times[arm])])
        found: dict[str, Any] = {"command": row.name, "n_runs": row.n_runs}
        if len(times):
            spread = float(times.std(ddof=1)) if len(times) > 1 else None
            found |= {"mean": float(times.mean()), "stddev": spread, "median": row.median}
            found |= {"min": float(times.min()), "max": float(times.max())}
        ratio = row.ratio if math.isfinite(row.ratio) else None
        interval = None if row.interval is None else list(row.interval)
        return found | {"ratio": ratio, "ratio_interval": interval, "times": times.tolist()}

    def __str__(self) -> str:
        result = self.result
        blocks = f"{self.log_times.shape[1]:,} blocks" if self.log_times.shape[1] != 1 else "1 block"
        warm = {0: "no warm-up runs", 1: "after 1 warm-up run of each"}.get(
            self.warmup, f"after {self.warmup:,} warm-up runs of each"
        )
        lines = [*_table(self.rows), *_legend(self.rows), "", self.sentence]
        if result.is_answer and not self.is_certified:
            lines.append("So the answer is not certified. To time again, start a new run.")
        elif not result.is_answer and result.stop is not Stop.UNPROVED:
            asked = _percent_up(math.expm1(result.problem.epsilon))
            lines.append(f"Asked: {asked}, but {_LIMITS.get(result.stop, 'the run was interrupted')}.")
        if result.certificate is not None and result.certificate.guarantee is not None:
            lines.append(f"It is assumed that {_assumption(result.certificate.guarantee)}.")
        lines.append(f"{result.n_pulls:,} timings in {blocks}, {warm}, seed {result.seed}.")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)


_LIMITS = {
    Stop.BUDGET: "the budget was used up",
    Stop.DEADLINE: "the deadline passed",
    Stop.PERSON: "the run was stopped",
}


def _assumption(promise: Guarantee) -> str:
    """Return what is assumed of times, and whatever else is assumed beyond the theorem."""
    ratios = (
        "ratios of times within a block are log-normal, with one mean and variance for each pair, and "
        "independent from block to block"
    )
    words = zip(promise.assumptions, promise.words, strict=True)
    return listed((ratios, *(said for one, said in words if one not in PAIRED)))


def _table(rows: Sequence[Timing]) -> list[str]:
    """Return the arms as lines of text; names are last, since commands may be long."""
    cells = [("median", "ratio", "95 %, descriptive", "runs", "")]
    for row in rows:
        interval = "" if row.interval is None else f"{row.interval[0]:.3f} to {row.interval[1]:.3f}"
        ratio = "-" if math.isinf(row.ratio) else f"{row.ratio:.3f}"
        cells.append((duration(row.median), ratio, interval, f"{row.n_runs:,}", row.name))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    return [
        "  ".join(
            [*(f"{text:>{width}}" for text, width in zip(line, widths, strict=False)), line[4]]
        ).rstrip()
        for line in cells
    ]


def _legend(rows: Sequence[Timing]) -> list[str]:
    """Return a line that explains why medians are in another order than ratios, if they are."""
    medians = [row.median for row in rows if math.isfinite(row.ratio)]
    if medians == sorted(medians):
        return []
    same = len({row.n_runs for row in rows}) == 1
    which = "all runs" if same else "different numbers of blocks"
    return [f"Ratios compare times within the same blocks; medians cover {which}, so the orders may differ."]


def duration(seconds: float) -> str:
    """Return a time with four digits, in a unit that fits: 12.34 ms."""
    if math.isnan(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= size or unit == "ns":
            scaled = seconds / size
            return f"{scaled:,.{max(0, 3 - math.floor(math.log10(max(scaled, 1))))}f} {unit}"
    raise AssertionError


def _percent_up(share: float) -> str:
    """Return a share in percent with two decimals at most, rounded up; rounding errors are not."""
    return f"{math.ceil(100 * share * 100 - 1e-6) / 100:.10g} %"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _ordinal(rank: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{'th' if 10 <= rank % 100 <= 13 else suffix}"
