"""Splits the tickets of a round into calls, orders the calls, groups them into blocks, and pools the answers.

The split and the order of calls depend only on the tickets, and on the entropy and the settings of the run.
They do not depend on which tickets have been answered, on the workers, or on the order in which answers
arrive. So the answers do not either.

Interleaving
------------
The level of rewards may drift during a round: a machine warms up, a service slows down at noon. If the arms
are measured one after the other, drift looks like a difference between arms. So each ticket is split into up
to `turns` calls of about equal size, and call j of k takes place at the time ``(j + u) / k`` of the round,
where u is uniform on [0, 1). Every odd call uses ``1 - u`` of the call before it: a steady drift then moves
the mean of every arm by the same amount.

In lockstep, where the conditions of a block do not last, a call is for one arm in one block. Blocks are
measured one after the other, each with its arms in random order.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, as_slice, order_of
from shortlist.checks import whole_number
from shortlist.measure import Calls, pooled
from shortlist.problem import Problem
from shortlist.strategies.marks import marks
from shortlist.tickets import Tickets

TURNS = 8
"""The default number of calls per ticket. If the level jumps once in a round, an arm's mean moves by up to
the jump divided by this number, relative to all other arms."""

_MOST_CALLS = (
    1 << 21
)  # maximum number of calls in a round with very many arms; there are always at least two turns
_FEW = 0.03  # if fewer calls than this share of a round are looked at, arrays of all calls are not worth it
_ORDER = 1  # separates the random numbers of the order from those of the rewards


@dataclass(frozen=True, eq=False)
class CallPlan:
    """The calls of a round, numbered in the order of its tickets, and the order in which they are made.

    Attributes
    ----------
    tickets
        All tickets of the round, answered or not.
    together
        The number of calls in a block, which is measured as a unit.
    pulls_per_call
        The maximum number of pulls per call; None for no limit.
    ends
        For each ticket, the number of calls up to its last one; None if each ticket is one call.
    is_interleaved
        Whether calls are made in random order; otherwise in the order of their numbers.
    cuts
        With shared items: the positions at which calls begin and end, the same in all rounds; else None.
    """

    tickets: Tickets
    entropy: int
    together: int
    pulls_per_call: int | None
    ends: IntArray | None
    is_interleaved: bool
    cuts: IntArray | None = None

    @classmethod
    def of(
        cls,
        tickets: Tickets,
        entropy: int,
        together: int = 1,
        pulls_per_call: int | None = None,
        turns: int = 1,
    ) -> "CallPlan":
        """Return a round split into calls of at most so many pulls, with at least `turns` calls per arm.

        A driver and its session get the same plan, so that its arrays are computed once.
        """
        key = id(tickets), entropy, together, pulls_per_call, turns
        known = _PLANS.get(key)
        if known is None:
            known = _PLANS[key] = cls._split(tickets, entropy, together, pulls_per_call, turns)
        return known

    @classmethod
    def _split(
        cls, tickets: Tickets, entropy: int, together: int, pulls_per_call: int | None, turns: int
    ) -> "CallPlan":
        if tickets.problem.items is not None:
            return cls._at_cuts(tickets, entropy, together, pulls_per_call, turns)
        counts = tickets.counts
        n_calls = np.ones_like(counts) if pulls_per_call is None else -(-counts // pulls_per_call)
        is_one_block = n_calls.sum() <= together  # a single arm needs no interleaving
        is_interleaved = turns > 1 and len(tickets) > 1 and not is_one_block
        if is_interleaved:
            turns = min(turns, max(2, _MOST_CALLS // len(tickets)))
            n_calls = np.minimum(counts, np.maximum(n_calls, turns))
        ends = np.cumsum(n_calls) if n_calls.max(initial=0) > 1 else None
        return cls(tickets, entropy, together, pulls_per_call, ends, is_interleaved)

    @classmethod
    def _at_cuts(
        cls, tickets: Tickets, entropy: int, together: int, pulls_per_call: int | None, turns: int
    ) -> "CallPlan":
        """Return a round split where calls on shared items begin and end, whichever the round."""
        last, is_lockstep = tickets.first_pulls + tickets.counts, tickets.problem.is_lockstep
        pulls_per_call = 1 if is_lockstep else pulls_per_call
        cuts = _cuts(_reach(tickets.problem, last), pulls_per_call, turns)
        n_calls = np.searchsorted(cuts, last) - np.searchsorted(cuts, tickets.first_pulls)
        ends = np.cumsum(n_calls) if n_calls.max(initial=0) > 1 else None
        is_interleaved = (turns > 1 or is_lockstep) and len(tickets) > 1 and n_calls.sum() > together
        return cls(tickets, entropy, together, pulls_per_call, ends, is_interleaved, cuts)

    @classmethod
    def arranged(cls, tickets: Tickets, entropy: int, settings: Mapping[str, Any]) -> "CallPlan":
        """Return a round split by a run's settings; runs of version 0.1.0 have no `turns`."""
        size = settings.get("pulls_per_call")
        return cls.of(
            tickets,
            entropy,
            whole_number(settings.get("together", 1), "together", 1),
            None if size is None else whole_number(size, "pulls_per_call", 1),
            whole_number(settings.get("turns", 1), "turns", 1),
        )

    # --- calls by their numbers -----------------------------------------------------------------------

    @property
    def n_calls(self) -> int:
        """The number of calls of the round."""
        return len(self.tickets) if self.ends is None else int(self.ends[-1])

    @cached_property
    def n_by_ticket(self) -> IntArray:
        """The number of calls of each ticket."""
        return np.ones_like(self.tickets.counts) if self.ends is None else np.diff(self.ends, prepend=0)

    def places(self, numbers: IntArray) -> IntArray:
        """Return the position of the ticket that each call belongs to."""
        if self.ends is None:
            return numbers
        if len(numbers) < _FEW * self.n_calls:
            return np.searchsorted(self.ends, numbers, side="right")
        section = as_slice(numbers)
        return self._places[numbers if section is None else section]

    @cached_property
    def _places(self) -> IntArray:
        return np.repeat(np.arange(len(self.tickets)), self.n_by_ticket)

    def parts(self, numbers: IntArray) -> "CallTickets":
        """Return calls as tickets for only their own pulls."""
        of = self.tickets
        if self.ends is None or len(numbers) < _FEW * self.n_calls:
            arms, counts, first_pulls = self._pulls_of(self.places(numbers), numbers)
        else:
            some = numbers if (section := as_slice(numbers)) is None else section
            arms, counts, first_pulls = (column[some] for column in self._columns)
        return CallTickets(of.problem, of.round, arms, counts, first_pulls, of.always_vary, self, numbers)

    def _pulls_of(self, places: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return arms, counts and first pulls of calls, given the positions of their tickets."""
        of = self.tickets.take(places)
        if self.ends is None:
            return of.arms, of.counts, of.first_pulls
        turn = numbers - (self.ends[places] - self.n_by_ticket[places])
        start, stop = self._starts(places, turn), self._starts(places, turn + 1)
        return of.arms, stop - start, of.first_pulls + start

    @cached_property
    def _columns(self) -> tuple[IntArray, IntArray, IntArray]:
        """Arms, counts and first pulls of all calls."""
        of, places = self.tickets, self._places
        if self.ends is None:
            return of.arms, of.counts, of.first_pulls
        first_calls = self.ends - self.n_by_ticket
        starts = self._starts(places, np.arange(self.n_calls) - first_calls[places])
        stops = np.empty_like(starts)  # a call ends where the next one of its ticket starts
        stops[:-1] = starts[1:]
        stops[self.ends - 1] = of.counts
        return of.arms[places], stops - starts, of.first_pulls[places] + starts

    def find(self, parts: Tickets) -> IntArray:
        """Return the numbers of calls that are given as parts of tickets; -1 for parts that are not calls."""
        if isinstance(parts, CallTickets) and parts.plan is self:
            return parts.numbers
        if not self.n_calls:
            return np.full(len(parts), -1)
        arms = self.tickets.arms
        nearest = np.searchsorted(arms, parts.arms, sorter=self._by_arm)
        places = self._by_arm[np.minimum(nearest, len(arms) - 1)]
        if self.ends is None:
            numbers = places
        else:
            k, counts = self.n_by_ticket[places], self.tickets.counts[places]
            offsets = parts.first_pulls - self.tickets.first_pulls[places]
            if self.cuts is not None:
                turn = np.searchsorted(self.cuts, parts.first_pulls) - self._first_cuts[places]
            elif self.is_interleaved:  # rounded starts are half a pull away from turn * counts / k at most
                turn = np.rint(offsets / counts * k).astype(np.int64)
            else:
                turn = offsets // (self.pulls_per_call or 1)
            numbers = self.ends[places] - k + np.clip(turn, 0, k - 1)
        own = self.parts(numbers)
        is_own = (own.first_pulls == parts.first_pulls) & (own.counts == parts.counts)
        return np.where(is_own & (own.arms == parts.arms), numbers, -1)

    @cached_property
    def _first_cuts(self) -> IntArray:
        """With shared items: where the first call of each ticket begins, among all cuts."""
        return np.searchsorted(self.cuts if self.cuts is not None else [], self.tickets.first_pulls)

    @cached_property
    def _by_arm(self) -> IntArray:
        return np.argsort(self.tickets.arms)

    def by_call(self, by_ticket: BoolArray) -> BoolArray:
        """Return per-ticket values repeated for each call."""
        return by_ticket.copy() if self.ends is None else np.repeat(by_ticket, self.n_by_ticket)

    def _starts(self, places: IntArray, turn: IntArray) -> IntArray:
        """Return the number of pulls of the same ticket before a call."""
        if self.cuts is not None:
            found: IntArray = self.cuts[self._first_cuts[places] + turn] - self.tickets.first_pulls[places]
            return found
        if self.is_interleaved:  # turn * counts / k, rounded half to even: larger calls are not early or late
            k, (each, more) = self.n_by_ticket, self._per_call
            own_k = k[0] if (k == k[0]).all() else k[places]  # dividing by one number is much faster
            whole, rest = np.divmod(2 * turn * more[places] + own_k, 2 * own_k)
            starts: IntArray = turn * each[places] + whole
            starts -= (rest == 0) & (starts % 2 == 1)
            return starts
        return np.minimum(turn * (self.pulls_per_call or 1), self.tickets.counts[places])

    @cached_property
    def _per_call(self) -> tuple[IntArray, IntArray]:
        """For each ticket, its pulls divided by its calls: the whole part, and the remainder."""
        return np.divmod(self.tickets.counts, self.n_by_ticket)

    # --- calls in the order in which they are made ----------------------------------------------------

    @cached_property
    def _order(self) -> IntArray:
        """The numbers of the calls of an interleaved round, in order."""
        rng = np.random.default_rng(
            np.random.SeedSequence(self.entropy, spawn_key=(_ORDER, self.tickets.round))
        )
        n_by_ticket = self.n_by_ticket
        turn = np.arange(self.n_calls) - np.repeat(np.cumsum(n_by_ticket) - n_by_ticket, n_by_ticket)
        times = rng.random(self.n_calls)
        if self.tickets.problem.is_lockstep:
            return np.lexsort([times, self.parts(np.arange(self.n_calls)).first_pulls])
        odd = np.flatnonzero(turn % 2)
        times[odd] = 1 - times[odd - 1]
        times += turn
        times /= np.repeat(n_by_ticket, n_by_ticket)
        return order_of(times)

    def numbers(self, first: int, stop: int) -> IntArray:
        """Return the numbers of the calls at some positions of the order."""
        return self._order[first:stop] if self.is_interleaved else np.arange(first, stop)

    def calls(self, first: int, stop: int) -> Calls:
        """Return the calls at some positions of the order."""
        if stop - first < _FEW * self.n_calls:
            parts = self.parts(self.numbers(first, stop))
            return Calls.for_tickets(self.entropy, parts)
        return self._in_order[first:stop]

    @cached_property
    def _in_order(self) -> Calls:
        """All calls, in the order in which they are made."""
        parts = self.parts(self.numbers(0, self.n_calls))
        return Calls.for_tickets(self.entropy, parts)

    @property
    def all_blocks(self) -> range:
        """All blocks of the round."""
        return range(-(-self.n_calls // self.together))

    def blocks(
        self, is_wanted: BoolArray, is_barred: BoolArray | None = None, within: range | None = None
    ) -> Iterator[range]:
        """Yield ranges of the blocks, in order, that contain a wanted call and no barred one."""
        within = self.all_blocks if within is None else within
        if not within:
            return
        if is_wanted.all() and not (is_barred is not None and is_barred.any()):
            yield within
            return
        first, stop = self.bounds(within)
        numbers, starts = self.numbers(first, stop), np.arange(0, stop - first, self.together)
        is_due = np.logical_or.reduceat(is_wanted[numbers], starts)
        if is_barred is not None:
            is_due &= ~np.logical_or.reduceat(is_barred[numbers], starts)
        edges = within.start + np.flatnonzero(np.diff(is_due, prepend=False, append=False))
        for begin, end in edges.reshape(-1, 2).tolist():
            yield range(begin, end)

    def bounds(self, blocks: range) -> tuple[int, int]:
        """Return where a range of blocks starts and ends in the order of calls."""
        return blocks.start * self.together, min(blocks.stop * self.together, self.n_calls)


@dataclass(frozen=True, eq=False)
class CallTickets(Tickets):
    """Calls of a round as tickets for only their own pulls; `plan` and `numbers` say which calls they are."""

    plan: CallPlan | None = None
    numbers: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


_PLANS: "WeakValueDictionary[tuple[object, ...], CallPlan]" = WeakValueDictionary()
"""The plans in use, by the identity of their tickets and by what else they depend on."""


def _reach(problem: Problem, positions: IntArray) -> int:
    """Return a number of items beyond all of some positions; blocks are endless."""
    if not problem.has_blocks:
        return problem.n_items
    return min(problem.n_items, 2 << int(positions.max(initial=8)).bit_length())


@lru_cache(maxsize=32)
def _cuts(n_items: int, pulls_per_call: int | None, turns: int) -> IntArray:
    """Return the positions at which calls on shared items begin and end: at marks, and between them."""
    found = [np.zeros(1, dtype=np.int64)]
    positions = marks(n_items)
    for start, stop in zip(positions[:-1].tolist(), positions[1:].tolist(), strict=True):
        size = stop - start
        n_calls = max(-(-size // (pulls_per_call or size)), min(size, turns))
        found.append(start + np.arange(1, n_calls + 1) * size // n_calls)
    return np.concatenate(found)


def calls_between(
    problem: Problem, arms: IntArray, starts: IntArray, limits: IntArray, settings: Mapping[str, Any]
) -> Tickets:
    """Return the calls on shared items of some arms from positions on, up to others, whichever the round."""
    size = settings.get("pulls_per_call")
    cuts = _cuts(_reach(problem, limits), size, settings.get("turns", 1))
    first, last = np.searchsorted(cuts, starts), np.searchsorted(cuts, limits, side="right") - 1
    sizes = np.maximum(last - first, 0)
    places = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    counts = cuts[places + 1] - cuts[places]
    return Tickets(problem, 0, np.repeat(arms, sizes), counts, cuts[places])


def are_whole_calls(calls: Tickets, settings: Mapping[str, Any]) -> BoolArray:
    """Return which parts of tickets are calls on shared items, whichever the round."""
    is_there = (calls.first_pulls < calls.problem.n_items) & (calls.counts <= calls.problem.n_items)
    firsts, counts = np.where(is_there, calls.first_pulls, 0), np.where(is_there, calls.counts, 0)
    reach = _reach(calls.problem, firsts + counts)
    cuts = _cuts(reach, settings.get("pulls_per_call"), settings.get("turns", 1))
    places = np.minimum(np.searchsorted(cuts, firsts), len(cuts) - 2)
    found: BoolArray = is_there & (cuts[places] == firsts) & (np.diff(cuts)[places] == counts)
    return found


class PartialAnswers:
    """The answers to single calls of a round, from which answers to tickets are pooled.

    Attributes
    ----------
    means, variances
        By the number of the call; NaN if unknown.
    n_pulls
        By ticket, the number of its pulls answered this way.
    scores
        With shared items: the score of each item, by the number of the call.
    """

    def __init__(self, call_plan: CallPlan) -> None:
        self.call_plan = call_plan
        self.means, self.variances = np.full((2, call_plan.n_calls), np.nan)
        self.n_pulls = np.zeros_like(call_plan.tickets.counts)
        self.scores: dict[int, FloatArray] = {}
        self._n_missing = call_plan.n_by_ticket.copy()

    def copy(self) -> "PartialAnswers":
        """Return an independent copy."""
        other = copy(self)
        other.means, other.variances = self.means.copy(), self.variances.copy()
        other.n_pulls, other._n_missing = self.n_pulls.copy(), self._n_missing.copy()
        other.scores = self.scores.copy()
        return other

    @property
    def is_complete(self) -> BoolArray:
        """Which tickets have an answer to every call."""
        complete: BoolArray = self._n_missing == 0
        return complete

    def is_answered(self, numbers: IntArray) -> BoolArray:
        """Return which of some calls have an answer."""
        answered: BoolArray = ~np.isnan(self.means[numbers])
        return answered

    def has_scores(self, number: int, scores: FloatArray) -> bool:
        """Return whether these are the scores of a call that was answered."""
        return np.array_equal(self.scores.get(number, ()), scores)

    def take(
        self, numbers: IntArray, means: FloatArray, variances: FloatArray, scores: FloatArray | None = None
    ) -> None:
        """Add answers to calls that had none; scores are given call after call."""
        self.means[numbers], self.variances[numbers] = means, variances
        places, counts = self.call_plan.places(numbers), self.call_plan.parts(numbers).counts
        if scores is not None:
            self.scores |= zip(numbers.tolist(), np.split(scores, np.cumsum(counts)[:-1]), strict=True)
        np.add.at(self.n_pulls, places, counts)
        np.subtract.at(self._n_missing, places, 1)

    def forget(self, places: IntArray) -> None:
        """Remove the answers to all calls of some tickets."""
        numbers = np.arange(self.call_plan.n_calls)
        numbers = numbers[np.isin(self.call_plan.places(numbers), places)]
        self.means[numbers] = self.variances[numbers] = np.nan
        self.n_pulls[places], self._n_missing[places] = 0, self.call_plan.n_by_ticket[places]
        for number in numbers.tolist():
            self.scores.pop(number, None)

    def whole_scores(self, places: IntArray, numbers: IntArray, scores: Sequence[FloatArray]) -> FloatArray:
        """Return the scores of tickets that new answers complete, ticket after ticket, in order."""
        known = self.scores | dict(zip(numbers.tolist(), scores, strict=True))
        ends = np.cumsum(self.call_plan.n_by_ticket)
        calls = [range(ends[place] - self.call_plan.n_by_ticket[place], ends[place]) for place in places]
        return np.concatenate([known[call] for of_ticket in calls for call in of_ticket])

    def whole(
        self, numbers: IntArray, means: FloatArray, variances: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return which tickets these answers would complete, with the means and variances of all their pulls.

        The calls must be unanswered and in ascending order. Nothing is changed.
        """
        of_new = self.call_plan.places(numbers)  # ascending, like the calls
        starts = np.flatnonzero(np.diff(of_new, prepend=-1))
        places, n_new = of_new[starts], np.diff(starts, append=len(of_new))
        is_whole = n_new == self._n_missing[places]
        places, starts = places[is_whole], starts[is_whole]
        if self.call_plan.ends is None:
            return places, means[starts], variances[starts]
        found = np.full((2, len(places)), np.nan)
        sizes = self.call_plan.n_by_ticket[places]
        is_all_new = n_new[is_whole] == sizes
        for size in np.unique(sizes).tolist():
            of = np.flatnonzero(sizes == size)
            calls = (self.call_plan.ends[places[of]] - size)[:, None] + np.arange(size)
            counts = self.call_plan.parts(calls.ravel()).counts.reshape(calls.shape)
            if is_all_new[of].all():
                at = starts[of][:, None] + np.arange(size)
                found[:, of] = pooled(counts, means[at], variances[at])
                continue
            at = np.minimum(np.searchsorted(numbers, calls), len(numbers) - 1)
            is_new = numbers[at] == calls
            found[:, of] = pooled(
                counts,
                np.where(is_new, means[at], self.means[calls]),
                np.where(is_new, variances[at], self.variances[calls]),
            )
        return places, found[0], found[1]
