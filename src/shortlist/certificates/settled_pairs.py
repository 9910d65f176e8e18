"""Which pairs of an outsider and an incumbent are settled, and to within which epsilon.

A pair is settled to within epsilon if, for every cut, evidence that the outsider lies below the cut and
evidence that the incumbent lies above the cut minus epsilon are enough together (see `cut`). Evidence below a
cut rises with the cut, and evidence above it falls. So between two cuts each is smallest at one end, and a
finite number of cuts is enough to check all of them.

What a pair needs does not depend on the epsilon that was asked for. So at every moment, and for every m arms,
there is a smallest epsilon to within which they are settled with all others, and the statement that it makes
is as certain as the one asked for (docs/theory.md, section 36).
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, all_but
from shortlist.certificates.cut import Prices

_N_CUTS = 49  # a grid of cuts, to see which outsiders are open
_FEW = 256  # outsiders: all cuts are looked at together
_N_PROBES = 4  # cuts at which most of many open outsiders are seen to be open
_N_FINE_CUTS = 241  # a finer one, for the smallest epsilon
_GROUP = 8  # cuts that are looked at together, if there are more outsiders than that
_TIMES, _AT_A_TIME = 5, 25  # how often an interval is divided, and at how many points
_HALVINGS = 20  # of the interval that contains the smallest epsilon


class Evidence(Protocol):
    """What is known of the means of n arms, as logarithms relative to the prices: 0 is enough alone."""

    @property
    def n(self) -> int:
        """The number of arms."""

    @property
    def prices(self) -> Prices:
        """The evidence that settles a pair."""

    @property
    def span(self) -> tuple[float, float]:
        """Two cuts. Measured arms have enough evidence above the first, and below the second."""

    def log_below(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms, in rows, lie below cuts: the same for all, or a row for each."""

    def log_above(self, arms: IntArray, cuts: FloatArray) -> FloatArray:
        """Return the evidence that arms lie above cuts."""

    def highest(self, arms: IntArray) -> IntArray:
        """Return some of the arms: at no cut has another one less evidence below it."""


def open_outsiders(evidence: Evidence, incumbents: IntArray, epsilon: float) -> BoolArray:
    """Return which arms are not settled with all incumbents to within epsilon; incumbents are not."""
    is_open = np.zeros(evidence.n, dtype=np.bool_)
    first, last = evidence.span

    def is_cleared(cuts: FloatArray) -> BoolArray:
        return np.asarray((evidence.log_above(incumbents, cuts - epsilon) >= 0).all(axis=0))

    outsiders = _others(evidence, incumbents)
    low, _ = _change(is_cleared, first, last + epsilon)  # up to this cut incumbents need no help
    is_open[outsiders] = evidence.log_below(outsiders, np.array([last]))[:, 0] < 0  # these are not measured
    is_doubtful = evidence.log_below(outsiders, np.array([low]))[:, 0] < 0
    outsiders = outsiders[is_doubtful & ~is_open[outsiders]]
    if not len(outsiders) or low > last:
        return is_open
    cuts = np.linspace(low, _end_of_doubt(evidence, outsiders, low), _N_CUTS)
    needed = evidence.prices.still_needed(evidence.log_above(incumbents, cuts[1:] - epsilon).min(axis=0))
    if len(outsiders) <= _FEW:
        is_open[outsiders] = (evidence.log_below(outsiders, cuts[:-1]) < needed).any(axis=1)
    else:
        is_open[_short_of(evidence, outsiders, cuts[:-1], needed)] = True
    return is_open


def _short_of(evidence: Evidence, arms: IntArray, cuts: FloatArray, needed: FloatArray) -> IntArray:
    """Return those of many arms that lack the evidence needed below some of the rising cuts.

    What an arm has at one cut, it has at all later ones. So it is looked at next where more than that is
    needed: few cuts per arm are enough.
    """
    found = []
    for place in np.linspace(0, len(cuts) - 1, _N_PROBES + 2).astype(np.int64)[1:-1]:
        is_short = evidence.log_below(arms, cuts[[place]])[:, 0] < needed[place]
        found.append(arms[is_short])
        arms = arms[~is_short]
    most, places = np.maximum.accumulate(needed), np.zeros(len(arms), dtype=np.int64)
    while len(arms):
        logs = evidence.log_below(arms, cuts[places, None])[:, 0]
        is_short = logs < needed[places]
        found.append(arms[is_short])
        places = np.maximum(places + 1, np.searchsorted(most, logs, side="right"))
        is_left = ~is_short & (places < len(cuts))
        arms, places = arms[is_left], places[is_left]
    return np.concatenate(found)


def smallest_epsilons(evidence: Evidence, incumbents: IntArray) -> FloatArray:
    """Return to within which epsilon each incumbent is settled with all outsiders; infinite if to none.

    It is never negative: how far an incumbent leads is not certified.
    """
    outsiders = evidence.highest(_others(evidence, incumbents))
    first, last = (np.array([cut]) for cut in evidence.span)
    is_unknown = evidence.log_above(incumbents, first)[:, 0] < 0
    found = np.where(is_unknown, np.inf, 0.0)
    if not len(outsiders) or is_unknown.all():
        return found
    if (evidence.log_below(outsiders, last) < 0).any():
        return np.full(len(incumbents), np.inf)
    known = incumbents[~is_unknown]

    def is_cleared(cuts: FloatArray) -> BoolArray:
        return np.asarray((evidence.log_above(known, cuts) >= 0).all(axis=0))

    low, _ = _change(is_cleared, *evidence.span)
    outsiders = outsiders[evidence.log_below(outsiders, np.array([low]))[:, 0] < 0]
    if len(outsiders):
        cuts = np.linspace(low, _end_of_doubt(evidence, outsiders, low), _N_FINE_CUTS)
        needed = evidence.prices.still_needed(_least_below(evidence, outsiders, cuts[:-1]))
        found[~is_unknown] = _least_shifts(evidence, known, cuts, needed)
    return found


def _least_shifts(evidence: Evidence, arms: IntArray, cuts: FloatArray, needed: FloatArray) -> FloatArray:
    """Return by how much cuts must be lowered until each arm has the evidence needed between them.

    Lowered by their whole width, all of them lie where the arms need no help.
    """
    low, high = np.zeros(len(arms)), np.full(len(arms), cuts[-1] - cuts[0])

    def is_enough(shifts: FloatArray) -> BoolArray:
        return np.asarray((evidence.log_above(arms, cuts[1:] - shifts[:, None]) >= needed).all(axis=1))

    high[is_enough(low)] = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_middle = is_enough(middle)
        low, high = np.where(is_middle, low, middle), np.where(is_middle, middle, high)
    return high


def _others(evidence: Evidence, incumbents: IntArray) -> IntArray:
    return all_but(evidence.n, incumbents)


def _end_of_doubt(evidence: Evidence, outsiders: IntArray, low: float) -> float:
    """Return a cut from which on outsiders, all of which do at `low`, need no help."""
    arms = evidence.highest(outsiders)
    begin, n_before = low, len(arms) + 1
    while _FEW < len(arms) < n_before:  # the arm that needs help longest decides: leave out others
        logs, n_before = evidence.log_below(arms, np.array([begin]))[:, 0], len(arms)
        begin, _ = _need_of_help(evidence, arms[[int(np.argmin(logs))]], begin)
        arms = arms[evidence.log_below(arms, np.array([begin]))[:, 0] < 0]
    return _need_of_help(evidence, arms, low)[1]


def _need_of_help(evidence: Evidence, arms: IntArray, low: float) -> tuple[float, float]:
    """Return two cuts close together: some arm needs help up to the first, and none from the second on."""

    def is_needed(cuts: FloatArray) -> BoolArray:
        return np.asarray((evidence.log_below(arms, cuts) < 0).any(axis=0))

    return _change(is_needed, low, evidence.span[1])


def _least_below(evidence: Evidence, arms: IntArray, cuts: FloatArray) -> FloatArray:
    """Return the smallest evidence of arms below each of some rising cuts, or 0 if none needs help there."""
    found, size = np.zeros(len(cuts)), len(cuts) if len(arms) <= _FEW else _GROUP
    for first in range(0, len(cuts), size):
        group = slice(first, first + size)
        logs = evidence.log_below(arms, cuts[group])
        found[group] = np.minimum(logs.min(axis=0), 0.0)
        arms = arms[logs[:, -1] < 0]  # the others need no help at later cuts
        if not len(arms):
            break
    return found


def _change(holds: Callable[[FloatArray], BoolArray], low: float, high: float) -> tuple[float, float]:
    """Return two numbers close together: something holds up to the first, and not from the second on.

    It must hold at `low` and, having ended, not hold again. If it holds up to `high`, that is returned twice.
    """
    for _ in range(_TIMES):
        numbers = np.linspace(low, high, _AT_A_TIME)
        n_held = int(np.argmin(np.append(holds(numbers[1:]), False)))
        if n_held == len(numbers) - 1:
            return high, high
        low, high = float(numbers[n_held]), float(numbers[n_held + 1])
    return low, high
