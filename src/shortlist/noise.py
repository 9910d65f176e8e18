"""Noise models: variance proxies for arms whose distribution is only partly known."""

import math

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import n_arms, shortened
from shortlist.errors import InvalidProblem


def bounded(low: float, high: float, n: int) -> FloatArray:
    """Return one variance proxy for each of n arms whose rewards lie between `low` and `high`.

    Source
    ------
    [H63] the proof of Theorem 2: (high - low)^2 / 4, whatever the distribution.

    Examples
    --------
    >>> bounded(0, 10, 3)
    array([25., 25., 25.])
    """
    low, high = _real(low, "low"), _real(high, "high")
    if not low < high:
        raise InvalidProblem(f"rewards cannot lie between {low:g} and {high:g}; give the smaller one first.")
    return _for_all(n, (high - low) ** 2 / 4)


def bernoulli(n: int, *, at_least: float = 0.0, at_most: float = 1.0) -> FloatArray:
    """Return one variance proxy for each of n arms whose rewards are 0 or 1.

    If the probability of a 1 is known to lie between `at_least` and `at_most` for every arm, and both are on
    the same side of 1/2, the proxies are smaller than 1/4.

    Examples
    --------
    >>> bernoulli(2, at_most=0.1)
    array([0.18204785, 0.18204785])
    """
    low, high = _real(at_least, "at_least"), _real(at_most, "at_most")
    if not 0 <= low <= high <= 1:
        raise InvalidProblem(
            f"`at_least` is {low:g} and `at_most` {high:g}; give probabilities, the smaller one first."
        )
    noisiest = np.clip(0.5, low, high)  # the proxy increases towards 1/2 from both sides
    return _for_all(n, float(bernoulli_proxy(np.array([noisiest]))[0]))


def bernoulli_proxy(means: FloatArray) -> FloatArray:
    """Return the smallest variance proxy of a 0/1 reward with each mean: (1 - 2p) / (2 ln((1 - p) / p)).

    It is a valid proxy for every reward between 0 and 1 with that mean.

    Source
    ------
    [BM13] Theorem 2.1 and the references there; its largest value is 1/4, at p = 1/2.
    """
    p = np.maximum(np.minimum(means, 1 - means), 1e-300)  # the proxies at p and 1 - p are equal
    is_half = np.abs(p - 0.5) < 1e-4
    away = np.where(is_half, 0.25, p)
    exact = (1 - 2 * away) / (2 * (np.log1p(-away) - np.log(away)))
    near = 0.25 * (1 - (1 - 2 * p) ** 2 / 3)  # its expansion around 1/2, accurate to 1e-16 there
    return np.where(is_half, near, exact)


def _for_all(n: int, variance: float) -> FloatArray:
    return np.full(n_arms(n), variance)


def _real(value: object, name: str) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise TypeError
        number = float(value)
    except (TypeError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidProblem(f"`{name}` is {shortened(value)}; it must be a finite real number, such as 1.0.")
    return number
