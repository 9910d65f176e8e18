"""A Python function as the source of rewards: how it is called and what it may return."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shortlist.checks import is_whole
from shortlist.errors import MeasurementFailed


@dataclass(frozen=True)
class Summary:
    """Several rewards of one arm, given by their number and their mean."""

    count: int
    mean: float


Measure: TypeAlias = Callable[[int, int, np.random.Generator], Any]
"""``measure(arm, count, rng)`` returns `count` fresh rewards of the arm, or a Summary of them."""


def generator_for(seed: int, arm: int, first_pull: int) -> np.random.Generator:
    """Return the random generator of the pulls of an arm that start at pull number `first_pull`.

    It depends on nothing else, so a measurement repeated after a crash, or made by another worker,
    returns the same rewards.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=(seed, arm, first_pull)))


def mean_reward(answer: Any, count: int, arm: str) -> float:
    """Return the mean of what a measurement returned, if that is `count` genuine rewards.

    Raises
    ------
    MeasurementFailed
        For a wrong number of rewards, and for anything that is not a finite real number.
    """
    if isinstance(answer, Summary):
        return _summary_mean(answer, count, arm)
    if isinstance(answer, tuple) and len(answer) == 2 and is_whole(answer[0]):
        if count == 2:
            raise MeasurementFailed(
                f"{arm} was pulled twice and returned the tuple {answer!r}, which could be two rewards or "
                f"a (count, mean) summary. Return a list of rewards, or shortlist.Summary(count, mean)."
            )
        return _summary_mean(Summary(*answer), count, arm)
    return _rewards_mean(answer, count, arm)


def _summary_mean(summary: Summary, count: int, arm: str) -> float:
    if summary.count != count:
        raise MeasurementFailed(
            f"{arm} was to be pulled {count} times but the summary is of {summary.count!r} rewards. "
            f"Return exactly `count` of them, neither more nor fewer."
        )
    return _rewards_mean([summary.mean], 1, arm)


def _rewards_mean(answer: Any, count: int, arm: str) -> float:
    if np.ma.is_masked(answer):
        raise MeasurementFailed(f"{arm} returned rewards of which some are masked; return {count} numbers.")
    try:
        rewards = np.asarray(answer)
    except ValueError:  # ragged
        raise MeasurementFailed(
            f"{arm} returned {_short(answer)}; return a flat list of {count} numbers."
        ) from None
    if rewards.ndim == 0 and count == 1 and rewards.dtype.kind in "biuf":
        answer, rewards = [answer], rewards[None]
    if rewards.shape != (count,):
        raise MeasurementFailed(
            f"{arm} was to be pulled {count} times but returned {_short(answer)} of shape {rewards.shape}; "
            f"return a flat list of exactly {count} rewards."
        )
    has_boolean = isinstance(answer, list | tuple) and any(isinstance(r, bool | np.bool_) for r in answer)
    if rewards.dtype.kind not in "iuf" or has_boolean:
        raise MeasurementFailed(
            f"{arm} returned {_short(answer)}; rewards must be real numbers. Convert a success to 1.0 "
            f"and a failure to 0.0, and text to numbers, inside the function."
        )
    is_wrong = ~np.isfinite(rewards)
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        raise MeasurementFailed(
            f"reward {place + 1} of {count} of {arm} is {rewards[place]}; NaN and infinity are not rewards. "
            f"A failed measurement should raise, or be scored by a value that you choose."
        )
    with np.errstate(over="ignore"):
        mean = float(rewards.astype(np.float64).mean())
    if not np.isfinite(mean):
        raise MeasurementFailed(f"the rewards of {arm} add up to more than a float holds; use another unit.")
    return mean


def _short(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else text[:57] + "..."
