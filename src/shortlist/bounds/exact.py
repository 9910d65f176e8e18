"""The solution of the paper's dual program, by symmetry over variance classes, with a certificate.

Weights can be assumed to depend only on how many arms a set has in each class (a *composition*). The
objective is concave. A minorisation step never decreases it, and Newton's method takes over near the optimum.
Every iterate is feasible, so its value is a lower bound; and the largest slope there bounds the value of
every other point. See `docs/theory.md`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import bmat, csc_matrix, csr_matrix, eye
from scipy.sparse.linalg import splu
from scipy.special import logsumexp

from shortlist.arrays import FloatArray, IntArray
from shortlist.bounds.classes import Classes, sums_after
from shortlist.bounds.paper_bound import pulls_per_value
from shortlist.bounds.two_point import margin
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem

MOST_COMPOSITIONS = 512
"""Up to this many unknowns the program is solved by default."""

_POWERS = (1.0, 0.75, 0.5, 0.25, 0.0, -0.5, -1.0, -2.0, -8.0)
_MOST_STEPS = 100
_PATIENCE = 20  # steps in which the distance to the certificate must halve
_CELLS_PER_UNKNOWN = 2000  # of the table of links; with more, solving takes too long
_MOST_FOR_NEWTON = {1: 10**5, 2: 10**5, 3: 10**4}  # unknowns, by number of classes; more would be slow


@dataclass(frozen=True)
class Optimum:
    """Bounds on the optimal value of the dual program.

    Attributes
    ----------
    value
        The value of a feasible point: a lower bound, however early the solver stopped.
    limit
        An upper bound on the value of every feasible point; the value of a feasible point of the primal
        program.
    """

    value: float
    limit: float


def exact_dual(problem: Problem, *, most: int = MOST_COMPOSITIONS) -> Optimum:
    """Return the best lower bound, in pulls, that the paper's program can give.

    Parameters
    ----------
    problem
        Any problem with few arms or few different variances.
    most
        The largest number of unknowns. A hundred thousand are possible but slow.

    Source
    ------
    [ZT22] Lemma 6.3, as corrected in `docs/theory.md`.
    """
    side = min(problem.m, problem.n - problem.m)  # selecting m arms is the same as leaving out n - m
    if side == 0 or problem.delta >= 0.5:  # nothing to select, or the two-point lemma does not apply
        return Optimum(0.0, 0.0)
    found = exact_value(Classes.of(problem).noisiest(problem.n - 1), side, problem.delta, most=most)
    if found is None:
        raise InvalidProblem(
            f"the dual program of this problem is too large: more than {most:,} unknowns, or too many "
            f"different variances for them. Raise `most`, or use `lower_bound`, which works without it."
        )
    unit = pulls_per_value(problem.delta) / problem.epsilon / problem.epsilon
    return Optimum(max(0.0, unit * found.value), max(0.0, unit * found.limit))


def exact_value(
    arms: Classes, m: int, delta: float, *, most: int = MOST_COMPOSITIONS, tolerance: float = 1e-9
) -> Optimum | None:
    """Return the best value of the dual program for these arms, if those within a class are equal.

    None if there are more than `most` compositions, the number of unknowns, or far too many classes.
    """
    if m == 1:  # only the empty set is left
        return Optimum(margin(delta) * arms.total, margin(delta) * arms.total)
    sets = compositions(arms.counts, m - 1, most)
    if sets is None or sets.size * len(arms.counts) > _CELLS_PER_UNKNOWN * most:
        return None
    unit = float(arms.variances[-1])
    program = _Program(Classes.listed(arms.variances / unit, arms.counts), sets, m, margin(delta))
    starts = (program.at(program.power_weights(power)) for power in _POWERS)
    point = max(starts, key=lambda start: start.value)
    gaps: list[float] = []
    for _ in range(_MOST_STEPS):
        gaps.append(point.limit - point.value)
        is_stuck = len(gaps) > _PATIENCE and gaps[-1] > gaps[-1 - _PATIENCE] / 2
        if gaps[-1] <= tolerance * abs(point.value) or is_stuck:
            break
        if len(sets) <= _MOST_FOR_NEWTON.get(len(arms.counts), 2000):
            point = program.newton_step(point)
        for _ in range(3):
            point = program.ascent_step(point)
    return Optimum(unit * point.value, unit * point.limit)


class _Point(NamedTuple):
    """Weights (logarithms of the mass on each composition) and the quantities derived from them."""

    weights: FloatArray
    slopes: FloatArray
    shares: FloatArray  # of each link, in its set of m arms
    value: float

    @property
    def limit(self) -> float:
        return float(self.slopes.max())


class _Links(NamedTuple):
    """Links from a set F of m - 1 arms to a set of m arms: F and one more arm, of some class."""

    sources: IntArray
    classes: IntArray
    targets: IntArray
    members: FloatArray  # how many arms the larger set has of that class
    n_targets: int


@dataclass(frozen=True, eq=False)
class _Program:
    """The dual program over compositions, with weights as logarithms."""

    arms: Classes
    sets: IntArray  # the compositions of sets of m - 1 arms, one per row
    m: int
    margin: float

    @cached_property
    def links(self) -> "_Links":
        sources, classes = np.nonzero(self.arms.counts - self.sets > 0)
        larger = self.sets[sources]
        larger[np.arange(len(sources)), classes] += 1
        distinct, targets = np.unique(larger, axis=0, return_inverse=True)
        members = larger[np.arange(len(sources)), classes].astype(np.float64)
        return _Links(sources, classes, targets.reshape(-1), members, len(distinct))

    @cached_property
    def log_multiplicities(self) -> FloatArray:
        """The logarithm of the number of sets of each composition."""
        found = np.zeros(len(self.sets))
        for place, count in enumerate(self.arms.counts):
            most = int(min(count, self.m - 1))
            steps = np.arange(most)
            table = np.concatenate([[0.0], np.cumsum(np.log((count - steps) / (steps + 1)))])
            found += table[self.sets[:, place]]
        return found

    @cached_property
    def outside(self) -> FloatArray:
        """Per set, the sum of the variances outside it, class by class."""
        found: FloatArray = (self.arms.counts - self.sets) * self.arms.variances
        return found

    def power_weights(self, power: float) -> FloatArray:
        """Return weights proportional to a power of the product of each set's variances."""
        weights = self.log_multiplicities + power * (self.sets @ np.log(self.arms.variances))
        return np.asarray(weights - logsumexp(weights))

    def at(self, weights: FloatArray) -> _Point:
        """Evaluate the program at these weights."""
        sources, classes, targets, members, n_targets = self.links
        each = weights - self.log_multiplicities  # ln eta_F,
        each = each - each.max()  # scaled down, since the value per mass does not depend on the scale
        log_variances = np.log(self.arms.variances)[classes]
        parts = each[sources] + log_variances + np.log(members)
        peaks = np.full(n_targets, -np.inf)
        np.maximum.at(peaks, targets, parts)
        scaled = np.exp(parts - peaks[targets])
        sums = np.bincount(targets, scaled, n_targets)
        totals = peaks + np.log(sums)  # ln Y_M, with Y_M = sum of eta_{M - j} s_j over j in M
        costs = self.outside[sources, classes] * (totals[targets] - log_variances)
        slopes = self.outside.sum(axis=1) * (self.margin - each) + np.bincount(
            sources, costs, len(each)
        )  # [ZT22] Lemma 6.3, the objective's gradient
        masses = np.exp(weights)
        value = float((masses * slopes).sum() / masses.sum())  # homogeneous of degree 1: value = eta . slopes
        return _Point(weights, slopes, scaled / sums[targets], value)

    def ascent_step(self, point: _Point) -> _Point:
        """Return the maximiser of a minorant that touches the objective at the point: never a lower value."""
        low, high = float(point.slopes.min()), point.limit
        if low == high:
            return point
        outside = self.outside.sum(axis=1)

        def mass(level: float) -> float:
            return float(logsumexp(point.weights + (point.slopes - level) / outside))

        level = point.value
        if mass(low) > 0 > mass(high):
            level = float(brentq(mass, low, high, maxiter=1000, disp=False))  # normalised afterwards
        return self._moved(point, (point.slopes - level) / outside)

    def newton_step(self, point: _Point) -> _Point:
        """Return a point of better value or limit in Newton's direction, or the same if there is none."""
        direction = self._newton_direction(point)
        if direction is None:
            return point
        carrying = np.abs(direction[point.weights > -30])
        step = min(1.0, 8 / max(float(carrying.max(initial=0.0)), 1e-300))
        while step > 1e-3:
            moved = self._moved(point, step * direction)
            is_as_good = moved.value >= point.value - 1e-14 * abs(point.value)
            if moved.value > point.value or (is_as_good and moved.limit < point.limit):
                return moved
            step /= 2
        return point

    def _newton_direction(self, point: _Point) -> FloatArray | None:
        """Return the direction d with (I - T) d = (slopes - level) / outside that keeps the mass at 1.

        T is a random walk: from F to F with one more arm, drawn by variance, and then to that with one arm
        fewer, drawn by `shares`. The level is found together with d.
        """
        sources, classes, targets, _, n_targets = self.links
        size, outside = len(self.sets), self.outside.sum(axis=1)
        more = self.outside[sources, classes] / outside[sources]
        up = csr_matrix((more, (sources, targets)), (size, n_targets))
        down = csr_matrix((point.shares, (targets, sources)), (n_targets, size))
        blocks: Any = [
            [eye(size) - up @ down, (1 / outside)[:, None]],
            [np.exp(point.weights)[None, :], None],
        ]
        try:
            found = np.asarray(splu(csc_matrix(bmat(blocks))).solve(np.append(point.slopes / outside, 0.0)))
        except RuntimeError:  # numerically singular: only ascent steps are used
            return None
        return found[:-1] if np.isfinite(found).all() else None

    def _moved(self, point: _Point, direction: FloatArray) -> _Point:
        weights = point.weights + direction
        return self.at(np.asarray(weights - logsumexp(weights)))


def compositions(counts: FloatArray, size: int, most: int) -> IntArray | None:
    """Return all ways to take `size` arms from classes of these sizes, one per row.

    None if there are more than `most`.
    """
    found = np.zeros((1, 0), dtype=np.int64)
    for count, rest in zip(counts, sums_after(counts), strict=True):
        missing = size - found.sum(axis=1)
        least = np.maximum(0, missing - min(rest, size)).astype(np.int64)
        n_ways = np.minimum(missing, min(count, size)).astype(np.int64) - least + 1
        if n_ways.sum() > most:  # each prefix leads to at least one composition
            return None
        rows = np.repeat(np.arange(len(found)), n_ways)
        taken = np.arange(len(rows)) - np.repeat(np.cumsum(n_ways) - n_ways, n_ways) + least[rows]
        found = np.column_stack([found[rows], taken])
    return found
