"""The provenance of a run and how to reproduce it, as text."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from shortlist.doctor.estimate import span
from shortlist.errors import InvalidProblem
from shortlist.measure import declared
from shortlist.planning import plan
from shortlist.problem import Problem
from shortlist.report.model import Report
from shortlist.report.origin import Origin
from shortlist.report.text_format import counted, universal
from shortlist.strategies import strategy_for


def provenance(report: Report) -> list[tuple[str, str]]:
    """Return the facts that identify a run, each with its label."""
    result, origin = report.result, report.origin
    rules = strategy_for(result.strategy, result.problem)
    found = [
        ("Problem", question_words(result.problem)),
        ("Digest of the question", result.problem.digest),
        ("Strategy", f"{result.strategy}: {rules.summary}"),
        ("Why this strategy", why(report)),
        ("Seed", str(result.seed)),
    ]
    if origin is not None:
        found += [
            ("Measured by", _measured_by(report, origin)),
            ("Begun", f"{universal(origin.began_at)} by Shortlist {origin.version}"),
            (
                "Last change",
                f"{universal(origin.changed_at)}, {counted(origin.n_events, 'event')} in the log",
            ),
            ("Ended", _ended(origin)),
            ("Run", f"{origin.run}, ticket prefix {origin.code}"),
        ]
    return found


def _measured_by(report: Report, origin: Origin) -> str:
    result = report.result
    if not result.n_fed:
        return measured_by(origin.settings)
    fed = f"results fed from elsewhere ({counted(result.n_fed, 'pull')})"
    return fed if result.n_fed == result.n_pulls else f"{measured_by(origin.settings)}; {fed}"


def question_words(problem: Problem) -> str:
    """Return the question with all its parameters."""
    best = "best" if problem.goal == "maximise" else "smallest"
    best = best if problem.m == 1 else f"{problem.m:,} {best}"
    they = "it leads" if problem.m == 1 else "they lead"
    zone = "" if problem.guarantee == "pac" else f", if {they} by epsilon (indifference zone)"
    noise = {
        "gaussian-unknown": "Gaussian rewards with unknown variances",
        "gaussian": "Gaussian rewards with exactly the stated variances",
        "sub-gaussian": "sub-Gaussian rewards with at most the stated variances",
    }.get(problem.noise, "rewards")
    noise += " in blocks that all arms share" if problem.has_blocks else ""
    if problem.bounds is not None:
        noise += f"{'' if problem.is_bounded else ','} declared to {declared(problem)}"
    return (
        f"the {best} of {counted(problem.n, 'arm')}{zone}; epsilon {problem.epsilon:g}, delta "
        f"{problem.delta:g}; {noise}"
    )


def why(report: Report) -> str:
    """Return why this strategy was used: it was requested, or the plan chose it."""
    result, origin = report.result, report.origin
    if origin is not None and origin.asked_for == result.strategy:
        return "requested by name"
    with suppress(InvalidProblem):  # no strategy may be certified for the problem
        best = plan(result.problem)
        if best.best.strategy == result.strategy:
            return best.why
    return "requested by name, or chosen for a budget" if origin is None else "chosen for a budget"


def measured_by(settings: Mapping[str, Any] | None) -> str:
    """Return how rewards were measured."""
    if settings is None:
        return "people or other programs, with `ask` and `tell`"
    measure = settings.get("measure")
    kinds = {
        "function": "a Python function of the problem file",
        "command": "a command of the problem file",
        "table": "a table of recorded rewards",
        "simulated": "simulation",
    }
    if isinstance(measure, Mapping):
        said = kinds.get(str(measure.get("kind")), str(measure.get("kind")))
    else:
        said = "a Python function"
    if settings.get("pulls_per_call") is not None:
        said += f", at most {counted(settings['pulls_per_call'], 'pull')} per call"
    said += f", arms interleaved in {settings['turns']} turns" if settings.get("turns") else ""
    if settings.get("on_failure") not in (None, "suspend"):
        said += f"; failures count as {settings['on_failure']:g}"
    return said


def _ended(origin: Origin) -> str:
    if origin.ended_at is None:
        return "not yet"
    return (
        f"{universal(origin.ended_at)}, {span(max(origin.ended_at - origin.began_at, 0.0))} after it started"
    )


def _has_old_meaning(problem: Problem) -> bool:
    """Return whether the run may come from a file whose ``rewards = "bernoulli"`` meant the variance 1/4."""
    return problem.is_binary and not problem.is_bounded and bool((problem.variances == 0.25).all())


def reproduction(report: Report) -> str:
    """Return the command or call that reproduces the run, independent of its store."""
    result, origin = report.result, report.origin
    call = f'shortlist.select(measure, problem, "{result.strategy}", seed={result.seed})'
    if origin is None:
        return call
    settings = origin.settings
    if settings is None:
        return shlex.join(["shortlist", "replay", origin.run, *report.where])
    if not isinstance(settings.get("measure"), Mapping) or _has_old_meaning(result.problem):
        return call
    words = ["shortlist", "run", origin.file, "--strategy", result.strategy, "--seed", str(result.seed)]
    if settings.get("pulls_per_call") is not None:
        words += ["--pulls-per-call", str(settings["pulls_per_call"])]
    if isinstance(settings["measure"], Mapping) and settings["measure"].get("kind") in {
        "function",
        "command",
    }:
        words += ["--turns", str(settings.get("turns", 1))]
    return shlex.join([*words, "--store", "again.db"])
