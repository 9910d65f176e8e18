"""What trial measurements show: each check returns what it found, how bad that is, and what to do."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.doctor.trials import ArmTrials, Trial
from shortlist.errors import FinalFailure
from shortlist.measure import Source, TableSource, check_answer
from shortlist.measure.bounded import is_summary
from shortlist.problem import Problem

_SHOWN = 3  # failures shown


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    severity
        "error": the guarantee, or the run, would fail; "note": worth knowing; or "ok".
    subject
        What was looked at, in a few words.
    seen
        What was seen.
    advice
        What to do about it; empty if nothing.
    """

    severity: str
    subject: str
    seen: str
    advice: str = ""


def failures(tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return the measurements that failed."""
    found = [one.failure for one in tried if one.failure]
    more = f" ({len(found) - _SHOWN} more failed.)" if len(found) > _SHOWN else ""
    advice = f"Mend this first; other checks may mean little until then.{more}"
    shown = found[:_SHOWN]
    return [Finding("error", "measuring", said, advice * (said is shown[-1])) for said in shown]


def reproducibility(
    problem: Problem, tried: Sequence[ArmTrials], *, is_declared: bool = False
) -> list[Finding]:
    """Return whether a call made again with the same seed gives the same rewards."""
    pairs = [(one.trials[0], one.again) for one in tried if one.again is not None]
    if not pairs:
        return []
    for first, again in pairs:
        if first.rewards != again.rewards:
            name, means = problem.name(first.call.arm), (first.summary.mean, again.summary.mean)
            seen = f"{name} gave a mean of {means[0]:.6g}, and then {means[1]:.6g}."
            how = "take all randomness from `rng`, or from {seed} in a command."
            if is_declared:
                advice = f"The file says `reproducible = true`. Remove that, or {how}"
                return [Finding("error", "same seed again", seen, advice)]
            advice = (
                "Runs cannot be repeated exactly. The guarantee needs it only where a ticket is issued or "
                "tried again: if whether a call fails, or how long it takes, depends on the reward, run with "
                f"--retries 0 and --no-reissue. To change that, {how}"
            )
            return [Finding("note", "same seed again", seen, advice)]
    return [Finding("ok", "same seed again", "The same call gives the same rewards.")]


def freshness(problem: Problem, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return whether different pulls give different rewards."""
    whole = [one for one in tried if one.reseeded is not None and len(one.trials) > 1]
    if not whole:
        return []
    flat = [one for one in whole if _is_constant(one)]
    same = [one for one in whole if one not in flat and _is_the_same(one)]
    found = []
    if len(same) * 2 > len(whole):
        found.append(
            Finding(
                "error",
                "fresh rewards",
                f"Different pulls of {named(problem, same)}, with different seeds, gave the same rewards.",
                "A repeated measurement must be a new one: remove any cache, and seed from `rng`, or from "
                "{seed} in a command, and from nothing else.",
            )
        )
    if flat:
        found.append(_constant(problem, flat))
    return found or [Finding("ok", "fresh rewards", "Different pulls give different rewards.")]


def _is_constant(one: ArmTrials) -> bool:
    trials = (*one.trials, *([] if one.reseeded is None else [one.reseeded]))
    return len({trial.summary.mean for trial in trials}) == 1 and all(t.is_constant for t in trials)


def _is_the_same(one: ArmTrials) -> bool:
    """Whether all calls for the same number of pulls have the same answer."""
    by_count: dict[int, set[tuple[float, ...]]] = {}
    trials = [*one.trials, *([] if one.reseeded is None else [one.reseeded])]
    for trial in trials:
        by_count.setdefault(trial.call.count, set()).add(trial.rewards)
    return len(trials) > len(by_count) and all(len(answers) == 1 for answers in by_count.values())


def _constant(problem: Problem, flat: Sequence[ArmTrials]) -> Finding:
    value = flat[0].trials[0].summary.mean
    seen = f"All rewards of {named(problem, flat)} are the same ({value:g} for the first)."
    if problem.bounds is not None and all(one.trials[0].summary.mean in problem.bounds for one in flat):
        return Finding(
            "note", "fresh rewards", seen, "So they may be, if other rewards are rare. Try more pulls."
        )
    advice = (
        "A measurement without noise is a cached or badly seeded one, as a rule. If it truly has none, one "
        "pull of each arm tells everything and nothing of this is needed."
    )
    return Finding("error", "fresh rewards", seen, advice)


def ranges(problem: Problem, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return whether rewards lie within the bounds that were declared."""
    if problem.bounds is None or not any(one.trials for one in tried):
        return []
    for trial in _all(tried):
        try:
            check_answer(problem, trial.call.arm, trial.answer, trial.summary)
        except FinalFailure as error:
            seen, _, advice = str(error).partition(". ")
            return [Finding("error", "bounds", f"{seen[0].upper()}{seen[1:]}.", advice)]
    low, high = problem.bounds
    is_binary = problem.is_binary
    seen = "All rewards are 0 or 1." if is_binary else f"All rewards lie between {low:g} and {high:g}."
    return [Finding("ok", "bounds", seen)]


def durations(tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return whether good rewards take longer, or less long, within arms (Spearman)."""
    arms = [one for one in tried if len(one.trials) > 2]
    if not arms:
        return []
    times = np.concatenate([_ranks([trial.seconds for trial in one.trials]) for one in arms])
    means = np.concatenate([_ranks([trial.summary.mean for trial in one.trials]) for one in arms])
    sizes = float(np.sqrt((times**2).sum() * (means**2).sum()))
    rho = float((times * means).sum()) / sizes if sizes else 0.0
    if abs(rho) * np.sqrt(len(times) - len(arms)) < 3.5:
        return [Finding("ok", "time and reward", "How long a call takes says nothing of its rewards.")]
    return [
        Finding(
            "note",
            "time and reward",
            f"Calls with {'large' if rho > 0 else 'small'} rewards take longer (rank correlation {rho:.2f}).",
            "Shortlist counts whole batches only, so no harm is done. But a time limit that ends "
            "some of them would bias the means: allow ample time.",
        )
    ]


def _ranks(values: Sequence[float]) -> FloatArray:
    """Return ranks around 0, equal ones for equal values."""
    given = np.asarray(values)
    below = (given[None] < given[:, None]).sum(axis=1)
    equal = (given[None] == given[:, None]).sum(axis=1)
    return np.asarray(below + (equal - 1) / 2 - (len(given) - 1) / 2)


def travel(source: Source) -> list[Finding]:
    """Return whether other processes can be given the measurement."""
    try:
        pickle.loads(pickle.dumps(source))
    except Exception as error:
        return [
            Finding(
                "note",
                "workers",
                f"The measurement cannot be sent to other processes ({type(error).__name__}: {error}).",
                "Define the function at the top level of a module, so that workers can import it.",
            )
        ]
    return [Finding("ok", "workers", "The measurement can be sent to other processes.")]


def supply(source: Source, most_pulls: int | None) -> list[Finding]:
    """Return whether a table of recorded rewards may run out."""
    if not isinstance(source, TableSource) or most_pulls is None:
        return []
    rows = len(source.values)
    if rows >= most_pulls:
        return [
            Finding("ok", "rows", f"The table has {rows:,} rows in all; {most_pulls:,} pulls are the most.")
        ]
    return [
        Finding(
            "note",
            "rows",
            f"The table has {rows:,} rows in all, but a run may take {most_pulls:,} pulls: it may run out.",
            "Ask for less, with a larger epsilon or delta, or record more rows.",
        )
    ]


def _shortest(source: Source, n: int) -> int | None:
    """Return the rows of the arm that has fewest; None if rewards are not recorded."""
    return min(source.rows(arm) for arm in range(n)) if isinstance(source, TableSource) else None


def pilot(question: Problem, source: Source, tried: Sequence[ArmTrials], pulls: int) -> list[Finding]:
    """Return what pilot will be made, and whether the measurement is fit for one."""
    each = f"{pulls:,} pulls of each arm"
    rows = _shortest(source, question.n)
    if rows is not None and rows < pulls:
        return [
            Finding(
                "error",
                "pilot",
                f"A pilot makes {each}, but some arm has only {rows:,} rows.",
                "Record more rows, or state a smaller `pilot`.",
            )
        ]
    if any(trial.summary.variance is None for trial in _all(tried) if trial.call.count > 1):
        return [
            Finding(
                "error",
                "pilot",
                "The measurement returns means alone, but a pilot has to show how rewards spread.",
                "Return all rewards, or their sample variance with their mean.",
            )
        ]
    few = [one for one in tried if _is_coarse(one)]
    if few:
        return [
            Finding(
                "error",
                "pilot",
                f"Rewards of {named(question, few)} have only two values, so they are not Gaussian.",
                'State their `bounds`, or `rewards = "bernoulli"`, instead of `noise`; or let each pull be '
                "an average of many such rewards.",
            )
        ]
    seen = f"Variances are unknown, so a run begins with {each}, {pulls * question.n:,} in all."
    return [Finding("ok", "pilot", seen)]


def _is_coarse(one: ArmTrials) -> bool:
    """Whether ten rewards or more of an arm, given one by one, have no more than two values, but two."""
    values = [reward for trial in one.trials if not is_summary(trial.answer) for reward in trial.rewards]
    return len(values) >= 10 and len(set(values)) == 2


def _all(tried: Sequence[ArmTrials]) -> list[Trial]:
    return [
        trial
        for one in tried
        for trial in (*one.trials, *(t for t in (one.again, one.reseeded) if t is not None))
    ]


def named(problem: Problem, arms: Sequence[ArmTrials]) -> str:
    """Return the names of arms as a phrase."""
    names = [problem.name(one.arm) for one in arms]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
