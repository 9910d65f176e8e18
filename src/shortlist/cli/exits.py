"""Exit statuses, the same for every command."""

from shortlist.errors import (
    ChangedRun,
    MeasurementFailed,
    NoGuarantee,
    NoSuchRun,
    ShortlistError,
    StoreTrouble,
)

CERTIFIED = 0  # or done, if the command proves nothing
WRONG = 2  # invalid problem or command line
SHORT = 3  # the budget was used up, the answer is not proved, or no ticket is available
TROUBLE = 4  # the measurement failed or is unsound, or the store or the output cannot be read or written
INTERRUPTED = 130


def status_of(error: ShortlistError) -> int:
    """Return the exit status for an error."""
    if isinstance(error, ChangedRun | NoSuchRun):
        return WRONG
    if isinstance(error, MeasurementFailed | StoreTrouble):
        return TROUBLE
    return SHORT if isinstance(error, NoGuarantee) else WRONG


def status_of_answer(is_certified: bool) -> int:
    """Return the exit status of a command that ends with an answer."""
    return CERTIFIED if is_certified else SHORT
