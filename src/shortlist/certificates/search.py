"""The least amount that is enough, where more always is."""

from collections.abc import Callable


def least_enough(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return an amount that is enough, hardly above the least; `low` is not, and `high` may have to grow."""
    while not is_enough(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
