"""Whether rewards spread as declared: a chi-square test of each arm's variance, and of all together."""

from collections.abc import Sequence
from typing import NamedTuple

from shortlist.doctor.findings import Finding
from shortlist.doctor.trials import ArmTrials
from shortlist.noise import bounded
from shortlist.problem import Problem

_CHANCE = 1e-3  # of a false alarm, over all arms, if rewards are Gaussian with the variances declared
_LOW = 0.01  # one minus the confidence with which rewards are said to spread less
_MUCH = 0.5  # a variance below so much of the declared one is worth a note


class _Squares(NamedTuple):
    """Squared deviations from an arm's mean, and how many independent ones they are worth."""

    total: float
    freedom: int


def spread(problem: Problem, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return whether observed variances contradict those declared."""
    squares = {one.arm: _squares(one) for one in tried if one.trials}
    squares = {arm: found for arm, found in squares.items() if found.freedom and found.total > 0}
    if not squares:
        return []
    return _above(problem, squares) or _below(problem, squares)


def _squares(one: ArmTrials) -> _Squares:
    summaries = [trial.summary for trial in one.trials]
    count = sum(summary.count for summary in summaries)
    mean = sum(summary.count * summary.mean for summary in summaries) / count
    between = sum(summary.count * (summary.mean - mean) ** 2 for summary in summaries)
    inside = [(summary.count - 1, summary.variance) for summary in summaries if summary.variance is not None]
    freedom = len(summaries) - 1 + sum(size for size, _ in inside)
    return _Squares(between + sum(size * variance for size, variance in inside), freedom)


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
                    f"{declared:.3g} declared.",
                    f"The guarantee needs upper bounds: from these pulls, up to {limit:.3g} (scale "
                    f"{limit**0.5:.3g}) must be reckoned with.",
                )
            )
    return found


def _below(problem: Problem, squares: dict[int, _Squares]) -> list[Finding]:
    from scipy.special import chdtri  # noqa: PLC0415  (scipy is slow to import)

    freedom = sum(found.freedom for found in squares.values())
    total = sum(found.total / float(problem.variances[arm]) for arm, found in squares.items())
    limit = total / float(chdtri(freedom, 1 - _LOW))
    if limit >= _MUCH:
        return [Finding("ok", "variance", "Rewards spread no more than declared, nor much less.")]
    is_implied = problem.bounds is not None and (problem.variances == bounded(*problem.bounds, 1)).all()
    stated = "the bounds allow" if is_implied else "declared"
    return [
        Finding(
            "note",
            "variance",
            f"Rewards spread less than {stated}: their variance is about {total / freedom:.2g} times that.",
            "Pulls grow with the variance. If a smaller one is certain for every arm, and not merely "
            "observed here, state it to save pulls.",
        )
    ]
