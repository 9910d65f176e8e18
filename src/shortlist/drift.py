"""Whether means measured elsewhere change from block to block, such as days, by more than chance explains.

All it needs is the number of rewards of each arm and their mean in each block, for rewards within bounds. Two
other tests look at more than that. `drift` in `doctor/assumptions.py` looks for a trend in single rewards, in
the order in which a trial measured them. `_variation` in `report/run_warnings.py` looks at all arms together:
it compares how much their means vary from batch to batch, in rounds of a run as well, with the variances of
the problem.
"""

from collections.abc import Sequence

from shortlist.certificates.block_totals import BlockTotals
from shortlist.problem import Problem
from shortlist.totals import Totals

_RARE = 0.01  # how rarely means may differ by so much, for a note
_EXPECTED = 5.0  # successes and failures in a block, for the chi-square law to hold


def drift_note(problem: Problem, totals: Totals, blocks: Sequence[str], *, is_by_block: bool) -> str:
    """Return a sentence if means of an arm vary between blocks by more than chance explains; else nothing.

    A chi-square test of homogeneity for each arm. Rewards within bounds vary at most as those of 0 or 1 do.
    """
    from scipy.special import gammaincc  # noqa: PLC0415

    if not problem.is_bounded or not len(totals.arms):
        return ""
    sums = problem.shares(problem.merits(totals.means)) * totals.counts
    rows = BlockTotals.none(problem.n).added(tuple(blocks), totals.arms, totals.counts, sums)
    found = []
    for arm, (counts, hits) in enumerate(zip(rows.counts.T, rows.sums.T, strict=True)):
        share = hits.sum() / max(counts.sum(), 1)
        is_large = counts * min(share, 1 - share) >= _EXPECTED
        freedom = int(is_large.sum()) - 1
        if freedom < 1:
            continue
        size, own = counts[is_large], hits[is_large]
        share = own.sum() / size.sum()
        squares = float(((own - size * share) ** 2 / (size * share * (1 - share))).sum())
        found.append((float(gammaincc(freedom / 2, squares / 2)), arm))
    p_value, arm = min(found, default=(1.0, 0))
    if not found or p_value * len(found) >= _RARE:
        return ""
    said = (
        f"The mean of {problem.name(arm)} changes between blocks by more than chance explains (chi-square "
        f"test, p = {p_value:.1g})."
    )
    if is_by_block:
        return f"{said} Arms are compared within blocks, so this does no harm."
    return (
        f"{said} What is certified may then be wrong. To compare arms within days, begin another run with "
        f"the strategy block-race: see docs/ab-test.md."
    )
