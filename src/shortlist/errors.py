"""Everything that Shortlist raises on purpose.

::

    ShortlistError
    ├── InvalidProblem       the question makes no sense as asked (also a ValueError)
    ├── MeasurementFailed    what measures the arms failed, or returned something that is not a reward
    │   ├── FinalFailure     the same, where trying again is of no use or would bias the rewards
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


class WorkersLost(MeasurementFailed):
    """Workers died or hung while they measured."""


class NotAsked(ShortlistError):
    """Results were told for pulls that the session did not ask for."""


class InvalidAnswers(ShortlistError, ValueError):
    """A file of answers, or a line of it, cannot be taken as it stands; then nothing of it is."""


class StoreTrouble(ShortlistError):
    """The log of a run could not be read or written; what was written before is as it was."""


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
