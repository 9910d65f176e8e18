"""What the bounds are about, in plain and slow code: every set of arms is listed, every world is a row."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np

from shortlist.arrays import FloatArray
from shortlist.bounds.classes import Classes

Arms = frozenset[int]
Weights = Mapping[Arms, float]


def kl(p: float, q: float) -> float:
    """Return the relative entropy of two coins."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def divergence(p: float, delta: float) -> float:
    """Return kl(p, 1 - delta), exact for the smallest delta too, or 0 where p is no smaller."""
    if p >= 1 - delta:
        return 0.0
    mixed = p * math.log(p) + (1 - p) * math.log1p(-p) if p > 0 else 0.0
    return mixed - p * math.log1p(-delta) - (1 - p) * math.log(delta)


def margin(delta: float) -> float:
    """Return c = ln(B(delta) / delta), multiplied out."""
    return ((1 - delta) * math.log(1 - delta) - (1 - 2 * delta) * math.log(delta)) / (1 - delta)


def classes(variances: Iterable[float]) -> Classes:
    """Return listed arms as the library wants them."""
    ordered = sorted(variances)
    distinct = sorted(set(ordered))
    counts = [float(ordered.count(value)) for value in distinct]
    return Classes.listed(np.array(distinct), np.array(counts))


def one_class(variance: float, n_arms: float) -> Classes:
    return Classes.listed(np.array([variance]), np.array([n_arms]))


def sets(arms: Iterable[int], size: int) -> list[Arms]:
    return [frozenset(chosen) for chosen in combinations(sorted(arms), size)]


# --- the paper's dual program ---------------------------------------------------------------------


def entropy(values: Sequence[float]) -> float:
    total = math.fsum(values)
    return -math.fsum(value / total * math.log(value / total) for value in values if value > 0)


def dual_objective(variances: Sequence[float], m: int, delta: float, eta: Weights) -> float:
    """Return v(eta) as [ZT22] Lemma 6.3 has it: a sum over all sets of m arms."""
    terms = []
    for chosen in sets(range(len(variances)), m):
        parts = [eta.get(chosen - {arm}, 0.0) * variances[arm] for arm in chosen]
        if sum(parts) > 0:
            terms.append(math.fsum(parts) * (margin(delta) + entropy(parts)))
    return math.fsum(terms)


def normed(weights: Weights) -> dict[Arms, float]:
    total = math.fsum(weights.values())
    return {chosen: weight / total for chosen, weight in weights.items()}


def uniform_weights(inside: Iterable[int], m: int) -> dict[Arms, float]:
    return normed(dict.fromkeys(sets(inside, m - 1), 1.0))


def product_weights(bases: Mapping[int, float], m: int) -> dict[Arms, float]:
    """Return weights on sets of m - 1 arms, each in proportion to the product of its arms' bases."""
    return normed({chosen: math.prod(bases[arm] for arm in chosen) for chosen in sets(bases, m - 1)})


def conic_dual(variances: Sequence[float], m: int, delta: float) -> float:
    """Return the largest v(eta), by a conic solver."""
    everyone = range(len(variances))
    small, large = sets(everyone, m - 1), sets(everyone, m)
    column = {chosen: place for place, chosen in enumerate(small)}
    rows = [(chosen, arm) for chosen in large for arm in sorted(chosen)]
    parts, totals = np.zeros((len(rows), len(small))), np.zeros((len(rows), len(small)))
    for row, (chosen, arm) in enumerate(rows):
        parts[row, column[chosen - {arm}]] = variances[arm]
        for other in chosen:
            totals[row, column[chosen - {other}]] = variances[other]
    eta = cp.Variable(len(small), nonneg=True)
    value = margin(delta) * cp.sum(parts @ eta) - cp.sum(cp.rel_entr(parts @ eta, totals @ eta))
    return float(cp.Problem(cp.Maximize(value), [cp.sum(eta) == 1]).solve(solver=cp.CLARABEL))


def conic_primal(variances: Sequence[float], m: int, delta: float) -> float:
    """Return the optimum, times epsilon^2, of the program before [ZT22] Lemma 6.3: all l, F and i."""
    everyone = range(len(variances))
    small = [(zero, chosen) for zero in everyone for chosen in sets(set(everyone) - {zero}, m - 1)]
    large = [(zero, chosen) for zero in everyone for chosen in sets(set(everyone) - {zero}, m)]
    names = [(zero, chosen, i) for zero, chosen in small for i in everyone if i not in chosen | {zero}]
    column = {name: place for place, name in enumerate(names)}
    pulls, errors = np.zeros((len(small), len(names))), np.zeros((len(large), len(names)))
    for row, (zero, chosen) in enumerate(small):
        for i in set(everyone) - chosen - {zero}:
            pulls[row, column[zero, chosen, i]] = variances[i] * (1 - delta) / 2
    for row, (zero, chosen) in enumerate(large):
        for i in chosen:
            errors[row, column[zero, chosen - {i}, i]] = 1.0
    x, most = cp.Variable(len(names)), cp.Variable()
    allowed = math.exp(-margin(delta))
    return solved(cp.Minimize(most), [pulls @ x <= most, errors @ cp.exp(-x) <= allowed])


# --- the null instance ----------------------------------------------------------------------------


def null_value(variances: Iterable[float], p: Iterable[float], delta: float) -> float:
    """Return 2 sum(s kl(p, 1 - delta)), terms with p above 1 - delta being 0."""
    return 2 * math.fsum(s * divergence(x, delta) for s, x in zip(variances, p, strict=True))


def null_minimum(variances: Sequence[float], delta: float) -> float:
    """Return 2 sum(s kl(p, 1 - delta)) at the best p that a conic solver finds, made feasible."""
    s, q = np.array(variances), 1 - delta
    p = cp.Variable(len(s), nonneg=True)
    solved(cp.Minimize((s / s.max()) @ _divergences(p, delta)), [cp.sum(p) <= 1, p <= q])
    found = np.clip(p.value, 0.0, q)
    found /= max(1.0, found.sum())
    return null_value(variances, found.tolist(), delta)


def _divergences(p: Any, delta: float) -> Any:
    return -cp.entr(p) - cp.entr(1 - p) - math.log1p(-delta) * p - math.log(delta) * (1 - p)


def shifted_minimum(variances: Sequence[float], delta: float, shifts: Sequence[float]) -> float:
    """Return the least 2 sum(s x) that no raised instance refutes, whatever share of epsilon others move."""
    s, n = np.array(variances), len(variances)
    x, p = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    costs = _divergences(p, delta)
    rules = [cp.sum(p) <= 1, p <= 1 - delta]
    rules += [((1 - b) ** 2 - b**2) * x + b**2 * cp.sum(x) >= costs for b in shifts]
    return 2 * float(s.max()) * solved(cp.Minimize((s / s.max()) @ x), rules)


def swap_minimum(variances: Sequence[float], m: int, delta: float) -> float:
    """Return the least pulls, times epsilon^2, that rule out all exchanges of an arm in for one out.

    The m arms of a set lie epsilon above the others, and x counts the pulls of each arm in units of
    2 s / epsilon^2. In the world of a set each exchange is a wrong answer; together they have delta.
    """
    everyone = range(len(variances))
    worlds = sets(everyone, m)
    column = {
        (world, arm): place for place, (world, arm) in enumerate((w, a) for w in worlds for a in everyone)
    }
    pairs = [(w, i, j) for w in worlds for i in sorted(w) for j in everyone if j not in w]
    doubts = np.zeros((len(pairs), len(column)))
    errors = np.zeros((len(worlds), len(pairs)))
    for row, (world, i, j) in enumerate(pairs):
        other = world - {i} | {j}
        doubts[row, column[other, i]] = doubts[row, column[other, j]] = 1 / (1 - delta)
        errors[worlds.index(world), row] = 1.0
    pulls = np.zeros((len(worlds), len(column)))
    for (world, arm), place in column.items():
        pulls[worlds.index(world), place] = 2 * variances[arm]
    x, most = cp.Variable(len(column), nonneg=True), cp.Variable()
    allowed = math.exp(-margin(delta))
    return solved(cp.Minimize(most), [pulls @ x <= most, errors @ cp.exp(-doubts @ x) <= allowed])


def solved(objective: Any, rules: list[Any]) -> float:
    """Return the optimum that a conic solver finds."""
    program = cp.Problem(objective, rules)
    program.solve(solver=cp.CLARABEL)
    assert program.status == cp.OPTIMAL
    return float(program.value)


# --- random problems ------------------------------------------------------------------------------


def random_variances(rng: np.random.Generator, n: int) -> FloatArray:
    """Return variances that are all different, partly equal, or all equal."""
    spread = np.exp(rng.uniform(-1.5, 1.5, n))
    return np.array(
        [spread, np.round(2 * spread) / 2 + 0.5, np.full(n, 1.7)][rng.choice(3, p=[0.6, 0.3, 0.1])]
    )
