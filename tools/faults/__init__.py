"""The faults that `tools.mutants` plants: wrong constants and wrong decisions, one line each."""

from tools.faults import bounds, feeding, inputs, races, runs, server, strategies, unknown
from tools.faults.fault import Fault

FAULTS = (
    *strategies.FAULTS,
    *races.FAULTS,
    *unknown.FAULTS,
    *bounds.FAULTS,
    *runs.FAULTS,
    *feeding.FAULTS,
    *server.FAULTS,
    *inputs.FAULTS,
)

__all__ = ["FAULTS", "Fault"]
