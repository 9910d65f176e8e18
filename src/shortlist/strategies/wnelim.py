"""Weighted naive elimination: pull every arm in proportion to its noise, keep the m best means.

Follows [ZT22] Section 5.1 and Lemma 5.1. The only departure is that pull counts are rounded up.
"""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.one_batch import strategy


def pulls(variances: FloatArray, epsilon: float, delta: float) -> IntArray:
    """Return how often to pull each arm so that all means are accurate to epsilon/2 simultaneously."""
    share = delta / variances.sum(axis=-1, keepdims=True)

    def amounts(block: slice) -> FloatArray:
        logs: FloatArray = variances[..., block] * share  # [ZT22] Lemma 5.1, omega_i
        np.log(logs, out=logs)
        logs *= variances[..., block]
        logs *= -2 / (epsilon / 2) ** 2  # [ZT22] Sec. 5.1, WNElim: 2 s^2 / (eps/2)^2 ln(1/omega_i)
        return logs

    return whole_pulls(variances.shape, amounts, "Weighted naive elimination")


def closed_form_pulls(problem: Problem) -> float:
    """Return the total of Lemma 5.1, before pulls are rounded up to whole ones."""
    variances = problem.variances
    total = float(variances.sum())
    entropy = -float((variances / total * np.log(variances / total)).sum())
    return 8 * total / problem.epsilon**2 * (-math.log(problem.delta) + entropy)  # [ZT22] Lemma 5.1


def _guarantee(problem: Problem) -> Guarantee:
    event = "some arm's sample mean is off by epsilon/2 or more, towards the cut"
    return Guarantee.of(
        problem, "[ZT22] Lemma 5.1; docs/theory.md, section 6", Ledger((Share(event, problem.delta),))
    )


WNELIM = strategy(
    "wnelim",
    "Weighted naive elimination: one batch for every arm, sized by its variance.",
    "[ZT22] Lemma 5.1",
    pulls=lambda problem: pulls(problem.variances, problem.epsilon, problem.delta),
    guarantee=_guarantee,
)
