"""The code that runs in a worker: answers the calls of a task, block by block, and checks every answer.

A task is all that is sent to a worker. It has a unique number, and calls that no other task of the run has,
so an executor that caches the results of equal tasks never sees two equal ones.
"""

import contextlib
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.errors import FinalFailure, MeasurementFailed, NotRewards
from shortlist.measure import Calls, Source, Summaries, scores_of, summary_of

_FLOAT = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Task:
    """Calls to be answered together: blocks of `together` calls, of which the last may be shorter.

    With shared items the outcome has single scores (`keeps_scores`). If the source answers each call by
    itself, only those that `is_due` are made.
    """

    number: int
    calls: Calls
    together: int
    keeps_scores: bool = False
    is_due: BoolArray | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a task.

    Attributes
    ----------
    means, variances
        For each call up to the end of the last block that was tried, in order. NaN is an unknown variance.
    errors
        The errors in that last block, by the number of the call; a task ends at the first block with one.
    seconds
        How long the calls took.
    is_shared
        Whether several calls share one failure, so that they did not fail independently.
    scores
        With shared items: the score of each item, one array per call.
    """

    means: FloatArray
    variances: FloatArray
    errors: dict[int, BaseException] = field(default_factory=dict)
    seconds: float = 0.0
    is_shared: bool = False
    scores: list[FloatArray] | None = None

    def first(self, n_calls: int) -> "Outcome":
        """Return the outcome of the first calls only, without errors."""
        scores = None if self.scores is None else self.scores[:n_calls]
        return Outcome(self.means[:n_calls], self.variances[:n_calls], scores=scores)

    def after(self, n_calls: int) -> "Outcome":
        """Return the outcome without the first calls."""
        scores = None if self.scores is None else self.scores[n_calls:]
        return replace(self, means=self.means[n_calls:], variances=self.variances[n_calls:], scores=scores)


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of the calls of several tasks, none of which failed."""
    means, variances = (
        np.concatenate([getattr(one, column) for one in outcomes]) for column in ("means", "variances")
    )
    has_scores = all(one.scores is not None for one in outcomes)
    scores = [call for one in outcomes for call in one.scores or ()] if has_scores else None
    return Outcome(means, variances, scores=scores)


Record: TypeAlias = Callable[[Outcome, BoolArray], bool]
"""Records some calls of an outcome that is not complete; returns whether to go on."""


@dataclass(frozen=True)
class Packed:
    """A pickled source: pickled once, and unpickled once by each worker."""

    content: bytes

    @classmethod
    def of(cls, source: Source) -> "Packed":
        """Return a pickled source; cloudpickle, if installed, can pickle any function."""
        try:
            from cloudpickle import dumps  # noqa: PLC0415
        except ImportError:
            from pickle import dumps  # noqa: PLC0415
        return cls(dumps(source))


@lru_cache(maxsize=2)
def _unpacked(packed: Packed) -> Source:
    try:
        source: Source = pickle.loads(packed.content)
    except (AttributeError, ImportError) as error:  # another attempt would find the same
        raise FinalFailure(
            f"worker processes cannot load the measurement: {error}. Define it in a module that they can "
            f"import, not at a prompt or in a notebook; or install cloudpickle; or use threads "
            f"(concurrency=4 instead of an executor)."
        ) from None
    return source


def end_with_the_driver() -> None:
    """End this worker process as soon as the process that started it has ended, even if it was killed.

    A terminal that is closed sends SIGHUP to every process; it is left to the driver.
    """
    from multiprocessing import parent_process  # noqa: PLC0415

    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if (driver := parent_process()) is not None:
        threading.Thread(target=_end_after, args=(driver,), daemon=True).start()


def _end_after(driver: Any) -> None:
    driver.join()
    os._exit(1)  # nobody is left to take an answer


def get_ready(source: Source | Packed, number: int) -> int:
    """Import everything that `perform` needs; return the number, which makes all requests distinct."""
    if isinstance(source, Packed):
        _unpacked(source)
    time.sleep(0.05)  # so that a second worker gets the next one
    return number


def perform(source: Source | Packed, task: Task, record: Record | None = None) -> Outcome:
    """Answer the calls of a task, up to and including the first block in which one fails.

    Answers that a source has earlier than others are passed to `record`, if it is given.
    """
    is_elsewhere = isinstance(source, Packed)
    if isinstance(source, Packed):
        _leave_interrupts_to_the_driver()
        source = _unpacked(source)
    start = time.perf_counter()
    means, variances = np.full((2, len(task.calls)), np.nan)
    scores = [np.full(count, np.nan) for count in task.calls.counts.tolist()] if task.keeps_scores else None
    if (each := getattr(source, "answer_each", None)) is not None:
        outcome = Outcome(means, variances, scores=scores)
        errors = _answer_each(each, task, outcome, record)
        found = {place: _portable(e) if is_elsewhere else e for place, e in errors.items()}
        is_shared = len({id(error) for error in errors.values()}) < len(errors)
        return replace(outcome, errors=found, seconds=time.perf_counter() - start, is_shared=is_shared)
    for first in range(0, len(task.calls), task.together):
        stop = min(first + task.together, len(task.calls))
        kept = None if scores is None else scores[first:stop]
        errors = _answer(source, task.calls[first:stop], means[first:stop], variances[first:stop], kept)
        if errors:
            found = {first + place: _portable(e) if is_elsewhere else e for place, e in errors.items()}
            is_shared = len({id(error) for error in errors.values()}) < len(errors)
            tried = Outcome(means, variances, scores=scores).first(stop)
            return replace(tried, errors=found, seconds=time.perf_counter() - start, is_shared=is_shared)
    return Outcome(means, variances, seconds=time.perf_counter() - start, scores=scores)


def _answer(
    source: Source,
    calls: Calls,
    means: FloatArray,
    variances: FloatArray,
    scores: list[FloatArray] | None,
) -> dict[int, Any]:
    """Fill in the answers to a block of calls; return the errors by call."""
    try:
        answers = source.answers(calls)
        if len(answers) != len(calls):
            raise NotRewards(f"there were {len(answers)} answers to {len(calls)} calls.")
    except (Exception, SystemExit) as error:
        return dict.fromkeys(range(len(calls)), error)
    if scores is None and not isinstance(answers, Summaries):
        answers = _moments(calls, answers) or answers
    if isinstance(answers, Summaries):
        return _take_arrays(calls, answers, means, variances)
    return _take_each(calls, answers, means, variances, scores)


def _answer_each(
    each: Callable[..., None], task: Task, outcome: Outcome, record: Record | None
) -> dict[int, BaseException]:
    """Fill in the answers to the calls of a task that are due, each when it is known; return the errors."""
    calls, scores = task.calls, outcome.scores
    is_due = np.ones(len(calls), dtype=np.bool_) if task.is_due is None else task.is_due
    due = np.flatnonzero(is_due).tolist()
    is_open = is_due.copy()
    errors: dict[int, BaseException] = {}

    def take(answers: Mapping[int, Any]) -> bool:
        is_new = np.zeros_like(is_open)
        for number, answer in answers.items():
            place = due[number]
            one, is_open[place] = slice(place, place + 1), False
            kept = None if scores is None else scores[one]
            if isinstance(answer, Exception):
                errors[place] = answer
            elif wrong := _take_each(calls[one], [answer], outcome.means[one], outcome.variances[one], kept):
                errors[place] = wrong[0]
            else:
                is_new[place] = True
        return (record is None or record(outcome, is_new)) and not errors

    chosen = calls.take(is_due)
    try:
        each(chosen, take)
        if is_open.any():
            raise NotRewards(f"there were {len(due) - is_open.sum()} answers to {len(due)} calls.")
    except (Exception, SystemExit) as error:
        errors |= dict.fromkeys(np.flatnonzero(is_open).tolist(), error)
    return errors


def _moments(calls: Calls, answers: Sequence[Any]) -> Summaries | None:
    """Return the moments of answers that are all valid arrays of rewards, without a loop over them."""
    if set(map(type, answers)) != {np.ndarray}:
        return None
    if {*map(attrgetter("ndim"), answers)} != {1} or {*map(attrgetter("dtype"), answers)} != {_FLOAT}:
        return None
    rewards, ends = np.concatenate(answers), np.cumsum(calls.counts)
    if [*map(len, answers)] != calls.counts.tolist() or not np.isfinite(rewards).all():
        return None
    means, variances = np.full((2, len(calls)), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        for count in np.unique(calls.counts).tolist():
            of = np.flatnonzero(calls.counts == count)
            rows = rewards[(ends[of] - count)[:, None] + np.arange(count)]
            means[of] = rows.mean(axis=1)
            if count > 1:
                variances[of] = rows.var(axis=1, ddof=1)
    is_known = np.isfinite(variances)
    return Summaries(calls.counts, means, np.where(is_known, variances, np.nan))


def _take_arrays(
    calls: Calls, answers: Summaries, means: FloatArray, variances: FloatArray
) -> dict[int, BaseException]:
    means[:], variances[:] = answers.means, answers.variances
    is_other, is_wrong = answers.counts != calls.counts, ~np.isfinite(answers.means)
    return {
        int(place): NotRewards(
            f"arm number {calls.arms[place]} was to be pulled {calls.counts[place]} times, but the summary "
            f"is of {answers.counts[place]} rewards."
            if is_other[place]
            else f"the mean of {calls.counts[place]} rewards of arm number {calls.arms[place]} is "
            f"{answers.means[place]}; NaN, infinity and masked values are not rewards."
        )
        for place in np.flatnonzero(is_other | is_wrong)
    }


def _take_each(
    calls: Calls,
    answers: Sequence[Any],
    means: FloatArray,
    variances: FloatArray,
    scores: list[FloatArray] | None,
) -> dict[int, BaseException]:
    errors: dict[int, BaseException] = {}
    for place, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        try:
            summary = summary_of(answer, call.count, f"arm number {call.arm}")
            if scores is not None:
                scores[place][:] = scores_of(summary, f"arm number {call.arm}")
        except MeasurementFailed as error:
            errors[place] = error
        else:
            means[place] = summary.mean
            variances[place] = np.nan if summary.variance is None else summary.variance
    return errors


def _portable(error: BaseException) -> BaseException:
    """Return an error that can be pickled, with its traceback as a note."""
    said = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is not type(error):
            raise TypeError
    except Exception:
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    copy.add_note(f"In worker process {os.getpid()}:\n{said}")
    return copy  # type: ignore[no-any-return]


def _leave_interrupts_to_the_driver() -> None:
    """Ignore Ctrl-C, which a terminal sends to every process, in worker processes."""
    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ValueError, OSError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
