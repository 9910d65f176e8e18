"""Where rewards come from: a Python function, a program, recorded rewards, or simulated arms."""

from shortlist.measure.bounds_check import BoundedSource, check_answer, check_summaries, declared, is_reward
from shortlist.measure.command import CommandSource
from shortlist.measure.function import FunctionSource, Measure, Summary, scores_of, summary_of
from shortlist.measure.imported import ImportedFunction
from shortlist.measure.many import Calls, Summaries, pooled
from shortlist.measure.randomness import global_randomness_kept
from shortlist.measure.shared_items import ItemsSource, MeasureItems, RecordedScores
from shortlist.measure.simulated import REWARDS, SimulatedBlocks, SimulatedMeasure, simulated_measure
from shortlist.measure.source import Call, Source
from shortlist.measure.table import TableSource
from shortlist.measure.vectorised import MeasureMany, VectorisedSource, vectorised

__all__ = [
    "REWARDS",
    "BoundedSource",
    "Call",
    "Calls",
    "CommandSource",
    "FunctionSource",
    "ImportedFunction",
    "ItemsSource",
    "Measure",
    "MeasureItems",
    "MeasureMany",
    "RecordedScores",
    "SimulatedBlocks",
    "SimulatedMeasure",
    "Source",
    "Summaries",
    "Summary",
    "TableSource",
    "VectorisedSource",
    "check_answer",
    "check_summaries",
    "declared",
    "global_randomness_kept",
    "is_reward",
    "pooled",
    "scores_of",
    "simulated_measure",
    "summary_of",
    "vectorised",
]
