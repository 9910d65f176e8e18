"""Tests of the assumptions of the proofs: no drift, Gaussian rewards if required, independent arms.

Every test uses all tested arms. If the assumptions hold, it reports something in at most one diagnosis of
100, and an error in at most one of 1,000.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates import Guarantee
from shortlist.doctor.findings import Finding, named
from shortlist.doctor.trials import ArmTrials
from shortlist.measure import Source, TableSource
from shortlist.measure.bounds_check import is_summary
from shortlist.problem import Problem

NOTE, _ERROR = 1e-2, 1e-3  # chances of a false alarm, over all arms
_FEWEST, _FEWEST_FOR_SKEWNESS = 6, 8  # rewards of an arm: fewer are not tested
SKEWED = 0.5  # smaller skewness does little harm
_PERMUTATIONS, _AT_ONCE = 3999, 50
_MOST_ROWS, _MOST_ARMS = 1000, 20  # rows of a table that the permutation test uses


class _Series(NamedTuple):
    """Rewards of one arm in the order of measurement or of the table; not all equal."""

    arm: ArmTrials
    rewards: FloatArray


def drift(problem: Problem, source: Source, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Test whether rewards change with the order of measurement (Spearman, within arms)."""
    from scipy.stats import rankdata  # noqa: PLC0415  (scipy is slow to import)

    is_table = isinstance(source, TableSource)
    if isinstance(source, TableSource) and source.order != "next":
        seen = "Rows are used in random order, so drift does not matter."
        return [Finding("ok", "drift", seen)]
    series = series_of(source, tried)
    if not series:
        return []
    sizes = np.array([len(rewards) for _, rewards in series])
    rhos = np.array([trend(rankdata(rewards)) for _, rewards in series])
    chance, places = _pooled(rhos * np.sqrt(sizes - 1), sizes)  # 1 / (size - 1): their variances by chance
    if chance > NOTE:
        return [Finding("ok", "drift", "No significant change of rewards with the order of measurement.")]
    changes = [_change(series[place].rewards) for place in places]
    change = float(np.mean(changes)) if len(places) == len(series) else max(changes, key=abs)
    which = "row" if is_table else "pull"
    return [
        Finding(
            severity(chance),
            "drift",
            f"Rewards of {_names(problem, series, places)} change with the order of measurement: by about "
            f"{change:.2g} from the first {which} to the last (epsilon is {problem.epsilon:g}).",
            (_ON_DRIFT_IN_TABLES if is_table else _ON_DRIFT) + doubt(chance),
        )
    ]


_ON_DRIFT = (
    "The guarantee assumes that the mean of each arm stays the same during a run. Remove the cause, such "
    "as a machine that slows down or a service that is updated. If you cannot, measure arms interleaved "
    "(`turns`, by default 8), so that drift affects all arms alike."
)
_ON_DRIFT_IN_TABLES = (
    "The guarantee assumes that the mean of each arm stays the same, but arms that use more rows would "
    'have later rows in their means. To estimate the mean over the whole time, set `order = "random"`. '
    "To estimate the present mean, remove old rows."
)


def skewness(
    problem: Problem, source: Source, tried: Sequence[ArmTrials], strategy: str, promise: Guarantee | None
) -> list[Finding]:
    """Test whether rewards that were declared Gaussian are skewed (D'Agostino's test)."""
    from scipy.stats import skew, skewtest  # noqa: PLC0415  (scipy is slow to import)

    if problem.knows_variances and problem.noise != "gaussian":
        return []
    series = [one for one in series_of(source, tried, with_means=False) if _may_be_gaussian(one.rewards)]
    if not series:
        return []
    scaled = [_scaled(rewards) for _, rewards in series]
    sizes = np.array([len(rewards) for rewards in scaled])
    chance, places = _pooled(np.array([skewtest(rewards).statistic for rewards in scaled]), sizes)
    skewed = float(np.mean([skew(scaled[place]) for place in places]))
    if chance > NOTE or abs(skewed) < SKEWED:
        return [Finding("ok", "skewness", "Rewards are not significantly skewed.")]
    seen = (
        f"Rewards of {_names(problem, series, places)} have a skewness of about {skewed:.2g}; that of "
        f"Gaussian rewards is 0."
    )
    if promise is None or "sub-gaussian-stated" in promise.assumptions:
        advice = (
            f"The guarantee of {strategy} does not need Gaussian rewards, only variance proxies that are "
            "large enough. Some other strategies need Gaussian rewards, so do not declare `noise = "
            '"gaussian"`.'
        )
        return [Finding("note", "skewness", seen, advice + doubt(chance))]
    logarithms = ""
    if skewed > 0 and all(series[place].rewards.min() > 0 for place in places):
        logarithms = " Use logarithms of the rewards (usual for latencies; epsilon is then a ratio), or"
    advice = (
        f"The guarantee of {strategy} holds for Gaussian rewards only.{logarithms or ' Use'} averages of "
        f"many rewards as one pull, or state `bounds` or variance proxies instead of Gaussian `noise`."
    )
    return [Finding(severity(chance), "skewness", seen, advice + doubt(chance))]


def dependence(problem: Problem, source: Source, tried: Sequence[ArmTrials], seed: int) -> list[Finding]:
    """Test whether rewards of different arms at the same position are correlated (a permutation test).

    The statistics are the sum of rank correlations over all pairs of arms, and the sum of their squares. If
    arms are independent, shuffling the rewards of each arm does not tend to make them smaller.
    """
    if problem.has_blocks:
        seen = "Arms are compared within blocks, so they may depend on each other."
        return [Finding("ok", "blocks", seen)]
    if problem.items is not None:
        seen = "All arms take the same items and are compared item by item, so they may depend on each other."
        return [Finding("ok", "shared items", seen)]
    series = series_of(source, tried)[:_MOST_ARMS]
    if len(series) < 2:
        return []
    length = min(len(rewards) for _, rewards in series)
    rows = np.linspace(0, length - 1, min(length, _MOST_ROWS)).round().astype(int)
    scores = _rank_scores(np.stack([rewards[rows] for _, rewards in series], axis=1))
    chance = _chance_by_permutation(scores, np.random.default_rng(seed))
    return [_on_dependence(source, [problem.name(one.arm.arm) for one in series], scores, chance)]


def _on_dependence(source: Source, names: Sequence[str], scores: FloatArray, chance: float) -> Finding:
    subject, is_table = "independent arms", isinstance(source, TableSource)
    is_drawn = isinstance(source, TableSource) and source.order == "draw"
    drawn = "Rows are drawn separately for each arm, so arms are independent"
    if chance > NOTE:
        seen = f"{drawn}." if is_drawn else "Rewards of different arms are not significantly correlated."
        return Finding("ok", subject, seen)
    firsts, seconds = np.triu_indices(len(names), 1)
    rhos = (scores.T @ scores)[firsts, seconds]
    most = int(np.abs(rhos).argmax())
    pair = f"{names[firsts[most]]} and {names[seconds[most]]}"
    average = f", {rhos.mean():.2g} on average over {len(rhos):,} pairs" if len(rhos) > 1 else ""
    figures = f"(rank correlation {rhos[most]:.2g} for {pair}{average})"
    if is_drawn:
        seen = f"{drawn} although their columns are correlated {figures}."
        return Finding("ok", subject, f"{seen} The guarantee is about the averages of these rows.")
    what = "Rows with the same number" if is_table else "Pulls with the same number"
    seen = f"{what} have correlated rewards in different arms {figures}."
    return Finding(
        severity(chance), subject, seen, (_ON_SHARED_ROWS if is_table else _ON_SHARED) + doubt(chance)
    )


_ON_SHARED = (
    "The guarantee needs independent arms. Draw what is random in a pull from its own `rng`, or {seed} in a "
    "command: no seed, counter or clock may choose the same item for several arms. If all arms answer the "
    "same questions, record the scores and use them as a table."
)
_ON_SHARED_ROWS = (
    "The guarantee needs independent arms. If rows with the same number belong together, such as answers to "
    'one question, set `order = "draw"`: rows are then drawn separately for each arm, and the guarantee is '
    "about the averages of these rows."
)


def series_of(source: Source, tried: Sequence[ArmTrials], *, with_means: bool = True) -> list[_Series]:
    """Return the rewards of the tested arms, recorded or measured: single rewards, or means of calls."""
    found = []
    for arm in tried:
        if isinstance(source, TableSource):
            rewards = source.values[source.starts[arm.arm] : source.starts[arm.arm + 1]]
        elif not any(is_summary(trial.answer) for trial in arm.trials):
            rewards = np.array([reward for trial in arm.trials for reward in trial.rewards])
        else:
            rewards = np.array([trial.summary.mean for trial in arm.trials if with_means])
        if len(rewards) >= _FEWEST and rewards.min() < rewards.max():
            found.append(_Series(arm, rewards))
    return found


def _pooled(scores: FloatArray, sizes: FloatArray) -> tuple[float, list[int]]:
    """Return the chance of standard normal scores as extreme as these, and where the extreme ones are.

    One half of the chance is for their sum, which a common cause affects; the other half is for single arms.
    """
    from scipy.special import ndtr  # noqa: PLC0415  (scipy is slow to import)

    total = (np.sqrt(sizes) * scores).sum() / np.sqrt(sizes.sum())
    of_all = 2 * 2 * ndtr(-abs(total))
    of_each = 2 * 2 * len(scores) * ndtr(-np.abs(scores))
    if of_all <= of_each.min():
        return float(of_all), list(range(len(scores)))
    return float(of_each.min()), np.flatnonzero(of_each <= max(NOTE, of_each.min())).tolist()


def _chance_by_permutation(scores: FloatArray, rng: np.random.Generator) -> float:
    """Return the p-value of a permutation test; 1.0 as soon as it is not significant."""
    limits = _sizes(scores) * (1 - 1e-9)
    n_as_large = np.ones(2)
    at_once = min(_AT_ONCE, 1 + 100_000 // scores.size)
    for first in range(0, _PERMUTATIONS, at_once):
        some = np.broadcast_to(scores, (min(at_once, _PERMUTATIONS - first), *scores.shape))
        n_as_large += (_sizes(rng.permuted(some, axis=1)) >= limits).sum(axis=0)
        if (2 * n_as_large > NOTE * (_PERMUTATIONS + 1)).all():
            return 1.0
    return float(2 * n_as_large.min() / (_PERMUTATIONS + 1))  # 2: for two statistics


def _sizes(scores: FloatArray) -> FloatArray:
    """Return the sum of the correlations of all pairs of columns, and the sum of their squares.

    Leading axes are other scores.
    """
    firsts, seconds = np.triu_indices(scores.shape[-1], 1)
    rhos = (np.swapaxes(scores, -1, -2) @ scores)[..., firsts, seconds]
    return np.stack([abs(rhos.sum(axis=-1)), (rhos**2).sum(axis=-1)], axis=-1)


def _rank_scores(columns: FloatArray) -> FloatArray:
    """Return the ranks in each column, centred and scaled so that scalar products are correlations."""
    from scipy.stats import rankdata  # noqa: PLC0415  (scipy is slow to import)

    ranks = rankdata(columns, axis=0)
    centred = ranks - ranks.mean(axis=0)
    scores: FloatArray = centred / np.maximum(np.sqrt((centred**2).sum(axis=0)), 1e-300)
    return scores


def trend(ranks: FloatArray) -> float:
    """Return the correlation of ranks with their order."""
    return float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])


def _change(rewards: FloatArray) -> float:
    """Return the change of a fitted straight line from the first to the last reward."""
    order = np.linspace(-0.5, 0.5, len(rewards))
    scale = np.abs(rewards).max()
    return float(scale * (order @ (rewards / scale)) / (order @ order))


def _scaled(rewards: FloatArray) -> FloatArray:
    """Return rewards scaled to between -1 and 1 with mean 0, so that their powers do not overflow."""
    small = rewards / np.abs(rewards).max()
    centred = small - small.mean()
    scaled: FloatArray = centred / np.abs(centred).max()
    return scaled


def _may_be_gaussian(rewards: FloatArray) -> bool:
    """Return whether there are enough rewards, with more than two values: two values are not Gaussian."""
    return len(rewards) >= _FEWEST_FOR_SKEWNESS and len(np.unique(rewards)) > 2


def severity(chance: float) -> str:
    """Return how serious a finding is that has this chance if all is well."""
    return "error" if chance <= _ERROR else "note"


def doubt(chance: float) -> str:
    """Return advice for findings that may be due to chance."""
    return (
        ""
        if chance <= _ERROR
        else " This may be chance: it happens in 1 check of 100. Test again with more pulls."
    )


def _names(problem: Problem, series: Sequence[_Series], places: Sequence[int]) -> str:
    return named(problem, [series[place].arm for place in places])
