"""What deserves attention in a run: second answers, failures, means that move more than noise explains.

These are hints. None of them is part of a guarantee, and none is needed for one.
"""

from dataclasses import dataclass

import numpy as np

from shortlist.report.text_format import percent, plain_name
from shortlist.report.worker_text import counted, worker_words
from shortlist.result import Result
from shortlist.session.state import RunState

_FEW = 5  # findings of one kind that are told one by one
_RARE = 1e-6  # a finding by chance in fewer runs than this
_MORE, _LESS = 1.5, 0.25  # times the stated variance: what is worth a word
_NOTHING = 1e-15  # times the stated variance: what rounding leaves of means that are the same
_THIN = 5  # pulls: a mean of fewer says little by itself


@dataclass(frozen=True)
class Finding:
    """Something that deserves attention: whether it may void the guarantee, and what it is."""

    is_warning: bool
    words: str


def findings_of(result: Result, history: RunState | None = None) -> tuple[Finding, ...]:
    """Return what deserves attention in a run, the gravest first."""
    found = _reissued(result) + _scored(result, history)
    if history is not None:
        found += _waiting(history) + _conflicts(history) + _repeats(history)
        found += _variation(history) + _suspended(history)
    found += _thin(result)
    return tuple(sorted(found, key=lambda finding: not finding.is_warning))


def _reissued(result: Result) -> list[Finding]:
    """Return that tickets were issued or tried more than once, if that may have chosen among rewards."""
    if not result.reissued:
        return []
    declare = "If a measurement repeated with its seed gives the same rewards, declare it `reproducible`."
    return [Finding(True, f"{result.reissued} {declare}")]


def _suspended(history: RunState) -> list[Finding]:
    """Return that measuring stopped short, if it has not gone on since."""
    if history.suspended is None or history.is_final:
        return []
    by = f" by {worker_words(history.suspended.worker)}" if history.suspended.worker else ""
    return [
        Finding(
            True,
            f"Scheduler was suspended{by}; the reason stands at the beginning. Whatever was told before is "
            f"kept, and counts.",
        )
    ]


def _waiting(history: RunState) -> list[Finding]:
    """Return that a driver waits to try something again, and why."""
    if history.waiting is None or history.is_final:
        return []
    return [Finding(True, f"Scheduler waits. {history.waiting.reason}")]


def _conflicts(history: RunState) -> list[Finding]:
    """Return the second answers that differ from the first, a few of them one by one."""
    conflicts = history.conflicts
    if not conflicts:
        return []
    one = "answer contradicts" if len(conflicts) == 1 else "answers contradict"
    said = [
        f"{plain_name(history.problem.name(each.arm))} in round {each.round}: "
        f"{each.kept:g} stands, {worker_words(each.worker)} told {each.refused:g} later"
        for each in conflicts[:_FEW]
    ]
    more = [] if len(conflicts) <= _FEW else [f"and {len(conflicts) - _FEW:,} more"]
    return [
        Finding(
            True,
            f"{len(conflicts):,} {one} an earlier one, which stands: {'; '.join(said + more)}. Find out how "
            f"one ticket came to be measured twice: the guarantee needs the first answer to be as good as "
            f"any.",
        )
    ]


def _repeats(history: RunState) -> list[Finding]:
    """Return whether the log has answers twice; those that differ are conflicts."""
    n = sum(one.is_same for one in history.repeats)
    if not n:
        return []
    words = (
        f"The log has {counted(n, 'answer')} twice, with the same value; each counts once. Version 0.1.0 "
        f"could write answers twice when a write failed, as on a full disk."
    )
    return [Finding(False, words)]


def _scored(result: Result, history: RunState | None) -> list[Finding]:
    if not result.n_scored:
        return []
    share = percent(result.n_scored / max(result.n_pulls, 1))
    said = f"{counted(result.n_scored, 'pull')} of {result.n_pulls:,} ({share}) failed and were scored"
    if history is not None:
        scores = sorted({one.score for one in history.scored})
        said += f" as {', '.join(f'{score:g}' for score in scores[:_FEW])}"
        last = plain_name(history.scored[-1].reason, 300)
        said += f"; the last one because: {last}"
    words = f"{said}. The guarantee is about rewards so defined: their variances must be the stated ones."
    return [Finding(True, words)]


def _variation(history: RunState) -> list[Finding]:
    """Return whether means of the same arms differ between rounds as stated variances say."""
    problem = history.problem
    rounds = [round for round in history.rounds if round.n_missing == 0 and len(round.tickets)]
    if not problem.knows_variances or len(rounds) < 2:
        return []
    means = history.result.arms.means
    squares, n_batches = 0.0, np.zeros(problem.n, dtype=np.int64)
    for round in rounds:
        arms = round.tickets.arms
        apart = (round.means - means[arms]) ** 2 * round.tickets.counts / problem.variances[arms]
        squares += float(apart.sum())
        n_batches[arms] += 1
    freedom = int(np.maximum(n_batches - 1, 0).sum())
    return _judged(squares, freedom) if freedom >= 10 else []


def _judged(squares: float, freedom: int) -> list[Finding]:
    from scipy.special import gammainc, gammaincc  # noqa: PLC0415

    ratio = squares / freedom
    said = f"The means of the same arm vary from round to round {ratio:.2g} times as much"
    if ratio < _NOTHING:
        return [
            Finding(
                True,
                "Every arm gave exactly the same mean in every round. Rewards are constant, or a cache "
                "repeats them; repeated rewards are not independent, and nothing is guaranteed with them.",
            )
        ]
    if ratio > _MORE and gammaincc(freedom / 2, squares / 2) < _RARE:
        return [
            Finding(
                True,
                f"{said} as the stated variances allow. Either they are too small, or rewards drift; the "
                f"guarantee holds in neither case. `shortlist doctor` looks closer.",
            )
        ]
    if ratio < _LESS and gammainc(freedom / 2, squares / 2) < _RARE:
        words = f"{said} as the stated variances allow. If smaller ones are true, stating them saves pulls."
        return [Finding(False, words)]
    return []


def _thin(result: Result) -> list[Finding]:
    """Return whether means of arms that were selected rest on very few pulls."""
    pulls = result.arms.pulls[result.indices]
    n = int((pulls < _THIN).sum())
    if not n or not result.n_pulls:
        return []
    means = "The mean of one selected arm rests" if n == 1 else f"The means of {n:,} selected arms rest"
    words = (
        f"{means} on fewer than {_THIN} pulls. That was enough to decide, by the stated variances; as an "
        f"estimate it is rough."
    )
    return [Finding(False, words)]
