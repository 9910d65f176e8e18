"""Slips of the hand: answers that are far from all earlier ones of the same arm ask for a second look."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.session.state import RunState

SLIP = "Is that a slip of the hand?"
_FAR = 6.0  # standard errors; a right answer is that far off once in five hundred million


def unusual(history: RunState, arms: IntArray, counts: IntArray, means: FloatArray) -> str:
    """Return a sentence about the first result that is far from the earlier ones of its arm; else nothing.

    If variances are unknown, nothing is called far. The result itself may be among the earlier ones, as a
    row that is sent again: then it is not far from them.
    """
    problem = history.problem
    if not problem.knows_variances or not len(arms):
        return ""
    before = history.result.arms
    earlier, known = before.pulls[arms], before.means[arms]
    pooled, pulls = np.zeros(problem.n), np.zeros(problem.n, dtype=np.int64)
    pulls[arms] = earlier + counts
    pooled[arms] = np.where(earlier > 0, (known * earlier + means * counts) / pulls[arms], means)
    spreads = problem.variances_at(pooled, pulls)
    errors = np.sqrt(spreads[arms] * (1 / np.maximum(counts, 1) + 1 / np.maximum(earlier, 1)))
    is_far = (earlier > 0) & (np.abs(means - known) > _FAR * errors)
    if not is_far.any():
        return ""
    place = int(np.argmax(is_far))
    name = problem.name(int(arms[place]))
    times = abs(means[place] - known[place]) / errors[place]
    return (
        f"{name}: the mean {means[place]:g} is far from {known[place]:g}, that of its {earlier[place]:,} "
        f"earlier rewards, by {times:.0f} standard errors."
    )
