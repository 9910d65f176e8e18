"""Which arms a report shows one by one: all of a few; of many those selected and those nearest the cut."""

from dataclasses import dataclass
from typing import TypeAlias

from shortlist.arrays import IntArray
from shortlist.report.model import Report

MOST_ROWS = 60
_MOST_ABOVE, _BEST = 30, 10  # rows above the cut where there are many; of these, for the very best


@dataclass(frozen=True, eq=False)
class Left:
    """Arms that are not shown one by one."""

    arms: IntArray


Row: TypeAlias = int | Left


@dataclass(frozen=True)
class Shown:
    """The rows above the cut and those below it, each an arm or a number of arms left out."""

    above: tuple[Row, ...]
    below: tuple[Row, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, from the best."""
        return self.above + self.below

    @property
    def arms(self) -> list[int]:
        """The arms that are shown one by one."""
        return [row for row in self.rows if isinstance(row, int)]


def shown(report: Report) -> Shown:
    """Return the rows of a report: at most so many, with what matters most for the decision."""
    order, k = report.order, report.n_above
    if len(order) <= MOST_ROWS:
        return Shown(_all(order[:k]), _all(order[k:]))
    above = _ends(order[:k], _MOST_ABOVE)
    n_pulled = int((report.result.arms.pulls[order[k:]] > 0).sum())
    below = _first(order[k:], min(MOST_ROWS - len(above), n_pulled + 1))
    if len(below) + len(above) < MOST_ROWS:
        above = _ends(order[:k], MOST_ROWS - len(below))
    return Shown(above, below)


def _all(arms: IntArray) -> tuple[Row, ...]:
    return tuple(int(arm) for arm in arms)


def _first(arms: IntArray, most: int) -> tuple[Row, ...]:
    if len(arms) <= most:
        return _all(arms)
    return (*_all(arms[: most - 1]), Left(arms[most - 1 :]))


def _ends(arms: IntArray, most: int) -> tuple[Row, ...]:
    """Return the best arms and, after a gap, those nearest the cut."""
    if len(arms) <= most:
        return _all(arms)
    n_last = most - _BEST - 1
    return (*_all(arms[:_BEST]), Left(arms[_BEST:-n_last]), *_all(arms[-n_last:]))
