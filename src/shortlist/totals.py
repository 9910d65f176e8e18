"""Results that were measured elsewhere: how many rewards of which arm, and their mean; what they certify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Certificate
from shortlist.certificates.assumptions import FED, FED_IN_BLOCKS
from shortlist.certificates.block_totals import BlockTotals, certificate_of_blocks
from shortlist.certificates.certificate import certificate_of
from shortlist.checks import is_whole, listed, real_numbers, shortened, whole_number
from shortlist.errors import InvalidProblem
from shortlist.measure import Summaries, Summary, check_answer, check_summaries
from shortlist.problem import MOST_EPSILONS, MOST_PULLS, Problem, checked
from shortlist.strategies.paired_race import certificate_of_table
from shortlist.strategies.shared_items import certificate_of_prefixes


@dataclass(frozen=True, eq=False)
class Totals:
    """Results of some arms, each of which may occur repeatedly; they match the problem.

    Attributes
    ----------
    arms, counts
        The arms, and the number of rewards of each.
    means, variances
        The mean and the sample variance of these rewards; NaN for an unknown variance.
    """

    arms: IntArray
    counts: IntArray
    means: FloatArray
    variances: FloatArray

    @classmethod
    def of(
        cls,
        problem: Problem,
        arms: Any,
        counts: Any,
        means: Any = None,
        sample_variances: Any = None,
        successes: Any = None,
        *,
        keep_empty: bool = False,
    ) -> Totals:
        """Return results as given by a person or a program; see `certify` and `Session.feed`.

        Rows without rewards say nothing, and are left out unless `keep_empty`.

        Raises
        ------
        InvalidProblem
            If they are not numbers of rewards and means, or an arm does not exist.
        FinalFailure
            If they violate the declared bounds.
        """
        places = _arms(problem, arms)
        sizes = _whole(counts, "counts", len(places))
        if (means is None) == (successes is None):
            raise InvalidProblem("give either `means` or `successes`, one for each of the `counts`.")
        values = _means(problem, places, sizes, means, successes)
        spreads = np.full(len(places), np.nan)
        if sample_variances is not None:
            spreads = _numbers(sample_variances, "sample_variances", len(places))
        is_some = (sizes > 0) | keep_empty
        values = np.where(sizes > 0, values, 0.0)
        if not np.isfinite(values).all() or (spreads < 0).any() or np.isinf(spreads).any():
            raise InvalidProblem("`means` and `sample_variances` must be finite, and variances not negative.")
        if successes is not None and not problem.is_binary:
            raise InvalidProblem("`successes` are for rewards of 0 or 1; give `means`.")
        found = cls(places[is_some], sizes[is_some], values[is_some], spreads[is_some])
        if (np.abs(found.means) > problem.epsilon * MOST_EPSILONS).any():
            raise InvalidProblem(
                f"a mean of {np.abs(found.means).max():g} is too large compared with epsilon = "
                f"{problem.epsilon:g}: rounding errors would hide differences. Subtract a constant from all "
                f"rewards."
            )
        some = np.flatnonzero(found.counts > 0)
        check_summaries(
            problem, found.arms[some], Summaries(found.counts[some], found.means[some], found.variances[some])
        )
        if float(found.counts.sum(dtype=np.float64)) > MOST_PULLS:
            raise InvalidProblem("there are more than 2**53 rewards; no more can be counted exactly.")
        return found


def certify(
    problem: Problem,
    counts: ArrayLike | None = None,
    means: ArrayLike | None = None,
    sample_variances: ArrayLike | None = None,
    *,
    successes: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return what results that you have already certify: the m best arms, and to within which epsilon.

    You may look as often as you like, and decide by what you see what to measure next and when to stop. Each
    statement is about all moments, and all of them together are true with probability 1 - delta.

    Parameters
    ----------
    problem
        The question. Its variances must be known, or bounds of its rewards. Fix it before you look: its
        epsilon is the one for which the certificate is sharpest.
    counts
        The number of rewards of each arm, in the order of the problem's arms; 0 is allowed. If means may
        change between blocks, such as days: a list with one such row per block, and the same for `means` or
        `successes`. Arms are then compared within blocks, for rewards within bounds. What is certified
        is that every other arm has at least one block in which it is no more than epsilon better.
        Decide before you look which of the two you want.
    means
        The mean reward of each arm; any number where there is no reward.
    sample_variances
        Sample variances. With ``Bounded`` rewards, small ones make the certificate sharper.
    successes
        Instead of `means`, for rewards of 0 or 1: how many were 1.
    scores
        With shared items, instead of all these: a table of scores, one row per arm and one column per item,
        with NaN where nothing was measured. With ``items=Blocks()``: one row per arm and one column per
        block, in the order of measuring; NaN after the last block of an arm.
    seed
        With shared items: the seed of the order in which all arms took them, ``problem.order(seed)``.
        A partial table proves something only if the items of each arm are the first ones of an order that
        was drawn before, independently of the scores; others are refused.

    Examples
    --------
    >>> from shortlist import Bernoulli
    >>> variants = Problem(m=1, epsilon=0.01, delta=0.05, names=["A", "B", "C"], rewards=Bernoulli())
    >>> found = certify(variants, counts=[9000, 9000, 9000], successes=[270, 360, 495])
    >>> found.selected, found.epsilon, found.statuses
    (('C',), 0.0, ('out', 'out', 'in'))
    """
    problem = checked(problem)
    if problem.items is not None:
        if scores is None or counts is not None or means is not None or successes is not None:
            raise InvalidProblem("with shared items, give `scores`: one row per arm, one column per item.")
        if problem.has_blocks:
            return _certified_in_blocks(problem, scores, seed)
        return certificate_of_prefixes(problem, *_prefixes(problem, scores, seed))
    if scores is not None or seed is not None or counts is None:
        raise InvalidProblem("give `counts`, and `means` or `successes`; `scores` are for shared items.")
    if not problem.knows_variances:
        raise InvalidProblem(
            "nothing can be certified from totals if variances are unknown. Give `variances`, or the kind of "
            "rewards: shortlist.Bernoulli() or shortlist.Bounded(low, high)."
        )
    if np.ndim(counts) == 2:
        return _certify_blocks(problem, counts, means, sample_variances, successes)
    given = Totals.of(problem, np.arange(problem.n), counts, means, sample_variances, successes)
    pulls, values = np.zeros(problem.n, dtype=np.int64), np.zeros(problem.n)
    pulls[given.arms], values[given.arms] = given.counts, given.means
    merits, squares = problem.merits(values), None
    if problem.is_graded:
        spreads = np.full(problem.n, np.nan)
        spreads[given.arms] = given.variances
        squares = problem.mean_squares(pulls, merits, spreads)
    return certificate_of(problem, pulls, merits, squares=squares).provided(*FED)


def _certify_blocks(problem: Problem, counts: Any, *given: Any) -> Certificate:
    n_blocks, n = np.shape(counts)
    rows = [None if one is None else np.asarray(one) for one in (counts, *given)]
    if n != problem.n or any(one is not None and one.shape != (n_blocks, n) for one in rows):
        raise InvalidProblem(f"in each block, give one number for each of the {problem.n:,} arms.")
    flat = [None if one is None else one.ravel() for one in rows]
    totals = Totals.of(problem, np.tile(problem.arms, n_blocks), *flat, keep_empty=True)
    names = np.repeat([f"{number}" for number in range(1, n_blocks + 1)], n)
    return certify_rows(problem, totals, names.tolist())


def certify_rows(problem: Problem, totals: Totals, blocks: Sequence[str]) -> Certificate:
    """Return what rows certify that are each of one block: arms are compared within blocks."""
    if not problem.is_bounded:
        raise InvalidProblem(
            "arms can be compared within blocks for rewards of 0 or 1, shortlist.Bernoulli(), or within "
            "bounds, shortlist.Bounded(low, high)."
        )
    sums = problem.shares(problem.merits(totals.means)) * totals.counts
    found = BlockTotals.none(problem.n).added(tuple(blocks), totals.arms, totals.counts, sums)
    return certificate_of_blocks(problem, found).provided(*FED_IN_BLOCKS)


def _certified_in_blocks(problem: Problem, given: ArrayLike, seed: int | None) -> Certificate:
    """Return what rewards in blocks certify, of which every arm has the first ones."""
    table = real_numbers(given, "scores", "Give one row per arm and one column per block.")
    if seed is not None:
        raise InvalidProblem("`seed` is for shared items; blocks are in the order of measuring.")
    if table.ndim != 2 or len(table) != problem.n:
        raise InvalidProblem(
            f"`scores` has the shape {table.shape}; it must have one row for each of the {problem.n:,} arms "
            f"and one column for each block."
        )
    seen = (~np.isnan(table)).sum(axis=1)
    has_gaps = (~np.isnan(table) != (np.arange(table.shape[1]) < seen[:, None])).any(axis=1)
    if has_gaps.any():
        raise InvalidProblem(
            f"{problem.name(int(np.argmax(has_gaps)))} was not measured in some blocks, but was measured "
            "in later blocks. The choice of blocks may then depend on the rewards, so nothing is proved. "
            "Give the blocks of each arm up to its first gap."
        )
    for arm, row in enumerate(table):
        if (measured := row[: seen[arm]]).size:
            check_answer(problem, arm, measured, Summary(len(measured), float(measured.mean())))
    if np.nanmax(np.abs(table), initial=0.0) > problem.epsilon * MOST_EPSILONS:
        raise InvalidProblem("rewards are so large compared with epsilon that rounding errors would matter.")
    certified = certificate_of_prefixes if problem.is_bounded else certificate_of_table
    return certified(problem, np.nan_to_num(table), seen).provided("first-blocks")


def _prefixes(problem: Problem, given: ArrayLike, seed: int | None) -> tuple[FloatArray, IntArray]:
    """Return scores in the order of items that the seed gives, and how many items each arm has seen."""
    table = real_numbers(given, "scores", "Give one row per arm and one column per item.")
    if problem.items is None or table.shape != (problem.n, problem.n_items):
        raise InvalidProblem(
            f"`scores` has the shape {table.shape}; it must have one row for each of the {problem.n:,} arms "
            f"and one column for each of the {problem.n_items:,} items."
        )
    for arm, row in enumerate(table):
        if (measured := row[~np.isnan(row)]).size:
            check_answer(problem, arm, measured, Summary(len(measured), float(measured.mean())))
    is_seen = ~np.isnan(table)
    if seed is None:
        if (~is_seen.all(axis=1) & is_seen.any(axis=1)).any():
            raise InvalidProblem(
                "some arms have scores on some items only. Such a table proves something only if all "
                "arms were measured on items in the same random order, drawn before measuring. Give the "
                "`seed` of that order, or complete the rows. If Shortlist ran this evaluation, "
                "`shortlist status` shows what is certified."
            )
        seed = 0
    order = problem.order(whole_number(seed, "seed", 0))
    table, is_seen = table[:, order], is_seen[:, order]
    seen = is_seen.sum(axis=1)
    has_gaps = (is_seen != (np.arange(problem.n_items) < seen[:, None])).any(axis=1)
    if has_gaps.any():
        arm = int(np.argmax(has_gaps))
        raise InvalidProblem(
            f"the items on which {problem.name(arm)} was measured are not the first ones of the order "
            f"that seed {seed} gives for this question, so they prove nothing. Ask exactly the question for "
            "which the order was drawn: the same m, first epsilon, delta, names of arms, rewards or "
            "bounds, and items in the same sequence. The certificate then says which epsilon is certified. "
            "If Shortlist ran this evaluation, `shortlist status` shows what is certified."
        )
    return np.where(is_seen, table, 0.0), seen


def _arms(problem: Problem, given: Any) -> IntArray:
    """Return arms, given by number or by name."""
    names: Mapping[str, int] = (
        {problem.name(arm): arm for arm in range(problem.n)} if _has_names(given) else {}
    )
    found = []
    for arm in [given] if isinstance(given, str) or is_whole(given) else listed(given):
        number = names.get(arm, -1) if isinstance(arm, str) else int(arm) if is_whole(arm) else -1
        if not 0 <= number < problem.n:
            raise InvalidProblem(
                f"there is no arm {shortened(arm)}; arms are given by their names, or numbered from 0 to "
                f"{problem.n - 1}."
            )
        found.append(number)
    return np.array(found, dtype=np.int64)


def _has_names(given: Any) -> bool:
    return isinstance(given, str) or (
        hasattr(given, "__iter__") and any(isinstance(one, str) for one in given)
    )


def _numbers(given: Any, name: str, n: int) -> FloatArray:
    values = real_numbers([given] if isinstance(given, int | float) else given, name)
    if values.shape != (n,):
        raise InvalidProblem(f"`{name}` has {values.size} entries; give one for each of the {n} arms.")
    return values


def _whole(given: Any, name: str, n: int) -> IntArray:
    values = _numbers(given, name, n)
    is_right = (values >= 0) & (values <= MOST_PULLS) & (values == np.floor(values))
    if not is_right.all():
        wrong = float(values[np.argmin(is_right)])
        raise InvalidProblem(f"`{name}` contains {wrong:g}; it must contain whole numbers from 0 on.")
    return values.astype(np.int64)


def _means(problem: Problem, arms: IntArray, counts: IntArray, means: Any, successes: Any) -> FloatArray:
    """Return means, given as such or as numbers of successes."""
    if successes is None:
        return _numbers(means, "means", len(counts))
    hits = _whole(successes, "successes", len(counts))
    if (hits > counts).any():
        place = int(np.argmax(hits > counts))
        name = problem.name(int(arms[place]))
        raise InvalidProblem(f"{name}: there are {hits[place]:,} successes in {counts[place]:,} rewards.")
    found: FloatArray = hits / np.maximum(counts, 1)
    return found
