"""Variance-grouped median elimination, the paper's algorithm: screen each group, then decide.

Follows [ZT22] Algorithm 2 and Theorem 5.3. The groups are screened side by side, one level of every open
group per batch. This changes the order of pulls but no decision and no count.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certificates import Guarantee, Ledger, Share
from shortlist.problem import Problem, countable
from shortlist.strategies import elimination, medelim, one_batch, wnelim
from shortlist.strategies.elimination import Schedule
from shortlist.strategies.protocol import Batch, Done, Lanes, Moments, Strategy, Verdict, decided, undecided
from shortlist.variance_groups import variance_groups


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups still being screened, each with its survivors."""

    problem: Problem
    groups: tuple[elimination.State, ...]


State: TypeAlias = Groups | one_batch.State


def init(problem: Problem, lanes: Lanes = ()) -> State:
    """Return the first state: the arms in their variance groups."""
    groups = tuple(
        _screening(problem, group, lanes)  # [ZT22] Alg. 2, line 3
        for group in variance_groups(problem.variances)  # [ZT22] Alg. 2, line 1
    )
    return _next(problem, groups)


def _screening(problem: Problem, group: IntArray, lanes: Lanes) -> elimination.State:
    variances = elimination.shared(problem.variances, group)
    arms = np.broadcast_to(group, (*lanes, len(group)))
    return elimination.State(variances, arms, _schedule(problem, len(group)))


def ask(state: State) -> Batch:
    """Return the next level's pulls of every open group, or the final batch."""
    if not isinstance(state, Groups):
        return one_batch.ask(state)
    batches = [elimination.ask(group) for group in state.groups if group.levels]
    return Batch(_joined([b.arms for b in batches]), _joined([b.counts for b in batches]))


def tell(state: State, told: Moments) -> State:
    """Return the state after a level of every open group, or after the final batch."""
    if not isinstance(state, Groups):
        return one_batch.tell(state, told)
    after: list[elimination.State] = []
    first = 0
    for group in state.groups:
        if group.levels:
            n_arms = group.levels[0].n_arms
            after.append(elimination.tell(group, Moments(told.means[..., first : first + n_arms])))
            first += n_arms
        else:
            after.append(group)
    return _next(state.problem, tuple(after))


def verdict(state: State) -> Verdict:
    """Return the selection, once there is one."""
    if isinstance(state, Done):
        return decided(state.selected)
    arms = state.groups[0].arms if isinstance(state, Groups) else state.arms
    return undecided(arms.shape[:-1])


def _schedule(problem: Problem, n_arms: int) -> Schedule:
    return medelim.schedule(n_arms, problem.m, problem.epsilon / 2, problem.delta / 2)


def _next(problem: Problem, groups: tuple[elimination.State, ...]) -> State:
    if any(group.levels for group in groups):
        return Groups(problem, groups)
    kept = np.sort(_joined([group.arms for group in groups]), axis=-1)  # [ZT22] Alg. 2, line 4
    if kept.shape[-1] <= problem.m:
        return Done(kept)
    counts = wnelim.pulls(problem.variances[kept], problem.epsilon / 2, problem.delta / 2)
    return one_batch.Open(problem.m, kept, counts)  # [ZT22] Alg. 2, line 5


def _joined(parts: list[IntArray]) -> IntArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def worst_case_pulls(problem: Problem) -> int:
    """Return the most pulls, taken if the noisiest arms of every group survive.

    The final batch is also largest for the noisiest survivors, because every count of weighted naive
    elimination increases with each of the variances.
    """
    total, kept = 0, []
    for group in variance_groups(problem.variances):
        variances = np.sort(problem.variances[group])
        total += elimination.most_pulls(_schedule(problem, len(group)), variances)
        kept.append(variances[-2 * problem.m :])
    final = np.concatenate(kept)
    if len(final) > problem.m:
        total += int(wnelim.pulls(final, problem.epsilon / 2, problem.delta / 2).sum())
    return countable(total, "Variance-grouped median elimination")


def n_rounds(problem: Problem) -> int:
    """Return the number of levels of the group with the most levels, plus one for the final batch."""
    groups = variance_groups(problem.variances)
    n_kept = sum(min(len(group), 2 * problem.m) for group in groups)
    return max(len(_schedule(problem, len(group))) for group in groups) + (n_kept > problem.m)


def _guarantee(problem: Problem) -> Guarantee:
    screening = Share("screening loses more than epsilon/2 at the m-th best", problem.delta / 2)
    final = Share("the final batch errs by epsilon/4 or more, towards the cut", problem.delta / 2)
    return Guarantee.of(problem, "[ZT22] Theorem 5.3; docs/theory.md, section 6", Ledger((screening, final)))


VMEDELIM: Strategy[State] = Strategy(
    name="vmedelim",
    summary="Variance-grouped median elimination: order-optimal, with large constants.",
    source="[ZT22] Algorithm 2",
    init=init,
    ask=ask,
    tell=tell,
    verdict=verdict,
    guarantee=_guarantee,
    worst_case_pulls=worst_case_pulls,
    n_rounds=n_rounds,
)
