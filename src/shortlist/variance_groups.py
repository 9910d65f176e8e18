"""The shape of a problem: how unequal its variances are, and the groups they fall into.

The entropy of the variances, the variance groups and the arm sets built from them are those of
[ZT22] Sections 3, 4 and 6. `docs/theory.md` proves that the search for the reduced set is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import FloatArray, IntArray, blocks, largest
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem


@dataclass(frozen=True, eq=False)
class Heterogeneity:
    """The variance groups of a problem and the arm sets of Theorem 4.1.

    Attributes
    ----------
    groups
        The non-empty groups G_j as index arrays, by increasing variance.
    more
        The arms of groups with more than 2m arms, G^m.
    less
        The arms of groups with at most 2m arms, G^l.
    reduced
        G^r: all of G^l and, from each larger group, the 2m arms that together maximise the entropy.
    largest
        L: the 2m arms of `reduced` with the largest variances (all of it if it has fewer).
    entropy_reduced
        The entropy of the variances of `reduced`.
    """

    groups: tuple[IntArray, ...]
    more: IntArray
    less: IntArray
    reduced: IntArray
    largest: IntArray
    entropy_reduced: float


def entropy(values: ArrayLike) -> float:
    """Return the entropy, in nats, of positive values normalised to sum to 1.

    It lies between 0 (one value, or one that dominates the others) and ln(n) (all equal).

    Examples
    --------
    >>> round(entropy([1.0, 1.0]), 6)
    0.693147
    """
    try:
        given = np.asarray(values)
    except ValueError:  # ragged
        given = np.empty(0)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iuf":
        raise InvalidProblem("entropy needs a flat, non-empty list of positive numbers, such as [1.0, 2.0].")
    positive = given.astype(np.float64)
    if not ((positive > 0) & np.isfinite(positive)).all():
        raise InvalidProblem("entropy needs positive, finite values; leave out arms with none.")
    scaled = positive / positive.max()
    shares = scaled / scaled.sum()  # [ZT22] Sec. 3, Ent
    shares = shares[shares > 0]
    return float(max(0.0, -(shares * np.log(shares)).sum()))  # [ZT22] Sec. 3, Ent


def variance_groups(variances: FloatArray) -> tuple[IntArray, ...]:
    """Return the non-empty groups of arms, one per doubling of the variance, by increasing variance.

    Group j holds the arms with 2^(j-1) <= variance / smallest variance < 2^j. Binary exponents and
    significands are compared, so that nothing is rounded, not even at exact powers of two.
    """
    least = np.frexp(variances.min())
    pieces: dict[int, list[IntArray | range]] = {}
    for block in blocks(variances.shape):
        values = variances[block]
        if (values == values[0]).all():  # often all arms are alike, and a range takes no memory
            (label,) = _labels(values[:1], least).tolist()
            _append_run(pieces.setdefault(label, []), block.start, block.start + len(values))
            continue
        labels = _labels(values, least)
        order = np.argsort(labels.astype(np.int16), kind="stable")
        cuts = np.flatnonzero(np.diff(labels[order])) + 1
        for members in np.split(order, cuts):
            pieces.setdefault(int(labels[members[0]]), []).append(block.start + members)
    return tuple(_joined(pieces[label]) for label in sorted(pieces))


def _labels(
    values: FloatArray, least: tuple[np.float64, np.int32]
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return how often each value can be halved before it falls below the smallest one."""
    significands, exponents = np.frexp(values)
    return exponents - least[1] - (significands < least[0])  # [ZT22] Sec. 4, G_j is number j - 1 here


def _append_run(pieces: list[IntArray | range], start: int, stop: int) -> None:
    """Append the arms from start to stop, extending the last run if they are adjacent."""
    last = pieces[-1] if pieces else None
    if isinstance(last, range) and last.stop == start:
        pieces[-1] = range(last.start, stop)
    else:
        pieces.append(range(start, stop))


def _joined(pieces: list[IntArray | range]) -> IntArray:
    whole = np.empty(sum(map(len, pieces)), dtype=np.int64)
    at = 0
    for piece in pieces:
        for block in blocks((len(piece),)):
            part = piece[block]
            whole[at : at + len(part)] = np.arange(part.start, part.stop) if isinstance(part, range) else part
            at += len(part)
    return whole


def heterogeneity(problem: Problem) -> Heterogeneity:
    """Return the variance groups of a problem and the arm sets G^m, G^l, G^r and L.

    Source
    ------
    [ZT22] Section 4; L from Section 6.2.
    """
    variances, limit = problem.variances, 2 * problem.m
    groups = variance_groups(variances)
    more = _union([group for group in groups if len(group) > limit])  # [ZT22] Sec. 4, G^m
    less = _union([group for group in groups if len(group) <= limit])  # [ZT22] Sec. 4, G^l
    reduced = _reduced(variances, groups, limit)  # [ZT22] Sec. 4, G^r
    return Heterogeneity(
        groups=groups,
        more=more,
        less=less,
        reduced=reduced,
        largest=reduced[largest(variances[reduced], limit)],  # [ZT22] Sec. 6.2, L
        entropy_reduced=entropy(variances[reduced]),
    )


def _union(groups: list[IntArray]) -> IntArray:
    return np.sort(np.concatenate(groups)) if groups else np.empty(0, dtype=np.int64)


def _reduced(variances: FloatArray, groups: tuple[IntArray, ...], limit: int) -> IntArray:
    """Return all small groups and, from each large one, the `limit` arms that maximise the entropy.

    With S the sum of the chosen variances a and Q the sum of a ln(a), the entropy is ln(S) - Q / S, a
    quasi-convex function of (S, Q). So an optimal choice maximises a linear function of the two, and takes
    from each group the arms with the largest a (1 + kappa - ln(a)) for a number kappa common to all groups.
    That function of a first increases and then decreases, so the chosen arms are consecutive in a group
    sorted by variance. As kappa grows each such window moves up: arm a is replaced by arm b at kappa = (b ln
    b - a ln a) / (b - a) - 1. So trying the windows between all these moves, in order, finds an optimal
    choice. `docs/theory.md` has the proof.
    """
    chosen = [group for group in groups if len(group) <= limit]
    large = [group[np.argsort(variances[group], kind="stable")] for group in groups if len(group) > limit]
    chosen += [group[:limit] for group in large if _is_level(variances[group])]  # any choice is optimal there
    varied = [group for group in large if not _is_level(variances[group])]
    if varied:
        fixed = variances[_union(chosen)]
        offsets = _best_windows(fixed, [variances[group] for group in varied], limit)
        chosen += [group[at : at + limit] for group, at in zip(varied, offsets, strict=True)]
    return _union(chosen)


def _is_level(rising: FloatArray) -> bool:
    return bool(rising[0] == rising[-1])


def _best_windows(fixed: FloatArray, ordered: list[FloatArray], limit: int) -> list[int]:
    """Return, per sorted group, the start of the window of `limit` values that maximises the entropy."""
    owner = np.repeat(np.arange(len(ordered)), [len(values) - limit for values in ordered])
    kappas = np.concatenate([_thresholds(values[:-limit], values[limit:]) for values in ordered])
    moves = np.lexsort((owner, kappas))  # stable: within a group the moves stay in order
    scale = max(values[-1] for values in [*ordered, fixed.max(initial=0.0, keepdims=True)])
    fixed, ordered = fixed / scale, [values / scale for values in ordered]
    leaving = np.concatenate([values[:-limit] for values in ordered])[moves]
    entering = np.concatenate([values[limit:] for values in ordered])[moves]
    start = np.concatenate([fixed, *(values[:limit] for values in ordered)])
    sums = _running(start.sum(), entering - leaving)
    weighted = _running(_x_ln_x(start).sum(), _x_ln_x(entering) - _x_ln_x(leaving))
    n_moves = int(np.argmax(np.log(sums) - weighted / sums))
    return [int(moved) for moved in np.bincount(owner[moves[:n_moves]], minlength=len(ordered))]


def _thresholds(leaving: FloatArray, entering: FloatArray) -> FloatArray:
    """Return the kappa above which each move of one group pays: (b ln b - a ln a) / (b - a) - 1.

    Here a leaves and b enters. The formula avoids cancellation when the two are almost equal (the limit is
    ln a), and the result is kept in order despite rounding.
    """
    gains = (entering - leaving) / leaving
    is_move = gains > 0
    safe = np.where(is_move, gains, 1.0)
    kappas = np.log(leaving) + np.where(is_move, (1 + safe) * np.log1p(safe) / safe - 1, 0.0)
    return np.maximum.accumulate(kappas)


def _running(start: float, steps: FloatArray) -> FloatArray:
    return start + np.concatenate([[0.0], np.cumsum(steps)])


def _x_ln_x(values: FloatArray) -> FloatArray:
    return values * np.log(np.where(values > 0, values, 1.0))  # a share that underflows counts as zero
