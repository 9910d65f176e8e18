"""What is asked: the m best of n arms, to within epsilon, with probability 1 - delta."""

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist import checks
from shortlist.arrays import FloatArray, IntArray, blocks
from shortlist.errors import InvalidProblem

MOST_PULLS = 2**53
"""Beyond this a pull count is no longer exact in double precision."""

_PARTS = ("m", "epsilon", "delta", "variances", "names", "noise", "guarantee", "goal", "bounds", "rewards")


class Named:
    """What all questions share: numbers and names of arms, and whether large or small means are good."""

    n: int
    m: int
    epsilon: float
    names: Sequence[str] | None
    goal: str
    bounds: tuple[float, float] | None = None
    rewards: str | None = None

    @property
    def words(self) -> str:
        """What is asked, in one phrase."""
        if self.goal == "maximise":
            best = "best arm" if self.m == 1 else f"{self.m:,} best"
        else:
            best = "smallest" if self.m == 1 else f"{self.m:,} smallest"
        return f"the {best} of {self.n:,} arms to within {self.epsilon:g}"

    @cached_property
    def arms(self) -> IntArray:
        """All arms, by number; not to be written to."""
        every = np.arange(self.n)
        every.flags.writeable = False
        return every

    def name(self, arm: int) -> str:
        """Return the name of one arm."""
        return f"arm-{arm}" if self.names is None else self.names[arm]

    def merits(self, means: FloatArray) -> FloatArray:
        """Return means so that the larger is the better, as strategies expect it: negated to minimise."""
        return means if self.goal == "maximise" else -means


@dataclass(frozen=True, eq=False, init=False)
class Problem(Named):
    """The question put to a strategy; validated once, never changed.

    Parameters
    ----------
    m
        How many arms to select, from 1 to n. With m = n the answer needs no pulls.
    epsilon
        How far below the true m-th best mean a selected arm may lie, in the units of the rewards.
    delta
        The probability of failure that is accepted, strictly between 0 and 1.
    variances
        One variance proxy per arm: rewards of arm i are sub-Gaussian with proxy ``variances[i]``.
        For Gaussian rewards that is the variance; for rewards in [a, b], ``(b - a)**2 / 4`` will do.
    names
        One distinct name per arm; by default ``arm-0``, ``arm-1`` and so on.
    noise
        What is known of the rewards: "sub-gaussian" (always allowed) or "gaussian", with these variances.
        Some strategies are proved for Gaussian rewards only.
    guarantee
        What must be promised: "pac", that no selected arm lies more than epsilon below the m-th best; or
        only "indifference", that the m best are selected if they lie at least epsilon above all others.
    goal
        "maximise": arms with large means are good; or "minimise": those with small ones. Where something is
        said of arms above or below others, "minimise" exchanges the two words.
    bounds
        ``(low, high)`` if every reward is known to lie between these two numbers. Bounds are part of the
        question: they are stored with a run, and an answer that they rule out is refused, whoever gives it.
        The variance proxies stay those of `variances`.
    rewards
        "bernoulli" if every reward is 0 or 1. Its bounds are (0, 1).

    Examples
    --------
    >>> p = Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0, 4.0], names=["old", "new"])
    >>> p.n, p.name(1)
    (2, 'new')

    Source
    ------
    [ZT22] Section 3.
    """

    m: int
    epsilon: float
    delta: float
    variances: FloatArray
    names: tuple[str, ...] | None = None
    noise: str = "sub-gaussian"
    guarantee: str = "pac"
    goal: str = "maximise"
    bounds: tuple[float, float] | None = None
    rewards: str | None = None

    def __init__(
        self,
        m: int,
        epsilon: float,
        delta: float,
        variances: ArrayLike,
        names: Sequence[str] | None = None,
        noise: str = "sub-gaussian",
        guarantee: str = "pac",
        goal: str = "maximise",
        *,
        bounds: Sequence[float] | None = None,
        rewards: str | None = None,
    ) -> None:
        checked = checks.variances(variances)
        values = {
            "m": checks.m(m, len(checked)),
            "epsilon": checks.epsilon(epsilon),
            "delta": checks.delta(delta),
            "variances": checked,
            "names": None if names is None else checks.names(names, len(checked)),
            "noise": checks.one_of(noise, "noise", ("sub-gaussian", "gaussian")),
            "guarantee": checks.one_of(guarantee, "guarantee", ("pac", "indifference")),
            "goal": checks.one_of(goal, "goal", ("maximise", "minimise")),
            "bounds": _checked_bounds(bounds, rewards),
            "rewards": rewards,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        if self.noise == "gaussian" and self.bounds is not None:
            raise InvalidProblem(
                '`noise` is "gaussian", but rewards within bounds are not; leave out one of them.'
            )
        _refuse_endless(self)

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of arms."""
        return len(self.variances)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the question, equal for equal problems, on every machine."""
        parts = hashlib.sha256(struct.pack("<qqdd", self.n, self.m, self.epsilon, self.delta))
        parts.update(self.variances.astype("<f8").tobytes())
        for name in self.names or ():
            parts.update(struct.pack("<q", len(name.encode())) + name.encode())
        for word in (self.noise, self.guarantee, self.goal):
            if word in {"gaussian", "indifference", "minimise"}:  # what is usual leaves no mark
                parts.update(f"\0{word}".encode())
        if self.bounds is not None:
            parts.update(f"\0{self.rewards or 'bounds'}".encode() + struct.pack("<dd", *self.bounds))
        return parts.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the question as plain data, fit for JSON; not the arms one by one."""
        return {
            "n": self.n,
            "m": self.m,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "guarantee": self.guarantee,
            "goal": self.goal,
            "bounds": None if self.bounds is None else list(self.bounds),
            "rewards": self.rewards,
            "digest": self.digest,
        }

    def changed(self, **changes: Any) -> "Problem":
        """Return the same question with some of its parts replaced."""
        return Problem(**({part: getattr(self, part) for part in _PARTS} | changes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Callable[[], "Problem"], tuple[()]]:
        return partial(Problem, **{part: getattr(self, part) for part in _PARTS}), ()

    def __repr__(self) -> str:
        goal = "" if self.goal == "maximise" else f", goal={self.goal!r}"
        return f"Problem(m={self.m}, epsilon={self.epsilon}, delta={self.delta}, n={self.n}{goal})"


def checked(problem: Problem) -> Problem:
    """Return the problem; raise InvalidProblem for anything else."""
    if not isinstance(problem, Problem):
        raise InvalidProblem(f"`problem` is {problem!r}; it must be a shortlist.Problem.")
    return problem


def whole_pulls(shape: tuple[int, ...], amounts: Callable[[slice], FloatArray], purpose: str) -> IntArray:
    """Return pull counts rounded up to whole pulls, at least one each.

    ``amounts(block)`` gives the counts before rounding for a slice of the last axis. Raises
    InvalidProblem where a count, or their sum over the last axis, could not be counted exactly.
    """
    counts = np.empty(shape, dtype=np.int64)
    totals = np.zeros(shape[:-1])
    for block in blocks(shape):
        rounded = amounts(block)
        np.ceil(rounded, out=rounded)
        if rounded.min() < 1.0:  # an amount may vanish in rounding; no arm goes without a pull
            np.maximum(rounded, 1.0, out=rounded)
        totals += rounded.sum(axis=-1)
        if not (totals <= MOST_PULLS).all():
            raise _too_many(float(totals.max()), purpose)
        counts[..., block] = rounded
    return counts


def countable(pulls: int, purpose: str) -> int:
    """Return a number of pulls, if it can be counted exactly."""
    if pulls > MOST_PULLS:
        raise _too_many(float(pulls), purpose)
    return pulls


def _too_many(pulls: float, purpose: str) -> InvalidProblem:
    return InvalidProblem(
        f"{purpose} needs {pulls:.3g} pulls or more, beyond 2**53 = {MOST_PULLS:.3g}: they could be "
        f"neither made nor counted exactly. Ask for a larger `epsilon`, or check the units: `epsilon` "
        f"is in the units of the rewards, `variances` in their square."
    )


def _checked_bounds(bounds: object, rewards: object) -> tuple[float, float] | None:
    if rewards is None:
        return None if bounds is None else checks.bounds(bounds)
    checks.one_of(rewards, "rewards", ("bernoulli",))
    if bounds is not None and checks.bounds(bounds) != (0.0, 1.0):
        raise InvalidProblem(
            f'`rewards` is "bernoulli", so every reward is 0 or 1, but `bounds` is {bounds!r}. Leave one out.'
        )
    return 0.0, 1.0


def _refuse_endless(problem: Problem) -> None:
    # With x = epsilon^2 t / (2 s^2) of order 1 nothing can be told apart, whatever the strategy.
    with np.errstate(over="ignore", divide="ignore"):
        least = float(problem.variances.sum() / problem.epsilon / problem.epsilon)
    if not least <= MOST_PULLS:
        raise _too_many(least, f"epsilon = {problem.epsilon!r} with these variances")
