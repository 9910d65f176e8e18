"""Test measurements: a few timed calls for a few arms, some of them repeated."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from shortlist.errors import MeasurementFailed
from shortlist.measure import Call, Source, Summary, TableSource, summary_of
from shortlist.measure.bounds_check import is_summary
from shortlist.problem import Problem

_CALLS = 6  # calls per arm; its pulls are divided among them


@dataclass(frozen=True, eq=False)
class Trial:
    """One call: its answer, the summary of it, its duration, and how long processors worked for it."""

    call: Call
    answer: Any
    summary: Summary
    seconds: float
    processor_seconds: float = 0.0

    @property
    def rewards(self) -> tuple[float, ...]:
        """The single rewards if they were given; otherwise their mean and variance."""
        if is_summary(self.answer):
            spread = self.summary.variance
            return (self.summary.mean,) if spread is None else (self.summary.mean, spread)
        return tuple(np.atleast_1d(np.asarray(self.answer, dtype=np.float64)).tolist())

    @property
    def is_constant(self) -> bool:
        """Whether it shows no noise."""
        return not self.summary.variance


@dataclass(frozen=True, eq=False)
class ArmTrials:
    """The trials of one arm: its first pulls in several calls, then the first call again.

    Attributes
    ----------
    arm
        Its number.
    trials
        Calls for successive pulls.
    again
        The first of these calls, repeated.
    reseeded
        The first of these calls with another seed.
    failure
        The error, if there was one; the other fields then contain the results so far.
    """

    arm: int
    trials: tuple[Trial, ...]
    again: Trial | None = None
    reseeded: Trial | None = None
    failure: str = ""


def arms_to_try(problem: Problem, n_arms: int) -> list[int]:
    """Return at most `n_arms` arms, spread over the list."""
    places = np.linspace(0, problem.n - 1, min(n_arms, problem.n))
    return [int(place) for place in places.round()]


def tried(source: Source, problem: Problem, arms: Sequence[int], pulls: int, seed: int) -> list[ArmTrials]:
    """Return the trials of some arms, measured in turn, so that the calls of each arm span the whole time."""
    pulls = min(pulls, problem.n_items) if problem.has_pool else pulls  # there are no more
    n_calls = pulls if problem.is_lockstep else _CALLS  # in lockstep one block after the other
    planned = {arm: _calls(source, arm, pulls, seed, n_calls) for arm in arms}
    made: dict[int, list[Trial]] = {arm: [] for arm in arms}
    failures: dict[int, str] = {}
    for place in range(max(map(len, planned.values()))):
        for arm, calls in planned.items():
            if arm in failures or place >= len(calls):
                continue
            try:
                made[arm].append(_made(source, problem, calls[place]))
            except MeasurementFailed as error:
                failures[arm] = str(error)
            except Exception as error:
                failures[arm] = f"measuring {problem.name(arm)} raised {type(error).__name__}: {error}"
    found = []
    for arm, calls in planned.items():
        trials = tuple(made[arm][: len(calls) - 2])
        if arm in failures:
            found.append(ArmTrials(arm, trials, failure=failures[arm]))
        else:
            again, reseeded = made[arm][-2:]
            found.append(ArmTrials(arm, trials, again, reseeded))
    return found


def _calls(source: Source, arm: int, pulls: int, seed: int, n_calls: int) -> list[Call]:
    """Return the calls for one arm: its first pulls, then the first call again, and with another seed."""
    if isinstance(source, TableSource):
        pulls = min(pulls, source.rows(arm))
    ends = np.linspace(0, pulls, min(n_calls, pulls) + 1).round().astype(int).tolist()
    calls = [Call(seed, arm, end - start, start) for start, end in pairwise(ends)]
    return [*calls, calls[0], Call(seed + 1, arm, calls[0].count, 0)]


def _made(source: Source, problem: Problem, call: Call) -> Trial:
    begun, worked = time.perf_counter(), _processor_seconds()
    (answer,) = source.answers([call])
    seconds, worked = time.perf_counter() - begun, _processor_seconds() - worked
    summary = summary_of(answer, call.count, problem.name(call.arm), is_binary=problem.is_binary)
    return Trial(call, answer, summary, seconds, worked)


def _processor_seconds() -> float:
    """Return how long processors have worked for this process, and for its programs that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
