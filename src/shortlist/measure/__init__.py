"""Where rewards come from: a Python function, or simulated arms."""

from shortlist.measure.function import FunctionSource, Measure, Summary, summary_of
from shortlist.measure.simulated import REWARDS, simulated_measure
from shortlist.measure.source import Call, Source, generator_for

__all__ = [
    "REWARDS",
    "Call",
    "FunctionSource",
    "Measure",
    "Source",
    "Summary",
    "generator_for",
    "simulated_measure",
    "summary_of",
]
