"""Checks of test measurements: each returns its finding, the severity, and advice."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.doctor.trials import ArmTrials, Trial
from shortlist.errors import FinalFailure
from shortlist.measure import Source, TableSource, check_answer
from shortlist.measure.bounds_check import is_summary
from shortlist.problem import Problem

_SHOWN = 3  # failures shown


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes
    ----------
    severity
        "error": the guarantee, or the run, would fail; "note": worth knowing; or "ok".
    subject
        What was checked, in a few words.
    seen
        The observation.
    advice
        What to do about it; empty if nothing.
    """

    severity: str
    subject: str
    seen: str
    advice: str = ""


def failures(tried: Sequence[ArmTrials]) -> list[Finding]:
    """Return a finding on failed measurements."""
    found = [one.failure for one in tried if one.failure]
    more = f" ({len(found) - _SHOWN} more failed.)" if len(found) > _SHOWN else ""
    advice = f"Fix this first; other checks may be meaningless until then.{more}"
    shown = found[:_SHOWN]
    return [Finding("error", "measuring", said, advice * (said is shown[-1])) for said in shown]


def reproducibility(
    problem: Problem, tried: Sequence[ArmTrials], *, is_declared: bool = False
) -> list[Finding]:
    """Check whether a call repeated with the same seed gives the same rewards."""
    pairs = [(one.trials[0], one.again) for one in tried if one.again is not None]
    if not pairs:
        return []
    for first, again in pairs:
        if first.rewards != again.rewards:
            name, means = problem.name(first.call.arm), (first.summary.mean, again.summary.mean)
            seen = f"{name} gave a mean of {means[0]:.6g}, and then {means[1]:.6g}."
            how = "take all random numbers from `rng`, or from {seed} in a command."
            if is_declared:
                advice = f"The file says `reproducible = true`. Remove that, or {how}"
                return [Finding("error", "same seed again", seen, advice)]
            advice = (
                f"Runs cannot be reproduced exactly. To make them reproducible, {how} The guarantee "
                "holds even if runs cannot be reproduced, with one exception: a retried or reissued "
                "ticket may bias the means if the duration or failure of a call depends on its reward. "
                "In that case, use --retries 0 and --no-reissue."
            )
            return [Finding("note", "same seed again", seen, advice)]
    return [Finding("ok", "same seed again", "The same call gives the same rewards.")]


def freshness(problem: Problem, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Check whether different pulls give different rewards; with shared items, a score is measured once."""
    if problem.has_pool:
        return []
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
                "A repeated measurement must be a fresh one. Remove any cache, and take seeds only from "
                "`rng` or, in a command, from {seed}.",
            )
        )
    if flat:
        found.append(_constant(problem, flat))
    return found or [Finding("ok", "fresh rewards", "Different pulls give different rewards.")]


def _is_constant(one: ArmTrials) -> bool:
    trials = (*one.trials, *([] if one.reseeded is None else [one.reseeded]))
    return len({trial.summary.mean for trial in trials}) == 1 and all(t.is_constant for t in trials)


def _is_the_same(one: ArmTrials) -> bool:
    """Return whether all calls for the same number of pulls have the same answer."""
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
            "note",
            "fresh rewards",
            seen,
            "This is possible if other rewards are rare. Test with more --pulls.",
        )
    advice = (
        "A measurement without noise is usually cached or badly seeded. If it really has no noise, one pull "
        "per arm is enough, and Shortlist is not needed."
    )
    return Finding("error", "fresh rewards", seen, advice)


def ranges(problem: Problem, tried: Sequence[ArmTrials]) -> list[Finding]:
    """Check whether rewards lie within the declared bounds."""
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
    """Check whether the duration of calls is correlated with their rewards, within arms (Spearman)."""
    arms = [one for one in tried if len(one.trials) > 2]
    if not arms:
        return []
    times = np.concatenate([_ranks([trial.seconds for trial in one.trials]) for one in arms])
    means = np.concatenate([_ranks([trial.summary.mean for trial in one.trials]) for one in arms])
    sizes = float(np.sqrt((times**2).sum() * (means**2).sum()))
    rho = float((times * means).sum()) / sizes if sizes else 0.0
    if abs(rho) * np.sqrt(len(times) - len(arms)) < 3.5:
        return [
            Finding("ok", "time and reward", "The duration of calls is not correlated with their rewards.")
        ]
    return [
        Finding(
            "note",
            "time and reward",
            f"Calls with {'large' if rho > 0 else 'small'} rewards take longer (rank correlation {rho:.2f}).",
            "Shortlist counts only complete batches, so this does no harm. But a timeout that stops some "
            "of the calls would bias the means. If you set a timeout, use a generous one.",
        )
    ]


def _ranks(values: Sequence[float]) -> FloatArray:
    """Return centred ranks, with equal ranks for ties."""
    given = np.asarray(values)
    below = (given[None] < given[:, None]).sum(axis=1)
    equal = (given[None] == given[:, None]).sum(axis=1)
    return np.asarray(below + (equal - 1) / 2 - (len(given) - 1) / 2)


def travel(source: Source) -> list[Finding]:
    """Check whether the measurement can be sent to other processes."""
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
    """Check whether a table of recorded rewards has enough rows."""
    if not isinstance(source, TableSource) or most_pulls is None:
        return []
    rows = len(source.values)
    if rows >= most_pulls:
        return [
            Finding(
                "ok",
                "rows",
                f"The table has {rows:,} rows in total; a run takes at most {most_pulls:,} pulls.",
            )
        ]
    return [
        Finding(
            "note",
            "rows",
            f"The table has {rows:,} rows in total, but a run may take {most_pulls:,} pulls.",
            "Use a larger epsilon or delta, or record more rows.",
        )
    ]


def _shortest(source: Source, n: int) -> int | None:
    """Return the smallest number of rows of an arm; None if rewards are not recorded."""
    return min(source.rows(arm) for arm in range(n)) if isinstance(source, TableSource) else None


def first_batch(
    question: Problem, source: Source, tried: Sequence[ArmTrials], pulls: int, what: str
) -> list[Finding]:
    """Describe the first batch, a pilot or not, and check whether the measurement is suitable for it."""
    each = f"{pulls:,} pulls per arm"
    rows = _shortest(source, question.n)
    if rows is not None and rows < pulls:
        smaller = ", or set a smaller `pilot`" if what == "pilot" else ""
        return [
            Finding(
                "error",
                what,
                f"The {what} takes {each}, but an arm has only {rows:,} rows.",
                f"Record more rows{smaller}.",
            )
        ]
    if any(trial.summary.variance is None for trial in _all(tried) if trial.call.count > 1):
        return [
            Finding(
                "error",
                what,
                f"The measurement returns only means, but the {what} needs sample variances.",
                "Return all rewards, or their sample variance with their mean.",
            )
        ]
    few = [one for one in tried if _is_coarse(one)]
    if few:
        return [
            Finding(
                "error",
                what,
                f"Rewards of {named(question, few)} have only two values, so they are not Gaussian.",
                'State their `bounds`, or `rewards = "bernoulli"`, instead of `noise`; or let each pull be '
                "an average of many such rewards.",
            )
        ]
    begins = f"a run starts with a {what} of {each}, {pulls * question.n:,} in total."
    return [Finding("ok", what, f"Variances are unknown, so {begins}")]


def _is_coarse(one: ArmTrials) -> bool:
    """Return whether ten or more single rewards of an arm have exactly two values."""
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
