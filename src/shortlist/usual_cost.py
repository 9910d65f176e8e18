"""The usual cost of strategies: their pulls in a few runs of a simulated question."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shortlist import checks
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem
from shortlist.instances import ABOVE, slippage
from shortlist.measure.simulated import checked_correlation
from shortlist.planning import ASSUMED_SCALE, Row, UsualCost, UsualPulls
from shortlist.problem import Problem
from shortlist.rewards import Bounded
from shortlist.simulation import simulate
from shortlist.strategies import names

_MOST_ARMS, _MOST_BOUNDED = 1000, 500  # beyond this nothing is simulated
_MOST_RUNS, _FEWEST_RUNS = 12, 3
_ARMS_TIMES_RUNS = 2000  # many arms get fewer runs; their pulls also vary less from run to run
_BOUNDED_WEIGHT = 4  # evidence about rewards within bounds takes longer to compute
_MOST_EFFORT = 1_000_000  # weight times arms times runs times steps; a strategy that needs more is left out
_LEAST_ARMS = 50  # a step with fewer arms takes as long
_MOST_CELLS, _CELLS_TIMES_RUNS = 1_000_000, 400_000  # the same with shared items
_MOST_DRAWN = 4_000_000  # pulls of all runs, where each reward is drawn by itself
_TABLE_SEED = 20  # of the made-up table


class _TooMuch(Exception):
    """A simulation would take too long."""


def usual_cost(
    problem: Problem,
    rows: Sequence[Row],
    *,
    rate: float | None = None,
    scale: float | None = None,
    correlation: float | None = None,
    effort: float = 1.0,
) -> UsualCost:
    """Return the usual pulls of certified strategies of a plan; see `Plan.usual_at`.

    For unknown variances only strategies with a pilot of their own are considered. With an `effort` below 1
    there are fewer runs, and strategies are left out that would take longer than this share of the usual
    limit.
    """
    own = set(names()) if not (problem.knows_variances or problem.has_blocks) else set()
    rows = [row for row in rows if row.is_certified and row.strategy not in own]
    if correlation is not None and not problem.has_blocks:
        raise InvalidProblem("`correlation` is only for blocks; omit it, since arms share no blocks here.")
    if problem.items is not None and not problem.has_blocks:
        return _usual_share(problem, rate, effort)
    if problem.own_bounds is not None and problem.bounds is not None:
        problem = problem.changed(rewards=Bounded(*problem.bounds))  # means need not fit into all of them
    means, words = _reference(problem, rate, scale)
    n_runs = min(_MOST_RUNS * effort, _ARMS_TIMES_RUNS // (_weight(problem) * problem.n))
    n_runs = max(_FEWEST_RUNS, int(n_runs))
    fixed = [(row, row.worst_case_pulls) for row in rows if row.rounds in {0, 1}]
    pulls = {
        row.strategy: UsualPulls(most, most, most, row.rounds) for row, most in fixed if most is not None
    }
    most = _MOST_BOUNDED if problem.is_bounded else _MOST_ARMS
    if problem.n > most:
        skipped = f"more than {most:,} arms would take too long to simulate"
        return UsualCost(words, 0, pulls, skipped=skipped)
    variances = None if problem.knows_variances else np.full(problem.n, _scale(problem, scale) ** 2)
    how: dict[str, Any] = {"variances": variances}
    if problem.has_blocks:
        how["correlation"] = share = 0.0 if correlation is None else checked_correlation(correlation)
        words += (
            f"; a correlation of {share:g} within blocks" if share else "; arms independent of each other"
        )
    left_out = []
    for name in (row.strategy for row in rows if row.strategy not in pulls):
        if (found := _simulated(problem, name, means, how, n_runs, effort)) is None:
            left_out.append(name)
        else:
            pulls[name] = found
    return UsualCost(words, n_runs, pulls, tuple(left_out), **_conditions(problem, rate, scale, correlation))


def _conditions(
    problem: Problem, rate: float | None, scale: float | None, correlation: float | None
) -> dict[str, Any]:
    """Return the rate, scale and correlation of the simulated question, and which of them were assumed."""
    found, given = {}, {"rate": rate, "scale": scale, "correlation": correlation}
    if problem.is_bounded:
        found["rate"] = _middle(problem, rate)
    elif not problem.knows_variances:
        found["scale"] = _scale(problem, scale)
    if problem.has_blocks:
        found["correlation"] = correlation or 0.0
    return found | {"assumed": tuple(name for name in found if given[name] is None)}


def _usual_share(problem: Problem, rate: float | None, effort: float) -> UsualCost:
    """Return the usual number of scores on shared items, on a made-up table like those of benchmarks."""
    middle = 0.65 if rate is None else checks.real_number(rate, "rate")
    if not 0 < middle < 1:
        raise InvalidProblem(f"`rate` is {middle}; with shared items it must lie between 0 and 1.")
    words = (
        f"a made-up table of scores of 0 or 1, about {middle:.0%} of them 1, by arms of different ability "
        f"on items of different difficulty"
    )
    most = int(_MOST_CELLS * effort)
    if problem.n_cells > most:
        return UsualCost(words, 0, {}, skipped=f"more than {most:,} scores would take too long to simulate")
    n_runs = min(_MOST_RUNS, _CELLS_TIMES_RUNS // max(1, problem.n_cells))
    n_runs = max(_FEWEST_RUNS, int(n_runs * effort))
    found = simulate(problem, _made_up_table(problem, middle), replications=n_runs)
    low, median, high = np.quantile(found.pulls, (0.1, 0.5, 0.9), method="inverted_cdf").tolist()
    return UsualCost(words, n_runs, {found.strategy: UsualPulls(low, median, high)})


def _made_up_table(problem: Problem, middle: float) -> FloatArray:
    """Return a table of scores of arms of different ability on items of different difficulty."""
    rng = np.random.default_rng(_TABLE_SEED)
    ability = rng.normal(np.log(middle / (1 - middle)), 0.5, problem.n)
    ease, slope = rng.normal(0.0, 1.5, problem.n_items), np.exp(rng.normal(0.3, 0.3, problem.n_items))
    odds = np.exp(slope * (ability[:, None] + ease))
    low, high = problem.bounds or (0.0, 1.0)
    table = np.where(rng.random(odds.shape) < odds / (1 + odds), high, low)
    if problem.known is not None:
        table[problem.known.arms] = problem.known.scores
    return table


def _simulated(
    problem: Problem,
    strategy: str,
    means: FloatArray,
    how: dict[str, Any],
    n_runs: int,
    effort: float,
) -> UsualPulls | None:
    """Return the quantiles of simulated runs; None if they would take too long."""
    steps = rounds = made = 0
    is_drawn = problem.has_blocks or strategy == "paired-race"
    most = int(_MOST_DRAWN * effort) // n_runs if is_drawn else None

    def counted(_ended: int, pulls: int) -> None:
        nonlocal steps, rounds, made
        steps += 1
        rounds, made = rounds + (pulls > made), pulls
        if steps * n_runs * _weight(problem) * max(problem.n, _LEAST_ARMS) > _MOST_EFFORT * effort:
            raise _TooMuch

    try:
        found = simulate(problem, means, strategy, replications=n_runs, budget=most, progress=counted, **how)
    except _TooMuch:
        return None
    if found.unfinished:
        return None
    low, median, high = np.quantile(found.pulls, (0.1, 0.5, 0.9), method="inverted_cdf").tolist()
    return UsualPulls(low, median, high, None if problem.has_blocks else rounds)  # blocks: a step is a run


def _weight(problem: Problem) -> int:
    return _BOUNDED_WEIGHT if problem.is_bounded else 1


def _reference(problem: Problem, rate: float | None, scale: float | None) -> tuple[FloatArray, str]:
    """Return the true means of the simulated question, and the question in words."""
    if rate is not None and not problem.is_bounded:
        raise InvalidProblem("`rate` is for rewards of 0 or 1, or within bounds; omit it for others.")
    if scale is not None and problem.knows_variances:
        raise InvalidProblem("`scale` is only for unknown variances; omit it, since these are known.")
    best = "the best arm lies" if problem.m == 1 else f"the {problem.m:,} best arms lie"
    ahead = (
        f"{best} just over epsilon ahead of the other arms, which are all equal (nearly tied arms take "
        "more pulls)"
    )
    if not problem.is_bounded:
        noise = f", standard deviation {_scale(problem, scale):g}" if not problem.knows_variances else ""
        return slippage(problem).means, f"{ahead}; Gaussian rewards{noise}"
    low, high = problem.bounds or (0.0, 1.0)
    middle = _middle(problem, rate)
    means = _around(problem, middle)
    values = "rewards of 0 or 1" if problem.is_binary else f"rewards of {low:g} or {high:g}"
    return means, f"{ahead}; {values}, around {middle:g}"


def _middle(problem: Problem, rate: float | None) -> float:
    """Return the mean that arms have about: the rate or, by default, the middle of the bounds."""
    low, high = problem.bounds or (0.0, 1.0)
    middle = (low + high) / 2 if rate is None else checks.real_number(rate, "rate")
    if not low <= middle <= high:
        raise InvalidProblem(f"`rate` is {rate}; it must lie between {low:g} and {high:g}.")
    return middle


def _around(problem: Problem, middle: float) -> FloatArray:
    """Return means within the bounds, those of the m best just over epsilon better than the others."""
    low, high = problem.bounds or (0.0, 1.0)
    gap = min(problem.epsilon * (1 + ABOVE), high - low)
    middle = min(max(middle, low + gap / 2), high - gap / 2)
    is_best = np.arange(problem.n) < problem.m
    means: FloatArray = middle + problem.merits(np.where(is_best, gap / 2, -gap / 2))
    return np.clip(means, low, high)


def _scale(problem: Problem, scale: float | None) -> float:
    found = ASSUMED_SCALE * problem.epsilon if scale is None else checks.real_number(scale, "scale")
    if not found > 0:
        raise InvalidProblem(f"`scale` is {found}; it must be positive.")
    return found
