"""Shortlist: pick the m best of n noisy arms, with a guarantee, from few measurements.

>>> import shortlist as sl
>>> problem = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0, 1.0, 4.0, 4.0, 9.0])
>>> def measure(arm, count, rng):
...     return rng.normal([0.0, 1.0, 2.0, 3.0, 4.0][arm], problem.variances[arm] ** 0.5, count)
>>> sorted(sl.select(measure, problem).selected)
['arm-3', 'arm-4']
"""

from shortlist import instances, plot, strategies
from shortlist._deprecated import Unknown, plan_for_budget
from shortlist.bounds import Complexity, LowerBound, complexity, lower_bound
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.errors import (
    ChangedRun,
    Contradiction,
    CorruptLog,
    InvalidAnswers,
    InvalidProblem,
    LostWrite,
    MeasurementFailed,
    NoGuarantee,
    NoSuchRun,
    NotAsked,
    NotRewards,
    RetryLater,
    ShortlistError,
    StoreTrouble,
    WorkersLost,
)
from shortlist.execution import Processes, Retries, drive, select
from shortlist.measure import Source, Summary, simulated_measure, vectorised
from shortlist.planning import Plan, Row, plan
from shortlist.problem import Problem
from shortlist.result import Arms, Result, Stop
from shortlist.rewards import Gaussian, SubGaussian
from shortlist.session import Scored, Session, Ticket, Tickets
from shortlist.simulation import Simulation, simulate
from shortlist.store import Store, open_store
from shortlist.variance_groups import Heterogeneity, entropy, heterogeneity

__version__ = "0.1.0"

__all__ = [
    "Arms",
    "ChangedRun",
    "Complexity",
    "Contradiction",
    "CorruptLog",
    "Gaussian",
    "Guarantee",
    "Heterogeneity",
    "InvalidAnswers",
    "InvalidProblem",
    "Ledger",
    "LostWrite",
    "LowerBound",
    "MeasurementFailed",
    "NoGuarantee",
    "NoSuchRun",
    "NotAsked",
    "NotRewards",
    "Plan",
    "Problem",
    "Processes",
    "Result",
    "Retries",
    "RetryLater",
    "Row",
    "Scope",
    "Scored",
    "Session",
    "Share",
    "ShortlistError",
    "Simulation",
    "Source",
    "Stop",
    "Store",
    "StoreTrouble",
    "SubGaussian",
    "Summary",
    "Ticket",
    "Tickets",
    "Unknown",
    "WorkersLost",
    "__version__",
    "complexity",
    "drive",
    "entropy",
    "heterogeneity",
    "instances",
    "lower_bound",
    "open_store",
    "plan",
    "plan_for_budget",
    "plot",
    "select",
    "simulate",
    "simulated_measure",
    "strategies",
    "vectorised",
]
