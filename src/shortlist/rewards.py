"""What is known of the rewards: `Bounded`, `Bernoulli`, `SubGaussian`, or `Gaussian`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from shortlist import checks
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem


@dataclass(frozen=True, eq=False, init=False)
class SubGaussian:
    """Rewards are sub-Gaussian: the usual assumption, which also holds for all bounded rewards.

    Parameters
    ----------
    variances
        One variance proxy per arm. For Gaussian rewards that is the variance, or an upper bound on it; for
        rewards in [a, b], ``(b - a)**2 / 4`` will do.
    """

    variances: FloatArray

    def __init__(self, variances: ArrayLike) -> None:
        object.__setattr__(self, "variances", checks.variances(variances))

    def __reduce__(self) -> tuple[type, tuple[FloatArray]]:
        return type(self), (self.variances,)


class ZeroOne(SubGaussian):
    """Every reward is 0 or 1; the meaning of ``rewards="bernoulli"`` together with `variances`."""


@dataclass(frozen=True, eq=False, init=False)
class Gaussian:
    """Rewards are Gaussian, with variances that are known exactly or not at all.

    Some strategies are proved for Gaussian rewards only. If the variances are unknown, every arm is first
    pulled `pilot` times. The sample variances of these rewards replace the true ones, and the guarantee
    accounts for their errors. Averages of many outcomes are nearly Gaussian; single successes and failures
    are not.

    Parameters
    ----------
    variances
        The variance of each arm; None if they are unknown.
    pilot
        Only for unknown variances: how often each arm is pulled first, 2 or more. By default each strategy
        chooses a suitable number, mostly between 15 and 80. More is better where noise is large compared
        with epsilon.
    """

    variances: FloatArray | None
    pilot: int | None

    def __init__(self, variances: ArrayLike | None = None, pilot: int | None = None) -> None:
        if variances is not None and pilot is not None:
            raise InvalidProblem(
                "`pilot` is only for unknown variances; leave it out if you give `variances`."
            )
        object.__setattr__(self, "variances", None if variances is None else checks.variances(variances))
        object.__setattr__(
            self, "pilot", None if pilot is None else checks.whole_number(pilot, "pilot", 2, 10**9)
        )

    def __reduce__(self) -> tuple[type, tuple[FloatArray | None, int | None]]:
        return type(self), (self.variances, self.pilot)


@dataclass(frozen=True, init=False)
class Bounded:
    """Every reward lies between two numbers; nothing is known of their variances.

    The race then adapts to the means that it finds: the nearer they lie to a bound, the less rewards can
    vary, and the fewer pulls it needs. Rewards of one of the two bounds are the noisiest with their mean; if
    others are known to vary less, state their `variances` together with `bounds`. Strategies for known
    variances use the largest variance possible, ``(high - low)**2 / 4``.

    Parameters
    ----------
    low, high
        The bounds: two numbers, or lists with one number per arm. Rewards outside those of their arm are
        refused; evidence uses the smallest and the largest of all. Where rewards of an arm vary less than
        these would allow, the race finds out.
    step
        If every reward is `low` plus a multiple of a step, such as 1 for marks from 0 to 5: that step. With
        shared items it makes ties cheap; otherwise it has no effect but to refuse other rewards.
    """

    low: float
    high: float
    step: float | None
    own: tuple[tuple[float, float], ...] | None

    def __init__(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0, step: float | None = None) -> None:
        own = checks.bounds_by_arm(low, high) if np.ndim(low) or np.ndim(high) else None
        each = [checks.bounds((low, high))] if own is None else own
        object.__setattr__(self, "low", min(pair[0] for pair in each))
        object.__setattr__(self, "high", max(pair[1] for pair in each))
        object.__setattr__(self, "own", own)
        if step is not None:
            step = checks.step(step, min(pair[1] - pair[0] for pair in each))
        object.__setattr__(self, "step", step)

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step}"
        if self.own is None:
            return f"Bounded(low={self.low}, high={self.high}{step})"
        low, high = zip(*self.own, strict=True)
        return f"Bounded(low={checks.shortened([*low])}, high={checks.shortened([*high])}{step})"


@dataclass(frozen=True, init=False)
class Bernoulli(Bounded):
    """Every reward is 0 or 1: a failure or a success.

    A mean must be of a whole number of successes, up to a millionth: single precision is sufficient. It
    counts as it is given, and is not rounded to successes.
    """

    def __init__(self) -> None:
        super().__init__(0.0, 1.0, 1.0)

    def __repr__(self) -> str:
        return "Bernoulli()"


Rewards: TypeAlias = SubGaussian | Gaussian | Bounded

UNKNOWN = "gaussian-unknown"
KINDS: dict[str, type[SubGaussian] | type[Gaussian]] = {"sub-gaussian": SubGaussian, "gaussian": Gaussian}
"""What files, logs and servers call `noise`, where variances are known."""
BOUNDED: dict[str, type[Bounded]] = {"bounded": Bounded, "bernoulli": Bernoulli}
"""What they call `noise` where only bounds of the rewards are known."""
NOISES = (*KINDS, UNKNOWN, *BOUNDED)


def bounded_rewards(noise: str, bounds: Any, step: float | None = None) -> Bounded:
    """Return the rewards within bounds that are meant by the word for their noise."""
    if checks.one_of(noise, "noise", tuple(BOUNDED)) == "bernoulli":
        return Bernoulli()
    if bounds is None:
        raise InvalidProblem('`noise` is "bounded": give the `bounds` of the rewards, such as [0, 1].')
    if isinstance(bounds, list | tuple) and any(isinstance(one, list | tuple) for one in bounds):
        pairs = [checks.bounds(one) for one in bounds]
        return Bounded([low for low, _ in pairs], [high for _, high in pairs], step)
    return Bounded(*checks.bounds(bounds), step=step)


def rewards_of(noise: str, variances: Any = None, pilot: int | None = None) -> Rewards:
    """Return the rewards that are meant by the word for their noise."""
    if checks.one_of(noise, "noise", (*KINDS, UNKNOWN)) == UNKNOWN:
        return Gaussian(pilot=pilot)
    return KINDS[noise](variances)
