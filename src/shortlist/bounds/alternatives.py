"""Alternative means under which an arm would have to be out, or in: the cheapest for given pulls.

Pulls are counted as information, x = epsilon^2 t / (2 s) for t pulls of an arm of variance s, and means are
in units of epsilon. Moving an arm by d then costs x d^2, the expected evidence of its rewards against the
move. Every alternative has a *level*: some arms lie at the level plus 1 or above, some at the level or below.
"""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray

_STEPS = 64
_TURNS = 3
_NEWTON = 12
_OTHERS = 8


@dataclass(frozen=True, eq=False)
class Alternative:
    """The arms that move, and how far each moves."""

    arms: IntArray
    moves: FloatArray

    @property
    def squares(self) -> FloatArray:
        """The squares of the moves, which are their costs per unit of information."""
        squares: FloatArray = self.moves**2
        return squares

    def cost(self, information: FloatArray) -> float:
        """Return the expected evidence of the rewards against it: the divergence from the true means."""
        return float(information[self.arms] @ self.squares)


@dataclass(frozen=True, eq=False)
class Landscape:
    """True means in units of epsilon, and the number of arms to select, which is less than n.

    Every alternative found here is valid, whatever the information. It is not proved to be the cheapest, and
    no bound depends on that.
    """

    means: FloatArray
    m: int

    def against(self, arm: int, information: FloatArray, level: float) -> list[Alternative]:
        """Return means under which an arm lies more than epsilon below m others: it must be out.

        The search starts at a level. An arm exactly epsilon below must be out after any further step. The
        first alternative is the cheapest found; the others raise other arms, the next cheapest ones.
        """
        out = np.array([arm])
        for _ in range(_TURNS):
            costs = information * np.maximum(level + 1 - self.means, 0.0) ** 2
            costs[arm] = np.inf
            size = min(_OTHERS * self.m, len(costs) - 1)
            cheap = np.argpartition(costs, size - 1)[:size]
            cheap = cheap[np.argsort(costs[cheap], kind="stable")]
            level = self._best_level(cheap[: self.m], out, information, level)
        sets = [cheap[start : start + self.m] for start in range(0, size - self.m + 1, self.m)]
        return [
            self._alternative(high, out, self._best_level(high, out, information, level)) for high in sets
        ]

    def in_favour(self, arm: int, information: FloatArray, level: float) -> list[Alternative]:
        """Return means under which an arm and m - 1 others lie more than epsilon above all the rest."""
        everyone = np.arange(len(self.means))
        for _ in range(_TURNS):
            saved = self._saved(information, level)
            saved[arm] = np.inf
            high = np.argpartition(-saved, self.m - 1)[: self.m]
            low = np.delete(everyone, high)
            level = self._best_level(high, low, information, level)
        return [self._alternative(high, low, level)]

    def levels(self) -> FloatArray:
        """Return levels at which to start a search: evenly spaced around the cut, and more near arms."""
        ranked = np.sort(self.means)[::-1]
        even = np.linspace(ranked[self.m] - 1, ranked[0], _STEPS)
        some = np.quantile(self.means, np.linspace(0, 1, _STEPS // 2))
        return np.unique(np.concatenate([even, some, some - 1]))

    def best_levels(self, arms: IntArray, information: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, for each of some arms, the levels at which being out and being in are cheapest."""
        levels = self.levels()
        out, in_ = np.empty((2, len(levels), len(arms)))
        for place, level in enumerate(levels):
            out[place] = self._costs_out(arms, information, float(level))
            in_[place] = self._costs_in(arms, information, float(level))
        return levels[out.argmin(axis=0)], levels[in_.argmin(axis=0)]

    def _costs_out(self, arms: IntArray, information: FloatArray, level: float) -> FloatArray:
        raised = information * np.maximum(level + 1 - self.means, 0.0) ** 2
        least = np.sort(np.partition(raised, self.m)[: self.m + 1])
        others = np.where(
            raised[arms] <= least[-2], least.sum() - raised[arms], least[:-1].sum()
        )  # the m arms that are cheapest to raise, except the arm itself
        lowered: FloatArray = information[arms] * np.maximum(self.means[arms] - level, 0.0) ** 2 + others
        return lowered

    def _costs_in(self, arms: IntArray, information: FloatArray, level: float) -> FloatArray:
        saved = self._saved(information, level)
        most = np.sort(np.partition(-saved, self.m - 1)[: self.m])
        best = -most.sum()  # saved by raising the best m arms instead of lowering them
        swapped = np.where(-saved[arms] <= most[-1], 0.0, -most[-1] - saved[arms])
        lowered = float((information * np.maximum(self.means - level, 0.0) ** 2).sum())
        costs: FloatArray = lowered - best + swapped
        return costs

    def _saved(self, information: FloatArray, level: float) -> FloatArray:
        lowered = np.maximum(self.means - level, 0.0) ** 2
        raised = np.maximum(level + 1 - self.means, 0.0) ** 2
        saved: FloatArray = information * (lowered - raised)
        return saved

    def _best_level(self, high: IntArray, low: IntArray, information: FloatArray, level: float) -> float:
        """Return the level at which separating these arms is cheapest, by Newton's method."""
        goals = np.concatenate([self.means[high] - 1, self.means[low]])
        is_high = np.arange(len(goals)) < len(high)
        weights = information[np.concatenate([high, low])]
        best = (np.inf, level)
        for _ in range(_NEWTON):
            gaps = np.where(is_high, level - goals, goals - level)
            best = min(best, (float(weights @ np.maximum(gaps, 0.0) ** 2), level))
            active = weights * (gaps >= 0)  # with arms exactly at the level, else it sticks at kinks
            total = float(active.sum())
            if total <= 0:
                break
            before, level = level, float(active @ goals) / total
            if level == before:
                break
        return best[1]

    def _alternative(self, high: IntArray, low: IntArray, level: float) -> Alternative:
        raised = np.maximum(level + 1 - self.means[high], 0.0)
        lowered = np.minimum(level - self.means[low], 0.0)
        arms, moves = np.concatenate([high, low]), np.concatenate([raised, lowered])
        return Alternative(arms[moves != 0], moves[moves != 0])
