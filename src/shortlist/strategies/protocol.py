"""The interface of a strategy: a frozen state, pure functions on it, and its guarantee.

A strategy never measures anything. `ask` returns which arms to pull and how often; `tell` takes the means of
each arm's new rewards, in the same order, and their variances if known, and returns the next state;
`verdict` returns the decision. Arms are the last axis of every array. Leading axes are *lanes*: independent
runs of the same problem, advanced together, each with the same outcome as if it were run alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates import Certificate, Guarantee
from shortlist.problem import Problem

Asked: TypeAlias = Any
"""The question for a strategy: a `Problem`."""

Lanes: TypeAlias = tuple[int, ...]
S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Batch:
    """The fresh pulls a strategy needs before it can decide again; empty when it has decided.

    Attributes
    ----------
    arms
        The arms to pull, each at most once per lane; shape ``(*lanes, k)``.
    counts
        How often to pull each; same shape. If a lane asks for fewer arms than others, it is padded with
        zeros, and the corresponding entries of `arms` have no meaning.
    """

    arms: IntArray
    counts: IntArray


@dataclass(frozen=True, eq=False)
class Moments:
    """The sample means and variances of the rewards of a batch, per arm.

    Attributes
    ----------
    means
        The mean of each arm's new rewards; shape ``(*lanes, k)`` like the batch.
    variances
        Their sample variances (with the number of rewards minus one in the denominator), or None if not
        measured. After a pilot for unknown variances they are always given.
    scores
        Only with shared items: the single scores, arm after arm, each arm's in the order of items.
    """

    means: FloatArray
    variances: FloatArray | None = None
    scores: FloatArray | None = None

    def map(self, change: Callable[[FloatArray], FloatArray]) -> "Moments":
        """Return the moments with the same function applied to the means, and to the variances."""
        variances = None if self.variances is None else change(self.variances)
        return Moments(change(self.means), variances, self.scores)


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a strategy has decided.

    Attributes
    ----------
    selected
        The selected arms, in increasing order; shape ``(*lanes, k)``. Meaningful where `is_final`.
    is_final
        Per lane, whether the strategy has ended by its own rule.
    """

    selected: IntArray
    is_final: BoolArray


@dataclass(frozen=True, eq=False)
class Done:
    """The last state of a strategy that ends in all lanes at once."""

    selected: IntArray


class Added(NamedTuple):
    """Rewards that were not asked for; all numbers are negative where earlier rewards are taken back.

    Attributes
    ----------
    arms
        The arms; an arm may occur repeatedly.
    counts, sums
        The numbers of their rewards, and their sums.
    squares
        For graded rewards within bounds, the sums of their squared shares.
    blocks
        The names of their blocks.
    """

    arms: IntArray
    counts: IntArray
    sums: FloatArray
    squares: FloatArray
    blocks: tuple[str, ...]


@dataclass(frozen=True)
class Anytime(Generic[S]):
    """What a strategy can do at any moment, because its certificate holds at all moments.

    Attributes
    ----------
    certificate
        ``certificate(state)`` returns what is certified so far.
    add
        ``add(state, parts)`` returns the state after rewards that were not asked for. They are added part by
        part, and the strategy decides once, in the end. `refuse_added` if it can use none.
    narrow
        ``narrow(state, epsilon)`` returns the state of a run that goes on with a smaller epsilon.
    by_block
        Whether arms are compared within blocks, so that means may change between them.
    within
        ``within(state, cost)`` returns the state that asks for a smaller batch, if the present one costs more
        than that and a smaller one does not; otherwise the same state. None if there are no smaller batches.
    may_be_void
        Whether rewards can contradict what the proof assumes, so that the certificate is void.
    """

    certificate: Callable[[S], Certificate]
    add: Callable[[S, Sequence[Added]], S]
    narrow: Callable[[S, float], S]
    by_block: bool = False
    within: Callable[[S, float], S] | None = None
    may_be_void: bool = False


def refuse_added(*_: object) -> Any:
    """Refuse rewards that were not asked for: the `add` of strategies that cannot use any."""
    raise ValueError("results that were not asked for cannot be added")


@dataclass(frozen=True)
class Strategy(Generic[S]):
    """One algorithm: how it decides and what it promises.

    Attributes
    ----------
    name, summary, source
        The name, a summary in one sentence, and where the algorithm is defined.
    init, ask, tell, verdict
        The algorithm: ``init(problem, lanes)``, ``ask(state)``, ``tell(state, moments)``, ``verdict(state)``.
    guarantee
        The guarantee for a problem, or None if nothing is proved.
    worst_case_pulls
        The largest number of pulls for a problem, or None if there is no finite bound.
    n_rounds
        The largest number of successive batches, or None if there is no finite bound.
    n_selected
        The number of arms selected.
    take_lanes
        ``take_lanes(state, is_kept)`` if lanes end one by one; None if they end together.
    unfit
        Why the strategy cannot be used for a problem; empty if it can.
    cap_from
        If the largest number of pulls is known only after a pilot, ``cap_from(state)`` returns it.
    usual_share
        The rough fraction of its worst case that it needs on hard instances; below 1 if it adapts. It affects
        only the choice among certified strategies, never a guarantee.
    is_baseline
        Whether it is there only to be compared with others.
    worst_case_cost
        The largest cost for a problem with costs, if that is less than each of the most pulls at the highest
        cost.
    anytime
        What it can do at any moment, if it certifies something before its end; otherwise None.
    needs_variances
        Whether sample variances must be told with every batch; otherwise with a pilot only.
    likely_ends
        ``likely_ends(state)`` returns for each arm how many pulls it will probably have in the end; None if
        nothing is measured before it is asked for.
    estimates
        ``estimates(state)`` returns for each arm an estimate of its mean after the first batch, if the means
        of the rewards themselves are not comparable, because arms were measured in different blocks;
        otherwise None.
    """

    name: str
    summary: str
    source: str
    init: Callable[[Asked, Lanes], S]
    ask: Callable[[S], Batch]
    tell: Callable[[S, Moments], S]
    verdict: Callable[[S], Verdict]
    guarantee: Callable[[Asked], Guarantee | None]
    worst_case_pulls: Callable[[Asked], int | None]
    n_rounds: Callable[[Asked], int | None]
    n_selected: Callable[[Asked], int] = lambda problem: problem.m
    take_lanes: Callable[[S, BoolArray], S] | None = None
    unfit: Callable[[Asked], str] = lambda _: ""
    usual_share: float = 1.0
    is_baseline: bool = False
    cap_from: Callable[[S], int | None] | None = None
    worst_case_cost: Callable[[Asked], float | None] | None = None
    anytime: Anytime[S] | None = None
    needs_variances: bool = False
    likely_ends: Callable[[S], FloatArray] | None = None
    estimates: Callable[[S], FloatArray] | None = None


def all_arms(problem: Problem, lanes: Lanes) -> IntArray:
    """Return every arm of the problem, in every lane."""
    return np.broadcast_to(problem.arms, (*lanes, problem.n))


def nothing_to_ask(lanes: Lanes) -> Batch:
    """Return the batch of a strategy that has ended."""
    nothing = np.empty((*lanes, 0), dtype=np.int64)
    return Batch(nothing, nothing)


def undecided(lanes: Lanes) -> Verdict:
    """Return the verdict of a strategy that has not ended in any lane."""
    return Verdict(np.empty((*lanes, 0), dtype=np.int64), np.zeros(lanes, dtype=np.bool_))


def decided(selected: IntArray) -> Verdict:
    """Return the verdict of a strategy that has ended in every lane."""
    return Verdict(selected, np.ones(selected.shape[:-1], dtype=np.bool_))


def only_one(problem: Problem) -> str:
    """Return why a problem with m > 1 is refused, or an empty string."""
    if problem.m in {1, problem.n}:
        return ""
    return f"it selects one arm only, and m is {problem.m}"
