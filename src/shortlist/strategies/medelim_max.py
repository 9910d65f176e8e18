"""Median elimination that treats every arm as if it had the largest variance.

The simple adaptation in [ZT22] Section 5.1: Halving [KS10] with the largest variance for all arms.
"""

import math
from dataclasses import replace

import numpy as np

from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem
from shortlist.strategies.elimination import Level, Schedule, State, most_pulls, strategy
from shortlist.strategies.protocol import Lanes, all_arms


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


def _init(problem: Problem, lanes: Lanes = ()) -> State:
    noisiest = problem.variances.max(keepdims=True)  # [ZT22] Sec. 5.1, max sigma_i^2
    return State(noisiest, all_arms(problem, lanes), schedule(problem))


def _worst_case_pulls(problem: Problem) -> int:
    return most_pulls(schedule(problem), np.full(problem.n, problem.variances.max()))


def _guarantee(problem: Problem) -> Guarantee:
    shares = (
        Share(f"level {number} loses more than {level.epsilon:.3g} at the m-th best", level.delta)
        for number, level in enumerate(schedule(problem), start=1)
    )
    return Guarantee.of(
        problem, "[KS10] with [ZT22] Section 5.1; docs/theory.md, section 6", Ledger(tuple(shares))
    )


MEDELIM_MAX = replace(
    strategy(
        "medelim-max",
        "Median elimination (Halving) as if every arm had the largest variance.",
        "[ZT22] Section 5.1",
        schedule=schedule,
        guarantee=_guarantee,
    ),
    init=_init,
    worst_case_pulls=_worst_case_pulls,
)
