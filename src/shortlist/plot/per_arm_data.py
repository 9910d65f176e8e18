"""The data of figures of arms: arms near the cut individually, the others summarised."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.result import Result, best_first

MOST = 60  # up to this many arms are all shown individually
NEAR = 30  # with more arms, how many near the cut are shown


@dataclass(frozen=True, eq=False)
class Others:
    """Summarised arms: how many, how many of them are selected, and the range of their values."""

    n_arms: int
    n_selected: int
    means: tuple[float, float] | None
    pulls: tuple[int, int]
    average_pulls: float


@dataclass(frozen=True, eq=False)
class ArmsData:
    """The data of figures of arms, the best observed mean first; arms without pulls come last.

    Attributes
    ----------
    arms, names
        The arms shown individually, by number and by name.
    means, errors, pulls, is_selected
        For these arms: the observed mean, two standard errors of it from the stated variance (NaN without
        pulls or stated variance), the number of pulls, and whether the arm is selected.
    cut
        Midway between the m-th and the (m+1)-th best observed mean; None if there are not as many.
    good
        The m-th best observed mean, and that mean made worse by epsilon; None if there are fewer means.
    better, worse
        The summarised arms on either side.
    """

    arms: IntArray
    names: tuple[str, ...]
    means: FloatArray
    errors: FloatArray
    pulls: IntArray
    is_selected: BoolArray
    cut: float | None
    good: tuple[float, float] | None
    better: Others | None
    worse: Others | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data for JSON."""
        parts = (self.names, self.means, self.errors, self.pulls, self.is_selected)
        return {
            "arms": [
                {
                    "arm": int(arm),
                    "name": name,
                    "mean": _number(mean),
                    "two_standard_errors": _number(error),
                    "pulls": int(pulls),
                    "is_selected": bool(selected),
                }
                for arm, name, mean, error, pulls, selected in zip(self.arms, *parts, strict=True)
            ],
            "cut": self.cut,
            "good": self.good,
            "better": None if self.better is None else vars(self.better),
            "worse": None if self.worse is None else vars(self.worse),
        }


def arms_data(result: Result, most: int = MOST) -> ArmsData:
    """Return the data of figures of arms; with more than `most`, only those near the cut individually."""
    problem, measured = result.problem, result.arms
    merits = problem.merits(measured.means)
    order = best_first(problem.arms, merits)
    n_pulled = int((measured.pulls > 0).sum())
    is_selected = np.zeros(problem.n, dtype=np.bool_)
    is_selected[result.indices] = True
    shown = _window(problem.n, problem.m, most)
    arms = order[shown]
    some = measured.means[order[problem.m - 1 : problem.m + 1]] if n_pulled >= problem.m else np.empty(0)
    loss = problem.epsilon if problem.goal == "maximise" else -problem.epsilon
    return ArmsData(
        arms=arms,
        names=tuple(problem.name(int(arm)) for arm in arms),
        means=measured.means[arms],
        errors=_errors(result)[arms],
        pulls=measured.pulls[arms],
        is_selected=is_selected[arms],
        cut=float(some.mean()) if n_pulled > problem.m else None,
        good=(float(some[0]), float(some[0] - loss)) if len(some) else None,
        better=_others(order[: shown.start], result, is_selected),
        worse=_others(order[shown.stop :], result, is_selected),
    )


def _window(n: int, m: int, most: int) -> slice:
    """Return which ranks are shown individually."""
    if n <= most:
        return slice(0, n)
    near = min(NEAR, most)
    start = min(max(m - near // 2, 0), n - near)
    return slice(start, start + near)


def _errors(result: Result) -> FloatArray:
    problem, pulls = result.problem, result.arms.pulls
    if not problem.knows_variances:
        return np.full(problem.n, np.nan)
    with np.errstate(divide="ignore"):
        errors = 2 * np.sqrt(problem.variances_at(result.arms.means, pulls) / pulls)
    return np.where(pulls > 0, errors, np.nan)


def _others(arms: IntArray, result: Result, is_selected: BoolArray) -> Others | None:
    if not len(arms):
        return None
    means, pulls = result.arms.means[arms], result.arms.pulls[arms]
    observed = means[pulls > 0]
    return Others(
        n_arms=len(arms),
        n_selected=int(is_selected[arms].sum()),
        means=(float(observed.min()), float(observed.max())) if len(observed) else None,
        pulls=(int(pulls.min()), int(pulls.max())),
        average_pulls=float(pulls.mean()),
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
