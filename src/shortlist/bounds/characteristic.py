"""The bound for a given instance: the number of pulls that every valid algorithm needs at these means.

An algorithm that is correct with probability 1 - delta whatever the means cannot often select an arm that
would be wrong under other means, unless its rewards tell the two cases apart. So the probabilities with which
it selects each arm impose constraints on its pulls. The fewest pulls that satisfy all constraints, for the
best such probabilities, are the solution of a convex program. `docs/theory.md` has the proof.

The program has infinitely many constraints. Those of a finite number of alternatives, with tangents to the
convex function on their right-hand side, form a linear program with a lower value. Any value of its dual is a
bound, and alternatives are added until it comes close to the value of a point that satisfies all constraints.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import BoolArray, FloatArray, IntArray, kth_largest
from shortlist.bounds.alternatives import Alternative, Landscape
from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem, checked

_MOST_ROUNDS = 40
_MOST_ROWS = 30_000
_PATIENCE, _WORTH = 6, 1.001  # this many rounds must gain this factor
_CLOSE = 1 + 2e-4  # ratio of both values at which the search ends
_TIE = 1e-9  # means this close, in units of epsilon, count as equal up to rounding
_ROUNDING = 1 - 1e-9
_SLACK = 1e-4
_SHARE = 0.5  # step from the best point known towards the current solution
_NOTHING = 1e-7  # constraints at or below this may be due to rounding
_TANGENTS = (0.0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 0.9999)


@dataclass(frozen=True)
class Bracket:
    """The value of the program, in pulls: a certified lower bound, and the value of a feasible point."""

    lower: float
    upper: float


def characteristic_bound(problem: Problem, means: ArrayLike) -> float:
    """Return the number of pulls that every valid algorithm needs if the arms have these means.

    *Valid* means: correct with probability 1 - delta whatever the means; rewards are Gaussian. If only one
    answer is correct, the bound is at least kl(delta, 1 - delta) times the characteristic time. If several
    are, it allows for algorithms that divide their probability among them.

    Examples
    --------
    >>> problem = Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * 3)
    >>> round(characteristic_bound(problem, [0.5, 0.3, 0.0]))
    255

    Source
    ------
    Ours; [GK16] for one correct answer and epsilon = 0. Proved in `docs/theory.md`.
    """
    return characteristic_bracket(problem, means).lower


def characteristic_bracket(problem: Problem, means: ArrayLike) -> Bracket:
    """Return the bound together with the value of a feasible point, which shows how tight it is."""
    if problem.guarantee == "indifference":
        raise InvalidProblem("no lower bound for given means is known with an indifference zone.")
    arms = _Arms.of(problem, means)
    return Bracket(0.0, 0.0) if problem.m == problem.n else _solved(arms, _free(arms))


def answer_bound(problem: Problem, means: ArrayLike, answer: ArrayLike) -> float:
    """Return kl(delta, 1 - delta) times the characteristic time of one correct answer.

    Valid algorithms that give this answer with probability 1 - delta need this many pulls at these means. If
    several answers are correct, an algorithm need not do so; only as delta tends to 0 does every valid
    algorithm need, to first order, the smallest of these numbers over all correct answers [DK19].

    Source
    ------
    [DK19] Theorem 1 for the limit; [GK16] Theorem 1 for the inequality.
    """
    chosen = np.unique([whole_number(arm, "arm", 0) for arm in np.asarray(answer).tolist()])
    arms = _Arms.of(problem, means, chosen)
    if len(chosen) != problem.m or arms.is_bad[chosen].any():
        raise InvalidProblem(
            f"the answer must be {problem.m} different arms, none of them bad; got {answer!r}."
        )
    return 0.0 if problem.m == problem.n else _solved(arms, _fixed(arms, chosen)).lower


@dataclass(frozen=True, eq=False)
class _Arms:
    """The arms in units of epsilon; arms with equal mean, variance and role in the answer form a kind."""

    problem: Problem
    landscape: Landscape
    kinds: IntArray
    first: IntArray
    sizes: FloatArray
    prices: FloatArray
    is_bad: BoolArray

    @classmethod
    def of(cls, problem: Problem, means: ArrayLike, chosen: IntArray | None = None) -> "_Arms":
        given = np.asarray(means, dtype=np.float64)
        if given.shape != (checked(problem).n,) or not np.isfinite(given).all():
            raise InvalidProblem(f"`means` must be {problem.n} finite numbers, one for each arm.")
        given = problem.merits(given) / problem.epsilon
        is_chosen = np.isin(np.arange(problem.n), [] if chosen is None else chosen)
        keys = np.column_stack([given, problem.variances, is_chosen])
        _, first, kinds, sizes = np.unique(
            keys, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        prices = 2 * problem.variances[first] / problem.epsilon**2  # pulls per unit of information
        is_bad = given < kth_largest(given, problem.m) - 1 - _TIE * (1 + np.abs(given))
        return cls(
            problem,
            Landscape(given, problem.m),
            kinds.reshape(-1),
            first,
            sizes.astype(np.float64),
            prices,
            is_bad,
        )

    @property
    def n_kinds(self) -> int:
        return len(self.first)


def divergence(p: FloatArray, q: float) -> FloatArray:
    """Return kl(p, q) for Bernoulli distributions."""
    from scipy.special import rel_entr  # noqa: PLC0415  (scipy is slow to import)

    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def _needed(selects: FloatArray, delta: float) -> FloatArray:
    """Return the evidence required against each kind's being out, and in favour of its being in."""
    return np.stack(
        [
            np.where(selects > delta, divergence(selects, delta), 0.0),
            np.where(selects < 1 - delta, divergence(selects, 1 - delta), 0.0),
        ]
    )


@dataclass(eq=False)
class _Rows:
    """The rows of a linear program: entries @ x >= right."""

    right: list[float] = field(default_factory=list)
    rows: list[IntArray] = field(default_factory=list)
    columns: list[IntArray] = field(default_factory=list)
    entries: list[FloatArray] = field(default_factory=list)

    def add(self, columns: IntArray, entries: FloatArray, right: float) -> None:
        self.rows.append(np.full(len(columns), len(self.right)))
        self.columns.append(columns)
        self.entries.append(entries)
        self.right.append(right)

    def matrix(self, width: int) -> Any:
        from scipy.sparse import csr_matrix  # noqa: PLC0415  (scipy is slow to import)

        places = (np.concatenate(self.rows), np.concatenate(self.columns))
        return csr_matrix((np.concatenate(self.entries), places), (len(self.right), width))


@dataclass(frozen=True, eq=False)
class _Program:
    """The current linear program.

    For each kind of arm there are four unknowns: its information, the probability with which one of its arms
    is selected, and the evidence required against it and in favour of it. All but the first are bounded.
    """

    arms: _Arms
    low: FloatArray
    high: FloatArray
    rows: _Rows
    is_free: bool

    def add_alternative(self, kind: int, side: int, found: Alternative) -> None:
        """Require enough evidence about an alternative: side 0 is against the kind, 1 in its favour."""
        width = self.arms.n_kinds
        squares = np.bincount(self.arms.kinds[found.arms], found.squares, width)
        columns = np.flatnonzero(squares)
        self.rows.add(np.append(columns, (2 + side) * width + kind), np.append(squares[columns], -1.0), 0.0)

    def add_tangents(self, selects: FloatArray, demanded: FloatArray) -> None:
        """Require at least the tangents of the required evidence at these probabilities, if violated."""
        width, delta = self.arms.n_kinds, self.arms.problem.delta
        inside = np.clip(selects, 1e-9, 1 - 1e-9)
        needed = _needed(inside, delta)
        for side, chance in enumerate((delta, 1 - delta)):
            slopes = np.log(inside / chance) - np.log((1 - inside) / (1 - chance))
            for kind in np.flatnonzero(needed[side] > demanded[side] + _SLACK):
                columns = np.array([(2 + side) * width + kind, width + kind])
                right = needed[side][kind] - slopes[kind] * inside[kind]
                self.rows.add(columns, np.array([1.0, -slopes[kind]]), float(right))

    def solve(self) -> tuple[FloatArray, float]:
        """Return a solution, one row per type of unknown, and a certified lower bound in pulls."""
        from scipy.optimize import linprog  # noqa: PLC0415  (scipy is slow to import)

        width = self.arms.n_kinds
        costs = np.zeros(4 * width)
        costs[:width] = self.arms.prices * self.arms.sizes
        unit = float(costs.max())
        matrix, right = self.rows.matrix(4 * width), np.array(self.rows.right)
        call: Any = linprog  # its type stubs are too narrow
        found = call(
            costs / unit,
            A_ub=-matrix,
            b_ub=-right,
            bounds=np.column_stack([self.low, self.high]),
            method="highs",
        )
        if found.x is None:
            return np.zeros((4, width)), 0.0
        multipliers = np.maximum(-found.ineqlin.marginals, 0.0) * unit
        solution = np.clip(found.x, self.low, self.high).reshape(4, width)  # it is already, up to rounding
        return solution, self._certified(costs, matrix, right, multipliers)

    def _certified(self, costs: FloatArray, matrix: Any, right: FloatArray, multipliers: FloatArray) -> float:
        """Return the minimum of the Lagrangian: by weak duality at most the value of the program."""
        width = self.arms.n_kinds
        spent = (matrix.T @ multipliers)[:width] / costs[:width]
        multipliers = multipliers / max(1.0, float(spent.max()))  # so that the Lagrangian is bounded below
        rest = -(matrix.T @ multipliers)[width:]
        boxes = np.minimum(rest * self.low[width:], rest * self.high[width:]).sum()
        return float(right @ multipliers + boxes)


def _free(arms: _Arms) -> _Program:
    """Return the program in which the algorithm may select arms with any valid probabilities."""
    width, delta, m = arms.n_kinds, arms.problem.delta, arms.problem.m
    is_bad = arms.is_bad[arms.first]
    n_bad = float(arms.sizes[is_bad].sum())
    is_only = arms.problem.n - n_bad == m  # only one answer is correct
    most = math.log(1 / delta)
    low, high = np.zeros(4 * width), np.full(4 * width, most)
    low[width : 2 * width] = np.where(is_bad | (not is_only), 0.0, 1 - delta)
    high[:width], high[width : 2 * width] = np.inf, np.where(is_bad, delta, 1.0)
    program, columns = _Program(arms, low, high, _Rows(), is_free=True), np.arange(width, 2 * width)
    program.rows.add(columns, arms.sizes, float(m))
    program.rows.add(columns, -arms.sizes, -float(m))
    if n_bad:
        program.rows.add(columns[is_bad], -arms.sizes[is_bad], -delta * min(m, n_bad))
    for chance in _TANGENTS:
        program.add_tangents(
            np.clip(np.full(width, chance), low[columns], high[columns]), np.zeros((2, width))
        )
    return program


def _fixed(arms: _Arms, chosen: IntArray) -> _Program:
    """Return the program in which the answer is given with probability 1 - delta."""
    width, delta = arms.n_kinds, arms.problem.delta
    demand = np.zeros((2, width))
    demand[0, arms.kinds[chosen]] = float(divergence(np.array(1 - delta), delta))
    nothing = np.zeros(width)
    low = np.concatenate([nothing, nothing, demand.ravel()])
    high = np.concatenate([np.full(width, np.inf), nothing, demand.ravel()])
    return _Program(arms, low, high, _Rows(), is_free=False)


def _start(arms: _Arms) -> FloatArray:
    """Return information of the right order of magnitude, one number for each kind."""
    means = arms.landscape.means
    cut = float(kth_largest(means, arms.problem.m)[0])
    return 2 * math.log(2 / arms.problem.delta) / np.maximum(1.0, np.abs(means[arms.first] - cut)) ** 2


def _solved(arms: _Arms, program: _Program) -> Bracket:
    """Add alternatives until the certified value comes close to that of a feasible point."""
    width, delta = arms.n_kinds, arms.problem.delta
    good = _start(arms)
    is_bad = arms.is_bad[arms.first]
    selects = np.where(is_bad, 0.0, arms.problem.m / float(arms.sizes[~is_bad].sum()))
    here, chances = good, selects
    lower, upper, reached = 0.0, math.inf, [0.0] * _PATIENCE
    solution = np.zeros((4, width))
    for _ in range(_MOST_ROUNDS):
        needed = _needed(chances, delta) if program.is_free else program.low[2 * width :].reshape(2, width)
        factor, n_added = _explore(arms, program, here, needed, solution)
        value = factor * float((arms.prices * arms.sizes) @ here)
        if value < upper:
            upper, good, selects = value, factor * here, chances
        if program.is_free:
            program.add_tangents(solution[1], solution[2:])
        solution, certified = program.solve()
        lower = max(lower, certified * _ROUNDING)
        is_slow = 0 < lower <= reached[-_PATIENCE] * _WORTH or len(program.rows.right) > _MOST_ROWS
        if upper <= lower * _CLOSE or is_slow:
            break
        reached.append(lower)
        share = _SHARE if n_added else 1.0
        here, chances = (1 - share) * good + share * solution[0], (1 - share) * selects + share * solution[1]
    return Bracket(float(lower), float(upper))


def _explore(
    arms: _Arms, program: _Program, here: FloatArray, needed: FloatArray, solution: FloatArray
) -> tuple[float, int]:
    """Add the alternatives that the solution violates; return the factor to raise the information by."""
    information = here[arms.kinds]
    levels = arms.landscape.best_levels(arms.first, information)
    searches = (arms.landscape.against, arms.landscape.in_favour)
    factor, n_added = 0.0, 0
    for side, search in enumerate(searches):
        for kind in np.flatnonzero(np.maximum(needed[side], solution[2 + side]) > _NOTHING):
            alternatives = search(int(arms.first[kind]), information, float(levels[side][kind]))
            told = alternatives[0].cost(information)
            if needed[side][kind] > _NOTHING:
                factor = max(factor, needed[side][kind] / told if told > 0 else math.inf)
            for found in alternatives:
                told_there = float(solution[0][arms.kinds[found.arms]] @ found.squares)
                if told_there < solution[2 + side][kind] * (1 - 1e-5) or not solution.any():
                    program.add_alternative(int(kind), side, found)
                    n_added += 1
    return factor, n_added
