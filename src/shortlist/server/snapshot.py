"""A run as its page shows it: plain data, fit for JSON, and small however large the run is."""

import math
import time
from typing import Any

from shortlist.report.company_text import worker_words
from shortlist.report.facts import Report, report_of_history
from shortlist.report.moments import iso
from shortlist.report.next_step import next_step
from shortlist.report.origin import resuming
from shortlist.report.rows import Left, shown
from shortlist.report.run_text import state_of, status_dict
from shortlist.report.verdict import LABELS, basis, certificate, effort, headline, optimality
from shortlist.run.addresses import path_of
from shortlist.run.follower import Follower
from shortlist.server.desk import Open
from shortlist.server.story import told_words

_MOST_LISTED = 50  # of conflicts, scored failures, rounds, workers and selected arms


def glance(log: Follower) -> dict[str, Any]:
    """Return what the list of runs says of one."""
    history = log.history
    state = state_of(history)
    return {
        "run": log.run,
        "path": path_of(log.run),
        "state": state,
        "label": LABELS[state],
        "next": next_step(history, time.time()),
        "question": history.problem.words,
        "strategy": history.began.strategy,
        "code": history.began.code,
        "n_pulls": history.n_pulls,
        "worst_case_pulls": history.worst_case_pulls,
        "changed": None if log.changed_at is None else iso(log.changed_at),
        "is_done": history.is_final,
    }


def snapshot(run: Open) -> dict[str, Any]:
    """Return all that the page of a run shows."""
    log = run.log
    with log.lock:
        report = report_of(run)
        status = status_dict(log, with_result=False)
        facts = glance(log) | {key: status[key] for key in status if key not in ("run", "state", "question")}
        for part in ("conflicts", "scored"):
            facts[f"n_{part}"], facts[part] = len(status[part]), status[part][-_MOST_LISTED:]
        for holder in facts["holders"]:
            holder["words"] = worker_words(holder["worker"])
        return facts | {
            "problem": status["question"],
            "headline": headline(report),
            "certificate": certificate(report),
            "basis": basis(report),
            "effort": effort(report),
            "optimality": optimality(report),
            "resume": report.resume,
            "selected": [log.history.problem.name(int(arm)) for arm in report.result.indices[:_MOST_LISTED]],
            "n_selected": len(report.result.indices),
            "rivals": dict(report.rivals),
            "pace": _pace(run),
            "arms": _arms(report),
            "rounds": _rounds(report),
            "workers": _workers(report),
            "findings": [{"is_warning": one.is_warning, "words": one.words} for one in report.findings],
            "log": [told_words(record, log.history) for record in reversed(run.tally.recent)],
            "made": iso(time.time()),
        }


def report_of(run: Open) -> Report:
    """Return the report on a run, as far as its log has been read."""
    origin, history = run.tally.origin, run.log.history
    resume = resuming(origin, history.began.seed)
    return report_of_history(history, origin, run.tally.workers, resume=resume)


def _arms(report: Report) -> dict[str, Any]:
    """Return the arms that are shown one by one, from the best; with the cut between in and out."""
    chosen = shown(report)
    rows: list[dict[str, Any]] = []
    for row, is_above in [(row, True) for row in chosen.above] + [(row, False) for row in chosen.below]:
        if isinstance(row, Left):
            rows.append({"left_out": len(row.arms), "is_above": is_above})
            continue
        error = None if report.errors is None else _number(report.errors[row])
        rows.append(
            {
                "arm": row,
                "name": report.result.problem.name(row)[:_MOST_LETTERS],
                "mean": _number(report.result.arms.means[row]),
                "error": error,
                "pulls": int(report.result.arms.pulls[row]),
                "is_above": is_above,
            }
        )
    return {"rows": rows, "n_above": report.n_above, "epsilon": report.result.problem.epsilon}


_MOST_LETTERS = 120  # of the name of an arm


def _rounds(report: Report) -> list[dict[str, int]]:
    rounds = report.rounds
    if rounds is None:
        return []
    first = max(0, len(rounds.arms) - 4 * _MOST_LISTED)
    return [
        {"round": k, "arms": int(rounds.arms[k]), "pulls": int(rounds.pulls[k])}
        for k in range(first, len(rounds.arms))
    ]


def _workers(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "worker": worker_words(work.worker)[:_MOST_LETTERS],
            "n_answers": work.n_answers,
            "n_pulls": work.n_pulls,
            "share": work.share,
        }
        for work in report.workers[:_MOST_LISTED]
    ]


def _pace(run: Open) -> dict[str, Any]:
    """Return how fast pulls have come since the run began, and how long it can last at that pace."""
    log, cap = run.log, run.log.history.worst_case_pulls
    seconds = max((log.changed_at or 0.0) - (log.began_at or 0.0), 1e-9)
    rate = log.history.n_pulls / seconds if log.history.n_pulls else 0.0
    left = None
    if cap is not None and rate > 0 and not log.history.is_final:
        left = (cap - log.history.n_pulls) / rate
    return {"pulls_per_second": rate, "seconds_left_at_most": left}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
