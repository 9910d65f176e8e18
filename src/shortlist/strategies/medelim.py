"""Median elimination for screening: halve the arms until 2m remain.

Follows [ZT22] Algorithm 1 and Lemma 5.2. It selects 2m arms, not m: for each k up to m, the k-th best of
those is guaranteed to be nearly as good as the k-th best of all. Variance-grouped elimination uses it for
this reason: it does not know how many of the best arms a group holds.
"""

import math

from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.problem import Problem
from shortlist.strategies.elimination import Level, Schedule, strategy


def schedule(n_arms: int, m: int, epsilon: float, delta: float) -> Schedule:
    """Return the levels that screen `n_arms` arms down to 2m."""
    levels: list[Level] = []
    while n_arms > 2 * m:  # [ZT22] Alg. 1, line 2
        number = len(levels) + 1
        epsilon_l = (epsilon / 3) * (3 / 4) ** number  # [ZT22] Alg. 1, line 1
        delta_l = (delta / 4) / 2**number  # [ZT22] Alg. 1, line 1
        pulls = 2 / (epsilon_l / 2) ** 2 * math.log(m / delta_l)  # [ZT22] Alg. 1, line 3
        keep = max(n_arms // 2, 2 * m)  # [ZT22] Alg. 1, line 4
        levels.append(Level(n_arms, keep, epsilon_l, delta_l, pulls))
        n_arms = keep
    return tuple(levels)


def _schedule(problem: Problem) -> Schedule:
    return schedule(problem.n, problem.m, problem.epsilon, problem.delta)


def shares(levels: Schedule) -> tuple[Share, ...]:
    """Return the failure probability of each level for k = m (for smaller k, the fraction k/m of it)."""
    return tuple(
        Share(f"level {number} loses more than {level.epsilon:.3g} at rank m", 4 * level.delta)
        for number, level in enumerate(levels, start=1)
    )


def _guarantee(problem: Problem) -> Guarantee:
    ledger = Ledger(shares(_schedule(problem)))
    return Guarantee.of(problem, "[ZT22] Lemma 5.2; docs/theory.md, section 6", ledger, Scope.SCREENING)


MEDELIM = strategy(
    "medelim",
    "Median elimination as a screen: halves the arms until 2m are left (not m).",
    "[ZT22] Algorithm 1",
    schedule=_schedule,
    guarantee=_guarantee,
    n_selected=lambda problem: min(2 * problem.m, problem.n),
)
