"""A round as calls: its tickets cut into calls, those into blocks, and put together again.

How a round is cut depends on its tickets alone, never on which of them have been told already, on the
workers, or on the order in which answers come. So the answers do not either.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.measure import Calls, Summary, pooled
from shortlist.tickets import Tickets


@dataclass(frozen=True, eq=False)
class Cut:
    """The calls of a round, in the order of its tickets, and its blocks of `together` calls each.

    Attributes
    ----------
    tickets
        All tickets of the round, told or not.
    ends
        For each ticket, how many calls there are up to its last one; None where each is one call.
    """

    tickets: Tickets
    seed: int
    together: int
    pulls_per_call: int | None
    ends: IntArray | None

    @classmethod
    def of(cls, tickets: Tickets, seed: int, together: int, pulls_per_call: int | None) -> "Cut":
        """Return a round cut into calls of at most so many pulls."""
        if pulls_per_call is None or tickets.counts.max(initial=0) <= pulls_per_call:
            return cls(tickets, seed, together, None, None)
        ends = np.cumsum(-(-tickets.counts // pulls_per_call))
        return cls(tickets, seed, together, pulls_per_call, ends)

    def starts(self, place: int) -> int:
        """Return the number of calls before a ticket's first one."""
        return place if self.ends is None else int(self.ends[place - 1]) if place else 0

    @property
    def n_calls(self) -> int:
        """How many calls the round has."""
        return self.starts(len(self.tickets))

    def places(self, first: int, stop: int) -> IntArray:
        """Return which ticket each of some calls belongs to."""
        numbers = np.arange(first, stop)
        return numbers if self.ends is None else np.searchsorted(self.ends, numbers, side="right")

    def calls(self, first: int, stop: int) -> Calls:
        """Return the calls with these numbers."""
        of = self.tickets.take(slice(first, stop) if self.ends is None else self.places(first, stop))
        if self.ends is None or self.pulls_per_call is None:
            return Calls(self.seed, of.arms, of.counts, of.first_pulls)
        places = self.places(first, stop)
        before = np.where(places > 0, self.ends[places - 1], 0)
        made = (np.arange(first, stop) - before) * self.pulls_per_call
        counts = np.minimum(of.counts - made, self.pulls_per_call)
        return Calls(self.seed, of.arms, counts, of.first_pulls + made)

    def blocks(self, is_wanted: BoolArray, within: range | None = None) -> Iterator[range]:
        """Yield the blocks that hold a call of some ticket wanted, in order, as ranges of them."""
        within = range(-(-self.n_calls // self.together)) if within is None else within
        edges = np.flatnonzero(np.diff(is_wanted, prepend=False, append=False))
        ranges = [
            range(self.starts(int(first)) // self.together, -(-self.starts(int(stop)) // self.together))
            for first, stop in edges.reshape(-1, 2)
        ]
        done = within.start
        for blocks in ranges:  # neighbours may share a block
            found = range(max(done, blocks.start), min(blocks.stop, within.stop))
            done = max(done, blocks.stop)
            if found:
                yield found

    def bounds(self, blocks: range) -> tuple[int, int]:
        """Return the numbers of the first call of some blocks and of the first one after them."""
        return blocks.start * self.together, min(blocks.stop * self.together, self.n_calls)


@dataclass(eq=False)
class Pooling:
    """The answers to a round's calls, until those to all calls of a ticket are there."""

    cut: Cut
    is_open: BoolArray
    _parts: dict[int, dict[int, Summary]] = field(default_factory=dict)

    @property
    def begun(self) -> set[int]:
        """Tickets of which some calls have been answered, but not all."""
        return set(self._parts)

    def misses(self, first: int, stop: int) -> bool:
        """Return whether some of these calls still needs an answer."""
        places = self.cut.places(first, stop).tolist()
        numbered = enumerate(places, start=first)
        return any(
            self.is_open[place] and number not in self._parts.get(place, {}) for number, place in numbered
        )

    def add(
        self, first: int, means: FloatArray, variances: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Take the answers to consecutive calls; return tickets now whole, their means and their spreads."""
        places = self.cut.places(first, first + len(means))
        if self.cut.ends is None:
            is_new = self.is_open[places]
            whole, found, spreads = places[is_new], means[is_new], variances[is_new]
        else:
            whole, found, spreads = self._add_parts(first, places, means, variances)
        self.is_open[whole] = False
        return whole, found, spreads

    def _add_parts(
        self, first: int, places: IntArray, means: FloatArray, variances: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        counts = self.cut.calls(first, first + len(means)).counts
        rows = zip(places.tolist(), counts.tolist(), means.tolist(), variances.tolist(), strict=True)
        whole: dict[int, Summary] = {}
        for number, (place, count, mean, variance) in enumerate(rows, start=first):
            if self.is_open[place]:
                parts = self._parts.setdefault(place, {})
                parts[number] = Summary(count, mean, None if np.isnan(variance) else variance)
                if len(parts) == self.cut.starts(place + 1) - self.cut.starts(place):
                    whole[place] = pooled([part for _, part in sorted(self._parts.pop(place).items())])
        spreads = (np.nan if one.variance is None else one.variance for one in whole.values())
        return (
            np.array(list(whole), dtype=np.int64),
            np.array([one.mean for one in whole.values()]),
            np.fromiter(spreads, np.float64, len(whole)),
        )
