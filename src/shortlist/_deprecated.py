"""Names of version 0.1.0 that still work in 0.2, with a warning that says what to write instead."""

import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

from shortlist import strategies
from shortlist.checks import deprecated
from shortlist.planning import Plan, plan
from shortlist.problem import Problem
from shortlist.rewards import Gaussian


def Unknown(  # noqa: N802  (it was a class)
    m: int,
    epsilon: float,
    delta: float,
    n: int = 0,
    names: Sequence[str] | None = None,
    pilot: int | None = None,
    guarantee: str = "pac",
    goal: str = "maximise",
) -> Problem:
    """Return a problem with Gaussian rewards of unknown variances; use ``Problem(rewards=Gaussian())``."""
    deprecated("`Unknown(...)`", "`Problem(..., rewards=shortlist.Gaussian(pilot=...))`")
    about: dict[str, Any] = {"names": names, "n": n or None, "guarantee": guarantee, "goal": goal}
    return Problem(m, epsilon, delta, rewards=Gaussian(pilot=pilot), **about)


def plan_for_budget(problem: Problem, budget: int, *, vary: str = "epsilon") -> Plan:
    """Return the plan for the sharpest question that a budget can certify; use ``plan(problem, budget)``."""
    deprecated("`plan_for_budget(problem, budget)`", "`plan(problem, budget)`")
    return plan(problem, budget, vary=vary)


class _StrategiesModule(types.ModuleType):
    """The module `shortlist.strategies`, which was a function."""

    def __call__(self, variances: str = "known") -> tuple[str, ...]:
        """Return the names of strategies; use `shortlist.strategies.names`."""
        deprecated("calling shortlist.strategies", "shortlist.strategies.names()")
        return strategies.names(variances)


sys.modules[strategies.__name__].__class__ = _StrategiesModule


_MOVED = {
    "Arms": "result",
    "ChangedRun": "errors",
    "Complexity": "bounds",
    "Contradiction": "errors",
    "CorruptLog": "errors",
    "Guarantee": "certificates",
    "Heterogeneity": "variance_groups",
    "InvalidAnswers": "errors",
    "Ledger": "certificates",
    "LostWrite": "errors",
    "LowerBound": "bounds",
    "NoGuarantee": "errors",
    "NoSuchRun": "errors",
    "NotAsked": "errors",
    "NotRewards": "errors",
    "Plan": "planning",
    "Row": "planning",
    "Scope": "certificates",
    "Scored": "session",
    "Share": "certificates",
    "Simulation": "simulation",
    "Source": "measure",
    "Store": "store",
    "StoreTrouble": "errors",
    "Ticket": "session",
    "Tickets": "session",
    "WorkersLost": "errors",
}


def moved(name: str) -> object:
    """Return what the package had under this name in version 0.1.0; it now belongs to one of its modules."""
    if name not in _MOVED:
        raise AttributeError(f"module 'shortlist' has no attribute {name!r}")
    place = f"shortlist.{_MOVED[name]}"
    deprecated(f"`shortlist.{name}`", f"`{place}.{name}`", stacklevel=4)
    return getattr(importlib.import_module(place), name)
