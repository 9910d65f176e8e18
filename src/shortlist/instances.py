"""Bandit instances with known means: those of the paper, and the usual test cases of the field."""

import math
from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import is_whole, n_arms, whole_number
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem

ABOVE = 1e-3
"""The relative amount by which a gap "just above epsilon" exceeds it. At epsilon every answer is correct."""


class Instance(NamedTuple):
    """A problem and the true means of its arms.

    Means are described for maximisation; a problem that minimises has their negatives.
    """

    problem: Problem
    means: FloatArray
    name: str
    source: str


class EqualArms(NamedTuple):
    """A number of arms with the same variance. Both are exact, and may be beyond the range of floats."""

    variance: Fraction
    n_arms: int


def illustrative_classes(k: int) -> tuple[EqualArms, ...]:
    """Return the variance classes of the paper's illustrative example, the noisiest first.

    There are n = 2^(k^2) arms in total, and m = 2^k are to be selected. With l = ceil(log2 k) there are 2^i
    arms of variance 2^-i for each i < l; all others share the variance 2^(-k^2) l / k.

    Source
    ------
    [ZT22] Section 5.2, "An illustrative example".
    """
    k = whole_number(k, "k", 2, 10_000)
    n, levels = 2 ** (k * k), (k - 1).bit_length()  # ceil(log2 k), in integers
    sizes = [2**i for i in range(levels)]  # [ZT22] Sec. 5.2, illustrative example
    noisy = [EqualArms(Fraction(1, size), size) for size in sizes]
    rest = EqualArms(Fraction(levels, k * n), n - 2**levels + 1)  # [ZT22] Sec. 5.2, illustrative example
    return (*noisy, rest)


def illustrative(k: int, *, epsilon: float = 0.1, delta: float = 0.05) -> Instance:
    """Return the paper's illustrative example: m = 2^k of n = 2^(k^2) arms, a few of them very noisy.

    See `illustrative_classes` for the variances. The paper does not specify the means: here the first m arms,
    including all noisy ones, lie just above epsilon over the rest. For k = 5 there are 33,554,432 arms;
    k = 6 and beyond do not fit into memory.

    Source
    ------
    [ZT22] Section 5.2, "An illustrative example".
    """
    if not is_whole(k) or not 2 <= k <= 5:
        raise InvalidProblem(f"`k` is {k!r}; it must be 2, 3, 4 or 5 (k = 6 would have 2^36 arms).")
    classes = illustrative_classes(k)
    variances = np.repeat([float(arms.variance) for arms in classes], [arms.n_arms for arms in classes])
    problem = Problem(m=2 ** int(k), epsilon=epsilon, delta=delta, variances=variances)
    return Instance(problem, slippage(problem).means, f"illustrative({k})", "[ZT22] Section 5.2")


def hard(
    problem: Problem,
    l: int,  # noqa: E741
    *,
    M: Collection[int] | None = None,  # noqa: N803
    F: Collection[int] | None = None,  # noqa: N803
) -> Instance:
    """Return one of the instances from which the paper derives its lower bound.

    Arm `l` has mean 0, the arms of `M` (m of them) or `F` (m - 1) lie just above epsilon, and all
    others equally far below 0. The only correct answer is M, or F together with l.

    Source
    ------
    [ZT22] Section 6.1, I_{l,M} and I_{l,F}.
    """
    if (M is None) == (F is None):
        raise InvalidProblem("give either `M` (m arms) or `F` (m - 1 arms), not both.")
    given = list(M if M is not None else F if F is not None else ())
    size = problem.m if M is not None else problem.m - 1
    are_arms = all(is_whole(arm) and 0 <= arm < problem.n for arm in [*given, l])
    if not are_arms or len({*given, l}) != size + 1 or len(given) != size:
        raise InvalidProblem(
            f"{'M' if M is not None else 'F'} must contain {size} different arms from 0 to {problem.n - 1}, "
            f"and `l` another one; got {given} and {l!r}."
        )
    chosen = [int(arm) for arm in given]
    above = problem.epsilon * (1 + ABOVE)
    means = np.full(problem.n, -above)  # [ZT22] Sec. 6.1, the rest
    means[chosen] = above  # [ZT22] Sec. 6.1, M or F
    means[l] = 0.0  # [ZT22] Sec. 6.1, l
    means = problem.merits(means)
    return Instance(problem, means, "hard, by M" if M is not None else "hard, by F", "[ZT22] Section 6.1")


def slippage(problem: Problem, gap: float | None = None) -> Instance:
    """Return the slippage configuration: the first m arms lie `gap` above all others.

    By default the gap is just above epsilon, the hardest for procedures with an indifference zone.

    Source
    ------
    [B54], the least favourable configuration.
    """
    means = np.zeros(problem.n)
    means[: problem.m] = problem.epsilon * (1 + ABOVE) if gap is None else gap
    return Instance(problem, problem.merits(means), "slippage", "[B54]")


def equal(problem: Problem, mean: float = 0.0) -> Instance:
    """Return the instance in which all means are equal: every answer is correct and adaptivity does not help.

    Source
    ------
    Folklore; the null instance behind lower bounds such as that of [MT04].
    """
    return Instance(problem, np.full(problem.n, mean), "equal", "folklore; see [MT04]")


def linear(problem: Problem, low: float = 0.0, high: float = 1.0) -> Instance:
    """Return the instance whose means decrease evenly from `high` at the first arm to `low` at the last.

    Source
    ------
    Folklore: evenly spaced means are a usual test case, easy for strategies that adapt.
    """
    means = problem.merits(np.linspace(high, low, problem.n))
    return Instance(problem, means, "linear", "folklore")


def random(
    n: int, m: int, *, epsilon: float = 0.1, delta: float = 0.05, spread: float = 100.0, seed: int = 0
) -> Instance:
    """Return standard normal means with variances drawn log-uniformly from [1/spread, spread].

    Source
    ------
    Ours: variances that fill many groups, means with gaps of all sizes.
    """
    if not 1.0 <= spread < math.inf:
        raise InvalidProblem(f"`spread` is {spread!r}; it must be a finite number, 1 or more.")
    n = n_arms(n)
    rng = np.random.default_rng(whole_number(seed, "seed", 0))
    variances = np.exp(rng.uniform(-math.log(spread), math.log(spread), n))
    problem = Problem(m=m, epsilon=epsilon, delta=delta, variances=variances)
    return Instance(problem, rng.standard_normal(n), f"random({n}, {m})", "ours")
