"""The course of a race, laid out before it starts: rungs of information, and what settles an arm on each."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.cut import PRIOR_ABOVE, PRIOR_BELOW, Prices, deviation_for, log_evidence
from shortlist.problem import Problem, countable, whole_pulls
from shortlist.strategies import wnelim

STEP = 1.07  # information grows so many times from rung to rung
FIRST = 0.4  # information of the first rung, nearly
BEYOND = 40  # rungs beyond the top, for few arms that many others are compared with
EXCESS = 0.2  # and what share of all pulls may be spent on them
N_PRICES = 48  # what is needed below a cut is rounded up to one of so many
DISCOUNTS = (0.0, 0.25, 0.5, 0.75)  # of what products save, how much incumbents may count on
N_CUTS = 33  # cuts between which evidence is taken at the worse end


@dataclass(frozen=True, eq=False)
class Rungs:
    """What n, m and delta alone decide.

    Attributes
    ----------
    prices
        What settles a pair.
    information
        Of each rung, rising.
    top
        The rung from which on the larger mean settles any pair of arms that have reached it.
    targets
        Relative logarithms of evidence below a cut, rising to 0.
    reaches
        By rung and target: how far below a cut an arm's mean must lie. Its last column, minus infinity,
        is for where nothing is needed.
    clearances
        By rung and one of DISCOUNTS: how far above a cut less epsilon an incumbent's mean must lie; in the
        first column if it gets no help from outsiders.
    """

    prices: Prices
    information: FloatArray
    top: int
    targets: FloatArray
    reaches: FloatArray
    clearances: FloatArray

    def above(self, gaps: FloatArray, rungs: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the least relative evidence of some incumbents above cuts; on a rung, the lowest has it."""
        lowest = np.full(len(self.information), np.inf)
        np.minimum.at(lowest, rungs, gaps)
        some = np.flatnonzero(lowest < np.inf)
        deviations = lowest[some, None] - (cuts - 1.0)
        logs = log_evidence(deviations, self.information[some, None], PRIOR_ABOVE)
        least: FloatArray = logs.min(axis=0) - self.prices.above
        return least

    def places(self, above: FloatArray) -> IntArray:
        """Return which column of `reaches` is needed where the evidence above is so much."""
        needed = self.prices.still_needed(above)
        spacing = -self.targets[0] / (len(self.targets) - 1)
        with np.errstate(invalid="ignore"):
            places = np.clip(np.ceil((needed - self.targets[0]) / spacing), 0, len(self.targets) - 1)
        return np.where(needed > -np.inf, places, len(self.targets)).astype(np.int64)

    def thresholds(self, gaps: FloatArray, rungs: IntArray, highest: float) -> FloatArray:
        """Return, by rung, up to which gap an outsider is settled with incumbents of such gaps and rungs.

        From the cut `highest` on outsiders need no help: their gaps must not exceed it less their reach.
        Between two cuts the evidence of the incumbents is taken at the upper one, and that of the outsider
        at the lower one.
        """
        lowest = float((gaps - self.clearances[rungs, 0]).min()) + 1.0  # up to here incumbents need no help
        if highest <= lowest:
            return np.full(len(self.information), np.inf)
        cuts = np.linspace(lowest, highest, N_CUTS)
        places = self.places(self.above(gaps, rungs, cuts[1:]))
        found: FloatArray = (cuts[:-1] - self.reaches[:, places]).min(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class Course:
    """What is fixed before the first pull of a problem.

    Attributes
    ----------
    unit
        Pulls of each arm per unit of information: variance / epsilon^2.
    enough
        Pulls with which each arm has reached the top.
    excess
        How many pulls all arms together may take beyond that.
    """

    problem: Problem
    rungs: Rungs
    unit: FloatArray
    enough: IntArray
    excess: int

    @property
    def worst_case_pulls(self) -> int:
        """The most pulls that any rewards can lead to."""
        return int(self.enough.sum()) + self.excess

    @cached_property
    def first(self) -> IntArray:
        """The pulls with which each arm starts."""
        return self.pulls(np.zeros(self.problem.n, dtype=np.int64), self.problem.arms)

    def pulls(self, rungs: IntArray, arms: IntArray) -> IntArray:
        """Return with how many pulls in all arms have reached rungs."""
        whole = np.ceil(self.rungs.information[rungs] * self.unit[arms])
        return np.maximum(whole, 1.0).astype(np.int64)

    def reached(self, pulls: IntArray, arms: IntArray) -> IntArray:
        """Return the highest rung that arms have reached with so many pulls."""
        information = pulls / self.unit[arms] * (1 + 1e-12)  # else rounding might ask for a pull more
        rungs: IntArray = np.searchsorted(self.rungs.information, information, side="right") - 1
        return np.maximum(rungs, 0)


@lru_cache(maxsize=32)
def rungs(n: int, m: int, delta: float) -> Rungs:
    """Return the rungs for the m best of n arms."""
    prices = Prices.of(n, m, delta)
    enough = prices.enough()
    top = max(1, round(math.log(enough / FIRST) / math.log(STEP)))
    information = enough * STEP ** np.arange(-top, BEYOND + 1.0)
    targets = np.linspace(-prices.discount - 1.0, 0.0, N_PRICES)
    reaches = deviation_for(prices.below + targets, information[:, None], PRIOR_BELOW)
    nothing = np.full((len(information), 1), -np.inf)
    needed = prices.above - prices.discount * np.array(DISCOUNTS)
    clearances = deviation_for(needed, information[:, None], PRIOR_ABOVE)
    return Rungs(prices, information, top, targets, np.hstack([reaches, nothing]), clearances)


@lru_cache(maxsize=8)
def course(problem: Problem) -> Course:
    """Return the course of a race for a problem: promising no more, if possible, than naive elimination."""
    ladder = rungs(problem.n, problem.m, problem.delta)
    unit = problem.variances / problem.epsilon**2
    top = ladder.information[ladder.top]
    enough = whole_pulls(unit.shape, lambda block: top * unit[block], "The race")
    total = int(enough.sum())
    spare = max(0, int(wnelim.closed_form_pulls(problem)) - total)
    excess = min(int(EXCESS * total), spare)
    countable(total + excess, "The race")
    return Course(problem, ladder, unit, enough, excess)
