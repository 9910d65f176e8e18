"""Classes of arms with similar variances, which are all that a lower bound needs to know of a problem.

A bound depends only on how many arms have which variance. A million arms with four different variances are
four classes; so are 2^144 arms, which no computer could list.
"""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.problem import Problem

MOST_CLASSES = 1024
"""If a bound loops over classes, they are first merged until there are about this many."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Arms by variance, the least noisy first.

    Attributes
    ----------
    variances
        The variance of each class, increasing; for merged classes, the smallest.
    counts
        The number of arms in each class, as floats: they may exceed every integer type.
    sums
        The sum of the variances of the arms in each class.
    ratio
        No arm's variance exceeds that of its class by more than this factor; 1 if they are equal.
    """

    variances: FloatArray
    counts: FloatArray
    sums: FloatArray
    ratio: float = 1.0

    @classmethod
    def of(cls, problem: Problem) -> "Classes":
        """Return the classes of a problem."""
        return cls.of_arms(problem.variances)

    @classmethod
    def of_arms(cls, variances: FloatArray) -> "Classes":
        """Return the classes of arms with these variances, in any order."""
        distinct, counts = np.unique(variances, return_counts=True)
        return cls.listed(distinct, counts.astype(np.float64))

    @classmethod
    def listed(cls, variances: FloatArray, counts: FloatArray) -> "Classes":
        """Return classes of equal arms from their increasing variances and their sizes."""
        return cls(variances, counts, variances * counts)

    @property
    def n(self) -> float:
        """The number of arms."""
        return float(self.counts.sum())

    @property
    def total(self) -> float:
        """The sum of all variances."""
        return float(self.sums.sum())

    @property
    def entropy(self) -> float:
        """The entropy of the variances of all arms, if those within a class are equal."""
        shares = self.variances / self.total  # [ZT22] Sec. 3, Ent
        return -float((self.counts * shares * np.log(shares)).sum())

    def noisiest(self, n_arms: float) -> "Classes":
        """Return this many arms with the largest variances, if those within a class are equal."""
        above = sums_after(self.counts)
        counts = np.clip(n_arms - above, 0.0, self.counts)
        is_left = counts > 0
        return Classes.listed(self.variances[is_left], counts[is_left])

    def first(self, n_classes: int) -> "Classes":
        """Return the classes with the smallest variances."""
        some = slice(n_classes)
        return Classes(self.variances[some], self.counts[some], self.sums[some], self.ratio)

    def few(self, most: int = MOST_CLASSES) -> "Classes":
        """Return at most about `most` classes; if there are more, neighbours are merged."""
        if len(self.variances) <= most:
            return self
        places = np.log2(self.variances / self.variances[0])
        step = max(float(places[-1]) / most, 2.0**-20)
        starts = np.flatnonzero(np.diff(np.floor(places / step), prepend=-1.0))
        least, last = self.variances[starts], np.append(starts[1:], len(self.variances)) - 1
        return Classes(
            variances=least,
            counts=np.add.reduceat(self.counts, starts),
            sums=np.add.reduceat(self.sums, starts),
            ratio=self.ratio * float((self.variances[last] / least).max()),
        )


def sums_after(counts: FloatArray) -> FloatArray:
    """Return, for each count, the sum of those after it, summed from the end to avoid cancellation."""
    return np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
