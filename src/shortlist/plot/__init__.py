"""Figures for papers and reports, with matplotlib.

Each function returns the axes it has drawn in, or the figure if there are several; `save` writes them to a
file. The numbers in a figure come from a separate function, ``..._data``, which can be used alone. matplotlib
is imported only when something is drawn.

>>> import shortlist as sl
>>> problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0, 4.0, 9.0])
>>> result = sl.select(sl.simulated_measure(problem, [0.0, 1.0, 2.0]), problem)
>>> axes = sl.plot.arms(result)  # then: sl.plot.save(axes, "arms.svg")
>>> [label.get_text() for label in axes.get_yticklabels()]
['arm-2', 'arm-1', 'arm-0']
"""

from shortlist.plot.against_bounds import SpentData, spent, spent_data
from shortlist.plot.curves import Curves
from shortlist.plot.epsilons import EpsilonData, Outcomes, epsilon_data, failure_against_epsilon
from shortlist.plot.heterogeneity import heterogeneity_data, heterogeneity_story
from shortlist.plot.illustrative_figure import illustrative, illustrative_data
from shortlist.plot.per_arm import arms, pulls
from shortlist.plot.per_arm_data import ArmsData, arms_data
from shortlist.plot.per_round import RoundsData, rounds, rounds_data
from shortlist.plot.scaling_figure import scaling, scaling_data
from shortlist.plot.style import quiet_style, save

__all__ = [
    "ArmsData",
    "Curves",
    "EpsilonData",
    "Outcomes",
    "RoundsData",
    "SpentData",
    "arms",
    "arms_data",
    "epsilon_data",
    "failure_against_epsilon",
    "heterogeneity_data",
    "heterogeneity_story",
    "illustrative",
    "illustrative_data",
    "pulls",
    "quiet_style",
    "rounds",
    "rounds_data",
    "save",
    "scaling",
    "scaling_data",
    "spent",
    "spent_data",
]
