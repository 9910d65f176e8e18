"""Tests of the declared variances: a chi-square test for each arm, and for all together."""

from collections.abc import Sequence
from typing import NamedTuple

from shortlist.doctor.findings import Finding
from shortlist.doctor.trials import ArmTrials
from shortlist.noise import bounded
from shortlist.problem import Problem

_CHANCE = (
    1e-3  # probability of a false alarm, over all arms, if rewards are Gaussian with the declared variances
)
_LOW = 0.01  # one minus the confidence of the statement that variances are smaller
_MUCH = 0.5  # a variance below this share of the declared one is worth a note


class _Squares(NamedTuple):
    """Squared deviations from an arm's mean, and their degrees of freedom."""

    total: float
    freedom: int


def spread(problem: Problem, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Test whether observed variances contradict the declared ones; if none are, say how large they are."""
    squares = {one.arm: _squares(one) for one in tried if one.trials}
    squares = {arm: found for arm, found in squares.items() if found.freedom and found.total > 0}
    if not squares:
        return []
    if problem.is_bounded:
        return _found(problem, squares)
    return _above(problem, squares) or _below(problem, squares)


def pooled_variance(tried: Sequence[ArmTrials]) -> float:
    """Return the sample variance of rewards about the means of their arms; 0 if it is not known."""
    squares = [_squares(one) for one in tried if one.trials]
    freedom = sum(found.freedom for found in squares)
    return sum(found.total for found in squares) / freedom if freedom else 0.0


def _squares(one: ArmTrials) -> _Squares:
    summaries = [trial.summary for trial in one.trials]
    count = sum(summary.count for summary in summaries)
    mean = sum(summary.count * summary.mean for summary in summaries) / count
    between = sum(summary.count * (summary.mean - mean) ** 2 for summary in summaries)
    inside = [(summary.count - 1, summary.variance) for summary in summaries if summary.variance is not None]
    freedom = len(summaries) - 1 + sum(size for size, _ in inside)
    return _Squares(between + sum(size * variance for size, variance in inside), freedom)


def _found(problem: Problem, squares: dict[int, _Squares]) -> list[Finding]:
    """Say how large variances are where none are declared.

    A run adapts to means near the bounds, which is all that matters for 0 and 1, but not to rewards that vary
    less than their means allow.
    """
    freedom = sum(found.freedom for found in squares.values())
    largest = bounded(*(problem.bounds or (0.0, 1.0)), 1)[0]
    share = sum(found.total for found in squares.values()) / freedom / largest
    seen = f"The sample variance is about {share:.2g} times the largest possible"
    if problem.is_binary:
        return [Finding("ok", "variance", f"{seen}; a run adapts to it.")]
    if share >= _MUCH:
        return [Finding("ok", "variance", f"{seen}.")]
    advice = (
        "A run adapts to means near the bounds only. If you know a smaller bound on the variance of every "
    )
    advice += "arm, not only from these pulls, state `variances` with `bounds`; it may save pulls."
    return [Finding("note", "variance", f"{seen}.", advice)]


def _above(problem: Problem, squares: dict[int, _Squares]) -> list[Finding]:
    from scipy.special import chdtrc, chdtri  # noqa: PLC0415  (scipy is slow to import)

    found = []
    for arm, (total, freedom) in squares.items():
        declared = float(problem.variances[arm])
        if chdtrc(freedom, total / declared) < _CHANCE / len(squares):
            limit = total / float(chdtri(freedom, 1 - _LOW))
            found.append(
                Finding(
                    "error",
                    "variance",
                    f"{problem.name(arm)} has a sample variance of {total / freedom:.3g}, far above the "
                    f"declared {declared:.3g}.",
                    f"The guarantee needs upper bounds: judging by these pulls, the variance may be up to "
                    f"{limit:.3g} (scale {limit**0.5:.3g}).",
                )
            )
    return found


def _below(problem: Problem, squares: dict[int, _Squares]) -> list[Finding]:
    from scipy.special import chdtri  # noqa: PLC0415  (scipy is slow to import)

    freedom = sum(found.freedom for found in squares.values())
    total = sum(found.total / float(problem.variances[arm]) for arm, found in squares.items())
    limit = total / float(chdtri(freedom, 1 - _LOW))
    if limit >= _MUCH:
        return [Finding("ok", "variance", "Variances are not above the declared ones, nor far below.")]
    is_implied = problem.bounds is not None and (problem.variances == bounded(*problem.bounds, 1)).all()
    stated = "implied by the bounds" if is_implied else "stated"
    return [
        Finding(
            "note",
            "variance",
            f"The sample variance is about {total / freedom:.2g} times the variance {stated}.",
            "The number of pulls grows with the variance. If you know a smaller bound for every arm, not "
            "only from these pulls, state it to save pulls.",
        )
    ]
