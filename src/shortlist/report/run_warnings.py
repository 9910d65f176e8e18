"""Warnings about a run: conflicting answers, failures, means that vary more than noise explains.

Warnings are hints. They are not part of a guarantee, and no guarantee needs them.
"""

from dataclasses import dataclass

import numpy as np

from shortlist.report.text_format import counted, percent, plain_name
from shortlist.report.worker_text import worker_words
from shortlist.result import Result
from shortlist.session.doubtful_answers import DATA_ENTRY_QUESTION, far_first_answers
from shortlist.session.state import Correction, RunState

_FEW = 5  # findings of one kind that are listed individually
_RARE = 1e-6  # probability of a false finding is below this
_MORE, _LESS = 1.5, 0.25  # times the stated variance: worth a warning
_NOTHING = 1e-15  # times the stated variance: rounding error between equal means
_THIN = 5  # pulls: a mean of fewer is a poor estimate


@dataclass(frozen=True)
class Finding:
    """A warning: whether it may void the guarantee, and its text."""

    is_warning: bool
    words: str


def findings_of(result: Result, history: RunState | None = None) -> tuple[Finding, ...]:
    """Return the warnings about a run, the most serious first."""
    found = _reissued(result) + _scored(result, history)
    found += [Finding(True, note.removeprefix("Warning: ")) for note in result.notes]
    if history is not None:
        found += _waiting(history) + _conflicts(history) + _repeats(history)
        found += _withdrawn(history) + _corrected(history) + _far(history)
        found += _drift(history) or _variation(history)
        found += _suspended(history)
    found += _thin(result)
    return tuple(sorted(found, key=lambda finding: not finding.is_warning))


def _reissued(result: Result) -> list[Finding]:
    """Warn if tickets may have been measured more than once, which may have caused selection bias."""
    if not result.reissued:
        return []
    declare = " If a measurement repeated with its seed gives the same rewards, declare it `reproducible`."
    return [Finding(True, result.reissued + declare * ("`reproducible`" not in result.reissued))]


def _suspended(history: RunState) -> list[Finding]:
    """Warn if the run stopped early because of a failure, and has not resumed since."""
    if history.suspended is None or history.is_stopped or history.is_final:
        return []
    by = f" by {worker_words(history.suspended.worker)}" if history.suspended.worker else ""
    return [
        Finding(
            True,
            f"The run was suspended{by}; the reason is at the top of this report. Answers recorded before "
            f"are kept, and count.",
        )
    ]


def _waiting(history: RunState) -> list[Finding]:
    """Warn if a driver waits before a retry, with the reason."""
    if history.waiting is None or history.is_final:
        return []
    return [Finding(True, f"The run is waiting. {history.waiting.reason}")]


def _conflicts(history: RunState) -> list[Finding]:
    """Warn about second answers that differ from the first, and list a few."""
    conflicts = history.conflicts
    if not conflicts:
        return []
    one = "answer contradicts" if len(conflicts) == 1 else "answers contradict"
    said = [
        f"{plain_name(history.problem.name(each.arm))} in round {each.round}: "
        f"{each.kept:g} is kept, {worker_words(each.worker)} sent {each.refused:g} later"
        for each in conflicts[:_FEW]
    ]
    more = [] if len(conflicts) <= _FEW else [f"and {len(conflicts) - _FEW:,} more"]
    return [
        Finding(
            True,
            f"{len(conflicts):,} {one} an earlier one, which is kept: {'; '.join(said + more)}. Find out "
            f"why a ticket was measured twice: the guarantee assumes that the value of an answer does not "
            f"affect which one arrives first.",
        )
    ]


def _repeats(history: RunState) -> list[Finding]:
    """Warn if the log contains answers twice; answers that differ are conflicts."""
    n = sum(one.is_same for one in history.repeats)
    if not n:
        return []
    words = (
        f"The log contains {counted(n, 'answer')} twice, with the same value; each counts once. Version "
        f"0.1.0 could write answers twice after a failed write, such as on a full disk."
    )
    return [Finding(False, words)]


def _withdrawn(history: RunState) -> list[Finding]:
    """List answers that were withdrawn."""
    said = [
        f"{one.mean:g} of {plain_name(history.problem.name(one.arm))} in round {one.round}, by "
        f"{worker_words(one.by)}{', because: ' * bool(one.why)}{plain_name(one.why, 200)}"
        for one in history.withdrawn
    ]
    if not said:
        return []
    what = f"{counted(len(said), 'answer')} withdrawn: {'; '.join(_few(said))}."
    return [Finding(True, f"{what} The guarantee assumes that none was withdrawn because of its value.")]


def _far(history: RunState) -> list[Finding]:
    """Warn about first answers that are far from those of other arms: probably data-entry errors."""
    said = far_first_answers(history)
    more = f" And {len(said) - _FEW:,} more." if len(said) > _FEW else ""
    words = f"{plain_name(' '.join(said[:_FEW]), 1000)}{more} {DATA_ENTRY_QUESTION}"
    return [Finding(True, words)] if said else []


def _corrected(history: RunState) -> list[Finding]:
    """List fed results that were replaced."""
    said = [_correction(history, one) for one in history.corrections]
    if not said:
        return []
    what = f"{counted(len(said), 'fed row')} corrected: {'; '.join(_few(said))}."
    return [Finding(False, f"{what} The guarantee assumes that none was corrected because of its value.")]


def _correction(history: RunState, one: Correction) -> str:
    rows = [
        f"{round(row.count * row.mean):,} of {row.count:,}"
        if history.problem.is_binary
        else f"{row.mean:g} of {row.count:,}"
        for row in (one.before, one.after)
    ]
    outcome = f"became {rows[1]}" if one.after.count else "was withdrawn"
    why = f" ({plain_name(one.why, 200)})" if one.why else ""
    return (
        f"{plain_name(history.problem.name(one.arm))}, {plain_name(one.label, 60)}: {rows[0]} {outcome}{why}"
    )


def _few(said: list[str]) -> list[str]:
    return said if len(said) <= _FEW else [*said[:_FEW], f"and {len(said) - _FEW:,} more"]


def _scored(result: Result, history: RunState | None) -> list[Finding]:
    if not result.n_scored:
        return []
    share = percent(result.n_scored / max(result.n_pulls, 1))
    said = f"{counted(result.n_scored, 'pull')} of {result.n_pulls:,} ({share}) failed and were scored"
    if history is not None:
        scores = sorted({one.score for one in history.scored})
        said += f" as {', '.join(f'{score:g}' for score in scores[:_FEW])}"
        last = plain_name(history.scored[-1].reason, 300)
        said += f"; reason of the last one: {last}"
    said += ". The guarantee counts the score of a failed pull as its reward."
    if not result.problem.is_bounded:
        must = (
            "The stated variances must hold" if result.problem.knows_variances else "Rewards must be Gaussian"
        )
        said += f" {must} with these rewards included."
    return [Finding(True, said)]


def _drift(history: RunState) -> list[Finding]:
    """Say if means of fed results change between blocks: a warning, unless arms are compared within them."""
    drift = history.drift
    return [Finding(drift.may_harm, plain_name(drift.words, 1000))] if drift else []


def _variation(history: RunState) -> list[Finding]:
    """Warn if the means of an arm vary between rounds more, or much less, than the stated variances allow.

    For rewards within bounds, the variances are the largest that their means allow.
    """
    problem = history.problem
    rounds = [round for round in history.rounds if round.n_missing == 0 and len(round.tickets)]
    if not problem.knows_variances or history.is_by_block or len(rounds) + len(history.fed) < 2:
        return []
    batches = [(round.tickets.arms, round.tickets.counts, round.means) for round in rounds]
    batches += [
        (np.array([arm]), np.array([row.count]), np.array([row.mean]))
        for (_, arm), row in history.fed.items()
    ]
    means, pulls = history.result.arms.means, history.result.arms.pulls
    variances = problem.variances_at(means, pulls)
    squares, n_batches = 0.0, np.zeros(problem.n, dtype=np.int64)
    for arms, counts, seen in batches:
        apart = (seen - means[arms]) ** 2 * counts / variances[arms]
        squares += float(apart.sum())
        n_batches[arms] += 1
    freedom = int(np.maximum(n_batches - 1, 0).sum())
    return _judged(squares, freedom, is_bounded=problem.is_bounded) if freedom >= 10 else []


def _judged(squares: float, freedom: int, *, is_bounded: bool) -> list[Finding]:
    from scipy.special import gammainc, gammaincc  # noqa: PLC0415

    ratio = squares / freedom
    said = f"From batch to batch, the means of an arm vary {ratio:.2g} times as much"
    if ratio < _NOTHING:
        return [
            Finding(
                True,
                "Every arm gave exactly the same mean in every round. Rewards are constant, or a cache "
                "repeats them. Repeated rewards are not independent, and void the guarantee.",
            )
        ]
    if ratio > _MORE and gammaincc(freedom / 2, squares / 2) < _RARE:
        if is_bounded:
            words = f"{said} as those of independent rewards can. Rewards drift, or depend on each other. "
            words += "In either case the guarantee does not hold. Run `shortlist doctor` to find out."
            return [Finding(True, words)]
        return [
            Finding(
                True,
                f"{said} as the stated variances allow. Either the stated variances are too small, or "
                "rewards drift. In either case the guarantee does not hold. Run `shortlist doctor` to "
                "find out.",
            )
        ]
    if not is_bounded and ratio < _LESS and gammainc(freedom / 2, squares / 2) < _RARE:
        words = f"{said} as the stated variances allow."
        words += " If smaller variances are valid, state them to save pulls."
        return [Finding(False, words)]
    return []


def _thin(result: Result) -> list[Finding]:
    """Warn if the means of selected arms are based on very few pulls."""
    known = () if result.problem.known is None else result.problem.known.arms
    measured = np.setdiff1d(result.indices, known)  # the means of known rows are exact
    n = int((result.arms.pulls[measured] < _THIN).sum())
    if not n or not result.n_pulls:
        return []
    means = (
        "The mean of one selected arm is based" if n == 1 else f"The means of {n:,} selected arms are based"
    )
    is_stated = result.problem.knows_variances and not result.problem.is_bounded
    that = "Given the stated variances, that" if is_stated else "That"
    words = (
        f"{means} on fewer than {_THIN} pulls. {that} was enough to decide, but such a mean is only a "
        "rough estimate."
    )
    return [Finding(False, words)]
