"""The retry policy: failed calls are retried after growing pauses, so that an outage does not end a run."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from shortlist.checks import is_whole, whole_number
from shortlist.errors import FinalFailure, InvalidProblem, NotRewards, RetryLater

AT_ONCE = 3  # maximum number of retries if waiting does not help; without pauses
_LASTING = (
    NotRewards, TypeError, NameError, AttributeError, ImportError, SyntaxError, NotImplementedError,
    ArithmeticError, AssertionError, RecursionError,
)  # fmt: skip
_JITTER = random.Random()  # not the global generator, which measurements may use


@dataclass(frozen=True)
class Retries:
    """How often a failed call is retried, and after which pauses.

    The pause before the first retry is `first` seconds; each further pause is twice as long as the one
    before, up to `longest`. Each is shortened by a random amount of up to a quarter, so that calls that
    failed together are not retried together. The default pauses add up to more than a minute.

    There are no pauses, and at most three retries, if waiting does not help: the measurement returned
    something other than rewards, or has a programming error (a TypeError, a NameError, a division by zero and
    the like; not a KeyError, which a service may cause for a while).

    Attributes
    ----------
    times
        The maximum number of retries of one call.
    first, longest
        Seconds before the first retry, and the maximum before a later one.
    patience
        For how many seconds in total `RetryLater` may delay one call without counting as a failure.

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
        """Return the pause before retry `number`, from 1, in seconds."""
        grown = min(self.first * 2.0 ** min(number - 1, 60), self.longest)
        return grown * _JITTER.uniform(0.75, 1.0)

    def after(
        self, errors: Sequence[BaseException], n_failures: int, put_off: Sequence[float]
    ) -> "Wait | None":
        """Return the pause before the next retry of a call; None if it is not retried.

        Parameters
        ----------
        errors
            The errors of the last attempt.
        n_failures
            How often the call has failed, including the last attempt.
        put_off
            The delays in seconds of earlier `RetryLater` errors.
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
    """The pause before a retry in seconds, and whether the attempt counts as a failure."""

    seconds: float
    is_failure: bool = True


def retries_of(given: object, *, is_scored: bool) -> Retries:
    """Return the `Retries` for an argument `retries`: a number, a Retries, or None for the default."""
    if isinstance(given, Retries):
        return given
    if given is None:
        return Retries(AT_ONCE) if is_scored else Retries()
    return Retries(whole_number(given, "retries", 0))
