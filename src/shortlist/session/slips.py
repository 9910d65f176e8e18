"""Data-entry errors: answers that are far from all earlier ones of the same arm ask for a second look."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.session.feeding import FedRows, same_as_other_label
from shortlist.session.state import RunState

SLIP = "Is this a data-entry error?"
_FAR = 6.0  # standard errors; a right answer is that far off once in five hundred million


def unusual_rows(history: RunState, rows: FedRows) -> str:
    """Return a sentence if fed rows are probably a mistake; else nothing.

    Rows that would be replaced are left out of the comparison.
    """
    totals = rows.totals
    new = np.flatnonzero([_is_new(history, rows, place) for place in range(len(rows.keys))])
    pulls, sums = np.zeros(history.problem.n, dtype=np.int64), np.zeros(history.problem.n)
    for key in rows.keys:
        if key in history.fed and key[0]:
            row = history.fed[key]
            pulls[key[1]] += row.count
            sums[key[1]] += row.count * row.mean
    some = (totals.arms[new], totals.counts[new], totals.means[new])
    return same_as_other_label(history, rows) or unusual(history, *some, without=(pulls, sums))


def replaced_rows(history: RunState, rows: FedRows) -> str:
    """Return a sentence if rows replace earlier ones with the same label and other numbers; else nothing."""
    places = [
        place
        for place, key in enumerate(rows.keys)
        if key[0] and key in history.fed and (_is_new(history, rows, place) or not rows.totals.counts[place])
    ]
    if not places:
        return ""
    label, arm = rows.keys[places[0]]
    return (
        f"{len(places)} of {len(rows.keys)} rows would replace earlier ones, with other numbers, under the "
        f"label {label}; the first is that of {history.problem.name(arm)}."
    )


def _is_new(history: RunState, rows: FedRows, place: int) -> bool:
    known, totals = history.fed.get(rows.keys[place]), rows.totals
    is_same = known is not None and (known.count, known.mean) == (totals.counts[place], totals.means[place])
    return bool(totals.counts[place]) and not is_same


def unusual(
    history: RunState,
    arms: IntArray,
    counts: IntArray,
    means: FloatArray,
    *,
    without: tuple[IntArray, FloatArray] | None = None,
) -> str:
    """Return a sentence about the first result that is far from the earlier ones of its arm; else nothing.

    If variances are unknown, or means may change between blocks, nothing is called far. `without` are numbers
    and sums of rewards of each arm that do not count as earlier ones.
    """
    problem = history.problem
    if not problem.knows_variances or history.is_by_block or not len(arms):
        return ""
    before = history.result.arms
    pulls, sums = before.pulls, np.nan_to_num(before.means) * before.pulls
    if without is not None:
        pulls, sums = pulls - without[0], sums - without[1]
    earlier, known = pulls[arms], sums[arms] / np.maximum(pulls[arms], 1)
    pooled, total = np.zeros(problem.n), np.zeros(problem.n, dtype=np.int64)
    total[arms] = earlier + counts
    pooled[arms] = np.where(
        earlier > 0, (known * earlier + means * counts) / np.maximum(total[arms], 1), means
    )
    spreads = problem.variances_at(pooled, total)
    errors = np.sqrt(spreads[arms] * (1 / np.maximum(counts, 1) + 1 / np.maximum(earlier, 1)))
    is_far = (earlier > 0) & (np.abs(means - known) > _FAR * errors)
    if problem.is_binary:  # a single rare success is no surprise, however many standard errors it is
        with np.errstate(invalid="ignore"):  # without earlier rewards
            far = counts * _divergence(means, pooled[arms]) + earlier * _divergence(known, pooled[arms])
        is_far &= far > _FAR**2 / 2
    if not is_far.any():
        return ""
    place = int(np.argmax(is_far))
    name = problem.name(int(arms[place]))
    times = abs(means[place] - known[place]) / errors[place]
    return (
        f"{name}: the mean {means[place]:g} differs from the earlier mean {known[place]:g} (of "
        f"{earlier[place]:,} rewards) by {times:.0f} standard errors; one of them may be wrong."
    )


def _divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the relative entropy of coins."""
    from scipy.special import rel_entr  # noqa: PLC0415 - scipy is slow to import

    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q), dtype=np.float64)
