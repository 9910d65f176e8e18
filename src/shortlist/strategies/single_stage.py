"""One batch for every arm, as small as the convolution certificate allows.

Like weighted naive elimination it takes one batch and selects the m largest sample means. But it does not
require every mean to be accurate to epsilon/2: it is enough that no two errors add up to epsilon. That takes
about half as many pulls. How the information is distributed over arms of different variance is optimised for
the problem.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.bounds.classes import Classes
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.certificates.convolution import Failure, certified_level, failure_probability, least_level
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.one_batch import strategy

_MOST_CLASSES = 64


@dataclass(frozen=True)
class Allocation:
    """The information of every arm: `level` for the noisiest, and more for the others.

    An arm of variance s gets ``level * (1 + slope * ln(largest / s))``.
    """

    level: float
    slope: float
    largest: float

    def information(self, variances: FloatArray) -> FloatArray:
        """Return the information of arms with these variances."""
        found: FloatArray = self.level * (1 + self.slope * np.log(self.largest / variances))
        return found


def pulls(problem: Problem) -> IntArray:
    """Return how often to pull each arm; information x takes 2 s x / epsilon^2 pulls."""
    return pulls_for(problem, allocation(problem).information, "A single stage")


def pulls_for(problem: Problem, information: Callable[[FloatArray], FloatArray], purpose: str) -> IntArray:
    """Return the pulls that give arms the information that is meant for their variances."""

    def amounts(block: slice) -> FloatArray:
        variances = problem.variances[block]
        return 2 * variances * information(variances) / problem.epsilon / problem.epsilon

    return whole_pulls(problem.variances.shape, amounts, purpose)


def allocation(problem: Problem) -> Allocation:
    """Return the cheapest allocation found whose failure probability is at most delta.

    It depends on m, delta and the ratios of the variances, not on epsilon or on the order of the arms.
    """
    return Allocation(*cheapest(problem, _SHAPES), float(problem.variances.max()))


@dataclass(frozen=True)
class Shapes:
    """A family of allocations, and the bound on the failure probability that certifies them.

    Attributes
    ----------
    shape
        ``shape(slope, variances)`` returns the information of arms as a multiple of that of the noisiest,
        whose variance is 1.
    slopes
        The slopes to try.
    failure
        The failure probability as a function of the information.
    """

    shape: Callable[[float, FloatArray], FloatArray]
    slopes: tuple[float, ...]
    failure: Failure


_SHAPES = Shapes(
    shape=lambda slope, variances: np.asarray(1 - slope * np.log(variances)),
    slopes=(0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5),
    failure=failure_probability,
)


def cheapest(problem: Problem, shapes: Shapes) -> tuple[float, float]:
    """Return the level and slope of the cheapest allocation of a family."""
    arms = Classes.of_arms(problem.variances / float(problem.variances.max())).few(_MOST_CLASSES)
    columns = (arms.variances.tolist(), arms.counts.tolist(), arms.sums.tolist())
    return _cheapest(problem.m, problem.delta, tuple(zip(*columns, strict=True)), arms.ratio, shapes)


@lru_cache(maxsize=64)
def _cheapest(
    m: int, delta: float, arms: tuple[tuple[float, float, float], ...], ratio: float, shapes: Shapes
) -> tuple[float, float]:
    """Return the level and slope of the cheapest allocation; the slope is found with approximate levels."""
    least, counts, sums = (np.array(column) for column in zip(*arms, strict=True))
    noisiest = np.minimum(least * ratio, 1.0)  # of each class; this arm gets the least information
    shape, failure = shapes.shape, shapes.failure

    def rough_cost(slope: float) -> float:
        level = least_level(
            shape(slope, noisiest), counts, m, delta, steps=256, tolerance=1e-3, failure=failure
        )
        return level * float(sums @ shape(slope, least))

    slope = min(shapes.slopes, key=rough_cost)
    return certified_level(shape(slope, noisiest), counts, m, delta, failure), slope


def guarantee(problem: Problem) -> Guarantee:
    """Return the guarantee of a single batch that the convolution certificate allows."""
    event = "two errors, towards the cut, add up to more than epsilon"
    return Guarantee.of(problem, "docs/theory.md, section 16", Ledger((Share(event, problem.delta),)))


SINGLE_STAGE = strategy(
    "single-stage",
    "One batch for every arm, as small as the convolution certificate allows.",
    "docs/theory.md, section 16",
    pulls=pulls,
    guarantee=guarantee,
)
