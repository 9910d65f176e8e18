"""The faults that `tools.mutants` plants: wrong constants and wrong decisions, one line each."""

from tools.faults import (
    blocks,
    bounds,
    feeding,
    foreign,
    guarantees,
    inputs,
    items,
    races,
    runs,
    server,
    strategies,
    unknown,
)
from tools.faults.fault import Fault

FAULTS = (
    *strategies.FAULTS,
    *races.FAULTS,
    *items.FAULTS,
    *blocks.FAULTS,
    *unknown.FAULTS,
    *bounds.FAULTS,
    *runs.FAULTS,
    *feeding.FAULTS,
    *server.FAULTS,
    *inputs.FAULTS,
    *guarantees.FAULTS,
    *foreign.FAULTS,
)

__all__ = ["FAULTS", "Fault"]
