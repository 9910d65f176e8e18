"""Everything that Shortlist raises on purpose.

::

    ShortlistError
    ├── InvalidProblem       the question makes no sense as asked (also a ValueError)
    ├── MeasurementFailed    what measures the arms failed, or returned something that is not a reward
    │   ├── FinalFailure     the same, where trying again is of no use or would bias the rewards
    │   ├── NotRewards       it returned something that cannot be counted as rewards
    │   ├── RetryLater       raised by a measurement that cannot be made now, but can be later
    │   └── WorkersLost      the workers that measure died or hung, and could not be replaced
    ├── NotAsked             an answer to something that was never asked
    ├── InvalidAnswers       a file of answers cannot be read, or does not fit the run (also a ValueError)
    ├── StoreTrouble         the log of a run could not be read or written
    │   ├── CorruptLog       a record of it is torn, altered or missing
    │   ├── NoSuchRun        there is no run of that name
    │   └── ChangedRun       the log belongs to another question, strategy, seed or measurement
    └── NoGuarantee          a guarantee was required where none holds

and two warnings:

::

    Contradiction            a ticket was told twice, with different rewards
    LostWrite                the last write to a store was not completed, or was damaged, and is dropped

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
    """A measurement that must not be tried again.

    It would fail in the same way; or, if it did not, only rewards that happen to please would be counted.
    """


class NotRewards(MeasurementFailed):
    """What a measurement returned cannot be counted as rewards."""


class RetryLater(MeasurementFailed):
    """To be raised by a measurement that cannot be made now: a rate limit, a machine that is busy.

    The call is made again after that time, with the same `rng`. It does not count as a failure, until it has
    been put off for an hour in all (`Retries.patience`). Raise it before a reward is known, never because of
    one: otherwise rewards would be chosen.

    Parameters
    ----------
    seconds
        How long to wait; None for the usual pauses between retries, which grow.
    reason
        Why, for the people who wait.
    all_calls
        Whether this driver should begin no other call before that time either, as for a rate limit that all
        calls share. Calls that are under way go on.

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
        return self.reason or "it asked to be tried again later"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again in another process."""
        return _retry_later, (self.seconds, self.reason, self.all_calls)


class WorkersLost(MeasurementFailed):
    """Workers died or hung while they measured."""


class NotAsked(ShortlistError):
    """Results were told for pulls that the session did not ask for."""


class InvalidAnswers(ShortlistError, ValueError):
    """A file of answers, or a line of it, cannot be taken as it stands; then nothing of it is."""


class StoreTrouble(ShortlistError):
    """The log of a run could not be read or written; what was written before is as it was.

    `is_passing` tells whether the same may succeed a little later, with nothing done about it.
    """

    is_passing = False


class CorruptLog(StoreTrouble):
    """A record of a log is torn, altered or missing, or does not follow from those before it."""


class NoSuchRun(StoreTrouble):
    """There is no run of that name in the store."""


class ChangedRun(StoreTrouble):
    """A run was to go on with another question, strategy, seed or measurement than it began with."""


class Contradiction(UserWarning):
    """A ticket was told again with other rewards; the first answer stands."""


class LostWrite(UserWarning):
    """The last write to a store was broken off by a crash, or damaged later; it is dropped."""


class NoGuarantee(ShortlistError):
    """A guarantee was required of a result that carries none."""


def _retry_later(seconds: float | None, reason: str, all_calls: bool) -> RetryLater:
    return RetryLater(seconds, reason, all_calls=all_calls)
