"""Who holds which tickets of a round, and until when."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray

_NOBODY = -1
_TAKEN = -2  # nobody, but the worker who had the ticket may be measuring it still


class Leases:
    """The holders of a round's tickets, by place.

    A lease says who is measuring, so that others need not. An answer counts whoever it comes from, and
    whenever. Of a ticket that two workers measure the quicker answer counts, so such tickets are noted.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._holders: IntArray | None = None  # made when the first ticket is handed out
        self._until: FloatArray | None = None
        self._is_again: BoolArray | None = None  # made when the first ticket is handed out again
        self._numbers: dict[str, int] = {}

    def copy(self) -> "Leases":
        """Return leases that can change without changing these."""
        other = Leases(self._n)
        if self._holders is not None and self._until is not None:
            other._holders, other._until = self._holders.copy(), self._until.copy()
        other._is_again = None if self._is_again is None else self._is_again.copy()
        other._numbers = dict(self._numbers)
        return other

    @property
    def workers(self) -> list[str]:
        """All who have held a ticket of this round."""
        return list(self._numbers)

    def note(self, places: IntArray, workers: list[str], sizes: list[int], until: FloatArray) -> None:
        """Take in that workers hold so many tickets each until some time; the latest word on one counts."""
        holders, ends = self._arrays()
        numbers = [self._numbers.setdefault(worker, len(self._numbers)) for worker in workers]
        new = np.repeat(numbers, sizes)
        order = np.argsort(places, kind="stable")
        sorted_places, after = places[order], new[order]
        before = np.where(np.diff(sorted_places, prepend=-1) != 0, holders[sorted_places], np.roll(after, 1))
        self.note_again(sorted_places[(before != _NOBODY) & (before != after)])
        holders[places] = new  # of several values for one place the last stays
        ends[places] = until

    def release(self, places: IntArray, worker: str, by: str = "") -> None:
        """Take in that a worker's tickets were given back, unless others hold them by now.

        `by` says who ended the work on them, if it may have begun. Whoever gets a ticket next that was taken
        from a worker measures it a second time; and so does a worker that broke off and tries again.
        """
        holders, ends = self._arrays()
        own = places[holders[places] == self._numbers.get(worker, _NOBODY)]
        holders[own], ends[own] = _TAKEN if by not in ("", worker) else _NOBODY, -np.inf
        if by and by == worker:
            self.note_again(places)

    def is_again(self, places: IntArray) -> BoolArray:
        """Return which tickets were issued, or begun, more than once."""
        return np.zeros(len(places), dtype=bool) if self._is_again is None else self._is_again[places]

    def note_again(self, places: IntArray) -> None:
        """Take in that tickets were issued, or calls of them begun, more than once."""
        if len(places):
            self._is_again = np.zeros(self._n, dtype=bool) if self._is_again is None else self._is_again
            self._is_again[places] = True

    def is_held_by(self, worker: str) -> BoolArray:
        """Return which tickets a worker holds, or held last if nobody has held them since."""
        number = self._numbers.get(worker)
        if self._holders is None or number is None:
            return np.zeros(self._n, dtype=bool)
        found: BoolArray = self._holders == number
        return found

    def is_held(self, now: float, gone: frozenset[str] = frozenset()) -> BoolArray:
        """Return which tickets somebody holds at this time, other than workers known to be gone."""
        if self._until is None or self._holders is None:
            return np.zeros(self._n, dtype=bool)
        held: BoolArray = self._until > now
        for worker in gone & self._numbers.keys():
            held &= self._holders != self._numbers[worker]
        return held

    def until(self, places: IntArray) -> FloatArray:
        """Return until when tickets are held; minus infinity where they are not."""
        return np.full(len(places), -np.inf) if self._until is None else self._until[places]

    def by_worker(self, places: IntArray) -> dict[str, IntArray]:
        """Return which of some places each worker holds, or held last."""
        if self._holders is None:
            return {}
        found = {worker: places[self._holders[places] == number] for worker, number in self._numbers.items()}
        return {worker: held for worker, held in found.items() if len(held)}

    def _arrays(self) -> tuple[IntArray, FloatArray]:
        if self._holders is None or self._until is None:
            self._holders = np.full(self._n, _NOBODY)
            self._until = np.full(self._n, -np.inf)
        return self._holders, self._until
