"""Equal pulls of every arm, as few as the certificate allows.

This is what most people do by hand. With equal variances it is a single stage; with unequal variances it
pulls the less noisy arms as often as the noisy ones need.
"""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.bounds.classes import Classes
from shortlist.certificates.convolution import certified_level
from shortlist.problem import Problem, whole_pulls
from shortlist.strategies.one_batch import strategy
from shortlist.strategies.single_stage import guarantee

_MOST_CLASSES = 64


def pulls(problem: Problem) -> IntArray:
    """Return the same number for every arm."""
    needed = level(problem)

    def amounts(block: slice) -> FloatArray:
        each = 2 * problem.variances.max() * needed / problem.epsilon / problem.epsilon
        return np.full(len(problem.variances[block]), each)

    return whole_pulls(problem.variances.shape, amounts, "Equal pulls")


def level(problem: Problem) -> float:
    """Return the information of the noisiest arm needed if all arms are pulled equally often."""
    unit = float(problem.variances.max())
    arms = Classes.of_arms(problem.variances / unit).few(_MOST_CLASSES)
    shape = 1 / np.minimum(arms.variances * arms.ratio, 1.0)  # information relative to the noisiest arm's
    return certified_level(shape, arms.counts, problem.m, problem.delta)


UNIFORM = strategy(
    "uniform",
    "Equal pulls of every arm, in one batch, as few as the convolution certificate allows.",
    "folklore; docs/theory.md, section 16",
    pulls=pulls,
    guarantee=guarantee,
)
