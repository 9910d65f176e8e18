"""What is known of the rewards: `Bounded`, `Bernoulli`, `SubGaussian`, or `Gaussian`."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

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


@dataclass(frozen=True)
class Bounded:
    """Every reward lies between two numbers; nothing is known of their variances.

    The race then adapts to the means that it finds: the nearer they lie to a bound, the less rewards can
    vary, and the fewer pulls it needs. Rewards of one of the two bounds are the noisiest with their mean; if
    others are known to vary less, state their `variances` together with `bounds`. Strategies for known
    variances use the largest variance possible, ``(high - low)**2 / 4``.

    Parameters
    ----------
    low, high
        The bounds, the same for all arms.
    step
        If every reward is `low` plus a multiple of a step, such as 1 for marks from 0 to 5: that step. With
        shared items it makes ties cheap; otherwise it has no effect but to refuse other rewards.
    """

    low: float = 0.0
    high: float = 1.0
    step: float | None = None

    def __post_init__(self) -> None:
        low, high = checks.bounds((self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.step is not None:
            object.__setattr__(self, "step", checks.step(self.step, high - low))

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step}"
        return f"Bounded(low={self.low}, high={self.high}{step})"


@dataclass(frozen=True)
class Bernoulli(Bounded):
    """Every reward is 0 or 1: a failure or a success."""

    low: float = field(default=0.0, init=False)
    high: float = field(default=1.0, init=False)
    step: float | None = field(default=1.0, init=False)

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
    return Bounded(*checks.bounds(bounds), step=step)


def rewards_of(noise: str, variances: Any = None, pilot: int | None = None) -> Rewards:
    """Return the rewards that are meant by the word for their noise."""
    if checks.one_of(noise, "noise", (*KINDS, UNKNOWN)) == UNKNOWN:
        return Gaussian(pilot=pilot)
    return KINDS[noise](variances)
