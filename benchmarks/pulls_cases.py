"""The instances of the benchmark on pulls: the field's usual ones, the paper's, and a real simulation."""

import fnmatch
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import shortlist as sl
from benchmarks import inventory
from shortlist.arrays import FloatArray
from shortlist.instances import Instance

NOISES = ("sub-gaussian", "gaussian")


class Case(NamedTuple):
    """A named instance, built only when it is needed."""

    name: str
    build: Callable[[], Instance]


Shape = Callable[[sl.Problem], Instance]


def ones(n: int) -> FloatArray:
    """Return equal variances."""
    return np.ones(n)


def powers(n: int) -> FloatArray:
    """Return the variances 1, 2, 4, ..."""
    return np.exp2(np.arange(n, dtype=np.float64))


def geometric(n: int) -> FloatArray:
    """Return variances in geometric progression from 0.1 to 10."""
    return np.asarray(np.geomspace(0.1, 10.0, n), dtype=np.float64)


def log_uniform(n: int) -> FloatArray:
    """Return variances drawn log-uniformly from four powers of ten."""
    return np.exp(np.random.default_rng(1).uniform(np.log(0.01), np.log(100.0), n))


def two_level(n: int) -> FloatArray:
    """Return variances half of which belong to the scale 0.2, half to the scale 2."""
    return np.where(np.arange(n) < n // 2, 0.04, 4.0)


def gap(times: float) -> Shape:
    """Return the slippage configuration with a gap of so many epsilon."""
    return lambda problem: sl.instances.slippage(problem, gap=times * problem.epsilon)


def hard_m(problem: sl.Problem) -> Instance:
    """Return the paper's instance in which the first m arms are in."""
    return sl.instances.hard(problem, problem.m, M=range(problem.m))


def hard_f(problem: sl.Problem) -> Instance:
    """Return the paper's instance in which the first m - 1 arms and the next one are in."""
    return sl.instances.hard(problem, problem.m - 1, F=range(problem.m - 1))


def shuffled(found: Instance, variances: FloatArray | None = None) -> Instance:
    """Return an instance with its arms in random order, so that no strategy profits from it.

    Variances given are dealt to the arms at random; else each arm keeps its own.
    """
    rng = np.random.default_rng(7)
    order = rng.permutation(found.problem.n)
    dealt = found.problem.variances[order] if variances is None else rng.permutation(variances)
    problem = found.problem.changed(variances=dealt, names=None)
    return found._replace(problem=problem, means=found.means[order])


def case(
    name: str,
    n: int,
    m: int,
    shape: Shape,
    *,
    variances: Callable[[int], FloatArray] = ones,
    delta: float = 0.05,
) -> Case:
    """Return a case with epsilon = 0.1, its name beginning with n and m."""

    def build() -> Instance:
        dealt = variances(n)
        problem = sl.Problem(m=m, epsilon=0.1, delta=delta, variances=dealt)
        return shuffled(shape(problem), dealt)

    return Case(f"n{n}-m{m}-{name}", build)


_SLIPPAGE, _EQUAL, _LINEAR = sl.instances.slippage, sl.instances.equal, sl.instances.linear

CASES = (
    case("equal", 10, 1, _EQUAL),
    case("slippage-delta-.1", 10, 3, _SLIPPAGE, delta=0.1),
    case("linear", 20, 1, _LINEAR),
    case("linear", 20, 3, _LINEAR),
    case("linear-two-level", 20, 1, _LINEAR, variances=two_level),
    case("gap-1.1", 20, 1, gap(1.1)),
    case("gap-1.1", 20, 3, gap(1.1)),
    case("slippage-powers", 20, 3, _SLIPPAGE, variances=powers),
    case("hard-geometric", 20, 3, hard_m, variances=geometric),
    case("equal", 100, 1, _EQUAL),
    case("slippage", 100, 1, _SLIPPAGE),
    case("slippage-delta-.1", 100, 1, _SLIPPAGE, delta=0.1),
    case("slippage-delta-1e-6", 100, 1, _SLIPPAGE, delta=1e-6),
    case("gap-0.5", 100, 1, gap(0.5)),
    case("gap-2", 100, 1, gap(2.0)),
    case("linear", 100, 1, _LINEAR),
    case("slippage-geometric", 100, 1, _SLIPPAGE, variances=geometric),
    case("slippage", 100, 5, _SLIPPAGE),
    case("gap-0.5", 100, 5, gap(0.5)),
    case("gap-2", 100, 5, gap(2.0)),
    case("hard-by-M", 100, 5, hard_m),
    case("hard-by-F", 100, 5, hard_f),
    case("slippage-two-level", 100, 10, _SLIPPAGE, variances=two_level),
    case("slippage-log-uniform", 200, 5, _SLIPPAGE, variances=log_uniform),
    case("linear-log-uniform", 200, 5, _LINEAR, variances=log_uniform),
    Case("illustrative-3", lambda: shuffled(sl.instances.illustrative(3))),
    case("equal", 1000, 1, _EQUAL),
    case("slippage", 1000, 1, _SLIPPAGE),
    case("linear-delta-.001", 1000, 1, _LINEAR, delta=0.001),
    case("slippage", 1000, 10, _SLIPPAGE),
    case("slippage", 1000, 100, _SLIPPAGE),
    Case("inventory", inventory.instance),
    case("slippage", 10_000, 1, _SLIPPAGE),
    Case("illustrative-4", lambda: shuffled(sl.instances.illustrative(4))),
    case("slippage", 100_000, 1, _SLIPPAGE),
    case("gap-2", 100_000, 100, gap(2.0)),
)


def cases(patterns: list[str]) -> list[Case]:
    """Return the cases whose names match one of some patterns, or all if there are none."""
    found = [
        each for each in CASES if not patterns or any(fnmatch.fnmatch(each.name, given) for given in patterns)
    ]
    if not found:
        known = ", ".join(each.name for each in CASES)
        raise SystemExit(f"no instance matches {' or '.join(patterns)}; there are: {known}.")
    return found
