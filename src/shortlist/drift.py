"""Whether means measured elsewhere change from block to block, such as days, by more than chance explains.

All it needs is the number of rewards of each arm and their mean in each block, for rewards within bounds. Two
other tests look at more than that. `drift` in `doctor/assumptions.py` looks for a trend in single rewards, in
the order in which a trial measured them. `_variation` in `report/run_warnings.py` looks at all arms together:
it compares how much their means vary from batch to batch, in rounds of a run as well, with the variances of
the problem.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.totals import Totals

_RARE = 0.01  # how rarely means may differ by so much, for a note
_EXPECTED = 5.0  # successes and failures in a block, for the chi-square law to hold


class Drift(NamedTuple):
    """What is said of means that change between blocks.

    Attributes
    ----------
    words
        Sentences; empty if means do not change by more than chance explains.
    may_harm
        Whether what is certified may be wrong for this reason.
    """

    words: str = ""
    may_harm: bool = False

    def __bool__(self) -> bool:
        return bool(self.words)


class _Row(NamedTuple):
    """The chi-square test of homogeneity of one arm, over the blocks with enough rewards."""

    arm: int
    places: IntArray
    counts: FloatArray
    hits: FloatArray

    @property
    def freedom(self) -> int:
        return len(self.counts) - 1

    @property
    def deviations(self) -> FloatArray:
        """By block, how far the sum lies from that expected; squared, they add up to chi-square."""
        size, own = self.counts, self.hits
        share = own.sum() / size.sum()
        found: FloatArray = (own - size * share) / np.sqrt(size * share * (1 - share))
        return found

    @property
    def squares(self) -> float:
        return float((self.deviations**2).sum())

    @property
    def chance(self) -> float:
        return _chance(self.squares, self.freedom)

    def without(self, place: int) -> "_Row":
        """Return the same without one of its blocks."""
        counts, hits = np.delete(self.counts, place), np.delete(self.hits, place)
        return _Row(self.arm, np.delete(self.places, place), counts, hits)


def drift_note(problem: Problem, totals: Totals, blocks: Sequence[str], *, is_by_block: bool) -> Drift:
    """Return what to say if means vary between blocks by more than chance explains; else nothing.

    Two tests, each with half of the probability of a false alarm: a chi-square test of homogeneity for each
    arm, and one for the sum over all arms, which sees what they have in common, such as weekdays. Rewards
    within bounds vary at most as those of 0 or 1 do.
    """
    if not problem.is_bounded or not len(totals.arms):
        return Drift()
    sums = problem.shares(problem.merits(totals.means)) * totals.counts
    names = dict.fromkeys(blocks)
    numbers = {name: number for number, name in enumerate(names)}
    places = np.array([numbers[name] for name in blocks], dtype=np.int64)
    rows = _tested(totals.arms, places, totals.counts, sums)
    said, odd = _seen(problem, rows), _odd_one(rows)
    if not said:
        return Drift()
    if odd is not None:
        said += f" {_odd_words(problem, [*names], *odd)}"
    if not is_by_block:
        return Drift(f"{said} {_ADVICE}", may_harm=True)
    harmless = "This does no harm, because arms are compared within blocks."
    if odd is None:
        return Drift(f"{said} {harmless}")
    return Drift(f"{said} If the numbers are right, {harmless[:1].lower()}{harmless[1:]}", may_harm=True)


_ADVICE = (
    "If a mean changes, what is certified may be wrong. To compare arms within days, begin another run "
    "with the strategy block-race, before you look at the data of that run: see docs/ab-test.md."
)


def _tested(arms: IntArray, places: IntArray, counts: IntArray, sums: FloatArray) -> list[_Row]:
    """Return a row for each arm with two or more blocks that are large enough; `places` are those blocks."""
    n_blocks = int(places.max()) + 1
    cells, of = np.unique(arms * n_blocks + places, return_inverse=True)
    pulls, totals = np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells))
    np.add.at(pulls, of, counts)
    np.add.at(totals, of, sums)
    firsts = np.flatnonzero(np.diff(cells // n_blocks, prepend=-1))
    found = []
    for first, end in itertools.pairwise([*firsts.tolist(), len(cells)]):
        own, hits = pulls[first:end], totals[first:end]
        share = hits.sum() / max(own.sum(), 1)
        is_large = own * min(share, 1 - share) >= _EXPECTED
        if is_large.sum() > 1 and 0 < hits[is_large].sum() < own[is_large].sum():
            where = cells[first:end][is_large] % n_blocks
            found.append(_Row(int(cells[first]) // n_blocks, where, own[is_large], hits[is_large]))
    return found


def _seen(problem: Problem, rows: Sequence[_Row]) -> str:
    """Return what the more extreme of the two tests says, if one of them says anything."""
    if not rows:
        return ""
    chance, row = min(((row.chance, row) for row in rows), key=lambda pair: pair[0])
    together = _all_together(rows)
    if chance * len(rows) < _RARE / 2:
        who = f"The mean of {problem.name(row.arm)} changes"
    elif together < _RARE / 2:
        who, chance = "The means of all arms, tested together, change", together
    else:
        return ""
    return f"{who} between blocks by more than chance explains (chi-square test, p = {chance:.1g})."


def _all_together(rows: Sequence[_Row]) -> float:
    """Return the chance of so large a sum: chi-squares of independent arms add up, as do their freedoms."""
    return _chance(sum(row.squares for row in rows), sum(row.freedom for row in rows))


def _chance(squares: float, freedom: int) -> float:
    from scipy.special import gammaincc  # noqa: PLC0415

    return float(gammaincc(freedom / 2, squares / 2)) if freedom else 1.0


def _odd_one(rows: Sequence[_Row]) -> tuple[_Row, int] | None:
    """Return the only row that is to blame and its most extreme block; None if there is more than that.

    Without that block its arm passes the test, and so do all others, alone and together.
    """
    worst = min(rows, key=lambda row: row.chance, default=None)
    if worst is None or len(rows) < 2 or worst.chance * len(rows) >= _RARE / 2:
        return None
    place = int(np.argmax(np.abs(worst.deviations)))
    rest = [row if row.arm != worst.arm else row.without(place) for row in rows]
    is_quiet = min(row.chance for row in rest) * len(rows) >= _RARE / 2 and _all_together(rest) >= _RARE / 2
    return (worst, place) if is_quiet else None


def _odd_words(problem: Problem, blocks: Sequence[str], row: _Row, place: int) -> str:
    """Return which arm is to blame, in which block, and that its numbers may be wrong."""
    name = problem.name(row.arm)
    names = [blocks[one] or "the rows without a label" for one in row.places]
    means = [_mean(problem, share) for share in row.hits / row.counts]
    if row.freedom == 1:  # of two blocks it cannot be told which one is odd
        where = f"{means[0]:.3g} in {names[0]}, {means[1]:.3g} in {names[1]}"
        return f"Only {name} changes like this: {where}. This may be a data-entry error: check both rows."
    rest = row.without(place)
    usual = _mean(problem, float(rest.hits.sum() / rest.counts.sum()))
    where = f"in {names[place]}: {means[place]:.3g} there, {usual:.3g} otherwise"
    return f"Only {name} changes like this, {where}. This may be a data-entry error: check that row."


def _mean(problem: Problem, share: float) -> float:
    """Return the mean of which this is the share of the bounds."""
    low, high = problem.bounds or (0.0, 1.0)
    return low + share * (high - low) if problem.goal == "maximise" else high - share * (high - low)
