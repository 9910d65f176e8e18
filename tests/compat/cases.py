"""Runs that version 0.1.0 left unfinished: what each asks, and how it is measured.

Version 0.1.0 made each run twice with seed 3: to its end, which gave the outcome in `0.1.0.json`, and with a
budget of `part` of those pulls, which left the run in the SQLite file `0.1.0.db`. The PostgreSQL dump holds a
copy of that file. Version 0.2.0 did the same with one run of `t-cut-race`, whose rule has changed since. None
of these files may be written again: they show what users have.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray
from tests.questions import unknown

HERE = Path(__file__).parent
SQLITE, DUMP, OUTCOMES, FILES = (HERE / name for name in ("0.1.0.db", "0.1.0.sql", "0.1.0.json", "files"))

_MEANS = np.array([0.0, 0.3, 0.1, 1.0, 0.9, 0.2, 0.7, 0.4])
_VARIANCES = np.array([1.0, 0.25, 4.0, 1.0, 2.0, 0.5, 1.0, 0.1])


def gaussian(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
    return rng.normal(_MEANS[arm], np.sqrt(_VARIANCES[arm]), count)


def failing(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Fail for one pull in twenty, by the pull's own randomness."""
    rewards = gaussian(arm, count, rng)
    if rng.random() < 0.05:
        raise RuntimeError("no signal")
    return rewards


def many(arms: Any, counts: Any, rng: np.random.Generator) -> list[FloatArray]:
    return [gaussian(int(arm), int(count), rng) for arm, count in zip(arms, counts, strict=True)]


@dataclass(frozen=True, eq=False)
class Case:
    """A run measured by a Python function; `part` is the share of its pulls that 0.1.0 made."""

    problem: Any
    strategy: str
    measure: Any = gaussian
    part: float = 0.5
    options: dict[str, Any] = field(default_factory=dict)


def _known(m: int = 2, epsilon: float = 0.4, **more: Any) -> sl.Problem:
    return sl.Problem(m=m, epsilon=epsilon, delta=0.1, variances=_VARIANCES, **more)


def _unknown(m: int = 2) -> sl.Problem:
    return unknown(m=m, epsilon=0.5, delta=0.1, n=8)


CASES = {
    "race": Case(_known(), "race"),
    "auto": Case(_known(epsilon=0.5), "auto"),
    "level-race": Case(_known(), "level-race", part=0.3),
    "minimise": Case(_known(goal="minimise"), "race"),
    "exact-gaussian": Case(_known(m=1).changed(rewards=sl.Gaussian), "kn", part=0.2),
    "split": Case(_known(), "wnelim", part=0.4, options={"pulls_per_call": 7}),
    "vectorised": Case(_known(), "race", sl.vectorised(many, block=3)),
    "scored": Case(_known(epsilon=1.0), "race", failing, options={"on_failure": -1.0, "retries": 0}),
    "t-race": Case(_unknown(), "t-race"),
    "rinott": Case(_unknown(m=1), "rinott", part=0.4),
    "piloted-race": Case(_unknown(), "race", part=0.4),
}
"""By the name of the run in the store."""

SQLITE_0_2, OUTCOMES_0_2 = HERE / "0.2.0.db", HERE / "0.2.0.json"


def equal(_arms: Any, counts: Any, rng: np.random.Generator) -> list[FloatArray]:
    return [rng.standard_normal(count) for count in counts.tolist()]


LIMITS = Case(sl.Problem(1, 0.5, 0.1, n=100, rewards=sl.Gaussian()), "t-cut-race", sl.vectorised(equal))
"""The run "limits" of version 0.2.0: of its 95 rounds, 83 were measured."""

PROBLEM_FILES = ("bernoulli", "table", "command", "simulated")
"""Runs begun by the command line, by the name of the problem file and of the run."""

BY_HAND = "by-hand"
"""A run whose tickets were leased to two workers; one answered some of them, one was contradicted."""


def by_hand() -> tuple[sl.Problem, str]:
    return _known(epsilon=0.6), "race"


def answer(ticket: sl.session.Ticket) -> list[float]:
    """Return what a person would answer: it depends on the ticket alone."""
    rng = np.random.default_rng([ticket.arm, ticket.first_pull])
    return [float(reward) for reward in gaussian(ticket.arm, ticket.count, rng)]


def outcome(result: sl.Result) -> dict[str, Any]:
    """Return what must not change by a bit, as plain data."""
    return {
        "selected": list(result.selected),
        "stop": result.stop.name,
        "n_pulls": result.n_pulls,
        "n_rounds": result.n_rounds,
        "pulls": result.arms.pulls.tolist(),
        "means": [float(mean).hex() for mean in result.arms.means],
    }


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    return found
