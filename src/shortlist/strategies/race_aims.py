"""How far arms should climb: the rungs at which everything would be settled if means stayed as they are.

How far the incumbents climb determines how far each outsider must. So the only choice is a cut and by how
much the incumbents clear it; a few dozen choices are compared by the pulls they take. Nothing here affects
the correctness of the result, only how soon it is found.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray, IntArray, all_but, largest, order_of, places_in
from shortlist.strategies.race_course import DISCOUNTS, Rungs

N_PLACES = 12  # candidate cuts, from just below the best outsider to nearly epsilon above incumbents
AROUND = np.linspace(-1.0, 2.5, 28)  # where evidence is compared, relative to the cut
MOST_INCUMBENTS, MOST_OUTSIDERS = 12, 64  # arms examined while choosing; each represents its neighbours
MANY = 1 << 14  # with more arms than this, only a sample is sorted


class Arms(NamedTuple):
    """Gaps to the lowest incumbent in units of epsilon, rungs, and the cost of a unit of information.

    If `at` is given, it says where the costs of these arms are in `unit`.
    """

    gaps: FloatArray
    rungs: IntArray
    unit: FloatArray
    at: IntArray | None = None

    def few(self, most: int, urgency: FloatArray) -> "Arms":
        """Return at most this many arms to represent all: the most urgent, and a sample of the others."""
        if len(self.gaps) > max(most, MANY):
            some, times = _sample(urgency)
            unit = self.unit[some if self.at is None else self.at[some]]
            return Arms(self.gaps[some], self.rungs[some], unit * times).few(most, urgency[some])
        if self.at is not None:
            return Arms(self.gaps, self.rungs, self.unit[self.at]).few(most, urgency)
        if len(self.gaps) <= most:
            return self
        order = order_of(-urgency)
        starts = _representatives(len(order), most)
        picked = order[starts]
        return Arms(self.gaps[picked], self.rungs[picked], np.add.reduceat(self.unit[order], starts))

    def cost(self, ladder: Rungs, wanted: IntArray) -> FloatArray:
        """Return the cost of climbing from the current to the wanted rungs, on the last axis."""
        found: FloatArray = (ladder.information[wanted] - ladder.information[self.rungs]) @ self.unit
        return found


@lru_cache(maxsize=1024)
def _representatives(n: int, most: int) -> IntArray:
    """Return the positions, in order of urgency, of arms that represent n arms."""
    starts = np.unique(np.geomspace(1, n, most, endpoint=False).astype(np.int64)) - 1
    starts.flags.writeable = False
    return starts


def _sample(urgency: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the most urgent of very many arms and a few others, and how many arms each represents."""
    most = largest(urgency, MANY // 4)
    others = all_but(len(urgency), most)
    every = 1 + len(others) * 2 // MANY
    some = others[::every]
    return np.concatenate([most, some]), np.repeat([1.0, float(every)], [len(most), len(some)])


def aims(ladder: Rungs, incumbents: Arms, outsiders: Arms) -> tuple[IntArray, FloatArray]:
    """Return how far incumbents should climb, and by rung the gap up to which outsiders would be settled."""
    few_in = incumbents.few(MOST_INCUMBENTS, -incumbents.gaps)
    few_out = outsiders.few(MOST_OUTSIDERS, outsiders.gaps)
    places = np.linspace(float(few_out.gaps.max()) - 0.3, float(few_in.gaps.min()) + 0.9, N_PLACES)
    choices = np.array([_incumbents_aims(ladder, few_in, places, d) for d in range(len(DISCOUNTS))])
    is_new = np.ones(choices.shape[:2], dtype=np.bool_)  # some discounts make no difference
    is_new[1:] = (choices[1:] != choices[:-1]).any(axis=2)
    of_place, discounts = np.nonzero(is_new.T)
    cuts, wanted_in = places[of_place], choices[discounts, of_place]
    thresholds = _outsiders_thresholds(ladder, few_in.gaps, wanted_in, cuts)
    wanted_out = _outsiders_aims(few_out, thresholds)
    best = int(np.argmin(few_in.cost(ladder, wanted_in) + few_out.cost(ladder, wanted_out)))
    chosen_in = _incumbents_aims(ladder, incumbents, cuts[[best]], int(discounts[best]))[0]
    return chosen_in, thresholds[best]


def _incumbents_aims(ladder: Rungs, arms: Arms, cuts: FloatArray, discount: int) -> IntArray:
    """Return the rungs at which incumbents would clear the cuts; the highest rung where none is enough."""
    missing = cuts[:, None] - 1.0 - arms.gaps
    wanted = (-ladder.clearances[:, discount]).searchsorted(missing)
    return np.minimum(np.maximum(wanted, arms.rungs), len(ladder.information) - 1)


def _outsiders_thresholds(ladder: Rungs, gaps: FloatArray, wanted: IntArray, cuts: FloatArray) -> FloatArray:
    """Return, by choice and rung, the gap up to which outsiders would be settled."""
    around = cuts[:, None] + AROUND
    # Axes: incumbents, choices, cuts around the choice's own.
    information, spread, least, start = ladder.for_estimates[:, wanted.T, None]
    deviations = gaps[:, None, None] - (around[:, 1:] - 1.0)
    logs = information * deviations
    logs *= logs
    logs /= spread
    logs += start
    logs[deviations < least] = -np.inf
    places = ladder.places(logs.min(axis=0) - ladder.prices.above)
    is_first = np.ones(places.shape, dtype=np.bool_)
    is_first[:, 1:] = places[:, 1:] != places[:, :-1]  # of equal ones, the lowest cut is the one that counts
    of_choice, at = np.nonzero(is_first)
    limits = around[of_choice, at, None] - ladder.by_target[places[of_choice, at]]
    thresholds = np.minimum.reduceat(limits, np.flatnonzero(at == 0))
    found: FloatArray = np.maximum.accumulate(thresholds, axis=1)
    return found


def _outsiders_aims(arms: Arms, thresholds: FloatArray) -> IntArray:
    """Return, by choice, the rungs at which outsiders would be settled; the highest where none is enough."""
    wanted: IntArray = np.array([row.searchsorted(arms.gaps) for row in thresholds])
    found: IntArray = np.clip(wanted, arms.rungs, thresholds.shape[1] - 1)
    return found


def climbing(gaps: FloatArray, rungs: IntArray, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the positions of outsiders that should climb, and to which rungs; most stay on theirs.

    They climb to the first rung that would settle them; to the highest if none would.
    """
    places = np.flatnonzero(gaps > thresholds[rungs])
    wanted = places_in(thresholds, gaps[places])
    return places, np.minimum(wanted, len(thresholds) - 1)
