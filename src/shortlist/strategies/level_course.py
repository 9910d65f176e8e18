"""The course of a race by levels, computed before it starts: levels, batches, and leads that settle a pair.

It depends on the variances only, never on a reward. So the certificates hold and the cap is known in advance.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.pairwise import enough, settling_lead
from shortlist.problem import MOST_PULLS, Problem, countable
from shortlist.strategies import wnelim

NUMBERS = (48, 36, 24, 16, 12, 8, 6, 4, 3, 2, 1)  # candidate numbers of levels
FIRST = 0.035  # the first level as a fraction of the last, with the most levels
FAVOUR = 2  # favoured arms take this many times the usual batch
FAVOURED = 0.07  # the share of a level's pulls that may be taken in excess
QUIETER = (0.25, 0.18, 0.12, 0.06)  # quiet arms get more information, by this power of the variance ratio,
DEARER = 1.15  # if that multiplies the pulls by no more than this
STEP = 1.05  # spreads are rounded up to powers of this
FEW = 64  # up to this many arms the swap certificate saves more than favoured arms do
SHARE = 0.3  # of delta for the pairwise certificate, if the swap certificate is used too
BOLD = 1.5  # how boldly the swap certificate is used: charges are well below their limits


@dataclass(frozen=True, eq=False)
class Course:
    """Everything that is fixed before the first pull.

    Attributes
    ----------
    levels
        The levels, increasing. At the last level the larger score settles any pair.
    unit
        The pulls for which an arm's spread is 1 per unit of weight: 2 s / epsilon^2.
    rate
        The factor, at least 1, by which the usual batch of each arm exceeds what the level requires.
    totals
        The number of pulls at each level if every arm takes its usual batch.
    n_classes
        The number of classes of spread.
    rest_lead
        The lead at equal information at which an arm may rest; infinite without the swap certificate.
    delta_pairs, delta_swaps
        The shares of delta for false settlements by the pairwise and the swap certificate.
    """

    problem: Problem
    levels: FloatArray
    unit: FloatArray
    rate: FloatArray
    totals: tuple[int, ...]
    n_classes: int
    rest_lead: float
    delta_pairs: float
    delta_swaps: float

    @property
    def log_price(self) -> float:
        """The logarithm of the evidence that settles a pair."""
        return _log_price(self.problem, self.delta_pairs)

    @cached_property
    def leads(self) -> FloatArray:
        """The lead that settles a pair, by level and by the spread classes of both arms."""
        spreads = STEP ** -np.arange(self.n_classes, dtype=np.float64)
        pair_spreads = self.levels[:, None, None] * (spreads[:, None] + spreads)
        levels = np.broadcast_to(self.levels[:, None, None], pair_spreads.shape)
        return settling_lead(levels, pair_spreads, self.log_price)

    @property
    def n_levels(self) -> int:
        """The number of levels."""
        return len(self.levels)

    @cached_property
    def weights(self) -> FloatArray:
        """The increment of each level."""
        return np.diff(self.levels, prepend=0.0)

    @property
    def is_swapping(self) -> bool:
        """Whether the swap certificate is used, which needs equal information of all arms at each level."""
        return self.delta_swaps > 0

    @property
    def worst_case_pulls(self) -> int:
        """The largest possible number of pulls."""
        return sum(total + self.excess(level) for level, total in enumerate(self.totals))

    def excess(self, level: int) -> int:
        """Return how many extra pulls favoured arms may take at a level."""
        return 0 if self.is_swapping else int(FAVOURED * self.totals[level])

    def usual_batch(self, level: IntArray | int, arms: IntArray) -> IntArray:
        """Return the usual batch of each arm at a level."""
        return _batch(self.unit[arms] * self.rate[arms], self.weights[level])

    def spread_added(self, level: IntArray | int, arms: IntArray, pulls: IntArray) -> FloatArray:
        """Return by how much a batch raises the spread of each arm."""
        weights = self.weights[level]
        added: FloatArray = weights * (weights * self.unit[arms] / pulls)
        return added

    def kind(self, level: IntArray | int, spread: FloatArray) -> IntArray:
        """Return the class of each spread at its level, rounded up."""
        powers = np.log(self.levels[level] / spread) / math.log(STEP)
        return np.clip(np.floor(powers - 1e-9), 0, self.n_classes - 1).astype(np.int8)


def shares_of_delta(problem: Problem) -> tuple[float, float]:
    """Return the shares of delta for the pairwise certificate and for the swap certificate, if used."""
    delta_pairs = problem.delta * (SHARE if is_swappable(problem) else 1.0)
    return delta_pairs, problem.delta - delta_pairs


@lru_cache(maxsize=8)
def course(problem: Problem, most_levels: int = NUMBERS[0]) -> Course:
    """Return the course of a race for a problem, with at most this many levels."""
    is_swapping = is_swappable(problem)
    delta_pairs, delta_swaps = shares_of_delta(problem)
    unit = 2 * problem.variances / problem.epsilon**2
    numbers = [number for number in NUMBERS if number <= most_levels]
    rate, levels = _rates_and_levels(problem, enough(_log_price(problem, delta_pairs)), numbers)
    if is_swapping:
        levels = _whole(levels, float(unit[0]))
    needs, counts = np.unique(unit * rate, return_counts=True)
    totals = tuple(int(_batch(needs, weight) @ counts) for weight in np.diff(levels, prepend=0.0))
    countable(math.ceil((1 + FAVOURED) * sum(totals)), "The race")
    n_classes = 1 if is_swapping else _n_classes(unit, rate, levels)
    rest_lead = math.log(problem.n * problem.m / (BOLD * delta_swaps)) if is_swapping else math.inf
    return Course(problem, levels, unit, rate, totals, n_classes, rest_lead, delta_pairs, delta_swaps)


def is_swappable(problem: Problem) -> bool:
    """Return whether the swap certificate applies and helps: Gaussian rewards, one variance, few arms."""
    is_one = bool((problem.variances == problem.variances[0]).all())
    return problem.noise == "gaussian" and is_one and problem.n <= FEW


def _log_price(problem: Problem, delta: float) -> float:
    """Return the logarithm of the price at which delta covers all pairs of a best arm and another."""
    return math.log(problem.m * (problem.n - problem.m) / delta)


def _batch(pulls_per_weight: FloatArray, weight: FloatArray) -> IntArray:
    """Return the fewest whole pulls, at least one, that keep the spread within the weight."""
    whole = np.maximum(np.ceil(pulls_per_weight * weight), 1.0)
    if whole.size and whole.max() > MOST_PULLS:
        countable(int(whole.max()), "The race")
    pulls: IntArray = whole.astype(np.int64)
    return pulls


def _rates_and_levels(problem: Problem, last: float, numbers: list[int]) -> tuple[FloatArray, FloatArray]:
    """Return rates of arms and levels with few expected pulls, if possible no more than naive elimination.

    With more levels an arm stops closer to the earliest time it could, but each level costs every arm at
    least one pull. Rates above 1 give more information about arms with little noise, at little cost.
    """
    ratios = problem.variances.max() / problem.variances
    variances, counts = np.unique(problem.variances, return_counts=True)
    if len(variances) > 256:  # enough for choosing among a few courses
        variances = np.quantile(problem.variances, (np.arange(256) + 0.5) / 256)
        counts = np.full(256, problem.n / 256)
    few_units, few_ratios = 2 * variances / problem.epsilon**2, variances.max() / variances
    is_swapping = is_swappable(problem)
    limit = float(wnelim.closed_form_pulls(problem)) / (1.0 if is_swapping else 1 + FAVOURED)
    found = []
    for power in (0.0,) if is_swapping else (*QUIETER, 0.0):
        if (variances * few_ratios**power) @ counts > DEARER * (variances @ counts):
            continue
        for number in numbers:
            levels = _geometric(number, last)
            weights = np.diff(levels, prepend=0.0)
            pulls = float(counts @ _batch((few_units * few_ratios**power)[:, None], weights).sum(axis=1))
            expected = (
                pulls * (0.42 + 0.58 * number**-0.8) * (1 - 1.5 * power)
            )  # fitted to slippage and equal means
            found.append((pulls > limit, expected, power, levels))
    _, _, power, levels = min(found, key=lambda one: one[:2])
    return ratios**power, levels


def _geometric(number: int, last: float) -> FloatArray:
    first = FIRST * (NUMBERS[0] / number) ** 0.7 * last
    return np.geomspace(min(first, last), last, number) if number > 1 else np.array([last])


def _whole(levels: FloatArray, unit: float) -> FloatArray:
    """Return the levels that whole batches reach, so that all pulls have equal weight, as swaps need."""
    pulls = _batch(np.full(len(levels), unit), np.diff(levels, prepend=0.0))
    reached: FloatArray = np.cumsum(pulls) / unit * (1 - 1e-12)  # rounding must not add a pull
    return reached


def _n_classes(unit: FloatArray, rate: FloatArray, levels: FloatArray) -> int:
    """Return how many classes of spread are needed; the last one holds all smaller spreads."""
    usual = levels[0] ** 2 * unit / _batch(unit * rate, levels[0])
    least = float(usual.min()) / FAVOUR
    return min(32, 1 + math.floor(math.log(levels[0] / least) / math.log(STEP) + 1e-9))
