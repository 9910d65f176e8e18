"""The race within blocks, for means that change from block to block, such as from day to day.

Every batch is a block: the arms that are still compared get the same number of pulls each. Results that were
measured elsewhere have blocks of their own. Arms are compared within blocks only
(`certificates/block_totals.py`; docs/theory.md, section 42).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import IntArray, all_but
from shortlist.certificates.block_totals import (
    UNNAMED,
    BlockTotals,
    certificate_of_blocks,
    evidence_for,
    guarantee_by_blocks,
    selections,
)
from shortlist.certificates.certificate import Certificate
from shortlist.problem import Problem, countable
from shortlist.strategies import lanes
from shortlist.strategies.protocol import Added, Anytime, Batch, Done, Moments

FIRST = 0.1  # pulls of an arm in the first block, times the square of epsilon as a share of the bounds
GROWTH = 0.1  # the size of a block, relative to the pulls so far


@dataclass(frozen=True, eq=False)
class Open:
    """Some arms await a batch each.

    Attributes
    ----------
    problem
        The question.
    scale
        The epsilon that the run was begun with.
    blocks
        All rewards so far.
    n_rounds
        The number of batches told.
    arms, counts
        The batch awaited.
    """

    problem: Problem
    scale: float
    blocks: BlockTotals
    n_rounds: int
    arms: IntArray
    counts: IntArray


@dataclass(frozen=True, eq=False)
class Ended(Done):
    """No pair is open; `last` is the state in which the race ended."""

    last: Open


def init(problem: Problem) -> Open:
    """Return the first state: every arm awaits its first batch."""
    counts = np.full(problem.n, first_pulls(problem))
    return Open(problem, problem.epsilon, BlockTotals.none(problem.n), 0, problem.arms, counts)


def first_pulls(problem: Problem) -> int:
    """Return the pulls of each arm in the first block."""
    wanted = math.ceil(FIRST * (problem.width / problem.epsilon) ** 2)
    return countable(wanted * problem.n, "The race within blocks") // problem.n


def ask(state: Open) -> Batch:
    """Return the batch awaited."""
    return Batch(state.arms, state.counts)


def tell(state: Open, told: Moments) -> Open | Ended:
    """Return the next state: what was told is a block of its own."""
    names = (f"{UNNAMED}{state.n_rounds}",) * len(state.arms)
    sums = state.problem.shares(told.means) * state.counts
    blocks = state.blocks.added(names, state.arms, state.counts, sums)
    return _decided(replace(state, blocks=blocks, n_rounds=state.n_rounds + 1))


def add(state: Open | Ended, parts: Sequence[Added]) -> Open | Ended:
    """Return the state after rewards that were not asked for, or were taken back."""
    before = state.last if isinstance(state, Ended) else state
    blocks = before.blocks
    for group in _apart(parts):
        arms, counts, sums = (np.concatenate([part[column] for part in group]) for column in range(3))
        merits = np.divide(sums, counts, out=np.zeros(len(sums)), where=counts != 0)
        names = tuple(name for part in group for name in part.blocks)
        blocks = blocks.added(names, arms, counts, before.problem.shares(merits) * counts)
    return _decided(replace(before, blocks=blocks))


def _apart(parts: Sequence[Added]) -> Iterator[list[Added]]:
    """Yield groups of successive parts that have no block in common: their order does not matter."""
    group: list[Added] = []
    touched: set[str] = set()
    for part in parts:
        if not touched.isdisjoint(part.blocks):
            yield group
            group, touched = [], set()
        group.append(part)
        touched.update(part.blocks)
    yield group


def narrow(state: Open | Ended, epsilon: float) -> Open | Ended:
    """Return the state of a race that goes on with a smaller epsilon; an open batch stays as it is."""
    before = state.last if isinstance(state, Ended) else state
    after = replace(before, problem=before.problem.changed(epsilon=epsilon))
    return _decided(after) if isinstance(state, Ended) else after


def _decided(state: Open) -> Open | Ended:
    """Return the state with its next batch, or the end of the race."""
    problem, blocks = state.problem, state.blocks
    evidence = evidence_for(problem, state.scale)
    found = []
    for selected in selections(problem, blocks):
        is_settled = evidence.are_settled(blocks, selected, problem.epsilon / problem.width)
        if is_settled.all():
            return Ended(np.sort(selected), state)
        others = all_but(problem.n, selected)
        found.append(np.union1d(others[~is_settled.all(axis=1)], selected[~is_settled.all(axis=0)]))
    arms = min(found, key=len)
    size = max(first_pulls(problem), math.ceil(GROWTH * int(blocks.pulls.max())))
    countable(size * len(arms) + int(blocks.pulls.sum()), "The race within blocks")
    return replace(state, arms=arms, counts=np.full(len(arms), size))


def certified(state: Open | Ended) -> Certificate:
    """Return what is certified so far; the epsilon of the problem once the race has ended, or less."""
    totals = state.last if isinstance(state, Ended) else state
    selected = state.selected if isinstance(state, Ended) else None
    found = certificate_of_blocks(totals.problem, totals.blocks, selected=selected, scale=totals.scale)
    if selected is None or found.is_answer:
        return found
    return Certificate.at_end(totals.problem, selected, guarantee_by_blocks(totals.problem))


BLOCK_RACE = lanes.strategy(
    "block-race",
    "Compares arms within blocks, such as days, because means may change between blocks. Within a block, "
    "all arms that are still compared get the same number of pulls.",
    "docs/theory.md, section 42",
    init=init,
    ask=ask,
    tell=tell,
    guarantee=guarantee_by_blocks,
    worst_case_pulls=lambda _: None,
    n_rounds=lambda _: None,
    anytime=Anytime(certified, add, narrow, by_block=True),  # type: ignore[arg-type]
)
