"""Who holds which tickets of a round, and until when."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray

_NOBODY = -1


class Leases:
    """The holders of a round's tickets, by place.

    A lease says who is measuring, so that others need not. It decides nothing: an answer counts whoever it
    comes from, and whenever.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._holders: IntArray | None = None  # made when the first ticket is handed out
        self._until: FloatArray | None = None
        self._numbers: dict[str, int] = {}

    def copy(self) -> "Leases":
        """Return leases that can change without changing these."""
        other = Leases(self._n)
        if self._holders is not None and self._until is not None:
            other._holders, other._until = self._holders.copy(), self._until.copy()
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
        holders[places] = np.repeat(numbers, sizes)  # of several values for one place the last stays
        ends[places] = until

    def release(self, places: IntArray, worker: str) -> None:
        """Take in that a worker gave tickets back, unless others hold them by now."""
        holders, ends = self._arrays()
        own = places[holders[places] == self._numbers.get(worker, _NOBODY)]
        holders[own], ends[own] = _NOBODY, -np.inf

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
