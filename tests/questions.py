"""Questions by the word for their noise, as files and logs have it; and their lower bounds."""

from typing import Any

import shortlist as sl
from shortlist.bounds import LowerBound
from shortlist.rewards import rewards_of


def known(
    m: int, epsilon: float, delta: float, variances: Any, *, noise: str = "sub-gaussian", **about: Any
) -> sl.Problem:
    """Return a problem with known variances."""
    return sl.Problem(m, epsilon, delta, rewards=rewards_of(noise, variances), **about)


def unknown(
    m: int, epsilon: float, delta: float, n: int | None = None, *, pilot: int | None = None, **about: Any
) -> sl.Problem:
    """Return a problem with Gaussian rewards of unknown variances."""
    return sl.Problem(m, epsilon, delta, n=n, rewards=sl.Gaussian(pilot=pilot), **about)


def bound_of(problem: sl.Problem) -> LowerBound:
    """Return the lower bound of a problem for which one is proved."""
    bound = sl.lower_bound(problem)
    assert bound is not None
    return bound
