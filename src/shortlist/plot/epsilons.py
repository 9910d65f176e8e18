"""Figure of simulated failures and pulls of strategies as epsilon changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import FloatArray, IntArray
from shortlist.bounds import lower_bound
from shortlist.errors import InvalidProblem
from shortlist.planning import resolve
from shortlist.plot.curves import LOWER_BOUND, draw_curves, name_curves
from shortlist.plot.per_round import two_axes
from shortlist.plot.style import GREY, figure_of, look_of, new_figure, powers_of_ten, quiet_style, value_ticks
from shortlist.problem import Problem, checked
from shortlist.simulation import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BESIDE = 0.022  # horizontal offset between strategies, as a fraction of the decades shown


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The simulated outcomes of one strategy at each epsilon.

    Attributes
    ----------
    errors, runs
        The number of replications that ended with a wrong answer, and the number that ended.
    lowest, highest
        The exact 95 % confidence interval for the failure probability (Clopper-Pearson).
    pulls
        The mean number of pulls of all replications.
    """

    errors: IntArray
    runs: IntArray
    lowest: FloatArray
    highest: FloatArray
    pulls: FloatArray

    @property
    def rates(self) -> FloatArray:
        """The fraction of wrong answers; NaN if no replication ended."""
        return np.where(self.runs > 0, self.errors / np.maximum(self.runs, 1), np.nan)


@dataclass(frozen=True, eq=False)
class EpsilonData:
    """Failures and pulls of several strategies over epsilon.

    Attributes
    ----------
    epsilons
        The values, increasing.
    delta
        The accepted failure probability.
    outcomes
        The outcomes, by strategy.
    lower_bound
        The number of pulls that every algorithm needs on the worst instance; None if variances are unknown.
    """

    epsilons: FloatArray
    delta: float
    outcomes: Mapping[str, Outcomes]
    lower_bound: FloatArray | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data for JSON."""
        return {
            "epsilons": self.epsilons.tolist(),
            "delta": self.delta,
            "lower_bound": None if self.lower_bound is None else self.lower_bound.tolist(),
            "strategies": {
                name: {part: values.tolist() for part, values in vars(one).items()}
                for name, one in self.outcomes.items()
            },
        }


def epsilon_data(
    problem: Problem,
    means: ArrayLike,
    strategies: Sequence[str] = ("race", "wnelim"),
    *,
    epsilons: Sequence[float] | None = None,
    variances: ArrayLike | None = None,
    replications: int = 200,
    seed: int = 0,
    rewards: str = "gaussian",
    budget: int | None = None,
    correlation: float | None = None,
) -> EpsilonData:
    """Return how often strategies fail, and their mean pulls, at several values of epsilon."""
    problem = checked(problem)
    names = (strategies,) if isinstance(strategies, str) else tuple(dict.fromkeys(strategies))
    steps = problem.epsilon * 2.0 ** np.arange(-2, 2.5, 0.5) if epsilons is None else np.asarray(epsilons)
    values = np.unique(steps.astype(np.float64))
    if not len(values) or not names:
        raise InvalidProblem("give at least one strategy and one epsilon to compare.")
    asked = [problem.changed(epsilon=float(value)) for value in values]
    found = {
        name: [
            simulate(one, means, resolve(name, one), variances=variances, replications=replications,
                     seed=seed, rewards=rewards, budget=budget, correlation=correlation)
            for one in asked
        ]
        for name in names
    }  # fmt: skip
    bounds = [bound.pulls for one in asked if (bound := lower_bound(one)) is not None]
    return EpsilonData(
        epsilons=values,
        delta=problem.delta,
        outcomes={
            name: Outcomes(
                errors=np.array([run.errors for run in runs]),
                runs=np.array([int(run.is_final.sum()) for run in runs]),
                lowest=np.array([run.error_rate_interval()[0] for run in runs]),
                highest=np.array([run.error_rate_interval()[1] for run in runs]),
                pulls=np.array([float(run.pulls.mean()) for run in runs]),
            )
            for name, runs in found.items()
        },
        lower_bound=np.array(bounds) if bounds else None,
    )


def failure_against_epsilon(
    problem: Problem,
    means: ArrayLike,
    strategies: Sequence[str] = ("race", "wnelim"),
    *,
    epsilons: Sequence[float] | None = None,
    variances: ArrayLike | None = None,
    replications: int = 200,
    seed: int = 0,
    rewards: str = "gaussian",
    budget: int | None = None,
    correlation: float | None = None,
    ax: "Sequence[Axes] | None" = None,
) -> "Figure":
    """Return a figure of failures, with exact 95 % intervals, above mean pulls; both over epsilon.

    A failure is an answer with an arm worse than the m-th best by more than that epsilon. The means do not
    change, so the problem becomes harder as epsilon decreases to the gaps between the means.

    Parameters
    ----------
    problem, means, variances, replications, seed, rewards, budget, correlation
        As in `simulate`. The problem's own epsilon is used only if `epsilons` is omitted.
    strategies
        The strategies to compare.
    epsilons
        By default nine values from a quarter to four times the problem's own.
    ax
        Two axes to draw in; by default those of a new figure.
    """
    data = epsilon_data(
        problem, means, strategies, epsilons=epsilons, variances=variances, replications=replications,
        seed=seed, rewards=rewards, budget=budget, correlation=correlation,
    )  # fmt: skip
    with quiet_style():
        figure = new_figure(4.8) if ax is None else None
        upper, lower = figure.subplots(2, 1, sharex=True) if figure is not None else two_axes(ax)
        for place, (name, found) in enumerate(data.outcomes.items()):
            _failures(upper, _moved(data.epsilons, place, len(data.outcomes)), name, found)
        upper.axhline(data.delta, color=GREY, linestyle="--", linewidth=1)
        upper.annotate(
            "delta", (1.0, data.delta), (4, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", color=GREY, va="center",
        )  # fmt: skip
        arms = f"{problem.m:,} of {problem.n:,} arms"
        upper.set_title(f"{arms}, delta {data.delta:g}, {replications:,} runs at each epsilon")
        highest = max(float(found.highest.max()) for found in data.outcomes.values())
        upper.set(xscale="log", ylim=(0, 1.08 * max(highest, data.delta)))
        upper.set_ylabel("failures, as a share\n(exact 95 % intervals)")
        pulls = {name: found.pulls for name, found in data.outcomes.items()}
        if data.lower_bound is not None:
            pulls[LOWER_BOUND] = data.lower_bound
        draw_curves(lower, data.epsilons, pulls)
        lower.set(xlabel="epsilon, in units of the rewards", xscale="log")
        lower.set_ylabel("mean pulls" + ("" if data.lower_bound is None else "\n(lower bound: worst means)"))
        powers_of_ten(lower, "y")
        value_ticks(lower, data.epsilons)
        name_curves(lower, data.epsilons, pulls, 1.7)
    return figure_of(upper)


def _moved(epsilons: FloatArray, place: int, n: int) -> FloatArray:
    """Return the values shifted slightly, so that intervals of several strategies do not overlap."""
    decades = max(float(np.log10(epsilons[-1] / epsilons[0])), 0.1)
    return epsilons * 10 ** (_BESIDE * decades * (place - (n - 1) / 2) / max(n - 1, 1) * 2)


def _failures(axes: "Axes", epsilons: FloatArray, name: str, found: Outcomes) -> None:
    look = look_of(name)
    axes.vlines(epsilons, found.lowest, found.highest, color=look.colour, linewidth=1.2)
    axes.plot(
        epsilons,
        found.rates,
        look.marker,
        clip_on=False,
        zorder=3,
        color=look.colour,
        linestyle="none",
        gid=f"failures-{name}",
    )
