"""A comparison of strategies on several instances, as a table and as plain data."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.bounds import lower_bound
from shortlist.simulation import Simulation

Outcomes = Mapping[str, Sequence[Simulation]]
"""The simulations of all strategies, by instance."""


def bench_text(outcomes: Outcomes) -> RenderableType:
    """Return a table of mean pulls as multiples of the lower bound, the strategy with the fewest first."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    for instance in outcomes:
        table.add_column(instance, justify="right", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    cells = _cells(outcomes)
    overall = {name: _geometric_mean(cells[name], len(outcomes)) for name in cells}
    for name in sorted(cells, key=lambda name: overall[name] or math.inf):
        found = cells[name]
        row = [_cell(found.get(instance)) for instance in outcomes]
        table.add_row(name, *row, "-" if overall[name] is None else _words(overall[name] or 0.0))
    return Group(table, Text(), *(Text(line, style="dim") for line in _notes(outcomes)))


def bench_dict(outcomes: Outcomes) -> list[dict[str, Any]]:
    """Return all figures as plain data for JSON."""
    return [
        {
            "instance": instance,
            "strategy": one.strategy,
            "problem": one.problem.to_dict(),
            "seed": one.seed,
            "replications": len(one.pulls),
            "mean_pulls": float(one.pulls.mean()),
            "standard_error": _standard_error(one),
            "lower_bound": _bound(one),
            "gap": float(one.pulls.mean()) / bound if (bound := _bound(one)) else None,
            "errors": one.errors,
            "error_rate_limit_95": one.error_rate_limit(),
            "is_guaranteed": one.guarantee is not None,
        }
        for instance, simulations in outcomes.items()
        for one in simulations
    ]


def _cells(outcomes: Outcomes) -> dict[str, dict[str, Simulation]]:
    """Return the results by strategy and instance."""
    cells: dict[str, dict[str, Simulation]] = {}
    for instance, simulations in outcomes.items():
        for one in simulations:
            cells.setdefault(one.strategy, {})[instance] = one
    return cells


def _gap(one: Simulation) -> float:
    return float(one.pulls.mean()) / max(_bound(one) or 0.0, 1.0)


def _bound(one: Simulation) -> float | None:
    bound = lower_bound(one.problem)
    return None if bound is None else bound.pulls


def _standard_error(one: Simulation) -> float:
    return float(one.pulls.std(ddof=1) / math.sqrt(len(one.pulls))) if len(one.pulls) > 1 else 0.0


def _geometric_mean(found: Mapping[str, Simulation], n_instances: int) -> float | None:
    """Return the geometric mean over all instances; None for a strategy that is missing on some."""
    if len(found) < n_instances:
        return None
    return float(np.exp(np.mean([math.log(max(_gap(one), 1e-12)) for one in found.values()])))


def _cell(one: Simulation | None) -> str:
    return "-" if one is None else _words(_gap(one)) + "*" * min(one.errors, 3)


def _words(gap: float) -> str:
    return f"{gap:,.2f}" if gap < 100 else f"{gap:,.0f}"


def _notes(outcomes: Outcomes) -> list[str]:
    every = [one for simulations in outcomes.values() for one in simulations]
    first = every[0]
    found = {instance: _bound(some[0]) or 0.0 for instance, some in outcomes.items() if some}
    bounds = ", ".join(f"{instance} {bound:,.0f}" for instance, bound in found.items())
    notes = [
        f"Mean pulls of {len(first.pulls)} runs each, as multiples of the lower bound: {bounds}.",
        f"Gaussian rewards, seed {first.seed}. One star per wrong answer, at most three.",
    ]
    unproved = dict.fromkeys(one.strategy for one in every if one.guarantee is None)
    if unproved:
        notes.append(f"Without a guarantee: {', '.join(unproved)}.")
    return notes
