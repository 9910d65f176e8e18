"""Sample means at the edge of what the good events of the proofs allow.

As long as those events hold, an algorithm must answer correctly, however unkind the rest. Each
adversary plays a level of elimination so: the contenders for some rank come out as low as their
event allows, as many bad arms as its event allows come out on top, and all others stay below.
"""

from collections.abc import Sequence

import numpy as np

from shortlist.arrays import FloatArray

EDGE = 1 - 1e-9
ON_TOP = 1e6


def level_means(
    arms: Sequence[int], means: FloatArray, rank: int, n_kept: int, epsilon_l: float, *, seed: int
) -> FloatArray:
    """Sample means of one level in which the `rank` best arms present may lose at most `epsilon_l`.

    `n_kept` is how many arms the level must keep for its proof to hold: with fewer than
    ``n_kept - rank + 1`` bad arms above the threshold, `rank` good ones survive.
    """
    present = np.asarray(arms)
    best = sorted(present.tolist(), key=lambda arm: (-means[arm], arm))[:rank]
    threshold = means[best[-1]] - epsilon_l / 2
    bad = [arm for arm in present.tolist() if means[arm] < means[best[-1]] - epsilon_l]
    overrated = set(np.random.default_rng(seed).permutation(bad)[: n_kept - rank].tolist())
    shown = []
    for arm in present.tolist():
        if arm in best:
            shown.append(means[arm] - EDGE * epsilon_l / 2)
        elif arm in overrated:
            shown.append(ON_TOP + means[arm])
        elif arm in bad:
            shown.append(threshold)  # as high as can be without counting as overrated
        else:
            shown.append(-ON_TOP)  # good, but not needed
    return np.array(shown)


def kth_best(arms: Sequence[int] | set[int], means: FloatArray, k: int) -> float:
    return float(sorted((means[arm] for arm in arms), reverse=True)[k - 1])
