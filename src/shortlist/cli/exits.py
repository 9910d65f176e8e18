"""Exit statuses, the same for every command."""

from shortlist.errors import MeasurementFailed, NoGuarantee, ShortlistError

CERTIFIED = 0  # or, where there is nothing to prove: done
WRONG = 2  # the question or the command is
SHORT = 3  # a budget ended first, or what was asked is not proved
TROUBLE = 4  # measuring failed or is not sound, or the output could not be written
INTERRUPTED = 130


def status_of(error: ShortlistError) -> int:
    """Return the status with which a command ends that raised `error`."""
    if isinstance(error, MeasurementFailed):
        return TROUBLE
    return SHORT if isinstance(error, NoGuarantee) else WRONG
