"""What a planted fault is."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A replacement in one source file that makes the library wrong."""

    what: str
    file: str
    old: str
    new: str
