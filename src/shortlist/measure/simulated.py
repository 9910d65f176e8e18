"""Simulated arms: batches of rewards are drawn as a sufficient statistic, if there is one.

The mean of t Gaussian rewards is a single normal variable and the sum of t Bernoulli rewards a single
binomial one, so the cost of a batch depends on the number of arms, not of pulls. Only the uniform
distribution has no such shortcut and is drawn pull by pull.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.checks import real_number, real_numbers
from shortlist.errors import InvalidProblem
from shortlist.measure.function import Measure, Summary
from shortlist.noise import bernoulli_proxy
from shortlist.problem import Problem

_DRAWS = 1 << 20  # maximum number of uniform rewards in memory

Lanes: TypeAlias = Sequence[np.random.Generator]
Draw: TypeAlias = Callable[[FloatArray, Lanes, FloatArray, FloatArray, IntArray], None]
"""``draw(out, rngs, means, variances, counts)`` fills `out` with the mean of a fresh batch for each arm.

Arrays have shape (lanes, arms); each lane has its own generator. `variances` may be used as working
space.
"""


@dataclass(frozen=True)
class Distribution:
    """A family of reward distributions, one for each mean and variance proxy.

    Attributes
    ----------
    draw
        Draws the mean of a batch of rewards of each arm.
    least_variances
        The smallest valid variance proxies for arms with these means, or None if all are valid.
    summary
        One sentence on what a reward looks like.
    """

    draw: Draw
    summary: str
    least_variances: Callable[[FloatArray], FloatArray] | None = None


def _gaussian(
    out: FloatArray, rngs: Lanes, means: FloatArray, variances: FloatArray, counts: IntArray
) -> None:
    for rng, row in zip(rngs, out, strict=True):
        rng.standard_normal(out=row)
    variances /= counts
    out *= np.sqrt(variances, out=variances)
    out += means


def _bernoulli(out: FloatArray, rngs: Lanes, means: FloatArray, _: FloatArray, counts: IntArray) -> None:
    for rng, *given, row in zip(rngs, counts, means, out, strict=True):
        row[:] = rng.binomial(*given)
    out /= counts


def _two_point(
    out: FloatArray, rngs: Lanes, means: FloatArray, variances: FloatArray, counts: IntArray
) -> None:
    for rng, given, row in zip(rngs, counts, out, strict=True):
        row[:] = 2 * rng.binomial(given, 0.5) - given
    out *= np.sqrt(variances) / counts
    out += means


def _uniform(
    out: FloatArray, rngs: Lanes, means: FloatArray, variances: FloatArray, counts: IntArray
) -> None:
    for rng, given, row in zip(rngs, counts, out, strict=True):
        row[:] = 2 * _uniform_sums(rng, given) / given - 1
    out *= np.sqrt(3 * variances)
    out += means


def _uniform_sums(rng: np.random.Generator, counts: IntArray) -> FloatArray:
    """Return the sum of the uniform draws of each arm, with a bounded number in memory."""
    sums = np.empty(len(counts))
    ends = np.cumsum(counts)
    arm = 0
    while arm < len(counts):
        drawn = int(ends[arm] - counts[arm])
        stop = int(np.searchsorted(ends, drawn + _DRAWS, side="right"))
        if stop == arm:  # more draws than are held at once
            parts = range(0, int(counts[arm]), _DRAWS)
            sums[arm] = sum(float(rng.random(min(_DRAWS, int(counts[arm]) - part)).sum()) for part in parts)
            arm += 1
        else:  # as many whole arms as fit
            starts = ends[arm:stop] - counts[arm:stop] - drawn
            sums[arm:stop] = np.add.reduceat(rng.random(int(ends[stop - 1]) - drawn), starts)
            arm = stop
    return sums


def _noiseless(out: FloatArray, _rngs: Lanes, means: FloatArray, _: FloatArray, _counts: IntArray) -> None:
    out[:] = means


REWARDS: dict[str, Distribution] = {
    "gaussian": Distribution(_gaussian, "normal with the stated variance"),
    "bernoulli": Distribution(_bernoulli, "1 with the stated mean as probability, else 0", bernoulli_proxy),
    "two-point": Distribution(_two_point, "the mean plus or minus one scale, each half the time"),
    "uniform": Distribution(_uniform, "uniform around the mean, with the stated variance"),
    "noiseless": Distribution(_noiseless, "always the mean itself"),
}


def default_rewards(problem: Problem) -> str:
    """Return the kind of rewards that arms of a problem are simulated with, if none is named."""
    return "bernoulli" if problem.is_bounded else "gaussian"


def drawing(problem: Problem, rewards: str) -> Draw:
    """Return the function that draws means of rewards; coins of a bounded problem show one of its bounds."""
    draw = REWARDS[rewards].draw
    if own_scales(problem, rewards) is not None:
        return draw  # and then scaled for each arm
    if not problem.is_bounded or problem.bounds in {None, (0.0, 1.0)} or rewards != "bernoulli":
        return draw
    return ScaledDraw(draw, problem.bounds)


def own_scales(problem: Problem, rewards: str) -> tuple[FloatArray, FloatArray] | None:
    """Return the lower bounds and the widths of arms, if simulated coins show bounds of their own."""
    if problem.own_bounds is None or rewards != "bernoulli":
        return None
    low, high = problem.limits(problem.arms)
    return low, high - low


@dataclass(frozen=True)
class ScaledDraw:
    """Draws rewards between 0 and 1, and scales them to other bounds."""

    draw: Draw
    bounds: tuple[float, float]

    def __call__(
        self, out: FloatArray, rngs: Lanes, means: FloatArray, variances: FloatArray, counts: IntArray
    ) -> None:
        """Draw the mean of each batch."""
        low, high = self.bounds
        self.draw(out, rngs, np.clip((means - low) / (high - low), 0.0, 1.0), variances, counts)
        out *= high - low
        out += low


def checked_means(problem: Problem, means: object, rewards: str) -> FloatArray:
    """Return the true means of simulated arms as an array, if the distribution allows them."""
    if rewards not in REWARDS:
        raise InvalidProblem(f"unknown kind of rewards {rewards!r}; use one of: {', '.join(REWARDS)}.")
    values = real_numbers(means, "means")
    if values.shape != (problem.n,):
        raise InvalidProblem(
            f"`means` has shape {values.shape} but there are {problem.n} arms; give one per arm."
        )
    if not np.isfinite(values).all():
        raise InvalidProblem("`means` contains NaN or infinity; every true mean must be finite.")
    least = REWARDS[rewards].least_variances
    if problem.is_bounded:
        _check_within(problem, values, rewards)
    elif least is not None:
        _check_proxies(problem, values, least, rewards)
    return values


def _check_within(problem: Problem, means: FloatArray, rewards: str) -> None:
    """Refuse rewards and means that the bounds of a problem rule out."""
    if rewards not in {"bernoulli", "noiseless"}:
        raise InvalidProblem(
            f"{rewards} rewards may lie outside the bounds of this problem; simulate bernoulli or noiseless "
            f"ones."
        )
    low, high = problem.limits(problem.arms)
    is_within = (means >= low) & (means <= high)
    if not is_within.all():
        arm = int(np.argmin(is_within))
        raise InvalidProblem(
            f"every true mean must lie between the bounds, {low[arm]:g} and {high[arm]:g}"
            + ("." if problem.own_bounds is None else f" for {problem.name(arm)}.")
        )


def _check_proxies(
    problem: Problem, means: FloatArray, least: Callable[[FloatArray], FloatArray], rewards: str
) -> None:
    if not ((means >= 0) & (means <= 1)).all():
        raise InvalidProblem(f"{rewards} rewards need every mean between 0 and 1.")
    short = problem.variances < least(means) * (1 - 1e-9)
    if short.any():
        arm = int(np.argmax(short))
        raise InvalidProblem(
            f"{problem.name(arm)} has variance {problem.variances[arm]:g}, but {rewards} rewards with mean "
            f"{means[arm]:g} need {least(means[arm : arm + 1])[0]:g} or more. Use 0.25, which is always "
            f"enough."
        )


@dataclass(frozen=True, eq=False)
class SimulatedMeasure:
    """A measure function that simulates arms; it can be pickled.

    On request it also draws the sample variance of Gaussian rewards, which is independent of their mean; a
    pilot for unknown variances needs it.
    """

    means: FloatArray
    variances: FloatArray
    rewards: str
    draw: Draw
    tells_spread: bool = False
    scales: tuple[FloatArray, FloatArray] | None = None
    is_reproducible: ClassVar[bool] = True

    def __call__(self, arm: int, count: int, rng: np.random.Generator) -> Summary:
        """Return the number and the mean of a fresh batch of an arm's rewards."""
        mean = np.empty((1, 1))
        low, width = (0.0, 1.0) if self.scales is None else (self.scales[0][arm], self.scales[1][arm])
        true = self.means[[[arm]]] if self.scales is None else (self.means[[[arm]]] - low) / width
        self.draw(mean, [rng], true, self.variances[[[arm]]], np.array([[count]]))
        mean = mean if self.scales is None else low + width * mean
        return Summary(count, float(mean[0, 0]), self._spread(arm, count, rng))

    def _spread(self, arm: int, count: int, rng: np.random.Generator) -> float | None:
        if not self.tells_spread or count < 2:
            return None
        if self.rewards == "noiseless":
            return 0.0
        return float(self.variances[arm]) * rng.chisquare(count - 1) / (count - 1)


@dataclass(frozen=True, eq=False)
class SimulatedBlocks:
    """Simulated rewards in blocks: any two arms of a block have the same correlation; it can be pickled.

    A reward follows from the arm and the seed of the block alone.
    """

    truth: Problem
    means: FloatArray
    correlation: float = 0.0
    is_reproducible: ClassVar[bool] = True

    def __call__(self, arm: int, blocks: Sequence[int]) -> FloatArray:
        """Return the reward of an arm in each block."""
        own = np.array([np.random.default_rng([block, arm + 1]).standard_normal() for block in blocks])
        common = np.array([np.random.default_rng(block).standard_normal() for block in blocks])
        some = slice(arm, arm + 1)
        rewards = block_rewards(self.truth, self.means, some, own[None], common, self.correlation)
        return rewards.reshape(-1)


def block_rewards(
    truth: Problem,
    means: FloatArray,
    arms: slice,
    own: FloatArray,
    common: FloatArray,
    correlation: float,
) -> FloatArray:
    """Return rewards of arms in blocks, from standard normal noise of each arm and of each block."""
    noise = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * common
    if not truth.is_bounded:
        gaussian: FloatArray = means[arms, None] + np.sqrt(truth.variances[arms, None]) * noise
        return gaussian
    from scipy.special import ndtr  # noqa: PLC0415  (scipy is slow to import)

    low, high = truth.bounds or (0.0, 1.0)
    shares = (means[arms, None] - low) / (high - low)
    found: FloatArray = np.where(ndtr(noise) < shares, high, low)
    return found


def checked_correlation(given: object) -> float:
    """Return the correlation of simulated arms within a block."""
    share = real_number(given, "correlation")
    if not 0 <= share <= 1:
        raise InvalidProblem(
            f"`correlation` is {share}; it must lie between 0 and 1. Others need `covariance`, in Python."
        )
    return share


def simulated_measure(
    problem: Problem, means: object, rewards: str | None = None, *, tells_spread: bool = False
) -> Measure:
    """Return a measure function that simulates the arms of a problem, with sample variances on request."""
    rewards = rewards or default_rewards(problem)
    true_means = np.array(
        checked_means(problem, means, rewards)
    )  # a copy: the caller may change the original
    draw, scales = drawing(problem, rewards), own_scales(problem, rewards)
    return SimulatedMeasure(true_means, problem.variances, rewards, draw, tells_spread, scales)
