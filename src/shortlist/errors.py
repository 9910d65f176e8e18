"""The exceptions and warnings of Shortlist.

::

    ShortlistError
    ├── InvalidProblem       the question or an argument is invalid (also a ValueError)
    ├── MeasurementFailed    a measurement failed, or returned something that is not a reward
    │   ├── FinalFailure     the same, if a retry is useless or would bias the rewards
    │   ├── NotRewards       it returned something that cannot be counted as rewards
    │   │   └── WrongOutput  the same, if it is a program that printed something else
    │   ├── RetryLater       raised by a measurement that is not possible now, but will be later
    │   └── WorkersLost      the workers that measure died or hung, and could not be replaced
    ├── NotAsked             an answer to something that was never asked
    ├── InvalidAnswers       a file of answers is invalid, or does not match the run (also a ValueError)
    ├── StoreTrouble         the log of a run could not be read or written
    │   ├── CorruptLog       a record of it is torn, altered or missing
    │   ├── NoSuchRun        there is no run of that name
    │   └── ChangedRun       the log belongs to another question, strategy, seed or measurement
    └── NoGuarantee          a guarantee was required, but there is none

and two warnings:

::

    Contradiction            a ticket was told twice, with different rewards
    LostWrite                the last write to a store was interrupted or damaged, and is dropped

Each message says what was given, what is required, and what to do.
"""

from typing import Any


class ShortlistError(Exception):
    """Base of every error raised by Shortlist."""


class InvalidProblem(ShortlistError, ValueError):
    """The question, or an argument of it, cannot be answered as stated."""


class MeasurementFailed(ShortlistError):
    """A measurement raised, or returned something that cannot be counted as rewards."""


class FinalFailure(MeasurementFailed):
    """A measurement that must not be retried.

    A retry would fail in the same way; or, if it did not, it would introduce selection bias.
    """


class NotRewards(MeasurementFailed):
    """A measurement returned something that cannot be counted as rewards."""


class WrongOutput(NotRewards):
    """A program printed something that cannot be counted as rewards; the same output twice is final."""


class RetryLater(MeasurementFailed):
    """Raised by a measurement that is not possible now, because of a rate limit or a busy machine.

    The call is repeated after that time, with the same `rng`. It does not count as a failure until it has
    been postponed for an hour in total (`Retries.patience`). Raise it before a reward is known, never because
    of one: that would introduce selection bias.

    Parameters
    ----------
    seconds
        How long to wait; None for the default, growing pauses between retries.
    reason
        The reason, shown to the user.
    all_calls
        Whether this driver should start no other call before that time either, as for a rate limit that all
        calls share. Running calls continue.

    Examples
    --------
    >>> raise RetryLater(30, "the quota of this minute is used up", all_calls=True)
    Traceback (most recent call last):
    shortlist.errors.RetryLater: the quota of this minute is used up
    """

    def __init__(self, seconds: float | None = None, reason: str = "", *, all_calls: bool = False) -> None:
        is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= 1e9
        if seconds is not None and not is_time:
            raise InvalidProblem(
                f"`seconds` of RetryLater is {seconds!r}; it must be a number, 0 or more, or None."
            )
        super().__init__(seconds, reason)
        self.seconds, self.reason, self.all_calls = seconds, reason, all_calls

    def __str__(self) -> str:
        return self.reason or "it asked for a later retry"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again in another process."""
        return _retry_later, (self.seconds, self.reason, self.all_calls)


class WorkersLost(MeasurementFailed):
    """Workers died or hung while they measured."""


class NotAsked(ShortlistError):
    """Results were told for pulls that the session did not ask for."""


class InvalidAnswers(ShortlistError, ValueError):
    """A file of answers, or a line of it, is invalid; then nothing of it is added."""


class StoreTrouble(ShortlistError):
    """The log of a run could not be read or written; earlier records are not affected.

    `is_passing` tells whether the failure is temporary, so that a retry may succeed.
    """

    is_passing = False


class CorruptLog(StoreTrouble):
    """A record of a log is torn, altered or missing, or does not follow from those before it."""


class NoSuchRun(StoreTrouble):
    """There is no run of that name in the store."""


class ChangedRun(StoreTrouble):
    """A run cannot be resumed with another question, strategy, seed or measurement."""


class Contradiction(UserWarning):
    """A ticket was told again with other rewards; the first answer is kept."""


class LostWrite(UserWarning):
    """The last write to a store was interrupted by a crash, or damaged later; it is dropped."""


class NoGuarantee(ShortlistError):
    """A guarantee was required, but the result has none."""


def _retry_later(seconds: float | None, reason: str, all_calls: bool) -> RetryLater:
    return RetryLater(seconds, reason, all_calls=all_calls)
