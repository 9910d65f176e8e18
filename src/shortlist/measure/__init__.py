"""Where rewards come from: a Python function, or simulated arms."""

from shortlist.measure.function import Measure, Summary, generator_for, mean_reward
from shortlist.measure.simulated import REWARDS, simulated_measure

__all__ = [
    "REWARDS",
    "Measure",
    "Summary",
    "generator_for",
    "mean_reward",
    "simulated_measure",
]
