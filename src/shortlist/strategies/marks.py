"""Marks: the fixed positions in the order of items, or numbers of blocks, at which decisions are made."""

import math
from functools import lru_cache

import numpy as np

from shortlist.arrays import IntArray

FIRST = 8  # items before the first decision
GROWTH = 0.06  # marks grow by this share


@lru_cache(maxsize=64)
def marks(n_items: int) -> IntArray:
    """Return the positions at which decisions are made, from 0 to the number of items."""
    found = [0, min(FIRST, n_items)]
    while found[-1] < n_items:
        found.append(min(n_items, math.ceil(found[-1] * (1 + GROWTH))))
    return np.array(found)
