"""Numbers as people read them, and round ones for axes."""

import math

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MOST_DECIMALS = 6


def decimals_for(epsilon: float) -> int:
    """Return how many decimals of a mean matter: two more than epsilon has."""
    return max(0, 2 - math.floor(math.log10(epsilon)))


def mean_words(value: float, epsilon: float) -> str:
    """Return a mean with as many decimals as matter; a dash where there is none."""
    if math.isnan(value):
        return "–"
    decimals = decimals_for(epsilon)
    if decimals > _MOST_DECIMALS or abs(value) >= 1e9:
        return f"{value:.6g}"
    return f"{value:,.{decimals}f}"


def large(count: float) -> str:
    """Return a number of pulls; beyond a hundred thousand million only its size."""
    return f"{count:,.0f}" if count < 1e11 else f"{count:.4g}"


def percent(share: float) -> str:
    """Return a share in percent: 12 %, 0.3 %, below 0.1 %."""
    if 0 < share < 0.001:
        return "below 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.1f} %"


def compact(count: float) -> str:
    """Return a number where there is little room: 1,500, 20k or 3M."""
    if abs(count) < 10_000:
        return f"{count:,.0f}"
    return f"{count / 1e3:g}k" if abs(count) < 1e6 else f"{count / 1e6:g}M"


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most so many round numbers, evenly spaced, that lie between two others."""
    if not (high > low and math.isfinite(high - low)):
        return [low]
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (unit * k for k in (1, 2, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [k * step for k in range(first, last + 1)]


def tick_words(values: list[float]) -> list[str]:
    """Return the labels of round numbers, all with the same number of decimals."""
    if len(values) < 2:
        return [f"{value:g}" for value in values]
    step = values[1] - values[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > _MOST_DECIMALS or max(map(abs, values)) >= 1e6:
        return [f"{value:.4g}" for value in values]
    return [f"{value:,.{decimals}f}" for value in values]


def powers(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most so many powers of ten that lie between two numbers; twice and five times one, if few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        finer = [k * 10.0**exponent for exponent in (first - 1, last, last + 1) for k in (1, 2, 5)]
        return sorted({value for value in finer if low <= value <= high})[:most]
    step = max(1, -(-(last - first + 1) // most))
    return [10.0**k for k in range(first, last + 1, step)]


def power_words(value: float) -> str:
    """Return a number of a logarithmic scale: 1,000, or 10⁴ from ten thousand on."""
    exponent = math.log10(value)
    if abs(exponent - round(exponent)) > 1e-9 or 0 <= round(exponent) < 4:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    return "10" + str(round(exponent)).translate(_RAISED)
