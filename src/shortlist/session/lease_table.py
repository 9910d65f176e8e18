"""The table of leases of a round: which worker holds which tickets, and until when."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray

_NOBODY = -1
_TAKEN = -2  # no worker, but the previous one may still be measuring the ticket


class LeaseTable:
    """The leases of a round's tickets, by position.

    A lease says which worker is measuring a ticket, so that others need not. An answer counts regardless of
    its worker and time. If two workers measure a ticket, the first answer counts; such tickets are recorded.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._holders: IntArray | None = None  # allocated when the first ticket is leased
        self._until: FloatArray | None = None
        self._is_again: BoolArray | None = None  # allocated when the first ticket is leased again
        self._numbers: dict[str, int] = {}

    def copy(self) -> "LeaseTable":
        """Return an independent copy."""
        other = LeaseTable(self._n)
        if self._holders is not None and self._until is not None:
            other._holders, other._until = self._holders.copy(), self._until.copy()
        other._is_again = None if self._is_again is None else self._is_again.copy()
        other._numbers = dict(self._numbers)
        return other

    @property
    def workers(self) -> list[str]:
        """All workers who have held a ticket of this round."""
        return list(self._numbers)

    @property
    def are_all_returned(self) -> bool:
        """Whether there were leases, and all tickets were released before anybody started to measure them."""
        return bool(self._numbers) and self._is_again is None and bool((self._arrays()[0] == _NOBODY).all())

    def note(self, places: IntArray, workers: list[str], sizes: list[int], until: FloatArray) -> None:
        """Record leases of workers until given times; the latest lease of a ticket counts."""
        holders, ends = self._arrays()
        numbers = [self._numbers.setdefault(worker, len(self._numbers)) for worker in workers]
        new = np.repeat(numbers, sizes)
        order = np.argsort(places, kind="stable")
        sorted_places, after = places[order], new[order]
        before = np.where(np.diff(sorted_places, prepend=-1) != 0, holders[sorted_places], np.roll(after, 1))
        self.note_again(sorted_places[(before != _NOBODY) & (before != after)])
        holders[places] = new  # for several values at one position the last one stays
        ends[places] = until

    def release(self, places: IntArray, worker: str, by: str = "") -> None:
        """Record that a worker's tickets were released, unless other workers hold them by now.

        `by` is the worker who ended the work on them, if it may have started. The next worker to get such a
        ticket measures it a second time; so does a worker that aborted a measurement and retries it.
        """
        holders, ends = self._arrays()
        own = places[holders[places] == self._numbers.get(worker, _NOBODY)]
        holders[own], ends[own] = _TAKEN if by not in ("", worker) else _NOBODY, -np.inf
        if by and by == worker:
            self.note_again(places)

    def is_again(self, places: IntArray) -> BoolArray:
        """Return which tickets were issued, or started, more than once."""
        return np.zeros(len(places), dtype=bool) if self._is_again is None else self._is_again[places]

    def note_again(self, places: IntArray) -> None:
        """Record that tickets were issued, or their calls started, more than once."""
        if len(places):
            self._is_again = np.zeros(self._n, dtype=bool) if self._is_again is None else self._is_again
            self._is_again[places] = True

    def is_held_by(self, worker: str) -> BoolArray:
        """Return which tickets a worker holds, or was the last to hold."""
        number = self._numbers.get(worker)
        if self._holders is None or number is None:
            return np.zeros(self._n, dtype=bool)
        found: BoolArray = self._holders == number
        return found

    def is_held(self, now: float, gone: frozenset[str] = frozenset()) -> BoolArray:
        """Return which tickets are leased at this time, ignoring workers known to be gone."""
        if self._until is None or self._holders is None:
            return np.zeros(self._n, dtype=bool)
        held: BoolArray = self._until > now
        for worker in gone & self._numbers.keys():
            held &= self._holders != self._numbers[worker]
        return held

    def until(self, places: IntArray) -> FloatArray:
        """Return when the lease of each ticket expires; minus infinity without a lease."""
        return np.full(len(places), -np.inf) if self._until is None else self._until[places]

    def by_worker(self, places: IntArray) -> dict[str, IntArray]:
        """Return the positions that each worker holds, or was the last to hold."""
        if self._holders is None:
            return {}
        found = {worker: places[self._holders[places] == number] for worker, number in self._numbers.items()}
        return {worker: held for worker, held in found.items() if len(held)}

    def _arrays(self) -> tuple[IntArray, FloatArray]:
        if self._holders is None or self._until is None:
            self._holders = np.full(self._n, _NOBODY)
            self._until = np.full(self._n, -np.inf)
        return self._holders, self._until
