"""When a call that failed is tried again: after pauses that grow, so that an outage does not end a run."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from shortlist.checks import is_whole, whole_number
from shortlist.errors import FinalFailure, InvalidProblem, NotRewards, RetryLater

AT_ONCE = 3  # the most retries where waiting does not help; these come without a pause
_LASTING = (NotRewards, TypeError, NameError, AttributeError, ImportError, SyntaxError, NotImplementedError)
_JITTER = random.Random()  # not the global one, which measurements may use


@dataclass(frozen=True)
class Retries:
    """How often a failed call is tried again, and how long to wait before.

    The pause before the first retry is `first` seconds; each one after it is twice as long as the one before,
    up to `longest`. From each, up to a quarter is taken off at random, so that calls that failed together do
    not come back together. By default that makes more than a minute in all.

    There are no pauses, and three retries at most, where waiting does not help: the measurement returned
    something that is not rewards, or its program is at fault (a TypeError, a NameError and the like).

    Attributes
    ----------
    times
        The most retries of one call.
    first, longest
        Seconds before the first retry, and the most before a later one.
    patience
        For how many seconds in all `RetryLater` may put off one call without counting as a failure.

    Examples
    --------
    >>> Retries(times=2, first=1.0)
    Retries(times=2, first=1.0, longest=30.0, patience=3600.0)
    """

    times: int = 8
    first: float = 0.5
    longest: float = 30.0
    patience: float = 3600.0

    def __post_init__(self) -> None:
        whole_number(self.times, "retries", 0)
        for name in ("first", "longest", "patience"):
            value = getattr(self, name)
            if not (isinstance(value, float) or is_whole(value)) or not 0 <= value < math.inf:
                raise InvalidProblem(
                    f"`{name}` of the retries is {value!r}; it must be a number of seconds, 0 or more."
                )

    def pause(self, number: int) -> float:
        """Return how many seconds to wait before retry `number`, from 1."""
        grown = min(self.first * 2.0 ** min(number - 1, 60), self.longest)
        return grown * _JITTER.uniform(0.75, 1.0)

    def after(
        self, errors: Sequence[BaseException], n_failures: int, put_off: Sequence[float]
    ) -> "Wait | None":
        """Return how long to wait before a call is tried again; None if it should not be.

        Parameters
        ----------
        errors
            What went wrong the last time.
        n_failures
            How often the call has failed, that time included.
        put_off
            For how many seconds each `RetryLater` has put it off before.
        """
        if any(isinstance(error, FinalFailure) for error in errors):
            return None
        asked = [error.seconds for error in errors if isinstance(error, RetryLater)]
        if asked:
            seconds = max(self.pause(len(put_off) + 1) if one is None else one for one in asked)
            if sum(put_off) + seconds <= self.patience:
                return Wait(seconds, is_failure=False)
        is_lasting = any(isinstance(error, _LASTING) for error in errors)
        if n_failures > (min(self.times, AT_ONCE) if is_lasting else self.times):
            return None
        return Wait(0.0 if is_lasting else self.pause(n_failures))


@dataclass(frozen=True)
class Wait:
    """For how many seconds a call is put off, and whether that counts as a failure of it."""

    seconds: float
    is_failure: bool = True


def retries_of(given: object, *, is_scored: bool) -> Retries:
    """Return what an argument `retries` stands for: a number of them, a Retries, or the usual for None."""
    if isinstance(given, Retries):
        return given
    if given is None:
        return Retries(AT_ONCE) if is_scored else Retries()
    return Retries(whole_number(given, "retries", 0))
