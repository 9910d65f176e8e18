"""A report as ten lines of text, and as plain data."""

from typing import Any

from shortlist.report.citations import bibtex, keys_of
from shortlist.report.model import Report
from shortlist.report.provenance_text import question_words, reproduction
from shortlist.report.text_format import counted, iso, mean_words, percent, plain_name, universal
from shortlist.report.verdict import (
    LABELS,
    MOST_NAMED,
    basis,
    certificate,
    effort,
    headline,
    optimality,
    standing,
)
from shortlist.report.worker_text import worker_words
from shortlist.result import Result

_MOST_WORKERS = 3


def report_lines(report: Report) -> list[str]:
    """Return a report in at most ten lines, the verdict first."""
    lines = [
        _verdict(report),
        _arms(report),
        " ".join(filter(None, [certificate(report), basis(report)])),
        _stop(report),
        " ".join(filter(None, [effort(report), standing(report), optimality(report)])),
        _health(report),
        _workers(report),
        f"Asked: {question_words(report.result.problem)}. {_times(report)}".rstrip(),
        f"To resume: {report.resume}" if report.resume else f"To reproduce: {reproduction(report)}",
        f"To cite: {', '.join([*keys_of(report.result), 'shortlist'])}; entries are in the HTML report.",
    ]
    return [line for line in lines if line]


def _verdict(report: Report) -> str:
    run = "" if report.origin is None else f"{plain_name(report.origin.run, 60)}: "
    return f"{run}{LABELS[report.state].lower()}. {headline(report)}."


def _stop(report: Report) -> str:
    reason = plain_name(" ".join(report.suspended.split()), 500)
    return f"Why it stopped: {reason}" if reason and not report.is_finished else ""


def _arms(report: Report) -> str:
    result, some = report.result, report.order[: min(report.n_above, MOST_NAMED)]
    if not result.n_pulls and not report.is_finished:
        return ""
    named = [
        f"{plain_name(result.problem.name(int(arm)))} "
        f"({mean_words(float(result.arms.means[arm]), result.problem.epsilon)}, "
        f"{_pulls(result, int(arm))})"
        for arm in some
    ]
    more = report.n_above - len(some)
    what = "Selected" if report.state in {"certified", "unproved"} else "Kept"
    if not report.is_finished:
        what = "Best certified so far" if report.is_partly_certified else "Best means so far"
    return f"{what}: {', '.join(named)}" + (f" and {more:,} more." if more else ".")


def _pulls(result: Result, arm: int) -> str:
    if result.problem.known is not None and arm in result.problem.known.arms:
        return "known before"
    pulls, in_mean = int(result.arms.pulls[arm]), int(result.arms.in_mean[arm])
    said = counted(pulls, "score" if result.problem.has_pool else "pull")
    return said if pulls == in_mean else f"{said}, {in_mean:,} of them in the mean"


def _health(report: Report) -> str:
    if not report.findings:
        return "Warnings: none."
    first = report.findings[0].words
    more = len(report.findings) - 1
    return f"Warnings: {first}" + (f" And {counted(more, 'warning')} more." if more else "")


def _workers(report: Report) -> str:
    if not report.workers:
        return ""
    some = [
        f"{plain_name(worker_words(work.worker))} ({percent(work.share)})"
        for work in report.workers[:_MOST_WORKERS]
    ]
    more = len(report.workers) - len(some)
    return f"Measured by: {', '.join(some)}" + (f" and {more:,} more." if more else ".")


def _times(report: Report) -> str:
    origin = report.origin
    if origin is None:
        return ""
    end = (
        f"last change {universal(origin.changed_at)}"
        if origin.ended_at is None
        else f"ended {universal(origin.ended_at)}"
    )
    return f"Started {universal(origin.began_at)}, {end}."


def report_dict(report: Report) -> dict[str, Any]:
    """Return a report as plain data for JSON."""
    origin, rounds = report.origin, report.rounds
    return {
        "run": None if origin is None else origin.run,
        "state": report.state,
        "headline": headline(report),
        "certificate": certificate(report),
        "basis": basis(report),
        "cap": report.cap,
        "worst_cases": dict(report.rivals),
        "rounds": None
        if rounds is None
        else {"arms": rounds.arms.tolist(), "pulls": rounds.pulls.tolist(), "n_whole": rounds.n_whole},
        "suspended": report.suspended or None,
        "resume": report.resume or None,
        "findings": [{"is_warning": one.is_warning, "words": one.words} for one in report.findings],
        "workers": [vars(work) for work in report.workers],
        "origin": None
        if origin is None
        else {
            "code": origin.code,
            "asked_for": origin.asked_for,
            "version": origin.version,
            "settings": origin.settings,
            "began": iso(origin.began_at),
            "changed": iso(origin.changed_at),
            "ended": None if origin.ended_at is None else iso(origin.ended_at),
            "n_events": origin.n_events,
        },
        "reproduce": reproduction(report),
        "bibtex": bibtex(report.result),
        "made": iso(report.made_at),
        "result": report.result.to_dict(),
    }
