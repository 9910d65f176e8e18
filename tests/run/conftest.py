"""Settings for tests of runs."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Ctrl-C means what it usually does, also where the suite runs in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
