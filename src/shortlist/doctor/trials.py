"""Trial measurements: a few calls for a few arms, timed, some of them made again."""

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from shortlist.errors import MeasurementFailed
from shortlist.measure import Call, Source, Summary, TableSource, summary_of
from shortlist.measure.bounded import is_summary
from shortlist.unknown import Question

_CALLS = 6  # for each arm, its pulls divided among them


@dataclass(frozen=True, eq=False)
class Trial:
    """One call: what it returned, that in short, and how long it took."""

    call: Call
    answer: Any
    summary: Summary
    seconds: float

    @property
    def rewards(self) -> tuple[float, ...]:
        """The rewards one by one where they were given so; otherwise their mean and their variance."""
        if is_summary(self.answer):
            spread = self.summary.variance
            return (self.summary.mean,) if spread is None else (self.summary.mean, spread)
        return tuple(np.atleast_1d(np.asarray(self.answer, dtype=np.float64)).tolist())

    @property
    def is_constant(self) -> bool:
        """Whether no noise is seen in it."""
        return not self.summary.variance


@dataclass(frozen=True, eq=False)
class ArmTrials:
    """The trials of one arm: its first pulls in several calls, then the first call again.

    Attributes
    ----------
    arm
        Its number.
    trials
        Calls for one stretch of pulls after another.
    again
        The first of these calls a second time.
    reseeded
        The first of these calls with another seed.
    failure
        What went wrong, where something did; the other fields then hold what there is.
    """

    arm: int
    trials: tuple[Trial, ...]
    again: Trial | None = None
    reseeded: Trial | None = None
    failure: str = ""


def arms_to_try(problem: Question, n_arms: int) -> list[int]:
    """Return so many arms, or all if there are fewer, spread over the list."""
    places = np.linspace(0, problem.n - 1, min(n_arms, problem.n))
    return [int(place) for place in places.round()]


def tried(source: Source, problem: Question, arm: int, pulls: int, seed: int) -> ArmTrials:
    """Return the trials of one arm."""
    if isinstance(source, TableSource):
        pulls = min(pulls, source.rows(arm))
    ends = np.linspace(0, pulls, min(_CALLS, pulls) + 1).round().astype(int).tolist()
    calls = [Call(seed, arm, end - start, start) for start, end in pairwise(ends)]
    made: list[Trial] = []
    try:
        for call in calls:
            made.append(_made(source, problem, call))  # noqa: PERF401  (those before a failure are kept)
        again = _made(source, problem, calls[0])
        reseeded = _made(source, problem, Call(seed + 1, arm, calls[0].count, 0))
    except MeasurementFailed as error:
        return ArmTrials(arm, tuple(made), failure=str(error))
    except Exception as error:
        what = f"measuring {problem.name(arm)} raised {type(error).__name__}: {error}"
        return ArmTrials(arm, tuple(made), failure=what)
    return ArmTrials(arm, tuple(made), again, reseeded)


def _made(source: Source, problem: Question, call: Call) -> Trial:
    begun = time.perf_counter()
    (answer,) = source.answers([call])
    seconds = time.perf_counter() - begun
    return Trial(call, answer, summary_of(answer, call.count, problem.name(call.arm)), seconds)
