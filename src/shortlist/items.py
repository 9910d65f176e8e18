"""Items: a fixed set of questions or tests that every arm is measured on; and endless blocks."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from shortlist import checks
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import InvalidProblem

MOST_ITEMS = 10_000_000
_ROUNDING = 1e-6  # by which a score may miss a multiple of the step, in steps
_ORDER = 2  # separates the random numbers of the order from those of calls and rewards
_BLOCKS = 3  # the same for the seeds of blocks,
_SEEDS = 2**31 - 1  # which are at most this, since many programs take no larger ones


@dataclass(frozen=True, eq=False)
class Items:
    """A fixed pool of items, shared by all arms; a run stores their ids and a digest of their contents.

    Attributes
    ----------
    n
        The number of items.
    ids
        Their ids; None if items are known by their numbers, from 0.
    values
        What is measured; None if only ids or numbers are known.
    content
        A digest of the values; empty if there are none.
    """

    n: int
    ids: tuple[str, ...] | None = None
    values: tuple[Any, ...] | None = None
    content: str = ""

    @classmethod
    def of(cls, given: Any) -> "Items":
        """Return items given as a number, as a sequence of JSON values, or as a mapping of ids to values."""
        if isinstance(given, Items):
            return given
        if given is Blocks:
            return Blocks()
        if checks.is_whole(given):
            return cls(checks.whole_number(given, "items", 1, MOST_ITEMS))
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | Mapping | np.ndarray):
            raise InvalidProblem(
                f"`items` is {checks.shortened(given)}; it must be the number of items, a list of them, or "
                f"a dictionary from ids to items."
            )
        ids = _checked_ids(given) if isinstance(given, Mapping) else None
        values = tuple(given.values()) if isinstance(given, Mapping) else tuple(_plain(given))
        if not values:
            raise InvalidProblem("`items` is empty: there is nothing to measure arms on.")
        return cls(len(values), ids, values, _digest(values))

    @property
    def digest(self) -> str:
        """A fingerprint of ids and contents, the same on every machine."""
        return hashlib.sha256(json.dumps([self.n, self.ids, self.content]).encode()).hexdigest()

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each item by its id."""
        return {self.id(place): place for place in range(self.n)}

    def id(self, place: int) -> str:
        """Return the id of an item: its number if it has none."""
        return str(place) if self.ids is None else self.ids[place]

    def value(self, place: int) -> Any:
        """Return an item itself or, if that is not known, its id or number."""
        if self.values is not None:
            return self.values[place]
        return place if self.ids is None else self.ids[place]

    def order_by(self, entropy: int) -> IntArray:
        """Return the order in which all arms of a run take the items, from the run's `entropy`."""
        return _order(self.n, entropy)

    def places_at(self, entropy: int, first: int, count: int) -> list[int]:
        """Return the places of the items at some positions of the order."""
        places: list[int] = self.order_by(entropy)[first : first + count].tolist()
        return places

    def values_at(self, entropy: int, first: int, count: int) -> list[Any]:
        """Return the items at some positions of the order, as the measurement gets them."""
        return [self.value(place) for place in self.places_at(entropy, first, count)]

    def __repr__(self) -> str:
        return f"Items({self.n:,})"


class Blocks(Items):
    """Endless blocks, shared by all arms: in each, all arms are measured under the same conditions.

    The measurement gets the seed of each block, a whole number below 2**31 that follows from the question and
    the seed of the run, different for each block: use it to generate the random numbers that all arms share.

    Parameters
    ----------
    lockstep
        Whether the conditions of a block do not last, so that it cannot be measured later: a minute on a
        machine, a day, a season. Then blocks are measured one after the other, each with all arms that have
        not stopped, in random order; an arm that has stopped never goes on. Ignore the seeds then.
    """

    def __init__(self, lockstep: bool = False) -> None:
        super().__init__(MOST_ITEMS)
        if not isinstance(lockstep, bool):
            raise InvalidProblem(f"`lockstep` is {lockstep!r}; it must be True or False.")
        object.__setattr__(self, "lockstep", lockstep)

    lockstep: bool

    @property
    def digest(self) -> str:
        """What distinguishes blocks from items."""
        return "blocks in lockstep" if self.lockstep else "blocks"

    def places_at(self, entropy: int, first: int, count: int) -> list[int]:  # noqa: ARG002
        """Return the numbers of the blocks at some positions: they are taken one after the other."""
        return list(range(first, min(first + count, self.n)))

    def values_at(self, entropy: int, first: int, count: int) -> list[int]:
        """Return the seeds of blocks: a random permutation of all numbers below 2**31."""
        start, flips = _block_key(entropy)
        numbers = (np.arange(first, min(first + count, self.n)) + start) & _SEEDS
        for shift, odd in ((16, 0x7FEB352D), (15, 0x2C1B3C6D), (17, 1)):
            numbers = ((numbers ^ (numbers >> shift)) * odd) & _SEEDS
        seeds: list[int] = (numbers ^ flips).tolist()
        return seeds

    def __reduce__(self) -> tuple[type, tuple[bool]]:
        return Blocks, (self.lockstep,)

    def __repr__(self) -> str:
        return f"Blocks({'lockstep=True' if self.lockstep else ''})"


@lru_cache(maxsize=32)
def _block_key(entropy: int) -> IntArray:
    state = np.random.SeedSequence(entropy, spawn_key=(_BLOCKS,)).generate_state(2)
    return state.astype(np.int64) & _SEEDS


@lru_cache(maxsize=32)
def _order(n: int, entropy: int) -> IntArray:
    order = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_ORDER,))).permutation(n)
    order.flags.writeable = False
    return order


@dataclass(frozen=True, eq=False)
class Known:
    """Complete rows of scores that existed before a run.

    Attributes
    ----------
    arms
        The arms, by number.
    scores
        One row for each of these arms, one column for each item.
    """

    arms: IntArray
    scores: FloatArray

    @classmethod
    def of(cls, given: Any, names: Mapping[str, int], shape: tuple[int, int]) -> "Known | None":
        """Return rows given as a mapping from arms, by name or number, to scores in the order of items.

        `names` has the number of each arm, and `shape` the numbers of arms and items.
        """
        if isinstance(given, Known):
            return given
        if not isinstance(given, Mapping):
            raise InvalidProblem("`known` must be a dictionary from arms to their scores on all items.")
        rows = {_arm(arm, names, shape[0]): _row(arm, scores, shape[1]) for arm, scores in given.items()}
        if len(rows) < len(given):
            raise InvalidProblem("`known` has two rows for one arm; give each arm once.")
        arms = sorted(rows)
        return cls(np.array(arms), np.array([rows[arm] for arm in arms])) if rows else None

    @property
    def digest(self) -> str:
        """A fingerprint of the rows, the same on every machine."""
        rows = self.arms.astype("<i8").tobytes() + self.scores.astype("<f8").tobytes()
        return hashlib.sha256(rows).hexdigest()

    def in_order(self, order: IntArray) -> "Known":
        """Return the same rows with the items in another order."""
        return Known(self.arms, self.scores[:, order])


def _arm(given: Any, names: Mapping[str, int], n: int) -> int:
    if isinstance(given, str) and given in names:
        return names[given]
    if checks.is_whole(given) and 0 <= given < n:
        return int(given)
    raise InvalidProblem(f"`known` has scores of {checks.shortened(given)}, which is not an arm.")


def _row(arm: Any, given: Any, n_items: int) -> FloatArray:
    scores = checks.real_numbers(given, "known", "Give one score per item.")
    if scores.shape != (n_items,):
        raise InvalidProblem(
            f"`known` has {scores.size:,} scores of {arm}, but there are {n_items:,} items. Only complete "
            f"rows help."
        )
    return scores


def is_on_step(scores: FloatArray, low: float | FloatArray, step: float | None) -> BoolArray:
    """Return which scores are multiples of a step above the lower bound; all if there is no step."""
    if step is None:
        return np.ones(scores.shape, dtype=np.bool_)
    steps = (scores - low) / step
    found: BoolArray = np.abs(steps - np.rint(steps)) <= _ROUNDING
    return found


def _plain(given: Any) -> Any:
    return given.tolist() if isinstance(given, np.ndarray) else given


def _checked_ids(given: Mapping[Any, Any]) -> tuple[str, ...]:
    ids = tuple(
        checks.encodable(str(key), f"the id of item number {place}") for place, key in enumerate(given)
    )
    if len(set(ids)) < len(ids):
        raise InvalidProblem("two `items` have the same id; give every item its own.")
    return ids


def _digest(values: Sequence[Any]) -> str:
    whole = hashlib.sha256()
    for place, value in enumerate(values):
        try:
            text = json.dumps(value, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidProblem(
                f"item number {place} cannot be written as JSON ({error}). Use plain values, such as text, "
                f"numbers, lists and dictionaries, or ids by which your function finds the items."
            ) from None
        whole.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return whole.hexdigest()
