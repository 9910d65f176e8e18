"""Where rewards come from: a Python function, a program, recorded rewards, or simulated arms."""

from shortlist.measure.bounded import BoundedSource
from shortlist.measure.command import CommandSource
from shortlist.measure.function import FunctionSource, Measure, Summary, summary_of
from shortlist.measure.imported import ImportedFunction
from shortlist.measure.simulated import REWARDS, simulated_measure
from shortlist.measure.source import Call, Source, generator_for
from shortlist.measure.table import TableSource

__all__ = [
    "REWARDS",
    "BoundedSource",
    "Call",
    "CommandSource",
    "FunctionSource",
    "ImportedFunction",
    "Measure",
    "Source",
    "Summary",
    "TableSource",
    "generator_for",
    "simulated_measure",
    "summary_of",
]
