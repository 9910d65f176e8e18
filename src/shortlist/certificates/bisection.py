"""Search for the smallest sufficient amount, if every larger amount is also sufficient."""

from collections.abc import Callable

from shortlist.errors import InvalidProblem

_MOST = 2.0**200


def least_enough(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return a sufficient amount barely above the smallest; `low` is too small, and `high` may be raised."""
    while not is_enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise InvalidProblem("no number of pulls that can be counted is enough for this epsilon.")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
