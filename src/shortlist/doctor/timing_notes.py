"""Notes on the times of a run that contradict what the certificate of blocks assumes.

Logarithms of ratios of times within a block are Gaussian, have one mean and one variance for each pair of
arms, and those of different blocks are independent. If that is true, each check reports something in about
one run of a hundred. `blocks.py` tests the same of any rewards, before a run.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np

from shortlist.arrays import FloatArray, IntArray

_ALARM = 0.01  # chance that a check reports something although the assumption holds, over all arms
_FEWEST = 8  # blocks that the checks need


class Contradiction(NamedTuple):
    """What contradicts an assumption.

    Attributes
    ----------
    kind
        "outliers", "trend", "correlation" or "noise".
    words
        What was seen, in sentences.
    """

    kind: str
    words: str

    @property
    def is_grave(self) -> bool:
        """Whether the failure probability may be many times as large as stated.

        With a trend there is no single ratio that a statement could be about. With correlated blocks, the
        mean ratio is far less precise than its certificate takes it to be. Outliers and noise that grows
        also make the estimated noise larger, and so the certificate more careful.
        """
        return self.kind in {"trend", "correlation"}


def contradictions(pairs: Mapping[str, FloatArray], reference: str) -> list[Contradiction]:
    """Return what contradicts the assumptions about the differences of each arm from a reference.

    If they hold, each of the four checks reports something in about one run of a hundred.
    """
    tested = {name: own for name, own in pairs.items() if len(own) >= _FEWEST and np.ptp(own) > 0}
    if not tested:
        return []
    found = []
    for kind, check, words in _CHECKS:
        level = _ALARM / len(tested)
        chances = {name: check(own, level) for name, own in tested.items()}
        worst = min(chances, key=lambda name: chances[name])
        if chances[worst] < level:
            found.append(Contradiction(kind, words(f"{worst} and {reference}", tested[worst])))
    return found


def outliers(values: FloatArray, level: float = _ALARM) -> IntArray:
    """Return the places of outliers by the generalised ESD test: a tenth of all values at most."""
    from scipy.special import stdtrit  # noqa: PLC0415  (scipy is slow to import)

    left, found, n_outliers = list(range(len(values))), [], 0
    for _ in range(max(1, len(values) // 10)):
        own = values[left]
        k, spread = len(own), float(own.std(ddof=1))
        if k < 4 or not spread:
            break
        place = int(np.argmax(np.abs(own - own.mean())))
        quantile = float(stdtrit(k - 2, 1 - level / (2 * k)))
        limit = (k - 1) * quantile / math.sqrt((k - 2 + quantile**2) * k)
        found.append(left.pop(place))
        if abs(own[place] - own.mean()) / spread > limit:
            n_outliers = len(found)
    return np.array(found[:n_outliers], dtype=np.int64)


def _chance_of_outliers(values: FloatArray, level: float) -> float:
    return 0.0 if len(outliers(values, level)) else 1.0


def _trend(values: FloatArray, *, is_one_sided: bool = False) -> float:
    """Return the chance of so strong a trend (Kendall's test, exact for few values)."""
    from scipy.stats import kendalltau  # noqa: PLC0415  (scipy is slow to import)

    way: Literal["greater", "two-sided"] = "greater" if is_one_sided else "two-sided"
    return float(kendalltau(np.arange(len(values)), values, alternative=way).pvalue)


def _lag_correlation(values: FloatArray) -> float:
    deviations = values - values.mean()
    return float((deviations[1:] * deviations[:-1]).sum() / (deviations**2).sum())


def _chance_of_lag(values: FloatArray) -> float:
    """Return the chance of so large a correlation of successive values (Moran's moments)."""
    k = len(values)
    score = (_lag_correlation(values) + 1 / k) * k * math.sqrt(k - 1) / (k - 2)
    return math.erfc(score / math.sqrt(2)) / 2


def _slope(values: FloatArray) -> float:
    """Return by which share the last value lies above the first, by a line through the logarithms."""
    return math.expm1(float(np.polyfit(np.linspace(0, 1, len(values)), values, 1)[0]))


def _percent(share: float, sign: str = "") -> str:
    """Return a share in percent with two digits that count, and no exponent: 1.3 %, 110 %."""
    return f"{float(f'{100 * share:.2g}'):{sign},.10g} %"


def _outlier_words(which: str, values: FloatArray) -> str:
    n_far = max(1, len(outliers(values)))
    far = "1 ratio lies" if n_far == 1 else f"{n_far:,} ratios lie"
    return (
        f"outliers: of {len(values):,} ratios of {which}, {far} far from the others. The guarantee "
        "assumes log-normal ratios. Check whether something else used the machine."
    )


def _trend_words(which: str, values: FloatArray) -> str:
    return (
        f"the ratio of {which} changes during the run, by about {_percent(_slope(values), '+')}. The "
        "guarantee assumes that the ratio stays the same. If a command is slower at first, use more "
        "warm-up runs."
    )


def _lag_words(which: str, values: FloatArray) -> str:
    return (
        f"ratios of {which} in successive blocks are correlated ({_lag_correlation(values):.2f}). The "
        "guarantee assumes that blocks are independent, but some disturbance lasted for several blocks."
    )


def _growth_words(which: str, values: FloatArray) -> str:
    half = len(values) // 2
    before, after = values[:half].std(ddof=1), values[-half:].std(ddof=1)
    return (
        f"the noise grows during the run: ratios of {which} vary by {_percent(before)} in the first half "
        f"and by {_percent(after)} in the second. The guarantee assumes that the noise stays the same."
    )


class _Check(NamedTuple):
    kind: str
    chance: Callable[[FloatArray, float], float]
    words: Callable[[str, FloatArray], str]


_CHECKS = (
    _Check("outliers", _chance_of_outliers, _outlier_words),
    _Check("trend", lambda values, _: _trend(values), _trend_words),
    _Check("correlation", lambda values, _: _chance_of_lag(values), _lag_words),
    _Check(
        "noise",
        lambda values, _: _trend(np.abs(values - np.median(values)), is_one_sided=True),
        _growth_words,
    ),
)
"""Each check gets the chance that is an alarm, and returns the chance of what it sees; then words."""


def level_notes(level: FloatArray) -> list[str]:
    """Return how the level of all times changed during the run; that does no harm."""
    if len(level) < _FEWEST or not np.ptp(level) or _trend(level) >= _ALARM:
        return []
    change = _slope(level)
    way = "slower" if change > 0 else "faster"
    return [
        f"the machine became about {_percent(abs(change))} {way} during the run. This cancels out within "
        "blocks."
    ]
