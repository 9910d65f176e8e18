"""Which earlier incumbents a strategy remembers: more may be certified for them than for the present ones."""

import numpy as np

from shortlist.arrays import IntArray

_EARLIER = 8  # sets of earlier incumbents that are remembered


def remembered(earlier: tuple[IntArray, ...], before: IntArray, chosen: IntArray) -> tuple[IntArray, ...]:
    """Return the sets of earlier incumbents, the latest first, once `chosen` follow those before."""
    if not len(before) or np.array_equal(chosen, before):
        return earlier
    return (before, *(one for one in earlier if not np.array_equal(one, chosen)))[:_EARLIER]
