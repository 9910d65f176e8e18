"""Evidence from paired differences, by numerical integration of its definition."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.integrate import quad
from scipy.stats import nct, t


def one_sided(values: Sequence[float], gain: float) -> float:
    """Return the likelihood ratio of the t statistic, averaged over positive effects."""
    k = len(values)
    statistic = np.mean(values) / (np.std(values, ddof=1) / math.sqrt(k))
    null = t.pdf(statistic, k - 1)

    def weighed(effect: float) -> float:
        prior = 2 * math.exp(-(effect**2) / (2 * gain)) / math.sqrt(2 * math.pi * gain)
        return float(prior * nct.pdf(statistic, k - 1, effect * math.sqrt(k)) / null)

    return float(quad(weighed, 0, 12 * math.sqrt(gain), limit=400)[0])
