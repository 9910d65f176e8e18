"""Evidence from blocks, such as days: arms are compared within blocks, since means may change between them.

Let outsider b be ahead of incumbent a by more than epsilon in every block. In one block, evidence that a lies
above a rate c, times evidence that b lies below c + epsilon (see `bounded`), has expectation at most 1 if a
has the mean c or less in this block, and b has c + epsilon or more. Which c that is changes from block to
block and is not known; so the least product over all c counts. Multiplied over blocks this is a
supermartingale that starts at 1, and so is a mixture over pairs of tilts (docs/theory.md, section 42).

The tilts of a block may depend on how many rewards of either arm it has, which was decided before. They are
chosen such that the least product is that at a given *reference* rate: the loss is small if the true rates
are near it, and five references serve all rates ([TLG24] has the evidence for one).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, all_but, largest
from shortlist.certificates.certificate import Certificate, all_rounded_up
from shortlist.certificates.guarantee import Guarantee, Ledger, Scope, Share
from shortlist.problem import Problem

REFERENCES = (0.01, 0.2, 0.5, 0.8, 0.99)
LEAST, MOST = 2.0, 8.0  # the smallest tilt relative to epsilon, and the largest
RATIO = 1.7  # of successive tilts
UNNAMED = "\0"
"""Begins the names of blocks that are batches of a strategy; no other name contains it."""

_FEW = 5  # names in a sentence
_STEEP = 0.95  # how near tilts may come to infinite ones
_LARGEST = 0.5  # the largest epsilon that tilts are chosen for, as a share of the bounds
_HALVINGS = 30
_NEARLY_ALL = 1 - 1e-6  # the largest epsilon that is worth telling
_AT_ONCE = 1 << 20  # numbers in memory


@dataclass(frozen=True, eq=False)
class BlockTotals:
    """How many rewards each arm has in each block, and their sums; rewards are shares of their bounds.

    Attributes
    ----------
    names
        The names of the blocks.
    counts, sums
        One row per block, one column per arm.
    """

    names: tuple[str, ...]
    counts: IntArray
    sums: FloatArray

    @classmethod
    def none(cls, n: int) -> "BlockTotals":
        """Return no blocks of n arms."""
        return cls((), np.zeros((0, n), dtype=np.int64), np.zeros((0, n)))

    def added(
        self, names: tuple[str, ...], arms: IntArray, counts: IntArray, sums: FloatArray
    ) -> "BlockTotals":
        """Return the blocks with more rewards, or fewer where counts are negative."""
        known = dict.fromkeys((*self.names, *names))
        rows = {name: row for row, name in enumerate(known)}
        n_new = len(rows) - len(self.names)
        pulls = np.pad(self.counts, ((0, n_new), (0, 0)))
        totals = np.pad(self.sums, ((0, n_new), (0, 0)))
        places = np.array([rows[name] for name in names], dtype=np.int64)
        np.add.at(pulls, (places, arms), counts)
        np.add.at(totals, (places, arms), sums)
        is_kept = (pulls > 0).any(axis=1)
        totals = np.where(pulls > 0, totals, 0.0)
        return BlockTotals(tuple(np.array([*known])[is_kept].tolist()), pulls[is_kept], totals[is_kept])

    @property
    def pulls(self) -> IntArray:
        """The number of rewards of each arm."""
        found: IntArray = self.counts.sum(axis=0)
        return found

    @property
    def levels(self) -> FloatArray:
        """How good each arm is, compared with the others in the same blocks: only for choosing arms."""
        is_there = self.counts > 0
        shares = np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=is_there)
        usual = shares.sum(axis=1) / np.maximum(is_there.sum(axis=1), 1)
        ahead = (self.counts * (shares - usual[:, None])).sum(axis=0)
        found: FloatArray = ahead / np.maximum(self.pulls, 1)
        return found

    def lacking(self, problem: Problem, is_wanted: BoolArray) -> tuple[str, ...]:
        """Return which named blocks lack arms that are wanted, as a sentence for each."""
        rows = np.flatnonzero(((self.counts == 0) & is_wanted).any(axis=1)).tolist()
        lacking = [row for row in rows if not self.names[row].startswith(UNNAMED)]
        found = []
        for row in lacking[:_FEW]:
            arms = np.flatnonzero((self.counts[row] == 0) & is_wanted)
            some = ", ".join(problem.name(int(arm)) for arm in arms[:_FEW]) + ", ..." * (len(arms) > _FEW)
            found.append(
                f"Block {self.names[row]} lacks {some}, and is not used to compare them with others."
            )
        more = f"and {len(lacking) - _FEW:,} blocks more" if len(lacking) > _FEW else ""
        return (*found, *filter(None, (more,)))


@dataclass(frozen=True, eq=False)
class BlockEvidence:
    """Evidence that no outsider is ahead of an incumbent by more than epsilon in every block.

    Attributes
    ----------
    scale
        The epsilon that tilts are chosen for, as a share of the bounds.
    needed
        The logarithm of the evidence that settles a pair.
    references, tilts
        The pairs of a reference and a tilt; all have the same weight.
    """

    scale: float
    needed: float
    references: FloatArray
    tilts: FloatArray

    @classmethod
    def of(cls, n: int, m: int, delta: float, scale: float) -> "BlockEvidence":
        """Return the evidence for the m best of n arms."""
        return _block_evidence(n, m, delta, min(scale, _LARGEST))

    def logs(
        self, blocks: BlockTotals, outsiders: IntArray, incumbents: IntArray, epsilons: FloatArray
    ) -> FloatArray:
        """Return the logarithms of the evidence of pairs, each of an outsider and an incumbent."""
        found = np.empty(len(outsiders))
        for part, terms in self._terms(blocks, outsiders, incumbents):
            found[part] = terms.logs(epsilons[part])
        return found

    def _terms(
        self, blocks: BlockTotals, outsiders: IntArray, incumbents: IntArray
    ) -> Iterator[tuple[slice, "_Terms"]]:
        """Yield some pairs at a time, and what their evidence has in common for all epsilons."""
        at_once = max(1, _AT_ONCE // (len(self.tilts) * max(1, len(blocks.names))))
        counts, sums = blocks.counts.T, blocks.sums.T
        for first in range(0, len(outsiders), at_once):
            part = slice(first, first + at_once)
            bs, arms = outsiders[part], incumbents[part]
            is_both = (counts[bs] > 0) & (counts[arms] > 0)  # others do not count for the pair
            used = np.flatnonzero(is_both.any(axis=0))
            is_both = is_both[:, used]
            n_b, n_a = (
                np.where(is_both, counts[np.ix_(one, used)].astype(np.float64), 1.0)[..., None]
                for one in (bs, arms)
            )
            s_b, s_a = (sums[np.ix_(one, used)][..., None] for one in (bs, arms))
            up, down = self._steps(n_a, n_b)
            yield part, _Terms(is_both, n_a, n_b, up, down, s_a * np.log1p(up), s_b * np.log1p(-down))

    def _steps(self, n_a: FloatArray, n_b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exp(h) - 1 for the tilts h of incumbents, and 1 - exp(-h) for those of outsiders.

        They depend on numbers of rewards only. At the reference, and for the epsilon of the scale, the
        product is least.
        """
        rates = self.references * (1 - self.scale)
        slopes = np.minimum(
            self.tilts * n_a * n_b / (n_a + n_b),
            _STEEP * np.minimum(n_a / rates, n_b / (1 - rates - self.scale)),
        )
        return slopes / (n_a - rates * slopes), slopes / (n_b + (rates + self.scale) * slopes)

    def are_settled(self, blocks: BlockTotals, selected: IntArray, epsilon: float) -> BoolArray:
        """Return which pairs are settled to within epsilon: outsiders in rows, selected arms in columns."""
        outsiders, incumbents = _pairs(blocks, selected)
        logs = self.logs(blocks, outsiders, incumbents, np.full(len(outsiders), epsilon))
        found: BoolArray = (logs >= self.needed).reshape(-1, len(selected))
        return found

    def smallest_epsilons(self, blocks: BlockTotals, selected: IntArray) -> FloatArray:
        """Return to within which epsilon each arm is settled with all outsiders; infinite if to none."""
        outsiders, incumbents = _pairs(blocks, selected)
        smallest = np.empty(len(outsiders))
        for part, terms in self._terms(blocks, outsiders, incumbents):
            smallest[part] = self._smallest(terms)
        found: FloatArray = smallest.reshape(-1, len(selected)).max(axis=0)
        return found

    def _smallest(self, terms: "_Terms") -> FloatArray:
        """Return to within which epsilon each pair is settled; infinite if to none."""
        low, high = np.zeros(len(terms.is_both)), np.full(len(terms.is_both), _NEARLY_ALL)
        is_none = terms.logs(high) < self.needed
        high[terms.logs(low) >= self.needed] = 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_middle = terms.logs(middle) >= self.needed
            low, high = np.where(is_middle, low, middle), np.where(is_middle, middle, high)
        return np.where(is_none, np.inf, high)


@dataclass(frozen=True, eq=False)
class _Terms:
    """The evidence of some pairs, as far as it does not depend on epsilon: by pair, block and tilt.

    Attributes
    ----------
    is_both
        Which pairs are compared in which blocks.
    n_a, n_b
        The numbers of rewards of incumbents and of outsiders.
    up, down
        The steps, see `BlockEvidence._steps`.
    gain_a, gain_b
        The terms that depend on sums of rewards.
    """

    is_both: BoolArray
    n_a: FloatArray
    n_b: FloatArray
    up: FloatArray
    down: FloatArray
    gain_a: FloatArray
    gain_b: FloatArray

    def logs(self, epsilons: FloatArray) -> FloatArray:
        """Return the logarithms of the evidence for some epsilons, one for each pair."""
        n_a, n_b, up, down = self.n_a, self.n_b, self.up, self.down
        epsilon = np.minimum(epsilons, 1.0)[:, None, None]
        worst = (n_a * up * (1 - epsilon * down) - n_b * down) / (up * down * (n_a + n_b))
        worst = np.clip(worst, 0.0, 1 - epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self.gain_a - n_a * np.log1p(worst * up)
            logs += self.gain_b - n_b * np.log1p(-(worst + epsilon) * down)
        total = np.where(self.is_both[..., None], logs, 0.0).sum(axis=1)
        top = total.max(axis=1)
        found = top + np.log(np.exp(total - top[:, None]).mean(axis=1))
        return np.where(epsilons >= 1, np.inf, found)  # no mean is that far ahead


@lru_cache(maxsize=32)
def _block_evidence(n: int, m: int, delta: float, scale: float, /) -> BlockEvidence:
    n_tilts = 1 + math.ceil(math.log(MOST / (LEAST * scale)) / math.log(RATIO))
    tilts = LEAST * scale * RATIO ** np.arange(n_tilts)
    needed = math.log(m * (n - m) / delta)
    return BlockEvidence(scale, needed, np.repeat(REFERENCES, n_tilts), np.tile(tilts, len(REFERENCES)))


def _pairs(blocks: BlockTotals, selected: IntArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of an outsider and a selected arm, the outsiders one after the other."""
    others = all_but(blocks.counts.shape[1], selected)
    return np.repeat(others, len(selected)), np.tile(selected, len(others))


def guarantee_by_blocks(problem: Problem) -> Guarantee:
    """Return the guarantee of whoever stops by the evidence of blocks.

    The lead of a pair looks much smaller than it is if the e-value against it reaches m (n - m)/delta.
    """
    event = (
        "for some pair of a best arm and another arm, the lead of the best arm looks much smaller than it is"
    )
    ledger = Ledger((Share(event, problem.delta),))
    source, assumptions = "docs/theory.md, section 42", ("independent", "within-bounds")
    return Guarantee.of(problem, source, ledger, Scope.EVERY_BLOCK, assumptions=assumptions)


def selections(problem: Problem, blocks: BlockTotals) -> list[IntArray]:
    """Return selections that may be best: by levels, lowered for arms with few pulls, and as they are."""
    pulls = blocks.pulls
    levels = np.where(pulls > 0, blocks.levels, -np.inf)
    spreads = math.sqrt(2 * math.log(problem.n)) / 2 / np.sqrt(np.maximum(pulls, 1))
    cautious, plain = (largest(levels - factor * spreads, problem.m) for factor in (1.0, 0.0))
    return [cautious] if np.array_equal(cautious, plain) else [cautious, plain]


def certificate_of_blocks(
    problem: Problem, blocks: BlockTotals, *, selected: IntArray | None = None, scale: float | None = None
) -> Certificate:
    """Return what blocks certify.

    Parameters
    ----------
    problem
        The question; only bounds of its rewards are known.
    blocks
        The rewards.
    selected
        The arms to be selected, if known; by default those for which most is certified.
    scale
        The epsilon for which evidence is tightest, if not the problem's. It must not depend on the rewards.
    """
    promise = guarantee_by_blocks(problem)
    if problem.m == problem.n:
        return Certificate.of_all(problem, promise)
    evidence = evidence_for(problem, scale)
    possible = selections(problem, blocks) if selected is None else [selected]
    chosen, epsilons = min(
        ((arms, evidence.smallest_epsilons(blocks, arms)) for arms in possible),
        key=lambda found: float(found[1].max()),
    )
    if np.isinf(epsilons).any():
        notes = blocks.lacking(problem, np.ones(problem.n, dtype=np.bool_))
        return Certificate.of_nothing(problem, notes=notes)
    own = all_rounded_up(problem.width * epsilons)
    is_settled = evidence.are_settled(blocks, chosen, problem.epsilon / problem.width)
    is_out = np.zeros(problem.n, dtype=np.bool_)
    is_out[all_but(problem.n, chosen)[is_settled.all(axis=1)]] = True
    return Certificate.of_epsilons(
        problem,
        chosen,
        own,
        is_out=is_out,
        merits=blocks.levels,
        promise=promise,
        notes=blocks.lacking(problem, ~is_out),
    )


def evidence_for(problem: Problem, scale: float | None = None) -> BlockEvidence:
    """Return the evidence for a problem."""
    return BlockEvidence.of(problem.n, problem.m, problem.delta, (scale or problem.epsilon) / problem.width)
