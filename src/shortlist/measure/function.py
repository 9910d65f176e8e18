"""A Python function as the source of rewards: how it is called and what it may return."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import is_whole
from shortlist.errors import FinalFailure, NotRewards
from shortlist.measure.randomness import seeded
from shortlist.measure.source import Call


@dataclass(frozen=True)
class Summary:
    """Several rewards of one arm, given by their number, their mean and, if known, their sample variance.

    `variance` has the denominator `count - 1`; only strategies for unknown variances need it. `scores` are
    the single rewards, if they are known.

    A function that measures many arms at once may return one summary for all of them, with an array of any
    library in place of each number: see `vectorised`.
    """

    count: int | Any
    mean: float | Any
    variance: float | Any | None = None
    scores: FloatArray | None = field(default=None, repr=False, compare=False)


Measure: TypeAlias = Callable[[int, int, np.random.Generator], Any]
"""``measure(arm, count, rng)`` returns `count` fresh rewards of the arm, or a Summary of them."""


@dataclass(frozen=True)
class FunctionSource:
    """A Python function as a source of rewards, called once per call.

    A single number in place of a list is accepted only if all calls are for one pull (`is_single`). Otherwise
    it is refused at the first call, not at the first one for several pulls, much later.
    """

    measure: Measure
    together: int = 1
    is_single: bool = False

    @property
    def is_reproducible(self) -> bool:
        """Whether the same call always gets the same answer; unknown for most functions."""
        return getattr(self.measure, "is_reproducible", False) is True

    def answers(self, calls: Sequence[Call]) -> list[Any]:
        """Return the function's result for each call."""
        answers = [self.measure(call.arm, call.count, seeded(call)) for call in calls]
        for answer in [] if self.is_single else answers:
            refuse_single(answer, "a list of `count` rewards, or shortlist.Summary(count, mean)")
        return answers


def refuse_single(answer: Any, wanted: str) -> None:
    """Refuse a single number in place of a list, which a later call for several pulls could not return."""
    if isinstance(answer, float | int | np.generic):
        raise FinalFailure(
            f"the function returned the single number {answer}. Return {wanted}; for one pull [{answer}]. If "
            f"the function measures one pull at a time, set `pulls_per_call` to 1."
        )


def summary_of(answer: Any, count: int, arm: str, *, is_binary: bool = False) -> Summary:
    """Return the number, mean and variance of the rewards that a measurement returned, if they are valid.

    Where rewards are 0 or 1 (`is_binary`), False and True stand for them.

    Raises
    ------
    NotRewards
        For a wrong number of rewards, and for anything that is not a finite real number.
    """
    if isinstance(answer, Summary):
        return answer if answer.scores is not None else _checked_summary(answer, count, arm)
    if isinstance(answer, tuple) and len(answer) == 2 and is_whole(answer[0]):
        if count == 2:
            raise NotRewards(
                f"{arm} was pulled twice and returned the tuple {answer!r}, which could be two rewards or "
                f"a (count, mean) summary. Return a list of rewards, or shortlist.Summary(count, mean)."
            )
        return _checked_summary(Summary(*answer), count, arm)
    return _summary_of_rewards(answer, count, arm, is_binary=is_binary)


def scores_of(summary: Summary, arm: str) -> FloatArray:
    """Return the single scores on shared items; raise NotRewards if only their mean was given."""
    if summary.scores is None:
        raise NotRewards(f"{arm} returned a summary; with shared items, return the score of each item.")
    return summary.scores


def _checked_summary(summary: Summary, count: int, arm: str) -> Summary:
    if summary.count != count:
        raise NotRewards(
            f"{arm} was to be pulled {count} times, but the summary is of {summary.count!r} rewards. "
            f"Return exactly `count` rewards."
        )
    mean = _summary_of_rewards([summary.mean], 1, arm).mean
    if summary.variance is None:
        return Summary(count, mean)
    variance = _summary_of_rewards([summary.variance], 1, arm).mean
    if variance < 0:
        raise NotRewards(
            f"{arm} returned a summary with the variance {variance!r}; a variance cannot be negative."
        )
    return Summary(count, mean, variance)


def _summary_of_rewards(answer: Any, count: int, arm: str, *, is_binary: bool = False) -> Summary:
    if np.ma.is_masked(answer):
        place = np.flatnonzero(np.ma.getmaskarray(answer))[0] + 1
        raise NotRewards(
            f"reward {place} of {count} of {arm} is masked; return a number for each. A failed measurement "
            f"should raise an exception, or return a score that you choose."
        )
    try:
        rewards = np.asarray(answer)
    except ValueError:  # ragged
        raise NotRewards(f"{arm} returned {_short(answer)}; return a flat list of {count} numbers.") from None
    if rewards.ndim == 0 and count == 1 and rewards.dtype.kind in "biuf":
        answer, rewards = [answer], rewards[None]
    if rewards.shape != (count,):
        raise NotRewards(
            f"{arm} was to be pulled {count} times but returned {_short(answer)} of shape {rewards.shape}; "
            f"return a flat list of exactly {count} rewards."
        )
    has_boolean = isinstance(answer, list | tuple) and any(isinstance(r, bool | np.bool_) for r in answer)
    if rewards.dtype.kind not in "biuf" or ((has_boolean or rewards.dtype.kind == "b") and not is_binary):
        raise NotRewards(
            f"{arm} returned {_short(answer)}; rewards must be real numbers. Convert text to numbers "
            f"inside the function; if rewards are successes and failures, declare `Bernoulli()` rewards."
        )
    is_wrong = ~np.isfinite(rewards)
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        raise NotRewards(
            f"reward {place + 1} of {count} of {arm} is {rewards[place]}; NaN and infinity are not rewards. "
            f"A failed measurement should raise an exception, or return a score that you choose."
        )
    numbers = rewards.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(numbers.mean())
        variance = float(numbers.var(ddof=1)) if count > 1 else None
    if not np.isfinite(mean):
        raise NotRewards(f"the sum of the rewards of {arm} overflows a float; use another unit.")
    return Summary(count, mean, variance if variance is not None and np.isfinite(variance) else None, numbers)


def _short(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else text[:57] + "..."
