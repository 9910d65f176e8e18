"""The arms that a report shows individually: all if there are few, else the best and those near the cut."""

from dataclasses import dataclass
from typing import TypeAlias

from shortlist.arrays import IntArray
from shortlist.report.model import Report

MOST_ROWS = 60
_MOST_ABOVE, _BEST = 30, 10  # rows above the cut if there are many arms; of these, rows for the very best


@dataclass(frozen=True, eq=False)
class Left:
    """Arms that are not shown individually."""

    arms: IntArray


Row: TypeAlias = int | Left


@dataclass(frozen=True)
class ShownArms:
    """The rows above and below the cut, each an arm or a group of arms that are not shown."""

    above: tuple[Row, ...]
    below: tuple[Row, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, from the best."""
        return self.above + self.below

    @property
    def arms(self) -> list[int]:
        """The arms that are shown individually."""
        return [row for row in self.rows if isinstance(row, int)]


def shown_arms(report: Report) -> ShownArms:
    """Return the rows of a report: at most `most`, those most relevant to the decision."""
    order, k = report.order, report.n_above
    if len(order) <= MOST_ROWS:
        return ShownArms(_all(order[:k]), _all(order[k:]))
    above = _ends(order[:k], _MOST_ABOVE)
    n_pulled = int((report.result.arms.pulls[order[k:]] > 0).sum())
    below = _first(order[k:], min(MOST_ROWS - len(above), n_pulled + 1))
    if len(below) + len(above) < MOST_ROWS:
        above = _ends(order[:k], MOST_ROWS - len(below))
    return ShownArms(above, below)


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
