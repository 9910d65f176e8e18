"""The course of a race, computed before it starts: rungs of information, and what settles an arm on each."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray, IntArray, places_in
from shortlist.certificates.bounded import BoundedEvidence
from shortlist.certificates.cut import (
    PRIOR_ABOVE,
    PRIOR_BELOW,
    Prices,
    deviation_for,
    least_deviation,
    log_evidence,
)
from shortlist.problem import Problem, countable, whole_pulls
from shortlist.strategies import wnelim

STEP = 1.07  # ratio of the information of successive rungs
FIRST = 0.4  # information of the first rung, approximately
FIRST_SHARE = 0.3  # the variance that a race assumes at first, relative to the largest within bounds
BEYOND = 40  # rungs beyond the top, for the few arms that many others are compared with
EXCESS = 0.2  # the share of all pulls that may be spent on them
N_PRICES = 48  # evidence needed below a cut is rounded up to one of this many values
DISCOUNTS = (0.0, 0.25, 0.5, 0.75)  # the fraction of what products save that incumbents may rely on
PER_ARM, LARGE_TABLE = 4, 1 << 20  # a table has at most so many entries per arm, or in all if that is less
N_CUTS = 33  # grid of cuts; between two of them evidence is taken at the worse end


@dataclass(frozen=True, eq=False)
class Rungs:
    """Quantities that depend on n, m and delta only.

    Attributes
    ----------
    prices
        The evidence that settles a pair.
    information
        The information of each rung, increasing.
    top
        The first rung at which the larger mean settles any pair of arms that have reached it.
    targets
        Relative logarithms of evidence below a cut, increasing to 0.
    reaches
        By rung and target: how far below a cut an arm's mean must lie. The last column, minus infinity, is
        for cuts where nothing is needed.
    clearances
        By rung and one of DISCOUNTS: how far above the cut minus epsilon an incumbent's mean must lie; the
        first column is for no help from outsiders.
    prior_above
        The prior information of evidence above a cut.
    """

    prices: Prices
    information: FloatArray
    top: int
    targets: FloatArray
    reaches: FloatArray
    clearances: FloatArray
    prior_above: float

    @cached_property
    def furthest(self) -> FloatArray:
        """By rung: how far below a cut an arm's mean must lie if it needs all the evidence there is."""
        return self.reaches[:, -2].copy()

    @cached_property
    def for_estimates(self) -> FloatArray:
        """What approximate evidence above a cut takes, a row each, by rung.

        The rows: the information, by what the squared deviation is divided, the smallest deviation that
        counts, and the logarithm where the deviation is 0.
        """
        spread = 2 * (self.information + self.prior_above)
        start = np.log(2) - 0.5 * np.log1p(self.information / self.prior_above)
        return np.array([self.information, spread, least_deviation(self.information), start])

    @cached_property
    def by_target(self) -> FloatArray:
        """The transpose of `reaches`, with one row per target."""
        return np.ascontiguousarray(self.reaches.T)

    def above(self, gaps: FloatArray, rungs: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the smallest relative evidence of incumbents above cuts; on a rung, the lowest has it."""
        lowest = np.full(len(self.information), np.inf)
        np.minimum.at(lowest, rungs, gaps)
        some = np.flatnonzero(lowest < np.inf)
        deviations = lowest[some, None] - (cuts - 1.0)
        logs = log_evidence(deviations, self.information[some, None], self.prior_above)
        least: FloatArray = logs.min(axis=0) - self.prices.above
        return least

    def places(self, above: FloatArray) -> IntArray:
        """Return which column of `reaches` is needed for this evidence above the cut."""
        needed = self.prices.still_needed(above)
        spacing = -self.targets[0] / (len(self.targets) - 1)
        with np.errstate(invalid="ignore"):
            places = np.clip(np.ceil((needed - self.targets[0]) / spacing), 0, len(self.targets) - 1)
        return np.where(needed > -np.inf, places, len(self.targets)).astype(np.int64)

    def thresholds(self, gaps: FloatArray, rungs: IntArray, highest: float) -> FloatArray:
        """Return, by rung, the gap up to which outsiders are settled with incumbents of these gaps and rungs.

        From the cut `highest` on outsiders need no help: their gaps must not exceed it minus their reach.
        Between two cuts the evidence of the incumbents is taken at the upper one, that of the outsider at the
        lower one.
        """
        lowest = float((gaps - self.clearances[rungs, 0]).min()) + 1.0  # incumbents need no help up to here
        if highest <= lowest:
            return np.full(len(self.information), np.inf)
        cuts = np.linspace(lowest, highest, N_CUTS)
        places = self.places(self.above(gaps, rungs, cuts[1:]))
        found: FloatArray = (cuts[:-1] - self.reaches[:, places]).min(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class Course:
    """Everything that is fixed for a problem before the first pull.

    Attributes
    ----------
    unit
        Pulls of each arm per unit of information: variance / epsilon^2. For rewards within bounds this is the
        largest value; a race starts with smaller ones and estimates them.
    enough
        The number of pulls with which each arm has reached the top.
    excess
        How many pulls beyond that all arms together may take.
    scale
        The epsilon for which evidence is tightest: the first that was asked for.
    evidence
        For rewards within bounds: what decides when a pair is settled, instead of the rungs.
    """

    problem: Problem
    rungs: Rungs
    unit: FloatArray
    enough: IntArray
    excess: int
    scale: float
    evidence: BoundedEvidence | None = None

    @property
    def worst_case_pulls(self) -> int:
        """The largest possible number of pulls."""
        return int(self.enough.sum()) + self.excess

    @property
    def worst_case_cost(self) -> float:
        """The largest possible cost."""
        return self.problem.cost_of(self.enough) + self.excess * self.problem.highest_cost

    @cached_property
    def first(self) -> IntArray:
        """The size of each arm's first batch."""
        unit = self.unit if self.evidence is None else FIRST_SHARE * self.unit
        return self.pulls(np.zeros(self.problem.n, dtype=np.int64), unit)

    @cached_property
    def table(self) -> "Table | None":
        """What `pulls` and `reached` return, if all arms have the same unit and there are many arms."""
        unit, n = float(self.unit[0]), self.problem.n
        most = self.rungs.information[-1] * unit + 2
        is_large = most > max(n, min(LARGE_TABLE, PER_ARM * n))
        if self.evidence is not None or is_large or (self.unit != unit).any():
            return None
        return Table(
            _pulls(self.rungs.information, unit),
            _reached(self.rungs.information, np.arange(int(most)) / unit),
        )

    def pulls(self, rungs: IntArray, unit: FloatArray, arms: IntArray | None = None) -> IntArray:
        """Return the total number of pulls with which arms have reached these rungs.

        If `arms` is given, `unit` is that of all arms.
        """
        if self.table is not None:
            return self.table.pulls[rungs]
        return _pulls(self.rungs.information[rungs], unit if arms is None else unit[arms])

    def beyond_top(self, arms: IntArray, pulls: IntArray, counts: IntArray) -> int:
        """Return how many of further pulls of arms with so many pulls are beyond the top."""
        spare = np.maximum(self.enough[arms] - pulls, 0)
        return int(np.maximum(counts - spare, 0).sum())

    def reached(self, pulls: IntArray, unit: FloatArray, arms: IntArray | None = None) -> IntArray:
        """Return the highest rung that arms have reached with this many pulls.

        If `arms` is given, `unit` is that of all arms.
        """
        if self.table is not None:
            return self.table.rungs[np.minimum(pulls, len(self.table.rungs) - 1)]
        return _reached(self.rungs.information, pulls / (unit if arms is None else unit[arms]))


class Table(NamedTuple):
    """Where all arms have the same unit: the pulls that reach a rung, and the rung that pulls reach."""

    pulls: IntArray
    rungs: IntArray


def _pulls(information: FloatArray, unit: FloatArray | float) -> IntArray:
    return np.maximum(np.ceil(information * unit), 1.0).astype(np.int64)


def _reached(rungs: FloatArray, information: FloatArray) -> IntArray:
    information = information * (1 + 1e-12)  # so that rounding does not add a pull
    return np.maximum(places_in(rungs, np.nextafter(information, np.inf)) - 1, 0)  # or equal


@lru_cache(maxsize=32)
def rungs(n: int, m: int, delta: float, finer: float = 1.0) -> Rungs:
    """Return the rungs for the m best of n arms; `finer` is as in `Prices.enough`."""
    prices = Prices.of(n, m, delta)
    below, above = finer * PRIOR_BELOW, finer * PRIOR_ABOVE
    enough = prices.enough(finer)
    top = max(1, round(math.log(enough / (finer * FIRST)) / math.log(STEP)))
    information = enough * STEP ** np.arange(-top, BEYOND + 1.0)
    targets = np.linspace(-prices.discount - 1.0, 0.0, N_PRICES)
    reaches = deviation_for(prices.below + targets, information[:, None], below)
    nothing = np.full((len(information), 1), -np.inf)
    needed = prices.above - prices.discount * np.array(DISCOUNTS)
    clearances = deviation_for(needed, information[:, None], above)
    return Rungs(prices, information, top, targets, np.hstack([reaches, nothing]), clearances, above)


@lru_cache(maxsize=8)
def course(problem: Problem, scale: float | None = None) -> Course:
    """Return the course of a race, whose worst case is, if possible, no more than naive elimination takes.

    `scale` is the epsilon that was asked for first, if not the problem's.
    """
    scale = scale or problem.epsilon
    ladder = rungs(problem.n, problem.m, problem.delta, (problem.epsilon / scale) ** 2)
    top = ladder.information[ladder.top]
    unit, evidence = problem.variances / problem.epsilon**2, None
    if problem.is_bounded:
        share = problem.epsilon / problem.width
        evidence = BoundedEvidence.of(
            problem.n,
            problem.m,
            problem.delta,
            share,
            scale=scale / problem.width,
            is_graded=problem.is_graded,
        )
        unit = np.full(problem.n, evidence.enough() / top)
    enough = whole_pulls(unit.shape, lambda block: top * unit[block], "The race")
    total = int(enough.sum())
    spare = max(0, int(wnelim.closed_form_pulls(problem)) - total)
    excess = min(int(EXCESS * total), spare)
    countable(total + excess, "The race")
    return Course(problem, ladder, unit, enough, excess, scale, evidence)
