"""Median elimination that ignores how the variances differ: every arm is taken as the noisiest.

The plain adaptation of [ZT22] Section 5.1: Halving [KS10] with the largest variance for all arms.
"""

import math

import numpy as np

from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem
from shortlist.strategies.elimination import Level, Schedule, State, ask, most_pulls, tell, verdict
from shortlist.strategies.protocol import Lanes, Strategy, all_arms

__all__ = ["MEDELIM_MAX", "State", "ask", "init", "schedule", "tell", "verdict"]


def schedule(problem: Problem) -> Schedule:
    """Return the levels that halve the arms down to m."""
    n_arms, m = problem.n, problem.m
    epsilon_l, delta_l = problem.epsilon / 4, problem.delta / 2  # [KS10] Halving, eps_1 and delta_1
    levels: list[Level] = []
    while n_arms > m:
        pulls = 2 / (epsilon_l / 2) ** 2 * math.log(3 * m / delta_l)  # [KS10] Halving, t_l
        keep = max(-(-n_arms // 2), m)  # [KS10] Halving, |R_{l+1}|
        levels.append(Level(n_arms, keep, epsilon_l, delta_l, pulls))
        n_arms, epsilon_l, delta_l = keep, epsilon_l * 3 / 4, delta_l / 2  # [KS10] Halving
    return tuple(levels)


def init(problem: Problem, lanes: Lanes = ()) -> State:
    """Return the first state, in which every arm has the largest variance."""
    noisiest = problem.variances.max(keepdims=True)  # [ZT22] Sec. 5.1, max sigma_i^2
    return State(noisiest, all_arms(problem, lanes), schedule(problem))


def _guarantee(problem: Problem) -> Guarantee:
    shares = (
        Share(f"level {number} loses more than {level.epsilon:.3g} at the m-th best", level.delta)
        for number, level in enumerate(schedule(problem), start=1)
    )
    return Guarantee.of(problem, "[KS10] Theorem 1 with [ZT22] Section 5.1", Ledger(tuple(shares)))


MEDELIM_MAX: Strategy[State] = Strategy(
    name="medelim-max",
    summary="Median elimination (Halving) as if every arm had the largest variance.",
    source="[ZT22] Section 5.1",
    init=init,
    ask=ask,
    tell=tell,
    verdict=verdict,
    guarantee=_guarantee,
    worst_case_pulls=lambda problem: most_pulls(
        schedule(problem), np.full(problem.n, problem.variances.max())
    ),
)
