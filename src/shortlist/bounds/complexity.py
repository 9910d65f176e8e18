"""The worst-case sample complexity of Theorem 4.1, term by term and without its constant."""

import math
from dataclasses import dataclass

from shortlist.problem import Problem
from shortlist.variance_groups import heterogeneity


@dataclass(frozen=True)
class Complexity:
    """The three terms whose sum is, up to a constant factor, the number of pulls that every strategy needs.

    Attributes
    ----------
    confidence
        Term I: the cost of confidence 1 - delta, over all arms.
    homogeneous
        Term II: the cost of telling m arms apart, over the large variance groups.
    heterogeneous
        Term III: the same over the small groups, with the entropy in place of ln(m).
    """

    confidence: float
    homogeneous: float
    heterogeneous: float

    @property
    def total(self) -> float:
        """The sum of the three terms."""
        return self.confidence + self.homogeneous + self.heterogeneous


def complexity(problem: Problem) -> Complexity:
    """Return the three terms of the worst-case sample complexity, in pulls, without its constant.

    Source
    ------
    [ZT22] Theorem 4.1. It is stated for n > 2m and delta < 0.1; the terms are computed for any problem.
    """
    shape = heterogeneity(problem)
    per_arm = problem.variances / problem.epsilon / problem.epsilon
    return Complexity(
        confidence=float(per_arm.sum()) * -math.log(problem.delta),  # [ZT22] Thm. 4.1, term I
        homogeneous=float(per_arm[shape.more].sum()) * math.log(problem.m),  # [ZT22] Thm. 4.1, term II
        heterogeneous=float(per_arm[shape.less].sum()) * shape.entropy_reduced,  # [ZT22] Thm. 4.1, term III
    )
