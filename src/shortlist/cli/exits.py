"""Exit statuses, the same for every command."""

from shortlist.errors import (
    ChangedRun,
    MeasurementFailed,
    NoGuarantee,
    NoSuchRun,
    ShortlistError,
    StoreTrouble,
)

CERTIFIED = 0  # or, where there is nothing to prove: done
WRONG = 2  # the question or the command is
SHORT = 3  # a budget ended first, what was asked is not proved, or there is nothing to be had now
TROUBLE = 4  # measuring failed or is not sound, or the store or the output could not be read or written
INTERRUPTED = 130


def status_of(error: ShortlistError) -> int:
    """Return the status with which a command ends that raised `error`."""
    if isinstance(error, ChangedRun | NoSuchRun):
        return WRONG
    if isinstance(error, MeasurementFailed | StoreTrouble):
        return TROUBLE
    return SHORT if isinstance(error, NoGuarantee) else WRONG
