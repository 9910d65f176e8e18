"""The paper's optimisation problem itself, for a handful of arms, as a check on its dual.

Nothing is simplified: there is one variable for the pulls of every arm in every world I_{l,F}. The point
found is feasible, so its value is an upper bound on the program's lower bound.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize
from scipy.sparse import csr_matrix

from shortlist.arrays import FloatArray
from shortlist.bounds.paper_bound import pulls_per_value
from shortlist.bounds.two_point import constant
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem

MOST_VARIABLES = 400

World = tuple[int, frozenset[int]]
"""The worlds I_{l,F} and I_{l,M}: arm l, and the arms that lie above it."""


@dataclass(frozen=True, eq=False)
class _Program:
    problem: Problem

    @cached_property
    def variables(self) -> list[tuple[int, frozenset[int], int]]:
        """All (l, F, i): the pulls of arm i, in units of theta_i, in world I_{l,F}; l is the arm at zero."""
        everyone = range(self.problem.n)
        return [
            (zero, frozenset(chosen), i)
            for zero in everyone
            for chosen in combinations([arm for arm in everyone if arm != zero], self.problem.m - 1)
            for i in everyone
            if i != zero and i not in chosen
        ]

    @cached_property
    def unit_pulls(self) -> FloatArray:
        """theta_i of each variable, times epsilon^2."""
        arms = [i for _, _, i in self.variables]
        return self.problem.variances[arms] * pulls_per_value(self.problem.delta)  # [ZT22] Sec. 6.1, theta_i

    @cached_property
    def costs(self) -> csr_matrix:
        """One row per world I_{l,F}: its pulls."""
        return self._rows([(zero, chosen) for zero, chosen, _ in self.variables], self.unit_pulls)

    @cached_property
    def errors(self) -> csr_matrix:
        """One row per world I_{l,M}: which variables bound the probabilities of its wrong answers."""
        worlds = [(zero, chosen | {i}) for zero, chosen, i in self.variables]
        return self._rows(worlds, np.ones(len(worlds)))

    def _rows(self, worlds: list[World], entries: FloatArray) -> csr_matrix:
        numbers = {world: row for row, world in enumerate(dict.fromkeys(worlds))}
        rows = [numbers[world] for world in worlds]
        return csr_matrix((entries, (rows, range(len(worlds)))), (len(numbers), len(worlds)))


def primal_bound(problem: Problem) -> float:
    """Return the value, in pulls, of a nearly optimal feasible point of the paper's primal program.

    Source
    ------
    [ZT22] Section 6.1, the program before Lemma 6.3.
    """
    if problem.m == problem.n or problem.delta >= 0.5:
        return 0.0
    program = _Program(problem)
    size = len(program.variables)
    if size > MOST_VARIABLES:
        raise InvalidProblem(
            f"the primal program of this problem has {size:,} variables; at most {MOST_VARIABLES} are "
            f"solved. Use the exact dual, which has the same value up to m = n/2."
        )
    allowed = problem.delta / constant(problem.delta)  # [ZT22] Sec. 6.1, delta'
    worst = float(program.unit_pulls.max())
    costs, errors = (program.costs / worst).toarray(), program.errors.toarray()
    equal = np.full(size, math.log(problem.m / allowed))
    last = np.append(np.zeros(size), 1.0)
    constraints: Any = [
        LinearConstraint(np.column_stack([costs, -np.ones(len(costs))]), -np.inf, 0.0),
        NonlinearConstraint(
            lambda x: errors @ np.exp(-x[:-1]),
            -np.inf,
            allowed,
            jac=lambda x: np.column_stack([-errors * np.exp(-x[:-1]), np.zeros(len(errors))]),
        ),
    ]
    solve: Any = minimize  # its type stubs are too narrow
    found = solve(
        lambda x: float(x[-1]),
        np.append(equal, (costs @ equal).max()),
        jac=lambda _: last,
        method="SLSQP",
        constraints=constraints,
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    value = max(0.0, _feasible_value(program, np.asarray(found.x[:-1]), allowed))
    return value / problem.epsilon / problem.epsilon


def _feasible_value(program: _Program, pulls: FloatArray, allowed: float) -> float:
    """Return the most pulls over all worlds, after raising each arm's pulls to meet every constraint."""
    excess = np.log(program.errors @ np.exp(-pulls) / allowed)
    enough = pulls + program.errors.T @ np.maximum(excess, 0.0)
    return float((program.costs @ enough).max())
