"""Shortlist: pick the m best of n noisy arms, with a guarantee, from few measurements.

>>> import shortlist as sl
>>> problem = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0, 1.0, 4.0, 4.0, 9.0])
>>> def measure(arm, count, rng):
...     return rng.normal([0.0, 1.0, 2.0, 3.0, 4.0][arm], problem.variances[arm] ** 0.5, count)
>>> sorted(sl.select(measure, problem).selected)
['arm-3', 'arm-4']
"""

from shortlist import errors, instances, plot, strategies
from shortlist._deprecated import Unknown as Unknown
from shortlist._deprecated import moved as _moved
from shortlist._deprecated import plan_for_budget as plan_for_budget
from shortlist.bounds import complexity, lower_bound
from shortlist.errors import InvalidProblem, MeasurementFailed, RetryLater, ShortlistError
from shortlist.execution import Processes, Retries, drive, select, select_async
from shortlist.items import Blocks
from shortlist.measure import Summary, simulated_measure, vectorised
from shortlist.planning import plan
from shortlist.problem import Problem
from shortlist.result import Result, Stop
from shortlist.rewards import Bernoulli, Bounded, Gaussian, SubGaussian
from shortlist.session import Session
from shortlist.simulation import simulate
from shortlist.store import open_store
from shortlist.store.events import own_version as _own_version
from shortlist.timings import time
from shortlist.totals import certify
from shortlist.variance_groups import entropy, heterogeneity

__version__ = _own_version()

__all__ = [
    "Bernoulli",
    "Blocks",
    "Bounded",
    "Gaussian",
    "InvalidProblem",
    "MeasurementFailed",
    "Problem",
    "Processes",
    "Result",
    "Retries",
    "RetryLater",
    "Session",
    "ShortlistError",
    "Stop",
    "SubGaussian",
    "Summary",
    "__version__",
    "certify",
    "complexity",
    "drive",
    "entropy",
    "errors",
    "heterogeneity",
    "instances",
    "lower_bound",
    "open_store",
    "plan",
    "plot",
    "select",
    "select_async",
    "simulate",
    "simulated_measure",
    "strategies",
    "time",
    "vectorised",
]


def __getattr__(name: str) -> object:
    return _moved(name)
